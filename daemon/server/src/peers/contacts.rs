//! What this daemon knows of its peers from the last contact, also after a restart: `peers/contacts.json`.
//!
//! It tells which changes a peer has, so that a file of changes for it contains only what it lacks; to which key that file is encrypted;
//! and from which series files are taken.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Mutex,
    time::{Duration, Instant},
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use satchel_pam::hash::Sha256Digest;
use satchel_source::chain;
use satchel_sync::{Frontier, OriginId};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{
    lock,
    status::Contact,
    stored::{StoredError, read_json, write_json},
};

const FILE: &str = "contacts.json";
const FORMAT: u32 = 1;
/// Largest file that is read, in bytes: 100 peers with the longest frontiers.
const MAX_FILE_BYTES: u64 = 16 << 20;
/// How often the file is written because a peer has other changes. If an older list is read after a crash, the next file of changes is
/// only longer.
const INTERVAL: Duration = Duration::from_mins(1);

/// What is known of a peer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredContact {
    /// The peer's own series: a UUID.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    origin: Option<Uuid>,
    /// The age recipient of files of changes for the peer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    recipient: Option<String>,
    /// Which changes it has: base64url of section 3 of `daemon/sync/FORMAT.md`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    frontier: Option<String>,
    /// The files of attachments that it lacks, `sha256:…`, as its last file of changes said.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    wanted: BTreeSet<String>,
    /// Microseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last_contact: Option<i64>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    format: u32,
    /// By the names of outgoing peers, and the ids of the devices of incoming ones.
    contacts: BTreeMap<String, StoredContact>,
}

impl StoredContact {
    fn new(contact: &Contact) -> Self {
        Self {
            origin: contact.origin.map(|origin| *origin.as_uuid()),
            recipient: contact.recipient.clone(),
            frontier: contact.theirs.as_ref().map(|frontier| URL_SAFE_NO_PAD.encode(frontier.encode())),
            wanted: contact.wanted.iter().map(Sha256Digest::to_string).collect(),
            last_contact: contact.last_contact,
        }
    }

    fn read(self) -> Contact {
        let frontier = self.frontier.and_then(|text| URL_SAFE_NO_PAD.decode(text).ok());
        Contact {
            origin: self.origin.map(OriginId::from_uuid),
            recipient: self.recipient,
            theirs: frontier.and_then(|bytes| Frontier::decode(&bytes).ok()),
            wanted: self.wanted.iter().filter_map(|digest| digest.parse().ok()).collect(),
            last_contact: self.last_contact,
            ..Contact::default()
        }
    }

    /// Returns whether it differs in what must not be lost: who the peer is.
    fn is_another(&self, saved: &Self) -> bool {
        self.origin != saved.origin || self.recipient != saved.recipient
    }
}

/// The file, and what it contains.
pub(super) struct ContactsFile {
    folder: PathBuf,
    saved: Mutex<Saved>,
}

#[derive(Default)]
struct Saved {
    contacts: BTreeMap<String, StoredContact>,
    at: Option<Instant>,
}

impl ContactsFile {
    /// Reads the file in `folder`, if there is one. One that is damaged counts as none: the next contact with each peer tells the same.
    pub(super) fn load(folder: &Path) -> (Self, BTreeMap<String, Contact>) {
        let stored = read_json::<Stored>(&folder.join(FILE), MAX_FILE_BYTES);
        let contacts = match stored {
            Ok(Some(stored)) if stored.format == FORMAT => stored.contacts,
            Ok(None) => BTreeMap::new(),
            Ok(Some(Stored { format, .. })) => {
                tracing::warn!(
                    format,
                    "what is known of peers is in a format that this program does not know"
                );
                BTreeMap::new()
            }
            Err(error) => {
                tracing::warn!(error = chain(&error), "what is known of peers cannot be read");
                BTreeMap::new()
            }
        };
        let read = contacts.iter().map(|(key, stored)| (key.clone(), stored.clone().read())).collect();
        let saved = Mutex::new(Saved { contacts, at: None });
        (Self { folder: folder.to_owned(), saved }, read)
    }

