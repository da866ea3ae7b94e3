//! Tests which records the collector delivers, drops and counts.

use satchel_pam::conversation::Role;
use satchel_source::{CancelToken, FileEntry, FileSet};

use super::*;
use crate::imports::ExportFiles;

struct NamedFiles(Vec<FileEntry>);

impl FileSet for NamedFiles {
    fn list(&self) -> &[FileEntry] {
        &self.0
    }

    fn open(&self, _: &str, _: u64) -> std::io::Result<Box<dyn std::io::Read + Send>> {
        Ok(Box::new(std::io::empty()))
    }
}

/// Returns the deliveries in short form, and the counts as if the run succeeded.
fn collected(
    limits: &PluginLimits,
    work: impl FnOnce(&mut RecordCollector<'_>),
) -> (Vec<String>, RunSummary) {
    let stop = StopFlag::new(CancelToken::new());
    let mut delivered = Vec::new();
    let mut out = |emitted| {
        delivered.push(short(emitted));
        SinkVerdict::Proceed
    };
    let mut collector = collector(&mut out, &stop, limits);
    work(&mut collector);
    let summary = collector.finish();
    (delivered, summary)
}

fn collector<'a>(
    out: &'a mut dyn FnMut(Emitted) -> SinkVerdict,
    stop: &'a StopFlag,
    limits: &PluginLimits,
) -> RecordCollector<'a> {
    let files = NamedFiles(vec![FileEntry { path: "a.json".to_owned(), size: 100 }]);
    let export_files = ExportFiles::new(std::sync::Arc::new(files), u64::MAX);
    RecordCollector::new(out, stop, limits, export_files.paths(), export_files.size())
}

fn short(emitted: Emitted) -> String {
    match emitted {
        Emitted::Conversation(conversation) => {
            format!("{}:{}", conversation.id, conversation.messages.len())
        }
        Emitted::Account(account) => format!("account {} {:?}", account.id, account.name),
        Emitted::Skip(skip) => format!("skip {}: {}", skip.locator, skip.reason),
        Emitted::Warning(warning) => format!("warning {}: {}", warning.locator, warning.message),
        Emitted::Progress { done, total } => format!("{done} of {total}"),
        other => format!("{other:?}"),
    }
}

fn message(id: &str) -> MessageRecord {
    MessageRecord {
        id: id.to_owned(),
        provider_message_id: None,
        role: Role::User,
        content: None,
        created_at: None,
        parent: None,
        model: None,
        is_thought: false,
        token_count: None,
        attachments: Vec::new(),
        citations: Vec::new(),
        tool_calls: Vec::new(),
        raw_metadata: None,
    }
}

fn conversation(id: &str) -> ConversationRecord {
    ConversationRecord { id: id.to_owned(), locator: format!("a.json#{id}"), ..ConversationRecord::default() }
}

fn begin(collector: &mut RecordCollector<'_>, id: &str, messages: &[&str]) {
    collector.conversation(conversation(id), RecordNotes::default(), 500);
    for id in messages {
        collector.message(message(id), RecordNotes::default(), 100);
    }
}

#[test]
fn a_conversation_is_delivered_whole_when_the_next_begins() {
    let (delivered, summary) = collected(&PluginLimits::default(), |collector| {
        begin(collector, "c1", &["m1"]);
        collector.message(message("m2"), RecordNotes::default(), 100);
        begin(collector, "c2", &[]);
    });
    assert_eq!(delivered, ["c1:2", "c2:0"]);
    assert_eq!((summary.conversations, summary.messages), (2, 2));
}

#[test]
fn an_unfinished_conversation_is_not_delivered() {
    let stop = StopFlag::new(CancelToken::new());
    let mut delivered = 0;
    let mut out = |_| {
        delivered += 1;
        SinkVerdict::Proceed
    };
    let mut collector = collector(&mut out, &stop, &PluginLimits::default());
    begin(&mut collector, "c1", &["m1"]);
    drop(collector);
    assert_eq!(delivered, 0);
}

