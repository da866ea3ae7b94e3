#![expect(clippy::unwrap_used, reason = "tests")]
//! Compares the walk with `serde_json` and with a plain loop, at any chunk size and for truncated files.

use std::io::BufReader;

use proptest::prelude::*;
use satchel_pam::record::Line;
use serde_json::{Value, json, value::RawValue};

use super::{
    JsonArray,
    scan::Scan,
    walk::{Found, Layout, Walk},
};
use crate::{Bundle, ErrorKind, ImportError, Sink};

/// Elements as text with their offsets, and the offset of a cut.
type Walked = (Vec<(String, u64)>, Option<u64>);

fn walk(bytes: &[u8], chunk: usize, pointer: &str, limit: usize) -> Result<Walked, ImportError> {
    let mut walk = Walk::new(BufReader::with_capacity(chunk, bytes), pointer, limit);
    let (mut elements, mut cut) = (Vec::new(), None);
    loop {
        match walk.next()? {
            Found::Element { bytes, offset, .. } => {
                elements.push((String::from_utf8_lossy(bytes).into_owned(), offset));
            }
            Found::TooLong { offset, .. } => elements.push(("too long".to_owned(), offset)),
            Found::Cut { offset, .. } => cut = Some(offset),
            Found::End => return Ok((elements, cut)),
        }
    }
}

/// The members of the object `threads` in the root, and whether the file is truncated.
fn members(bytes: &[u8], chunk: usize) -> (Vec<(String, Value)>, bool) {
    let mut walk =
        Walk::new(BufReader::with_capacity(chunk, bytes), "/threads", usize::MAX).layout(Layout::Members);
    let mut members = Vec::new();
    loop {
        match walk.next().unwrap() {
            Found::Element { bytes, key, .. } => {
                members.push((key.to_owned(), serde_json::from_slice(bytes).unwrap()));
            }
            Found::TooLong { .. } => unreachable!("there is no limit"),
            Found::Cut { .. } => return (members, true),
            Found::End => return (members, false),
        }
    }
}

/// The elements according to `serde_json`.
fn by_serde(text: &str) -> Vec<(String, u64)> {
    let elements: Vec<&RawValue> = serde_json::from_str(text).unwrap();
    let offset = |raw: &RawValue| (raw.get().as_ptr() as usize - text.as_ptr() as usize) as u64;
    elements.into_iter().map(|raw| (raw.get().to_owned(), offset(raw))).collect()
}

fn any_json() -> impl Strategy<Value = Value> {
    const TEXT: &str = "[a\\\\\"{}\\[\\],:é😀\n\u{1}]{0,80}";
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        TEXT.prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::vec((TEXT, inner), 0..8).prop_map(|pairs| pairs.into_iter().collect()),
        ]
    })
}

