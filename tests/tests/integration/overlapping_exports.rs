//! Exports without conversation ids: whichever part of the rows each of them contains, together they give the same
//! state.

use std::{
    fmt::Write as _,
    fs,
    ops::Range,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use satchel_core::ingest::{
    Apply,
    receipt::ImportRecord,
    undo::{UndoDirection, UndoRequest},
};
use satchel_importer::testkit::first_difference;
use satchel_pam::{hash::ContentHash, memory::Memory, raw::RawObject, time::Timestamp};
use satchel_source::CancelToken;
use satchel_store::{Batch, Change, ConversationQuery, OpenOptions, Origin, Store};
use satchel_tests::{
    generate::Rng,
    test_core::{ExportedState, TestCore, only_import},
};
use serde_json::{Value, json};

/// Number of streams of rows that are tried for each provider.
const STREAMS: u64 = 5;
/// Number of turns in a stream; each is a question with its answer, or an event.
const TURNS: u64 = 60;
/// Approximate number of exports that each hold a part of a stream.
const EXPORTS: usize = 5;
const START: i64 = 1_770_000_000_000_000;
const MINUTE: i64 = 60_000_000;

/// One moment of a stream.
struct StreamTurn {
    at: i64,
    chat: &'static str,
    event: bool,
}

/// A function that writes the moments of one export into a folder.
type ExportWriter = fn(&Path, &[StreamTurn], Range<usize>) -> Result<()>;

fn generate_stream(seed: u64) -> Result<Vec<StreamTurn>> {
    let mut rng = Rng::new(seed);
    let (mut at, mut chat) = (START, "Untitled");
    let mut moments = Vec::new();
    for turn in 0..TURNS {
        let pause = if rng.chance(25) { 31 + rng.below(40) } else { 1 + rng.below(29) };
        at += i64::try_from(pause)? * MINUTE;
        if rng.chance(20) {
            chat = ["Untitled", "Bees", "Bread"][usize::try_from(rng.below(3))?];
        }
        moments.push(StreamTurn { at, chat, event: turn > 0 && rng.chance(15) });
    }
    Ok(moments)
}

/// Splits the stream into overlapping parts that cover it; each begins with a message that the previous part also
/// contains.
fn write_overlapping_exports(moments: &[StreamTurn], rng: &mut Rng) -> Result<Vec<Range<usize>>> {
    let mut parts = Vec::new();
    let (mut begin, size) = (0, moments.len() / (EXPORTS - 1));
    while begin + 1 < moments.len() {
        let length = 2 + size / 2 + usize::try_from(rng.below(size as u64))?;
        let end = (begin + length).min(moments.len());
        parts.push(begin..end);
        if end == moments.len() {
            break;
        }
        let back = usize::try_from(rng.below(4))?;
        let common =
            (begin + 1..end.saturating_sub(back).max(begin + 2)).rev().find(|at| !moments[*at].event);
        begin = common.context("two exports have nothing in common")?;
    }
    Ok(parts)
}

fn write_gemini(folder: &Path, moments: &[StreamTurn], part: Range<usize>) -> Result<()> {
    let row = |at: usize| -> Value {
        let time = Timestamp::saturating(moments[at].at).to_string();
        let (header, products) = ("Gemini Apps", ["Gemini Apps"]);
        if moments[at].event {
            return json!({"header": header, "title": "Used an Assistant feature", "time": time, "products": products});
        }
        json!({"header": header, "title": format!("Prompted Question {at}"), "time": time, "products": products,
            "safeHtmlItem": [{"html": format!("<p>Answer {at}</p>")}]})
    };
    let rows: Vec<Value> = part.rev().map(row).collect();
    let folder = folder.join("Takeout/My Activity/Gemini Apps");
    fs::create_dir_all(&folder)?;
    Ok(fs::write(folder.join("MyActivity.json"), serde_json::to_vec(&rows)?)?)
}

fn write_copilot(folder: &Path, moments: &[StreamTurn], part: Range<usize>) -> Result<()> {
    let mut table = String::from("Conversation,Time,Author,Message\n");
    for at in part.rev() {
        let StreamTurn { at: time, chat, .. } = moments[at];
        let time = Timestamp::saturating(time);
        // The same words occur again and again: only their times differ.
        let (question, answer) = (format!("Question {}", at % 3), format!("Answer {}", at % 3));
        writeln!(table, "{chat},{time},AI,{answer}\n{chat},{time},Human,{question}")?;
    }
    fs::create_dir_all(folder)?;
    Ok(fs::write(folder.join("copilot-activity-history.csv"), table)?)
}

fn assert_same_state(one: &ExportedState, other: &ExportedState, when: &str) -> Result<()> {
    for (what, left, right) in [
        ("memories", json!(one.memories), json!(other.memories)),
        ("conversations", json!(one.conversations), json!(other.conversations)),
    ] {
        let difference = first_difference(&left, &right);
        ensure!(difference.is_none(), "{what} differ {when}: {}", difference.unwrap_or_default());
    }
    Ok(())
}

fn state_after_imports(exports: &[PathBuf]) -> Result<ExportedState> {
    let dir = tempfile::tempdir()?;
    let core = TestCore::open(&dir.path().join("data"))?;
    for export in exports {
        core.import(export)?;
    }
    core.state()
}

/// Imports `exports`, undoing and redoing one of them on the way, and compares each state with that of a new store.
fn import_in_random_order(
    exports: &[PathBuf],
    whole: &ExportedState,
    rng: &mut Rng,
    when: &str,
) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let data = dir.path().join("data");
    let core = TestCore::open(&data)?;
    let mut rest = exports.to_vec();
    let mut imported: Vec<(PathBuf, String)> = Vec::new();
    let stop = usize::try_from(1 + rng.below(exports.len() as u64 - 1))?;
    let turn = |id: &str, turn| -> Result<()> {
        let request = UndoRequest { id, direction: turn, dry_run: false, expected: None };
        core.imports.undo_or_redo(request, &CancelToken::new())?.context("there is no such import")?;
        Ok(())
    };
    while !rest.is_empty() {
        let export = rest.swap_remove(usize::try_from(rng.below(rest.len() as u64))?);
        let import = only_import(core.import(&export)?)?;
        assert_balanced(&import)?;
        ensure!(import.conversations.skipped + import.messages.skipped == 0 || when.contains("gemini"));
        imported.push((export, import.id));
        if imported.len() == stop {
            let (undone, id) = imported[usize::try_from(rng.below(imported.len() as u64))?].clone();
            turn(&id, UndoDirection::Undo)?;
            let others: Vec<PathBuf> = imported
                .iter()
                .map(|(export, _)| export.clone())
                .filter(|export| *export != undone)
                .collect();
            assert_same_state(
                &core.state()?,
                &state_after_imports(&others)?,
                &format!("{when}, without {}", undone.display()),
            )?;
            turn(&id, UndoDirection::Redo)?;
        }
    }
    let order: Vec<String> = imported.iter().map(|(export, _)| export.display().to_string()).collect();
    assert_same_state(&core.state()?, whole, &format!("{when}, as {order:#?}"))?;
    let report = core.store.check(true, &mut |_| {})?;
    ensure!(report.clean(), "{when}: {report:?}");
    let revision = core.store.revision();
    for export in exports {
        let again = only_import(core.import_again(export)?)?;
        assert_balanced(&again)?;
        ensure!(
            again.messages.unchanged + again.messages.skipped == again.messages.found,
            "{when}: {again:?}"
        );
    }
    ensure!(core.store.revision() == revision, "{when}: importing again changes something");
    let digest = core.store.state_digest();
    core.close()?;
    let rebuilt = Store::open(&data, OpenOptions { rebuild: true, ..OpenOptions::default() }, &mut |_| {})?;
    ensure!(rebuilt.state_digest() == digest, "{when}: the rebuilt state differs");
    Ok(())
}

