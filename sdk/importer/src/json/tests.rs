#![expect(clippy::unwrap_used, reason = "tests")]
//! The parser against `serde_json`, and where it is more lenient.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{JsonError, Kind, Leftover, MAX_DEPTH, Parser, with_members};
use crate::Arena;

/// Reads a value of any type with the parser.
fn read(json: &mut Parser<'_>) -> Result<Value, JsonError> {
    Ok(match json.kind()? {
        Kind::Null => {
            assert!(json.null()?);
            Value::Null
        }
        Kind::Bool => json.bool()?.into(),
        Kind::Number => serde_json::from_str(json.number()?.as_str()).unwrap(),
        Kind::String => json.string()?.into(),
        Kind::Array => {
            assert!(json.enter_array()?);
            let mut items = Vec::new();
            while json.item()? {
                items.push(read(json)?);
            }
            items.into()
        }
        Kind::Object => {
            assert!(json.enter_object()?);
            let mut map = Map::new();
            while let Some(key) = json.key()? {
                map.insert(key.to_owned(), read(json)?);
            }
            map.into()
        }
    })
}

fn parse(text: &str) -> Result<Value, JsonError> {
    let arena = Arena::new();
    let mut json = Parser::new(text, &arena);
    let value = read(&mut json)?;
    json.end()?;
    Ok(value)
}

fn raw(text: &str) -> Result<String, JsonError> {
    let arena = Arena::new();
    let mut json = Parser::new(text, &arena);
    let raw = json.raw_value()?.to_owned();
    json.end()?;
    Ok(raw)
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        "[a-z \\\\\"\n\u{7f}é😀]{0,60}".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::vec((any::<String>(), inner), 0..8)
                .prop_map(|pairs| pairs.into_iter().collect()),
        ]
    })
}

proptest! {
    #[test]
    fn valid_json_reads_as_serde_reads_it(value in any_json(), pretty: bool) {
        let text = if pretty { serde_json::to_string_pretty(&value).unwrap() } else { value.to_string() };
        prop_assert_eq!(parse(&text).unwrap(), value);
        prop_assert_eq!(raw(&text).unwrap(), text);
    }

    /// Both ways of reading agree. They accept what serde accepts, and otherwise only what they repair.
    #[test]
    fn near_json_is_accepted_or_refused_as_by_serde(text in "[\\[\\]{}\",:0-9.eE+\\-\\\\u a-dntrfls\n]{0,14}") {
        let strict = serde_json::from_str::<Value>(&text).is_ok();
        let repaired = raw(&text);
        prop_assert_eq!(parse(&text).is_ok(), repaired.is_ok());
        match repaired {
            Ok(repaired) => prop_assert!(serde_json::from_str::<Value>(&repaired).is_ok() || beyond_range(&repaired), "{repaired:?}"),
            Err(_) => prop_assert!(!strict),
        }
    }

    #[test]
    fn any_text_is_read_without_panic(text: String) {
        prop_assert_eq!(parse(&text).is_ok(), raw(&text).is_ok());
    }

    #[test]
    fn leftovers_make_an_object_with_every_last_value(pairs in prop::collection::vec(("[a-c\"\\\\\n]{0,2}", any_json()), 0..40)) {
        let texts: Vec<(String, String)> = pairs.iter().map(|(key, value)| (key.clone(), value.to_string())).collect();
        let mut rest = Leftover::default();
        for (key, text) in &texts {
            rest.add_json(key, text.as_str());
        }
        let expected: Map<String, Value> = pairs.into_iter().collect();
        match rest.into_json() {
            Some(object) => {
                let (map, count): (Map<String, Value>, usize) = (serde_json::from_str(&object).unwrap(), expected.len());
                prop_assert_eq!(&map, &expected);
                let arena = Arena::new();
                let mut json = Parser::new(&object, &arena);
                json.enter_object().unwrap();
                prop_assert_eq!(std::iter::from_fn(|| json.key().unwrap()).count(), count);
            }
            None => prop_assert!(expected.is_empty()),
        }
    }
}

/// `serde_json` refuses numbers that a double cannot hold; JSON does not.
fn beyond_range(text: &str) -> bool {
    serde_json::from_str::<Value>(text)
        .is_err_and(|error| error.to_string().starts_with("number out of range"))
}

