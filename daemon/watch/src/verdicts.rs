//! The verdict for each path, kept in the store, so that unchanged files are not read again.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::{OsStr, OsString},
    os::unix::{
        ffi::{OsStrExt, OsStringExt},
        fs::MetadataExt,
    },
    path::{Path, PathBuf},
    time::Duration,
};

use satchel_pam::hash::Sha256Digest;
use satchel_store::{Durability, Ledger, LedgerEntry, LedgerWrite, Store, StoreError};
use serde::{Deserialize, Serialize};

use super::{settle::Stamp, spec::WatchSpec};

/// Longest reason that is stored, in characters.
const MAX_REASON_CHARACTERS: usize = 500;
/// The ledger id under which the folders added at run time are stored.
const ADDED_FOLDERS_ID: &str = "watched-folders";
/// Prefix of the ids of files; the ids of imported bytes have another one.
const FILE_ID_PREFIX: &str = "path:";
/// Number of entries that are read at once.
const PAGE_ENTRIES: usize = 500;

/// The result of importing a file or an unpacked export.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FileVerdict {
    /// Its bytes are in the store.
    Imported,
    /// None of the importers of that time recognised it.
    Unrecognised { importers: Box<str> },
    /// The import failed.
    Failed(Box<FailedImport>),
    /// The user cancelled the import.
    Cancelled,
}

/// A failed import.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FailedImport {
    pub reason: String,
    /// How often it failed.
    pub tries: u32,
    /// The importers that were used.
    pub importers: Box<str>,
}

/// The verdict for a path. One is held in memory for each watched file, so it contains no seldom used fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KnownFile {
    pub stamp: Stamp,
    pub verdict: FileVerdict,
}

/// The same in its stored form.
#[derive(Debug, Serialize, Deserialize)]
struct VerdictEntry {
    stamp: Stamp,
    verdict: FileVerdict,
    /// Microseconds since the Unix epoch.
    at: i64,
    /// The folder and name, so that the entry can be found without its path.
    #[serde(rename = "place", default, skip_serializing_if = "Option::is_none")]
    location: Option<EntryLocation>,
}

/// A name in a watched folder.
#[derive(Debug, Serialize, Deserialize)]
struct EntryLocation {
    /// A digest of the folder's path.
    folder: String,
    /// The inode of the folder. Another volume in its place has another inode.
    inode: u64,
    /// The bytes of the name, in hex.
    name: String,
}

/// The storage of verdicts; [`LedgerVerdicts`] is the real one.
pub(super) trait VerdictStore: Send {
    /// Returns the verdict for a name in the folder.
    fn load(&self, name: &OsStr) -> Option<KnownFile>;
    /// Stores the verdict, with the time in microseconds. If it cannot be stored, the file is inspected again after a
    /// restart, which only costs time.
    fn save(&self, name: &OsStr, known: &KnownFile, at: i64);
    /// Removes the entry of a name in the folder with the inode `folder`.
    fn remove(&self, folder: u64, name: &OsStr);
    /// Removes the entries of the folder with the inode `folder`, except names for which `exists` returns true. It walks
    /// through all entries of all folders, so it is used only by the first scan, to find names removed while no watcher
    /// ran.
    fn retain(&self, folder: u64, exists: &dyn Fn(&OsStr) -> bool);
}

/// The storage of verdicts in the store's ledger of sources.
pub(super) struct LedgerVerdicts {
    store: Store,
    root: PathBuf,
}

impl LedgerVerdicts {
    /// Creates the storage for the folder `root`.
    pub(super) fn new(store: Store, root: &Path) -> Self {
        Self { store, root: root.to_owned() }
    }

    fn id(&self, name: &OsStr) -> String {
        format!("{FILE_ID_PREFIX}{}", Sha256Digest::of(self.root.join(name).as_os_str().as_bytes()).to_hex())
    }
}

impl VerdictStore for LedgerVerdicts {
    fn load(&self, name: &OsStr) -> Option<KnownFile> {
        let VerdictEntry { stamp, verdict, .. } = self.read_entry(&self.id(name))?;
        Some(KnownFile { stamp, verdict })
    }

    fn save(&self, name: &OsStr, known: &KnownFile, at: i64) {
        let KnownFile { stamp, mut verdict } = known.clone();
        if let FileVerdict::Failed(failure) = &mut verdict {
            failure.reason = failure.reason.chars().take(MAX_REASON_CHARACTERS).collect();
        }
        let Ok(value) =
            serde_json::to_vec(&VerdictEntry { stamp, verdict, at, location: self.location_of(name) })
        else {
            return;
        };
        self.write_entry(self.id(name), at, value);
    }

    fn remove(&self, folder: u64, name: &OsStr) {
        let id = self.id(name);
        if let Some(VerdictEntry { at, location: Some(location), .. }) = self.read_entry(&id)
            && location.inode == folder
        {
            self.write_entry(id, at, Vec::new());
        }
    }

