// Finds where a JSON value ends. It counts brackets and does not match them: the parser finds errors inside the value.

const QUOTE = 0x22, BACKSLASH = 0x5c, ZERO = 0x30, NINE = 0x39;
/** White space, comma, colon, closing brackets. */
const ENDS_LITERAL = [0x20, 0x0a, 0x0d, 0x09, 0x2c, 0x3a, 0x5d, 0x7d];
/** Shortest integer that may be above 2^53. */
const MANY_DIGITS = 16;

/** A scan of one value that can be continued when more bytes have been read. */
export class Scan {
  /** @param first The first byte of the value. */
  constructor(first) {
    this.kind = first === QUOTE ? "string" : isOpener(first) ? "container" : "literal";
    this.reset();
  }

  reset() {
    /** Bytes of the value that were scanned. */
    this.at = this.kind === "string" ? 1 : 0;
    this.depth = 0;
    this.inString = this.kind === "string";
    /** 1 if the bytes before `at` end in an odd number of backslashes inside a string. */
    this.odd = 0;
    /** Deepest nesting so far. */
    this.deepest = 0;
    /** Whether there may be a number that a double does not hold exactly. */
    this.bigNumbers = false;
  }

  /**
   * The length of the value that begins at `start` of `bytes`, or -1 if it does not end there. `last` says that no more
   * bytes come.
   */
  end(bytes, start, last) {
    if (this.kind === "literal") return this.#endOfLiteral(bytes, start, last);
    if (this.inString) {
      if (!this.#leaveString(bytes, start)) return -1;
      if (this.kind === "string") return this.at;
    }
    return this.#endOfContainer(bytes, start);
  }

  /** How many bytes were scanned; the caller drops them and leaves them out of the next call. */
  forget() {
    const scanned = this.at;
    this.at = 0;
    return scanned;
  }

  #endOfContainer(bytes, start) {
    const length = bytes.length;
    let depth = this.depth;
    for (let i = start + this.at; i < length; i++) {
      const byte = bytes[i];
      if (byte === QUOTE) {
        const close = bytes.indexOf(QUOTE, i + 1);
        if (close > 0 && bytes[close - 1] !== BACKSLASH) {
          i = close;
          continue;
        }
        this.at = i + 1 - start;
        this.inString = true;
        this.odd = 0;
        if (!this.#leaveString(bytes, start)) {
          this.depth = depth;
          return -1;
        }
        i = start + this.at - 1;
      } else if (byte > 0x5a) {
        if (byte === 0x7b || byte === 0x5b) {
          if (++depth > this.deepest) this.deepest = depth;
        } else if ((byte === 0x7d || byte === 0x5d) && --depth <= 0) {
          this.at = i + 1 - start;
          return this.at;
        } else if (byte === 0x65 && bytes[i - 1] <= NINE) {
          this.bigNumbers = true;
        }
      } else if (byte >= ZERO && byte <= NINE) {
        const from = i;
        while (bytes[i + 1] >= ZERO && bytes[i + 1] <= NINE) i++;
        // A number that continues behind these bytes may have more digits.
        if (i + 1 - from >= MANY_DIGITS || i + 1 === length) this.bigNumbers = true;
      } else if (byte === 0x45) {
        this.bigNumbers = true;
      }
    }
    this.depth = depth;
    this.at = length - start;
    return -1;
  }

  /** Goes behind the quote that ends the string; false if it is not among these bytes. */
  #leaveString(bytes, start) {
    const base = start + this.at;
    for (let from = base; ; ) {
      const close = bytes.indexOf(QUOTE, from);
      const end = close < 0 ? bytes.length : close;
      let run = end;
      while (run > base && bytes[run - 1] === BACKSLASH) run--;
      const odd = ((end - run) & 1) ^ (run === base ? this.odd : 0);
      if (close < 0) {
        this.at = end - start;
        this.odd = odd;
        return false;
      }
      if (odd === 0) {
        this.at = close + 1 - start;
        this.inString = false;
        return true;
      }
      from = close + 1;
    }
  }

  #endOfLiteral(bytes, start, last) {
    for (let i = start + this.at; i < bytes.length; i++) {
      const byte = bytes[i];
      if (ENDS_LITERAL.includes(byte)) return this.#literal(i - start);
    }
    this.at = bytes.length - start;
    return last ? this.#literal(this.at) : -1;
  }

  #literal(length) {
    this.bigNumbers = true;
    return length;
  }
}

function isOpener(byte) {
  return byte === 0x7b || byte === 0x5b;
}
