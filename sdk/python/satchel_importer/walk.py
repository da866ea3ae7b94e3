"""Goes from element to element: finds the list, parses each element, and finds the end of those that cannot be parsed."""

import json
import re
from typing import Any, NamedTuple

from .bundle import CHUNK
from .errors import ImporterError
from .scan import Scan, is_deeper_than

_ENDS_INSIDE = "the file ends inside this record"
_ENDS_EARLY = "the file ends before its list does"
_MORE_BEHIND = "something that is no list stands behind the list; it cannot be read"
_NO_VALUE = "expected a value; the rest of the file cannot be read"
_TOO_DEEP = "it is nested deeper than 500 levels"
_MAX_DEPTH = 500
_TOO_MUCH = "it needs too much memory"

_INVALID = re.compile("[\udc80-\udcff]+")
_NEXT_RECORD = re.compile(r"\n\s*(?=\{)")
# An error this close to the end of the text may be due to that end.
_MARGIN = 24


class Found(NamedTuple):
    """What `Walk.next` found: an `element` (`problem` is set if it cannot be read), the `head` of the truncated last element
    of a sample, a `cut` (the file cannot be read from here on), or the `end`."""

    kind: str
    value: Any = None
    key: str | None = None
    problem: str | None = None
    repeats: str | None = None
    """A key that an object has twice."""
    invalid: bool = False
    """Whether it had invalid UTF-8."""
    start: int = 0
    length: int = 0


