"""The sink: takes the records that an importer emits.

Conversations, skips and warnings go to the host by the functions of importer.wit, the rarer records as JSON Lines.
componentize-py 0.25.1 never frees the lists and bytes that a call passes: with JSON Lines a run would need as much memory as
the export has, with records it needs about 100 bytes for each message.
"""

import json
import math

from .errors import ImporterError
from .lower import Lower
from .text import line_of

_MAX_LINE = 60 * 1024 * 1024
"""Longest line, in characters; the host accepts 64 MiB in one call."""


class Sink:
    """Takes the records that an importer emits.

    Records are dicts of `satchel-pam`'s `record`, with its names (README.md has the fields). A field that is None is absent.
    Every call may raise an ImporterError of kind `cancelled` because the host asks the run to stop; do not catch it.
    """

    def __init__(self, target):
        """`target` is like `_CollectingTarget`: its methods return whether the run should continue."""
        self._target = target

    @classmethod
    def collecting(cls, limit=math.inf):
        """A sink that collects, for tests; `lines()` returns what was emitted. It stops after `limit` lines."""
        return _CollectingSink(limit)

    def conversation(self, record):
        """Emits a conversation with all its messages."""
        _proceed(self._target.conversation(record))

    def evidence(self, records):
        """Emits what the export says about memories."""
        self._emit("evidence", records)

    def relations(self, records):
        """Emits relations between memory items, which are named by their keys."""
        self._emit("relation", records)

    def embeddings(self, records):
        """Emits embeddings of memory items, which are named by their keys."""
        self._emit("embedding", records)

    def account(self, account):
        """Emits the account that the export belongs to; without email addresses and telephone numbers."""
        self._emit("account", [account])

    def skip(self, kind, locator, reason):
        """Reports a record that is not emitted, and the reason. `kind`: conversation, message, memory or file."""
        _proceed(self._target.skip(kind, locator, reason))

    def warn(self, locator, message):
        """Reports that something was imported differently from how the export has it."""
        self._target.warn(locator, message)

    def progress(self, done, total=None):
        """Reports the bytes read so far, and the total if it is known. JsonArray does this itself."""
        _proceed(self._target.progress(done, total))

    def _emit(self, name, records):
        for record in records:
            line = line_of({name: record})
            if len(line) > _MAX_LINE:
                raise ImporterError.malformed(f"its record is longer than {_MAX_LINE} characters")
            _proceed(self._target.emit_json(line.encode()))


class _CollectingSink(Sink):
    def __init__(self, limit):
        self._collecting = _CollectingTarget(limit)
        super().__init__(self._collecting)

    def lines(self):
        """The lines that were emitted."""
        return self._collecting.lines


class _CollectingTarget:
    """A target that collects. Its methods return whether the run should continue."""

    def __init__(self, limit):
        self._limit = limit
        self._lower = Lower(_AnyTypes())
        self.lines = []

    def conversation(self, record):
        # Finds fields of a wrong type.
        self._lower.conversation(record)
        for message in record["messages"]:
            self._lower.message(message)
        return self.emit_json(line_of({"conversation": record}))

    def emit_json(self, line):
        self.lines.append(json.loads(line))
        return len(self.lines) < self._limit

    def skip(self, kind, locator, reason):
        self.lines.append({"skip": {"kind": kind, "locator": locator, "reason": reason}})
        return len(self.lines) < self._limit

    def warn(self, locator, message):
        self.lines.append({"warning": {"locator": locator, "message": message}})

    def progress(self, done, total):
        return True


class _AnyTypes:
    """Stands for the types of the sandbox."""

    def __getattr__(self, name):
        return self

    def __getitem__(self, name):
        return self

    def __call__(self, *fields):
        return None


def _proceed(proceed):
    if not proceed:
        raise ImporterError.cancelled()
