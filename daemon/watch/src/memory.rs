//! The verdict for each path, kept in the store, so that unchanged files are not read again.

use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    os::unix::{
        ffi::{OsStrExt, OsStringExt},
        fs::MetadataExt,
    },
    path::{Path, PathBuf},
};

use satchel_pam::hash::Sha256Digest;
use satchel_store::{Durability, Ledger, LedgerWrite, Store, StoreError};
use serde::{Deserialize, Serialize};

use super::settle::Stamp;

/// Longest reason that is stored, in characters.
const REASON_CHARACTERS: usize = 500;
/// The ledger id under which the folders added at run time are stored.
const ADDED: &str = "watched-folders";
/// Prefix of the ids of files; the ids of imported bytes have another one.
const PREFIX: &str = "path:";
/// Number of entries that are read at once.
const PAGE: usize = 500;

/// The result of importing a file or an unpacked export.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Verdict {
    /// Its bytes are in the store.
    Imported,
    /// None of the importers of that time recognised it.
    Unrecognised { importers: Box<str> },
    /// The import failed.
    Failed(Box<Failure>),
    /// The user cancelled the import.
    Cancelled,
}

/// A failed import.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Failure {
    pub reason: String,
    /// How often it failed.
    pub tries: u32,
    /// The importers that were used.
    pub importers: Box<str>,
}

/// The verdict for a path. One is held in memory for each watched file, so it contains no seldom used fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Known {
    pub stamp: Stamp,
    pub verdict: Verdict,
}

/// The same in its stored form.
#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    stamp: Stamp,
    verdict: Verdict,
    /// Microseconds since the Unix epoch.
    at: i64,
    /// The folder and name, so that the entry can be found without its path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    place: Option<Place>,
}

/// A name in a watched folder.
#[derive(Debug, Serialize, Deserialize)]
struct Place {
    /// A digest of the folder's path.
    folder: String,
    /// The inode of the folder. Another volume in its place has another inode.
    inode: u64,
    /// The bytes of the name, in hex.
    name: String,
}

/// The storage of verdicts; [`Kept`] is the real one.
pub(super) trait Memory: Send {
    /// Returns the verdict for a name in the folder.
    fn recall(&self, name: &OsStr) -> Option<Known>;
    /// Stores the verdict, with the time in microseconds. If it cannot be stored, the file is inspected again after a
    /// restart, which only costs time.
    fn keep(&self, name: &OsStr, known: &Known, at: i64);
    /// Removes the entry of a name in the folder with the inode `folder`.
    fn forget(&self, folder: u64, name: &OsStr);
    /// Removes the entries of the folder with the inode `folder`, except names that are `there`. It walks through all
    /// entries of all folders, so it is used only by the first scan, to find names removed while no watcher ran.
    fn keep_only(&self, folder: u64, there: &dyn Fn(&OsStr) -> bool);
}

/// The storage of verdicts in the store's ledger of sources.
pub(super) struct Kept {
    store: Store,
    root: PathBuf,
}

impl Kept {
    /// Creates the storage for the folder `root`.
    pub(super) fn new(store: Store, root: &Path) -> Self {
        Self { store, root: root.to_owned() }
    }

    fn id(&self, name: &OsStr) -> String {
        format!("{PREFIX}{}", Sha256Digest::of(self.root.join(name).as_os_str().as_bytes()).to_hex())
    }
}

impl Memory for Kept {
    fn recall(&self, name: &OsStr) -> Option<Known> {
        let Entry { stamp, verdict, .. } = self.entry(&self.id(name))?;
        Some(Known { stamp, verdict })
    }

    fn keep(&self, name: &OsStr, known: &Known, at: i64) {
        let Known { stamp, mut verdict } = known.clone();
        if let Verdict::Failed(failure) = &mut verdict {
            failure.reason = failure.reason.chars().take(REASON_CHARACTERS).collect();
        }
        let Ok(value) = serde_json::to_vec(&Entry { stamp, verdict, at, place: self.place(name) }) else {
            return;
        };
        self.put(self.id(name), at, value);
    }

    fn forget(&self, folder: u64, name: &OsStr) {
        let id = self.id(name);
        if let Some(Entry { at, place: Some(place), .. }) = self.entry(&id)
            && place.inode == folder
        {
            self.put(id, at, Vec::new());
        }
    }

