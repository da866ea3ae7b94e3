//! Lists of memories, as providers show them again and again or log their changes. One of which a part is missing would say something else, so
//! that a store gets all of a list or nothing.

use std::collections::{BTreeMap, BTreeSet};

use satchel_merge::evidence::{StoredEvidence, StreamName, items_of};
use satchel_pam::{
    hash::ContentHash,
    record::{Claim, Edit, Item},
};

use super::{PayloadFilter, SyncError, UNREADABLE};
use crate::provenance::EvidenceItem;

/// What the pieces of evidence of one list are about.
#[derive(Default)]
struct ListFacts {
    /// Whether something of it is not included.
    is_partial: bool,
    /// The hashes of the texts of all items that it ever had.
    texts: BTreeSet<String>,
    /// The hashes of texts that were to be replaced or removed.
    targets: BTreeSet<String>,
}

impl ListFacts {
    fn add(&mut self, claim: &Claim, items: &[&Item], included: bool) {
        let hash = |text: &str| ContentHash::of(text).to_string();
        self.is_partial |= !included;
        self.texts.extend(items.iter().map(|item| hash(&item.content)));
        if let Claim::Edit { edit: Edit::Replace { target, .. } | Edit::Remove { target, .. }, .. } = claim {
            self.targets.extend(target.as_deref().map(hash));
        }
    }
}

impl PayloadFilter<'_> {
    /// Returns whether a piece of evidence is sent.
    pub(super) fn sends_stored(&mut self, evidence: &StoredEvidence) -> Result<bool, SyncError> {
        // A list of which a part is missing would say something else.
        if let Some(list) = StreamName::of(evidence)
            && self.lists()?.get(&list) != Some(&true)
        {
            return Ok(false);
        }
        let items = items_of(&evidence.claim);
        let is_list = !matches!(evidence.claim, Claim::Statement(_));
        Ok((is_list || !items.is_empty()) && self.includes_items(&items)?)
    }

    fn lists(&mut self) -> Result<&BTreeMap<StreamName, bool>, SyncError> {
        if self.lists.is_none() {
            let (store, mut lists) = (self.store, BTreeMap::<StreamName, ListFacts>::new());
            for record in store.evidence_all() {
                if let Some(EvidenceItem::Stored(evidence)) = EvidenceItem::decode(&record?.json)?
                    && let Some(list) = StreamName::of(&evidence)
                {
                    let items = items_of(&evidence.claim);
                    let included = self.includes_items(&items)?;
                    lists.entry(list).or_default().add(&evidence.claim, &items, included);
                }
            }
            let mut known = BTreeMap::new();
            for (list, facts) in lists {
                known.insert(list, self.includes_list(&facts)?);
            }
            self.lists = Some(known);
        }
        self.lists.as_ref().ok_or(UNREADABLE)
    }

    fn includes_list(&mut self, facts: &ListFacts) -> Result<bool, SyncError> {
        if facts.is_partial || facts.texts.is_empty() {
            return Ok(false);
        }
        for target in &facts.targets {
            if !facts.texts.contains(target) && !self.includes_text(target)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
