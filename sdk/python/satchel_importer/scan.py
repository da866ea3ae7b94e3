"""Finds where a JSON value ends, without parsing it: for values that cannot be parsed. It counts brackets only."""

import itertools
import re

_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)', re.DOTALL)
_NO_BRACKETS = bytes(set(range(256)) - set(b"{}[]"))
_STEPS = {ord("{"): 1, ord("["): 1, ord("}"): -1, ord("]"): -1}
_OUTSIDE = re.compile(r'["{}\[\]]')
_AFTER_LITERAL = re.compile(r"[\s,:\]}]")


def is_deeper_than(limit, text, start, end=None):
    """Whether brackets in this text, which begins outside a string, are nested deeper than `limit` levels below its start.

    The parser needs native stack for each level, and the sandbox has little; too many would end the run.
    """
    text = text[start:end]
    if text.count("{") + text.count("[") <= limit:
        return False
    brackets = _STRING.sub("", text).encode("utf-8", "replace").translate(None, _NO_BRACKETS)
    depths = itertools.accumulate(map(_STEPS.__getitem__, brackets))
    # Negative depths are behind the end of the list; what follows may begin a new one.
    lowest = deepest = 0
    for depth in depths:
        if depth < lowest:
            lowest = depth
        elif depth - lowest > deepest:
            deepest = depth - lowest
    return deepest > limit


class Scan:
    """A scan of one value that can be continued when more text has been read."""

    def __init__(self, first):
        self._kind = "string" if first == '"' else "container" if first in "{[" else "literal"
        self._at = 1 if self._kind == "string" else 0
        self._depth = 0
        self._in_string = self._kind == "string"
        # Whether the text before `_at` ends in an odd number of backslashes inside a string.
        self._odd = False

    def end(self, text, start, last):
        """The length of the value that begins at `start`, or -1 if it does not end there; `last`: no more text comes."""
        if self._kind == "literal":
            return self._end_of_literal(text, start, last)
        while True:
            if self._in_string:
                if not self._leave_string(text, start):
                    return -1
                if self._kind == "string":
                    return self._at
            match = _OUTSIDE.search(text, start + self._at)
            if match is None:
                self._at = len(text) - start
                return -1
            self._at = match.end() - start
            char = match[0]
            if char == '"':
                self._in_string, self._odd = True, False
            elif char in "{[":
                self._depth += 1
            else:
                self._depth -= 1
                if self._depth <= 0:
                    return self._at

    def forget(self):
        """How much was scanned; the caller drops it and leaves it out of the next call."""
        scanned, self._at = self._at, 0
        return scanned

    def _leave_string(self, text, start):
        """Goes behind the quote that ends the string; False if it is not in this text."""
        base = position = start + self._at
        while True:
            close = text.find('"', position)
            end = len(text) if close < 0 else close
            run = end
            while run > base and text[run - 1] == "\\":
                run -= 1
            odd = (end - run) % 2 == 1
            if run == base:
                odd ^= self._odd
            if close < 0:
                self._at, self._odd = end - start, odd
                return False
            if not odd:
                self._at, self._in_string = close + 1 - start, False
                return True
            position = close + 1

    def _end_of_literal(self, text, start, last):
        match = _AFTER_LITERAL.search(text, start + self._at)
        if match is not None:
            return match.start() - start
        self._at = len(text) - start
        return self._at if last else -1
