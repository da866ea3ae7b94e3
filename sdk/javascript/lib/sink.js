// The sink: takes the records that an importer emits. Conversations go to the host one by one, all others in batches of
// JSON Lines. (In QuickJS, writing and encoding the JSON of a message takes five times as long as passing its record.)

import { decode, encode } from "./bytes.js";
import { ImportError } from "./error.js";
import { stringify } from "./json.js";
import { lowerConversation, lowerMessage } from "./lower.js";

/** Characters of lines that leave the sandbox in one call. */
const BATCH = 64 * 1024;
/** Longest line, in characters; the host accepts 64 MiB in one call. */
const MAX_LINE = 60 * 1024 * 1024;

/**
 * Takes the records that an importer emits. Records are those of `satchel-pam`'s `record`, with its names (README.md has
 * the fields). A field that is undefined is absent. Every call may throw an ImportError of kind `cancelled` because the
 * host asks the run to stop; do not catch it.
 */
export class Sink {
  #target;
  #lines = [];
  #size = 0;

  /** @param target `conversation(record)`, `emitJson(bytes)`, `progress(done, total)`: each returns "proceed" or "stop". */
  constructor(target) {
    this.#target = target;
  }

  /** A sink that collects, for tests; `lines()` returns what was emitted. It stops after `limit` lines. */
  static collecting(limit = Infinity) {
    return new CollectingSink(limit);
  }

  /** Emits a conversation with all its messages. */
  conversation(record) {
    this.flush();
    proceed(this.#target.conversation(record));
  }

  /** Emits what the export says about memories. */
  evidence(records) {
    for (const evidence of records) this.#emit({ evidence });
  }

  /** Emits relations between memory items, which are named by their keys. */
  relations(records) {
    for (const relation of records) this.#emit({ relation });
  }

  /** Emits embeddings of memory items, which are named by their keys. */
  embeddings(records) {
    for (const embedding of records) this.#emit({ embedding });
  }

  /** Emits the account that the export belongs to; without email addresses and telephone numbers. */
  account(account) {
    this.#emit({ account });
  }

  /** Reports a record of the export that is not emitted, and the reason. `kind`: conversation, message, memory or file. */
  skip(kind, locator, reason) {
    this.#emit({ skip: { kind, locator, reason } });
  }

  /** Reports that something was imported differently from how the export has it. */
  warn(locator, message) {
    this.#emit({ warning: { locator, message } });
  }

  /** Reports the bytes read so far, and the total if it is known. JsonArray does this itself. */
  progress(done, total = null) {
    this.flush();
    proceed(this.#target.progress(done, total));
  }

  /** Sends the lines that wait. The end of `run` does this itself. */
  flush() {
    if (this.#lines.length === 0) return;
    const lines = this.#lines;
    this.#lines = [];
    this.#size = 0;
    proceed(this.#target.emitJson(encode(lines.length === 1 ? lines[0] : lines.join("\n"))));
  }

  #emit(line) {
    const text = stringify(line);
    if (text.length > MAX_LINE) throw ImportError.malformed(`its record is longer than ${MAX_LINE} bytes`);
    if (this.#size + text.length > BATCH) this.flush();
    this.#lines.push(text);
    this.#size += text.length;
    if (this.#size > BATCH) this.flush();
  }
}

class CollectingSink extends Sink {
  #lines = [];

  constructor(limit) {
    const verdict = () => (this.#lines.length < limit ? "proceed" : "stop");
    super({
      conversation: (record) => {
        // Finds fields of a wrong type.
        lowerConversation(record);
        record.messages.forEach(lowerMessage);
        this.#lines.push(JSON.parse(stringify({ conversation: record })));
        return verdict();
      },
      emitJson: (bytes) => {
        this.#lines.push(...decode(bytes).text.split("\n").map((line) => JSON.parse(line)));
        return verdict();
      },
      progress: () => "proceed",
    });
  }

  /** The lines that were emitted. */
  lines() {
    this.flush();
    return this.#lines;
  }
}

function proceed(verdict) {
  if (verdict === "stop") throw ImportError.cancelled();
}
