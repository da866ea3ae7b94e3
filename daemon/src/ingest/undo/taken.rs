//! Conversations that an import took back, as they had been taken back where its document comes from.

use satchel_store::{Change, ConversationRecord};

use super::{IngestError, Run};
use crate::{
    ingest::write::conversation::withdrawal_of,
    lineage::{Family, taken::Taken},
};

impl Run<'_> {
    /// What becomes of a conversation that was taken back; none: what was said of it decides.
    pub(super) fn taken_back(
        &mut self,
        id: &str,
        stored: Option<&ConversationRecord>,
        family: &Family,
    ) -> Result<Option<Vec<Change>>, IngestError> {
        let taken = Taken::of(&self.inner.store, id)?.filter(|_| !family.of_rows());
        let Some(taken) = taken else { return Ok(None) };
        let stands = taken.stands(stored);
        if taken.import != self.import {
            // It stays away, whatever becomes of what was said.
            return Ok((stands && !self.after.contains(&taken.import)).then(Vec::new));
        }
        if self.after.contains(&self.import) {
            let back = stands.then(|| self.conversation(id, stored.cloned(), family)).transpose()?;
            return Ok(back.map(|change| change.into_iter().collect()));
        }
        // It goes again only if nobody said more of it since the undo.
        let own =
            |stored: &&ConversationRecord| !stored.withdrawn && stored.origin.import == Some(self.import);
        let Some(shown) = stored.filter(own) else { return Ok(None) };
        self.outcome.conversations.withdrawn += 1;
        Ok(Some(vec![withdrawal_of(shown.clone())]))
    }
}