    fn retain(&self, folder: u64, exists: &dyn Fn(&OsStr) -> bool) {
        let mut missing = Vec::new();
        let read = for_each_entry(&self.store, &self.root, |entry, inode, name, _| {
            if inode == folder && !exists(&name) {
                missing.push((entry.id, entry.at_micros));
            }
        });
        if let Err(error) = read {
            tracing::warn!(
                error = satchel_source::chain(&error),
                "the verdicts of watched files cannot be read"
            );
            return;
        }
        // Write only after all pages are read, because each write moves an entry in the list.
        missing.into_iter().for_each(|(id, at)| self.write_entry(id, at, Vec::new()));
    }
}

impl LedgerVerdicts {
    fn read_entry(&self, id: &str) -> Option<VerdictEntry> {
        match self.store.ledger_get(Ledger::Source, id) {
            Ok(entry) => serde_json::from_slice(&entry?.value).ok(),
            Err(error) => {
                tracing::warn!(
                    error = satchel_source::chain(&error),
                    "the verdict of a watched file cannot be read"
                );
                None
            }
        }
    }

    fn write_entry(&self, id: String, at_micros: i64, value: Vec<u8>) {
        let write = LedgerWrite::Entry { ledger: Ledger::Source, id, at_micros, value };
        if let Err(error) = self.store.put_ledger(write, Durability::WithNextCommit) {
            tracing::warn!(
                error = satchel_source::chain(&error),
                "the verdict of a watched file cannot be stored"
            );
        }
    }

    fn location_of(&self, name: &OsStr) -> Option<EntryLocation> {
        let inode = std::fs::metadata(&self.root).ok()?.ino();
        let mut hex = String::new();
        name.as_bytes().iter().for_each(|byte| hex.push_str(&format!("{byte:02x}")));
        Some(EntryLocation { folder: folder_digest(&self.root), inode, name: hex })
    }
}

fn folder_digest(root: &Path) -> String {
    Sha256Digest::of(root.as_os_str().as_bytes()).to_hex()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes().chunks(2);
    digits.map(|two| u8::from_str_radix(std::str::from_utf8(two).ok()?, 16).ok()).collect()
}

/// Returns the first `limit` names of the folder `root`, in order, that no importer recognised when they were last
/// inspected.
pub(super) fn unrecognised(store: &Store, root: &Path, limit: usize) -> Result<Vec<OsString>, StoreError> {
    let mut found = BTreeSet::new();
    for_each_entry(store, root, |_, _, name, verdict| {
        if matches!(verdict, FileVerdict::Unrecognised { .. }) {
            found.insert(name);
            if found.len() > limit {
                found.pop_last();
            }
        }
    })?;
    Ok(found.into_iter().collect())
}

/// Calls `each` for every stored verdict of the folder `root`, with the inode that the folder had and the name in it.
fn for_each_entry(
    store: &Store,
    root: &Path,
    mut each: impl FnMut(LedgerEntry, u64, OsString, FileVerdict),
) -> Result<(), StoreError> {
    let (digest, mut after) = (folder_digest(root), None);
    loop {
        let page = store.ledger_list(Ledger::Source, after.as_ref(), PAGE_ENTRIES)?;
        for entry in page.items.into_iter().filter(|entry| entry.id.starts_with(FILE_ID_PREFIX)) {
            let read = serde_json::from_slice(&entry.value);
            let Ok(VerdictEntry { verdict, location: Some(location), .. }) = read else { continue };
            if location.folder == digest
                && let Some(name) = unhex(&location.name)
            {
                each(entry, location.inode, OsString::from_vec(name), verdict);
            }
        }
        after = page.next;
        if after.is_none() {
            return Ok(());
        }
    }
}

/// The folders that were added at run time.
#[derive(Debug, Default, Serialize, Deserialize)]
struct AddedFolders {
    folders: Vec<String>,
    /// The settle times in milliseconds, of the folders that do not have the default.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    settle_ms: BTreeMap<String, u64>,
    /// The folders with sessions.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    sessions: BTreeSet<String>,
    /// The patterns to ignore, of the folders that have some.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    ignore: BTreeMap<String, Vec<String>>,
}

/// Reads the folders that were added at run time.
pub(super) fn load_added(store: &Store) -> Result<Vec<WatchSpec>, StoreError> {
    let Some(entry) = store.ledger_get(Ledger::Setting, ADDED_FOLDERS_ID)? else { return Ok(Vec::new()) };
    let AddedFolders { folders, settle_ms, sessions, ignore } =
        serde_json::from_slice(&entry.value).unwrap_or_default();
    let spec = |path: String| {
        let settle = settle_ms.get(&path).copied().map(Duration::from_millis);
        let sessions = sessions.contains(&path);
        let ignore = ignore.get(&path).cloned().unwrap_or_default();
        WatchSpec { ignore, sessions, settle, ..WatchSpec::with_defaults(path.into()) }
    };
    Ok(folders.into_iter().map(spec).collect())
}

