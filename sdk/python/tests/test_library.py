"""Tests of the library: `python -m unittest discover sdk/python/tests`."""

import json
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from satchel_importer import (  # noqa: E402
    Bundle, Entry, ImporterError, JsonArray, Leftover, Sink, natural_key, snapshot, time_of_date, time_of_number,
    time_of_text,
)
from satchel_importer.text import line_of  # noqa: E402

FILE = "list.json"
STEPS = (1, 2, 3, 7, 64, 1 << 20)


class InSteps:
    """Files whose reads give at most `step` bytes."""

    def __init__(self, content, step):
        self.content = content if isinstance(content, bytes) else content.encode()
        self.step = step
        self.at = 0

    def list(self):
        return [Entry(FILE, len(self.content))]

    def open(self, path):
        self.at = 0
        return self

    def size(self):
        return len(self.content)

    def read(self, length):
        chunk = self.content[self.at:self.at + min(length, self.step)]
        self.at += len(chunk)
        return chunk


def walk_in_steps(content, configure, step):
    values, sink = [], Sink.collecting()
    outcome = configure(JsonArray(FILE)).each(Bundle(InSteps(content, step)), sink, lambda each, _: values.append(each.value))
    return values, sink.lines(), outcome


class Walks(unittest.TestCase):
    maxDiff = None

    def walk(self, content, configure=lambda array: array):
        """The result of a walk, which must be the same for reads of every length."""
        results = [walk_in_steps(content, configure, step) for step in STEPS]
        for result in results:
            self.assertEqual(result, results[0])
        return results[0]

    def values(self, content, configure=lambda array: array):
        return self.walk(content, configure)[0]

    def test_lists_in_every_form_give_their_elements(self):
        expected = [{"a": 1}, {"a": '}]\\"'}, {"a": [{}]}]
        texts = [json.dumps(value) for value in expected]
        self.assertEqual(self.values(f"[{','.join(texts)}]"), expected)
        separator = ",\r\n"
        self.assertEqual(self.values(f"\ufeff [\r\n{separator.join(texts)}\r\n]\r\n"), expected)
        self.assertEqual(self.values(f"[{texts[0]}][{texts[1]},{texts[2]}]"), expected)
        self.assertEqual(self.values("\n".join(texts)), expected)
        self.assertEqual(self.values("\r\n\r\n".join(texts)), expected)
        self.assertEqual(self.values(texts[2]), [expected[2]])
        inside = f'{{"x":[1,"]"],"list":[{",".join(texts)}],"y":2}}'
        self.assertEqual(self.values(inside, lambda array: array.pointer("/list")), expected)
        members = f'{{"k1":{texts[0]},"k2":{texts[1]}}}'
        self.assertEqual(self.values(members, lambda array: array.members()), expected[:2])
        self.assertEqual(self.values('[1,-2.5e1,true,null,"x",[]]'), [1, -25, True, None, "x", []])
        self.assertEqual(self.values(""), [])
        self.assertEqual(self.values(" [ ] "), [])

    def test_a_truncated_file_gives_its_whole_elements_and_a_skip_with_the_offset(self):
        whole = '[{"a":"ä"},'
        values, lines, outcome = self.walk(f'{whole}{{"a":"x\\')
        self.assertEqual(values, [{"a": "ä"}])
        self.assertEqual(outcome.cut, len(whole.encode()))
        self.assertEqual(lines[0]["skip"]["locator"], f"{FILE}@12")

    def test_a_broken_element_is_skipped_alone(self):
        values, lines, _ = self.walk('[{"a":1},{"a" 2},{"a":3}]')
        self.assertEqual(values, [{"a": 1}, {"a": 3}])
        self.assertEqual(lines[0]["skip"]["locator"], f"{FILE}[1]")
        self.assertEqual(self.values('{"a":1}\n{"a":\n{"a":3}\n'), [{"a": 1}, {"a": 3}])
        _, lines, _ = self.walk('[{"a":1}] x')
        self.assertEqual(lines[0]["skip"]["locator"], f"{FILE}@10")

    def test_invalid_utf_8_is_replaced_and_reported(self):
        values, lines, _ = self.walk(b'[{"a":"\xff\xc3\x28\xe2\x82"},{"a":"\xc3\xbc"}]')
        self.assertEqual(values, [{"a": "\ufffd\ufffd(\ufffd"}, {"a": "ü"}])
        self.assertEqual(lines[0]["warning"]["locator"], f"{FILE}[0]")

    def test_repeated_keys_are_reported(self):
        values, lines, _ = self.walk('[{"a":1,"b":{"c":1,"c":2}}]')
        self.assertEqual(values, [{"a": 1, "b": {"c": 2}}])
        self.assertIn('"c" twice', lines[0]["warning"]["message"])

    def test_elements_that_are_too_long_or_too_deep_are_skipped(self):
        values, lines, _ = self.walk(f'[1,"{"x" * 300}",2]', lambda array: array.limit(100))
        self.assertEqual(values, [1, 2])
        self.assertEqual(lines[0]["skip"]["reason"], "it is longer than 100 characters")
        for deep in ("[" * 1000 + "]" * 1000, '{"]}":' * 1000 + "1" + "}" * 1000):
            values, lines, _ = self.walk(f'[1,"{{{{",{deep},2]')
            self.assertEqual(values, [1, "{{", 2])
            self.assertEqual(lines[0]["skip"]["reason"], "it is nested deeper than 500 levels")

    def test_malformed_skips_an_element_any_other_error_ends_the_run_with_its_place(self):
        bundle = Bundle.from_files({FILE: "[1,2]"})

        def run(error):
            def each(element, sink):
                raise error

            return JsonArray(FILE).each(bundle, Sink.collecting(), each)

        self.assertEqual(run(ImporterError.malformed("bad")).elements, 2)
        with self.assertRaises(ImporterError) as caught:
            run(ImporterError("limit", "full"))
        self.assertEqual((caught.exception.kind, caught.exception.locator), ("limit", f"{FILE}[0]"))
        with self.assertRaisesRegex(ImporterError, "uncaught TypeError: oops"):
            run(TypeError("oops"))
        with self.assertRaises(ImporterError) as caught:
            JsonArray(FILE).pointer("/x").each(bundle, Sink.collecting(), lambda element, sink: None)
        self.assertEqual(caught.exception.kind, "not-this-format")

    def test_the_sink_stops_the_walk(self):
        def each(element, sink):
            sink.conversation({"id": "c", "locator": element.locator, "messages": []})

        with self.assertRaises(ImporterError) as caught:
            JsonArray(FILE).each(Bundle.from_files({FILE: "[1,2]"}), Sink.collecting(1), each)
        self.assertEqual(caught.exception.kind, "cancelled")

    def test_a_sample_shows_the_head_of_a_file(self):
        bundle = Bundle.from_files({FILE: f'[{{"id":1}},{{"id":2,"text":"{"x" * 1000}"}}]'})
        seen = []
        JsonArray(FILE).sample(bundle, 100, lambda element: seen.append((element.whole, element.has_keys("id"))))
        self.assertEqual(seen, [(True, True), (False, True)])


