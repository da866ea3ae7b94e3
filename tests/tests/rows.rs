//! Exports without conversations' ids: whatever part of the rows each of them holds, together they end in the same state.

use std::{
    fmt::Write as _,
    fs,
    ops::Range,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use satchel_daemon::ingest::undo::{Turn, TurnRequest};
use satchel_host::CancelToken;
use satchel_importer::testkit::first_difference;
use satchel_pam::time::Timestamp;
use satchel_tests::{
    archive::{Archive, State, only},
    generate::Dice,
};
use serde_json::{Value, json};

/// Streams of rows that are tried, of each provider.
const STREAMS: u64 = 5;
/// Turns of a stream: a question and its answer, or an event.
const TURNS: u64 = 40;
/// Exports that hold a part of a stream.
const EXPORTS: usize = 5;
const START: i64 = 1_770_000_000_000_000;
const MINUTE: i64 = 60_000_000;

/// One moment of a stream.
struct Moment {
    at: i64,
    chat: &'static str,
    event: bool,
}

/// Writes the moments of one export into a folder.
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

/// Parts of the stream that cover it; each begins with something said that the one before has, too.
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
        // The same words come again and again: only their time tells them apart.
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

/// Imports `exports`, undoes one of them on the way, and brings it back; all against what new stores hold.
fn any_order(exports: &[PathBuf], whole: &State, dice: &mut Dice, when: &str) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let archive = Archive::open(&dir.path().join("data"))?;
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
        ensure!(whole.conversations.len() > 3, "too few conversations");
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
