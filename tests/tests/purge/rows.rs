//! Conversations that were grouped from rows: the rows are erased in whatever exports they occur, and a later export
//! brings only the others.

use std::{
    fmt::Write as _,
    fs,
    ops::Range,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use satchel_core::{
    examine,
    ingest::{
        purge::{Plan, Target},
        undo::{Turn, TurnRequest},
    },
};
use satchel_pam::time::Timestamp;
use satchel_source::CancelToken;
use satchel_store::ConversationQuery;
use satchel_tests::archive::{Archive, only};
use serde_json::{Value, json};

use crate::scene::{erase, holding, none_of, open, whole};

/// Occurs in every row of the erased conversation.
const GOES: &str = "avocet-kiln-2954";
/// Occurs in rows that arrive later, as if the conversation had continued.
const LATER: &str = "linnet";
/// Occurs in the conversation that stays.
const STAYS: &str = "sourdough";
const START: i64 = 1_770_000_000_000_000;
const MINUTE: i64 = 60_000_000;
/// Minutes between the two conversations, so many that no provider merges them.
const APART: i64 = 6_000;

struct Row {
    at: i64,
    chat: &'static str,
    text: String,
}

/// Returns the rows of one export: those of the conversation that is erased, and those of the one that stays.
fn rows(goes: Range<i64>, stays: Range<i64>) -> Vec<Row> {
    let secret = goes.map(|at| {
        let word = if at < 6 { GOES } else { LATER };
        Row { at: START + at * MINUTE, chat: "Safe", text: format!("{word} {at}") }
    });
    let bread = stays.map(|at| {
        let minute = APART + at;
        Row { at: START + minute * MINUTE, chat: "Bread", text: format!("{STAYS} {at}") }
    });
    secret.chain(bread).collect()
}

/// A function that writes rows as an export.
type Write = fn(&Path, &[Row]) -> Result<()>;

fn gemini(folder: &Path, rows: &[Row]) -> Result<()> {
    let row = |row: &Row| -> Value {
        let (text, time) = (&row.text, Timestamp::saturating(row.at).to_string());
        json!({"header": "Gemini Apps", "title": format!("Prompted Question {text}"), "time": time,
            "products": ["Gemini Apps"], "safeHtmlItem": [{"html": format!("<p>Answer {text}</p>")}]})
    };
    let rows: Vec<Value> = rows.iter().rev().map(row).collect();
    let folder = folder.join("Takeout/My Activity/Gemini Apps");
    fs::create_dir_all(&folder)?;
    Ok(fs::write(folder.join("MyActivity.json"), serde_json::to_vec(&rows)?)?)
}

fn copilot(folder: &Path, rows: &[Row]) -> Result<()> {
    let mut table = String::from("Conversation,Time,Author,Message\n");
    for Row { at, chat, text } in rows.iter().rev() {
        let time = Timestamp::saturating(*at);
        writeln!(table, "{chat},{time},AI,Answer {text}\n{chat},{time},Human,Question {text}")?;
    }
    fs::create_dir_all(folder)?;
    Ok(fs::write(folder.join("copilot-activity-history.csv"), table)?)
}

/// Returns the ids of the visible conversations that contain this word.
fn having(archive: &Archive, word: &str) -> Result<Vec<String>> {
    let (query, at) = (ConversationQuery::default(), archive.store.revision());
    let mut found = Vec::new();
    for shown in archive.store.conversations(&query, None, 50, at)?.items {
        let stored = archive.store.conversation(&shown.id, None)?.context("a conversation")?;
        let mut has = false;
        for body in archive.store.all_bodies(&stored) {
            has |= String::from_utf8_lossy(&body?.1).contains(word);
        }
        if has {
            found.push(shown.id);
        }
    }
    Ok(found)
}

struct Grouped {
    folder: tempfile::TempDir,
    exports: [PathBuf; 3],
    imports: Vec<String>,
}

impl Grouped {
    /// Imports two exports that share rows; a third with all of those rows and more is written but not imported.
    fn planted(write: Write) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let exports = ["older", "newer", "third"].map(|name| folder.path().join(name));
        // The newer one is first: the older one then moves the beginning, which changes the id of the conversation.
        write(&exports[0], &rows(3..6, 1..3))?;
        write(&exports[1], &rows(0..4, 0..2))?;
        write(&exports[2], &rows(0..8, 0..4))?;
        let archive = open(&folder.path().join("data"), None)?;
        let mut imports = Vec::new();
        for export in &exports[..2] {
            imports.push(only(archive.import(export)?)?.id);
        }
        archive.close()?;
        Ok(Self { folder, exports, imports })
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn erase(&self) -> Result<Plan> {
        let archive = open(&self.data(), None)?;
        let ids = having(&archive, GOES)?;
        ensure!(ids.len() == 1, "the two exports are one conversation: {ids:?}");
        archive.close()?;
        let target = Target::Conversation { id: ids[0].clone(), keep_memories: false };
        erase(&self.data(), None, &target)
    }

    /// Checks that no undo, redo or repeated import restores an erased row.
    fn comes_again(&self) -> Result<()> {
        let archive = open(&self.data(), None)?;
        let stays = having(&archive, STAYS)?;
        for id in &self.imports {
            for turn in [Turn::Undo, Turn::Redo] {
                let request = TurnRequest { id, turn, dry_run: false, expected: None };
                archive.imports.turn(request, &CancelToken::new())?.context("the import")?;
            }
        }
        ensure!(having(&archive, STAYS)? == stays, "what stays is there after an undo and its way back");
        for export in [&self.exports[0], &self.exports[1], &self.exports[2], &self.exports[0]] {
            let import = only(archive.import_again(export)?)?;
            for counts in [import.conversations, import.messages, import.memories] {
                ensure!(counts.balanced(), "{import:?}");
            }
        }
        ensure!(having(&archive, GOES)? == Vec::<String>::new());
        ensure!(having(&archive, LATER)?.len() == 1, "the rows that are new come in");
        ensure!(having(&archive, STAYS)? == stays, "what stays goes on as one conversation");
        archive.close()
    }
}

fn goes_and_stays_away(write: Write) -> Result<()> {
    let grouped = Grouped::planted(write)?;
    let dir = grouped.data();
    ensure!(!holding(&dir, GOES)?.is_empty(), "the search finds it while it is there");
    let archive = open(&dir, None)?;
    let before = archive.state()?;
    archive.close()?;
    let plan = grouped.erase()?;
    ensure!(plan.record.rows.len() == 12, "questions and answers of six rows: {plan:?}");
    ensure!(plan.conversations.len() == 2, "the id that it had before goes too: {plan:?}");
    none_of(&dir, &[GOES], "after it went")?;
    whole(&dir, None)?;
    none_of(&dir, &[GOES], "after a rebuild")?;
    let archive = open(&dir, None)?;
    let after = archive.state()?;
    ensure!(after.conversations.len() == 1 && before.conversations.len() == 2);
    for (name, conversation) in &after.conversations {
        ensure!(before.conversations.get(name) == Some(conversation), "what stays is as it was");
    }
    archive.close()?;
    grouped.comes_again()?;
    none_of(&dir, &[GOES], "after all of it came again")?;
    whole(&dir, None)?;
    let archive = open(&dir, None)?;
    let examined = examine::examine(&archive.store, &mut |_| {})?;
    ensure!(examined.findings.is_empty() && examined.orphans.is_empty(), "{examined:?}");
    archive.close()
}

#[test]
fn a_conversation_of_two_lists_of_gemini_goes_and_a_third_brings_only_what_is_new() -> Result<()> {
    goes_and_stays_away(gemini)
}

#[test]
fn a_conversation_of_two_tables_of_copilot_goes_and_a_third_brings_only_what_is_new() -> Result<()> {
    goes_and_stays_away(copilot)
}

/// Writes a bundle of somebody who has these rows and signed it; returns its path and its signer.
fn bundle(folder: &Path, name: &str, write: Write, of: &[Row]) -> Result<(PathBuf, String)> {
    let (export, bundle) = (folder.join(format!("{name}-export")), folder.join(name));
    write(&export, of)?;
    let there = Archive::open(&folder.join(format!("{name}-data")))?;
    only(there.import(&export)?)?;
    there.export(&bundle)?;
    let signer = there.exports.signers().into_iter().next().context("a key")?;
    there.close()?;
    Ok((bundle, signer))
}

/// Checks a bundle with erased and new rows in one conversation, which has the erased id or another one.
fn a_bundle_brings_what_is_new(write: Write) -> Result<()> {
    for (begin, erased) in [(0, 12), (4, 4)] {
        let grouped = Grouped::planted(write)?;
        let (dir, folder) = (grouped.data(), grouped.folder.path());
        grouped.erase()?;
        let (bundle, signer) = bundle(folder, "bundle", write, &rows(begin..8, 0..1))?;
        ensure!(!holding(&bundle, GOES)?.is_empty(), "the search finds it in the bundle");
        let archive = open(&dir, None)?;
        archive.trust(&signer)?;
        let import = only(archive.import(&bundle)?)?;
        for counts in [import.conversations, import.messages, import.memories] {
            ensure!(counts.balanced(), "{import:?}");
        }
        ensure!(import.messages.skipped == erased && import.messages.new == 4, "{import:?}");
        ensure!(import.conversations.new == 1 && import.conversations.skipped == 0, "{import:?}");
        let later = having(&archive, LATER)?;
        ensure!(later.len() == 1, "the rows that are new come in: {later:?}");
        let revision = archive.store.revision();
        only(archive.import_again(&bundle)?)?;
        ensure!(archive.store.revision() == revision, "twice is once");
        // The provider's own list contains the same rows: they are one conversation.
        let third = only(archive.import(&grouped.exports[2])?)?;
        ensure!(having(&archive, LATER)? == later && third.messages.balanced(), "{third:?}");
        ensure!(having(&archive, GOES)? == Vec::<String>::new());
        archive.close()?;
        grouped.comes_again()?;
        none_of(&dir, &[GOES], "after a bundle that has it")?;
        whole(&dir, None)?;
    }
    Ok(())
}

#[test]
fn a_bundle_with_rows_of_gemini_brings_only_those_that_were_not_erased() -> Result<()> {
    a_bundle_brings_what_is_new(gemini)
}

#[test]
fn a_bundle_with_rows_of_copilot_brings_only_those_that_were_not_erased() -> Result<()> {
    a_bundle_brings_what_is_new(copilot)
}

#[test]
fn a_bundle_with_nothing_but_erased_rows_brings_none() -> Result<()> {
    let grouped = Grouped::planted(gemini)?;
    grouped.erase()?;
    let (bundle, signer) = bundle(grouped.folder.path(), "bundle", gemini, &rows(4..6, 0..1))?;
    let archive = open(&grouped.data(), None)?;
    archive.trust(&signer)?;
    let before = archive.state()?;
    let import = only(archive.import(&bundle)?)?;
    let told = import.skipped.iter().filter(|skip| skip.reason.contains("erased it for good"));
    ensure!(import.conversations.skipped == 1 && told.count() >= 1, "{import:?}");
    ensure!(import.conversations.balanced() && import.messages.balanced(), "{import:?}");
    ensure!(archive.state()? == before, "nothing came");
    archive.close()
}
