//! The selection of an export: the whole store or a part of it, with or without personal identifiers.
//!
//! A selection is not a full copy: [`Selected`] is recorded in the manifest and the ledger, and no export is ever built
//! on it.

use satchel_bundle::manifest::BundleSelection;
use satchel_store::{ConversationQuery, MemoryQuery, TimeRange};

/// The part of a store that is exported.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Which memories to export; the order is ignored. Conversations are filtered by platform, account, tag and time as
    /// well. A filter that conversations do not have, such as type or status, leaves all conversations out.
    pub memories: MemoryQuery,
    /// Removes accounts, addresses of people, and all other identifiers that only the provider knows a person by.
    pub strip: bool,
}

impl Selection {
    /// Returns whether some memories or conversations are left out.
    #[must_use]
    pub fn filters(&self) -> bool {
        !self.filter_names().is_empty()
    }

    /// Returns the description for the manifest and the ledger, or `None` if the export is complete.
    #[must_use]
    pub fn description(&self) -> Option<BundleSelection> {
        let by: Vec<String> = self.filter_names().into_iter().map(str::to_owned).collect();
        (!by.is_empty() || self.strip).then_some(BundleSelection { by, stripped: self.strip })
    }

    /// Returns which conversations to export, or `None` if a filter applies to memories only.
    #[must_use]
    pub fn conversations(&self) -> Option<ConversationQuery> {
        // Every field is named, so that each filter that does not apply to conversations leaves them out.
        let MemoryQuery {
            types,
            statuses,
            platforms,
            accounts,
            tags_any,
            tags_all,
            conversation,
            created,
            updated,
            content_hash,
            valid_at,
            expired_at,
            unexpired_at,
            ids,
            order: _,
        } = &self.memories;
        let of_memories = !types.is_empty()
            || !statuses.is_empty()
            || conversation.is_some()
            || content_hash.is_some()
            || valid_at.is_some()
            || expired_at.is_some()
            || unexpired_at.is_some()
            || !ids.is_empty();
        (!of_memories).then(|| ConversationQuery {
            platforms: platforms.clone(),
            accounts: accounts.clone(),
            tags_any: tags_any.clone(),
            tags_all: tags_all.clone(),
            created: *created,
            updated: *updated,
            ..ConversationQuery::default()
        })
    }

    fn filter_names(&self) -> Vec<&'static str> {
        // Every field is named, so that a new field fails to compile until someone decides.
        let MemoryQuery {
            types,
            statuses,
            platforms,
            accounts,
            tags_any,
            tags_all,
            conversation,
            created,
            updated,
            content_hash,
            valid_at,
            expired_at,
            unexpired_at,
            ids,
            order: _,
        } = &self.memories;
        let any = TimeRange::default();
        let chosen = [
            (!types.is_empty(), "type"),
            (!statuses.is_empty(), "status"),
            (!platforms.is_empty(), "platform"),
            (!accounts.is_empty(), "account"),
            (!tags_any.is_empty() || !tags_all.is_empty(), "tag"),
            (*created != any || *updated != any, "time"),
            (conversation.is_some(), "conversation"),
            (content_hash.is_some() || !ids.is_empty(), "id"),
            (valid_at.or(*expired_at).or(*unexpired_at).is_some(), "validity"),
        ];
        chosen.into_iter().filter(|(chosen, _)| *chosen).map(|(_, by)| by).collect()
    }
}

#[cfg(test)]
mod tests {
    use satchel_pam::memory::MemoryType;

    use super::*;

    #[test]
    fn a_description_names_the_filters_and_never_their_values() {
        let memories = MemoryQuery {
            types: vec![MemoryType::Goal],
            tags_all: vec!["divorce".into()],
            ..MemoryQuery::default()
        };
        let selection = Selection { memories, strip: true };
        let description = selection.description().unwrap_or_default();
        assert_eq!((description.by.join(" "), description.stripped), ("type tag".to_owned(), true));
        assert_eq!(description.describe(), "a selection by type, tag, without identifiers");
        assert!(selection.conversations().is_none(), "conversations have no type");
        assert!(Selection::default().description().is_none() && !Selection::default().filters());
    }
}
