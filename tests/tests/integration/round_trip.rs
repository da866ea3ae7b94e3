//! Round trip through the daemon: the exports of each importer are stored, and the bundle that the store writes
//! contains the same as their files: ids, titles, tree, order, times, roles and text. The files are read with the
//! readers from the importers' own tests.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use anyhow::{Context as _, Result, ensure};
use satchel_importer::testkit::round_trip::{
    Chat, RoundTrip, SourceFile, Stored, Turn, differences, time_text,
};
use satchel_tests::{
    samples::{SampleExport, copy, sample, samples},
    test_core::{ExportedState, TestCore},
};
use serde_json::{Value, json};

#[path = "../../../plugins/chatgpt/tests/importer/round_trip/reader.rs"]
mod chatgpt;
#[path = "../../../plugins/claude/tests/importer/round_trip/reader.rs"]
mod claude;
#[path = "../../../plugins/claude-code/tests/importer/round_trip/reader.rs"]
mod claude_code;
#[path = "../../../plugins/codex/tests/importer/round_trip/reader.rs"]
mod codex;
#[path = "../../../plugins/copilot/tests/importer/round_trip/reader.rs"]
mod copilot;
#[path = "../../../plugins/deepseek/tests/importer/round_trip/reader.rs"]
mod deepseek;
#[path = "../../../plugins/dti/tests/importer/round_trip/reader.rs"]
mod dti;
#[path = "../../../plugins/gemini/tests/importer/round_trip/reader.rs"]
mod gemini;
#[path = "../../../plugins/gemini-cli/tests/importer/round_trip/reader.rs"]
mod gemini_cli;
#[path = "../../../plugins/goose/tests/importer/round_trip/reader.rs"]
mod goose;
#[path = "../../../plugins/grok/tests/importer/round_trip/reader.rs"]
mod grok;
#[path = "../../../plugins/jan/tests/importer/round_trip/reader.rs"]
mod jan;
#[path = "../../../plugins/librechat/tests/importer/round_trip/reader.rs"]
mod librechat;
#[path = "../../../plugins/lm-studio/tests/importer/round_trip/reader.rs"]
mod lm_studio;
#[path = "../../../plugins/memu/tests/importer/round_trip/reader.rs"]
mod memu;
#[path = "../../../plugins/mistral/tests/importer/round_trip/reader.rs"]
mod mistral;
#[path = "../../../plugins/open-webui/tests/importer/round_trip/reader.rs"]
mod open_webui;
#[path = "../../../plugins/opencode/tests/importer/round_trip/reader.rs"]
mod opencode;
#[path = "../../../plugins/perplexity/tests/importer/round_trip/reader.rs"]
mod perplexity;
#[path = "../../../plugins/snapchat/tests/importer/round_trip/reader.rs"]
mod snapchat;
#[path = "../../../plugins/vscode-copilot/tests/importer/round_trip/reader.rs"]
mod vscode_copilot;

const READERS: [RoundTrip; 21] = [
    chatgpt::ROUND,
    claude::ROUND,
    claude_code::ROUND,
    codex::ROUND,
    copilot::ROUND,
    deepseek::ROUND,
    dti::ROUND,
    gemini::ROUND,
    gemini_cli::ROUND,
    goose::ROUND,
    grok::ROUND,
    jan::ROUND,
    librechat::ROUND,
    lm_studio::ROUND,
    memu::ROUND,
    mistral::ROUND,
    open_webui::ROUND,
    opencode::ROUND,
    perplexity::ROUND,
    snapchat::ROUND,
    vscode_copilot::ROUND,
];

/// Samples whose conversations are in a database, too, which the readers do not read. The tests of the importer compare both.
const IN_DATABASES: [(&str, &str); 1] = [("goose", "old-files-and-the-database")];

/// Returns what the files of one fixture contain, limited to the files that its importer claims.
fn chats_in_files(round: &RoundTrip, behaviour: &str, input: &Path) -> Result<Vec<Chat>> {
    let expected = input.parent().context("a folder")?.join("expected.json");
    let exports: Vec<Value> = serde_json::from_slice(&fs::read(expected)?)?;
    let texts = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let names = exports.iter().flat_map(|export| texts(&export["files"]));
    let names: Vec<String> = names.filter_map(|name| Some(name.as_str()?.to_owned())).collect();
    let lines = exports.iter().flat_map(|export| texts(&export["lines"]));
    let skipped: BTreeSet<String> =
        lines.filter_map(|line| Some(line["skip"]["locator"].as_str()?.to_owned())).collect();
    let aside =
        |name: &&String| round.ignored.iter().any(|(file, _)| **file == format!("{behaviour}/{name}"));
    let mut expected = Vec::new();
    for name in names.iter().filter(|name| !aside(name)) {
        let bytes = fs::read(input.join(name))?;
        expected.extend((round.read_file)(&SourceFile::new(name, &bytes, &names, &skipped)));
    }
    Ok(expected)
}