#[test]
fn a_conversation_that_is_too_large_is_skipped_and_its_messages_counted() {
    let limits = PluginLimits { conversation_bytes: 2_000, ..PluginLimits::default() };
    let (delivered, summary) = collected(&limits, |collector| {
        begin(collector, "c1", &["m1"]);
        for at in 0..50 {
            collector.message(message(&format!("n{at}")), RecordNotes::default(), 100);
        }
        begin(collector, "c2", &["m1"]);
    });
    assert_eq!(delivered.len(), 2, "{delivered:?}");
    assert!(
        delivered[0].starts_with("skip a.json#c1: the conversation takes more than 2000 bytes"),
        "{delivered:?}"
    );
    assert_eq!(delivered[1], "c2:1");
    assert_eq!(summary.skipped.get(&RecordKind::Message), Some(&51));
    assert_eq!(summary.skipped.get(&RecordKind::Conversation), Some(&1));
}

#[test]
fn skips_and_warnings_past_the_limit_are_only_counted() {
    let limits = PluginLimits { skips: 2, warnings: 1, ..PluginLimits::default() };
    let (delivered, summary) = collected(&limits, |collector| {
        for at in 0..5 {
            let locator = format!("a.json[{at}]");
            let skip = Skip { kind: RecordKind::Message, locator: locator.clone(), reason: "r".to_owned() };
            collector.skip(skip);
            collector.warn(Warning { locator, message: "w\u{1b}".to_owned() });
        }
    });
    assert_eq!(delivered, ["skip a.json[0]: r", "warning a.json[0]: w", "skip a.json[1]: r"]);
    assert_eq!(summary.skipped.get(&RecordKind::Message), Some(&5));
    assert_eq!(summary.warnings, 5);
}

#[test]
fn progress_never_exceeds_the_size_of_the_export() {
    let (delivered, _) = collected(&PluginLimits::default(), |collector| {
        collector.progress(0, Some(u64::MAX));
        collector.progress(0, Some(u64::MAX));
    });
    assert_eq!(delivered, ["0 of 100"]);
}

#[test]
fn messages_before_any_conversation_are_skipped() {
    let (delivered, _) = collected(&PluginLimits::default(), |collector| {
        collector.message(message("m1"), RecordNotes::default(), 100);
    });
    assert_eq!(delivered, ["skip m1: this message came before any conversation"]);
}

#[test]
fn broken_lines_are_skipped() {
    let lines = b"{\"conversation\":{\"id\":\"c\",\"locator\":\"l\",\"messages\":[{\"id\":\"m\",\"role\":\"user\"}]}}\n\n{\"conversation\":5}\r\nno";
    let (delivered, summary) = collected(&PluginLimits::default(), |collector| collector.json_lines(lines));
    assert!(delivered[0].starts_with("skip emitted line 2: the plugin emitted a record that cannot be read"));
    assert!(delivered[1].starts_with("skip emitted line 3: "));
    assert_eq!(delivered[2], "c:1");
    assert_eq!(summary.skipped.get(&RecordKind::Conversation), Some(&1));
    assert_eq!(summary.skipped.get(&RecordKind::File), Some(&1));
}

fn raw(json: &str) -> satchel_pam::raw::RawObject {
    satchel_pam::raw::RawObject::parse(json.to_owned()).expect("it is an object")
}

