//! PAM documents are imported as they are: our own and those of others, intact, broken and hostile.

mod foreign;
mod malformed;
mod own_bundles;
mod preserved;

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use satchel_core::ingest::receipt::ImportRecord;
use satchel_pam::{hash::ContentHash, record::RecordKind};
use satchel_tests::{
    samples::backdate,
    test_core::{TestCore, demo_folder, only_import},
};
use serde_json::{Value, json};

/// A data directory and a folder for the files of a test.
struct ImportFixture {
    folder: tempfile::TempDir,
    core: TestCore,
}

impl ImportFixture {
    fn new() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let core = TestCore::open(&folder.path().join("data"))?;
        Ok(Self { folder, core })
    }

    /// Returns a place with the two sample exports imported.
    fn with_demo_exports() -> Result<Self> {
        let fixture = Self::new()?;
        fixture.core.import(&demo_folder().join("chatgpt-export"))?;
        fixture.core.import(&demo_folder().join("claude-export"))?;
        Ok(fixture)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, content: &Value) -> Result<PathBuf> {
        self.write_bytes(name, &serde_json::to_vec(content)?)
    }

    fn write_bytes(&self, name: &str, bytes: &[u8]) -> Result<PathBuf> {
        let path = self.path(name);
        fs::create_dir_all(path.parent().context("a parent")?)?;
        fs::write(&path, bytes)?;
        Ok(path)
    }

    fn import(&self, path: &Path) -> Result<ImportRecord> {
        // An incomplete file must count as broken and not as a running download.
        if path.is_dir() {
            backdate(path)?;
        }
        let import = only_import(self.core.import(path)?)?;
        assert_balanced(&import)?;
        Ok(import)
    }
}

fn assert_balanced(import: &ImportRecord) -> Result<()> {
    for counts in [import.conversations, import.messages, import.memories, import.embeddings] {
        ensure!(counts.balanced(), "{import:?}");
    }
    Ok(())
}

fn changed_records(import: &ImportRecord) -> u64 {
    [import.conversations, import.messages, import.memories]
        .iter()
        .map(|counts| counts.new + counts.updated)
        .sum()
}

fn has_warning(import: &ImportRecord, locator: &str, message: &str) -> bool {
    import.warnings.iter().any(|one| one.locator.contains(locator) && one.message.contains(message))
}

fn has_skip(import: &ImportRecord, kind: RecordKind, locator: &str, reason: &str) -> bool {
    import
        .skipped
        .iter()
        .any(|one| one.kind == kind && one.locator.ends_with(locator) && one.reason.contains(reason))
}

fn memory(id: &str, content: &str) -> Value {
    json!({
        "id": id, "type": "fact", "status": "active", "content": content,
        "content_hash": ContentHash::of(content).to_string(), "tags": [],
        "temporal": {"created_at": "2026-01-02T03:04:05+02:00"}, "provenance": {"platform": "elsewhere"},
    })
}

fn memory_store(memories: &[Value]) -> Value {
    json!({
        "schema": "portable-ai-memory", "schema_version": "1.0", "owner": {"id": "someone"},
        "memories": memories, "relations": [], "conversations_index": [],
    })
}

fn message(id: &str, text: &str) -> Value {
    json!({
        "id": id, "role": "user", "content": {"type": "text", "text": text},
        "created_at": "2026-01-02T03:04:05Z",
    })
}

fn conversation(id: &str, messages: &[Value]) -> Value {
    json!({
        "schema": "portable-ai-memory-conversation", "schema_version": "1.0", "id": id,
        "provider": {"name": "elsewhere"}, "temporal": {"created_at": "2026-01-02T03:04:05Z"}, "messages": messages,
    })
}
