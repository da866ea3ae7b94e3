//! What agents write on the disk: durable, bounded, sealed, in backups, and erased on request.

use std::{
    fs::{self, OpenOptions as FileOptions},
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use satchel_core::{
    backup::{create, restore},
    clock::SystemClock,
    edits::{Agent, AgentDraft, Draft, EditContext, EditError, Edits, ReviewDecision},
    export::Exports,
    ingest::Imports,
    purge::{self, Target},
    vault::UnlockOptions,
};
use satchel_pam::memory::ExtractionMethod;
use satchel_registry::Plugins;
use satchel_seal::{DataKey, Seal};
use satchel_source::Limits;
use satchel_store::{OpenOptions, Store};
use satchel_tests::{
    generate::Rng,
    test_core::{TestCore, code_cache},
};

/// Set in the child that is killed: the folder of the test.
const FOLDER: &str = "SATCHEL_TEST_AGENT_KILL";
const ROUNDS: u64 = 5;
/// Latest moment of a kill, in milliseconds after the store was opened.
const LATEST_KILL_MILLIS: u64 = 400;
/// A child that is not ready after this time counts as hanging.
const START_TIMEOUT: Duration = Duration::from_mins(2);
/// The most memories of one device that wait.
const LIMIT: usize = 1_000;

fn agent(name: &str) -> Agent {
    Agent {
        device: format!("device-{name}"),
        device_name: name.to_owned(),
        entity: name.to_owned(),
        platform: name.to_owned(),
    }
}

fn owner() -> EditContext {
    EditContext { actor: "owner".to_owned(), ..EditContext::default() }
}

fn statement(content: &str) -> AgentDraft {
    AgentDraft {
        draft: Draft { content: Some(content.to_owned()), ..Draft::default() },
        confidence: None,
        conversation: None,
        message: None,
        method: ExtractionMethod::LlmInference,
    }
}

fn write(edits: &Edits, name: &str, content: &str) -> Result<String> {
    let call = EditContext { actor: format!("device:{name}"), ..EditContext::default() };
    let outcome = edits.quarantine_memory(&call, &agent(name), &statement(content))?;
    ensure!(outcome.quarantined, "{outcome:?}");
    Ok(outcome.memories.first().context("an id")?.clone())
}

fn open_core(dir: &Path, options: OpenOptions) -> Result<TestCore> {
    let store = Store::open(dir, options, &mut |_| {})?;
    let plugins = Arc::new(Plugins::built_in(Some(code_cache())));
    let limits = satchel_host::PluginLimits::default();
    let imports = Imports::new(store.clone(), plugins, Arc::new(SystemClock), Limits::default(), limits)?;
    let exports = Exports::new(store.clone(), Arc::new(SystemClock), dir.join("keys"));
    Ok(TestCore { store, imports, exports })
}

/// Returns the contents of the memories that wait, or of those that were reviewed.
fn contents(core: &TestCore, waiting: bool) -> Result<Vec<String>> {
    let page = core.imports.edits().quarantined_memories(waiting, None, 2 * LIMIT)?;
    let mut contents = Vec::new();
    for entry in page.items {
        contents.push(entry.memory()?.content);
    }
    contents.sort();
    Ok(contents)
}

#[test]
fn a_device_fills_its_own_quarantine_and_no_other() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let core = TestCore::open(folder.path())?;
    let edits = core.imports.edits();
    let mut ids = Vec::new();
    for number in 0..LIMIT {
        ids.push(write(edits, "one", &format!("Fact {number}"))?);
    }
    let full = edits.quarantine_memory(&owner(), &agent("one"), &statement("One more"));
    ensure!(matches!(full, Err(EditError::QuarantineFull { .. })), "{full:?}");
    // What waits already is still answered, other devices still write, and a review makes room.
    write(edits, "one", "Fact 7")?;
    write(edits, "two", "Fact 7")?;
    ensure!(edits.waiting_memories()? == LIMIT as u64 + 1);
    edits.review_memories(&owner(), &ids[..2], ReviewDecision::Reject)?;
    write(edits, "one", "One more")?;
    core.close()?;
    // The counts survive a restart.
    let core = TestCore::open(folder.path())?;
    let edits = core.imports.edits();
    ensure!(edits.waiting_memories()? == LIMIT as u64);
    write(edits, "one", "The last one")?;
    let full = edits.quarantine_memory(&owner(), &agent("one"), &statement("Too many"));
    ensure!(matches!(full, Err(EditError::QuarantineFull { .. })), "{full:?}");
    core.close()
}

