// Goes from element to element: finds the list, then the end of each element.

import { decode } from "./bytes.js";
import { ImportError } from "./error.js";
import { Scan } from "./scan.js";
import { Stream } from "./stream.js";

const ENDS_INSIDE = "the file ends inside this record";
const ENDS_EARLY = "the file ends before its list does";
const MORE_BEHIND = "something that is no list stands behind the list; it cannot be read";
const NO_VALUE = "expected a value; the rest of the file cannot be read";

const OBJECT = 0x7b, OBJECT_END = 0x7d, ARRAY = 0x5b, ARRAY_END = 0x5d, QUOTE = 0x22, COMMA = 0x2c, COLON = 0x3a;
const LINE_BREAK = 0x0a, NULL = 0x6e;

/**
 * A walk over the elements of one file. `next` returns one of
 * `{ found: "element", offset, length, key, deepest, bigNumbers, listed }` (`listed`: it is an item of an array),
 * `{ found: "too-long", offset, key }`, `{ found: "head", offset, length, key }` (the truncated last element of a sample),
 * `{ found: "cut", offset, problem }` or `{ found: "end" }`. `bytesOf` gives the bytes of what the last call found.
 */
export class Walk {
  #pointer;
  #limit;
  #sampling;
  #members;
  #state = "start";
  #key = null;
  /** Length of the element that was returned last; the next call takes it from the stream. */
  #last = 0;

  constructor(reader, { pointer = "", limit, budget = Infinity, members = false }) {
    this.stream = new Stream(reader, budget);
    this.#pointer = pointer;
    this.#limit = limit;
    this.#sampling = budget !== Infinity;
    this.#members = members;
  }

  /** The bytes of an element; as long as the stream keeps them. */
  bytesOf({ offset, length }) {
    const start = offset - this.stream.base;
    return this.stream.bytes.subarray(start, start + length);
  }

