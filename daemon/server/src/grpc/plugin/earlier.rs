//! The earlier imports of an importer: which it would read anew, and how much it brought.

use std::collections::BTreeSet;

use satchel_core::ingest::receipt::{ImportRecord, ImportStatus};
use satchel_registry::Installed;

use super::{find, in_use, missing};
use crate::grpc::{call_state::CallState, status::CallError};

/// Entries of the ledger that are read at once.
const LEDGER_PAGE: usize = 200;

/// What imports of a plugin added, as far as they count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Made {
    pub(super) imports: u64,
    pub(super) conversations: u64,
    pub(super) memories: u64,
}

/// A version of a plugin, and the names of the built-in ones whose place it takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'a> {
    pub(super) name: &'a str,
    pub(super) version: &'a str,
    pub(super) replaces: &'a [String],
}

impl Reader<'_> {
    /// Whether this version would read anew what `plugin`, as `name/x.y.z`, has read.
    fn reads_anew(&self, plugin: &str) -> bool {
        let Some((name, version)) = plugin.split_once('/') else { return false };
        let (own, replaced) = (name == self.name, self.replaces.iter().any(|replaced| replaced == name));
        (own || replaced) && (name, version) != (self.name, self.version)
    }

    /// Whether this version itself has read it.
    fn has_read(&self, plugin: &str) -> bool {
        plugin.split_once('/') == Some((self.name, self.version))
    }
}

/// Counts what the imports of these versions added.
pub(super) fn imports_by(state: &CallState, removed: &[Installed]) -> Result<Made, CallError> {
    let versions: BTreeSet<String> =
        removed.iter().map(|one| format!("{}/{}", one.manifest.name, one.manifest.version)).collect();
    let mut made = Made::default();
    for_each_import(state, |import| {
        let by_these = import.plugin.as_ref().is_some_and(|plugin| versions.contains(plugin));
        // An import that changed no revision brought nothing.
        if by_these && counts(&import) && import.revisions.is_some() {
            made.imports += 1;
            made.conversations += import.conversations.new;
            made.memories += import.memories.new;
        }
    })?;
    Ok(made)
}

/// Returns the imports of sources that the version of a plugin in use would read anew, newest first.
pub(in crate::grpc) fn outdated_imports(
    state: &CallState,
    plugin: &str,
) -> Result<Vec<ImportRecord>, CallError> {
    let row = find(state, plugin, "")?;
    if !in_use(&row) {
        return Err(missing(plugin, None));
    }
    let rows = state.plugins.list()?.into_iter();
    let replaces: Vec<String> =
        rows.filter(|other| other.replaced_by.as_deref() == Some(plugin)).map(|other| other.name).collect();
    read_anew(state, Reader { name: &row.name, version: &row.version, replaces: &replaces })
}

/// Returns the newest import of each source that `reader` would read anew.
pub(super) fn read_anew(state: &CallState, reader: Reader<'_>) -> Result<Vec<ImportRecord>, CallError> {
    let mut newest = NewestImports::default();
    for_each_import(state, |import| newest.add(reader, import))?;
    Ok(newest.found)
}

/// Collects imports, newest first.
#[derive(Default)]
struct NewestImports {
    seen: BTreeSet<(String, Vec<String>)>,
    found: Vec<ImportRecord>,
}

impl NewestImports {
    fn add(&mut self, reader: Reader<'_>, import: ImportRecord) {
        let (Some(plugin), Some(checksum)) = (&import.plugin, &import.source_checksum) else { return };
        let (anew, has_read) = (reader.reads_anew(plugin), reader.has_read(plugin));
        let ended = counts(&import) || import.status == ImportStatus::Undone;
        if !(anew || has_read) || !ended {
            return;
        }
        let newest = self.seen.insert((checksum.clone(), import.files.clone()));
        if newest && anew && counts(&import) {
            self.found.push(ImportRecord { skipped: Vec::new(), warnings: Vec::new(), ..import });
        }
    }
}

/// Whether what an import brought counts.
fn counts(import: &ImportRecord) -> bool {
    match import.status {
        ImportStatus::Completed | ImportStatus::CompletedWithSkips | ImportStatus::Unchanged => true,
        ImportStatus::Running
        | ImportStatus::Unrecognized
        | ImportStatus::Failed
        | ImportStatus::Cancelled
        | ImportStatus::Undone
        | ImportStatus::Waiting => false,
    }
}

/// Calls `each` with every import of the ledger, newest first.
fn for_each_import(state: &CallState, mut each: impl FnMut(ImportRecord)) -> Result<(), CallError> {
    let mut after = None;
    loop {
        let page = state.imports.list(after.as_ref(), LEDGER_PAGE)?;
        page.items.into_iter().for_each(&mut each);
        after = page.next;
        if after.is_none() {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn import(checksum: &str, plugin: &str, status: ImportStatus) -> ImportRecord {
        let json = serde_json::json!({
            "id": plugin, "job": "", "source": "", "path": "", "source_checksum": checksum, "plugin": plugin,
            "status": status, "attachments": 0, "skipped": [], "warnings": [], "warnings_found": 0,
            "issue_pages": 0, "bytes": 0, "started_at": 0, "elapsed_ms": 0,
            "conversations": {"found": 0, "new": 0, "updated": 0, "unchanged": 0, "skipped": 0},
            "messages": {"found": 0, "new": 0, "updated": 0, "unchanged": 0, "skipped": 0},
            "memories": {"found": 0, "new": 0, "updated": 0, "unchanged": 0, "skipped": 0},
        });
        serde_json::from_value(json).expect("a receipt")
    }

    #[test]
    fn only_what_another_version_read_last_is_read_anew() {
        let replaces = ["chatgpt".to_owned()];
        let reader = Reader { name: "notes", version: "2.0.0", replaces: &replaces };
        let done = ImportStatus::Completed;
        let history = [
            import("read-by-this", "notes/2.0.0", done),
            import("read-by-this", "notes/1.0.0", done),
            import("older", "notes/1.0.0", ImportStatus::Failed),
            import("older", "notes/1.0.0", done),
            import("older", "notes/0.9.0", done),
            import("built-in", "chatgpt/1.4.0", done),
            import("undone", "notes/1.0.0", ImportStatus::Undone),
            import("undone", "notes/0.9.0", done),
            import("of-another", "claude/1.0.0", done),
        ];
        let mut newest = NewestImports::default();
        history.into_iter().for_each(|one| newest.add(reader, one));
        let found: Vec<_> = newest
            .found
            .iter()
            .map(|one| (one.source_checksum.as_deref().unwrap_or_default(), one.id.as_str()))
            .collect();
        assert_eq!(found, [("older", "notes/1.0.0"), ("built-in", "chatgpt/1.4.0")]);
    }
}