proptest! {
    #[test]
    fn elements_are_those_of_serde(values in prop::collection::vec(any_json(), 0..12), chunk in 1usize..1000, pretty: bool) {
        let values = Value::Array(values);
        let text = if pretty { serde_json::to_string_pretty(&values).unwrap() } else { values.to_string() };
        prop_assert_eq!(walk(text.as_bytes(), chunk, "", usize::MAX).unwrap(), (by_serde(&text), None));
    }

    #[test]
    fn a_pointer_skips_the_members_before_it(before in any_json(), values in prop::collection::vec(any_json(), 0..6), chunk in 1usize..300) {
        let text = format!("{{\"x\":{before},\"a/b\":{{\"y\":1,\"z\\u0061\" : {} }},\"after\":[1]}}", Value::Array(values.clone()));
        let (elements, cut) = walk(text.as_bytes(), chunk, "/a~1b/za", usize::MAX).unwrap();
        let elements: Vec<Value> = elements.iter().map(|(text, _)| serde_json::from_str(text).unwrap()).collect();
        prop_assert_eq!((elements, cut), (values, None));
    }

    #[test]
    fn members_of_an_object_are_elements(pairs in prop::collection::vec(("[a\\\\\"é:{]{0,6}", any_json()), 0..8), chunk in 1usize..300, pretty: bool, at: prop::sample::Index) {
        let pairs: serde_json::Map<String, Value> = pairs.into_iter().collect();
        let root = json!({ "before": [1], "threads": pairs });
        let text = if pretty { serde_json::to_string_pretty(&root).unwrap() } else { root.to_string() };
        let whole: Vec<(String, Value)> = pairs.into_iter().collect();
        prop_assert_eq!(members(text.as_bytes(), chunk), (whole.clone(), false));
        let (found, _) = members(&text.as_bytes()[..at.index(text.len())], chunk);
        prop_assert!(whole.starts_with(&found));
    }

    #[test]
    fn lines_are_elements(values in prop::collection::vec(any_json().prop_map(|value| json!({ "v": value })), 2..8), chunk in 1usize..300) {
        let text: Vec<String> = values.iter().map(Value::to_string).collect();
        let (elements, cut) = walk(text.join("\n").as_bytes(), chunk, "", usize::MAX).unwrap();
        prop_assert_eq!((elements.into_iter().map(|(text, _)| text).collect::<Vec<_>>(), cut), (text, None));
    }

    #[test]
    fn a_cut_loses_no_whole_element(values in prop::collection::vec(any_json(), 1..8), at: prop::sample::Index, chunk in 1usize..300) {
        let values: Vec<Value> = values.into_iter().map(|value| json!([value])).collect();
        let text = Value::Array(values).to_string();
        let at = at.index(text.len());
        let (elements, cut) = walk(&text.as_bytes()[..at], chunk, "", usize::MAX).unwrap();
        let whole: Vec<_> = by_serde(&text).into_iter().filter(|(text, offset)| *offset + text.len() as u64 <= at as u64).collect();
        prop_assert_eq!(&elements, &whole);
        // Nothing at all is an empty file, not a broken one.
        prop_assert_eq!(cut.is_some(), at > 0);
        prop_assert!(cut.is_none_or(|cut| cut <= at as u64 && whole.last().is_none_or(|(_, offset)| cut > *offset)));
    }

    #[test]
    fn blocks_agree_with_a_loop(bytes in "[{\\[][{}\\[\\]\"\\\\a]{0,400}", steps in prop::collection::vec(1usize..100, 1..20)) {
        let bytes = bytes.as_bytes();
        let expected = end_by_loop(bytes);
        let mut scan = Scan::new(bytes[0]);
        let (mut known, mut found) = (0, None);
        for step in steps.iter().cycle() {
            known = bytes.len().min(known + step);
            found = scan.end(&bytes[..known], known == bytes.len());
            if found.is_some() || known == bytes.len() {
                break;
            }
        }
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn a_walk_over_any_bytes_ends(bytes in prop::collection::vec(any::<u8>(), 0..600), chunk in 1usize..100) {
        let bundle = Bundle::from_files([("f", bytes.clone())]);
        let mut sink = Sink::collecting();
        JsonArray::new("f").each(&bundle, &mut sink, |element, _| Ok(element.parser().end()?)).unwrap();
        let (_, cut) = walk(&bytes, chunk, "", 50).unwrap();
        prop_assert!(cut.is_none_or(|cut| cut <= bytes.len() as u64));
    }
}

fn end_by_loop(bytes: &[u8]) -> Option<usize> {
    let (mut depth, mut string, mut escaped) = (0, false, false);
    for (index, byte) in bytes.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => string = !string,
            b'{' | b'[' if !string => depth += 1,
            b'}' | b']' if !string => {
                depth -= 1;
                if depth == 0 {
                    return Some(index + 1);
                }
            }
            _ => {}
        }
        // Outside strings only quotes are escaped, never brackets.
        if escaped && !string && matches!(bytes.get(index + 1), Some(b'{' | b'[' | b'}' | b']')) {
            escaped = false;
        }
    }
    None
}

fn run(
    array: JsonArray,
    files: &[(&str, &[u8])],
    each: impl FnMut(super::Element<'_>, &mut Sink) -> Result<(), ImportError>,
) -> (Result<super::WalkOutcome, ImportError>, Vec<Line>) {
    let bundle = Bundle::from_files(files.iter().map(|(name, bytes)| (*name, *bytes)));
    let mut sink = Sink::collecting();
    let outcome = array.each(&bundle, &mut sink, each);
    (outcome, sink.into_lines())
}

fn skips<'a>(lines: &'a [Line]) -> Vec<(&'a str, &'a str)> {
    let skip = |line: &'a Line| match line {
        Line::Skip(skip) => Some((skip.locator.as_str(), skip.reason.as_str())),
        _ => None,
    };
    lines.iter().filter_map(skip).collect()
}

