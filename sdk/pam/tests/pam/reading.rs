//! Reading documents that are hostile, foreign, or of a later version.

use satchel_pam::{
    issue::{Issue, Severity},
    memory::{MemoryType, Status},
    parse::{self, ChecksumStatus, ScanOptions, UNKNOWN_KEY},
    raw::{MAX_DEPTH, RawError, RawObject},
};
use serde_json::{Value, json};

use crate::full;

fn rules(issues: &[Issue]) -> Vec<(&str, &str)> {
    issues.iter().map(|issue| (issue.rule, issue.path.as_str())).collect()
}

fn store_with(memory_text: &str) -> String {
    format!(
        r#"{{"schema":"portable-ai-memory","schema_version":"1.0","owner":{{"id":"o"}},"memories":[{memory_text}],"integrity":{{"checksum":"sha256:{}","total_memories":1}}}}"#,
        "0".repeat(64)
    )
}

fn memory_with(extra: &str) -> String {
    let memory = serde_json::to_string(&full::small_memory("m", "x")).unwrap();
    format!("{},{extra}}}", &memory[..memory.len() - 1])
}

#[test]
fn texts_that_are_no_json_are_refused_with_the_place() {
    let cases = [
        ("", "R-2.1", "cut off"),
        ("{", "R-2.1", "cut off"),
        ("[]", "R-2.1", "an object expected"),
        ("{\"a\":}", "R-2.1", "a value expected at byte 5"),
        ("{\"a\":1,}", "R-2.1", "a key in quotes expected"),
        ("{\"a\":01}", "R-2.1", "a comma or the end expected"),
        ("{\"a\":\"\n\"}", "R-2.1", "control character"),
        ("{\"a\":\"\\x\"}", "R-2.1", "an escape does not exist"),
        ("{} x", "R-2.1", "the end of the text expected"),
        ("{\"a\":NaN}", "A-13", "NaN"),
        ("{\"a\":-Infinity}", "A-13", "NaN"),
        ("{\"a\":1e400}", "A-13", "too large"),
    ];
    for (text, rule, message) in cases {
        for (document, issues) in [
            {
                let (document, issues) = parse::memory_store(text.as_bytes());
                (document.is_some(), issues)
            },
            {
                let (document, issues) = parse::conversation(text.as_bytes());
                (document.is_some(), issues)
            },
            {
                let (document, issues) = parse::embeddings(text.as_bytes());
                (document.is_some(), issues)
            },
        ] {
            assert!(!document, "{text}");
            assert!(
                issues.iter().any(|one| one.rule == rule && one.message.contains(message)),
                "{text}: {issues:?}"
            );
        }
    }
    assert_eq!(rules(&parse::memory_store(b"{\"a\":\"\xff\"}").1), [("R-2.1", "$")]);
}

#[test]
fn depth_is_bounded_and_never_recursed() {
    for deep in ["[".repeat(1_000_000), "{\"a\":".repeat(1_000_000)] {
        let text = store_with(&memory_with(&format!("\"metadata\":{{\"d\":{deep}")));
        let (document, issues) = parse::memory_store(text.as_bytes());
        assert!(document.is_none());
        assert!(issues[0].message.contains("128 levels"), "{issues:?}");
        assert!(matches!(RawObject::parse(format!("{{\"d\":{deep}")), Err(RawError::Json(_))));
    }
}

#[test]
fn a_key_that_stands_twice_is_refused() {
    let twice = store_with(&memory_with("\"metadata\":{\"a\":1,\"\\u0061\":2}"));
    let (document, issues) = parse::memory_store(twice.as_bytes());
    assert!(document.is_none());
    assert!(issues.iter().any(|one| one.rule == "A-13" && one.path == "$.memories[0]"), "{issues:?}");
    let root = store_with(&memory_with("\"summary\":\"x\"")).replacen('{', "{\"schema\":\"other\",", 1);
    let (document, issues) = parse::memory_store(root.as_bytes());
    assert!(document.is_none());
    assert!(issues.iter().any(|one| one.rule == "A-13" && one.path == "$.schema"), "{issues:?}");
    let many: Vec<String> = (0..40).map(|at| format!("\"k{at}\":0")).chain(["\"k7\":1".to_owned()]).collect();
    let many = store_with(&memory_with(&format!("\"metadata\":{{{}}}", many.join(","))));
    assert!(parse::memory_store(many.as_bytes()).0.is_none());
}

