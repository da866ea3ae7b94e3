"""Converts a conversation from the names of PAM's JSON to the records of importer.wit, and checks the types on the way: the
bindings abort the component without a text if a field has another type."""

import json

from .errors import ImporterError
from .text import line_of, well_formed

_ROLES = ("user", "assistant", "system", "tool")
_CONTENT_KINDS = ("text", "multipart")
_PART_KINDS = ("text", "image", "code", "file", "audio", "video")
_ATTACHMENT_KINDS = ("file", "image", "audio", "video", "document")


class Lower:
    """Makes the records of `types`, the module `wit_world.imports.types`."""

    def __init__(self, types):
        self._types = types
        self._roles = {name: types.Role[name.upper()] for name in _ROLES}

    def conversation(self, record):
        """The record `conversation`, without its messages."""
        return self._types.Conversation(
            _text(record, "id"),
            _optional(record, "provider_conversation_id"),
            _optional(record, "account"),
            _optional(record, "export_format_version"),
            _optional(record, "title"),
            _integer(record, "created_at"),
            _integer(record, "updated_at"),
            _list(record, "participants", self._participant),
            _optional(record, "model"),
            _optional(record, "system_instruction"),
            record.get("is_archived") is True,
            _list(record, "tags", lambda tag: _text({"tag": tag}, "tag")),
            _optional(record, "current"),
            _object(record, "raw_metadata"),
            _text(record, "locator"),
        )

    def message(self, record):
        """The record `message`."""
        content = record.get("content")
        return self._types.Message(
            _text(record, "id"),
            _optional(record, "provider_message_id"),
            self._role(record),
            None if content is None else self._content(content),
            _integer(record, "created_at"),
            _optional(record, "parent"),
            _optional(record, "model"),
            record.get("is_thought") is True,
            _integer(record, "token_count"),
            _list(record, "attachments", self._attachment),
            _list(record, "citations", self._citation),
            _list(record, "tool_calls", self._tool_call),
            _object(record, "raw_metadata"),
        )

    def _role(self, record):
        role = self._roles.get(record.get("role"))
        return self._choice(record, "role", _ROLES, self._types.Role) if role is None else role

    def _participant(self, record):
        role, name = self._role(record), _optional(record, "name")
        return self._types.Participant(role, name, _optional(record, "provider_id"))

    def _content(self, record):
        kind = self._choice(record, "type", _CONTENT_KINDS, self._types.ContentKind)
        return self._types.Content(kind, _optional(record, "text"), _list(record, "parts", self._part))

    def _part(self, record):
        return self._types.ContentPart(
            self._choice(record, "type", _PART_KINDS, self._types.PartKind),
            _optional(record, "text"),
            _optional(record, "language"),
            _optional(record, "mime_type"),
            _optional(record, "ref"),
        )

    def _attachment(self, record):
        source = record.get("source")
        return self._types.Attachment(
            self._choice(record, "type", _ATTACHMENT_KINDS, self._types.AttachmentKind),
            _optional(record, "name"),
            _optional(record, "mime_type"),
            _integer(record, "size_bytes"),
            _optional(record, "ref"),
            _optional(record, "provider_id"),
            None if source is None else self._source(source),
        )

    def _source(self, record):
        """`{"path": "…"}`, `{"uri": "…"}` or `{"bytes": b"…"}`."""
        if "path" in record:
            return self._types.Source_Path(_text(record, "path"))
        if "uri" in record:
            return self._types.Source_Uri(_text(record, "uri"))
        if isinstance(record.get("bytes"), (bytes, bytearray, list)):
            return self._types.Source_Bytes(bytes(record["bytes"]))
        raise _wrong("source", record, "a path, a uri or bytes")

    def _citation(self, record):
        title, url = _optional(record, "title"), _optional(record, "url")
        return self._types.Citation(title, url, _optional(record, "snippet"))

    def _tool_call(self, record):
        given = record.get("input")
        if given is None:
            lowered = None
        elif isinstance(given, str):
            lowered = self._types.ToolInput_Text(well_formed(given))
        else:
            lowered = self._types.ToolInput_Object(_object(record, "input"))
        identifier, name = _optional(record, "id"), _text(record, "name")
        return self._types.ToolCall(identifier, name, lowered, _optional(record, "output"))

    @staticmethod
    def _choice(record, field, values, enum):
        value = record.get(field)
        if value not in values:
            raise _wrong(field, value, f"one of {', '.join(values)}")
        return enum[value.upper()]


def _text(record, field):
    value = record.get(field)
    if not isinstance(value, str):
        raise _wrong(field, value, "a string")
    return value if value.isascii() else well_formed(value)


def _optional(record, field):
    value = record.get(field)
    return None if value is None else _text(record, field)


def _integer(record, field):
    value = record.get(field)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or abs(value) >= 1 << 63):
        raise _wrong(field, value, "an integer")
    return value


def _object(record, field):
    value = record.get(field)
    if value is None:
        return None
    if not isinstance(value, dict):
        raise _wrong(field, value, "an object")
    return line_of(value)


def _list(record, field, lower):
    value = record.get(field)
    if value is None:
        return []
    if not isinstance(value, list):
        raise _wrong(field, value, "a list")
    return [lower(item) for item in value]


def _wrong(field, value, wanted):
    given = "absent" if value is None else json.dumps(value, default=repr)[:80]
    return ImporterError.internal(f"the field {field} of an emitted record is {given}; it must be {wanted}")