#[test]
fn large_memories_fill_the_quarantine_sooner() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let core = TestCore::open(folder.path())?;
    let edits = core.imports.edits();
    let mut stored = 0;
    let full = loop {
        let content = format!("{stored} {}", "x".repeat(63_000));
        match edits.quarantine_memory(&owner(), &agent("one"), &statement(&content)) {
            Ok(_) => stored += 1,
            Err(error) => break error,
        }
    };
    ensure!(matches!(full, EditError::QuarantineFull { .. }), "{full:?}");
    ensure!((200..=266).contains(&stored), "{stored} memories of 63 kB each fit into 16 MiB");
    core.close()
}

#[test]
fn the_quarantine_survives_rebuild_backup_and_encryption() -> Result<()> {
    let seal = Seal::new(&DataKey::from_bytes(&[42; 32]));
    for seal in [None, Some(seal)] {
        let folder = tempfile::tempdir()?;
        let dir = folder.path().join("data");
        let options = |rebuild| OpenOptions { seal: seal.clone(), rebuild, ..OpenOptions::default() };
        let core = open_core(&dir, options(false))?;
        let edits = core.imports.edits();
        write(edits, "one", "Waits for quokka-plum-1182")?;
        let id = write(edits, "one", "Rejected for quokka-plum-1182")?;
        edits.review_memories(&owner(), &[id], ReviewDecision::Reject)?;
        let (waiting, reviewed) = (contents(&core, true)?, contents(&core, false)?);
        ensure!(waiting == ["Waits for quokka-plum-1182"] && reviewed.len() == 1, "{waiting:?}");
        let report = core.store.check(true, &mut |_| {})?;
        ensure!(report.clean(), "{report:?}");
        core.close()?;
        let found = occurs(&dir, b"quokka-plum-1182")?;
        ensure!(found == seal.is_none(), "sealed: {}, found: {found}", seal.is_some());
        let core = open_core(&dir, options(true))?;
        ensure!(contents(&core, true)? == waiting && contents(&core, false)? == reviewed);
        core.close()?;
    }
    Ok(())
}

#[test]
fn a_backup_contains_the_quarantine() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let core = TestCore::open(&folder.path().join("data"))?;
    write(core.imports.edits(), "one", "In the backup")?;
    let backup = folder.path().join("backup.zip");
    create::create(&core.store, &folder.path().join("data"), &backup, 1, &mut |_| true)?;
    core.close()?;
    let restored = folder.path().join("restored");
    restore::restore(&backup, &restored, false, &UnlockOptions::default(), &mut |_| true)?;
    let core = TestCore::open(&restored)?;
    ensure!(contents(&core, true)? == ["In the backup"]);
    core.close()
}

#[test]
fn an_erasure_covers_what_agents_wrote() -> Result<()> {
    const SECRET: &str = "ibex-tulip-7314";
    let folder = tempfile::tempdir()?;
    let dir = folder.path();
    let core = TestCore::open(dir)?;
    let edits = core.imports.edits();
    let rejected = write(edits, "one", &format!("The safe opens with {SECRET}"))?;
    write(edits, "two", &format!("The safe opens with {SECRET}"))?;
    write(edits, "two", "Harmless")?;
    edits.review_memories(&owner(), std::slice::from_ref(&rejected), ReviewDecision::Reject)?;
    let plan = purge::planned(&core.store, &Target::Memory(rejected), 1_800_000_000_000_000)?;
    let plan = plan.context("there is something to erase")?;
    purge::record_purge(&core.store, &plan.record)?;
    let store = core.store.clone();
    drop(core);
    purge::erase_recorded(dir, store, None, &mut |_| {})?;
    ensure!(!occurs(dir, SECRET.as_bytes())?, "erased text is on the disk");
    let core = TestCore::open(dir)?;
    ensure!(contents(&core, true)? == ["Harmless"] && contents(&core, false)?.is_empty());
    // The text does not come back by an approval.
    let id = write(core.imports.edits(), "one", &format!("The safe opens with {SECRET}"))?;
    let approved = core.imports.edits().review_memories(&owner(), &[id], ReviewDecision::Approve);
    ensure!(matches!(approved, Err(EditError::State { .. })), "{approved:?}");
    core.close()
}

