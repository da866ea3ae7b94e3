"""The errors of an importer."""

KINDS = ("not-this-format", "unsupported-version", "malformed", "limit", "io", "cancelled", "internal")


class ImporterError(Exception):
    """Why a run or a part of it failed, and where in the export.

    `kind` is one of the kinds of `error-kind` in importer.wit. `message` is lower-case, in the user's words, without the
    locator. `locator` is an element (`notes.json[17]`), an offset (`notes.json@1048576`) or a file name.
    """

    def __init__(self, kind, message, locator=None):
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.locator = locator

    @classmethod
    def malformed(cls, message):
        """The bytes cannot be parsed as the format. Raised for an element of `JsonArray.each`, it skips only that one."""
        return cls("malformed", message)

    @classmethod
    def not_this_format(cls, message):
        """The files are not in the format passed to `run`."""
        return cls("not-this-format", message)

    @classmethod
    def unsupported_version(cls, message):
        """The format is known, but its version is not."""
        return cls("unsupported-version", message)

    @classmethod
    def internal(cls, message):
        """The importer reached a state that should be impossible."""
        return cls("internal", message)

    @classmethod
    def cancelled(cls):
        """The host asked to stop."""
        return cls("cancelled", "stopped by the host")

    @classmethod
    def of(cls, error):
        """Whatever was raised, as an ImporterError: the host's own errors keep their kind, any other is internal."""
        if isinstance(error, cls):
            return error
        given = getattr(error, "value", None)
        kind = getattr(getattr(given, "kind", None), "name", "").lower().replace("_", "-")
        if kind in KINDS:
            return cls(kind, given.message, given.locator)
        if isinstance(error, MemoryError):
            return cls("limit", "out of memory; `memory-mib` in satchel-plugin.toml sets the limit")
        return cls.internal(f"uncaught {type(error).__name__}: {error}{_place(error)}")

    def at(self, locator):
        """Sets the locator unless there is one already."""
        if self.locator is None:
            self.locator = locator
        return self


def places(error):
    """The places in the code that the error passed, the innermost last.

    The module `traceback` cannot be used: it looks for the text of the lines, and any access to files aborts the component.
    """
    found, frame = [], error.__traceback__
    while frame is not None:
        code = frame.tb_frame.f_code
        found.append(f"{code.co_filename}:{frame.tb_lineno} in {code.co_name}")
        frame = frame.tb_next
    return found


def _place(error):
    found = places(error)
    return f" ({found[-1]})" if found else ""