#[test]
fn odd_but_readable_texts_are_read_with_a_note() {
    let text = store_with(&memory_with("\"summary\":\"\\ud83d!\""));
    let (document, issues) = parse::memory_store(format!("\u{feff}{text}").as_bytes());
    assert_eq!(document.unwrap().memories[0].summary.as_deref(), Some("\u{fffd}!"));
    assert_eq!(rules(&issues), [("A-13", "$"), ("A-8", "$.memories[0]")]);
}

#[test]
fn whole_numbers_may_be_written_as_floats() {
    let file = String::from_utf8(full::conversation_file())
        .unwrap()
        .replace("\"token_count\": 12", "\"token_count\": 1.2e1");
    let (document, issues) = parse::conversation(file.as_bytes());
    assert_eq!(issues, []);
    assert_eq!(document.unwrap().messages[1].token_count, Some(12));
}

#[test]
fn integers_beyond_doubles_have_no_checksum_and_floats_do() {
    for (number, canonical) in [
        ("9007199254740992", false),
        ("-9007199254740992", false),
        ("123456789012345678901234567890", false),
        ("9007199254740992.0", true),
        ("1e300", true),
        ("9007199254740991", true),
    ] {
        let text = store_with(&memory_with(&format!("\"metadata\":{{\"n\":{number}}}")));
        let checksum = parse::store_reading(text.as_bytes()).checksum;
        assert_eq!(matches!(checksum, ChecksumStatus::Mismatch { .. }), canonical, "{number}: {checksum:?}");
        assert_eq!(matches!(checksum, ChecksumStatus::NotCanonical(_)), !canonical, "{number}: {checksum:?}");
    }
}

#[test]
fn one_bad_record_costs_no_other() {
    let text = store_with(&format!("7,{},{{\"id\":\"x\"}}", memory_with("\"summary\":5")));
    let (document, issues) = parse::memory_store(text.as_bytes());
    let memories = document.unwrap().memories;
    assert_eq!(memories.len(), 1);
    assert_eq!(memories[0].summary, None);
    assert!(issues.iter().all(|issue| issue.severity == Severity::Error) && issues.len() >= 3);
}

#[test]
fn nulls_mean_absent_where_the_schema_has_them() {
    let nulls = ["custom_type", "summary", "embedding_ref"];
    for key in nulls {
        let (memory, issues) = parse::memory(memory_with(&format!("\"{key}\":null")).as_bytes());
        assert_eq!((memory, issues), (Some(full::small_memory("m", "x")), vec![]), "{key}");
    }
    for key in ["confidence", "access", "metadata"] {
        let (memory, issues) = parse::memory(memory_with(&format!("\"{key}\":null")).as_bytes());
        assert_eq!(memory, Some(full::small_memory("m", "x")), "{key}");
        assert_eq!((issues.len(), issues[0].severity), (1, Severity::Error), "{key}");
    }
}

fn later(bytes: &[u8]) -> Value {
    let mut document: Value = serde_json::from_slice(bytes).unwrap();
    document["schema_version"] = json!("1.3");
    document
}