/// Returns whether a file below a folder contains the bytes, verbatim or in a frame compressed with zstd.
fn occurs(folder: &Path, bytes: &[u8]) -> Result<bool> {
    const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
    let has = |text: &[u8]| text.windows(bytes.len()).any(|window| window == bytes);
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            if occurs(&path, bytes)? {
                return Ok(true);
            }
            continue;
        }
        let text = fs::read(&path)?;
        let frames = text.windows(4).enumerate().filter(|(_, window)| *window == ZSTD_MAGIC);
        let packed = frames.filter_map(|(at, _)| {
            let rest = text.get(at..)?;
            let length = zstd::zstd_safe::find_frame_compressed_size(rest).ok()?;
            zstd::bulk::decompress(rest.get(..length)?, 4 << 20).ok()
        });
        if has(&text) || packed.into_iter().any(|text| has(&text)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Not a separate test: it runs in the child process of the test below. It writes memories and reviews some of them, and
/// logs what was acknowledged.
#[test]
fn child_that_is_killed() -> Result<()> {
    let Some(folder) = std::env::var_os(FOLDER) else { return Ok(()) };
    let folder = Path::new(&folder);
    let core = TestCore::open(&folder.join("data"))?;
    let mut log = FileOptions::new().create(true).append(true).open(folder.join("log"))?;
    let edits = core.imports.edits();
    // What the last round wrote last may be stored although it is not in the log.
    let process = std::process::id();
    fs::write(folder.join("opened"), "")?;
    for number in 0_u64.. {
        let content = format!("Fact {process} {number}");
        let id = write(edits, &format!("agent-{process}"), &content)?;
        let state = match number % 3 {
            0 => {
                edits.review_memories(&owner(), &[id], ReviewDecision::Approve)?;
                "approved"
            }
            1 => {
                edits.review_memories(&owner(), &[id], ReviewDecision::Reject)?;
                "rejected"
            }
            _ => "waits",
        };
        // One write for the whole line: `writeln!` writes it in parts, and a kill between them leaves half a line.
        log.write_all(format!("{state} {content}\n").as_bytes())?;
        log.sync_data()?;
    }
    Ok(())
}

#[test]
fn what_was_acknowledged_survives_a_kill() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let folder = folder.path();
    let mut rng = Rng::new(71);
    for round in 0..ROUNDS {
        kill_once(folder, rng.below(LATEST_KILL_MILLIS))?;
        let core = TestCore::open(&folder.join("data"))?;
        let (waiting, reviewed) = (contents(&core, true)?, contents(&core, false)?);
        let at = core.store.revision();
        let memories = core.store.memories(&satchel_store::MemoryQuery::default(), None, 10_000, at)?.items;
        let log = fs::read_to_string(folder.join("log"))?;
        for line in log.lines() {
            let (state, content) = line.split_once(' ').context("a line of the log")?;
            let shown = memories.iter().any(|record| record.memory.content == content);
            let waits = waiting.iter().any(|one| one == content);
            let settled = reviewed.iter().any(|one| one == content);
            let expected = match state {
                "approved" => (true, false, true),
                "rejected" => (false, false, true),
                _ => (false, true, false),
            };
            ensure!((shown, waits, settled) == expected, "round {round}: {line}");
        }
        let report = core.store.check(true, &mut |_| {})?;
        ensure!(report.clean(), "{report:?}");
        core.close()?;
    }
    let lines = fs::read_to_string(folder.join("log"))?.lines().count();
    ensure!(lines > 0, "nothing was acknowledged in {ROUNDS} rounds");
    Ok(())
}

/// Runs the child and kills it `millis` milliseconds after it has opened the store.
fn kill_once(folder: &Path, millis: u64) -> Result<()> {
    let opened = folder.join("opened");
    if opened.exists() {
        fs::remove_file(&opened)?;
    }
    let mut command = Command::new(std::env::current_exe()?);
    command
        .args(["--exact", "agent_memories::stored::child_that_is_killed", "--test-threads", "1"])
        .env(FOLDER, folder);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let began = Instant::now();
    while !opened.exists() && began.elapsed() < START_TIMEOUT && child.try_wait()?.is_none() {
        std::thread::park_timeout(Duration::from_millis(2));
    }
    // The random moment is the point of the test.
    std::thread::park_timeout(Duration::from_millis(millis));
    let ended = child.try_wait()?;
    child.kill()?;
    child.wait()?;
    ensure!(ended.is_none(), "the child ended before it was killed");
    Ok(())
}
