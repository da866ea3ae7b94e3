// Connects an importer to the host. Only the sandbox has these modules, so the entry of the component alone imports this.

import * as files from "satchel:importer/files@1.0.0";
import * as log from "satchel:importer/log@1.0.0";
import * as sink from "satchel:importer/sink@1.0.0";
import { lowerConversation, lowerMessage } from "./lib/lower.js";
import { Bundle, ImportError, Sink } from "./satchel-importer.js";

/** Characters of messages that leave the sandbox in one call. The host accepts 64 MiB. */
const MAX_BATCH = 1024 * 1024;

/**
 * The value to export as `plugin`. `importer` has three functions:
 * - `describe()` returns `{ name, version, platform, importer_version, formats }`;
 * - `detect(bundle)` returns a list of `{ format, confidence, files, account }`, where `account` may be absent;
 * - `run(format, bundle, sink)` emits the records and returns `bundle.summary()`.
 */
export function exportImporter(importer) {
  return {
    describe() {
      const { importer_version: importerVersion, ...info } = importer.describe();
      return { ...info, importerVersion };
    },
    detect() {
      return guarded(() => importer.detect(new Bundle(hostFiles)).map((found) => ({ account: null, ...found })));
    },
    run(format) {
      return guarded(() => {
        const emitted = new Sink(hostSink);
        const summary = importer.run(format, new Bundle(hostFiles), emitted);
        emitted.flush();
        return { bytes: summary.bytes };
      });
    },
  };
}

const hostFiles = {
  list: () => files.listFiles(),
  open: (path) => files.Reader.open(path),
};

const hostSink = {
  conversation(record) {
    const { messages } = record;
    let next = batchEnd(messages, 0);
    let verdict = sink.emitConversation(lowerConversation(record), messages.slice(0, next).map(lowerMessage));
    while (next < messages.length && verdict === "proceed") {
      const start = next;
      next = batchEnd(messages, start);
      verdict = sink.moreMessages(messages.slice(start, next).map(lowerMessage));
    }
    return verdict;
  },
  emitJson: sink.emitJson,
  progress: sink.progress,
};

/** The end of the batch of messages that begins at `start`; at least one message if there are any. */
function batchEnd(messages, start) {
  let size = 0;
  for (let at = start; at < messages.length; at++) {
    size += sizeEstimate(messages[at]);
    if (size > MAX_BATCH && at > start) return at;
  }
  return messages.length;
}

/** About how many characters a message has. */
function sizeEstimate({ content, tool_calls: calls = [], attachments = [] }) {
  const parts = (content?.parts ?? []).reduce((sum, part) => sum + (part.text?.length ?? 0), 0);
  const outputs = calls.reduce((sum, call) => sum + (call.output?.length ?? 0), 0);
  const bytes = attachments.reduce((sum, { source }) => sum + (source?.bytes?.length ?? 0), 0);
  return 256 + (content?.text?.length ?? 0) + parts + outputs + bytes;
}

/** Turns whatever is thrown into an `import-error`, because an uncaught error would abort the component without a text. */
function guarded(work) {
  try {
    return work();
  } catch (thrown) {
    const { kind, message, locator } = ImportError.of(thrown);
    if (kind === "internal") log.log("error", thrown?.stack ? `${message}\n${thrown.stack}` : message);
    throw { kind, message, locator };
  }
}
