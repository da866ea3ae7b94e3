//! Statistics of the store, from counters that each commit updates.

use std::{collections::BTreeMap, fs, io, path::Path};

use crate::{
    error::StoreError,
    report::Stats,
    store::Store,
    value::{EngineMeta, counter},
};

impl Store {
    /// Returns counts and sizes. The counts are free; for the sizes the files of the journal and the blobs are listed.
    ///
    /// # Errors
    /// Any error of the file system.
    pub fn stats(&self) -> Result<Stats, StoreError> {
        let mut stats = self.with_meta(counts);
        stats.engine_bytes = self.engine().size();
        for (folder, bytes) in [("journal", &mut stats.journal_bytes), ("blobs", &mut stats.blob_bytes)] {
            let path = self.dir().join(folder);
            *bytes = size(&path).map_err(StoreError::io("list", path))?;
        }
        Ok(stats)
    }
}

fn counts(meta: &EngineMeta) -> Stats {
    let one = |kind: u8| meta.counters.get(&(kind, String::new())).copied().unwrap_or(0);
    let named = |kind: u8| -> BTreeMap<String, u64> {
        let own = meta.counters.iter().filter(|((of, _), _)| *of == kind);
        own.map(|((_, name), count)| (name.clone(), *count)).collect()
    };
    Stats {
        memories: one(counter::MEMORIES),
        memories_by_type: named(counter::MEMORY_TYPE),
        memories_by_status: named(counter::MEMORY_STATUS),
        memories_by_platform: named(counter::MEMORY_PLATFORM),
        conversations: one(counter::CONVERSATIONS),
        conversations_by_platform: named(counter::CONVERSATION_PLATFORM),
        messages: one(counter::MESSAGES),
        relations: one(counter::RELATIONS),
        embeddings: one(counter::EMBEDDINGS),
        evidence: one(counter::EVIDENCE),
        ..Stats::default()
    }
}

fn size(path: &Path) -> io::Result<u64> {
    let mut total = 0;
    let mut folders = vec![path.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = match fs::read_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            // A file that is removed meanwhile has no size.
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.is_dir() {
                folders.push(entry.path());
            } else {
                total += metadata.len();
            }
        }
    }
    Ok(total)
}