#[test]
fn a_malformed_element_is_skipped_and_the_rest_read() {
    let mut seen = Vec::new();
    let (outcome, lines) =
        run(JsonArray::new("f.json"), &[("f.json", b"[{\"a\":1},{\"a\"},{\"a\":3}]")], |element, _| {
            element.parser().end()?;
            seen.push((element.index(), element.offset(), element.locator()));
            Ok(())
        });
    assert_eq!(outcome.unwrap().elements, 3);
    assert_eq!(seen, [(0, 1, "f.json[0]".to_owned()), (2, 15, "f.json[2]".to_owned())]);
    assert_eq!(skips(&lines), [("f.json[1]", "expected \":\" (byte 4 of the element)")]);
}

#[test]
fn other_errors_end_the_walk_with_their_place() {
    let (outcome, _) = run(JsonArray::new("f"), &[("f", b"[1,2]")], |_, _| Err(ImportError::internal("odd")));
    assert_eq!(outcome.unwrap_err(), ImportError::internal("odd").at("f[0]"));
}

#[test]
fn a_cut_file_gives_its_elements_and_the_offset() {
    let mut seen = 0;
    let (outcome, lines) = run(JsonArray::new("f"), &[("f", b"[{},{\"a\":[1,")], |_, _| {
        seen += 1;
        Ok(())
    });
    let outcome = outcome.unwrap();
    assert_eq!((seen, outcome.elements, outcome.cut), (1, 1, Some(4)));
    assert_eq!(skips(&lines), [("f@4", "the file ends inside this record")]);
}

#[test]
fn a_broken_line_does_not_affect_others() {
    let text = b"{\"a\":1}\n{\"a\":\n\n{\"a\":3}\r\n{\"a\":4";
    let mut seen = Vec::new();
    let (outcome, lines) = run(JsonArray::new("f"), &[("f", text)], |element, _| {
        element.parser().end()?;
        seen.push(element.text().to_owned());
        Ok(())
    });
    assert_eq!(outcome.unwrap().cut, Some(24));
    assert_eq!(seen, ["{\"a\":1}", "{\"a\":3}"]);
    assert_eq!(skips(&lines).len(), 2);
}

#[test]
fn a_single_object_is_one_element_in_any_layout() {
    for text in ["{\"a\":{}}", "{\n \"a\": {}\n}\n", "\u{feff} {\"a\":\n{}}"] {
        let (elements, cut) = walk(text.as_bytes(), 5, "", usize::MAX).unwrap();
        assert_eq!((elements.len(), cut), (1, None), "{text:?}");
    }
}

fn texts_of(text: &str) -> Vec<String> {
    for chunk in [1, 3, 64, 1000] {
        assert_eq!(walk(text.as_bytes(), chunk, "", 5000).unwrap().1, None, "{text:?}");
    }
    let (elements, _) = walk(text.as_bytes(), 7, "", 5000).unwrap();
    elements.into_iter().map(|(text, _)| text).collect()
}

#[test]
fn a_file_that_is_known_to_have_lines_is_read_line_by_line() {
    let text =
        b"torn {\"a\": \"b\n{\"a\": \"torn, to\n{\"a\": 1}\nnull\n[2]\nnot a value\n{\"a\": 3}\n{\"a\": ";
    let mut texts = Vec::new();
    let (outcome, lines) = run(JsonArray::new("f").lines(), &[("f", text)], |element, _| {
        texts.push(element.text().to_owned());
        Ok(())
    });
    let expected =
        ["torn {\"a\": \"b", "{\"a\": \"torn, to", "{\"a\": 1}", "null", "[2]", "not a value", "{\"a\": 3}"];
    assert_eq!(texts, expected);
    assert_eq!(
        (outcome.unwrap().elements, skips(&lines)),
        (7, vec![("f@69", "the file ends inside this record")])
    );
}

#[test]
fn a_sample_reads_no_more_than_it_needs() {
    let bundle = Bundle::from_files([("f", format!("[{}]", vec!["{}"; 50_000].join(",")))]);
    JsonArray::new("f").sample(&bundle, 1000, |_| true).expect("memory can be read");
    assert_eq!(bundle.bytes_read(), 1000);
}

#[test]
fn json_lines_are_distinguished_from_one_value() {
    let two = ["{\"a\":1}", "{\"b\":2}"];
    for text in [
        "{\"a\":1}\n{\"b\":2}",
        "\u{feff}{\"a\":1}\r\n{\"b\":2}\r\n",
        "\n\n{\"a\":1}\n\n\n{\"b\":2}\n\n",
        "{\"a\":1}  \n  {\"b\":2}",
        "{\"a\":1} {\"b\":2}",
    ] {
        assert_eq!(texts_of(text), two, "{text:?}");
    }
    for one in ["{\"a\":1}", "{\"a\":1}\n", "{\n\"a\":\n{\n\"b\":1}\n}", "{\"a\":\"raw }\n{ break\"}"] {
        assert_eq!(texts_of(one), [one.trim_end()], "{one:?}");
    }
    // The first is on one line, the next on several.
    assert_eq!(
        texts_of("{\"a\":1}\n{\n  \"b\": {\n\"c\":1}\n}\n{}"),
        ["{\"a\":1}", "{\n  \"b\": {\n\"c\":1}\n}", "{}"]
    );
}

