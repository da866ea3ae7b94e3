//! Tests with a store: what was recorded stays, whatever is imported or undone.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    thread,
};

use proptest::prelude::*;
use satchel_pam::conversation::ContentKind;
use satchel_registry::Plugins;
use satchel_source::Limits;
use satchel_store::{ConversationRecord, OpenOptions};
use tempfile::TempDir;

use super::*;
use crate::conversation_record;
use crate::ingest::Imports;

/// 2026-01-01, in microseconds.
const START: i64 = 1_767_225_600_000_000;

/// A clock that stands still, so that times cannot tell the order of calls.
struct TestClock(AtomicI64);

impl Clock for TestClock {
    fn now_micros(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

struct Fixture {
    dir: TempDir,
    store: Store,
    imports: Imports,
    clock: Arc<TestClock>,
}

impl Fixture {
    fn new() -> Self {
        Self::open(tempfile::tempdir().unwrap(), START)
    }

    fn open(dir: TempDir, now: i64) -> Self {
        let store = Store::open(dir.path(), OpenOptions::default(), &mut |_| {}).unwrap();
        let clock = Arc::new(TestClock(AtomicI64::new(now)));
        let plugins = Arc::new(Plugins::built_in(None));
        let limits = satchel_host::PluginLimits::default();
        let shared = Arc::clone(&clock) as Arc<dyn Clock>;
        let imports = Imports::new(store.clone(), plugins, shared, Limits::default(), limits).unwrap();
        Self { dir, store, imports, clock }
    }

    fn restarted(self) -> Self {
        let Self { dir, store, imports, clock } = self;
        drop(imports);
        store.close().unwrap();
        Self::open(dir, clock.0.load(Ordering::Relaxed))
    }

    fn record(&self, messages: &[NewMessage]) -> Recorded {
        self.imports.recordings().record(&call(None), &conversation(messages)).unwrap()
    }

    fn append(&self, id: &str, parent: &str, new: &[NewMessage]) -> Result<Recorded, RecordingError> {
        self.imports.recordings().append(&call(None), id, parent, new)
    }

    fn stored(&self, id: &str) -> ConversationRecord {
        self.store.conversation(id, None).unwrap().unwrap()
    }

    /// Returns each message with its parent.
    fn tree(&self, id: &str) -> BTreeSet<(String, Option<String>)> {
        self.stored(id).heads.into_iter().map(|head| (head.id, head.parent)).collect()
    }
}

fn call(request: Option<(&str, &str)>) -> RecordingContext {
    let request = request.map(|(id, body)| RequestKey { id: id.to_owned(), body: body.to_owned() });
    RecordingContext { actor: "owner".to_owned(), device: None, request }
}

fn message(role: Role, text: &str) -> NewMessage {
    NewMessage {
        role,
        content: Content { kind: ContentKind::Text, text: Some(text.to_owned()), parts: Vec::new() },
        created_at: None,
        name: String::new(),
        model: String::new(),
        client_id: String::new(),
    }
}

fn named(client_id: &str, text: &str) -> NewMessage {
    NewMessage { client_id: client_id.to_owned(), ..message(Role::User, text) }
}

fn conversation(messages: &[NewMessage]) -> NewConversation {
    NewConversation {
        platform: "my-chat".to_owned(),
        agent_id: "agent_001".to_owned(),
        user_id: "user_001".to_owned(),
        messages: messages.to_vec(),
        ..NewConversation::default()
    }
}

fn field(error: RecordingError) -> String {
    match error {
        RecordingError::Invalid { field, .. } => field,
        error => error.to_string(),
    }
}

#[test]
fn a_conversation_is_a_chain_of_its_messages() {
    let fixture = Fixture::new();
    let recorded =
        fixture.record(&[message(Role::User, "用户消息内容"), message(Role::Assistant, "AI助手回复内容")]);
    let stored = fixture.stored(&recorded.conversation);
    assert_eq!(stored.revision.get(), recorded.revision);
    assert_eq!(stored.header.provider.name, "my-chat");
    let shown = attribution(&stored.header).unwrap();
    assert_eq!(shown.agent_id.as_deref(), Some("agent_001"));
    assert_eq!(shown.user_id.as_deref(), Some("user_001"));
    assert!(Uuid::parse_str(&shown.session_id.unwrap()).is_ok(), "a session is generated");
    let [first, second] = recorded.messages.try_into().unwrap();
    let expected = BTreeSet::from([(first.clone(), None), (second.clone(), Some(first))]);
    assert_eq!(fixture.tree(&recorded.conversation), expected);
    assert_eq!(conversation_record::leaf(&stored), Some(second.as_str()));
    let summary = summary(&fixture.store, &stored).unwrap();
    assert_eq!(summary.as_deref(), Some("Conversation with 2 turns: 用户消息内容..."));
}

#[test]
fn an_empty_conversation_can_be_continued() {
    let fixture = Fixture::new();
    let id = fixture.record(&[]).conversation;
    let stored = fixture.stored(&id);
    assert_eq!(summary(&fixture.store, &stored).unwrap().as_deref(), Some("Empty conversation"));
    let appended = fixture.append(&id, "", &[message(Role::Assistant, "Hello")]).unwrap();
    assert_eq!(fixture.tree(&id), BTreeSet::from([(appended.messages[0].clone(), None)]));
    let stored = fixture.stored(&id);
    let expected = "Conversation with 1 turns: No user message...";
    assert_eq!(summary(&fixture.store, &stored).unwrap().as_deref(), Some(expected));
}

#[test]
fn messages_are_appended_to_the_last_one_or_to_a_named_one() {
    let fixture = Fixture::new();
    let recorded = fixture.record(&[message(Role::User, "one")]);
    let (id, first) = (&recorded.conversation, &recorded.messages[0]);
    let second = fixture.append(id, "", &[message(Role::Assistant, "two")]).unwrap().messages.remove(0);
    let branch =
        fixture.append(id, first, &[message(Role::Assistant, "other two")]).unwrap().messages.remove(0);
    let last = fixture.append(id, "", &[message(Role::User, "three")]).unwrap().messages.remove(0);
    let answers = |parent: &String| Some(parent.clone());
    let expected = BTreeSet::from([
        (first.clone(), None),
        (second, answers(first)),
        (branch.clone(), answers(first)),
        (last.clone(), answers(&branch)),
    ]);
    assert_eq!(fixture.tree(id), expected);
    assert_eq!(conversation_record::leaf(&fixture.stored(id)), Some(last.as_str()));
    let unknown = fixture.append(id, "nothing", &[message(Role::User, "x")]);
    assert!(matches!(unknown, Err(RecordingError::NoMessage(id)) if id == "nothing"));
    let unknown = fixture.append("nothing", "", &[message(Role::User, "x")]);
    assert!(matches!(unknown, Err(RecordingError::NoConversation(id)) if id == "nothing"));
}

#[test]
fn a_repeated_request_returns_the_same_result_after_a_restart() {
    let mut fixture = Fixture::new();
    let key = call(Some(("2b3e0a52-1c1d-4b7e-9d43-1f1f8f1a0001", "a")));
    let first =
        fixture.imports.recordings().record(&key, &conversation(&[message(Role::User, "x")])).unwrap();
    let append = call(Some(("2b3e0a52-1c1d-4b7e-9d43-1f1f8f1a0002", "b")));
    let new = [message(Role::Assistant, "y")];
    let second = fixture.imports.recordings().append(&append, &first.conversation, "", &new).unwrap();
    fixture = fixture.restarted();
    let recordings = fixture.imports.recordings();
    assert_eq!(recordings.record(&key, &conversation(&[message(Role::User, "x")])).unwrap(), first);
    assert_eq!(recordings.append(&append, &first.conversation, "", &new).unwrap(), second);
    assert_eq!(fixture.stored(&first.conversation).heads.len(), 2);
    let other = call(Some(("2b3e0a52-1c1d-4b7e-9d43-1f1f8f1a0002", "c")));
    let reused = recordings.append(&other, &first.conversation, "", &new);
    assert!(matches!(reused, Err(RecordingError::RequestReused(_))));
    // Without a request id, the call is executed again.
    assert_ne!(fixture.record(&[message(Role::User, "x")]).conversation, first.conversation);
}

#[test]
fn a_message_with_a_known_client_id_is_not_recorded_again() {
    let fixture = Fixture::new();
    let recorded = fixture.record(&[named("a", "one")]);
    let id = &recorded.conversation;
    let before = fixture.store.revision();
    let again = fixture.append(id, "", &[named("a", "one")]).unwrap();
    assert_eq!((again.messages, fixture.store.revision()), (recorded.messages.clone(), before));
    let more = fixture.append(id, "", &[named("a", "one"), named("b", "two")]).unwrap();
    assert_eq!(more.messages[0], recorded.messages[0]);
    let expected = (more.messages[1].clone(), Some(recorded.messages[0].clone()));
    assert!(fixture.tree(id).contains(&expected) && fixture.tree(id).len() == 2);
    let same = NewMessage { created_at: Some(START), ..named("a", "one") };
    assert!(fixture.append(id, "", &[same]).is_ok());
    let refused = [
        named("a", "changed"),
        NewMessage { role: Role::Assistant, ..named("a", "one") },
        NewMessage { model: "m".to_owned(), ..named("a", "one") },
        NewMessage { name: "n".to_owned(), ..named("a", "one") },
        NewMessage { created_at: Some(START + 1), ..named("a", "one") },
    ];
    for message in refused {
        assert_eq!(field(fixture.append(id, "", &[message]).unwrap_err()), "messages[0].client_id");
    }
    let twice = [named("c", "one"), named("c", "one")];
    assert_eq!(field(fixture.append(id, "", &twice).unwrap_err()), "messages[1].client_id");
    assert_eq!(fixture.tree(id).len(), 2);
}

#[test]
fn invalid_fields_are_named() {
    let fixture = Fixture::new();
    let id = fixture.record(&[]).conversation;
    let text = || message(Role::User, "x");
    let long = "x".repeat(MAX_MESSAGE_BYTES + 1);
    let part = |text: Option<&str>| satchel_pam::conversation::Part {
        kind: satchel_pam::conversation::PartKind::Text,
        text: text.map(str::to_owned),
        language: None,
        mime_type: None,
        reference: None,
    };
    let parts =
        |parts| NewMessage { content: Content { kind: ContentKind::Multipart, text: None, parts }, ..text() };
    for (expected, messages) in [
        ("messages", vec![]),
        ("messages", vec![text(); MAX_MESSAGES_PER_CALL + 1]),
        ("messages[1]", vec![text(), message(Role::User, "")]),
        ("messages[0]", vec![message(Role::User, &long)]),
        ("messages[0].name", vec![NewMessage { name: "x".repeat(MAX_NAME_BYTES + 1), ..text() }]),
        ("messages[0].model", vec![NewMessage { model: "x".repeat(MAX_NAME_BYTES + 1), ..text() }]),
        ("messages[0].client_id", vec![named(&"x".repeat(MAX_CLIENT_ID_BYTES + 1), "x")]),
        ("messages[0].parts", vec![parts(vec![part(Some("x")); MAX_PARTS + 1])]),
        ("messages[0].parts[1]", vec![parts(vec![part(Some("x")), part(None)])]),
        ("messages[0].created_at", vec![NewMessage { created_at: Some(-1), ..text() }]),
        ("messages[0].created_at", vec![NewMessage { created_at: Some(START + 100_000_000_000), ..text() }]),
    ] {
        assert_eq!(field(fixture.append(&id, "", &messages).unwrap_err()), expected);
    }
    for (expected, conversation) in [
        ("platform", NewConversation { platform: "Chat!".to_owned(), ..conversation(&[]) }),
        ("agent_id", NewConversation { agent_id: String::new(), ..conversation(&[]) }),
        ("user_id", NewConversation { user_id: "x".repeat(MAX_NAME_BYTES + 1), ..conversation(&[]) }),
        ("title", NewConversation { title: "x".repeat(MAX_NAME_BYTES + 1), ..conversation(&[]) }),
    ] {
        let refused = fixture.imports.recordings().record(&call(None), &conversation);
        assert_eq!(field(refused.unwrap_err()), expected);
    }
    assert!(fixture.tree(&id).is_empty());
}

#[test]
fn a_conversation_has_a_greatest_length() {
    let fixture = Fixture::new();
    let id = fixture.record(&[]).conversation;
    let many = vec![message(Role::User, "x"); MAX_MESSAGES_PER_CALL];
    for _ in 0..MAX_CONVERSATION_MESSAGES / MAX_MESSAGES_PER_CALL {
        fixture.append(&id, "", &many).unwrap();
    }
    let refused = fixture.append(&id, "", &[message(Role::User, "x")]);
    assert!(matches!(refused, Err(RecordingError::TooLong { messages: MAX_CONVERSATION_MESSAGES })));
    assert_eq!(fixture.tree(&id).len(), MAX_CONVERSATION_MESSAGES);
}

#[test]
fn concurrent_appends_are_all_kept_in_one_chain() {
    let fixture = Fixture::new();
    let id = fixture.record(&[message(Role::User, "first")]).conversation;
    thread::scope(|scope| {
        for client in 0..4 {
            let (fixture, id) = (&fixture, &id);
            scope.spawn(move || {
                for at in 0..10 {
                    fixture.append(id, "", &[message(Role::User, &format!("{client} {at}"))]).unwrap();
                }
            });
        }
    });
    let stored = fixture.stored(&id);
    let leaf = conversation_record::leaf(&stored).unwrap();
    assert_eq!(stored.heads.len(), 41);
    assert_eq!(conversation_record::branch(&stored, leaf).len(), 41, "nothing forks");
}

#[test]
fn only_the_recording_device_is_named() {
    let fixture = Fixture::new();
    let recordings = fixture.imports.recordings();
    let by_device = RecordingContext { device: Some("d1".to_owned()), ..call(None) };
    let id = recordings.record(&by_device, &conversation(&[])).unwrap().conversation;
    assert!(recordings.recorded_by(&id, "d1").unwrap());
    assert!(!recordings.recorded_by(&id, "d2").unwrap());
    assert!(!recordings.recorded_by(&fixture.record(&[]).conversation, "d1").unwrap());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Any sequence of appends gives the tree that a list of parents gives, and the last message is the leaf.
    #[test]
    fn appends_give_the_tree_of_their_parents(parents in prop::collection::vec(any::<Option<prop::sample::Index>>(), 1..20)) {
        let fixture = Fixture::new();
        let id = fixture.record(&[]).conversation;
        let (mut expected, mut ids) = (BTreeSet::new(), Vec::<String>::new());
        for (at, parent) in parents.into_iter().enumerate() {
            let named = parent.filter(|_| !ids.is_empty()).map(|index| index.get(&ids).clone());
            let parent = named.clone().or_else(|| ids.last().cloned());
            let new = [message(Role::User, &at.to_string())];
            let message = fixture.append(&id, named.as_deref().unwrap_or_default(), &new).unwrap().messages.remove(0);
            expected.insert((message.clone(), parent));
            ids.push(message);
        }
        prop_assert_eq!(fixture.tree(&id), expected);
        let stored = fixture.stored(&id);
        prop_assert_eq!(conversation_record::leaf(&stored), ids.last().map(String::as_str));
    }
}
