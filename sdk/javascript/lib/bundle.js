// The files of an export, read only.

import { encode } from "./bytes.js";
import { ImportError } from "./error.js";

/** Bytes to request from the host at once; 64 to 256 KiB measured best. */
export const CHUNK = 128 * 1024;

/** The files of an export: all of them in `detect`, those that were claimed in `run`. */
export class Bundle {
  #entries;
  #backend;
  #bytesRead = 0;

  /** @param backend `list()` gives `{ path, size }`, `open(path)` a reader with `size()`, `read(length)`, `seek(offset)`. */
  constructor(backend) {
    this.#backend = backend;
    this.#entries = backend.list().sort((a, b) => (a.path < b.path ? -1 : 1));
  }

  /** A bundle of these files, for tests: `{ "notes.json": "[…]" }`, each a text or a Uint8Array. */
  static fromFiles(files) {
    return new Bundle(new MemoryFiles(files));
  }

  /** The files, ordered by path: `{ path, size }`. Paths are names inside the export; the size is in bytes. */
  entries() {
    return this.#entries;
  }

  /** The file at `path`, or undefined. */
  entry(path) {
    return this.#entries.find((entry) => entry.path === path);
  }

  /** Opens a file for streaming. Call `close()` of the reader when you are done. */
  open(path) {
    try {
      return new Reader(this.#backend.open(path), (count) => { this.#bytesRead += count; });
    } catch (thrown) {
      throw ImportError.of(thrown).at(path);
    }
  }

  /** Reads a small file whole, as a Uint8Array. An ImportError of kind `limit` if it has more than `limit` bytes. */
  read(path, limit) {
    const reader = this.open(path);
    const chunks = [];
    let size = 0;
    for (let chunk = reader.read(CHUNK); chunk.length > 0; chunk = reader.read(CHUNK)) {
      size += chunk.length;
      if (size > limit) throw new ImportError("limit", `the file is larger than ${limit} bytes`, path);
      chunks.push(chunk);
    }
    reader.close();
    const whole = new Uint8Array(size);
    let at = 0;
    for (const chunk of chunks) {
      whole.set(chunk, at);
      at += chunk.length;
    }
    return whole;
  }

  /** The summary that `run` returns. */
  summary() {
    return { bytes: this.#bytesRead };
  }

  /** The same files without those that are not in `paths`, as the host gives them to `run`. */
  only(paths) {
    const list = () => this.#entries.filter((entry) => paths.includes(entry.path));
    return new Bundle({ list, open: (path) => this.#backend.open(path) });
  }
}

/** An open file. */
class Reader {
  #file;
  #count;

  constructor(file, count) {
    this.#file = file;
    this.#count = count;
  }

  /** Size in bytes, as stated by the container. */
  size() {
    return Number(this.#file.size());
  }

  /** At most `length` bytes; empty at the end of the file. */
  read(length) {
    try {
      const bytes = this.#file.read(length);
      this.#count(bytes.length);
      return bytes;
    } catch (thrown) {
      throw ImportError.of(thrown);
    }
  }

  /** Moves to `offset`, in bytes from the start of the file. */
  seek(offset) {
    try {
      this.#file.seek(offset);
    } catch (thrown) {
      throw ImportError.of(thrown);
    }
  }

  close() {
    this.#file[Symbol.dispose ?? "close"]?.();
  }
}

/** Files in memory. */
class MemoryFiles {
  constructor(files) {
    const bytes = (content) => (typeof content === "string" ? encode(content) : content);
    this.files = new Map(Object.entries(files).map(([path, content]) => [path, bytes(content)]));
  }

  list() {
    return [...this.files].map(([path, bytes]) => ({ path, size: bytes.length }));
  }

  open(path) {
    const bytes = this.files.get(path);
    if (bytes === undefined) throw new ImportError("io", `this export has no file "${path}"`);
    let at = 0;
    return {
      size: () => bytes.length,
      read: (length) => bytes.slice(at, (at += Math.min(length, Math.max(0, bytes.length - at)))),
      seek: (offset) => { at = offset; },
    };
  }
}