#[test]
fn a_later_minor_version_is_preserved_and_warned_about() {
    let mut document = later(&full::store());
    document["mood"] = json!("good");
    document["relations"][0]["weight"] = json!(3);
    document["memories"][1]["color"] = json!({"a": [1]});
    document["memories"][1]["temporal"]["heard_at"] = json!("noon");
    document["memories"][1]["type"] = json!("habit");
    document["memories"][1]["status"] = json!("dormant");
    document["relations"][0]["type"] = json!("echoes");
    let (store, issues) = parse::memory_store(document.to_string().as_bytes());
    assert!(
        issues.iter().all(|issue| issue.severity == Severity::Warning && issue.rule == "A-29"),
        "{issues:?}"
    );
    let store = store.unwrap();
    let memory = &store.memories[1];
    assert_eq!((memory.memory_type, memory.custom_type.as_deref()), (MemoryType::Custom, Some("habit")));
    assert_eq!(memory.status, Status::Archived);
    let kept =
        json!({"color": {"a": [1]}, "temporal.heard_at": "noon", "type": "habit", "status": "dormant"});
    assert_eq!(memory.metadata[UNKNOWN_KEY], kept);
    let unknown: Vec<(&str, &Value)> =
        store.unknown.iter().map(|(path, value)| (path.as_str(), value)).collect();
    let expected = [
        ("$.mood", json!("good")),
        ("$.relations[0].type", json!("echoes")),
        ("$.relations[0].weight", json!(3)),
    ];
    assert_eq!(unknown, expected.each_ref().map(|(path, value)| (*path, value)));
}

#[test]
fn unknown_keys_of_messages_stay_with_the_message() {
    let mut document = later(&full::conversation_file());
    document["messages"][1]["feeling"] = json!("calm");
    document["messages"][2]["role"] = json!("narrator");
    let (conversation, issues) = parse::conversation(document.to_string().as_bytes());
    assert!(issues.iter().all(|issue| issue.severity == Severity::Warning));
    let conversation = conversation.unwrap();
    let raw = conversation.messages[1].raw_metadata.as_ref().unwrap().to_map();
    assert_eq!(raw[UNKNOWN_KEY], json!({"feeling": "calm"}));
    assert_eq!(raw["finish"], json!({"reason": "stop"}));
    let raw = conversation.messages[2].raw_metadata.as_ref().unwrap().to_map();
    assert_eq!(raw[UNKNOWN_KEY], json!({"role": "narrator"}));
}

#[test]
fn unknown_keys_of_our_version_are_errors_and_still_preserved() {
    let (memory, issues) = parse::memory(memory_with("\"color\":1").as_bytes());
    assert_eq!(memory.unwrap().metadata[UNKNOWN_KEY], json!({"color": 1}));
    assert_eq!(rules(&issues), [("R-3.9", "$.color")]);
    assert_eq!(issues[0].severity, Severity::Error);
}

#[test]
fn consent_that_cannot_be_read_is_none() {
    let (memory, issues) = parse::memory(memory_with("\"access\":{\"exportable\":\"yes\"}").as_bytes());
    assert!(!memory.unwrap().exportable() && !issues.is_empty());
}

#[test]
fn issues_of_a_hostile_document_are_bounded() {
    let text = store_with(&vec!["0"; 50_000].join(","));
    let issues = parse::memory_store(text.as_bytes()).1;
    assert_eq!(issues.len(), 10_001);
    assert!(issues[10_000].message.contains("40000 more"), "{}", issues[10_000]);
}

#[test]
fn memories_out_of_order_have_the_same_checksum() {
    let mut document: Value = serde_json::from_slice(&full::store()).unwrap();
    document["memories"].as_array_mut().unwrap().reverse();
    assert_eq!(parse::store_reading(document.to_string().as_bytes()).checksum, ChecksumStatus::Spec);
}

#[test]
fn documents_tell_their_kind_by_their_head() {
    assert_eq!(parse::schema_of(&full::store()).as_deref(), Some("portable-ai-memory"));
    assert_eq!(
        parse::schema_of(&full::conversation_file()[..80]).as_deref(),
        Some("portable-ai-memory-conversation")
    );
    for text in ["", "[]", "{\"a\":{\"schema\":\"x\"}}", "{\"schema\":5}", "nonsense"] {
        assert_eq!(parse::schema_of(text.as_bytes()), None, "{text}");
    }
}

