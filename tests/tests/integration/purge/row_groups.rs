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
    ingest::undo::{UndoDirection, UndoRequest},
    integrity,
    purge::{Plan, Target},
};
use satchel_pam::time::Timestamp;
use satchel_source::CancelToken;
use satchel_store::ConversationQuery;
use satchel_tests::test_core::{TestCore, only_import};
use serde_json::{Value, json};

use crate::purge::fixture::{assert_erased, assert_store_intact, erase, files_containing, open_core};

/// Occurs in every row of the erased conversation.
const ERASED_WORD: &str = "avocet-kiln-2954";
/// Occurs in rows that arrive later, as if the conversation had continued.
const LATER_WORD: &str = "linnet";
/// Occurs in the conversation that stays.
const OTHER_WORD: &str = "sourdough";
const START: i64 = 1_770_000_000_000_000;
const MINUTE: i64 = 60_000_000;
/// Minutes between the two conversations, so many that no provider merges them.
const GAP_MINUTES: i64 = 6_000;

struct ExportRow {
    at: i64,
    chat: &'static str,
    text: String,
}

/// Returns the rows of one export: those of the conversation that is erased, and those of the one that stays.
fn rows(erased_minutes: Range<i64>, other_minutes: Range<i64>) -> Vec<ExportRow> {
    let secret = erased_minutes.map(|at| {
        let word = if at < 6 { ERASED_WORD } else { LATER_WORD };
        ExportRow { at: START + at * MINUTE, chat: "Safe", text: format!("{word} {at}") }
    });
    let bread = other_minutes.map(|at| {
        let minute = GAP_MINUTES + at;
        ExportRow { at: START + minute * MINUTE, chat: "Bread", text: format!("{OTHER_WORD} {at}") }
    });
    secret.chain(bread).collect()
}

/// A function that writes rows as an export.
type ExportWriter = fn(&Path, &[ExportRow]) -> Result<()>;

fn write_gemini(folder: &Path, rows: &[ExportRow]) -> Result<()> {
    let row = |row: &ExportRow| -> Value {
        let (text, time) = (&row.text, Timestamp::saturating(row.at).to_string());
        json!({"header": "Gemini Apps", "title": format!("Prompted Question {text}"), "time": time,
            "products": ["Gemini Apps"], "safeHtmlItem": [{"html": format!("<p>Answer {text}</p>")}]})
    };
    let rows: Vec<Value> = rows.iter().rev().map(row).collect();
    let folder = folder.join("Takeout/My Activity/Gemini Apps");
    fs::create_dir_all(&folder)?;
    Ok(fs::write(folder.join("MyActivity.json"), serde_json::to_vec(&rows)?)?)
}

fn write_copilot(folder: &Path, rows: &[ExportRow]) -> Result<()> {
    let mut table = String::from("Conversation,Time,Author,Message\n");
    for ExportRow { at, chat, text } in rows.iter().rev() {
        let time = Timestamp::saturating(*at);
        writeln!(table, "{chat},{time},AI,Answer {text}\n{chat},{time},Human,Question {text}")?;
    }
    fs::create_dir_all(folder)?;
    Ok(fs::write(folder.join("copilot-activity-history.csv"), table)?)
}

/// Returns the ids of the visible conversations that contain this word.
fn conversations_containing(core: &TestCore, word: &str) -> Result<Vec<String>> {
    let (query, at) = (ConversationQuery::default(), core.store.revision());
    let mut found = Vec::new();
    for shown in core.store.conversations(&query, None, 50, at)?.items {
        let stored = core.store.conversation(&shown.id, None)?.context("a conversation")?;
        let mut has = false;
        for body in core.store.all_bodies(&stored) {
            has |= String::from_utf8_lossy(&body?.1).contains(word);
        }
        if has {
            found.push(shown.id);
        }
    }
    Ok(found)
}

struct RowGroupFixture {
    folder: tempfile::TempDir,
    exports: [PathBuf; 3],
    imports: Vec<String>,
}

