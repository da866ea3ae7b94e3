//! The comparison finds every kind of fault that an importer or a store could make.

use std::collections::BTreeSet;

use satchel_pam::record::ConversationRecord;
use serde_json::json;

use super::*;

fn chat() -> Chat {
    let turn = |id: &str, parent: Option<&str>, role: &str, time: i64, text: &str| Turn {
        id: id.to_owned(),
        parent: parent.map(ToOwned::to_owned),
        role: role.to_owned(),
        time: Some(time.to_string()),
        parts: vec![("thinking".to_owned(), "hm".to_owned()), ("text".to_owned(), text.to_owned())],
    };
    Chat {
        key: "c".to_owned(),
        title: Some("Tea".to_owned()),
        created: Some("1750507200123456".to_owned()),
        current: Some("b".to_owned()),
        turns: vec![
            turn("q", None, "human", 1_750_507_200_123_456, "Tea?"),
            turn("a", Some("q"), "assistant", 1_750_507_201_000_001, "Green."),
            turn("b", Some("q"), "assistant", 1_750_507_202_000_000, "Black."),
        ],
        ..Chat::default()
    }
}

/// One change of a conversation.
type Fault = (&'static str, fn(&mut Chat));

const FAULTS: [Fault; 13] = [
    ("two siblings change places", |chat| chat.turns.swap(1, 2)),
    ("a time is rounded to whole seconds", |chat| chat.turns[1].time = Some("1750507201000000".to_owned())),
    ("a conversation's time is rounded", |chat| chat.created = Some("1750507200000000".to_owned())),
    ("a time is lost", |chat| chat.turns[0].time = None),
    ("a role is another word", |chat| chat.turns[0].role = "user".to_owned()),
    ("a part is lost", |chat| drop(chat.turns[1].parts.pop())),
    ("a thought is taken for the answer", |chat| chat.turns[1].parts[0].0 = "text".to_owned()),
    ("parts change places", |chat| chat.turns[1].parts.reverse()),
    ("a turn is lost", |chat| drop(chat.turns.pop())),
    ("a turn hangs elsewhere", |chat| chat.turns[2].parent = Some("a".to_owned())),
    ("another path is current", |chat| chat.current = Some("a".to_owned())),
    ("an id is lost", |chat| chat.turns[1].id = "1".to_owned()),
    ("the title is another", |chat| chat.title = None),
];

#[test]
fn every_fault_is_found() {
    assert_eq!(differences(vec![chat()], vec![chat()]), [""; 0]);
    for (fault, plant) in FAULTS {
        let mut rebuilt = chat();
        plant(&mut rebuilt);
        assert_eq!(differences(vec![chat()], vec![rebuilt]).len(), 1, "{fault} is not found");
    }
    assert_eq!(differences(vec![chat(), chat()], vec![chat()]).len(), 1, "one of two conversations is lost");
    assert_eq!(differences(vec![], vec![chat()]).len(), 1, "a conversation comes from nowhere");
}

#[test]
fn stored_conversations_do_not_have_the_importers_order_and_ids() {
    let record: ConversationRecord = serde_json::from_value(json!({
        "id": "made-up", "locator": "x.json[0]", "current": "made-up-a",
        "messages": [
            {"id": "made-up-late", "role": "assistant", "created_at": 9, "parent": "made-up-q", "provider_message_id": "late"},
            {"id": "made-up-a", "role": "assistant", "created_at": 5, "parent": "made-up-q"},
            {"id": "made-up-q", "role": "user", "content": {"type": "text", "text": "Tea?"}},
            {"id": "made-up-x", "role": "user", "created_at": 7, "parent": "nowhere"},
        ],
    }))
    .expect("a record");
    let stored = Stored::of_record("x", &record);
    let times: Vec<_> =
        stored.messages.iter().map(|message| (message.parent, message.time, message.created_at)).collect();
    assert_eq!(times, [(None, None, 5), (Some(0), Some(5), 5), (Some(0), Some(9), 9), (None, Some(7), 7)]);
    assert_eq!(stored.current, Some(1));
    assert!(!format!("{stored:?}").contains("made-up"), "{stored:?}");
}

#[test]
fn times_are_read_in_full() {
    let text = |value| time_text(&value);
    assert_eq!(text(json!("2025-06-21T12:00:00.123456Z")).as_deref(), Some("1750507200123456"));
    assert_eq!(text(json!("2025-06-21T14:00:00+02:00")).as_deref(), Some("1750507200000000"));
    assert_eq!(text(json!("1969-12-31 23:59:59")).as_deref(), Some("-1000000"));
    assert_eq!(text(json!("2024-02-29T00:00:00Z")).as_deref(), Some("1709164800000000"));
    assert_eq!(text(json!(1_750_507_200.123_456_f64)).as_deref(), Some("1750507200123456"));
    assert_eq!(text(json!("soon")).as_deref(), Some("soon"));
    assert_eq!(text(json!(-1.5)).as_deref(), Some("-1500000"));
    assert_eq!(text(json!(0)).as_deref(), Some("0"));
    assert_eq!(text(json!(1_750_507_200_123_i64)).as_deref(), Some("1750507200123000"));
    assert_eq!(text(json!("1750507200.25")).as_deref(), Some("1750507200250000"));
    assert_eq!(text(json!(1e300)).as_deref(), Some("1e+300"));
    assert_eq!([text(json!({})), text(json!(null))], [None, None]);
}

#[test]
fn whole_items_before_a_cut_are_read_and_skipped_ones_are_left_out() {
    let skipped = BTreeSet::from(["x.json[1]".to_owned()]);
    let read = |text: &str| {
        let file = SourceFile::new("x.json", text.as_bytes(), &[], &skipped);
        file.elements("all").into_iter().map(|(place, item)| format!("{place}={item}")).collect::<Vec<_>>()
    };
    assert_eq!(
        read(r#"[{"a":1},{"b":2},{"c":"\ud83d"},{"d"#),
        [r#"x.json[0]={"a":1}"#, "x.json[2]={\"c\":\"\u{fffd}\"}"]
    );
    assert_eq!(read(r#"{"all":[1,2]}"#), ["x.json.all[0]=1", "x.json.all[1]=2"]);
    assert_eq!(
        read("{\"a\":1}\n{\"b\":2}\n{\"c\":\"\\ud83d\\ude00\"}"),
        [r#"x.json[0]={"a":1}"#, "x.json[2]={\"c\":\"😀\"}"]
    );
}

#[test]
fn siblings_are_sorted_by_their_list_or_else_by_time() {
    let turn = |id: &str, parent: Option<&str>, time: i64| Turn {
        id: id.to_owned(),
        parent: parent.map(ToOwned::to_owned),
        time: Some(time.to_string()),
        ..Turn::default()
    };
    let turns = [
        turn("x", Some("y"), 1),
        turn("y", Some("x"), 2),
        turn("late", Some("q"), 9),
        turn("early", Some("q"), 10),
        turn("q", None, 8),
        turn("p", Some("nowhere"), 7),
        turn("below", Some("early"), 99),
    ];
    let order = |listed: &[&str]| -> Vec<String> {
        let place = |turn: &Turn| listed.iter().position(|id| *id == turn.id);
        let turns = turns.iter().map(|turn| (turn.clone(), place(turn))).collect();
        arrange(turns).into_iter().map(|turn| turn.id).collect()
    };
    assert_eq!(order(&[]), ["p", "q", "late", "early", "below", "x", "y"]);
    assert_eq!(order(&["early", "late"]), ["p", "q", "early", "below", "late", "x", "y"]);
    assert_eq!(order(&["early"]), ["p", "q", "late", "early", "below", "x", "y"], "the list leaves one out");
    let unnamed = [turn("#7", None, 5), turn("a", Some("#7"), 6)].map(|turn| (turn, None));
    let renamed = arrange(unnamed.into()).into_iter().map(|turn| (turn.id, turn.parent)).collect::<Vec<_>>();
    assert_eq!(renamed, [("#0".to_owned(), None), ("a".to_owned(), Some("#0".to_owned()))]);
}