class Records(unittest.TestCase):
    def test_a_field_of_a_wrong_type_is_named(self):
        record = {"id": "c", "locator": "l", "messages": []}
        with self.assertRaisesRegex(ImporterError, "title .* is 5; it must be a string"):
            Sink.collecting().conversation({**record, "title": 5})
        with self.assertRaisesRegex(ImporterError, "role .* must be one of user"):
            Sink.collecting().conversation({**record, "messages": [{"id": "m", "role": "bot"}]})

    def test_leftover_takes_known_fields_and_keeps_the_others(self):
        rest = Leftover({"a": "x", "b": 5, "c": None, "d": {}, "e": [1], "at": "2025-06-21T12:00:00", "n": -1})
        self.assertEqual(rest.text("a"), "x")
        self.assertIsNone(rest.text("b"))
        self.assertIsNone(rest.count("n"))
        self.assertEqual(rest.time("at"), 1_750_507_200_000_000)
        self.assertEqual(rest.into_json(), {"b": 5, "e": [1], "at": "2025-06-21T12:00:00", "n": -1})
        self.assertIsNone(Leftover("x").into_json())

    def test_times_are_read_in_every_form(self):
        def text(given):
            return time_of_text(given)[0]

        self.assertEqual(text("1750537483.023421"), 1_750_537_483_023_421)
        self.assertEqual(text("1750537484500"), 1_750_537_484_500_000)
        self.assertEqual(text("1750537484500001"), 1_750_537_484_500_001)
        self.assertEqual(text("2025-06-21T20:24:44.5Z"), 1_750_537_484_500_000)
        self.assertEqual(text("2025-06-21T22:24:44.500000+02:00"), 1_750_537_484_500_000)
        self.assertEqual(time_of_text("2025-06-21T20:24:44"), (1_750_537_484_000_000, True))
        none = ["0", "NaN", "inf", "yesterday", "", "1e300", "2025-02-29T00:00:00Z", "2025-13-01T00:00:00Z",
                "0000-01-01T00:00:00Z"]
        for given in none:
            self.assertIsNone(text(given), given)
        self.assertEqual(time_of_date("2025-05-02"), 1_746_144_000_000_000)
        self.assertIsNone(time_of_number(0))
        self.assertEqual(text("9999-12-31T23:59:59.999999Z"), 253_402_300_799_999_999)

    def test_keys_are_the_same_as_in_the_other_languages(self):
        key = "natural:7d7f185568ba986901045f98267418eb2b5f7e62c0f0f4b71befcfb4052de7a5"
        self.assertEqual(natural_key(["ab", None, "ü"]), key)

    def test_the_id_of_a_snapshot_depends_on_its_texts_and_its_time(self):
        def identify(content, at):
            return snapshot("list", [{"content": content, "memory_type": "fact"}], at, "l")["id"]

        self.assertEqual(identify("tea", 1), identify("tea", 1))
        self.assertNotEqual(identify("tea", 1), identify("tea", 2))
        self.assertRegex(identify("rye", None), r"^list#[0-9a-f]{16}$")

    def test_what_other_parsers_refuse_is_replaced(self):
        record = {"a": "half \ud83c", "b": float("inf"), "c": 12345678901234567890}
        self.assertEqual(line_of(record), '{"a":"half \ufffd","b":"inf","c":12345678901234567890}')


if __name__ == "__main__":
    unittest.main()