impl RowGroupFixture {
    /// Imports two exports that share rows; a third with all of those rows and more is written but not imported.
    fn create(write: ExportWriter) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let exports = ["older", "newer", "third"].map(|name| folder.path().join(name));
        // The newer one is first: the older one then moves the beginning, which changes the id of the conversation.
        write(&exports[0], &rows(3..6, 1..3))?;
        write(&exports[1], &rows(0..4, 0..2))?;
        write(&exports[2], &rows(0..8, 0..4))?;
        let core = open_core(&folder.path().join("data"), None)?;
        let mut imports = Vec::new();
        for export in &exports[..2] {
            imports.push(only_import(core.import(export)?)?.id);
        }
        core.close()?;
        Ok(Self { folder, exports, imports })
    }

    fn data_dir(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn erase(&self) -> Result<Plan> {
        let core = open_core(&self.data_dir(), None)?;
        let ids = conversations_containing(&core, ERASED_WORD)?;
        ensure!(ids.len() == 1, "the two exports are one conversation: {ids:?}");
        core.close()?;
        let target = Target::Conversation { id: ids[0].clone(), keep_memories: false };
        erase(&self.data_dir(), None, &target)
    }

    /// Checks that no undo, redo or repeated import restores an erased row.
    fn assert_not_restored(&self) -> Result<()> {
        let core = open_core(&self.data_dir(), None)?;
        let other_ids = conversations_containing(&core, OTHER_WORD)?;
        for id in &self.imports {
            for direction in [UndoDirection::Undo, UndoDirection::Redo] {
                let request = UndoRequest { id, direction, dry_run: false, expected: None };
                core.imports.undo_or_redo(request, &CancelToken::new())?.context("the import")?;
            }
        }
        ensure!(
            conversations_containing(&core, OTHER_WORD)? == other_ids,
            "other conversations changed after undo and redo"
        );
        for export in [&self.exports[0], &self.exports[1], &self.exports[2], &self.exports[0]] {
            let import = only_import(core.import_again(export)?)?;
            for counts in [import.conversations, import.messages, import.memories] {
                ensure!(counts.balanced(), "{import:?}");
            }
        }
        ensure!(conversations_containing(&core, ERASED_WORD)? == Vec::<String>::new());
        ensure!(conversations_containing(&core, LATER_WORD)?.len() == 1, "new rows were not imported");
        ensure!(
            conversations_containing(&core, OTHER_WORD)? == other_ids,
            "the other conversation was split"
        );
        core.close()
    }
}

fn erase_and_reimport(write: ExportWriter) -> Result<()> {
    let fixture = RowGroupFixture::create(write)?;
    let dir = fixture.data_dir();
    ensure!(
        !files_containing(&dir, ERASED_WORD)?.is_empty(),
        "the search does not find the rows before the erasure"
    );
    let core = open_core(&dir, None)?;
    let before = core.state()?;
    core.close()?;
    let plan = fixture.erase()?;
    ensure!(
        plan.record.rows.len() == 12,
        "not all questions and answers of the six rows are erased: {plan:?}"
    );
    ensure!(plan.conversations.len() == 2, "the conversation's former id is not erased: {plan:?}");
    assert_erased(&dir, &[ERASED_WORD], "after the erasure")?;
    assert_store_intact(&dir, None)?;
    assert_erased(&dir, &[ERASED_WORD], "after a rebuild")?;
    let core = open_core(&dir, None)?;
    let after = core.state()?;
    ensure!(after.conversations.len() == 1 && before.conversations.len() == 2);
    for (name, conversation) in &after.conversations {
        ensure!(
            before.conversations.get(name) == Some(conversation),
            "a record that was not erased has changed"
        );
    }
    core.close()?;
    fixture.assert_not_restored()?;
    assert_erased(&dir, &[ERASED_WORD], "after everything was imported again")?;
    assert_store_intact(&dir, None)?;
    let core = open_core(&dir, None)?;
    let examined = integrity::check(&core.store, &mut |_| {})?;
    ensure!(examined.findings.is_empty() && examined.orphans.is_empty(), "{examined:?}");
    core.close()
}

