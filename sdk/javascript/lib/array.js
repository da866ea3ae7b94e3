// Streams the elements of a JSON array, of JSON Lines, or a single object, with one batch of elements in memory at a time.

import { decode } from "./bytes.js";
import { exceedsInterpreter, ImportError, isStackOverflow } from "./error.js";
import { MAX_DEPTH, parse, parseElement } from "./json.js";
import { Walk } from "./walk.js";

/** The longest element that is parsed, in bytes; a longer one is reported as a skip. */
export const ELEMENT_LIMIT = 16 * 1024 * 1024;
/** Bytes of elements that are parsed by one call of JSON.parse. */
const BATCH = 64 * 1024;
/** Bytes between two reports of progress. */
const PROGRESS_STEP = 1024 * 1024;

/** One element; valid during one call of your function. */
class Element {
  #walk;
  #found;
  #path;

  constructor(walk, found, path, index, value) {
    this.#walk = walk;
    this.#found = found;
    this.#path = path;
    /** The parsed value; undefined if it is not whole. */
    this.value = value;
    /** Its index in the list, from 0. */
    this.index = index;
  }

  /** Its offset in bytes from the start of the file. */
  get offset() {
    return this.#found.offset;
  }

  /** The name of the member, if the elements are the members of an object. */
  get key() {
    return this.#found.key;
  }

  /** Whether it is whole; the last element of `sample` may be truncated. */
  get whole() {
    return this.#found.found === "element";
  }