#[test]
fn raw_objects_are_made_safe_and_else_left_alone() {
    let text = "{ \"b\" : 1.00, \"a\":[true , null]}";
    assert_eq!(RawObject::parse(text.to_owned()).unwrap().as_str(), text);
    let (object, repairs) =
        RawObject::parse_noting("{\"a\":\"\\ud83d \\ud83d\\ude00\",\"\\udc00\":\"\\\\ud83d\"}".to_owned())
            .unwrap();
    assert_eq!(object.as_str(), "{\"a\":\"\\ufffd \\ud83d\\ude00\",\"\\ufffd\":\"\\\\ud83d\"}");
    assert!(repairs.lone_surrogates && !repairs.duplicate_keys);
    let (object, repairs) =
        RawObject::parse_noting("{\"a\":1,\"b\":{\"c\":1,\"\\u0063\":2.50},\"a\":[]}".to_owned()).unwrap();
    assert_eq!(object.as_str(), "{\"b\":{\"c\":2.50},\"a\":[]}");
    assert!(repairs.duplicate_keys);
    assert_eq!(RawObject::parse("[]".to_owned()), Err(RawError::NotAnObject));
    assert!(RawObject::parse("{\"a\":1e999}".to_owned()).is_err());
    let deepest = format!("{{\"a\":{}{}}}", "[".repeat(MAX_DEPTH - 1), "]".repeat(MAX_DEPTH - 1));
    assert!(RawObject::parse(deepest.clone()).is_ok());
    assert!(RawObject::parse(deepest.replacen('[', "[[", 1).replacen(']', "]]", 1)).is_err());
    assert_eq!(RawObject::default().as_str(), "{}");
}

#[test]
fn a_raw_object_takes_one_more_key() {
    let object = RawObject::parse("{ \"a\" : {\"b\": 1} , \"c\": 2 }".to_owned()).unwrap();
    assert_eq!(object.with("c", &json!("x")).as_str(), "{ \"a\" : {\"b\": 1} , \"c\":\"x\" }");
    assert_eq!(object.with("b", &json!(null)).as_str(), "{ \"a\" : {\"b\": 1} , \"c\": 2,\"b\":null}");
    assert_eq!(
        object.with("a", &json!(0)).to_map(),
        serde_json::from_str::<serde_json::Map<_, _>>("{\"a\":0,\"c\":2}").unwrap()
    );
    assert_eq!(RawObject::default().with("k\"", &json!([])).as_str(), "{\"k\\\"\":[]}");
}

fn store_of(memories: &[&str]) -> String {
    format!(
        r#"{{"schema":"portable-ai-memory","schema_version":"1.0","owner":{{"id":"o"}},"memories":[{}],"relations":[]}}"#,
        memories.join(",")
    )
}

fn ids(reading: &parse::StoreReading) -> Vec<&str> {
    let document = reading.document.as_ref().unwrap();
    document.memories.iter().map(|memory| memory.id.as_str()).collect()
}

