// Reads the fields of an object, and collects those that have no place in PAM, verbatim, for `raw_metadata`.

import { isDeeperThan } from "./json.js";
import { timeOfNumber, timeOfText } from "./time.js";

/** Deepest nesting in `raw_metadata`; a deeper value is kept as its JSON text. Satchel accepts 100 levels. */
const MAX_LEVELS = 90;

/**
 * The fields of one object. The typed methods take a known field: they return its value, treat null as absent, and leave a
 * value of any other type among the rest instead of failing. All return undefined for an absent field. `intoJson` returns
 * everything that was not taken.
 */
export class Leftover {
  #fields;
  #taken = [];
  #added = null;

  /** @param value A parsed value; anything but an object has no fields. */
  constructor(value) {
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    this.#fields = isObject ? value : {};
  }

  /** Takes a string. */
  text(key) {
    return this.#take(key, typeof this.#fields[key] === "string");
  }

  /** Takes a string that is not empty; an empty one counts as absent. For ids and the like. */
  nonemptyText(key) {
    return this.text(key) || undefined;
  }

  /** Takes a number; a BigInt if it is an integer beyond 2^53. */
  number(key) {
    const kind = typeof this.#fields[key];
    return this.#take(key, kind === "number" || kind === "bigint");
  }

  /** Takes a non-negative integer. */
  count(key) {
    const value = this.#fields[key];
    return this.#take(key, (Number.isSafeInteger(value) || typeof value === "bigint") && value >= 0);
  }

  /** Takes a boolean. */
  bool(key) {
    return this.#take(key, typeof this.#fields[key] === "boolean");
  }

  /** Takes an object. */
  object(key) {
    const value = this.#fields[key];
    return this.#take(key, typeof value === "object" && value !== null && !Array.isArray(value));
  }

  /** Takes an array. */
  array(key) {
    return this.#take(key, Array.isArray(this.#fields[key]));
  }

  /**
   * Takes a time, as microseconds since the Unix epoch: an RFC 3339 date-time; seconds, milliseconds or microseconds as a
   * number or a text; or the `{"$date": …}` of BSON. 0 is no time. A date-time without an offset is read as UTC and also
   * kept; any other value is kept.
   */
  time(key) {
    const value = this.#fields[key];
    const time = typeof value === "string" ? timeOfText(value) : { micros: timeOfValue(value), naive: false };
    if (time?.micros === undefined) return undefined;
    if (!time.naive) this.#taken.push(key);
    return time.micros;
  }

  /** Takes a value of any type. */
  value(key) {
    return this.#take(key, true);
  }

  /** Adds a derived value to the rest. */
  add(key, value) {
    this.#added ??= Object.create(null);
    this.#added[key] = value;
  }

  /** Everything that was not taken, except null and `{}`, or undefined if there is nothing: for `raw_metadata`. */
  intoJson() {
    const fields = this.#fields;
    const taken = this.#taken;
    let rest;
    for (const key in fields) {
      if (taken.includes(key)) continue;
      const value = typeof fields[key] === "object" ? kept(fields[key]) : fields[key];
      if (value === undefined) continue;
      // Without a prototype, so that a field `__proto__` is a field.
      rest ??= Object.create(null);
      rest[key] = value;
    }
    if (this.#added === null) return rest;
    return Object.assign(rest ?? Object.create(null), this.#added);
  }

  #take(key, fits) {
    if (!fits) return undefined;
    this.#taken.push(key);
    return this.#fields[key];
  }
}

/** An object or array as it is kept: undefined for null and `{}`, text if it is nested too deeply. */
function kept(value) {
  if (value === null) return undefined;
  if (!Array.isArray(value) && !hasMembers(value)) return undefined;
  return isDeeperThan(value, MAX_LEVELS) ? JSON.stringify(value) : value;
}

function hasMembers(object) {
  for (const _ in object) return true;
  return false;
}

function timeOfValue(value) {
  if (typeof value === "number" || typeof value === "bigint") return timeOfNumber(Number(value));
  const date = value?.$date;
  if (typeof date === "string") return timeOfText(date)?.micros;
  // Numbers in BSON are milliseconds.
  const millis = typeof date === "number" ? date : Number(date?.$numberLong);
  return Number.isFinite(millis) ? timeOfNumber(millis / 1e3, 1) : undefined;
}
