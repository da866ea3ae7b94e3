//! Files in a data directory that can safely be removed: they are reported, and removed on request.

use std::path::Path;

use satchel_core::residue::{self, Removal, ResidueEntry};
use satchel_store::{Store, StoreError};
use serde::Serialize;

use super::DoctorReport;
use crate::cli::text;

/// Something that can safely be removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct ResidueReport {
    pub(super) path: String,
    pub(super) what: String,
    /// Its size; `None` if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) bytes: Option<u64>,
    /// How to remove it.
    pub(super) fix: String,
}

/// The command that removes most leftovers.
const REPAIR_COMMAND: &str = "satchel doctor --repair";
/// What completes an interrupted erasure.
const COMPLETED_ON_OPEN: &str = "leave it; the next start of `satchel serve` completes it";

impl DoctorReport {
    /// Reports attachment files that no message refers to.
    pub(super) fn add_orphans(&mut self, many: u64, data_dir: &Path) {
        if many > 0 {
            self.residue.push(ResidueReport {
                path: data_dir.join("blobs").display().to_string(),
                what: describe_orphans(many),
                bytes: None,
                fix: REPAIR_COMMAND.to_owned(),
            });
        }
    }

    /// Removes attachment files that no message refers to. No other process has the store open.
    pub(super) fn remove_orphans(&mut self, store: &Store, hashes: &[[u8; 32]]) -> Result<(), StoreError> {
        let mut bytes = 0;
        for hash in hashes {
            bytes += store.blob_remove(hash)?;
        }
        let (what, bytes) = (describe_orphans(hashes.len() as u64), text::bytes(bytes));
        self.repaired.push(format!("{what}: removed, {bytes}"));
        Ok(())
    }

    /// Reports what interrupted work left behind, and removes those of `old` that can be removed. At this point, no
    /// other process has the data directory open.
    pub(super) fn handle_leftovers(&mut self, data_dir: &Path, old: &[ResidueEntry]) {
        let found = match residue::find(data_dir) {
            Ok(found) => found,
            Err(error) => {
                let message = format!("cannot list the data directory: {error}");
                return self.add_problem("LEFTOVERS", &message, "make it readable for your user");
            }
        };
        let claim = if old.is_empty() { None } else { satchel_store::lock_store(data_dir).ok() };
        for leftover in found {
            let shown = leftover.path.display().to_string();
            let mut fix = match leftover.removal {
                Removal::Safe => REPAIR_COMMAND.to_owned(),
                Removal::AskUser => format!("rm -r {}", text::shell_quoted(&shown)),
                Removal::NextOpen => COMPLETED_ON_OPEN.to_owned(),
            };
            if leftover.removal == Removal::Safe && claim.is_some() && old.contains(&leftover) {
                match residue::remove(&leftover) {
                    Ok(()) => {
                        let bytes = text::bytes(leftover.bytes);
                        self.repaired.push(format!("{shown}, {}: removed, {bytes}", leftover.description));
                        continue;
                    }
                    Err(error) => fix = format!("remove it manually: {error}"),
                }
            }
            let (what, bytes) = (leftover.description.to_owned(), Some(leftover.bytes));
            self.residue.push(ResidueReport { path: shown, what, bytes, fix });
        }
    }
}

