// Runs an importer on a folder of files, without Satchel: for `node --test`.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Bundle, ImportError, Sink } from "./satchel-importer.js";

/** A bundle of all files below `folder`. */
export function bundleOf(folder) {
  const names = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name));
  const path = (name) => name.slice(folder.length).replaceAll("\\", "/").replace(/^\//, "");
  return Bundle.fromFiles(Object.fromEntries(names.map((name) => [path(name), new Uint8Array(readFileSync(name))])));
}

/** What `detect` and `run` give for `bundle`: the content of `expected.json`. */
export function produce(importer, bundle) {
  return importer.detect(bundle).map((detection) => {
    const { format, confidence, files, account = null } = detection;
    const sink = Sink.collecting();
    let error;
    try {
      importer.run(format, bundle.only(files), sink);
    } catch (thrown) {
      const { kind, message, locator } = ImportError.of(thrown);
      const name = kind.replace(/(^|-)(.)/g, (_, __, letter) => letter.toUpperCase());
      error = { kind: name, message, locator };
    }
    return { account, confidence, files, format, lines: sink.lines(), ...(error ? { error } : {}) };
  });
}