    fn keep_only(&self, folder: u64, there: &dyn Fn(&OsStr) -> bool) {
        let (digest, mut after) = (self.folder(), None);
        let mut gone = Vec::new();
        loop {
            let page = match self.store.ledger_list(Ledger::Source, after.as_ref(), PAGE) {
                Ok(page) => page,
                Err(error) => {
                    tracing::warn!(
                        error = satchel_source::chain(&error),
                        "what is known of files cannot be read"
                    );
                    return;
                }
            };
            for entry in page.items.iter().filter(|entry| entry.id.starts_with(PREFIX)) {
                let Ok(Entry { place: Some(place), .. }) = serde_json::from_slice(&entry.value) else {
                    continue;
                };
                let ours = place.folder == digest && place.inode == folder;
                let name = unhex(&place.name).map(OsString::from_vec);
                if ours && name.is_some_and(|name| !there(&name)) {
                    gone.push((entry.id.clone(), entry.at_micros));
                }
            }
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        // Write only after all pages are read, because each write moves an entry in the list.
        gone.into_iter().for_each(|(id, at)| self.put(id, at, Vec::new()));
    }
}

impl Kept {
    fn entry(&self, id: &str) -> Option<Entry> {
        match self.store.ledger_get(Ledger::Source, id) {
            Ok(entry) => serde_json::from_slice(&entry?.value).ok(),
            Err(error) => {
                tracing::warn!(
                    error = satchel_source::chain(&error),
                    "what is known of a file cannot be read"
                );
                None
            }
        }
    }

    fn put(&self, id: String, at_micros: i64, value: Vec<u8>) {
        let write = LedgerWrite::Entry { ledger: Ledger::Source, id, at_micros, value };
        if let Err(error) = self.store.put_ledger(write, Durability::WithNextCommit) {
            tracing::warn!(error = satchel_source::chain(&error), "what is known of a file cannot be kept");
        }
    }

    fn folder(&self) -> String {
        Sha256Digest::of(self.root.as_os_str().as_bytes()).to_hex()
    }

    fn place(&self, name: &OsStr) -> Option<Place> {
        let inode = std::fs::metadata(&self.root).ok()?.ino();
        let mut hex = String::new();
        name.as_bytes().iter().for_each(|byte| hex.push_str(&format!("{byte:02x}")));
        Some(Place { folder: self.folder(), inode, name: hex })
    }
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes().chunks(2);
    digits.map(|two| u8::from_str_radix(std::str::from_utf8(two).ok()?, 16).ok()).collect()
}

/// Returns the first `most` names of the folder `root`, in order, that no importer recognised when they were last
/// inspected.
pub(super) fn unrecognised(store: &Store, root: &Path, most: usize) -> Result<Vec<OsString>, StoreError> {
    let digest = Sha256Digest::of(root.as_os_str().as_bytes()).to_hex();
    let (mut found, mut after) = (BTreeSet::new(), None);
    loop {
        let page = store.ledger_list(Ledger::Source, after.as_ref(), PAGE)?;
        for entry in page.items.iter().filter(|entry| entry.id.starts_with(PREFIX)) {
            let read = serde_json::from_slice(&entry.value);
            let Ok(Entry { place: Some(place), verdict: Verdict::Unrecognised { .. }, .. }) = read else {
                continue;
            };
            if place.folder == digest {
                found.extend(unhex(&place.name).map(OsString::from_vec));
            }
            if found.len() > most {
                found.pop_last();
            }
        }
        after = page.next;
        if after.is_none() {
            return Ok(found.into_iter().collect());
        }
    }
}

/// The folders that were added at run time.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Added {
    folders: Vec<String>,
}

/// Reads the folders that were added at run time.
pub(super) fn added(store: &Store) -> Result<Vec<PathBuf>, StoreError> {
    let Some(entry) = store.ledger_get(Ledger::Setting, ADDED)? else { return Ok(Vec::new()) };
    let added: Added = serde_json::from_slice(&entry.value).unwrap_or_default();
    Ok(added.folders.into_iter().map(PathBuf::from).collect())
}