fn describe_orphans(many: u64) -> String {
    format!(
        "{} that no message refers to, left behind by an interrupted import",
        text::count(many, "attachment file", "attachment files")
    )
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::{cell::Cell, fs, rc::Rc};

    use satchel_failpoints::listen_on_thread;
    use satchel_pam::conversation::Role;
    use satchel_server::config::Config;
    use satchel_store::{Batch, Change, ConversationWrite, MessageHead, MessageWrite, OpenOptions};

    use super::*;
    use crate::cli::doctor::tests::diagnose;

    /// Returns a store with two attachments, one of which is referred to only by an older version of a
    /// conversation.
    fn store_with_an_orphan(config: &Config) -> [[u8; 32]; 2] {
        let store = Store::open(&config.data_dir, OpenOptions::default(), &mut |_| {}).unwrap();
        let used = store.blob_put(&mut &b"kept"[..]).unwrap();
        let orphan = store.blob_put(&mut &b"orphan"[..]).unwrap();
        let conversation_write = |digest: u8, attachments: serde_json::Value| {
            let header = serde_json::json!({
                "id": "c", "provider": {"name": "chatgpt"}, "temporal": {"created_at": "2026-01-02T03:04:05Z"},
            });
            let head = MessageHead {
                id: "m".to_owned(),
                parent: None,
                role: Role::User,
                created_at_micros: 0,
                hidden: false,
                thought: false,
                digest: [digest; 16],
                opaque: Vec::new(),
            };
            let body = serde_json::to_vec(&serde_json::json!({"attachments": attachments})).unwrap();
            ConversationWrite {
                header: serde_json::from_value(header).unwrap(),
                current: None,
                opaque: Vec::new(),
                messages: vec![MessageWrite::Put { head, body }],
            }
        };
        let with = serde_json::json!([{"type": "image", "ref": format!("attachments/{used}")}]);
        for (digest, attachments) in [(1, with), (2, serde_json::json!([]))] {
            let change = Change::Conversation(Box::new(conversation_write(digest, attachments)));
            store.commit(Batch { changes: vec![change], ..Batch::default() }).unwrap();
        }
        store.close().unwrap();
        [used.sha256, orphan.sha256]
    }

    #[test]
    fn an_orphaned_file_is_reported_and_removed_only_with_repair() {
        let home = tempfile::tempdir().unwrap();
        let config = Config::new(home.path().join("data"), home.path().to_owned());
        let [used, orphan] = store_with_an_orphan(&config);
        for _ in 0..2 {
            let found = diagnose(&config, false);
            assert!(found.problems.is_empty() && found.repaired.is_empty(), "{found:?}");
            assert_eq!(found.residue.len(), 1, "{found:?}");
            assert!(
                found.residue[0].what.starts_with("1 attachment file")
                    && found.residue[0].fix == REPAIR_COMMAND
            );
        }
        let repaired = diagnose(&config, true);
        assert!(repaired.problems.is_empty() && repaired.residue.is_empty(), "{repaired:?}");
        assert!(repaired.repaired[0].contains("removed, 6 B"), "{repaired:?}");
        let again = diagnose(&config, true);
        assert!(again.repaired.is_empty() && again.residue.is_empty(), "{again:?}");
        let store = Store::open(&config.data_dir, OpenOptions::default(), &mut |_| {}).unwrap();
        assert!(store.blob_open(&used).unwrap().is_some() && store.blob_open(&orphan).unwrap().is_none());
    }

    #[test]
    fn residue_of_interrupted_work_is_reported_and_removed_only_with_repair() {
        let home = tempfile::tempdir().unwrap();
        let config = Config::new(home.path().join("data"), home.path().to_owned());
        Store::open(&config.data_dir, OpenOptions::default(), &mut |_| {}).unwrap().close().unwrap();
        let aside = config.data_dir.join("db.broken-7");
        fs::create_dir_all(config.data_dir.join("encrypting/journal")).unwrap();
        fs::create_dir(&aside).unwrap();
        fs::write(aside.join("db"), "old").unwrap();
        let found = diagnose(&config, false);
        assert!(found.problems.is_empty() && found.repaired.is_empty(), "{found:?}");
        let paths: Vec<&str> =
            found.residue.iter().map(|left| left.path.rsplit('/').next().unwrap()).collect();
        assert_eq!(paths, ["db.broken-7", "encrypting"]);
        assert_eq!(found.residue[0].bytes, Some(3));
        let repaired = diagnose(&config, true);
        assert_eq!(
            (repaired.repaired.len(), repaired.residue.len(), aside.exists()),
            (2, 0, false),
            "{repaired:?}"
        );
        let again = diagnose(&config, true);
        assert!(
            again.repaired.is_empty() && again.residue.is_empty() && again.problems.is_empty(),
            "{again:?}"
        );
    }

    /// Another process that waits for the store opens it as soon as it is closed, and refers to an orphaned file.
    #[test]
    fn a_file_that_another_process_refers_to_meanwhile_is_kept() {
        let home = tempfile::tempdir().unwrap();
        let config = Config::new(home.path().join("data"), home.path().to_owned());
        let [_, orphan] = store_with_an_orphan(&config);
        let closed = Rc::new(Cell::new(false));
        listen_on_thread({
            let (dir, closed) = (config.data_dir.clone(), Rc::clone(&closed));
            move |place| {
                // Only once: at a later close it would write the file again that was removed in between.
                if place == "store closed" && !closed.replace(true) {
                    refer(&dir);
                }
            }
        });
        let repaired = diagnose(&config, true);
        assert!(repaired.repaired[0].contains("removed, 6 B") && closed.get(), "{repaired:?}");
        let store = Store::open(&config.data_dir, OpenOptions::default(), &mut |_| {}).unwrap();
        assert!(store.blob_open(&orphan).unwrap().is_some(), "{repaired:?}");
    }

    /// Commits a reference to the orphaned file.
    fn refer(dir: &Path) {
        let store = Store::open(dir, OpenOptions::default(), &mut |_| {}).unwrap();
        let blob = store.blob_put(&mut &b"orphan"[..]).unwrap();
        let value = format!("attachments/{blob}").into_bytes();
        let (ledger, id) = (satchel_store::Ledger::Request, "refers".to_owned());
        let write = satchel_store::LedgerWrite::Entry { ledger, id, at_micros: 0, value };
        store.commit(Batch { changes: vec![Change::Ledger(write)], ..Batch::default() }).unwrap();
        store.close().unwrap();
    }
}