#[test]
fn salvaging_leaves_out_only_the_entry_that_is_broken() {
    let memory = |id: &str| serde_json::to_string(&full::small_memory(id, "x")).unwrap();
    let (first, last) = (memory("first"), memory("last"));
    let deep = format!("{}{}", "[".repeat(500), "]".repeat(500));
    let twice = memory_with(r#""id":"again""#);
    for (broken, reason) in [
        (deep.as_str(), "levels of nesting"),
        (r#"{"a":NaN}"#, "NaN"),
        (r#"{"a":1e999,"b":"]}"}"#, "too large"),
        (r#"{"a":"\x"}"#, "escape"),
        (r#"{"a":}"#, "a value expected"),
        ("7", "not an object"),
        ("{}", "$.memories[1].id is missing"),
        (twice.as_str(), "stands twice"),
    ] {
        let text = store_of(&[&first, broken, &last]);
        let (reading, report) = parse::salvage_store(text.as_bytes());
        assert_eq!(ids(&reading), ["first", "last"], "{broken}");
        assert_eq!(report.unreadable.len(), 1, "{broken}");
        assert_eq!(report.unreadable[0].path(), "$.memories[1]");
        assert!(report.unreadable[0].reason.contains(reason), "{broken}: {}", report.unreadable[0].reason);
        assert_eq!((report.broken, reading.count), (None, 3));
    }
}

#[test]
fn salvaging_a_cut_store_gives_the_entries_before_the_cut_wherever_it_is() {
    let memory = |id: &str| serde_json::to_string(&full::small_memory(id, "x")).unwrap();
    let text = store_of(&[&memory("one"), &memory("two")]);
    let whole = parse::salvage_store(text.as_bytes());
    assert_eq!((ids(&whole.0), whole.1.broken), (vec!["one", "two"], None));
    for end in 0..text.len() {
        let (reading, report) = parse::salvage_store(&text.as_bytes()[..end]);
        assert!(report.broken.is_some_and(|problem| problem.offset <= end), "cut at {end}");
        if let Some(document) = reading.document {
            let whole: Vec<_> =
                ["one", "two"].iter().filter(|id| text[..end].contains(&memory(id))).copied().collect();
            let found: Vec<_> = document.memories.iter().map(|memory| memory.id.as_str()).collect();
            assert_eq!(found, whole, "cut at {end}");
        }
    }
}

#[test]
fn a_scan_ends_as_soon_as_it_is_told_to() {
    let memories: Vec<String> = (0..20)
        .rev()
        .map(|n| serde_json::to_string(&full::small_memory(&format!("{n:02}"), "x")).unwrap())
        .collect();
    let memories: Vec<&str> = memories.iter().map(String::as_str).collect();
    // A checksum that fits in no order makes it hash all of them twice more.
    let integrity = format!(r#""integrity":{{"checksum":"sha256:{}"}},"memories":["#, "0".repeat(64));
    let text = store_of(&memories).replace(r#""memories":["#, &integrity);
    let asked = std::cell::Cell::new(0);
    let after = |most: usize| {
        asked.set(0);
        let keep_going = || {
            asked.set(asked.get() + 1);
            asked.get() <= most
        };
        let options = ScanOptions { salvage: true, keep_going: &keep_going };
        let read = parse::scan_store(&text.as_bytes(), options, &mut |_, _| {}).unwrap();
        (read, asked.get())
    };
    let (whole, all) = after(usize::MAX);
    let reading = whole.expect("the scan goes on");
    assert!(matches!(reading.checksum, ChecksumStatus::Mismatch { .. }));
    assert!(all > 3 * memories.len(), "asked {all} times");
    for most in 0..all {
        let (read, asked) = after(most);
        // Once when it stops, and once where it is seen that it has.
        assert!(read.is_none() && asked <= most + 2, "asked {asked} times, wanted {most}");
    }
}

#[test]
fn salvaging_does_not_hang_on_lists_without_values() {
    for list in ["[,1]", "[1,,2]", "[1}", "[}", "[1 2]", "[\"", "[:]", "[1,]"] {
        let text = store_of(&[]).replace(r#""memories":[]"#, &format!(r#""memories":{list}"#));
        let (reading, _) = parse::salvage_store(text.as_bytes());
        assert!(reading.document.is_none_or(|document| document.memories.is_empty()), "{list}");
    }
}

#[test]
fn a_key_that_was_added_is_taken_off_to_the_byte() {
    for text in ["{}", r#"{"a":1}"#, r#"{"a":{"k":2},"b":"k"}"#, r#"{ "a" : [1, 2] }"#] {
        let object = RawObject::parse(text.to_owned()).unwrap();
        let with = object.with("k", &json!({"x": [1]})).with("l", &json!(null));
        let bare = with.without("l").without("k");
        assert_eq!(bare.to_map(), object.to_map());
        assert_eq!(bare.with("k", &json!(1)), object.with("k", &json!(1)), "{text}");
        assert_eq!(object.without("absent"), object);
    }
    let object = RawObject::parse(r#"{"k":1, "a":2}"#.to_owned()).unwrap();
    assert_eq!(object.without("k").as_str(), r#"{"a":2}"#);
    assert_eq!(object.without("a").as_str(), r#"{"k":1}"#);
}