#[test]
fn unread_text_is_warned_about_and_the_records_are_kept() {
    let (delivered, summary) = collected(&PluginLimits::default(), |collector| {
        begin(collector, "c1", &["m1"]);
        let with_text =
            MessageRecord { raw_metadata: Some(raw(r#"{"x_text":"tea is hot"}"#)), ..message("m2") };
        collector.message(with_text, RecordNotes::default(), 100);
        let hidden =
            MessageRecord { raw_metadata: Some(raw(r#"{"hidden":true,"x":"tea is hot"}"#)), ..message("m3") };
        collector.message(hidden, RecordNotes::default(), 100);
        let mut empty = conversation("c2");
        empty.raw_metadata = Some(raw(r#"{"x_messages":[{"text":"tea is hot"}]}"#));
        collector.conversation(empty, RecordNotes::default(), 500);
    });
    assert_eq!(delivered.len(), 4, "{delivered:?}");
    let (first, third) = (&delivered[0], &delivered[2]);
    assert!(first.starts_with("warning a.json#c1#m2: ") && first.contains("\"x_text\""), "{first}");
    assert_eq!(delivered[1], "c1:3");
    assert!(third.starts_with("warning a.json#c2: ") && third.contains("\"x_messages[0].text\""), "{third}");
    assert_eq!(delivered[3], "c2:0");
    assert_eq!((summary.conversations, summary.messages, summary.warnings), (2, 3, 2));
}

#[test]
fn warnings_about_unread_text_count_toward_the_limit() {
    let limits = PluginLimits { warnings: 2, ..PluginLimits::default() };
    let (delivered, summary) = collected(&limits, |collector| {
        begin(collector, "c1", &[]);
        for at in 0..50 {
            let with_text = MessageRecord {
                raw_metadata: Some(raw(r#"{"x":"tea is hot"}"#)),
                ..message(&at.to_string())
            };
            collector.message(with_text, RecordNotes::default(), 100);
        }
    });
    assert_eq!((delivered.len(), summary.warnings), (3, 50));
}

#[test]
fn accounts_are_not_counted_and_contain_no_address() {
    let lines = [
        r#"{"account":{"id":"a","name":"Ana\u001b Example","locator":"users.json[0]"}}"#,
        r#"{"account":{"id":"b","name":"ana@example.invalid","locator":"users.json[1]"}}"#,
        r#"{"account":{"id":"c","name":"+49 30 1234567","locator":"users.json[2]"}}"#,
        r#"{"account":{"id":"ana@example.invalid","locator":"users.json[3]"}}"#,
        r#"{"account":{"id":"","locator":"users.json[4]"}}"#,
    ]
    .join("\n");
    let (delivered, summary) =
        collected(&PluginLimits::default(), |collector| collector.json_lines(lines.as_bytes()));
    let expected = [
        "account a Some(\"Ana Example\")",
        "warning users.json[1]: name is a mail address or a telephone number; it is left out",
        "account b None",
        "warning users.json[2]: name is a mail address or a telephone number; it is left out",
        "account c None",
        "skip users.json[3]: its id is a mail address or a telephone number",
        "skip users.json[4]: its id is empty",
    ];
    assert_eq!(delivered, expected);
    assert_eq!((summary.conversations, summary.evidence), (0, 0));
}

#[test]
fn a_piece_that_emits_an_account_is_not_memoized() {
    let piece_noted = |account: bool| {
        let (delivered, _) = collected(&PluginLimits::default(), |collector| {
            collector.begin_piece();
            if account {
                collector.json_lines(br#"{"account":{"id":"a","locator":"l"}}"#);
            }
            collector.piece_noted([0; 32], Vec::new());
        });
        delivered.iter().any(|delivery| delivery.starts_with("PieceNoted"))
    };
    assert_eq!((piece_noted(false), piece_noted(true)), (true, false));
}

#[test]
fn a_sink_that_asks_to_stop_receives_nothing_more() {
    let stop = StopFlag::new(CancelToken::new());
    let mut delivered = 0;
    let mut out = |_| {
        delivered += 1;
        SinkVerdict::Stop
    };
    let mut collector = collector(&mut out, &stop, &PluginLimits::default());
    for id in ["c1", "c2", "c3"] {
        begin(&mut collector, id, &[]);
    }
    drop(collector);
    assert!(stop.requested());
    assert_eq!(delivered, 1);
}

#[test]
fn breaches_of_the_rules_are_listed_apart_from_what_the_plugin_reports() {
    let (_, summary) = collected(&PluginLimits::default(), |collector| {
        collector.skip(Skip {
            kind: RecordKind::Message,
            locator: "a.json[7]".to_owned(),
            reason: "no role".to_owned(),
        });
        collector.warn(Warning { locator: "a.json[8]".to_owned(), message: "odd".to_owned() });
        let late = ConversationRecord { created_at: Some(i64::MAX), ..conversation("c1") };
        collector.conversation(late, RecordNotes::default(), 500);
        for id in ["m1", "m1", ""] {
            collector.message(message(id), RecordNotes::default(), 100);
        }
        collector.json_lines(b"hello\n");
    });
    let listed: Vec<&str> = summary.breaches.iter().map(|breach| breach.locator.as_str()).collect();
    assert_eq!(listed, ["a.json#c1", "a.json#c1#", "emitted line 1", "a.json#c1#m1"]);
    assert!(summary.breaches[0].message.contains("created_at lies outside"), "{:?}", summary.breaches);
}
