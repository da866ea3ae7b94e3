#![expect(clippy::unwrap_used, reason = "tests")]

use super::*;

/// One field of each type, and those that are empty.
const ALL: &str = r#"{"id":"a","text":"Where is the tea?","none":null,"list":[1,"b"],"no list":[],"object":{"x":1},"no object":{},"no text":"","seed":7}"#;

fn fields(raw: &str) -> Fields<'_> {
    Fields::parse(raw, Box::leak(Box::new(Arena::new()))).unwrap()
}

#[test]
fn fields_are_taken_and_the_rest_is_kept() {
    let mut fields = fields(ALL);
    assert_eq!((fields.take_id("id"), fields.id("id")), (Some("a"), None));
    assert_eq!(fields.take_text("text"), Some("Where is the tea?"));
    assert_eq!(fields.take_array("list").unwrap(), Some(vec![Value::Raw("1"), Value::Text("b")]));
    let mut object = fields.take_object("object").unwrap().unwrap();
    assert_eq!((object.take("x"), object.into_json().as_str()), (Value::Raw("1"), EMPTY_OBJECT));
    assert_eq!(fields.iter_all().len(), 5);
    assert_eq!(fields.into_json(), r#"{"no text":"","seed":7}"#);
}

#[test]
fn a_value_of_another_type_stays() {
    let mut fields = fields(ALL);
    for key in ["none", "list", "object", "seed", "absent"] {
        assert_eq!((fields.take_text(key), fields.take_id(key)), (None, None), "{key}");
    }
    for key in ["none", "list", "text", "seed", "absent"] {
        assert!(fields.take_object(key).unwrap().is_none(), "{key}");
        assert_eq!(fields.object(key).unwrap().iter_all().len(), 0, "{key}");
    }
    for key in ["none", "object", "text", "seed", "absent"] {
        assert_eq!(fields.take_array(key).unwrap(), None, "{key}");
    }
    assert_eq!(fields.take_time("text"), None);
    assert_eq!(fields.iter_all().len(), 9);
    assert!(fields.has("list") && !fields.has("none") && !fields.has("absent"));
}

#[test]
fn an_empty_text_is_taken_but_an_empty_id_is_not() {
    let mut fields = fields(r#"{"a":"","b":""}"#);
    assert_eq!((fields.take_text("a"), fields.has("a")), (None, false));
    assert_eq!((fields.take_id("b"), fields.has("b")), (None, true));
}

#[test]
fn a_longer_text_is_not_an_id() {
    for (length, is_id) in [(MAX_ID_BYTES, true), (MAX_ID_BYTES + 1, false)] {
        let raw = format!(r#"{{"id":"{}"}}"#, "i".repeat(length));
        let arena = Arena::new();
        let mut fields = Fields::parse(&raw, &arena).unwrap();
        assert_eq!((fields.take_id("id").is_some(), fields.has("id")), (is_id, !is_id), "{length}");
    }
}

#[test]
fn the_last_value_of_a_repeated_key_counts() {
    let mut fields = fields(r#"{"a":1,"b":2,"a":"x"}"#);
    assert_eq!((fields.get("a"), fields.take_text("a")), (Value::Text("x"), Some("x")));
    assert_eq!(fields.into_json(), r#"{"b":2}"#);
}

#[test]
fn times_are_taken_unless_they_have_no_offset() {
    let mut fields =
        fields(r#"{"a":1750507200,"b":"2025-06-21T12:00:00Z","c":"2025-06-21T12:00:00","d":[1]}"#);
    let noon = Some(1_750_507_200_000_000);
    assert_eq!(["a", "b", "c", "d"].map(|key| fields.take_time(key)), [noon, noon, noon, None]);
    assert_eq!(fields.into_json(), r#"{"c":"2025-06-21T12:00:00","d":[1]}"#);
}

#[test]
fn fields_are_removed_split_off_and_pushed() {
    let mut fields = fields(ALL);
    fields.remove(&["text", "list"]);
    fields.remove_text("id", "b");
    fields.remove_text("no text", "");
    let taken = fields.split_off(&["object", "absent"]);
    assert_eq!(taken.into_json(), r#"{"object":{"x":1}}"#);
    fields.push("id", Value::Text("c"));
    fields.push_json("object", "{\"y\":2}");
    fields.push_json("list", "[]");
    assert_eq!(fields.into_json(), r#"{"seed":7,"id":"c","object":{"y":2}}"#);
}

#[test]
fn unknown_fields_with_natural_language_are_noted() {
    let fields = fields(r#"{"none":{},"seed":7,"words":"Where is the tea?","more":"Is there any milk?"}"#);
    assert_eq!(
        (fields.unknown(&["seed"]), fields.unknown(&["seed", "words", "more"])),
        (Some("words"), None)
    );
    assert_eq!(fields.unread(&[]), Some("words"));
    assert_eq!(fields.unread(&["words"]), Some("more"));
    assert_eq!(fields.unread(&["words", "more"]), None);
    let mut rest = Leftover::default();
    fields.add_to(&mut rest, &["words"]);
    assert_eq!(rest.unread(), Some("more"));
    assert_eq!(fields.clone().into_rest(&["words", "more"]).unread(), None);
    assert_eq!(rest.into_json().unwrap(), fields.into_json());
}

#[test]
fn a_reader_can_count_empty_texts_as_empty_at_any_depth() {
    let arena = Arena::new();
    let reader = FieldReader::new().without_empty_texts();
    let mut fields = reader.parse(r#"{"a":"","b":{"c":"","d":1}}"#, &arena).unwrap();
    assert_eq!(fields.get("a"), Value::Text(""));
    assert_eq!(fields.object("b").unwrap().into_json(), r#"{"d":1}"#);
    assert_eq!(fields.take_object("b").unwrap().unwrap().into_json(), r#"{"d":1}"#);
    assert_eq!(fields.into_json(), EMPTY_OBJECT);
}

#[test]
fn longer_objects_and_arrays_are_errors_at_any_depth() {
    let arena = Arena::new();
    let reader = FieldReader::new().max_members(2);
    let problem = "an object or a list in it has too many members";
    for (raw, offset) in [(r#"{"a":1,"b":2}"#, None), (r#"{"a":1,"b":2,"c":3}"#, Some(17))] {
        let error = reader.parse(raw, &arena).err();
        assert_eq!(error, offset.map(|offset| JsonError { offset, problem }), "{raw}");
    }
    assert_eq!(reader.items("[1,2]", &arena).unwrap().len(), 2);
    assert_eq!(reader.items("[1,2,3]", &arena), Err(JsonError { offset: 5, problem }));
    let mut outer = reader.parse(r#"{"a":{"b":1,"c":2,"d":3},"e":[1,2,3]}"#, &arena).unwrap();
    assert!(outer.object("a").is_err() && outer.take_object("a").is_err() && outer.take_array("e").is_err());
    assert!(outer.has("a") && outer.has("e"));
    let long = format!("[{}1]", "1,".repeat(FieldReader::MAX_MEMBERS));
    assert!(parse_items(&long, &arena).is_err() && parse_items(&long.replacen("1,", "", 1), &arena).is_ok());
}

#[test]
fn text_that_is_not_one_object_is_an_error_or_has_no_fields() {
    let arena = Arena::new();
    for invalid in ["", "{", r#"{"a":1"#, r#"{"a":1}}"#, r#"{"a":1} {}"#, "?"] {
        assert!(Fields::parse(invalid, &arena).is_err(), "{invalid}");
    }
    for other in ["null", "7", "[1]", "\"a\""] {
        assert_eq!(Fields::parse(other, &arena).unwrap().iter_all().len(), 0, "{other}");
    }
    let mut two = Parser::new(r#"[{"a":1},{"b":2}]"#, &arena);
    assert!(two.enter_array().unwrap() && two.item().unwrap());
    assert_eq!(Fields::read(&mut two).unwrap().into_json(), r#"{"a":1}"#);
    assert!(two.item().unwrap());
    assert_eq!(Fields::read(&mut two).unwrap().into_json(), r#"{"b":2}"#);
    assert!(Fields::of(Value::Raw("[1]"), &arena).unwrap().is_none());
    assert_eq!(parse_items("{}", &arena), Ok(Vec::new()));
    assert!(parse_items("[1", &arena).is_err());
}

#[test]
fn arrays_are_joined() {
    assert_eq!(array_of(Vec::<String>::new()), "[]");
    assert_eq!(array_of(["1", "{}"]), "[1,{}]");
}

#[test]
fn values_are_the_same_whether_they_are_read_at_once_or_twice() {
    let many = format!("{{{}}}", (0..20).map(|at| format!("\"{at}\":0")).collect::<Vec<_>>().join(","));
    let reader = FieldReader::new().max_members(10);
    for raw in [
        ALL,
        "{}",
        " { \"a\" : [ 1 , { \"b\" : null } ] } ",
        r#"{"a":"\ud800","b":{"c":"\ud800 \n"}}"#,
        "{\"a\":\"\t\",\"b\":[\"\n\"]}",
        r#"{"a":1e999,"b":{"c":-1e999}}"#,
        r#"{"a":"é\n\u00e9\ud83d\ude00","a":2}"#,
        r#"{"a":1"#,
        r#"{"a":1,}"#,
        r#"{"a":"\x"}"#,
        "[1]",
        "\"a\"",
        "null",
        "",
        &many,
    ] {
        for text in [raw.to_owned(), format!("[{raw},7]")] {
            let arena = Arena::new();
            let read = |at_once: bool| {
                let mut json = Parser::new(&text, &arena);
                if json.enter_array()? {
                    json.item()?;
                }
                let ValueFields { value, fields } = if at_once {
                    reader.read_value(&mut json)?
                } else {
                    let value = Value::read(&mut json)?;
                    ValueFields { value, fields: reader.of(value, &arena) }
                };
                let fields = fields.map(|fields| Some(fields?.iter_all().collect::<Vec<_>>()));
                Ok::<_, JsonError>((value, fields, json.offset()))
            };
            assert_eq!(read(true), read(false), "{text}");
        }
    }
    let list = format!("[{ALL},1,\"a\"]");
    let arena = Arena::new();
    let values = reader.item_fields(&list, &arena).unwrap().into_iter().map(|item| item.value);
    assert_eq!(values.collect::<Vec<_>>(), reader.items(&list, &arena).unwrap());
    let many = format!(r#"{{"list":[{many},{{"a":1}}],"text":"x"}}"#);
    let mut fields = reader.parse(&many, &arena).unwrap();
    let items = fields.take_array_fields("list").unwrap().unwrap();
    let found: Vec<_> =
        items.into_iter().map(|item| item.fields.map(|it| it.map(Fields::into_json))).collect();
    assert!(matches!(found.as_slice(), [Err(_), Ok(Some(one))] if one == r#"{"a":1}"#), "{found:?}");
    assert!(fields.take_array_fields("text").unwrap().is_none() && fields.has("text") && !fields.has("list"));
    assert!(FieldReader::new().max_members(2).item_fields(&list, &arena).is_err());
}
