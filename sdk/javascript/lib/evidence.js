// Keys and evidence for records to which the provider gives no ids.

import { encode } from "./bytes.js";
import { sha256 } from "./sha256.js";

/**
 * A key for a record without an id, in a form that no provider's id has. `parts` must be the same in every export of the
 * record: for example its account, its first time, its title and its first words. A part that is null or undefined is the
 * same as an empty one. Importers in all languages give the same key.
 */
export function naturalKey(parts) {
  return `natural:${sha256(encode(parts.map(withLength).join("")))}`;
}

/**
 * Evidence of the complete list `items` that the provider had at `at` (microseconds since the Unix epoch, or undefined).
 * Its id is made of the contents and the time, so a list that returns to an earlier state is new evidence.
 */
export function snapshot(series, items, at, locator) {
  const text = (at ?? "") + items.map((item) => `\n${withLength(item.content)}`).join("");
  const id = `${series}#${sha256(encode(text)).slice(0, 16)}`;
  return { id, claim: { snapshot: { series, items } }, at, extraction_method: "api_export", locator };
}

/** A part with its length in bytes in front, so that no other parts give the same text. */
function withLength(part) {
  const text = part ?? "";
  return `${encode(text).length}:${text}`;
}