/// Returns what the store holds of one platform, read from the bundle that it writes.
fn chats_in_store(round: &RoundTrip, state: &ExportedState) -> Result<Vec<Chat>> {
    let ours = state.conversations.values().filter(|document| document["provider"]["name"] == round.platform);
    let stored = ours.map(|document| Stored::of_document(document).context("a conversation"));
    let stored = stored.collect::<Result<Vec<Stored>>>()?;
    Ok(stored.iter().flat_map(|stored| (round.read_stored)(stored)).collect())
}

/// Keeps only conversations that occur once. One that occurs in several files or places is merged; other tests check
/// how.
fn only_unique_chats(expected: Vec<Chat>, stored_chats: Vec<Chat>) -> (Vec<Chat>, Vec<Chat>) {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    expected.iter().for_each(|chat| *counts.entry(chat.key.clone()).or_default() += 1);
    let once = |chat: &Chat| counts.get(&chat.key).is_none_or(|count| *count == 1);
    (expected.into_iter().filter(once).collect(), stored_chats.into_iter().filter(once).collect())
}

/// A sample with its reader and the content of its files.
type ReadSample = (&'static RoundTrip, SampleExport, Vec<Chat>);

/// Returns the samples whose files contain a conversation, in sets with at most one sample of each provider, because
/// opening a store takes longer than importing so little. Many samples of one provider contain conversations with the
/// same ids, so they are in different sets. Samples that also contain another provider's conversations are in a set of
/// their own.
fn sample_sets() -> Result<Vec<Vec<ReadSample>>> {
    let (mut sets, mut alone, mut seen) = (BTreeMap::<usize, Vec<_>>::new(), Vec::new(), BTreeMap::new());
    let in_database = |sample: &SampleExport| {
        IN_DATABASES.iter().any(|(provider, name)| *provider == sample.provider && *name == sample.behaviour)
    };
    for sample in samples()?.into_iter().filter(|sample| !in_database(sample)) {
        let round = READERS.iter().find(|round| round.platform == sample.provider).context("a reader")?;
        let expected = chats_in_files(round, &sample.behaviour, &sample.input)?;
        if expected.is_empty() {
            continue;
        }
        if sample.behaviour.contains("others") || sample.behaviour.contains("mixed") {
            alone.push(vec![(round, sample, expected)]);
            continue;
        }
        let number = seen.entry(sample.provider).or_insert(0);
        *number += 1;
        sets.entry(*number).or_default().push((round, sample, expected));
    }
    Ok(sets.into_values().chain(alone).collect())
}

#[test]
fn the_bundle_contains_what_each_export_contained() -> Result<()> {
    let (mut faults, mut compared) = (Vec::new(), BTreeMap::new());
    for set in sample_sets()? {
        let dir = tempfile::tempdir()?;
        let core = TestCore::open(&dir.path().join("data"))?;
        for (_, sample, _) in &set {
            core.import(&sample.input)?;
        }
        let state = core.state()?;
        for (round, sample, expected) in set {
            let (expected, stored_chats) = only_unique_chats(expected, chats_in_store(round, &state)?);
            *compared.entry(sample.provider).or_insert(0) += expected.len();
            let named = |fault| format!("{} {}: {fault}", sample.provider, sample.behaviour);
            faults.extend(differences(expected, stored_chats).into_iter().map(named));
        }
    }
    ensure!(faults.is_empty(), "{} faults\n{}", faults.len(), faults.join("\n"));
    ensure!(compared.len() == READERS.len() && compared.values().all(|chats| *chats > 4), "{compared:?}");
    Ok(())
}

/// Reads a PAM document as any program can, with times compared by value and not by their digits. Siblings with the
/// same time have no order, because PAM lists messages by time; they are sorted by id.
fn chat_of_document(document: &Value) -> Chat {
    let text = |value: &Value| value.as_str().map(ToOwned::to_owned);
    let turn = |message: &Value| {
        let parts = message["content"]["parts"].as_array().cloned().unwrap_or_default();
        let part = |part: &Value| {
            (part["type"].to_string(), text(&part["text"]).unwrap_or_else(|| part["ref"].to_string()))
        };
        let whole = text(&message["content"]["text"]).map(|text| ("text".to_owned(), text));
        let kind = if message["is_thought"] == true { "thought" } else { "said" };
        let calls = message["tool_calls"].as_array().cloned().unwrap_or_default();
        let calls = calls.into_iter().map(|call| ("call".to_owned(), call.to_string()));
        let all = whole.into_iter().chain(parts.iter().map(part)).chain(calls);
        Turn {
            id: message["id"].to_string(),
            parent: Some(&message["parent_id"]).filter(|parent| !parent.is_null()).map(Value::to_string),
            role: format!("{kind} {} {}", message["role"], message["provider_message_id"]),
            time: time_text(&message["created_at"]),
            parts: all.collect(),
        }
    };
    let turns = document["messages"].as_array().into_iter().flatten().map(turn);
    let mut turns: Vec<Turn> = turns.collect();
    turns.sort_by(|one, other| (&one.time, &one.id).cmp(&(&other.time, &other.id)));
    let active = |message: &&Value| message["raw_metadata"]["satchel"]["active_path"] == true;
    Chat {
        key: document["id"].to_string(),
        title: text(&document["title"]),
        created: time_text(&document["temporal"]["created_at"]),
        updated: time_text(&document["temporal"]["updated_at"]),
        current: document["messages"]
            .as_array()
            .and_then(|all| all.iter().rfind(active))
            .map(|leaf| leaf["id"].to_string()),
        turns,
    }
}

/// Returns a document from another producer: branches listed with the later one first, times to the microsecond, every
/// role.
fn foreign_document() -> Value {
    let message = |id: &str, parent: Option<&str>, role: &str, time: &str, text: &str| {
        json!({
            "id": id, "provider_message_id": format!("theirs-{id}"), "parent_id": parent, "role": role, "created_at": time,
            "children_ids": [], "content": {"type": "text", "text": text},
        })
    };
    let mut thought = message("c", Some("b"), "assistant", "2026-01-02T03:04:07.000001Z", "hm");
    thought["is_thought"] = true.into();
    let mut parts = message("e", Some("d"), "assistant", "2026-01-02T03:04:09.999999Z", "");
    parts["content"] = json!({"type": "multipart", "parts": [
        {"type": "text", "text": "one"}, {"type": "code", "text": "two", "language": "rust"}, {"type": "image", "ref": "a.png"},
    ]});
    let mut document = json!({
        "schema": "portable-ai-memory-conversation", "schema_version": "1.0", "id": "Theirs/1", "title": "Tea",
        "provider": {"name": "elsewhere", "conversation_id": "t-1"},
        "temporal": {"created_at": "2026-01-02T03:04:05.000006Z", "updated_at": "2026-01-02T03:05:00Z"},
        "messages": [
            message("a", None, "system", "2026-01-02T03:04:05.000006Z", "Be kind"),
            message("b", Some("a"), "user", "2026-01-02T03:04:06.5Z", "Which tea?"), thought,
            message("d", Some("c"), "tool", "2026-01-02T03:04:08Z", "42"), parts,
            message("f", Some("b"), "assistant", "2026-01-02T03:04:10Z", "Green."),
            message("g", None, "user", "2026-01-02T03:04:11Z", "On its own"),
        ],
    });
    for (at, children) in [(0, json!(["b"])), (1, json!(["c", "f"])), (2, json!(["d"])), (3, json!(["e"]))] {
        document["messages"][at]["children_ids"] = children;
    }
    document
}

#[test]
fn a_store_contains_what_its_pam_documents_contained() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let (exports, documents) = (dir.path().join("exports"), dir.path().join("documents"));
    let chosen = [
        ("chatgpt", "tree-with-gaps-branches-and-orphans"),
        ("chatgpt", "times-of-every-kind"),
        ("claude", "thoughts"),
        ("claude", "cycles"),
        ("claude-code", "tools-and-branches"),
        ("codex", "session-with-tools-and-reasoning"),
        ("copilot", "odd-rows"),
        ("deepseek", "busy-siblings-and-the-active-path"),
        ("dti", "several-people-and-models"),
        ("gemini", "activity-with-conversation-ids"),
        ("gemini-cli", "session-with-tools-and-thoughts"),
        ("goose", "an-export"),
        ("grok", "tools-and-thinking"),
        ("jan", "reasoning-and-tools"),
        ("librechat", "content-parts-of-agents"),
        ("lm-studio", "a-chat-with-thoughts-and-tools"),
        ("memu", "messages-of-every-kind"),
        ("mistral", "tools-and-references"),
        ("open-webui", "reasoning-in-the-text"),
        ("opencode", "an-export"),
        ("perplexity", "turns"),
        ("snapchat", "a-chat-with-my-ai"),
        ("vscode-copilot", "a-log-of-an-agent"),
    ];
    for (at, (provider, behaviour)) in chosen.into_iter().enumerate() {
        copy(&sample(provider, behaviour), &exports.join(format!("{at}")))?;
    }
    let first = TestCore::open(&dir.path().join("first"))?;
    first.import(&exports)?;
    first.export(&documents)?;
    fs::write(documents.join("conversations/theirs.json"), foreign_document().to_string())?;

    let second = TestCore::open(&dir.path().join("second"))?;
    second.import(&documents.join("conversations"))?;
    let stored = second.state()?.conversations;
    let mut expected = first.state()?.conversations;
    expected.insert("theirs".to_owned(), foreign_document());
    ensure!(expected.len() >= 12, "only {} documents were compared", expected.len());
    let chats_of =
        |documents: &BTreeMap<String, Value>| documents.values().map(chat_of_document).collect::<Vec<_>>();
    let mut expected = chats_of(&expected);
    // The producer does not say which path was visible; Satchel chooses the newest leaf and reports that.
    expected
        .iter_mut()
        .filter(|chat| chat.key == "\"Theirs/1\"")
        .for_each(|chat| chat.current = Some("\"g\"".to_owned()));
    let faults = differences(expected, chats_of(&stored));
    ensure!(faults.is_empty(), "{} faults\n{}", faults.len(), faults.join("\n"));
    Ok(())
}
