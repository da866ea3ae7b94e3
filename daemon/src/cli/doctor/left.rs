//! Files in a data directory that can safely be removed: they are reported, and removed on request.

use std::path::Path;

use satchel_core::leftovers::{self, Leftover, Way};
use satchel_store::{Store, StoreError};
use serde::Serialize;

use super::Findings;
use crate::cli::text;

/// Something that can safely be removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Left {
    pub(super) path: String,
    pub(super) what: String,
    /// Its size; `None` if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) bytes: Option<u64>,
    /// How to remove it.
    pub(super) fix: String,
}

/// The command that removes most leftovers.
const REPAIR: &str = "satchel doctor --repair";
/// What completes an interrupted erasure.
const OPEN: &str = "leave it; `satchel serve` goes on with it";

impl Findings {
    /// Reports attachment files that no message refers to.
    pub(super) fn orphaned(&mut self, many: u64, data_dir: &Path) {
        if many > 0 {
            self.left.push(Left {
                path: data_dir.join("blobs").display().to_string(),
                what: orphans(many),
                bytes: None,
                fix: REPAIR.to_owned(),
            });
        }
    }

    /// Removes attachment files that no message refers to. No other process has the store open.
    pub(super) fn remove_orphans(&mut self, store: &Store, hashes: &[[u8; 32]]) -> Result<(), StoreError> {
        let mut bytes = 0;
        for hash in hashes {
            bytes += store.blob_remove(hash)?;
        }
        let (what, bytes) = (orphans(hashes.len() as u64), text::bytes(bytes));
        self.repaired.push(format!("{what}: removed, {bytes}"));
        Ok(())
    }

    /// Reports what interrupted work left behind, and removes those of `old` that can be removed. At this point, no
    /// other process has the data directory open.
    pub(super) fn leftovers(&mut self, data_dir: &Path, old: &[Leftover]) {
        let found = match leftovers::find(data_dir) {
            Ok(found) => found,
            Err(error) => {
                let message = format!("the data directory cannot be listed: {error}");
                return self.problem("LEFTOVERS", &message, "give your user the right to read it");
            }
        };
        let claim = if old.is_empty() { None } else { satchel_store::claim(data_dir).ok() };
        for leftover in found {
            let shown = leftover.path.display().to_string();
            let mut fix = match leftover.way {
                Way::Remove => REPAIR.to_owned(),
                Way::Owner => format!("rm -r {}", text::quoted(&shown)),
                Way::Open => OPEN.to_owned(),
            };
            if leftover.way == Way::Remove && claim.is_some() && old.contains(&leftover) {
                match leftovers::remove(&leftover) {
                    Ok(()) => {
                        let bytes = text::bytes(leftover.bytes);
                        self.repaired.push(format!("{shown}, {}: removed, {bytes}", leftover.what));
                        continue;
                    }
                    Err(error) => fix = format!("remove it yourself: {error}"),
                }
            }
            let (what, bytes) = (leftover.what.to_owned(), Some(leftover.bytes));
            self.left.push(Left { path: shown, what, bytes, fix });
        }
    }
}

