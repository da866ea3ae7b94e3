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
    undo::{Turn, TurnRequest},
};
use satchel_importer::testkit::first_difference;
use satchel_pam::{hash::ContentHash, memory::Memory, raw::RawObject, time::Timestamp};
use satchel_source::CancelToken;
use satchel_store::{Batch, Change, ConversationQuery, OpenOptions, Origin, Store};
use satchel_tests::{
    archive::{Archive, State, only},
    generate::Dice,
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
struct Moment {
    at: i64,
    chat: &'static str,
    event: bool,
}

/// A function that writes the moments of one export into a folder.
type Write = fn(&Path, &[Moment], Range<usize>) -> Result<()>;

fn stream(seed: u64) -> Result<Vec<Moment>> {
    let mut dice = Dice::new(seed);
    let (mut at, mut chat) = (START, "Untitled");
    let mut moments = Vec::new();
    for turn in 0..TURNS {
        let pause = if dice.chance(25) { 31 + dice.below(40) } else { 1 + dice.below(29) };
        at += i64::try_from(pause)? * MINUTE;
        if dice.chance(20) {
            chat = ["Untitled", "Bees", "Bread"][usize::try_from(dice.below(3))?];
        }
        moments.push(Moment { at, chat, event: turn > 0 && dice.chance(15) });
    }
    Ok(moments)
}

/// Splits the stream into overlapping parts that cover it; each begins with a message that the previous part also
/// contains.
fn parts(moments: &[Moment], dice: &mut Dice) -> Result<Vec<Range<usize>>> {
    let mut parts = Vec::new();
    let (mut begin, size) = (0, moments.len() / (EXPORTS - 1));
    while begin + 1 < moments.len() {
        let length = 2 + size / 2 + usize::try_from(dice.below(size as u64))?;
        let end = (begin + length).min(moments.len());
        parts.push(begin..end);
        if end == moments.len() {
            break;
        }
        let back = usize::try_from(dice.below(4))?;
        let said = (begin + 1..end.saturating_sub(back).max(begin + 2)).rev().find(|at| !moments[*at].event);
        begin = said.context("two exports have nothing in common")?;
    }
    Ok(parts)
}

fn gemini(folder: &Path, moments: &[Moment], part: Range<usize>) -> Result<()> {
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

fn copilot(folder: &Path, moments: &[Moment], part: Range<usize>) -> Result<()> {
    let mut table = String::from("Conversation,Time,Author,Message\n");
    for at in part.rev() {
        let Moment { at: time, chat, .. } = moments[at];
        let time = Timestamp::saturating(time);
        // The same words occur again and again: only their times differ.
        let (question, answer) = (format!("Question {}", at % 3), format!("Answer {}", at % 3));
        writeln!(table, "{chat},{time},AI,{answer}\n{chat},{time},Human,{question}")?;
    }
    fs::create_dir_all(folder)?;
    Ok(fs::write(folder.join("copilot-activity-history.csv"), table)?)
}

fn same(one: &State, other: &State, when: &str) -> Result<()> {
    for (what, left, right) in [
        ("memories", json!(one.memories), json!(other.memories)),
        ("conversations", json!(one.conversations), json!(other.conversations)),
    ] {
        let difference = first_difference(&left, &right);
        ensure!(difference.is_none(), "{what} differ {when}: {}", difference.unwrap_or_default());
    }
    Ok(())
}

fn arrive(exports: &[PathBuf]) -> Result<State> {
    let dir = tempfile::tempdir()?;
    let archive = Archive::open(&dir.path().join("data"))?;
    for export in exports {
        archive.import(export)?;
    }
    archive.state()
}

/// Imports `exports`, undoing and redoing one of them on the way, and compares each state with that of a new store.
fn any_order(exports: &[PathBuf], whole: &State, dice: &mut Dice, when: &str) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let data = dir.path().join("data");
    let archive = Archive::open(&data)?;
    let mut rest = exports.to_vec();
    let mut came: Vec<(PathBuf, String)> = Vec::new();
    let stop = usize::try_from(1 + dice.below(exports.len() as u64 - 1))?;
    let turn = |id: &str, turn| -> Result<()> {
        let request = TurnRequest { id, turn, dry_run: false, expected: None };
        archive.imports.turn(request, &CancelToken::new())?.context("there is no such import")?;
        Ok(())
    };
    while !rest.is_empty() {
        let export = rest.swap_remove(usize::try_from(dice.below(rest.len() as u64))?);
        let import = only(archive.import(&export)?)?;
        balanced(&import)?;
        ensure!(import.conversations.skipped + import.messages.skipped == 0 || when.contains("gemini"));
        came.push((export, import.id));
        if came.len() == stop {
            let (undone, id) = came[usize::try_from(dice.below(came.len() as u64))?].clone();
            turn(&id, Turn::Undo)?;
            let others: Vec<PathBuf> =
                came.iter().map(|(export, _)| export.clone()).filter(|export| *export != undone).collect();
            same(&archive.state()?, &arrive(&others)?, &format!("{when}, without {}", undone.display()))?;
            turn(&id, Turn::Redo)?;
        }
    }
    let order: Vec<String> = came.iter().map(|(export, _)| export.display().to_string()).collect();
    same(&archive.state()?, whole, &format!("{when}, as {order:#?}"))?;
    let report = archive.store.check(true, &mut |_| {})?;
    ensure!(report.clean(), "{when}: {report:?}");
    let revision = archive.store.revision();
    for export in exports {
        let again = only(archive.import_again(export)?)?;
        balanced(&again)?;
        ensure!(
            again.messages.unchanged + again.messages.skipped == again.messages.found,
            "{when}: {again:?}"
        );
    }
    ensure!(archive.store.revision() == revision, "{when}: importing again changes something");
    let digest = archive.store.state_digest();
    archive.close()?;
    let rebuilt = Store::open(&data, OpenOptions { rebuild: true, ..OpenOptions::default() }, &mut |_| {})?;
    ensure!(rebuilt.state_digest() == digest, "{when}: a rebuild makes another state");
    Ok(())
}

fn balanced(import: &ImportRecord) -> Result<()> {
    let ImportRecord { conversations, messages, memories, .. } = import;
    ensure!([conversations, messages, memories].iter().all(|counts| counts.balanced()), "{import:?}");
    Ok(())
}

fn streams(provider: &str, write: Write) -> Result<()> {
    for seed in 0..STREAMS {
        let moments = stream(seed)?;
        let mut dice = Dice::new(seed + 1_000);
        let made = tempfile::tempdir()?;
        let folder = made.path().join("whole");
        write(&folder, &moments, 0..moments.len())?;
        let whole = arrive(&[folder])?;
        ensure!(whole.conversations.len() > 3, "too few conversations of {provider}, stream {seed}");
        let mut exports = Vec::new();
        for (number, part) in parts(&moments, &mut dice)?.into_iter().enumerate() {
            let folder = made.path().join(format!("part-{number}"));
            write(&folder, &moments, part)?;
            exports.push(folder);
        }
        ensure!(exports.len() >= 3, "too few exports");
        any_order(&exports, &whole, &mut dice, &format!("{provider}, stream {seed}"))?;
    }
    Ok(())
}

#[test]
fn overlapping_lists_of_gemini_end_as_one_list_of_all() -> Result<()> {
    streams("gemini", gemini)
}

#[test]
fn overlapping_tables_of_copilot_end_as_one_table_of_all() -> Result<()> {
    streams("copilot", copilot)
}

/// Writes two parts of one chat with one row in common.
fn overlapping(folder: &Path) -> Result<[PathBuf; 2]> {
    let moment = |at: i64| Moment { at: START + at * MINUTE, chat: "Bees", event: false };
    let moments: Vec<Moment> = (0..6).map(moment).collect();
    let [older, newer] = [folder.join("older"), folder.join("newer")];
    copilot(&older, &moments, 0..4)?;
    copilot(&newer, &moments, 3..6)?;
    Ok([older, newer])
}

#[test]
fn a_base_and_its_changes_bring_a_conversation_that_joined_another() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let [older, newer] = overlapping(folder.path())?;
    let here = Archive::open(&folder.path().join("here"))?;
    here.import(&newer)?;
    let (full, delta) = (folder.path().join("full"), folder.path().join("delta"));
    here.export(&full)?;
    here.import(&older)?;
    here.export_changes(None, &delta)?;
    let joined = here.state()?;
    ensure!(joined.conversations.len() == 1, "the two are one");
    let there = Archive::open(&folder.path().join("there"))?;
    let mut warnings = there.apply(&full)?.warnings;
    let changes = there.apply(&delta)?;
    balanced(&changes)?;
    warnings.extend(changes.warnings);
    ensure!(warnings.is_empty(), "{warnings:?}");
    same(&there.state()?, &joined, "where the changes were applied")?;
    // A store with only one part of the chat takes the rest from the bundle.
    let other = Archive::open(&folder.path().join("other"))?;
    only(other.import(&older)?)?;
    let before = other.state()?;
    // Reading the state makes an export, and the first export creates an owner.
    let any = || Apply { any_owner: true, ..Apply::default() };
    let held_back = other.apply_by(&full, false, any())?;
    ensure!(held_back.would_change.conversations > 0, "{held_back:?}");
    same(&other.state()?, &before, "a stranger's rows join nobody's")?;
    other.trust(&here.exports.signers()[0])?;
    other.apply_by(&full, false, any())?;
    same(&other.state()?, &joined, "where the base met the older part")?;
    Ok(())
}

