//! A data directory with many messages and memories, and a daemon that serves it.

use std::{
    fs::{self, File},
    io::BufWriter,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use satchel_pam::{
    hash::ContentHash,
    store::{Owner, StoreHeader, Writer},
    time::Timestamp,
};
use satchel_tests::generate::{self, Rng};
use serde_json::{Value, json};
use uuid::Builder;

use crate::{
    daily::import,
    print_line,
    process::{DaemonProcess, satchel_program},
    setting,
};

const MESSAGES: u64 = 1_000_000;
const MEMORIES: u64 = 50_000;
/// Number of topics; each memory has one of them as its tag.
const TOPICS: u64 = 100;
const TYPES: [&str; 4] = ["fact", "preference", "skill", "goal"];
const PLATFORMS: [&str; 4] = ["chatgpt", "claude", "gemini", "copilot"];
/// The first memory was created at this time, in microseconds since the Unix epoch; each further one a minute later.
const FIRST_CREATED: i64 = 1_600_000_000_000_000;
const MINUTE: i64 = 60_000_000;
/// The file that says that a store was filled.
const FILLED: &str = "filled";

/// A memory of the store, as far as the queries need it.
pub(super) struct StoredMemory {
    pub(super) id: String,
    pub(super) memory_type: &'static str,
    pub(super) platform: &'static str,
    pub(super) tag: String,
    pub(super) created: i64,
    /// The PAM document of the memory.
    pub(super) document: Value,
}

/// The store, and its daemon.
pub(super) struct FilledStore {
    pub(super) data: PathBuf,
    pub(super) memories: Vec<StoredMemory>,
    pub(super) messages: u64,
    pub(super) daemon: DaemonProcess,
}

impl FilledStore {
    /// Fills a new store, and starts its daemon.
    pub(super) fn open(scratch: &Path) -> Result<Self> {
        let folder =
            std::env::var_os("SATCHEL_BENCH_STORE").map_or_else(|| scratch.join("api"), PathBuf::from);
        let (messages, count) =
            (setting("SATCHEL_BENCH_MESSAGES", MESSAGES), setting("SATCHEL_BENCH_MEMORIES", MEMORIES));
        let memories = memories(count)?;
        let (data, filled) = (folder.join("data"), folder.join(FILLED));
        if !filled.exists() {
            print_line(&format!("filling a store with {messages} messages and {count} memories"));
            fill(&folder, &data, messages, &memories)?;
            fs::write(filled, [])?;
        }
        // Started anew, so that the daemon has only what any daemon has after its start.
        let daemon = DaemonProcess::listening(&satchel_program()?, &data)?;
        Ok(Self { data, memories, messages, daemon })
    }
}

/// Imports the messages and the memories.
fn fill(folder: &Path, data: &Path, messages: u64, memories: &[StoredMemory]) -> Result<()> {
    let program = satchel_program()?;
    let (export, document) = (folder.join("export"), folder.join("document"));
    fs::create_dir_all(&document)?;
    generate::chatgpt_short(&export, messages, 7)?;
    write_document(&document, memories)?;
    let daemon = DaemonProcess::start(&program, data)?;
    let (_, receipt) = import(&program, data, &export)?;
    let new = receipt["messages"]["new"].as_u64();
    ensure!(new == Some(messages), "not all messages arrived: {receipt}");
    let (_, receipt) = import(&program, data, &document)?;
    let new = receipt["memories"]["new"].as_u64();
    ensure!(new == Some(memories.len() as u64), "not all memories arrived: {receipt}");
    daemon.stop()?;
    fs::remove_dir_all(export)?;
    fs::remove_dir_all(document)?;
    Ok(())
}

fn memories(count: u64) -> Result<Vec<StoredMemory>> {
    let mut rng = Rng::new(11);
    (0..count).map(|number| memory(&mut rng, number)).collect()
}

fn memory(rng: &mut Rng, number: u64) -> Result<StoredMemory> {
    let mut random = [0; 16];
    random[..8].copy_from_slice(&rng.next_u64().to_be_bytes());
    random[8..].copy_from_slice(&rng.next_u64().to_be_bytes());
    let id = Builder::from_random_bytes(random).into_uuid().to_string();
    let mut choose = |from: [&'static str; 4]| from[usize::try_from(rng.below(4)).unwrap_or_default()];
    let (memory_type, platform) = (choose(TYPES), choose(PLATFORMS));
    let tag = format!("topic-{}", rng.below(TOPICS));
    let created = FIRST_CREATED + i64::try_from(number)? * MINUTE;
    let content = format!(
        "The bed with the number {number} has beans in it, and needs water every second day in summer."
    );
    let document = json!({
        "id": id, "type": memory_type, "status": "active", "content": content,
        "content_hash": ContentHash::of(&content).to_string(), "tags": [tag, "garden"],
        "temporal": {"created_at": Timestamp::saturating(created).to_string()},
        "provenance": {"platform": platform, "extraction_method": "api_export"},
    });
    Ok(StoredMemory { id, memory_type, platform, tag, created, document })
}

fn write_document(folder: &Path, memories: &[StoredMemory]) -> Result<()> {
    let owner = Owner { id: "0d0c0b0a-0000-4000-8000-000000000001".into(), did: None, created_at: None };
    let header = StoreHeader {
        export_id: Some("0d0c0b0a-0000-4000-8000-00000000000e".into()),
        export_date: Some(Timestamp::saturating(1_700_000_000_000_000)),
        ..StoreHeader::new(owner)
    };
    let file = File::create(folder.join("memory-store.json"))?;
    let mut writer = Writer::new(BufWriter::with_capacity(1 << 20, file), header)?;
    // A document lists its memories by id.
    let mut by_id: Vec<_> = memories.iter().collect();
    by_id.sort_by(|one, other| one.id.cmp(&other.id));
    for memory in by_id {
        writer.memory(&serde_json::from_value(memory.document.clone())?)?;
    }
    let out = writer.finish(None)?.out;
    out.into_inner().map_err(std::io::IntoInnerError::into_error)?.sync_all().context("the document")
}
