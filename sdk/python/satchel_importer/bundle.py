"""The files of an export, read only."""

from typing import NamedTuple

from .errors import ImporterError

CHUNK = 128 * 1024
"""Bytes to request from the host at once; 64 to 256 KiB measured best."""


class Entry(NamedTuple):
    """One file of the export. The path is a name inside the export; the size is in bytes, as the container states it."""

    path: str
    size: int


class Bundle:
    """The files of an export: all of them in `detect`, those that were claimed in `run`."""

    def __init__(self, backend):
        """`backend.list()` gives entries, `backend.open(path)` a reader with `size()`, `read(length)` and `seek(offset)`."""
        self._backend = backend
        self._entries = sorted(backend.list())
        self.bytes_read = 0

    @classmethod
    def from_files(cls, files):
        """A bundle of these files, for tests: `{"notes.json": "[…]"}`, each a text or bytes."""
        return cls(_MemoryFiles(files))

    def entries(self):
        """The files, ordered by path."""
        return self._entries

    def entry(self, path):
        """The file at `path`, or None."""
        return next((entry for entry in self._entries if entry.path == path), None)

    def open(self, path):
        """Opens a file for streaming. Use it in a `with` statement."""
        try:
            return Reader(self._backend.open(path), self)
        except Exception as error:
            raise ImporterError.of(error).at(path) from error

    def read(self, path, limit):
        """Reads a small file whole. An ImporterError of kind `limit` if it has more than `limit` bytes."""
        chunks, size = [], 0
        with self.open(path) as reader:
            while chunk := reader.read(CHUNK):
                size += len(chunk)
                if size > limit:
                    raise ImporterError("limit", f"the file is larger than {limit} bytes", path)
                chunks.append(chunk)
        return b"".join(chunks)

    def summary(self):
        """The summary that `run` returns."""
        return {"bytes": self.bytes_read}

    def only(self, paths):
        """The same files without those that are not in `paths`, as the host gives them to `run`."""
        return Bundle(_SomeFiles(self, paths))


class Reader:
    """An open file."""

    def __init__(self, file, bundle):
        self._file = file
        self._bundle = bundle

    def __enter__(self):
        return self

    def __exit__(self, *error):
        close = getattr(self._file, "__exit__", None)
        if close is not None:
            close(None, None, None)

    def size(self):
        """Size in bytes, as stated by the container."""
        return self._file.size()

    def read(self, length):
        """At most `length` bytes; empty at the end of the file."""
        try:
            chunk = self._file.read(length)
        except Exception as error:
            raise ImporterError.of(error) from error
        self._bundle.bytes_read += len(chunk)
        return chunk

    def seek(self, offset):
        """Moves to `offset`, in bytes from the start of the file."""
        try:
            self._file.seek(offset)
        except Exception as error:
            raise ImporterError.of(error) from error


class _SomeFiles:
    def __init__(self, bundle, paths):
        self._bundle = bundle
        self._paths = set(paths)

    def list(self):
        return [entry for entry in self._bundle.entries() if entry.path in self._paths]

    def open(self, path):
        return self._bundle._backend.open(path)


class _MemoryFiles:
    def __init__(self, files):
        self._files = {path: text.encode() if isinstance(text, str) else bytes(text) for path, text in files.items()}

    def list(self):
        return [Entry(path, len(content)) for path, content in self._files.items()]

    def open(self, path):
        if path not in self._files:
            raise ImporterError("io", f'this export has no file "{path}"')
        return _MemoryFile(self._files[path])


class _MemoryFile:
    def __init__(self, content):
        self._content = content
        self._at = 0

    def size(self):
        return len(self._content)

    def read(self, length):
        chunk = self._content[self._at:self._at + length]
        self._at += len(chunk)
        return chunk

    def seek(self, offset):
        self._at = offset