#[test]
fn lone_surrogates_become_replacement_characters() {
    assert_eq!(parse(r#""a\ud83d""#).unwrap(), json!("a\u{fffd}"));
    assert_eq!(parse(r#""\ude00b""#).unwrap(), json!("\u{fffd}b"));
    assert_eq!(parse(r#""\ud83d\ud83d\ude00""#).unwrap(), json!("\u{fffd}😀"));
    assert_eq!(parse(r#""\ud83dA\n""#).unwrap(), json!("\u{fffd}A\n"));
    assert_eq!(parse(r#"{"\ud800k":1}"#).unwrap(), json!({ "\u{fffd}k": 1 }));
    assert_eq!(
        raw(r#"["\ud83d x","\ud83d\ude00","\\ud83d"]"#).unwrap(),
        r#"["\ufffd x","\ud83d\ude00","\\ud83d"]"#
    );
}

#[test]
fn raw_control_characters_are_accepted() {
    assert_eq!(parse("\"a\nb\0c\"").unwrap(), json!("a\nb\0c"));
    assert_eq!(raw("[\"a\tb\",\n\"\\\"\u{1}\"]").unwrap(), "[\"a\\u0009b\",\n\"\\\"\\u0001\"]");
    assert!(parse("[1,\u{1}2]").is_err());
}

#[test]
fn errors_name_the_byte() {
    for (text, offset) in [
        ("[1,2", 4),
        ("{\"a\" 1}", 5),
        ("\"\\x\"", 1),
        ("[01]", 3),
        ("nul", 0),
        ("1 2", 2),
        ("{,}", 1),
        ("[1,]", 3),
    ] {
        assert_eq!(parse(text).unwrap_err().offset, offset, "{text}");
        assert_eq!(raw(text).unwrap_err().offset, offset, "{text}");
    }
}

#[test]
fn depth_is_bounded_both_ways() {
    let nested = |depth: u32| "[".repeat(depth as usize) + &"]".repeat(depth as usize);
    assert!(parse(&nested(MAX_DEPTH)).is_ok());
    assert!(raw(&nested(MAX_DEPTH)).is_ok());
    assert_eq!(parse(&nested(MAX_DEPTH + 1)).unwrap_err().problem, "nested too deeply");
    assert_eq!(raw(&"{\"a\":".repeat(1_000_000)).unwrap_err().problem, "nested too deeply");
    let arena = Arena::new();
    let text = format!("[{}]", nested(MAX_DEPTH));
    let mut json = Parser::new(&text, &arena);
    assert!(json.enter_array().unwrap() && json.item().unwrap());
    assert!(json.skip_value().is_err());
}

#[test]
fn values_that_are_not_taken_are_skipped() {
    let arena = Arena::new();
    let mut json = Parser::new(r#"{"a":{"x":[1,{}]},"b":[[],2,"x"],"c":3}"#, &arena);
    let mut keys = Vec::new();
    assert!(json.enter_object().unwrap());
    while let Some(key) = json.key().unwrap() {
        keys.push(key);
        if key == "b" {
            assert!(!json.enter_object().unwrap());
            assert!(json.enter_array().unwrap());
            while json.item().unwrap() {}
        }
    }
    json.end().unwrap();
    assert_eq!(keys, ["a", "b", "c"]);
}

#[test]
fn the_last_value_of_a_key_counts() {
    let arena = Arena::new();
    let mut json = Parser::new(
        r#"{"a":[1],"a":"x","b":"x","b":[2],"c":7,"c":null,"d":"x","d":null,"e":0,"e":[3]}"#,
        &arena,
    );
    let (mut a, mut b, mut d, mut rest) = (None, None, None, Leftover::default());
    assert!(json.enter_object().unwrap());
    while let Some(key) = json.key().unwrap() {
        match key {
            "a" => a = rest.text(key, &mut json).unwrap(),
            "b" => b = rest.text(key, &mut json).unwrap(),
            "d" => d = rest.keep_and_read(key, &mut json).unwrap().text(),
            "e" if rest.array(key, &mut json).unwrap() => while json.item().unwrap() {},
            "e" => {}
            _ => rest.keep(key, &mut json).unwrap(),
        }
    }
    assert_eq!((a, b, d), (Some("x"), None, None));
    assert_eq!(rest.take_json(&arena).as_deref(), Some(r#"{"b":[2]}"#));
    assert_eq!(rest.take_json(&arena), None);
    rest.add_text("q\"", "line\n");
    rest.add_json("n", "1");
    assert_eq!(rest.take_json(&arena).as_deref(), Some("{\"q\\\"\":\"line\\n\",\"n\":1}"));
    rest.add_json("n", "1");
    rest.keep("n", &mut Parser::new("null", &arena)).unwrap();
    assert_eq!(rest.into_json(), None);
}

#[test]
fn values_of_other_types_are_kept_and_null_is_absent() {
    let arena = Arena::new();
    let text =
        r#"{"title":["x"],"time":null,"n":"7","flag":true,"list":{"a":1},"map":[],"extra":{"k" : "v"}}"#;
    let mut json = Parser::new(text, &arena);
    let mut rest = Leftover::default();
    assert!(json.enter_object().unwrap());
    while let Some(key) = json.key().unwrap() {
        match key {
            "title" => assert_eq!(rest.text(key, &mut json).unwrap(), None),
            "time" | "n" => assert_eq!(rest.number(key, &mut json).unwrap(), None),
            "flag" => assert_eq!(rest.bool(key, &mut json).unwrap(), Some(true)),
            "list" => assert!(!rest.array(key, &mut json).unwrap()),
            "map" => assert!(!rest.object(key, &mut json).unwrap()),
            _ => rest.keep(key, &mut json).unwrap(),
        }
    }
    rest.add_text("note", "a\"b\u{1}");
    rest.add_bool("active_path", true);
    let expected = r#"{"title":["x"],"n":"7","list":{"a":1},"map":[],"extra":{"k" : "v"},"note":"a\"b\u0001","active_path":true}"#;
    assert_eq!(rest.into_json().as_deref(), Some(expected));
}

#[test]
fn a_value_is_returned_as_json() {
    let arena = Arena::new();
    for text in ["null", "[1, {\"a\":2}]", "true", "\"say \\\"tea\\\"\\n\"", "\"\""] {
        let value = super::Value::read(&mut Parser::new(text, &arena)).expect("it is a value");
        assert_eq!(value.json(), text);
    }
}

#[test]
fn a_number_out_of_range_is_kept_as_a_string() {
    let arena = Arena::new();
    let huge = "9".repeat(310);
    let text = format!(
        r#"{{"list":[1e999,-2,"3e999"],"when":1e999,"count":-4E400,"map":{{"n":{huge}}},"small":1e-999}}"#
    );
    let mut json = Parser::new(&text, &arena);
    let mut rest = Leftover::default();
    assert!(json.enter_object().unwrap());
    while let Some(key) = json.key().unwrap() {
        match key {
            "when" => assert_eq!(rest.time(key, &mut json).unwrap(), None),
            "count" => assert_eq!(rest.count(key, &mut json).unwrap(), None),
            _ => rest.keep(key, &mut json).unwrap(),
        }
    }
    let kept = rest.into_json().unwrap();
    let expected = format!(
        r#"{{"list":["1e999",-2,"3e999"],"when":"1e999","count":"-4E400","map":{{"n":"{huge}"}},"small":1e-999}}"#
    );
    assert_eq!(kept, expected);
    crate::pam::raw::RawObject::parse(kept.into_owned()).expect("it can be stored");
}

#[test]
fn members_are_added_to_the_end_of_an_object() {
    let add = |object: Option<&'static str>| {
        let members = [("n", "1".to_owned()), ("in", "2".to_owned())];
        with_members(object.map(Into::into), &members).unwrap_or_default().into_owned()
    };
    assert_eq!(add(None), r#"{"n":1,"in":2}"#);
    assert_eq!(add(Some("{}")), r#"{"n":1,"in":2}"#);
    assert_eq!(add(Some(r#"{"a":{"n":0}}"#)), r#"{"a":{"n":0},"n":1,"in":2}"#);
    assert_eq!(add(Some(r#"{"in":{"n":0},"n":9}"#)), r#"{"in":{"n":0},"n":9}"#);
    assert_eq!(with_members(None, &[]), None);
}

#[test]
fn a_value_is_read_again_after_a_failed_attempt() {
    let arena = Arena::new();
    let mut json = Parser::new(r#"[[{"a":"b\n"}],7,[{"a":[1]"#, &arena);
    let text = |json: &mut Parser<'_>| -> Result<Option<String>, JsonError> {
        let entered = json.enter_array()? && json.item()? && json.enter_object()? && json.key()?.is_some();
        if !entered || json.kind()? != Kind::String {
            return Ok(None);
        }
        let text = json.string()?.to_owned();
        Ok((json.key()?.is_none() && !json.item()?).then_some(text))
    };
    let only = |json: &mut Parser<'_>| json.attempt(text);
    assert_eq!(json.enter_array(), Ok(true));
    assert_eq!((json.item(), only(&mut json).as_deref()), (Ok(true), Some("b\n")));
    assert_eq!((json.item(), only(&mut json)), (Ok(true), None));
    assert_eq!(json.raw_value(), Ok("7"));
    assert_eq!((json.item(), only(&mut json)), (Ok(true), None));
    assert_eq!(
        (json.enter_array(), json.item(), json.enter_object(), json.key()),
        (Ok(true), Ok(true), Ok(true), Ok(Some("a")))
    );
}
