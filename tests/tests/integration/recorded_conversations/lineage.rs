//! What was recorded and what was imported about one conversation: neither an import nor its undo removes a message.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use satchel_core::{
    conversation_record::leaf,
    ingest::{
        receipt::ImportStatus,
        undo::{UndoDirection, UndoRequest},
    },
    recording::{NewConversation, NewMessage, Recorded, RecordingContext, RecordingError},
};
use satchel_pam::conversation::{Content, ContentKind, Role};
use satchel_source::CancelToken;
use satchel_store::{ConversationQuery, ConversationRecord};
use satchel_tests::{
    generate::Rng,
    test_core::{TestCore, only_import},
    test_daemon::chatgpt_export,
};

fn call() -> RecordingContext {
    RecordingContext { actor: "owner".to_owned(), ..RecordingContext::default() }
}

fn message(text: &str) -> NewMessage {
    NewMessage {
        role: Role::User,
        content: Content { kind: ContentKind::Text, text: Some(text.to_owned()), parts: Vec::new() },
        created_at: None,
        name: String::new(),
        model: String::new(),
        client_id: String::new(),
    }
}

fn record(core: &TestCore, messages: &[&str]) -> Result<Recorded> {
    let conversation = NewConversation {
        platform: "my-chat".to_owned(),
        agent_id: "agent".to_owned(),
        user_id: "user".to_owned(),
        session_id: "session".to_owned(),
        messages: messages.iter().map(|text| message(text)).collect(),
        ..NewConversation::default()
    };
    Ok(core.imports.recordings().record(&call(), &conversation)?)
}

/// Appends a message to the last one; returns its id.
fn append(core: &TestCore, id: &str, text: &str) -> Result<String> {
    let appended = core.imports.recordings().append(&call(), id, "", &[message(text)])?;
    appended.messages.into_iter().next().context("a message")
}

fn stored(core: &TestCore, id: &str) -> Result<ConversationRecord> {
    core.store.conversation(id, None)?.context("the conversation")
}

fn ids(core: &TestCore, id: &str) -> Result<BTreeSet<String>> {
    Ok(stored(core, id)?.heads.into_iter().map(|head| head.id).collect())
}

fn only_conversation(core: &TestCore) -> Result<String> {
    let all = core.store.conversations(&ConversationQuery::default(), None, 10, core.store.revision())?.items;
    ensure!(all.len() == 1, "{all:?}");
    Ok(all[0].id.clone())
}

fn undo_or_redo(core: &TestCore, import: &str, direction: UndoDirection) -> Result<()> {
    let request = UndoRequest { id: import, direction, dry_run: false, expected: None };
    core.imports.undo_or_redo(request, &CancelToken::new())?.context("the import")?;
    Ok(())
}

/// Imports `export`; returns the id of the import.
fn import(core: &TestCore, export: &Path) -> Result<String> {
    let import = only_import(core.import_again(export)?)?;
    ensure!(import.status == ImportStatus::Completed, "{import:?}");
    Ok(import.id)
}

/// Opens a data directory and imports a conversation of four messages; returns the export, the id of the import, and
/// that of the conversation.
fn imported(folder: &Path) -> Result<(TestCore, PathBuf, String, String)> {
    let core = TestCore::open(&folder.join("data"))?;
    let export = chatgpt_export(&folder.join("export"), 1)?;
    let import = import(&core, &export)?;
    let id = only_conversation(&core)?;
    Ok((core, export, import, id))
}

#[test]
fn messages_appended_to_an_imported_conversation_outlast_its_reimport_and_undo() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (core, export, first, id) = imported(folder.path())?;
    let of_import = ids(&core, &id)?;
    let before = leaf(&stored(&core, &id)?).map(str::to_owned);
    let one = append(&core, &id, "one")?;
    let two = append(&core, &id, "two")?;
    let all: BTreeSet<String> = of_import.iter().chain([&one, &two]).cloned().collect();
    ensure!(ids(&core, &id)? == all);
    let now = stored(&core, &id)?;
    let parent = |message: &str| {
        let head = now.heads.iter().find(|head| head.id == message);
        head.and_then(|head| head.parent.clone())
    };
    ensure!(parent(&one) == before && parent(&two).as_ref() == Some(&one));
    ensure!(leaf(&now) == Some(two.as_str()));
    // The same export adds nothing, and erases nothing.
    let revision = core.store.revision();
    let second = import(&core, &export)?;
    ensure!(core.store.revision() == revision && ids(&core, &id)? == all, "the import changed something");
    // Without both imports, only what was recorded is shown. Redone, everything is.
    undo_or_redo(&core, &first, UndoDirection::Undo)?;
    ensure!(ids(&core, &id)? == all, "the second import brings the same");
    undo_or_redo(&core, &second, UndoDirection::Undo)?;
    ensure!(ids(&core, &id)? == [one.clone(), two.clone()].into(), "what was recorded stays");
    let three = append(&core, &id, "three")?;
    ensure!(ids(&core, &id)? == [one, two, three.clone()].into());
    undo_or_redo(&core, &second, UndoDirection::Redo)?;
    let all: BTreeSet<String> = all.into_iter().chain([three]).collect();
    ensure!(ids(&core, &id)? == all);
    let report = core.store.check(true, &mut |_| {})?;
    ensure!(report.clean(), "{report:?}");
    Ok(())
}

