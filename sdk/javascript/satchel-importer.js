// What an importer in JavaScript uses. See README.md beside this file.

export { JsonArray, ELEMENT_LIMIT } from "./lib/array.js";
export { Bundle } from "./lib/bundle.js";
export { ImportError } from "./lib/error.js";
export { naturalKey, snapshot } from "./lib/evidence.js";
export { Leftover } from "./lib/leftover.js";
export { Sink } from "./lib/sink.js";
export { timeOfDate, timeOfNumber, timeOfText } from "./lib/time.js";
