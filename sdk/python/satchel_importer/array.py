"""Streams the elements of a JSON array, of JSON Lines, or a single object, with one element in memory at a time."""

from typing import NamedTuple

from .errors import ImporterError
from .stream import Stream
from .walk import Walk

ELEMENT_LIMIT = 16 * 1024 * 1024
"""The longest element that is parsed, in characters; a longer one is reported as a skip."""
_PROGRESS_STEP = 1024 * 1024


class WalkOutcome(NamedTuple):
    """The result of a walk."""

    elements: int
    """Number of elements, including skipped ones."""
    cut: int | None
    """Offset in bytes at which the file is truncated or stops being JSON; it was reported as a skip."""


class Element:
    """One element; valid during one call of your function."""

    __slots__ = ("value", "index", "key", "whole", "_path", "_stream", "_found")

    def __init__(self, path, stream, found, index):
        self.value = found.value
        """The parsed value; None if it is not whole."""
        self.index = index
        """Its index in the list, from 0."""
        self.key = found.key
        """The name of the member, if the elements are the members of an object."""
        self.whole = found.kind == "element"
        """Whether it is whole; the last element of `sample` may be truncated."""
        self._path = path
        self._stream = stream
        self._found = found

    @property
    def text(self):
        """Its JSON text."""
        start = self._found.start
        text = self._stream.text[start:start + self._found.length]
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace") if self._found.invalid else text

    @property
    def locator(self):
        """Its place for receipts: `notes.json[17]`, or `notes.json.its-name` for a member."""
        return _locator(self._path, self.key, self.index)

    def has_keys(self, *keys):
        """Whether it is an object with all these keys. Of a truncated element, whether they are anywhere in its text."""
        if self.whole:
            return isinstance(self.value, dict) and all(key in self.value for key in keys)
        text = self.text
        return all(f'"{key}"' in text for key in keys)


class JsonArray:
    """A list of JSON values in a file.

    The root of the file may be an array (or several in sequence), an object with the array at `pointer`, a single value
    (one element), or JSON Lines (one element for each).
    """

    def __init__(self, path):
        """The elements of the root of the file `path`."""
        self._path = path
        self._pointer = ""
        self._members = False
        self._kind = "conversation"
        self._limit = ELEMENT_LIMIT

    def pointer(self, pointer):
        """The array is at this RFC 6901 pointer, which has object members only: `/conversations`."""
        self._pointer = pointer
        return self

    def members(self):
        """The elements are the members of an object, such as `{"<id>": {…}, …}`. Any other value has no elements."""
        self._members = True
        return self

    def kind(self, kind):
        """The kind of record that a skipped element counts as: conversation (the default), message, memory or file."""
        self._kind = kind
        return self

    def limit(self, limit):
        """The longest element that is parsed, in characters."""
        self._limit = limit
        return self

    def each(self, bundle, sink, each):
        """Calls `each(element, sink)` for every element.

        If it raises an ImporterError of kind `malformed`, that element is reported as skipped and the walk continues; any
        other error ends the run. So do all checks before you emit. A truncated file gives its whole elements and then a
        skip with the offset. Invalid UTF-8 is read as U+FFFD, and of repeated keys the last counts, both with a warning.
        """
        try:
            with bundle.open(self._path) as reader:
                return self._each(reader, bundle, sink, each)
        except Exception as error:
            raise ImporterError.of(error).at(self._path) from error

    def sample(self, bundle, size, look):
        """Calls `look(element)` with the elements among the first `size` bytes until it returns False; for `detect`.

        The last element may be truncated, and one that is not valid JSON is passed over.
        """
        with bundle.open(self._path) as reader:
            stream = Stream(reader, size)
            walk = Walk(stream, self._pointer, size, self._members)
            index = 0
            while (found := walk.next()).kind in ("element", "head"):
                if found.problem is None and look(Element(self._path, stream, found, index)) is False:
                    return
                index += 1

    def _each(self, reader, bundle, sink, each):
        total, before, reported = reader.size(), bundle.bytes_read, 0
        stream = Stream(reader)
        walk = Walk(stream, self._pointer, self._limit, self._members)
        index = 0
        while (found := walk.next()).kind == "element":
            self._one(stream, found, index, sink, each)
            index += 1
            done = bundle.bytes_read - before
            if done >= reported + _PROGRESS_STEP:
                reported = done
                sink.progress(done, total)
        if found.kind == "cut":
            sink.skip(self._kind, f"{self._path}@{found.value}", found.problem)
        sink.progress(total, total)
        return WalkOutcome(index, found.value if found.kind == "cut" else None)

    def _one(self, stream, found, index, sink, each):
        if found.problem is not None:
            sink.skip(self._kind, _locator(self._path, found.key, index), found.problem)
            return
        element = Element(self._path, stream, found, index)
        if found.invalid:
            sink.warn(element.locator, "invalid UTF-8 was replaced by U+FFFD")
        try:
            each(element, sink)
        except RecursionError:
            sink.skip(self._kind, element.locator, "it is nested too deeply")
        except MemoryError:
            sink.skip(self._kind, element.locator, "it needs too much memory")
        except Exception as error:
            error = ImporterError.of(error)
            if error.kind != "malformed":
                raise error.at(element.locator)
            sink.skip(self._kind, error.locator or element.locator, error.message)
        else:
            if found.repeats is not None:
                sink.warn(element.locator, f'an object gives the key "{found.repeats}" twice; the last value is read')


def _locator(path, key, index):
    """The place of an element: by its name if it is a member of an object, otherwise by its index."""
    return f"{path}[{index}]" if key is None else f"{path}.{key}"
