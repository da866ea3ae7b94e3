//! Conversations grouped from rows: without an import they may split, or begin later and therefore have another id.

use satchel_merge::groups::GroupedConversation;
use satchel_store::{Change, Store};

use super::UndoRun;
use crate::{
    conversation_record::{WriteLabels, write_of},
    ingest::{
        error::IngestError,
        write::groups::{GroupStep, planned, steps},
    },
    provenance::{Contribution, ConversationProvenance},
};

impl UndoRun<'_> {
    /// Returns the changes to the conversations of a family of rows; `key` is the key under which the family is stored.
    pub(super) fn rows(
        &mut self,
        key: &str,
        mut family: ConversationProvenance,
    ) -> Result<Vec<Change>, IngestError> {
        let store = &self.inner.store;
        let Some(platform) = platform(store, &family)? else { return Ok(Vec::new()) };
        let parts: Vec<Contribution> = family.included(&self.left_out[1], false).cloned().collect();
        let known: Vec<&Contribution> = parts.iter().collect();
        let components = planned(store, &platform, &known, &[], &self.session.cancel)?;
        let steps = steps(store, &family, components)?;
        let (mut ids, mut changes) = (Vec::new(), Vec::new());
        for step in steps {
            let (component, stored) = match step {
                GroupStep::Withdraw(change) => {
                    self.outcome.conversations.withdrawn += 1;
                    changes.push(change);
                    continue;
                }
                GroupStep::Show { changed: false, .. } => continue,
                GroupStep::Show { component, stored, changed: true } => (*component, stored),
            };
            if stored.as_ref().is_some_and(|stored| !stored.withdrawn) {
                self.outcome.conversations.changed += 1;
            } else {
                self.outcome.conversations.restored += 1;
            }
            let GroupedConversation { id, parts: own, planned, title_key: _ } = component;
            let last = own.last().and_then(|place| parts.get(place.at));
            let by = last.map(|part| self.import_of_part(part)).transpose()?.flatten();
            let import = by.or_else(|| stored.as_ref()?.header.import_metadata.clone()).unwrap_or_default();
            let labels = WriteLabels { id: &id, platform: &platform, fallback: 0, import };
            changes.push(write_of(planned, labels, stored.as_deref()));
            ids.push(id);
        }
        if family.add_shown_in(ids) | family.title_source.take().is_some() {
            // The family is written before the conversations that it lists: an interrupted undo is completed from it.
            changes.insert(0, family.to_change(key)?);
        }
        Ok(changes)
    }
}

/// Returns the platform of the rows.
fn platform(store: &Store, family: &ConversationProvenance) -> Result<Option<String>, IngestError> {
    for id in &family.shown {
        if let Some(stored) = store.conversation(id, None)? {
            return Ok(Some(stored.header.provider.name));
        }
    }
    Ok(None)
}