    /// Writes what `known` returns if it has changed: at once if `now` is set or another peer is there, otherwise from time to time. What the
    /// file says of the peers in `kept` stays. Durable when this returns.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn save(
        &self,
        known: impl FnOnce() -> BTreeMap<String, Contact>,
        kept: &BTreeSet<String>,
        now: bool,
    ) -> Result<(), StoredError> {
        // Locked before it is read what is known, so that nothing older is written last.
        let mut saved = lock(&self.saved);
        let mut contacts: BTreeMap<String, StoredContact> =
            known().iter().map(|(key, contact)| (key.clone(), StoredContact::new(contact))).collect();
        for (key, contact) in saved.contacts.iter().filter(|(key, _)| kept.contains(*key)) {
            contacts.insert(key.clone(), contact.clone());
        }
        if contacts == saved.contacts {
            return Ok(());
        }
        let same_peers = contacts.len() == saved.contacts.len()
            && contacts
                .iter()
                .all(|(key, new)| saved.contacts.get(key).is_some_and(|known| !new.is_another(known)));
        if same_peers && !now && saved.at.is_some_and(|at| at.elapsed() < INTERVAL) {
            return Ok(());
        }
        let stored = Stored { format: FORMAT, contacts };
        write_json(&self.folder, FILE, &stored)?;
        *saved = Saved { contacts: stored.contacts, at: Some(Instant::now()) };
        Ok(())
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use satchel_sync::{ChangeHash, Counter, Head};

    use super::*;

    fn contact(byte: u8) -> Contact {
        let mut theirs = Frontier::new();
        let head = Head { counter: Counter::FIRST, hash: ChangeHash::from_bytes([byte; 32]) };
        theirs.advance(OriginId::from_bytes([byte; 16]), head).unwrap();
        Contact {
            origin: Some(OriginId::from_bytes([byte; 16])),
            recipient: Some("age1x".to_owned()),
            theirs: Some(theirs),
            wanted: [Sha256Digest::from_bytes([byte; 32])].into(),
            last_contact: Some(byte.into()),
            ..Contact::default()
        }
    }

    #[test]
    fn what_is_known_survives_a_restart_and_a_damaged_file_counts_as_none() {
        let dir = tempfile::tempdir().unwrap();
        let (file, none) = ContactsFile::load(dir.path());
        assert!(none.is_empty());
        let contacts = BTreeMap::from([("desk".to_owned(), contact(1))]);
        file.save(|| contacts.clone(), &BTreeSet::new(), false).unwrap();
        let (_, read) = ContactsFile::load(dir.path());
        let (desk, expected) = (&read["desk"], contact(1));
        assert_eq!(
            (&desk.origin, &desk.recipient, &desk.theirs, &desk.wanted, &desk.last_contact),
            (
                &expected.origin,
                &expected.recipient,
                &expected.theirs,
                &expected.wanted,
                &expected.last_contact
            )
        );
        std::fs::write(dir.path().join(FILE), "{").unwrap();
        assert!(ContactsFile::load(dir.path()).1.is_empty());
    }

    #[test]
    fn it_is_written_at_once_only_if_a_peer_comes_or_goes() {
        let dir = tempfile::tempdir().unwrap();
        let saved = || ContactsFile::load(dir.path()).1;
        let (file, _) = ContactsFile::load(dir.path());
        let mut contacts = BTreeMap::from([("desk".to_owned(), contact(1))]);
        file.save(|| contacts.clone(), &BTreeSet::new(), false).unwrap();
        contacts.get_mut("desk").unwrap().last_contact = Some(9);
        file.save(|| contacts.clone(), &BTreeSet::new(), false).unwrap();
        assert_eq!(saved()["desk"].last_contact, Some(1), "not yet");
        file.save(|| contacts.clone(), &BTreeSet::new(), true).unwrap();
        assert_eq!(saved()["desk"].last_contact, Some(9));
        contacts.insert("home".to_owned(), contact(2));
        file.save(|| contacts.clone(), &BTreeSet::new(), false).unwrap();
        assert_eq!(saved().len(), 2);
        contacts.clear();
        // One whose keys cannot be read for the moment.
        file.save(|| contacts.clone(), &["home".to_owned()].into(), false).unwrap();
        assert_eq!(saved().into_keys().collect::<Vec<_>>(), ["home"]);
        file.save(|| contacts.clone(), &BTreeSet::new(), false).unwrap();
        assert!(saved().is_empty());
    }
}