fn orphans(many: u64) -> String {
    format!(
        "{} that no message refers to, as an import leaves them that was killed",
        text::count(many, "file of an attachment", "files of attachments")
    )
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::{cell::Cell, fs, rc::Rc};

    use satchel_failpoints::listen_here;
    use satchel_pam::conversation::Role;
    use satchel_server::config::Config;
    use satchel_store::{Batch, Change, ConversationWrite, MessageHead, MessageWrite, OpenOptions};

    use super::*;
    use crate::cli::doctor::tests::looked;

    /// Returns a store with two attachments, one of which is referred to only by an older version of a
    /// conversation.
    fn store_with_an_orphan(config: &Config) -> [[u8; 32]; 2] {
        let store = Store::open(&config.data_dir, OpenOptions::default(), &mut |_| {}).unwrap();
        let kept = store.blob_put(&mut &b"kept"[..]).unwrap();
        let orphan = store.blob_put(&mut &b"orphan"[..]).unwrap();
        let said = |digest: u8, attachments: serde_json::Value| {
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
        let with = serde_json::json!([{"type": "image", "ref": format!("attachments/{kept}")}]);
        for (digest, attachments) in [(1, with), (2, serde_json::json!([]))] {
            let change = Change::Conversation(Box::new(said(digest, attachments)));
            store.commit(Batch { changes: vec![change], ..Batch::default() }).unwrap();
        }
        store.close().unwrap();
        [kept.sha256, orphan.sha256]
    }

    #[test]
    fn a_file_that_nothing_refers_to_is_told_and_removed_when_that_is_asked_for() {
        let home = tempfile::tempdir().unwrap();
        let config = Config::new(home.path().join("data"), home.path().to_owned());
        let [kept, orphan] = store_with_an_orphan(&config);
        for _ in 0..2 {
            let found = looked(&config, false);
            assert!(found.problems.is_empty() && found.repaired.is_empty(), "{found:?}");
            assert_eq!(found.left.len(), 1, "{found:?}");
            assert!(found.left[0].what.starts_with("1 file of an attachment") && found.left[0].fix == REPAIR);
        }
        let mended = looked(&config, true);
        assert!(mended.problems.is_empty() && mended.left.is_empty(), "{mended:?}");
        assert!(mended.repaired[0].contains("removed, 6 B"), "{mended:?}");
        let well = looked(&config, true);
        assert!(well.repaired.is_empty() && well.left.is_empty(), "{well:?}");
        let store = Store::open(&config.data_dir, OpenOptions::default(), &mut |_| {}).unwrap();
        assert!(store.blob_open(&kept).unwrap().is_some() && store.blob_open(&orphan).unwrap().is_none());
    }

    #[test]
    fn what_was_cut_off_is_told_and_removed_when_that_is_asked_for() {
        let home = tempfile::tempdir().unwrap();
        let config = Config::new(home.path().join("data"), home.path().to_owned());
        Store::open(&config.data_dir, OpenOptions::default(), &mut |_| {}).unwrap().close().unwrap();
        let aside = config.data_dir.join("db.broken-7");
        fs::create_dir_all(config.data_dir.join("encrypting/journal")).unwrap();
        fs::create_dir(&aside).unwrap();
        fs::write(aside.join("db"), "old").unwrap();
        let found = looked(&config, false);
        assert!(found.problems.is_empty() && found.repaired.is_empty(), "{found:?}");
        let paths: Vec<&str> = found.left.iter().map(|left| left.path.rsplit('/').next().unwrap()).collect();
        assert_eq!(paths, ["db.broken-7", "encrypting"]);
        assert_eq!(found.left[0].bytes, Some(3));
        let mended = looked(&config, true);
        assert_eq!((mended.repaired.len(), mended.left.len(), aside.exists()), (2, 0, false), "{mended:?}");
        let well = looked(&config, true);
        assert!(well.repaired.is_empty() && well.left.is_empty() && well.problems.is_empty(), "{well:?}");
    }

    /// Another process that waits for the store opens it as soon as it is closed, and refers to an orphaned file.
    #[test]
    fn a_file_that_another_process_refers_to_meanwhile_stays() {
        let home = tempfile::tempdir().unwrap();
        let config = Config::new(home.path().join("data"), home.path().to_owned());
        let [_, orphan] = store_with_an_orphan(&config);
        let closed = Rc::new(Cell::new(false));
        listen_here({
            let (dir, closed) = (config.data_dir.clone(), Rc::clone(&closed));
            move |place| {
                // Only once: at a later close it would write the file again that was removed in between.
                if place == "store closed" && !closed.replace(true) {
                    refer(&dir);
                }
            }
        });
        let mended = looked(&config, true);
        assert!(mended.repaired[0].contains("removed, 6 B") && closed.get(), "{mended:?}");
        let store = Store::open(&config.data_dir, OpenOptions::default(), &mut |_| {}).unwrap();
        assert!(store.blob_open(&orphan).unwrap().is_some(), "{mended:?}");
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
