//! What peers get of this store: everything, or a part.
//!
//! Of a peer that connects to this daemon, the policy of its device says so. Of one that this daemon connects to, the file with its keys does,
//! so that it is never lost alone.

use std::{collections::BTreeSet, sync::Arc};

use satchel_core::sync::{RecordFacts, RecordFilter};
use satchel_devices::{self as devices, Device, MemoryFacts, Policy, Role, Selection};
use satchel_pam::{hash::Sha256Digest, memory::Access};
use satchel_store::Revision;
use satchel_sync::{Frontier, OriginId};

use super::{Direction, PeerView, Peers, PeersError, lock, outgoing::Outgoing};

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
    /// How often it came to include less.
    restrictions: u64,
}

/// Texts by which a peer can tell whether it has to ask for something.
pub(crate) struct PartState {
    /// Changes whenever this store may have payloads for the peer that it did not have, or did not give it, before.
    pub(crate) payloads: String,
    /// Changes whenever this store may withhold payloads that it has given to the peer. It is empty if the peer gets everything.
    pub(crate) withheld: String,
}

impl Peers {
    /// Returns what an incoming peer gets; `None` if that is everything.
    pub(crate) fn filter_of_device(&self, device: Option<&Device>) -> Option<SelectionFilter> {
        let device = device?;
        // It may have changed since the call began.
        let now = self.0.devices.registry().by_id(&device.id);
        filter(now.map_or_else(|| device.policy.selection.clone(), |now| now.policy.selection.clone()))
    }

    /// Returns what a peer gets; `None` if that is everything.
    pub(super) fn filter_of(&self, peer: &PeerView) -> Option<SelectionFilter> {
        filter(match self.find(peer.key()) {
            Ok(now) => now.selection,
            Err(_) => peer.selection.clone(),
        })
    }

    /// Sets what a peer gets from now on. Blocks.
    ///
    /// # Errors
    /// When that cannot be stored.
    pub(crate) fn set_selection(&self, peer: &PeerView, selection: Selection) -> Result<(), PeersError> {
        match peer.direction {
            Direction::Outgoing => {
                let outgoing = lock(&self.0.outgoing).get(&peer.name).cloned();
                let outgoing = outgoing.ok_or_else(|| PeersError::NotFound(peer.name.clone()))?;
                outgoing.change_credentials(&self.folder(), |known| known.selection = selection)?;
                outgoing.wake();
            }
            Direction::Incoming => {
                let registry = self.0.devices.registry();
                let device = registry.find(&peer.device_id)?;
                registry.set_policy(&device.id, Policy { selection, ..device.policy.clone() })?;
            }
        }
        Ok(())
    }

    /// Returns whether some peer gets only a part.
    pub(super) fn restricts(&self) -> bool {
        let outgoing: Vec<Arc<Outgoing>> = lock(&self.0.outgoing).values().cloned().collect();
        let devices = self.0.devices.registry().list(false);
        outgoing.iter().any(|peer| peer.filter().is_some())
            || devices
                .iter()
                .any(|device| device.policy.role == Role::Peer && !device.policy.selection.is_empty())
    }

    /// Returns which changes are offered to a peer, of those that this store has: to one that gets a part, only what has taken effect, because
    /// what the store shows of a record decides whether the peer gets it.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub(crate) fn offered(
        &self,
        ours: Frontier,
        filter: Option<&SelectionFilter>,
    ) -> Result<Frontier, PeersError> {
        if filter.is_none() { Ok(ours) } else { Ok(self.0.sync.applied_frontier()?) }
    }

    /// Returns the series of an incoming peer, if it is known.
    pub(crate) fn origin_of(&self, device: Option<&Device>) -> Option<OriginId> {
        lock(&self.0.incoming).get(device?.id.as_str())?.origin
    }

    /// Returns those of some files of attachments to which conversations refer that `filter` includes, or that came from the peer, whose
    /// series is `origin`.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub(crate) fn included_files(
        &self,
        files: BTreeSet<Sha256Digest>,
        filter: Option<&SelectionFilter>,
        origin: Option<OriginId>,
    ) -> Result<BTreeSet<Sha256Digest>, PeersError> {
        let Some(filter) = filter else { return Ok(files) };
        let mut included = BTreeSet::new();
        if !files.is_empty() {
            let mut references = lock(&self.0.file_references);
            self.0.sync.read_file_references(&mut references)?;
            for file in files {
                if self.0.sync.includes_file(&references, &file, filter, origin)? {
                    included.insert(file);
                }
            }
        }
        Ok(included)
    }

    /// Returns by what a peer can tell whether it has to ask for something. `key` is that of [`PeerView`]. Blocks.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub(crate) fn part_state(
        &self,
        key: &str,
        filter: Option<&SelectionFilter>,
    ) -> Result<PartState, PeersError> {
        // Payloads that took effect after their changes were passed on.
        let (id, late) = (self.instance_id(), self.0.payloads.late());
        let Some(filter) = filter else {
            return Ok(PartState { payloads: format!("{id} all {late}"), withheld: String::new() });
        };
        // Held to the end, so that a call that began earlier does not write an earlier revision.
        let mut given = lock(&self.0.given);
        let revision = self.0.store.revision();
        let (extensions, restrictions) = match given.get(key) {
            Some(known) if known.selection == filter.0 => {
                let moves = self.0.sync.part_moves(filter, known.revision)?;
                (known.extensions + u64::from(moves.included), known.restrictions + u64::from(moves.excluded))
            }
            Some(known) => (known.extensions + 1, known.restrictions + 1),
            None => (0, 0),
        };
        let selection = filter.0.clone();
        given.insert(key.to_owned(), Given { selection, revision, extensions, restrictions });
        // What has not taken effect is not given yet.
        let (held, applied) = (self.0.sync.frontier()?, self.0.sync.applied_frontier()?);
        let behind = (held != applied).then(|| Sha256Digest::of(&applied.encode()).to_hex());
        let behind = behind.unwrap_or_default();
        Ok(PartState {
            payloads: format!("{id} {extensions} {late} {behind}"),
            withheld: format!("{id} {restrictions} {behind}"),
        })
    }
}

/// Returns the filter of a selection; `None` if it is everything.
pub(super) fn filter(selection: Selection) -> Option<SelectionFilter> {
    (!selection.is_empty()).then_some(SelectionFilter(selection))
}