#[test]
fn nothing_behind_a_list_is_lost_silently() {
    assert_eq!(texts_of("[1,{}]\n[]\n[\"x\"]"), ["1", "{}", "\"x\""]);
    for text in ["[1] {}", "[1]]", "[1],2"] {
        let (elements, cut) = walk(text.as_bytes(), 3, "", 99).unwrap();
        assert_eq!((elements.len(), cut.is_some()), (1, true), "{text}");
    }
    assert_eq!(walk(b"{\"c\":[1],\"d\":2}", 3, "/c", 99).unwrap().1, None);
}

#[test]
fn a_long_element_is_skipped_and_the_rest_read() {
    let text = format!("[{{\"a\":\"{}\"}},{{}}]", "x[".repeat(500));
    for chunk in [7, 64, 100, 5000] {
        let (elements, cut) = walk(text.as_bytes(), chunk, "", 100).unwrap();
        assert_eq!(elements, [("too long".to_owned(), 1), ("{}".to_owned(), text.len() as u64 - 3)]);
        assert_eq!(cut, None);
    }
    let (outcome, lines) = run(JsonArray::new("f").limit(100), &[("f", text.as_bytes())], |_, _| Ok(()));
    assert_eq!(outcome.unwrap().elements, 2);
    assert_eq!(skips(&lines), [("f[0]", "it is longer than 100 bytes")]);
}

#[test]
fn invalid_utf8_is_replaced_with_a_warning() {
    let mut seen = String::new();
    let (_, lines) = run(JsonArray::new("f"), &[("f", b"[\"a\xff\"]")], |element, _| {
        element.parser().string()?.clone_into(&mut seen);
        Ok(())
    });
    assert_eq!(seen, "a\u{fffd}");
    assert!(matches!(lines.as_slice(), [Line::Warning(warning)] if warning.locator == "f[0]"));
}

#[test]
fn a_repeated_key_gives_a_warning() {
    let text = b"[{\"a\":1,\"b\":{\"c\":1,\"c\":2}},{\"a\":1,\"\\u0061\":2},{\"a\":1,\"a\"}]";
    let (_, lines) = run(JsonArray::new("f"), &[("f", text)], |element, _| {
        let mut json = element.parser();
        json.enter_object()?;
        while json.key()?.is_some() {
            if json.enter_object()? {
                while json.key()?.is_some() {}
            }
        }
        Ok(())
    });
    let warnings: Vec<_> = lines
        .iter()
        .filter_map(|line| {
            if let Line::Warning(warning) = line {
                Some((warning.locator.as_str(), warning.message.as_str()))
            } else {
                None
            }
        })
        .collect();
    let warning = |key| format!("an object gives the key {key:?} twice; the last value is read");
    assert_eq!(warnings, [("f[0]", warning("c").as_str()), ("f[1]", warning("a").as_str())]);
    assert_eq!(skips(&lines), [("f[2]", "expected \":\" (byte 10 of the element)")]);
}

#[test]
fn a_pointer_to_nothing_is_another_format() {
    for text in ["{\"a\":1}", "[]", "{\"b\":{}}", "7"] {
        assert_eq!(
            walk(text.as_bytes(), 9, "/b/c", 99).unwrap_err().kind,
            ErrorKind::NotThisFormat,
            "{text}"
        );
    }
    for (text, cut) in [("{\"b\":", 5), ("{\"b", 1), ("", 0), ("{\"b\":{\"x\":[", 11)] {
        assert_eq!(walk(text.as_bytes(), 9, "/b/c", 99).unwrap(), (vec![], Some(cut)), "{text}");
    }
    assert_eq!(walk(b"{\"b\":{\"c\":null}}", 9, "/b/c", 99).unwrap(), (vec![], None));
}