/// Stores the folders that were added at run time; durable when this returns.
pub(super) fn store_added<'a>(
    store: &Store,
    specs: impl Iterator<Item = &'a WatchSpec>,
    at_micros: i64,
) -> Result<(), StoreError> {
    let mut added = AddedFolders::default();
    for (path, spec) in specs.filter_map(|spec| Some((spec.path.to_str()?.to_owned(), spec))) {
        if spec.sessions {
            added.sessions.insert(path.clone());
        }
        if let Some(settle) = spec.settle {
            let millis = u64::try_from(settle.as_millis()).unwrap_or(u64::MAX);
            added.settle_ms.insert(path.clone(), millis);
        }
        if !spec.ignore.is_empty() {
            added.ignore.insert(path.clone(), spec.ignore.clone());
        }
        added.folders.push(path);
    }
    let value = serde_json::to_vec(&added).unwrap_or_default();
    let write =
        LedgerWrite::Entry { ledger: Ledger::Setting, id: ADDED_FOLDERS_ID.to_owned(), at_micros, value };
    store.put_ledger(write, Durability::Now)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use satchel_store::OpenOptions;

    use super::*;

    fn known() -> KnownFile {
        let stamp = Stamp { bytes: 1, modified: 2, inode: 3, below: 0 };
        KnownFile { stamp, verdict: FileVerdict::Imported }
    }

    #[test]
    fn removing_one_name_leaves_other_names_and_other_volumes() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("data"), OpenOptions::default(), &mut |_| {}).unwrap();
        let verdicts = LedgerVerdicts::new(store.clone(), dir.path());
        let [goes, stays] = ["goes.zip", "stays.zip"].map(OsStr::new);
        [goes, stays].into_iter().for_each(|name| verdicts.save(name, &known(), 5));
        let inode = std::fs::metadata(dir.path()).unwrap().ino();
        verdicts.remove(inode + 1, goes);
        assert_eq!(verdicts.load(goes), Some(known()));
        verdicts.remove(inode, goes);
        verdicts.remove(inode, OsStr::new("never.zip"));
        assert_eq!((verdicts.load(goes), verdicts.load(stays)), (None, Some(known())));
        assert_eq!(store.ledger_list(Ledger::Source, None, 10).unwrap().items.len(), 1);
    }

    /// Entries written by earlier versions must stay readable: with another form, ten thousand files would be imported
    /// again.
    #[test]
    fn the_stored_form_of_verdicts_does_not_change() {
        let failure = FailedImport { reason: "bad".to_owned(), tries: 2, importers: "v1".into() };
        for (verdict, form) in [
            (FileVerdict::Imported, r#""imported""#),
            (FileVerdict::Cancelled, r#""cancelled""#),
            (FileVerdict::Unrecognised { importers: "v1".into() }, r#"{"unrecognised":{"importers":"v1"}}"#),
            (
                FileVerdict::Failed(Box::new(failure)),
                r#"{"failed":{"reason":"bad","tries":2,"importers":"v1"}}"#,
            ),
        ] {
            assert_eq!(serde_json::to_string(&verdict).unwrap(), form);
            assert_eq!(serde_json::from_str::<FileVerdict>(form).unwrap(), verdict);
        }
    }

    #[test]
    fn only_the_entries_of_missing_files_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        let store = Store::open(&data, OpenOptions::default(), &mut |_| {}).unwrap();
        let folders = ["one", "two"].map(|name| dir.path().join(name));
        folders.iter().for_each(|folder| std::fs::create_dir(folder).unwrap());
        let [one, two] = folders.clone().map(|folder| LedgerVerdicts::new(store.clone(), &folder));
        let known = known();
        let names = [OsString::from("stays.zip"), OsString::from_vec(b"go\xffes.zip".to_vec())];
        for name in &names {
            one.save(name, &known, 5);
            two.save(name, &known, 5);
        }
        let inode = std::fs::metadata(&folders[0]).unwrap().ino();
        // Another volume in the folder's place removes nothing.
        one.retain(inode + 1, &|_| false);
        assert!(names.iter().all(|name| one.load(name).is_some()));
        one.retain(inode, &|name| name == "stays.zip");
        assert!(one.load(&names[0]).is_some() && one.load(&names[1]).is_none());
        assert!(names.iter().all(|name| two.load(name).is_some()));
        let left = store.ledger_list(Ledger::Source, None, 10).unwrap().items;
        assert_eq!(left.len(), 3);
        assert!(store.check(true, &mut |_| {}).unwrap().clean());
        drop((one, two));
        store.close().unwrap();
        let rebuilt = OpenOptions { rebuild: true, ..OpenOptions::default() };
        let store = Store::open(&data, rebuilt, &mut |_| {}).unwrap();
        assert_eq!(store.ledger_list(Ledger::Source, None, 10).unwrap().items, left);
        let one = LedgerVerdicts::new(store, &folders[0]);
        one.save(&names[1], &known, 5);
        assert!(one.load(&names[1]).is_some(), "the name that came back is not stored");
    }
}
