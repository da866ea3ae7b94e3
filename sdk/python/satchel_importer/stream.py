"""A buffered window of text over a file of UTF-8."""

import codecs

from .bundle import CHUNK


class Stream:
    """The text that was read and not taken. Invalid bytes are U+DC80 to U+DCFF in it, which no valid text contains."""

    def __init__(self, reader, budget=None):
        self._reader = reader
        self._budget = budget
        self.limited = budget is not None
        """Whether only the start of the file is read."""
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self.text = ""
        self.position = 0
        """Index in `text` of the first character that was not taken."""
        self._base = 0
        self._read = []
        self.ended = False
        """Whether nothing more can be read."""
        self.has_invalid = False
        """Whether any invalid bytes were read."""

    def offset(self):
        """Offset in bytes in the file of the first character that was not taken."""
        return self._base + _byte_length(self.text[:self.position])

    def length(self):
        """Number of characters that were read and not taken."""
        return len(self.text) - self.position

    def more(self, wanted=CHUNK):
        """Reads about `wanted` bytes more; False at the end of the file. Drops the text that was taken."""
        if self.ended and not self._read:
            return False
        # If there is no memory for all of it, these parts wait for a call after the text in front of them was taken.
        size = sum(map(len, self._read))
        while size < wanted and not self.ended:
            chunk = self._next_chunk()
            self.ended = not chunk
            self._read.append(self._decode(chunk))
            size += len(chunk)
        base = self.offset()
        self.text = "".join([self.text[self.position:], *self._read])
        self._base, self.position, self._read = base, 0, []
        return size > 0

    def peek(self):
        """Takes white space and returns the first character behind it, or an empty string at the end."""
        while True:
            while self.position < len(self.text):
                char = self.text[self.position]
                if char not in " \n\r\t":
                    return char
                self.position += 1
            if not self.more():
                return ""

    def _next_chunk(self):
        length = CHUNK if self._budget is None else min(CHUNK, self._budget)
        chunk = self._reader.read(length) if length > 0 else b""
        if self._budget is not None:
            self._budget -= len(chunk)
        return chunk

    def _decode(self, chunk):
        text = self._decoder.decode(chunk, final=not chunk)
        if not self.has_invalid and not text.isascii():
            try:
                text.encode()
            except UnicodeEncodeError:
                self.has_invalid = True
        return text


def _byte_length(text):
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogateescape"))