class Walk:
    """A walk over the elements of one file."""

    def __init__(self, stream, pointer, limit, members):
        self.stream = stream
        self._pointer = pointer
        self._limit = limit
        self._members = members
        self._state = "start"
        self._repeated = None
        # The text in which nothing is nested too deeply.
        self._shallow = None
        self._scan = json.JSONDecoder(
            strict=False, object_pairs_hook=self._object, parse_constant=_refuse_constant
        ).scan_once
        self._plain_scan = json.JSONDecoder(strict=False, parse_constant=_refuse_constant).scan_once

    def next(self):
        if self._state == "start":
            problem = self._find_list()
            if problem is not None:
                return self._cut(problem)
        key = None
        while True:
            if self._state == "done":
                return Found("end")
            char = self.stream.peek()
            if not char and self._state == "array":
                return self._cut(_ENDS_EARLY)
            if not char and self._state != "members":
                return Found("end")
            if self._state == "array" and char in ",]":
                self.stream.position += 1
                if char == "]":
                    self._state = "done" if self._pointer else "behind"
                continue
            if self._state == "behind":
                # Several root arrays in sequence: files that were concatenated.
                if char != "[":
                    return self._cut(_MORE_BEHIND)
                self.stream.position += 1
                self._state = "array"
                continue
            if self._state == "members":
                key, problem = self._next_member()
                if problem is not None:
                    return self._cut(problem)
                if key is None:
                    self._state = "done"
                    continue
                char = self.stream.peek()
            if not char or char in ",:]}":
                return self._cut(_NO_VALUE)
            return self._element(key)

    def _element(self, key):
        stream = self.stream
        wanted = CHUNK
        while True:
            start = stream.position
            self._repeated = None
            try:
                if self._shallow is not stream.text and not self._is_shallow():
                    return self._unreadable(key, _TOO_DEEP)
                value, end = self._scan(stream.text, start)
            except RecursionError:
                return self._unreadable(key, _TOO_DEEP)
            except MemoryError:
                return self._unreadable(key, _TOO_MUCH)
            except (StopIteration, ValueError) as error:
                problem = f"it is not valid JSON: {_message(error, start)}"
                if not self._may_be_cut(error):
                    return self._unreadable(key, problem)
            else:
                problem = _NO_VALUE
                # A number at the end of the text may continue.
                if end < len(stream.text) or stream.ended or stream.text[start] in '{["':
                    if end - start > self._limit:
                        return self._unreadable(key, f"it is longer than {self._limit} characters")
                    return self._whole(key, value, start, end)
            if stream.length() > self._limit:
                return self._unreadable(key, f"it is longer than {self._limit} characters")
            try:
                if not stream.more(wanted):
                    return self._at_end(key, problem)
            except MemoryError:
                return self._unreadable(key, _TOO_MUCH)
            # Twice as much each time, because the whole element is parsed again.
            wanted = max(CHUNK, stream.length())

    def _is_shallow(self):
        """Whether the next element can be parsed. Usually this is found out for all of the text at once."""
        stream = self.stream
        if not is_deeper_than(_MAX_DEPTH, stream.text, stream.position):
            self._shallow = stream.text
            return True
        length = Scan(stream.text[stream.position]).end(stream.text, stream.position, True)
        end = None if length < 0 else stream.position + length
        return not is_deeper_than(_MAX_DEPTH, stream.text, stream.position, end)

    def _whole(self, key, value, start, end):
        stream = self.stream
        repeats, invalid = self._repeated, False
        if stream.has_invalid and _INVALID.search(stream.text, start, end):
            value, invalid = self._replace_invalid(stream.text[start:end]), True
        stream.position = end
        if self._state == "one":
            self._state = "done"
        elif self._state == "lines":
            problem = self._rest_of_line(end)
            if problem is not None:
                return Found("element", key=key, problem=problem, start=start, length=end - start)
        return Found("element", value, key, None, repeats, invalid, start, end - start)

    def _rest_of_line(self, end):
        """Takes the rest of the line; a problem if it is not empty."""
        stream = self.stream
        while (at := stream.text.find("\n", stream.position)) < 0 and stream.more():
            pass
        at = len(stream.text) if at < 0 else at
        rest = stream.text[stream.position:at]
        stream.position = at
        return "it is not valid JSON: something follows the value" if rest.strip() else None

    def _replace_invalid(self, text):
        replaced = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        return self._plain_scan(replaced, 0)[0]

    def _may_be_cut(self, error):
        """Whether the error may be due to the end of the text that was read so far."""
        stream = self.stream
        if isinstance(error, StopIteration):
            position = error.value if isinstance(error.value, int) else stream.position
        elif isinstance(error, json.JSONDecodeError):
            if error.msg.startswith("Unterminated string"):
                return True
            position = error.pos
        else:
            return False
        return position >= len(stream.text) - _MARGIN

    def _at_end(self, key, problem):
        """An element that cannot be parsed, at the end of the file: it is truncated or broken."""
        stream = self.stream
        start, length = stream.position, stream.length()
        broken = Scan(stream.text[start]).end(stream.text, start, False) >= 0
        if broken or (self._state == "lines" and _NEXT_RECORD.search(stream.text, start)):
            return self._unreadable(key, problem)
        if stream.limited:
            self._state = "done"
            return Found("head", key=key, start=start, length=length)
        return self._cut(_ENDS_INSIDE)

    def _unreadable(self, key, problem):
        """Takes an element that cannot be parsed."""
        stream = self.stream
        start = stream.position
        # What follows is not where the brackets were counted.
        self._shallow = None
        if self._state == "lines":
            while (match := _NEXT_RECORD.search(stream.text, stream.position)) is None and stream.more():
                pass
            stream.position = len(stream.text) if match is None else match.start()
        else:
            offset = stream.offset()
            if not self._skip():
                self._state = "done"
                return Found("cut", value=offset, problem=_ENDS_INSIDE)
            if self._state == "one":
                self._state = "done"
        return Found("element", key=key, problem=problem, start=start)

    def _skip(self):
        """Takes the next value without buffering it; False if the file ends inside it."""
        stream = self.stream
        if stream.peek() == "":
            return False
        scan = Scan(stream.text[stream.position])
        while True:
            length = scan.end(stream.text, stream.position, stream.ended)
            if length >= 0:
                stream.position += length
                return True
            stream.position += scan.forget()
            if not stream.more():
                return False

    def _cut(self, problem):
        self._state = "done"
        return Found("cut", value=self.stream.offset(), problem=problem)

    def _find_list(self):
        """Goes to the list; returns a problem if the file is truncated before it."""
        stream = self.stream
        stream.more()
        if stream.text.startswith("\ufeff"):
            stream.position = 1
        tokens = self._pointer.split("/")[1:]
        for token in tokens:
            problem = self._descend(token.replace("~1", "/").replace("~0", "~"))
            if problem is not None:
                return problem
        char = stream.peek()
        if not char and tokens:
            return _ENDS_EARLY
        self._state = self._state_at(char, not tokens)
        if self._state in ("array", "members"):
            stream.position += 1
        return None

    def _state_at(self, char, at_root):
        if not char:
            return "done"
        if self._members:
            return "members" if char == "{" else "done"
        if char == "[":
            return "array"
        if at_root:
            return "lines" if char == "{" and self._is_json_lines() else "values"
        return "done" if char == "n" else "one"

    def _is_json_lines(self):
        """Whether the first line is a whole object and another object follows it."""
        stream = self.stream
        while (at := stream.text.find("\n", stream.position)) < 0:
            if stream.length() > self._limit or not stream.more():
                return False
        line = stream.text[stream.position:at].rstrip()
        if Scan("{").end(line, 0, True) != len(line):
            return False
        while not (behind := stream.text[stream.position + len(line):].lstrip()):
            if not stream.more():
                return False
        return behind[0] == "{"

    def _next_member(self):
        """Takes the name of the next member and the colon: `(key, problem)`, both None at the end of the object."""
        stream = self.stream
        while (char := stream.peek()) == ",":
            stream.position += 1
        if char == "}":
            stream.position += 1
            return None, None
        if char != '"':
            return None, _NO_VALUE if char else _ENDS_EARLY
        while True:
            try:
                key, stream.position = self._plain_scan(stream.text, stream.position)
                break
            except (StopIteration, ValueError):
                if stream.length() > self._limit or not stream.more():
                    return None, _ENDS_EARLY
        if stream.peek() != ":":
            return None, _NO_VALUE
        stream.position += 1
        return (key, None) if stream.peek() else (None, _ENDS_EARLY)

    def _descend(self, token):
        """Goes to the member `token` of the next object."""
        stream = self.stream
        char = stream.peek()
        if not char:
            return _ENDS_EARLY
        if char != "{":
            raise self._absent()
        stream.position += 1
        while True:
            key, problem = self._next_member()
            if problem is not None:
                return problem
            if key is None:
                raise self._absent()
            if key == token:
                return None
            if stream.peek() in ",:]}":
                return _NO_VALUE
            if not self._skip():
                return _ENDS_EARLY

    def _absent(self):
        return ImporterError.not_this_format(f'the file has no list at "{self._pointer}"')

    def _object(self, pairs):
        fields = dict(pairs)
        if len(fields) != len(pairs) and self._repeated is None:
            seen = set()
            self._repeated = next(key for key, _ in pairs if key in seen or seen.add(key))
        return fields


def _refuse_constant(name):
    raise ValueError(f"{name} is not JSON")


def _message(error, start):
    """The parser's message with the position inside the element."""
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg[:1].lower()}{error.msg[1:]} at character {error.pos - start}"
    return "expected a value" if isinstance(error, StopIteration) else str(error)