  next() {
    const { stream } = this;
    stream.take(this.#last);
    this.#last = 0;
    if (this.#state === "start") {
      const problem = this.#findList();
      if (problem !== null) return this.#cut(problem);
    }
    for (;;) {
      if (this.#state === "done") return { found: "end" };
      const byte = stream.peek();
      if (byte < 0 && this.#state === "array") return this.#cut(ENDS_EARLY);
      if (byte < 0 && this.#state !== "members") return { found: "end" };
      switch (this.#state) {
        case "array":
          if (byte === ARRAY_END) {
            stream.take(1);
            this.#state = this.#pointer === "" ? "behind" : "done";
            continue;
          }
          if (byte === COMMA) {
            stream.take(1);
            continue;
          }
          break;
        case "behind":
          // Several root arrays in sequence: files that were concatenated.
          if (byte !== ARRAY) return this.#cut(MORE_BEHIND);
          stream.take(1);
          this.#state = "array";
          continue;
        case "members": {
          const { key, problem } = this.#nextMember();
          if (problem) return this.#cut(problem);
          if (key === undefined) {
            this.#state = "done";
            continue;
          }
          this.#key = key;
          break;
        }
        case "lines":
          return this.#line();
      }
      return isValue(stream.first()) ? this.#element() : this.#cut(NO_VALUE);
    }
  }

  #cut(problem) {
    this.#state = "done";
    return { found: "cut", offset: this.stream.offset, problem };
  }

  #element() {
    const { stream } = this;
    const scan = new Scan(stream.first());
    const offset = stream.offset;
    // A number or literal at the end of the file is whole only if nothing has to follow it.
    const openEnd = scan.kind !== "literal" || (this.#state !== "array" && this.#state !== "members");
    for (;;) {
      const length = scan.end(stream.bytes, stream.start, stream.ended && openEnd);
      if (length >= 0) {
        if (length > this.#limit) {
          stream.take(length);
          return this.#tooLong(offset);
        }
        return this.#whole(scan, length, offset);
      }
      if (!this.#sampling && stream.length > this.#limit) return this.#skipLong(scan, offset);
      if (!stream.more()) break;
    }
    if (this.#sampling) return this.#head(offset);
    this.#state = "done";
    return { found: "cut", offset, problem: ENDS_INSIDE };
  }

  #whole(scan, length, offset) {
    this.#last = length;
    const listed = this.#state === "array";
    if (this.#state === "one") this.#state = "done";
    const { deepest, bigNumbers } = scan;
    return { found: "element", offset, length, key: this.#key, deepest, bigNumbers, listed };
  }

  #head(offset) {
    this.#state = "done";
    return { found: "head", offset, length: this.stream.length, key: this.#key };
  }

  #tooLong(offset) {
    if (this.#state === "one") this.#state = "done";
    return { found: "too-long", offset, key: this.#key };
  }

  #skipLong(scan, offset) {
    if (this.#skip(scan)) return this.#tooLong(offset);
    this.#state = "done";
    return { found: "cut", offset, problem: ENDS_INSIDE };
  }

  /** Takes the first value without buffering it; false if the file ends inside it. */
  #skip(scan) {
    const { stream } = this;
    for (;;) {
      const length = scan.end(stream.bytes, stream.start, stream.ended);
      if (length >= 0) {
        stream.take(length);
        return true;
      }
      stream.take(scan.forget());
      if (stream.ended) return false;
      stream.more();
    }
  }

  /**
   * The next record of JSON Lines; a broken one does not affect the others. It ends at the first line break behind a whole
   * value, or else before the next line that begins an object.
   */
  #line() {
    const { stream } = this;
    const offset = stream.offset;
    const scan = new Scan(stream.first());
    for (let searched = 0; ; ) {
      let at = stream.bytes.indexOf(LINE_BREAK, stream.start + searched);
      if (at < 0 && !this.#sampling && stream.length > this.#limit) {
        this.#skipLine();
        return { found: "too-long", offset, key: null };
      }
      if (at < 0 && stream.more()) continue;
      const broken = at < 0;
      if (broken) at = stream.bytes.length;
      searched = at - stream.start;
      const whole = scan.end(stream.bytes.subarray(0, at), stream.start, true) >= 0;
      if (!whole && broken) {
        if (this.#sampling) return this.#head(offset);
        this.#state = "done";
        return { found: "cut", offset, problem: ENDS_INSIDE };
      }
      if (whole || this.#objectFollows(searched)) return this.#record(scan, searched, offset);
      searched++;
    }
  }

  #record(scan, length, offset) {
    if (length > this.#limit) {
      this.stream.take(length);
      return { found: "too-long", offset, key: null };
    }
    const found = this.#whole(scan, length, offset);
    // The scan counted nothing if the record is broken.
    return { ...found, bigNumbers: true, listed: false };
  }

  #skipLine() {
    const { stream } = this;
    for (;;) {
      const at = stream.bytes.indexOf(LINE_BREAK, stream.start);
      if (at >= 0) return stream.take(at - stream.start);
      stream.take(stream.length);
      if (!stream.more()) return undefined;
    }
  }

  /** Whether an object or the end of the file follows the first `searched` bytes and white space. */
  #objectFollows(searched) {
    const { stream } = this;
    for (let at = searched; ; at++) {
      while (stream.start + at >= stream.bytes.length) if (!stream.more()) return true;
      const byte = stream.bytes[stream.start + at];
      if (byte > 0x20) return byte === OBJECT;
    }
  }

  /** Goes to the list; returns a problem if the file is truncated before it, or else null. */
  #findList() {
    this.#skipByteOrderMark();
    const tokens = this.#pointer.split("/").slice(1);
    for (const token of tokens) {
      const problem = this.#descend(token.replaceAll("~1", "/").replaceAll("~0", "~"));
      if (problem !== null) return problem;
    }
    const byte = this.stream.peek();
    if (byte < 0 && tokens.length > 0) return ENDS_EARLY;
    this.#state = this.#stateAt(byte, tokens.length === 0);
    if (this.#state === "array" || this.#state === "members") this.stream.take(1);
    return null;
  }

  #stateAt(byte, atRoot) {
    if (byte < 0) return "done";
    if (this.#members) return byte === OBJECT ? "members" : "done";
    if (byte === ARRAY) return "array";
    if (atRoot) return byte === OBJECT && this.#isJsonLines() ? "lines" : "values";
    return byte === NULL ? "done" : "one";
  }

  #skipByteOrderMark() {
    const { stream } = this;
    while (stream.length < 3 && stream.more());
    const { bytes } = stream;
    if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) stream.take(3);
  }

  /** Whether the first line is a whole object and another object follows it. */
  #isJsonLines() {
    const { stream } = this;
    for (;;) {
      const at = stream.bytes.indexOf(LINE_BREAK, stream.start);
      if (at >= 0) {
        let end = at;
        while (end > stream.start && stream.bytes[end - 1] <= 0x20) end--;
        const length = new Scan(OBJECT).end(stream.bytes.subarray(0, end), stream.start, true);
        const behind = at - stream.start;
        return length === end - stream.start && this.#objectFollows(behind) && this.#nextNonSpace(behind) === OBJECT;
      }
      if (stream.length > this.#limit || !stream.more()) return false;
    }
  }

  #nextNonSpace(from) {
    const { stream } = this;
    for (let at = stream.start + from; at < stream.bytes.length; at++) {
      if (stream.bytes[at] > 0x20) return stream.bytes[at];
    }
    return -1;
  }

  /** Takes the name of the next member and the colon: `{ key }`, no key at the end of the object, or `{ problem }`. */
  #nextMember() {
    const { stream } = this;
    let byte = stream.peek();
    while (byte === COMMA) {
      stream.take(1);
      byte = stream.peek();
    }
    if (byte === OBJECT_END) {
      stream.take(1);
      return {};
    }
    if (byte !== QUOTE) return { problem: byte < 0 ? ENDS_EARLY : NO_VALUE };
    const scan = new Scan(QUOTE);
    let length = -1;
    while ((length = scan.end(stream.bytes, stream.start, stream.ended)) < 0) {
      if (stream.length > this.#limit || !stream.more()) return { problem: ENDS_EARLY };
    }
    const quoted = decode(stream.bytes.subarray(stream.start, stream.start + length)).text;
    stream.take(length);
    if (stream.peek() !== COLON) return { problem: NO_VALUE };
    stream.take(1);
    if (stream.peek() < 0) return { problem: ENDS_EARLY };
    try {
      return { key: JSON.parse(quoted) };
    } catch {
      return { key: quoted.slice(1, -1) };
    }
  }

  /** Goes to the member `token` of the next object. */
  #descend(token) {
    const { stream } = this;
    const byte = stream.peek();
    if (byte < 0) return ENDS_EARLY;
    const absent = () => ImportError.notThisFormat(`the file has no list at "${this.#pointer}"`);
    if (byte !== OBJECT) throw absent();
    stream.take(1);
    for (;;) {
      const { key, problem } = this.#nextMember();
      if (problem) return problem;
      if (key === token) return null;
      if (key === undefined) throw absent();
      if (!isValue(stream.first())) return NO_VALUE;
      if (!this.#skip(new Scan(stream.first()))) return ENDS_EARLY;
    }
  }
}

function isValue(byte) {
  return byte >= 0 && byte !== COMMA && byte !== COLON && byte !== ARRAY_END && byte !== OBJECT_END;
}
