"""Connects an importer to the host. Only the sandbox has `wit_world`, so the entry of the component alone imports this."""

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports.plugin import Detection, PluginInfo, Summary
from wit_world.imports import files, log, sink, types

from satchel_importer import Bundle, Entry, ImporterError, Sink
from satchel_importer.errors import places
from satchel_importer.lower import Lower
from satchel_importer.text import well_formed

_MAX_BATCH = 1024 * 1024
"""Characters of messages that leave the sandbox in one call. The host accepts 64 MiB."""


def export_importer(importer):
    """The class to export as `Plugin`. `importer` has three functions:

    - `describe()` returns a dict with `name`, `version`, `platform`, `importer_version` and `formats`;
    - `detect(bundle)` returns a list of dicts with `format`, `confidence`, `files` and `account`, which may be absent;
    - `run(format, bundle, sink)` emits the records and returns `bundle.summary()`.
    """

    class Plugin(exports.Plugin):
        def describe(self):
            return PluginInfo(**importer.describe())

        def detect(self):
            return _guarded(lambda: [_detection(**found) for found in importer.detect(Bundle(_Files))])

        def run(self, format):
            return _guarded(lambda: _run(importer, format))

    return Plugin


def _run(importer, format):
    return Summary(**importer.run(format, Bundle(_Files), Sink(_Target(Lower(types)))))


def _detection(format, confidence, files, account=None):
    return Detection(format, confidence, files, account)


def _guarded(work):
    """Turns whatever is raised into an `import-error`, because an uncaught error would abort without a text."""
    try:
        return work()
    except Exception as error:
        failure = ImporterError.of(error)
        if failure.kind == "internal":
            log.log(log.Level.ERROR, well_formed("\n".join([failure.message, *places(error)[-16:]])))
        kind = types.ErrorKind[failure.kind.replace("-", "_").upper()]
        locator = None if failure.locator is None else well_formed(failure.locator)
        raise Err(types.ImportError(kind, well_formed(failure.message), locator))


class _Files:
    @staticmethod
    def list():
        return [Entry(entry.path, entry.size) for entry in files.list_files()]

    open = files.Reader.open


class _Target:
    def __init__(self, lower):
        self._lower = lower

    def conversation(self, record):
        messages = record["messages"]
        lower = self._lower.message
        end = _batch_end(messages, 0)
        verdict = sink.emit_conversation(self._lower.conversation(record), [lower(each) for each in messages[:end]])
        while end < len(messages) and verdict == sink.Verdict.PROCEED:
            start, end = end, _batch_end(messages, end)
            verdict = sink.more_messages([lower(each) for each in messages[start:end]])
        return verdict == sink.Verdict.PROCEED

    def emit_json(self, line):
        return sink.emit_json(line) == sink.Verdict.PROCEED

    def skip(self, kind, locator, reason):
        return sink.skip(types.RecordKind[kind.upper()], well_formed(locator), well_formed(reason)) == sink.Verdict.PROCEED

    def warn(self, locator, message):
        sink.warn(well_formed(locator), well_formed(message))

    def progress(self, done, total):
        return sink.progress(done, total) == sink.Verdict.PROCEED


def _batch_end(messages, start):
    """The end of the batch of messages that begins at `start`; at least one message if there are any."""
    size = 0
    for at in range(start, len(messages)):
        size += _size_estimate(messages[at])
        if size > _MAX_BATCH and at > start:
            return at
    return len(messages)


def _size_estimate(message):
    """About how many characters a message has."""
    content = message.get("content") or {}
    size = 256 + len(content.get("text") or "") + sum(len(part.get("text") or "") for part in content.get("parts") or ())
    size += sum(len(call.get("output") or "") for call in message.get("tool_calls") or ())
    for attachment in message.get("attachments") or ():
        size += len((attachment.get("source") or {}).get("bytes") or "")
    return size
