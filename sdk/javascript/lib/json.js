// Parses and writes JSON without loss: integers beyond 2^53 are BigInts, and control characters in strings are accepted.

import { ImportError } from "./error.js";

/** Deepest nesting that is parsed; the interpreter's stack is small. */
export const MAX_DEPTH = 500;

// Makes JSON.stringify write a BigInt as a number with all its digits.
BigInt.prototype.toJSON ??= function toJSON() {
  return JSON.rawJSON ? JSON.rawJSON(this.toString()) : this.toString();
};

/**
 * The value of `text`. With `bigNumbers`, integers that a double does not hold exactly become BigInts, and numbers out of
 * the range of a double become strings. (Before Node.js 21 they are rounded.)
 */
export function parse(text, bigNumbers) {
  return bigNumbers ? JSON.parse(text, exactly) : JSON.parse(text);
}

/** Like `parse`, for one element: throws an ImportError, and accepts raw control characters in strings. */
export function parseElement(text, bigNumbers) {
  try {
    return parse(text, bigNumbers);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  try {
    return parse(text.replace(/"(?:[^"\\]|\\[^])*"/g, escapeControls), bigNumbers);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw ImportError.malformed(`it is not valid JSON: ${error.message}`);
  }
}

/** The JSON text of a record, on one line and without lone surrogates, which other parsers refuse. */
export function stringify(value) {
  const text = JSON.stringify(value);
  // A well-formed JSON.stringify escapes exactly the lone surrogates.
  return text.includes("\\ud") ? text.replace(/(\\\\)|\\ud[89a-f][0-9a-f]{2}/g, (_, pair) => pair ?? "\ufffd") : text;
}

/** Whether a parsed value has more than `limit` levels. */
export function isDeeperThan(value, limit) {
  if (typeof value !== "object" || value === null) return false;
  if (limit <= 0) return true;
  if (Array.isArray(value)) return value.some((item) => isDeeperThan(item, limit - 1));
  for (const key in value) if (isDeeperThan(value[key], limit - 1)) return true;
  return false;
}

function exactly(_key, value, context) {
  if (typeof value !== "number" || Number.isSafeInteger(value)) return value;
  const source = context?.source;
  if (source === undefined) return value;
  if (!Number.isFinite(value)) return source;
  return /^-?\d+$/.test(source) ? BigInt(source) : value;
}

function escapeControls(string) {
  return string.replace(/[\u0000-\u001f]/g, (control) => `\\u${control.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
