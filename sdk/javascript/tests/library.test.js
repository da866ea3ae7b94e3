// Tests of the library: `node --test sdk/javascript/tests/library.test.js`.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  Bundle, ImportError, JsonArray, Leftover, naturalKey, Sink, snapshot, timeOfDate, timeOfNumber, timeOfText,
} from "../satchel-importer.js";
import { decode, encode, isAscii } from "../lib/bytes.js";
import { parse, stringify } from "../lib/json.js";

const FILE = "list.json";

/** A bundle whose reads give at most `step` bytes. */
function bundleInSteps(content, step) {
  const bytes = typeof content === "string" ? encode(content) : content;
  const open = () => {
    let at = 0;
    return {
      size: () => bytes.length,
      read: (length) => bytes.slice(at, (at += Math.min(step, length, bytes.length - at))),
      seek: (offset) => { at = offset; },
    };
  };
  return new Bundle({ list: () => [{ path: FILE, size: bytes.length }], open });
}

/** The values, the lines and the outcome of a walk, which must be the same for reads of every length. */
function walk(content, configure = (list) => list) {
  const results = [1, 2, 3, 7, 64, 1 << 20].map((step) => {
    const values = [];
    const sink = Sink.collecting();
    const outcome = configure(new JsonArray(FILE)).each(bundleInSteps(content, step), sink, (element) => {
      values.push(element.value);
      assert.equal(JSON.stringify(JSON.parse(element.text)), JSON.stringify(element.value));
    });
    return { values, lines: sink.lines(), outcome };
  });
  results.forEach((result) => assert.deepEqual(result, results[0]));
  return results[0];
}

const values = (content, configure) => walk(content, configure).values;
const skips = (content) => walk(content).lines.map(({ skip }) => [skip.locator, skip.reason]);

test("lists in every form give their elements", () => {
  const expected = [{ a: 1 }, { a: "}]\\\"" }, { a: [{}] }];
  const texts = expected.map((value) => JSON.stringify(value));
  assert.deepEqual(values(`[${texts.join(",")}]`), expected);
  assert.deepEqual(values(`\ufeff [\r\n${texts.join(",\r\n")}\r\n]\r\n`), expected);
  assert.deepEqual(values(`[${texts[0]}][${texts[1]},${texts[2]}]`), expected);
  assert.deepEqual(values(texts.join("\n")), expected);
  assert.deepEqual(values(texts.join("\r\n\r\n")), expected);
  assert.deepEqual(values(texts[2]), [expected[2]]);
  assert.deepEqual(values(`{"x":[1,"]"],"list":[${texts.join(",")}],"y":2}`, (list) => list.pointer("/list")), expected);
  assert.deepEqual(values(`{"k1":${texts[0]},"k2":${texts[1]}}`, (list) => list.members()), expected.slice(0, 2));
  assert.deepEqual(values("[1,-2.5e1,true,null,\"x\",[]]"), [1, -25, true, null, "x", []]);
  assert.deepEqual(values(""), []);
  assert.deepEqual(values(" [ ] "), []);
});

test("a truncated file gives its whole elements and a skip with the offset", () => {
  const whole = '[{"a":"ä"},';
  const { values: read, lines, outcome } = walk(`${whole}{"a":"x\\`);
  assert.deepEqual(read, [{ a: "ä" }]);
  assert.equal(outcome.cut, encode(whole).length);
  assert.deepEqual(lines[0].skip, { kind: "conversation", locator: `${FILE}@12`, reason: "the file ends inside this record" });
});

test("a broken element is skipped alone", () => {
  assert.deepEqual(values('[{"a":1},{"a" 2},{"a":3}]'), [{ a: 1 }, { a: 3 }]);
  assert.equal(skips('[{"a":1},{"a" 2},{"a":3}]')[0][0], `${FILE}[1]`);
  assert.deepEqual(values('{"a":1}\n{"a":\n{"a":3}\n'), [{ a: 1 }, { a: 3 }]);
  assert.deepEqual(skips('[{"a":1}] x')[0], [`${FILE}@10`, "something that is no list stands behind the list; it cannot be read"]);
});

test("invalid UTF-8 is replaced and reported", () => {
  const bytes = Uint8Array.from([...encode('[{"a":"'), 0xff, 0xc3, 0x28, 0xe2, 0x82, ...encode('"},{"a":"ü"}]')]);
  const { values: read, lines } = walk(bytes);
  assert.deepEqual(read, [{ a: "\ufffd\ufffd(\ufffd" }, { a: "ü" }]);
  assert.equal(lines[0].warning.locator, `${FILE}[0]`);
});

test("elements that are too long or too deep are skipped", () => {
  const { values: read, lines } = walk(`[1,"${"x".repeat(300)}",2]`, (list) => list.limit(100));
  assert.deepEqual(read, [1, 2]);
  assert.equal(lines[0].skip.reason, "it is longer than 100 bytes");
  const deep = `${"[".repeat(100_000)}${"]".repeat(100_000)}`;
  const sink = Sink.collecting();
  new JsonArray(FILE).each(Bundle.fromFiles({ [FILE]: `[1,${deep},2]` }), sink, () => {});
  assert.equal(sink.lines()[0].skip.reason, "it is nested deeper than 500 levels");
});