fn assert_balanced(import: &ImportRecord) -> Result<()> {
    let ImportRecord { conversations, messages, memories, .. } = import;
    ensure!([conversations, messages, memories].iter().all(|counts| counts.balanced()), "{import:?}");
    Ok(())
}

fn check_streams(provider: &str, write: ExportWriter) -> Result<()> {
    for seed in 0..STREAMS {
        let moments = generate_stream(seed)?;
        let mut rng = Rng::new(seed + 1_000);
        let made = tempfile::tempdir()?;
        let folder = made.path().join("whole");
        write(&folder, &moments, 0..moments.len())?;
        let whole = state_after_imports(&[folder])?;
        ensure!(whole.conversations.len() > 3, "too few conversations of {provider}, stream {seed}");
        let mut exports = Vec::new();
        for (number, part) in write_overlapping_exports(&moments, &mut rng)?.into_iter().enumerate() {
            let folder = made.path().join(format!("part-{number}"));
            write(&folder, &moments, part)?;
            exports.push(folder);
        }
        ensure!(exports.len() >= 3, "too few exports");
        import_in_random_order(&exports, &whole, &mut rng, &format!("{provider}, stream {seed}"))?;
    }
    Ok(())
}

#[test]
fn overlapping_lists_of_gemini_end_as_one_complete_list() -> Result<()> {
    check_streams("gemini", write_gemini)
}

#[test]
fn overlapping_tables_of_copilot_end_as_one_complete_table() -> Result<()> {
    check_streams("copilot", write_copilot)
}

/// Writes two parts of one chat with one row in common.
fn overlapping(folder: &Path) -> Result<[PathBuf; 2]> {
    let moment = |at: i64| StreamTurn { at: START + at * MINUTE, chat: "Bees", event: false };
    let moments: Vec<StreamTurn> = (0..6).map(moment).collect();
    let [older, newer] = [folder.join("older"), folder.join("newer")];
    write_copilot(&older, &moments, 0..4)?;
    write_copilot(&newer, &moments, 3..6)?;
    Ok([older, newer])
}