#[test]
fn erased_rows_of_gemini_stay_erased_when_a_later_list_has_them() -> Result<()> {
    erase_and_reimport(write_gemini)
}

#[test]
fn erased_rows_of_copilot_stay_erased_when_a_later_table_has_them() -> Result<()> {
    erase_and_reimport(write_copilot)
}

/// Writes a bundle of somebody who has these rows and signed it; returns its path and its signer.
fn write_bundle(
    folder: &Path,
    name: &str,
    write: ExportWriter,
    of: &[ExportRow],
) -> Result<(PathBuf, String)> {
    let (export, bundle) = (folder.join(format!("{name}-export")), folder.join(name));
    write(&export, of)?;
    let there = TestCore::open(&folder.join(format!("{name}-data")))?;
    only_import(there.import(&export)?)?;
    there.export(&bundle)?;
    let signer = there.exports.public_keys().into_iter().next().context("a key")?;
    there.close()?;
    Ok((bundle, signer))
}

/// Checks a bundle with erased and new rows in one conversation, which has the erased id or another one.
fn import_bundle_with_erased_rows(write: ExportWriter) -> Result<()> {
    for (begin, erased) in [(0, 12), (4, 4)] {
        let fixture = RowGroupFixture::create(write)?;
        let (dir, folder) = (fixture.data_dir(), fixture.folder.path());
        fixture.erase()?;
        let (bundle, signer) = write_bundle(folder, "bundle", write, &rows(begin..8, 0..1))?;
        ensure!(
            !files_containing(&bundle, ERASED_WORD)?.is_empty(),
            "the search does not find the rows in the bundle"
        );
        let core = open_core(&dir, None)?;
        core.trust(&signer)?;
        let import = only_import(core.import(&bundle)?)?;
        for counts in [import.conversations, import.messages, import.memories] {
            ensure!(counts.balanced(), "{import:?}");
        }
        ensure!(import.messages.skipped == erased && import.messages.new == 4, "{import:?}");
        ensure!(import.conversations.new == 1 && import.conversations.skipped == 0, "{import:?}");
        let later = conversations_containing(&core, LATER_WORD)?;
        ensure!(later.len() == 1, "new rows were not imported: {later:?}");
        let revision = core.store.revision();
        only_import(core.import_again(&bundle)?)?;
        ensure!(core.store.revision() == revision, "a repeated import changed the store");
        // The provider's own list contains the same rows: they are one conversation.
        let third = only_import(core.import(&fixture.exports[2])?)?;
        ensure!(
            conversations_containing(&core, LATER_WORD)? == later && third.messages.balanced(),
            "{third:?}"
        );
        ensure!(conversations_containing(&core, ERASED_WORD)? == Vec::<String>::new());
        core.close()?;
        fixture.assert_not_restored()?;
        assert_erased(&dir, &[ERASED_WORD], "after a bundle with the rows was imported")?;
        assert_store_intact(&dir, None)?;
    }
    Ok(())
}

#[test]
fn erased_rows_of_gemini_stay_erased_when_a_bundle_has_them() -> Result<()> {
    import_bundle_with_erased_rows(write_gemini)
}

#[test]
fn erased_rows_of_copilot_stay_erased_when_a_bundle_has_them() -> Result<()> {
    import_bundle_with_erased_rows(write_copilot)
}

#[test]
fn a_bundle_with_only_erased_rows_imports_none() -> Result<()> {
    let fixture = RowGroupFixture::create(write_gemini)?;
    fixture.erase()?;
    let (bundle, signer) = write_bundle(fixture.folder.path(), "bundle", write_gemini, &rows(4..6, 0..1))?;
    let core = open_core(&fixture.data_dir(), None)?;
    core.trust(&signer)?;
    let before = core.state()?;
    let import = only_import(core.import(&bundle)?)?;
    let reported = import.skipped.iter().filter(|skip| skip.reason.contains("erased it for good"));
    ensure!(import.conversations.skipped == 1 && reported.count() >= 1, "{import:?}");
    ensure!(import.conversations.balanced() && import.messages.balanced(), "{import:?}");
    ensure!(core.state()? == before, "the bundle changed the state");
    core.close()
}
