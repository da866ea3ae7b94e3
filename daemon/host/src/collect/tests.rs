//! What the collector delivers, drops and counts.

use std::{
    io::{self, Read},
    sync::Arc,
};

use satchel_pam::conversation::Role;

use super::*;
use crate::{
    channel::{self, Receiver},
    files::{Entry, Files},
};

struct Named(Vec<Entry>);

impl Files for Named {
    fn list(&self) -> &[Entry] {
        &self.0
    }

    fn open(&self, _: &str, _: u64) -> io::Result<Box<dyn Read + Send>> {
        Ok(Box::new(io::empty()))
    }
}

fn library() -> Library {
    Library::new(Arc::new(Named(vec![Entry { path: "a.json".to_owned(), size: 100 }])), u64::MAX)
}

fn collector(limits: &Limits) -> (Collector, Receiver<Emitted>) {
    // The tests read only after they wrote, so the queue must never be full.
    let (sender, receiver) = channel::bounded(usize::MAX);
    (Collector::new(sender, limits, 100), receiver)
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

fn conversation(id: &str, messages: &[&str]) -> ConversationRecord {
    ConversationRecord {
        id: id.to_owned(),
        locator: format!("a.json#{id}"),
        messages: messages.iter().map(|id| message(id)).collect(),
        ..ConversationRecord::default()
    }
}

fn begin(collector: &mut Collector, id: &str, messages: &[&str]) -> Taken {
    collector.conversation(conversation(id, &[]), Notes::default())?;
    messages.iter().try_for_each(|id| collector.message(message(id), Notes::default(), &library()))
}

/// What came out, in short.
fn delivered(receiver: &Receiver<Emitted>) -> Vec<String> {
    std::iter::from_fn(|| receiver.recv())
        .map(|emitted| match emitted {
            Emitted::Conversation(conversation) => {
                format!("{}:{}", conversation.id, conversation.messages.len())
            }
            Emitted::Skip(skip) => format!("skip {}: {}", skip.locator, skip.reason),
            Emitted::Warning(warning) => format!("warning {}: {}", warning.locator, warning.message),
            Emitted::Progress { done, total } => format!("{done} of {total}"),
            other => format!("{other:?}"),
        })
        .collect()
}

#[test]
fn a_conversation_comes_whole_when_the_next_begins() -> Result<(), RunError> {
    let (mut collector, receiver) = collector(&Limits::default());
    begin(&mut collector, "c1", &["m1"])?;
    collector.message(message("m2"), Notes::default(), &library())?;
    begin(&mut collector, "c2", &[])?;
    let summary = collector.finish()?;
    assert_eq!(delivered(&receiver), ["c1:2", "c2:0"]);
    assert_eq!((summary.conversations, summary.messages), (2, 2));
    Ok(())
}

#[test]
fn an_unfinished_conversation_is_not_delivered() -> Result<(), RunError> {
    let (mut collector, receiver) = collector(&Limits::default());
    begin(&mut collector, "c1", &["m1"])?;
    drop(collector);
    assert_eq!(delivered(&receiver), Vec::<String>::new());
    Ok(())
}

#[test]
fn a_conversation_that_is_too_large_is_skipped_and_its_messages_counted() -> Result<(), RunError> {
    let (mut collector, receiver) = collector(&Limits { conversation_bytes: 2_000, ..Limits::default() });
    begin(&mut collector, "c1", &["m1"])?;
    for at in 0..50 {
        collector.message(message(&format!("n{at}")), Notes::default(), &library())?;
    }
    begin(&mut collector, "c2", &["m1"])?;
    let summary = collector.finish()?;
    let delivered = delivered(&receiver);
    assert_eq!(delivered.len(), 2, "{delivered:?}");
    assert!(
        delivered[0].starts_with("skip a.json#c1: the conversation takes more than 2000 bytes"),
        "{delivered:?}"
    );
    assert_eq!(delivered[1], "c2:1");
    assert_eq!(summary.skipped.get(&RecordKind::Message), Some(&51));
    assert_eq!(summary.skipped.get(&RecordKind::Conversation), Some(&1));
    Ok(())
}

#[test]
fn emitted_bytes_are_bounded() {
    let (mut collector, _receiver) = collector(&Limits { emitted_bytes: Some(10_000), ..Limits::default() });
    let ended = (0..1_000).find_map(|_| begin(&mut collector, "c", &[]).err());
    assert_eq!(ended, Some(RunError::TooMuchEmitted(10_000)));
}

#[test]
fn empty_calls_are_bounded_too() {
    let (mut collector, _receiver) = collector(&Limits { emitted_bytes: Some(10_000), ..Limits::default() });
    let library = library();
    assert!((0..1_000).any(|_| collector.progress(None, &library).is_err()));
    assert!((0..1_000).any(|_| collector.evidence(std::iter::empty()).is_err()));
}

#[test]
fn skips_and_warnings_past_the_limit_are_only_counted() -> Result<(), RunError> {
    let (mut collector, receiver) = collector(&Limits { skips: 2, warnings: 1, ..Limits::default() });
    for at in 0..5 {
        let locator = format!("a.json[{at}]");
        let skip = Skip { kind: RecordKind::Message, locator: locator.clone(), reason: "r".to_owned() };
        collector.skip(skip)?;
        collector.warn(Warning { locator, message: "w\u{1b}".to_owned() })?;
    }
    let summary = collector.finish()?;
    assert_eq!(delivered(&receiver), ["skip a.json[0]: r", "warning a.json[0]: w", "skip a.json[1]: r"]);
    assert_eq!(summary.skipped.get(&RecordKind::Message), Some(&5));
    assert_eq!(summary.warnings, 5);
    Ok(())
}

#[test]
fn progress_is_the_hosts_own_count() -> Result<(), RunError> {
    let (mut collector, receiver) = collector(&Limits::default());
    collector.progress(Some(u64::MAX), &library())?;
    collector.progress(Some(u64::MAX), &library())?;
    drop(collector);
    assert_eq!(delivered(&receiver), ["0 of 100"]);
    Ok(())
}

#[test]
fn messages_before_any_conversation_are_skipped() -> Result<(), RunError> {
    let (mut collector, receiver) = collector(&Limits::default());
    collector.message(message("m1"), Notes::default(), &library())?;
    drop(collector);
    assert_eq!(delivered(&receiver), ["skip m1: this message came before any conversation"]);
    Ok(())
}

#[test]
fn lines_are_records_and_broken_ones_are_skipped() -> Result<(), RunError> {
    let (mut collector, receiver) = collector(&Limits::default());
    let lines = b"{\"conversation\":{\"id\":\"c\",\"locator\":\"l\",\"messages\":[{\"id\":\"m\",\"role\":\"user\"}]}}\n\n{\"conversation\":5}\r\nno";
    collector.json_lines(lines, &library())?;
    let summary = collector.finish()?;
    let delivered = delivered(&receiver);
    assert!(delivered[0].starts_with("skip emitted line 2: the plugin emitted a record that cannot be read"));
    assert!(delivered[1].starts_with("skip emitted line 3: "));
    assert_eq!(delivered[2], "c:1");
    assert_eq!(summary.skipped.get(&RecordKind::Conversation), Some(&1));
    assert_eq!(summary.skipped.get(&RecordKind::File), Some(&1));
    Ok(())
}

#[test]
fn a_gone_receiver_ends_the_run() -> Result<(), RunError> {
    let (mut collector, receiver) = collector(&Limits::default());
    drop(receiver);
    begin(&mut collector, "c1", &[])?;
    assert_eq!(collector.finish(), Err(RunError::Cancelled));
    Ok(())
}