#[test]
fn a_later_export_of_the_conversation_is_united_with_what_was_appended() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (core, _, _, id) = imported(folder.path())?;
    let one = append(&core, &id, "one")?;
    // The export of another data directory: the same conversation, with another message appended to it.
    let other = tempfile::tempdir()?;
    let (there, ..) = imported(other.path())?;
    let theirs = append(&there, &id, "theirs")?;
    let bundle = other.path().join("bundle");
    core.trust(&there.export(&bundle)?.signer)?;
    import(&core, &bundle)?;
    let all = ids(&core, &id)?;
    ensure!(all.contains(&one) && all.contains(&theirs) && all.len() == 6, "{all:?}");
    let two = append(&core, &id, "two")?;
    ensure!(ids(&core, &id)?.len() == 7 && ids(&core, &id)?.contains(&two));
    Ok(())
}

#[test]
fn the_export_of_a_recorded_conversation_can_be_imported_beside_it() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let core = TestCore::open(&folder.path().join("data"))?;
    let recorded = record(&core, &["one", "two"])?;
    let id = &recorded.conversation;
    append(&core, id, "three")?;
    let bundle = folder.path().join("bundle");
    core.export(&bundle)?;
    let (all, revision) = (ids(&core, id)?, core.store.revision());
    let own = import(&core, &bundle)?;
    ensure!(core.store.revision() == revision, "its own export changes nothing");
    let four = append(&core, id, "four")?;
    let grown: BTreeSet<String> = all.into_iter().chain([four]).collect();
    ensure!(ids(&core, id)? == grown && leaf(&stored(&core, id)?).is_some());
    import(&core, &bundle)?;
    ensure!(ids(&core, id)? == grown, "an older export removes nothing");
    undo_or_redo(&core, &own, UndoDirection::Undo)?;
    ensure!(ids(&core, id)? == grown, "what was recorded does not depend on an import");
    let state = core.state()?;
    let data = folder.path().join("data");
    core.close()?;
    ensure!(TestCore::open(&data)?.state()? == state);
    Ok(())
}

#[test]
fn a_conversation_of_a_stranger_cannot_be_continued() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let there = TestCore::open(&folder.path().join("there"))?;
    let id = record(&there, &["one"])?.conversation;
    let bundle = folder.path().join("bundle");
    let signer = there.export(&bundle)?.signer;
    let here = TestCore::open(&folder.path().join("here"))?;
    import(&here, &bundle)?;
    let refused = here.imports.recordings().append(&call(), &id, "", &[message("two")]);
    ensure!(matches!(&refused, Err(RecordingError::State { id: named, .. }) if *named == id), "{refused:?}");
    ensure!(ids(&here, &id)?.len() == 1);
    here.trust(&signer)?;
    import(&here, &bundle)?;
    append(&here, &id, "two")?;
    ensure!(ids(&here, &id)?.len() == 2);
    Ok(())
}

/// After any sequence of appends, imports, undos and redos, exactly that is shown which was appended, and what an import
/// brought that is not undone.
#[test]
fn any_sequence_shows_what_was_recorded_and_what_counts() -> Result<()> {
    const SEQUENCES: u64 = 8;
    const STEPS: u64 = 16;
    let made = tempfile::tempdir()?;
    let (there, export, _, id) = imported(made.path())?;
    append(&there, &id, "theirs")?;
    let bundle = made.path().join("bundle");
    let signer = there.export(&bundle)?.signer;
    let sources = [(export, 4), (bundle, 5)];
    for seed in 0..SEQUENCES {
        let folder = tempfile::tempdir()?;
        let dir = folder.path().join("data");
        let mut core = TestCore::open(&dir)?;
        core.trust(&signer)?;
        let mut rng = Rng::new(seed);
        let mut appended = BTreeSet::new();
        // For each import: its id, its messages, and whether it counts.
        let mut imports: Vec<(String, usize, bool)> = Vec::new();
        for step in 0..STEPS {
            let at = usize::try_from(rng.below(16))? % imports.len().max(1);
            match rng.below(4) {
                0 => {
                    let (source, messages) = &sources[usize::try_from(rng.below(2))?];
                    imports.push((import(&core, source)?, *messages, true));
                }
                1 if !imports.is_empty() => {
                    let (import, _, counts) = &mut imports[at];
                    let direction = if *counts { UndoDirection::Undo } else { UndoDirection::Redo };
                    undo_or_redo(&core, import, direction)?;
                    *counts = !*counts;
                }
                2 if step % 5 == 0 => {
                    core.close()?;
                    core = TestCore::open(&dir)?;
                }
                _ => match core.imports.recordings().append(&call(), &id, "", &[message("mine")]) {
                    Ok(recorded) => appended.extend(recorded.messages),
                    Err(RecordingError::NoConversation(_)) => ensure!(appended.is_empty(), "{seed} {step}"),
                    Err(error) => return Err(error.into()),
                },
            }
            let brought = imports.iter().filter(|import| import.2).map(|import| import.1).max().unwrap_or(0);
            let stored = core.store.conversation(&id, None)?;
            let shown: BTreeSet<String> = stored
                .into_iter()
                .filter(|stored| !stored.withdrawn)
                .flat_map(|stored| stored.heads)
                .map(|head| head.id)
                .collect();
            ensure!(shown.is_superset(&appended), "sequence {seed}, step {step}: a message was lost");
            ensure!(shown.len() == appended.len() + brought, "sequence {seed}, step {step}: {shown:?}");
        }
    }
    Ok(())
}
