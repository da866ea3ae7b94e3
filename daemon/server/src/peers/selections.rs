//! What peers get of this store: everything, or a part.
//!
//! Of a peer that connects to this daemon, the policy of its device says so. Of those that this daemon connects to, `peers/selections.json`
//! does.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Mutex,
};

use satchel_core::sync::{RecordFacts, RecordFilter};
use satchel_devices::{self as devices, Device, MemoryFacts, Policy, Selection};
use satchel_pam::{hash::Sha256Digest, memory::Access};
use satchel_store::Revision;
use serde::{Deserialize, Serialize};

use super::{
    Direction, PeerView, Peers, PeersError, lock,
    stored::{StoredError, read_json, write_json},
};

const FILE: &str = "selections.json";
const FORMAT: u32 = 1;
/// Largest file that is read, in bytes.
const MAX_FILE_BYTES: u64 = 4 << 20;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    format: u32,
    /// By the names of the peers.
    selections: BTreeMap<String, Selection>,
}

/// What the peers get that this daemon connects to. Those that get everything are not in it.
pub(super) struct Selections {
    folder: PathBuf,
    selections: Mutex<BTreeMap<String, Selection>>,
}

impl Selections {
    /// Reads the file in `folder`, if there is one.
    ///
    /// # Errors
    /// It cannot be read, or is damaged: to go on without it would give away what it withholds.
    pub(super) fn load(folder: &Path) -> Result<Self, StoredError> {
        let path = folder.join(FILE);
        let selections = match read_json::<Stored>(&path, MAX_FILE_BYTES)? {
            None => BTreeMap::new(),
            Some(stored) if stored.format == FORMAT => stored.selections,
            Some(stored) => {
                let reason = format!("its format is {}", stored.format);
                return Err(StoredError::Damaged { path, reason });
            }
        };
        Ok(Self { folder: folder.to_owned(), selections: Mutex::new(selections) })
    }

    fn get(&self, peer: &str) -> Selection {
        lock(&self.selections).get(peer).cloned().unwrap_or_default()
    }

    /// Sets what a peer gets. Durable when this returns.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn set(&self, peer: &str, selection: Selection) -> Result<(), StoredError> {
        let mut known = lock(&self.selections);
        let mut next = known.clone();
        if selection.is_empty() {
            next.remove(peer);
        } else {
            next.insert(peer.to_owned(), selection);
        }
        if next != *known {
            write_json(&self.folder, FILE, &Stored { format: FORMAT, selections: next.clone() })?;
            *known = next;
        }
        Ok(())
    }
}

/// A selection as the store asks for it.
pub(crate) struct SelectionFilter(Selection);

impl SelectionFilter {
    /// Returns the filter, for the calls that take an optional one.
    pub(crate) fn of(filter: Option<&Self>) -> Option<&dyn RecordFilter> {
        filter.map(|filter| filter as &dyn RecordFilter)
    }
}

impl RecordFilter for SelectionFilter {
    fn includes_memory(&self, facts: &RecordFacts<'_>, memory_type: &str, access: Option<&Access>) -> bool {
        self.0.contains_memory(&MemoryFacts { record: device_facts(facts), memory_type, access })
    }

    fn includes_conversation(&self, facts: &RecordFacts<'_>) -> bool {
        self.0.contains_conversation(&device_facts(facts))
    }
}

fn device_facts<'a>(facts: &RecordFacts<'a>) -> devices::RecordFacts<'a> {
    let RecordFacts { platform, tags, created_at } = *facts;
    devices::RecordFacts { platform, tags, created_at }
}

/// Up to which revision a peer was given what its selection includes.
pub(super) struct Given {
    selection: Selection,
    revision: Revision,
    /// How often the selection came to include more.
    extensions: u64,
}

impl Peers {
    /// Returns what an incoming peer gets; `None` if that is everything.
    pub(crate) fn filter_of_device(&self, device: Option<&Device>) -> Option<SelectionFilter> {
        let device = device?;
        // It may have changed since the call began.
        let now = self.0.devices.registry().by_id(&device.id);
        filter(now.map_or_else(|| device.policy.selection.clone(), |now| now.policy.selection.clone()))
    }

    /// Returns what a peer gets that this daemon connects to; `None` if that is everything.
    pub(super) fn filter_of_outgoing(&self, name: &str) -> Option<SelectionFilter> {
        filter(self.0.selections.get(name))
    }

    /// Returns what a peer gets; `None` if that is everything.
    pub(super) fn filter_of(&self, peer: &PeerView) -> Option<SelectionFilter> {
        filter(peer.selection.clone())
    }

    /// Returns what a peer gets that this daemon connects to.
    pub(super) fn selection_of_outgoing(&self, name: &str) -> Selection {
        self.0.selections.get(name)
    }

    /// Sets what a peer gets from now on. Blocks.
    ///
    /// # Errors
    /// When that cannot be stored.
    pub(crate) fn set_selection(&self, peer: &PeerView, selection: Selection) -> Result<(), PeersError> {
        match peer.direction {
            Direction::Outgoing => self.0.selections.set(&peer.name, selection)?,
            Direction::Incoming => {
                let registry = self.0.devices.registry();
                let device = registry.find(&peer.device_id)?;
                registry.set_policy(&device.id, Policy { selection, ..device.policy.clone() })?;
            }
        }
        if let Some(outgoing) = lock(&self.0.outgoing).get(&peer.name) {
            outgoing.wake();
        }
        Ok(())
    }

    /// Returns a text that changes whenever this store may have payloads for a peer that it did not have, or did not give it, before. `key` is
    /// that of [`PeerView`]. Blocks.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub(crate) fn payload_state(
        &self,
        key: &str,
        filter: Option<&SelectionFilter>,
    ) -> Result<String, PeersError> {
        let Some(filter) = filter else {
            let missing = format!("{:?}", self.0.sync.missing_payloads()?);
            return Ok(format!("all {}", Sha256Digest::of(missing.as_bytes()).to_hex()));
        };
        // Held to the end, so that a call that began earlier does not write an earlier revision.
        let mut given = lock(&self.0.given);
        let revision = self.0.store.revision();
        let extensions = match given.get(key) {
            Some(known) if known.selection == filter.0 => {
                known.extensions + u64::from(self.0.sync.has_included(filter, known.revision)?)
            }
            Some(known) => known.extensions + 1,
            None => 0,
        };
        given.insert(key.to_owned(), Given { selection: filter.0.clone(), revision, extensions });
        Ok(format!("{} {extensions}", self.instance_id()))
    }
}

fn filter(selection: Selection) -> Option<SelectionFilter> {
    (!selection.is_empty()).then_some(SelectionFilter(selection))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn what_a_peer_gets_stays_as_it_was_set() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("peers");
        let load = || Selections::load(&folder);
        let work = Selection { tags: ["work".to_owned()].into(), ..Selection::default() };
        load().unwrap().set("desk", Selection::default()).unwrap();
        assert!(!folder.exists(), "nothing is written without need");
        load().unwrap().set("desk", work.clone()).unwrap();
        let again = load().unwrap();
        assert_eq!((again.get("desk"), again.get("laptop")), (work, Selection::default()));
        again.set("desk", Selection::default()).unwrap();
        assert!(load().unwrap().get("desk").is_empty());
        std::fs::write(folder.join(FILE), "{\"format\":2,\"selections\":{}}").unwrap();
        assert!(matches!(load(), Err(StoredError::Damaged { .. })));
    }
}
