use satchel_merge::body::Body;
use satchel_pam::conversation::{ConversationHeader, ConversationTemporal, Provider};
use satchel_store::{Batch, Change, ConversationWrite, MessageWrite, OpenOptions, Origin};

use super::*;

/// The model, the tokens and the time of a message of the assistant.
type Answer = (Option<&'static str>, Option<u64>, i64);

fn conversation(raw: Option<&str>, model: Option<&str>, answers: &[Answer]) -> ConversationWrite {
    let header = ConversationHeader {
        id: "c".to_owned(),
        provider: Provider { name: "codex".to_owned(), ..Provider::default() },
        title: None,
        temporal: ConversationTemporal { created_at: Timestamp::saturating(1), updated_at: None },
        participants: Vec::new(),
        model: model.map(str::to_owned),
        system_instruction: None,
        is_archived: false,
        tags: Vec::new(),
        raw_metadata: raw.map(|raw| RawObject::parse(raw.to_owned()).unwrap()),
        import_metadata: None,
    };
    let messages = answers.iter().enumerate().map(|(number, answer)| message(number, *answer)).collect();
    ConversationWrite { header, current: None, opaque: Vec::new(), messages }
}

fn message(number: usize, (model, tokens, time): Answer) -> MessageWrite {
    let mut json =
        serde_json::json!({"role": "assistant", "content": {"type": "text", "text": "\u{1F41D}\n"}});
    json["model"] = model.into();
    json["token_count"] = tokens.into();
    let (body, digest) = serde_json::from_value::<Body>(json).unwrap().encode().unwrap();
    let head = MessageHead {
        id: format!("m{number}"),
        parent: None,
        role: Role::Assistant,
        created_at_micros: time,
        hidden: false,
        thought: false,
        digest,
        opaque: Vec::new(),
    };
    MessageWrite::Put { head, body }
}

/// Counts one conversation.
fn counted(grouping: Grouping, write: ConversationWrite) -> LargestGroups {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("data"), OpenOptions::default(), &mut |_| {}).unwrap();
    let origin = Origin { actor: "test".to_owned(), at_micros: 1, ..Origin::default() };
    store.commit(Batch { origin, changes: vec![Change::Conversation(Box::new(write))] }).unwrap();
    let record = store.conversation("c", None).unwrap().unwrap();
    let mut stats = ConversationStats::new(grouping);
    stats.add(&store, &record).unwrap();
    stats.largest(10)
}

fn names(found: &LargestGroups) -> Vec<(&str, u64)> {
    found.groups.iter().map(|group| (group.name.as_str(), group.totals.messages)).collect()
}

#[test]
fn a_message_without_a_model_has_that_of_its_conversation() {
    let answers = [(None, Some(3), 1), (Some("small \"one\""), Some(u64::MAX), 2), (None, Some(4), 3)];
    let found = counted(Grouping::Model, conversation(None, Some("large"), &answers));
    assert_eq!(names(&found), [("large", 2), ("small \"one\"", 1)]);
    assert_eq!(
        found.groups[0].totals,
        Totals { conversations: 1, messages: 2, tokens: 7, times: Some((1, 3)), ..Totals::default() }
    );
    let total =
        Totals { conversations: 1, messages: 3, tokens: u64::MAX, times: Some((1, 3)), cost_micros: 0 };
    assert_eq!(found.total, total);
    let unknown = counted(Grouping::Model, conversation(None, None, &answers[..1]));
    assert_eq!(names(&unknown), [("", 1)]);
}

