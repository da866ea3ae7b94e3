// A buffered window over a file.

import { CHUNK } from "./bundle.js";

/** The bytes that were read and not taken yet. */
export class Stream {
  #reader;
  #buffer = new Uint8Array(4 * CHUNK);
  #budget;

  /** @param budget Bytes that may be read. */
  constructor(reader, budget = Infinity) {
    this.#reader = reader;
    this.#budget = budget;
    /** The bytes from the start of the buffer to the last byte that was read. */
    this.bytes = this.#buffer.subarray(0, 0);
    /** The first byte of `bytes` that was not taken. */
    this.start = 0;
    /** Offset in the file of `bytes[0]`. */
    this.base = 0;
    /** Bytes from this offset in the file on are kept although they were taken. */
    this.pinned = Infinity;
    /** Whether nothing more can be read. */
    this.ended = false;
  }

  /** Number of bytes that were read and not taken. */
  get length() {
    return this.bytes.length - this.start;
  }

  /** Offset in the file of the first byte that was not taken. */
  get offset() {
    return this.base + this.start;
  }

  take(count) {
    this.start = Math.min(this.bytes.length, this.start + count);
  }

  /** Reads more; false at the end of the file or if the budget is used up. Moves the bytes that were not taken. */
  more() {
    if (this.ended) return false;
    const chunk = this.#budget > 0 ? this.#reader.read(Math.min(CHUNK, this.#budget)) : new Uint8Array(0);
    this.#budget -= chunk.length;
    this.ended = chunk.length === 0;
    if (this.ended) return false;
    const from = Math.min(this.start, this.pinned - this.base);
    const kept = this.bytes.length - from;
    if (from > 0 || kept + chunk.length > this.#buffer.length) this.#compact(from, kept, kept + chunk.length);
    this.#buffer.set(chunk, kept);
    this.bytes = this.#buffer.subarray(0, kept + chunk.length);
    return true;
  }

  /** The first byte that was not taken; reads more if necessary. -1 at the end. */
  first() {
    while (this.length === 0 && this.more());
    return this.length === 0 ? -1 : this.bytes[this.start];
  }

  /** Takes white space and returns the first byte behind it. */
  peek() {
    for (;;) {
      while (this.start < this.bytes.length) {
        const byte = this.bytes[this.start];
        if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return byte;
        this.start++;
      }
      if (!this.more()) return -1;
    }
  }

  /** Moves `kept` bytes behind `from` to the front, into a larger buffer if `needed` bytes do not fit. */
  #compact(from, kept, needed) {
    const rest = this.#buffer.subarray(from, from + kept);
    const { length } = this.#buffer;
    if (needed > length) {
      // Half as much again, not double: the copy and the original are in memory together.
      this.#buffer = new Uint8Array(Math.max(needed, Math.ceil(length * 1.5)));
      this.#buffer.set(rest);
    } else if (length > 8 * CHUNK && needed < 4 * CHUNK) {
      // Gives the memory of a large element back.
      this.#buffer = new Uint8Array(4 * CHUNK);
      this.#buffer.set(rest);
    } else {
      this.#buffer.copyWithin(0, from, from + kept);
    }
    this.base += from;
    this.start -= from;
  }
}
