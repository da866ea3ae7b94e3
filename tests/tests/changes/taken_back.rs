//! What was taken back where an export was made, and an addition cannot take back elsewhere.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use satchel_daemon::{
    export::FULL,
    ingest::{
        Apply,
        receipt::{ImportRecord, ImportStatus},
        undo::{Turn, TurnRequest},
    },
};
use satchel_host::CancelToken;
use satchel_tests::{
    archive::{Archive, State, demo, only},
    generate,
};
use tempfile::TempDir;

fn turn(archive: &Archive, id: &str, turn: Turn) -> Result<()> {
    let request = |dry_run, expected| TurnRequest { id, turn, dry_run, expected };
    let seen = archive.imports.turn(request(true, None), &CancelToken::new())?.context("the import")?;
    archive.imports.turn(request(false, Some(seen.records())), &CancelToken::new())?.context("the import")?;
    Ok(())
}

pub(super) fn undo(archive: &Archive, id: &str) -> Result<()> {
    turn(archive, id, Turn::Undo)
}

fn names(archive: &Archive) -> Result<Vec<String>> {
    Ok(archive.state()?.conversations.into_keys().collect())
}

#[test]
fn conversations_of_which_memories_came_stay_are_named_and_can_go() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let at = |name: &str| folder.path().join(name);
    let here = Archive::open(&at("here"))?;
    only(here.import(&demo().join("chatgpt-export"))?)?;
    let kept = names(&here)?;
    let gone = only(here.import(&demo().join("claude-export"))?)?;
    let both = names(&here)?;
    ensure!(both.len() > kept.len() && gone.conversations.new > 0, "{both:?}");
    here.export(&at("full"))?;
    undo(&here, &gone.id)?;
    let delta = here.export_changes(None, &at("changes"))?;
    ensure!(
        delta.full_next && delta.warnings.iter().any(|warning| warning.contains("taken back")),
        "{delta:?}"
    );
    let there = Archive::open(&at("there"))?;
    let apply = |path: &Path| -> Result<_> {
        let import = there.apply(path)?;
        ensure!(import.status == ImportStatus::Completed, "{import:?}");
        Ok(import)
    };
    let full = apply(&at("full"))?;
    let applied = apply(&at("changes"))?;
    let told = applied.warnings.iter().filter(|warning| warning.message.contains("stays here"));
    assert_eq!(told.count() as u64, gone.conversations.new, "{:?}", applied.warnings);
    assert_eq!(names(&there)?, both, "nothing is taken away by an addition");
    // The way that the warning names; what both say comes again with the next full export, which is the next.
    undo(&there, &full.id)?;
    let next = here.export_changes(None, &at("next"))?;
    assert_eq!(next.export_type, FULL);
    apply(&at("next"))?;
    assert_eq!(names(&there)?, kept);
    Ok(())
}

/// A person who imported two exports, made a full export, took the second back, and exported what changed.
struct Person {
    folder: TempDir,
    here: Archive,
    /// What is shown with both, and with the first.
    both: Vec<String>,
    kept: Vec<String>,
    /// The second export, and its import.
    export: PathBuf,
    gone: String,
}

impl Person {
    fn new() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let export = folder.path().join("claude");
        generate::claude(&export, 20_000, 71)?;
        let here = Archive::open(&folder.path().join("here"))?;
        only(here.import(&demo().join("chatgpt-export"))?)?;
        let kept = names(&here)?;
        let gone = only(here.import(&export)?)?.id;
        let both = names(&here)?;
        ensure!(both.len() > kept.len(), "{both:?}");
        here.export(&folder.path().join("full"))?;
        undo(&here, &gone)?;
        here.export_changes(None, &folder.path().join("changes"))?;
        Ok(Self { folder, here, both, kept, export, gone })
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn there(&self) -> Result<Archive> {
        Archive::open(&self.at("there"))
    }
}

fn warned(import: &ImportRecord, words: &str) -> usize {
    import.warnings.iter().filter(|warning| warning.message.contains(words)).count()
}

#[test]
fn conversations_that_only_the_base_brought_go_and_come_back_with_an_undo() -> Result<()> {
    let person = Person::new()?;
    let there = person.there()?;
    there.apply(&person.at("full"))?;
    assert_eq!(names(&there)?, person.both);
    let dry = there.apply_by(&person.at("changes"), true, Apply::default())?;
    let many = person.both.len() - person.kept.len();
    assert_eq!((warned(&dry, "is here too"), names(&there)?), (many, person.both.clone()), "a dry run");
    let taken = there.apply(&person.at("changes"))?;
    assert_eq!((warned(&taken, "is here too"), names(&there)?), (many, person.kept.clone()));
    turn(&there, &taken.id, Turn::Undo)?;
    assert_eq!(names(&there)?, person.both, "an undo brings them back");
    assert_eq!(there.state()?, State::of(&person.at("full"))?, "whole");
    turn(&there, &taken.id, Turn::Redo)?;
    assert_eq!(names(&there)?, person.kept);
    let revision = there.store.revision();
    let older = there.apply(&person.at("full"))?;
    ensure!(older.conversations.balanced() && older.conversations.skipped == many as u64, "{older:?}");
    ensure!(older.skipped.iter().all(|skip| skip.reason.contains("later export")), "{older:?}");
    there.apply(&person.at("changes"))?;
    assert_eq!((names(&there)?, there.store.revision()), (person.kept.clone(), revision), "twice is once");
    turn(&person.here, &person.gone, Turn::Redo)?;
    person.here.export(&person.at("later"))?;
    there.apply(&person.at("later"))?;
    assert_eq!(there.state()?, person.here.state()?, "a later export brings them");
    let report = there.store.check(true, &mut |_| {})?;
    ensure!(report.clean(), "{report:?}");
    Ok(())
}

#[test]
fn an_undo_of_what_brought_them_does_not_show_what_was_taken_back() -> Result<()> {
    let person = Person::new()?;
    let there = person.there()?;
    let full = there.apply(&person.at("full"))?;
    let taken = there.apply(&person.at("changes"))?;
    for way in [Turn::Undo, Turn::Redo] {
        turn(&there, &full.id, way)?;
    }
    assert_eq!(names(&there)?, person.kept);
    turn(&there, &full.id, Turn::Undo)?;
    turn(&there, &taken.id, Turn::Undo)?;
    assert_eq!(names(&there)?, Vec::<String>::new());
    turn(&there, &full.id, Turn::Redo)?;
    assert_eq!(names(&there)?, person.both);
    Ok(())
}

#[test]
fn conversations_that_others_brought_too_stay() -> Result<()> {
    for first in [true, false] {
        let person = Person::new()?;
        let there = person.there()?;
        if first {
            only(there.import(&person.export)?)?;
        }
        there.apply(&person.at("full"))?;
        if !first {
            only(there.import(&person.export)?)?;
        }
        let applied = there.apply(&person.at("changes"))?;
        assert_eq!(names(&there)?, person.both);
        assert_eq!(warned(&applied, "stays here"), person.both.len() - person.kept.len());
        // What the provider's export says is said anew, whatever a document takes back.
        let own = there
            .imports
            .list(None, 10)?
            .items
            .into_iter()
            .find(|one| one.provider.as_deref() == Some("claude"));
        undo(&there, &own.context("the import")?.id)?;
        there.apply(&person.at("changes"))?;
        assert_eq!(names(&there)?, person.kept);
        only(there.import_again(&person.export)?)?;
        assert_eq!(names(&there)?, person.both);
    }
    Ok(())
}
