// The errors of an importer.

const KINDS = [
  "not-this-format", "unsupported-version", "malformed", "limit", "io", "cancelled", "internal",
];

/** Why a run or a part of it failed, and where in the export. */
export class ImportError extends Error {
  /**
   * @param {string} kind One of the kinds of `error-kind` in importer.wit.
   * @param {string} message Lower-case, in the user's words, without the locator.
   * @param {string} [locator] An element (`notes.json[17]`), an offset (`notes.json@1048576`) or a file name.
   */
  constructor(kind, message, locator = null) {
    super(message);
    this.name = "ImportError";
    this.kind = kind;
    this.locator = locator;
  }

  /** The bytes cannot be parsed as the format. Thrown for an element of `JsonArray.each`, it skips only that element. */
  static malformed(message) {
    return new ImportError("malformed", message);
  }

  /** The files are not in the format passed to `run`. */
  static notThisFormat(message) {
    return new ImportError("not-this-format", message);
  }

  /** The format is known, but its version is not. */
  static unsupportedVersion(message) {
    return new ImportError("unsupported-version", message);
  }

  /** The importer reached a state that should be impossible. */
  static internal(message) {
    return new ImportError("internal", message);
  }

  /** The host asked to stop. */
  static cancelled() {
    return new ImportError("cancelled", "stopped by the host");
  }

  /** Whatever was thrown, as an ImportError: the host's own errors keep their kind, any other error is internal. */
  static of(thrown) {
    if (thrown instanceof ImportError) return thrown;
    const given = thrown?.payload ?? thrown;
    if (KINDS.includes(given?.kind)) {
      return new ImportError(given.kind, given.message ?? "", given.locator ?? null);
    }
    if (isOutOfMemory(thrown)) {
      return new ImportError("limit", "out of memory; `memory-mib` in satchel-plugin.toml sets the limit");
    }
    return ImportError.internal(`uncaught ${describe(thrown)}`);
  }

  /** Sets the locator unless there is one already. */
  at(locator) {
    this.locator ??= locator;
    return this;
  }
}

/** Whether one element is too much for the interpreter: too deep for its stack or too large for its memory. */
export function exceedsInterpreter(thrown) {
  return isOutOfMemory(thrown) || isStackOverflow(thrown);
}

export function isStackOverflow(thrown) {
  // QuickJS: "Maximum call stack size exceeded" (RangeError) or "stack overflow" (InternalError).
  return thrown instanceof Error && /call stack|stack overflow/i.test(thrown.message);
}

function isOutOfMemory(thrown) {
  // QuickJS throws null if it has no memory left even for the error.
  return thrown === null || (thrown instanceof Error && /^out of memory/i.test(thrown.message));
}

/** The error with the place in the code where it was thrown. */
function describe(thrown) {
  if (!(thrown instanceof Error)) return `value ${String(thrown)}`;
  const place = (thrown.stack ?? "").split("\n").map((line) => line.trim()).find((line) => line.startsWith("at "));
  return `${thrown.name}: ${thrown.message}${place ? ` (${place})` : ""}`;
}