#[test]
fn a_base_and_its_changes_transfer_a_joined_conversation() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let [older, newer] = overlapping(folder.path())?;
    let here = TestCore::open(&folder.path().join("here"))?;
    here.import(&newer)?;
    let (full, delta) = (folder.path().join("full"), folder.path().join("delta"));
    here.export(&full)?;
    here.import(&older)?;
    here.export_changes(None, &delta)?;
    let joined = here.state()?;
    ensure!(joined.conversations.len() == 1, "the conversations were not joined");
    let there = TestCore::open(&folder.path().join("there"))?;
    let mut warnings = there.apply(&full)?.warnings;
    let changes = there.apply(&delta)?;
    assert_balanced(&changes)?;
    warnings.extend(changes.warnings);
    ensure!(warnings.is_empty(), "{warnings:?}");
    assert_same_state(&there.state()?, &joined, "where the changes were applied")?;
    // A store with only one part of the chat takes the rest from the bundle.
    let other = TestCore::open(&folder.path().join("other"))?;
    only_import(other.import(&older)?)?;
    let before = other.state()?;
    // Reading the state makes an export, and the first export creates an owner.
    let any = || Apply { any_owner: true, ..Apply::default() };
    let held_back = other.apply_with(&full, false, any())?;
    ensure!(held_back.would_change.conversations > 0, "{held_back:?}");
    assert_same_state(&other.state()?, &before, "untrusted rows were joined")?;
    other.trust(&here.exports.public_keys()[0])?;
    other.apply_with(&full, false, any())?;
    assert_same_state(&other.state()?, &joined, "where the base was merged with the older part")?;
    Ok(())
}

#[test]
fn a_joined_conversation_names_the_one_with_its_messages() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let [older, newer] = overlapping(folder.path())?;
    let core = TestCore::open(&folder.path().join("data"))?;
    only_import(core.import(&newer)?)?;
    let id = only_conversation_id(&core)?;
    let import = only_import(core.import(&older)?)?;
    ensure!((import.conversations.updated, import.messages.new) == (1, 6), "{import:?}");
    let whole = only_conversation_id(&core)?;
    ensure!(id != whole, "the conversation kept its id");
    let joined = core.store.conversation(&id, None)?.context("the joined conversation")?;
    let raw = joined.header.raw_metadata.as_ref().map(RawObject::to_map).unwrap_or_default();
    ensure!(joined.withdrawn && raw["continued_in"] == json!(whole), "{raw:?}");
    ensure!(core.store.all_bodies(&joined).count() == 6);
    let request =
        UndoRequest { id: &import.id, direction: UndoDirection::Undo, dry_run: false, expected: None };
    core.imports.undo_or_redo(request, &CancelToken::new())?.context("an import")?;
    ensure!(only_conversation_id(&core)? == id, "the conversation is not shown again");
    let back = core.store.conversation(&id, None)?.context("a conversation")?;
    let raw = back.header.raw_metadata.as_ref().map(RawObject::to_map).unwrap_or_default();
    ensure!(!back.withdrawn && !raw.contains_key("continued_in"), "{raw:?}");
    Ok(())
}

/// Returns the id of the only conversation that is shown.
fn only_conversation_id(core: &TestCore) -> Result<String> {
    let query = ConversationQuery::default();
    let page = core.store.conversations(&query, None, 2, core.store.revision())?;
    ensure!(page.items.len() == 1, "one conversation is expected, not {}", page.items.len());
    page.items.into_iter().next().map(|shown| shown.id).context("a conversation")
}

#[test]
fn a_memory_of_a_bundle_refers_to_the_conversation_that_its_message_joined() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let [older, newer] = overlapping(folder.path())?;
    let here = TestCore::open(&folder.path().join("here"))?;
    here.import(&newer)?;
    let conversation = only_conversation_id(&here)?;
    let heads = here.store.conversation(&conversation, None)?.context("a conversation")?.heads;
    let message = heads.first().context("a message")?.id.clone();
    let memory: Memory = serde_json::from_value(json!({
        "id": "m", "type": "preference", "content": "Keeps bees", "status": "active",
        "content_hash": ContentHash::of("Keeps bees"), "temporal": {"created_at": Timestamp::saturating(START)},
        "provenance": {"platform": "copilot", "conversation_ref": conversation, "message_ref": message},
    }))?;
    let origin = Origin { import: None, actor: "owner".into(), reason: "said".into(), at_micros: START };
    here.store.commit(Batch { origin, changes: vec![Change::Memory(Box::new(memory))] })?;
    let full = folder.path().join("full");
    here.export(&full)?;
    let there = TestCore::open(&folder.path().join("there"))?;
    there.trust(&here.exports.public_keys()[0])?;
    there.apply(&full)?;
    there.import(&older)?;
    let whole = only_conversation_id(&there)?;
    ensure!(whole != conversation, "the conversations were not joined");
    let held = there.store.memory("m", None)?.context("the memory")?.memory;
    ensure!(held.provenance.conversation_ref == Some(whole) && held.provenance.message_ref == Some(message));
    ensure!(there.apply(&full)?.warnings.is_empty(), "applying the bundle again gave a warning");
    Ok(())
}