#[test]
fn a_directory_that_is_no_text_is_none() {
    for (raw, expected) in [
        (Some(r#"{"a": {"cwd": "/inner"}, "cwd": "/home/noor/\u0062ees"}"#), "/home/noor/bees"),
        (Some(r#"{"directory": "/home/rosa"}"#), "/home/rosa"),
        (Some(r#"{"directory": 1, "cwd": null, "working_dir": "/home/tomas"}"#), "/home/tomas"),
        (Some(r#"{"cwd": ["/home"]}"#), ""),
        (Some(r#"{"a": 1}"#), ""),
        (None, ""),
    ] {
        let found = counted(Grouping::Project, conversation(raw, None, &[(None, None, 1)]));
        assert_eq!(names(&found), [(expected, 1)], "{raw:?}");
    }
    let long = format!(r#"{{"cwd": "{}"}}"#, "ü".repeat(MAX_NAME_BYTES));
    let found = counted(Grouping::Project, conversation(Some(&long), None, &[]));
    assert_eq!(found.groups[0].name.len(), MAX_NAME_BYTES);
    assert_eq!(found.groups[0].totals, Totals { conversations: 1, ..Totals::default() });
}

#[test]
fn months_begin_in_utc_and_the_newest_comes_first() {
    let second = 1_000_000;
    let march = 1_772_323_200 * second; // 2026-03-01T00:00:00Z
    let answers = [(None, None, march - 1), (None, None, march), (None, None, UNKNOWN_TIME)];
    let found = counted(Grouping::Month, conversation(None, None, &answers));
    assert_eq!(names(&found), [("2026-03", 1), ("2026-02", 1), ("", 1)]);
    assert_eq!(found.total.times, Some((march - 1, march)));
}

#[test]
fn more_groups_than_are_told_apart_are_counted_together() {
    let mut stats = ConversationStats::new(Grouping::Project);
    let one = Totals { conversations: 1, messages: 2, tokens: 3, cost_micros: 4, times: Some((5, 6)) };
    for number in 0..MAX_GROUPS + 2 {
        stats.count(format!("/{number}"), one);
    }
    stats.count("/0".to_owned(), one);
    let found = stats.largest(1);
    assert_eq!(names(&found), [("/0", 4)]);
    assert_eq!(found.other_groups, MAX_GROUPS as u64);
    let others = MAX_GROUPS as u64 + 1;
    let expected = Totals {
        conversations: others,
        messages: others * 2,
        tokens: others * 3,
        cost_micros: others * 4,
        times: Some((5, 6)),
    };
    assert_eq!(found.others, expected);
}

#[test]
fn memory_for_the_models_of_one_conversation_is_bounded() {
    let mut stats = ConversationStats::new(Grouping::Model);
    let message = Totals::of_message(7, &CountedFields::default());
    stats.count("known".to_owned(), Totals { conversations: 1, ..message });
    let mut counts = ConversationCounts::default();
    for number in 0..3 * MAX_GROUPS {
        counts.add(format!("model {number}"), message, &stats.groups);
    }
    for name in ["known", "model 0", "known"] {
        counts.add(name.to_owned(), message, &stats.groups);
    }
    assert_eq!(counts.groups.len(), MAX_GROUPS + 1);
    stats.count_all(counts);
    let found = stats.largest(2);
    assert_eq!(names(&found), [("known", 3), ("model 0", 2)]);
    assert_eq!(found.others.messages, 3 * MAX_GROUPS as u64 - 1);
    assert_eq!(found.others.times, Some((7, 7)));
}

#[test]
fn the_cost_of_a_message_is_where_programs_write_it() {
    for (raw, expected) in [
        (r#"{"cost": 0.0123, "parts": [{"cost": 0.004}]}"#, 12_300),
        (r#"{"costUSD": 1.5}"#, 1_500_000),
        (r#"{"metadata": {"usage": {"cost": 0.0000005, "costSource": "estimated"}}}"#, 1),
        (r#"{"cost": null, "costUSD": 2}"#, 2_000_000),
        (r#"{"cost": 1000000}"#, 1_000_000_000_000),
        (r#"{"parts": [{"cost": 0.004}]}"#, 0),
        (r#"{"cost": -1}"#, 0),
        (r#"{"cost": 1e300}"#, 0),
        (r#"{"cost": "0.01"}"#, 0),
        (r#"{"cost": {"total": 3}, "metadata": "usage"}"#, 0),
        (r#"["cost"]"#, 0),
    ] {
        assert_eq!(cost_micros(raw), expected, "{raw}");
    }
}