  /** Its JSON text. */
  get text() {
    return decode(this.#walk.bytesOf(this.#found)).text;
  }

  /** Its place for receipts: `notes.json[17]`, or `notes.json.its-name` for a member. */
  get locator() {
    return locator(this.#path, this.#found.key, this.index);
  }

  /** Whether it is an object with all these keys. Of a truncated element, whether they are anywhere in its text. */
  hasKeys(...keys) {
    if (!this.whole) {
      const { text } = this;
      return keys.every((key) => text.includes(JSON.stringify(key)));
    }
    const { value } = this;
    return typeof value === "object" && value !== null && keys.every((key) => Object.hasOwn(value, key));
  }
}

/**
 * A list of JSON values in a file. The root of the file may be an array (or several in sequence), an object with the array
 * at `pointer`, a single value (one element), or JSON Lines (one element for each).
 */
export class JsonArray {
  #path;
  #options = { pointer: "", limit: ELEMENT_LIMIT, members: false };
  #kind = "conversation";

  /** The elements of the root of the file `path`. */
  constructor(path) {
    this.#path = path;
  }

  /** The array is at this RFC 6901 pointer, which has object members only: `/conversations`. */
  pointer(pointer) {
    this.#options.pointer = pointer;
    return this;
  }

  /** The elements are the members of an object, such as `{"<id>": {…}, …}`. Any other value has no elements. */
  members() {
    this.#options.members = true;
    return this;
  }

  /** The kind of record that a skipped element counts as: conversation (the default), message, memory or file. */
  kind(kind) {
    this.#kind = kind;
    return this;
  }

  /** The longest element that is parsed, in bytes. */
  limit(limit) {
    this.#options.limit = limit;
    return this;
  }

  /**
   * Calls `each(element, sink)` for every element.
   *
   * If it throws an ImportError of kind `malformed`, that element is reported as skipped and the walk continues; any other
   * error ends the run. So do all checks before you emit. A truncated file gives its whole elements and then a skip with
   * the offset. Invalid UTF-8 is read as U+FFFD, with a warning.
   *
   * Returns `{ elements, cut }`: the number of elements with those that were skipped, and the offset at which the file is
   * truncated or stops being JSON, or null.
   */
  each(bundle, sink, each) {
    const reader = bundle.open(this.#path);
    const total = reader.size();
    const walk = new Walk(reader, this.#options);
    const outcome = { elements: 0, cut: null };
    let reported = 0;
    try {
      for (let last = null; last?.found !== "end"; ) {
        last = this.#batch(walk, outcome, sink, each);
        this.#report(last, outcome, sink);
        if (walk.stream.offset >= reported + PROGRESS_STEP) {
          reported = walk.stream.offset;
          sink.progress(reported, total);
        }
      }
    } catch (thrown) {
      throw ImportError.of(thrown).at(this.#path);
    } finally {
      reader.close();
    }
    sink.progress(total, total);
    return outcome;
  }

  /**
   * Calls `look(element)` with the elements among the first `bytes` bytes until it returns false; for `detect`. The last
   * element may be truncated, and one that is not valid JSON is passed over.
   */
  sample(bundle, bytes, look) {
    const reader = bundle.open(this.#path);
    const walk = new Walk(reader, { ...this.#options, limit: bytes, budget: bytes });
    try {
      for (let index = 0; ; index++) {
        const found = walk.next();
        if (found.found !== "element" && found.found !== "head") return;
        const value = found.found === "element" ? this.#lookedAt(walk, found) : undefined;
        if (value === null && found.length !== 4) continue;
        if (look(new Element(walk, found, this.#path, index, value)) === false) return;
      }
    } catch (thrown) {
      throw ImportError.of(thrown).at(this.#path);
    } finally {
      reader.close();
    }
  }

  /** The value of an element of a sample; null if it cannot be parsed. */
  #lookedAt(walk, found) {
    try {
      return this.#parsed(walk, found).value;
    } catch (thrown) {
      if (thrown instanceof ImportError) return null;
      throw thrown;
    }
  }

  /** Reads whole elements and calls `each` for them. Returns what was found behind them, or the last element. */
  #batch(walk, outcome, sink, each) {
    const items = [];
    let found;
    let size = 0;
    do {
      found = walk.next();
      if (found.found !== "element") break;
      // The bytes must not move away while the rest of the batch is read.
      if (items.length === 0) walk.stream.pinned = found.offset;
      items.push(found);
      size += found.length;
    } while (size < BATCH);
    const values = this.#parsedTogether(walk, items);
    for (let at = 0; at < items.length; at++) {
      this.#one(walk, items[at], values?.[at], values !== null, outcome, sink, each);
      if (values !== null) values[at] = undefined;
    }
    walk.stream.pinned = Infinity;
    return found;
  }

  /** The values of several elements, parsed at once; null if each must be parsed by itself. */
  #parsedTogether(walk, items) {
    if (items.length < 2 || items.some((item) => !item.listed || item.deepest > MAX_DEPTH)) return null;
    const [first, last] = [items[0], items[items.length - 1]];
    const length = last.offset + last.length - first.offset;
    if (length > 4 * BATCH) return null;
    const { text, valid } = decode(walk.bytesOf({ offset: first.offset, length }));
    if (!valid) return null;
    try {
      const values = parse(`[${text}]`, items.some((item) => item.bigNumbers));
      return values.length === items.length ? values : null;
    } catch (thrown) {
      if (thrown instanceof SyntaxError || exceedsInterpreter(thrown)) return null;
      throw thrown;
    }
  }

  /** The value of one element, and whether it is valid UTF-8. */
  #parsed(walk, found) {
    if (found.deepest > MAX_DEPTH) throw ImportError.malformed(`it is nested deeper than ${MAX_DEPTH} levels`);
    const { text, valid } = decode(walk.bytesOf(found));
    return { value: parseElement(text, found.bigNumbers), valid };
  }

  #one(walk, found, value, isParsed, outcome, sink, each) {
    const index = outcome.elements++;
    try {
      if (!isParsed) {
        const parsed = this.#parsed(walk, found);
        value = parsed.value;
        if (!parsed.valid) sink.warn(locator(this.#path, found.key, index), "invalid UTF-8 was replaced by U+FFFD");
      }
      each(new Element(walk, found, this.#path, index, value), sink);
    } catch (thrown) {
      const place = locator(this.#path, found.key, index);
      if (exceedsInterpreter(thrown)) {
        sink.skip(this.#kind, place, isStackOverflow(thrown) ? "it is nested too deeply" : "it needs too much memory");
        return;
      }
      const error = ImportError.of(thrown);
      if (error.kind !== "malformed") throw error.at(place);
      sink.skip(this.#kind, error.locator ?? place, error.message);
    }
  }

  /** Reports what is not an element. */
  #report(last, outcome, sink) {
    if (last.found === "too-long") {
      const place = locator(this.#path, last.key, outcome.elements++);
      sink.skip(this.#kind, place, `it is longer than ${this.#options.limit} bytes`);
    } else if (last.found === "cut") {
      sink.skip(this.#kind, `${this.#path}@${last.offset}`, last.problem);
      outcome.cut = last.offset;
    }
  }
}

/** The place of an element: by its name if it is a member of an object, otherwise by its index. */
function locator(path, key, index) {
  return key === null ? `${path}[${index}]` : `${path}.${key}`;
}