test("malformed skips an element, any other error ends the run with its place", () => {
  const bundle = Bundle.fromFiles({ [FILE]: "[1,2]" });
  const run = (error) => new JsonArray(FILE).each(bundle, Sink.collecting(), () => { throw error; });
  assert.equal(run(ImportError.malformed("bad")).elements, 2);
  assert.throws(() => run(new ImportError("limit", "full")), { kind: "limit", locator: `${FILE}[0]` });
  assert.throws(() => run(new TypeError("oops")), { kind: "internal", message: /TypeError: oops/ });
  const stopping = Sink.collecting(1);
  const each = (element, sink) => sink.conversation({ id: "c", locator: element.locator, messages: [] });
  assert.throws(() => new JsonArray(FILE).each(bundle, stopping, each), { kind: "cancelled" });
  assert.throws(() => new JsonArray(FILE).pointer("/x").each(bundle, Sink.collecting(), each), { kind: "not-this-format" });
});

test("a sample shows the head of a file", () => {
  const bundle = Bundle.fromFiles({ [FILE]: `[{"id":1},{"id":2,"text":"${"x".repeat(1000)}"}]` });
  const seen = [];
  new JsonArray(FILE).sample(bundle, 100, (element) => seen.push([element.whole, element.hasKeys("id")]));
  assert.deepEqual(seen, [[true, true], [false, true]]);
});

test("a field of a wrong type is named", () => {
  const emit = (fields) => Sink.collecting().conversation({ id: "c", locator: "l", messages: [], ...fields });
  assert.throws(() => emit({ title: 5 }), { kind: "internal", message: /title .* is 5; it must be a string/ });
  assert.throws(() => emit({ messages: [{ id: "m", role: "bot" }] }), { message: /role .* must be one of user/ });
});

test("Leftover takes known fields and keeps the others", () => {
  const rest = new Leftover(JSON.parse(
    '{"a":"x","b":5,"c":null,"d":{},"e":[1],"at":"2025-06-21T12:00:00","__proto__":{"f":1},"n":-1}',
  ));
  assert.equal(rest.text("a"), "x");
  assert.equal(rest.text("b"), undefined);
  assert.equal(rest.count("n"), undefined);
  assert.equal(rest.time("at"), 1_750_507_200_000_000);
  assert.equal(
    JSON.stringify(rest.intoJson()),
    '{"b":5,"e":[1],"at":"2025-06-21T12:00:00","__proto__":{"f":1},"n":-1}',
  );
  assert.equal(new Leftover("x").intoJson(), undefined);
});

test("times are read in every form", () => {
  const text = (given) => timeOfText(given)?.micros;
  assert.equal(text("1750537483.023421"), 1_750_537_483_023_421);
  assert.equal(text("1750537484500"), 1_750_537_484_500_000);
  assert.equal(text("1750537484500001"), 1_750_537_484_500_001);
  assert.equal(text("2025-06-21T20:24:44.5Z"), 1_750_537_484_500_000);
  assert.equal(text("2025-06-21T22:24:44.500000+02:00"), 1_750_537_484_500_000);
  assert.deepEqual(timeOfText("2025-06-21T20:24:44"), { micros: 1_750_537_484_000_000, naive: true });
  const none = ["0", "NaN", "inf", "yesterday", "", "1e300", "2025-02-29T00:00:00Z", "2025-13-01T00:00:00Z", "0000-01-01T00:00:00Z"];
  for (const given of none) assert.equal(text(given), undefined, given);
  assert.equal(timeOfDate("2025-05-02"), 1_746_144_000_000_000);
  assert.equal(timeOfNumber(0), undefined);
  assert.equal(text("9999-12-31T23:59:59.999999Z"), 253_402_300_799_999_999n);
});

test("keys are the same as in the other languages", () => {
  assert.equal(naturalKey(["ab", null, "ü"]), "natural:7d7f185568ba986901045f98267418eb2b5f7e62c0f0f4b71befcfb4052de7a5");
});

test("text survives the way to bytes and back", () => {
  for (const text of ["", "a", "abc", "aé", "日本語", "🌱".repeat(700), `${"a".repeat(2047)}é${"b".repeat(5000)}🌱`]) {
    const bytes = encode(text);
    assert.deepEqual(bytes, new Uint8Array(Buffer.from(text)));
    assert.deepEqual(decode(bytes), { text, valid: true });
    for (let at = 0; at < 5; at++) isAscii(bytes.subarray(at));
  }
  assert.equal(decode(encode("half \ud83c")).text, "half \ufffd");
  assert.equal(stringify({ a: "half \ud83c, \\ud83c" }), '{"a":"half \ufffd, \\\\ud83c"}');
});

test("random bytes decode as in browsers", () => {
  let seed = 7;
  for (let round = 0; round < 300; round++) {
    const bytes = Uint8Array.from({ length: round % 40 }, () => {
      seed = (seed * 1103515245 + 12345) % 2147483648;
      return [0x41, 0xc3, 0xa9, 0xe2, 0x82, 0xac, 0xf0, 0x9f, 0xed, 0xa0, 0x80, 0xff, seed & 0xff][seed % 13];
    });
    const expected = new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
    assert.equal(decode(bytes).text, expected);
  }
});

test("large integers keep their digits", { skip: parse("[1.5]", true) && JSON.rawJSON === undefined }, () => {
  const text = '{"a":12345678901234567890,"b":"1e400"}';
  assert.equal(stringify(parse('{"a":12345678901234567890,"b":1e400}', true)), text);
});

test("the id of a snapshot depends on its texts and its time", () => {
  const id = (content, at) => snapshot("list", [{ content, memory_type: "fact" }], at, "l").id;
  assert.equal(id("tea", 1), id("tea", 1));
  assert.notEqual(id("tea", 1), id("tea", 2));
  assert.match(id("rye", undefined), /^list#[0-9a-f]{16}$/);
});