#[test]
fn a_conversation_that_joined_another_says_where_its_messages_are() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let [older, newer] = overlapping(folder.path())?;
    let archive = Archive::open(&folder.path().join("data"))?;
    only(archive.import(&newer)?)?;
    let id = shown(&archive)?;
    let import = only(archive.import(&older)?)?;
    ensure!((import.conversations.updated, import.messages.new) == (1, 6), "{import:?}");
    let whole = shown(&archive)?;
    ensure!(id != whole, "it begins with another message");
    let gone = archive.store.conversation(&id, None)?.context("nothing that was imported is erased")?;
    let raw = gone.header.raw_metadata.as_ref().map(RawObject::to_map).unwrap_or_default();
    ensure!(gone.withdrawn && raw["continued_in"] == json!(whole), "{raw:?}");
    ensure!(archive.store.all_bodies(&gone).count() == 6);
    let request = TurnRequest { id: &import.id, turn: Turn::Undo, dry_run: false, expected: None };
    archive.imports.turn(request, &CancelToken::new())?.context("an import")?;
    ensure!(shown(&archive)? == id, "it is shown again");
    let back = archive.store.conversation(&id, None)?.context("a conversation")?;
    let raw = back.header.raw_metadata.as_ref().map(RawObject::to_map).unwrap_or_default();
    ensure!(!back.withdrawn && !raw.contains_key("continued_in"), "{raw:?}");
    Ok(())
}

/// Returns the id of the only conversation that is shown.
fn shown(archive: &Archive) -> Result<String> {
    let query = ConversationQuery::default();
    let page = archive.store.conversations(&query, None, 2, archive.store.revision())?;
    ensure!(page.items.len() == 1, "one conversation is expected, not {}", page.items.len());
    page.items.into_iter().next().map(|shown| shown.id).context("a conversation")
}

#[test]
fn a_memory_of_a_bundle_follows_its_message_into_the_conversation_that_has_it_here() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let [older, newer] = overlapping(folder.path())?;
    let here = Archive::open(&folder.path().join("here"))?;
    here.import(&newer)?;
    let conversation = shown(&here)?;
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
    let there = Archive::open(&folder.path().join("there"))?;
    there.trust(&here.exports.signers()[0])?;
    there.apply(&full)?;
    there.import(&older)?;
    let whole = shown(&there)?;
    ensure!(whole != conversation, "the two are one");
    let held = there.store.memory("m", None)?.context("the memory")?.memory;
    ensure!(held.provenance.conversation_ref == Some(whole) && held.provenance.message_ref == Some(message));
    ensure!(there.apply(&full)?.warnings.is_empty(), "another version of the memory is said to be later");
    Ok(())
}