#[test]
fn a_sample_has_the_head_of_a_long_element() {
    let text = format!("[{{\"a\":1}},{{\"mapping\":\"{}\"}}]", "x".repeat(1000));
    let bundle = Bundle::from_files([("f", text)]);
    let mut seen = Vec::new();
    let look = |element: super::Element<'_>| {
        seen.push((element.text().chars().take(10).collect::<String>(), element.whole()));
        true
    };
    JsonArray::new("f").sample(&bundle, 100, look).unwrap();
    assert_eq!(seen, [("{\"a\":1}".to_owned(), true), ("{\"mapping\"".to_owned(), false)]);
    assert_eq!(bundle.bytes_read(), 100);
}

#[test]
fn a_survey_numbers_elements_as_a_walk_does_and_reports_nothing() {
    let text = format!(r#"[1,"{}",{{"a":2}},3"#, "x".repeat(50));
    let bundle = Bundle::from_files([("a.json", text)]);
    let mut seen = Vec::new();
    let file = JsonArray::new("a.json").limit(20);
    let look = |element: crate::Element<'_>| {
        seen.push((element.index(), element.text().to_owned()));
        Ok(true)
    };
    file.survey(&bundle, look).unwrap();
    let mut walked = Vec::new();
    let mut sink = Sink::collecting();
    file.each(&bundle, &mut sink, |element, _| {
        walked.push((element.index(), element.text().to_owned()));
        Ok(())
    })
    .unwrap();
    assert_eq!(seen, walked);
    assert_eq!(seen[1], (2, r#"{"a":2}"#.to_owned()));
}

#[test]
fn a_survey_of_all_names_what_is_too_long() {
    let text = format!(r#"{{"a":1,"long":"{}","b":2,"last":"{0}"}}"#, "x".repeat(50));
    let bundle = Bundle::from_files([("a.json", text)]);
    let mut seen = Vec::new();
    let look = |found: crate::Surveyed<'_>| {
        seen.push(match found {
            crate::Surveyed::Element(element) => format!("{}={}", element.locator(), element.text()),
            crate::Surveyed::TooLong(element) => format!("{} at {}", element.locator(), element.index()),
        });
        Ok(true)
    };
    JsonArray::new("a.json").members().limit(20).survey_all(&bundle, look).unwrap();
    assert_eq!(seen, ["a.json.a=1", "a.json.long at 1", "a.json.b=2", "a.json.last at 3"]);
}

#[test]
fn a_stop_ends_the_walk() {
    let bundle = Bundle::from_files([("f", "[1,2,3]")]);
    let mut sink = Sink::stopping_after(1);
    let stopped = JsonArray::new("f").each(&bundle, &mut sink, |element, sink| {
        sink.skip(crate::RecordKind::Memory, &element.locator(), "no")
    });
    assert_eq!(stopped.unwrap_err().kind, ErrorKind::Cancelled);
}

#[test]
fn a_list_inside_another_format_ends_the_walk() {
    let page = r#"<script>var data = [{"a":1},{"b":"</b>"}]; more = [3]</script>"#;
    let bundle = Bundle::from_files([("page.html", page)]);
    let at = page.find('[').unwrap() as u64;
    let (mut sink, mut seen) = (Sink::collecting(), Vec::new());
    let array = JsonArray::new("page.html").embedded_at(at);
    let outcome = array.each(&bundle, &mut sink, |element, _| {
        seen.push(element.text().to_owned());
        Ok(())
    });
    assert_eq!(outcome.unwrap().cut, None);
    assert_eq!(seen, [r#"{"a":1}"#, r#"{"b":"</b>"}"#]);
    assert!(sink.into_lines().is_empty());
}

#[test]
fn growing_heads_are_sampled_until_one_decides() {
    let text = format!("[{{\"a\":\"{}\",\"b\":1}},{{\"b\":2}}]", "x".repeat(100));
    let bundle = Bundle::from_files([("e.json", text.as_str()), ("empty.json", "")]);
    let decide = |path: &str, sizes: &[usize], word: &str, answer| {
        let mut calls = 0;
        let found = JsonArray::new(path).sample_first(&bundle, sizes, |element| {
            calls += 1;
            element.text().contains(word).then_some(answer)
        });
        (found.unwrap(), calls)
    };
    assert_eq!(decide("e.json", &[20, 60, 200], "\"a\"", true), (true, 1));
    assert_eq!(decide("e.json", &[20, 60, 200], "\"a\"", false), (false, 1));
    assert_eq!(decide("e.json", &[20, 60, 200], "\"b\"", true), (true, 3));
    assert_eq!(decide("e.json", &[20, 60], "\"b\"", true), (false, 2));
    assert_eq!(decide("e.json", &[1000, 2000], "2", true), (false, 1));
    assert_eq!(decide("empty.json", &[20, 60], "a", true), (false, 0));
}