/// Stores the folders that were added at run time; durable when this returns.
pub(super) fn keep_added(store: &Store, folders: &[&str], at_micros: i64) -> Result<(), StoreError> {
    let added = Added { folders: folders.iter().map(|&folder| folder.to_owned()).collect() };
    let value = serde_json::to_vec(&added).unwrap_or_default();
    let write = LedgerWrite::Entry { ledger: Ledger::Setting, id: ADDED.to_owned(), at_micros, value };
    store.put_ledger(write, Durability::Now)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use satchel_store::OpenOptions;

    use super::*;

    fn known() -> Known {
        let stamp = Stamp { bytes: 1, modified: 2, inode: 3, below: 0 };
        Known { stamp, verdict: Verdict::Imported }
    }

    #[test]
    fn one_name_is_forgotten_alone_and_only_of_its_own_volume() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("data"), OpenOptions::default(), &mut |_| {}).unwrap();
        let kept = Kept::new(store.clone(), dir.path());
        let [goes, stays] = ["goes.zip", "stays.zip"].map(OsStr::new);
        [goes, stays].into_iter().for_each(|name| kept.keep(name, &known(), 5));
        let inode = std::fs::metadata(dir.path()).unwrap().ino();
        kept.forget(inode + 1, goes);
        assert_eq!(kept.recall(goes), Some(known()));
        kept.forget(inode, goes);
        kept.forget(inode, OsStr::new("never.zip"));
        assert_eq!((kept.recall(goes), kept.recall(stays)), (None, Some(known())));
        assert_eq!(store.ledger_list(Ledger::Source, None, 10).unwrap().items.len(), 1);
    }

    /// Entries written by earlier versions must stay readable: with another form, ten thousand files would be imported
    /// again.
    #[test]
    fn what_is_kept_has_its_form() {
        let failure = Failure { reason: "bad".to_owned(), tries: 2, importers: "v1".into() };
        for (verdict, form) in [
            (Verdict::Imported, r#""imported""#),
            (Verdict::Cancelled, r#""cancelled""#),
            (Verdict::Unrecognised { importers: "v1".into() }, r#"{"unrecognised":{"importers":"v1"}}"#),
            (Verdict::Failed(Box::new(failure)), r#"{"failed":{"reason":"bad","tries":2,"importers":"v1"}}"#),
        ] {
            assert_eq!(serde_json::to_string(&verdict).unwrap(), form);
            assert_eq!(serde_json::from_str::<Verdict>(form).unwrap(), verdict);
        }
    }

    #[test]
    fn entries_of_what_is_gone_are_given_back_and_no_others() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        let store = Store::open(&data, OpenOptions::default(), &mut |_| {}).unwrap();
        let folders = ["one", "two"].map(|name| dir.path().join(name));
        folders.iter().for_each(|folder| std::fs::create_dir(folder).unwrap());
        let [one, two] = folders.clone().map(|folder| Kept::new(store.clone(), &folder));
        let known = known();
        let names = [OsString::from("stays.zip"), OsString::from_vec(b"go\xffes.zip".to_vec())];
        for name in &names {
            one.keep(name, &known, 5);
            two.keep(name, &known, 5);
        }
        let inode = std::fs::metadata(&folders[0]).unwrap().ino();
        // Another volume in the folder's place removes nothing.
        one.keep_only(inode + 1, &|_| false);
        assert!(names.iter().all(|name| one.recall(name).is_some()));
        one.keep_only(inode, &|name| name == "stays.zip");
        assert!(one.recall(&names[0]).is_some() && one.recall(&names[1]).is_none());
        assert!(names.iter().all(|name| two.recall(name).is_some()));
        let left = store.ledger_list(Ledger::Source, None, 10).unwrap().items;
        assert_eq!(left.len(), 3);
        assert!(store.check(true, &mut |_| {}).unwrap().clean());
        drop((one, two));
        store.close().unwrap();
        let rebuilt = OpenOptions { rebuild: true, ..OpenOptions::default() };
        let store = Store::open(&data, rebuilt, &mut |_| {}).unwrap();
        assert_eq!(store.ledger_list(Ledger::Source, None, 10).unwrap().items, left);
        let one = Kept::new(store, &folders[0]);
        one.keep(&names[1], &known, 5);
        assert!(one.recall(&names[1]).is_some(), "what came back is not kept");
    }
}
