//! Everything that a store shows, as an export has it, without what depends on place and time.

use std::{collections::BTreeMap, fs, path::Path, sync::Arc};

use satchel_core::{
    clock::SystemClock,
    export::{ExportFormat, ExportRequest, Exports, Extent, Selection},
};
use satchel_store::Store;
use serde_json::{Value, json};

/// The memories, relations and conversations of a store.
pub(super) struct StoredState {
    memories: Value,
    relations: Value,
    /// By the names of their files.
    conversations: BTreeMap<String, Value>,
}

type StateResult<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

impl StoredState {
    /// Exports the store that is in `data_dir`, and reads the export.
    pub(super) fn of(store: &Store, data_dir: &Path) -> StateResult<Self> {
        let folder = tempfile::tempdir()?;
        let output = folder.path().join("bundle");
        let exports = Exports::new(store.clone(), Arc::new(SystemClock), data_dir.join("keys"));
        exports.create(&ExportRequest {
            output: output.clone(),
            format: ExportFormat::Pam,
            conversations: true,
            attachments: false,
            extent: Extent::Full,
            selection: Selection::default(),
            lock: None,
        })?;
        Self::read(&output)
    }

    fn read(bundle: &Path) -> StateResult<Self> {
        let memories: Value = serde_json::from_slice(&fs::read(bundle.join("memory-store.json"))?)?;
        let mut conversations = BTreeMap::new();
        let folder = bundle.join("conversations");
        if folder.is_dir() {
            for entry in fs::read_dir(folder)? {
                let entry = entry?;
                let mut conversation: Value = serde_json::from_slice(&fs::read(entry.path())?)?;
                // It names the import and its time.
                conversation.as_object_mut().map(|members| members.remove("import_metadata"));
                conversations.insert(entry.file_name().to_string_lossy().into_owned(), conversation);
            }
        }
        let list = |name: &str| memories.get(name).cloned().unwrap_or_else(|| json!([]));
        Ok(Self { memories: list("memories"), relations: list("relations"), conversations })
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "memories": self.memories, "relations": self.relations, "conversations": self.conversations,
        })
    }
}
