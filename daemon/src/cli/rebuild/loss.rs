//! Determines what a rebuild from a damaged journal would lose, before anything is changed.

use std::{collections::BTreeSet, path::Path};

use satchel_pam::time::Timestamp;
use satchel_store::{
    ChangeKind, ChangePosition, CheckProgress, Damage, OpenOptions, Revision, Store, StoreError,
};
use serde::Serialize;

use crate::cli::text;

/// Changes read per page.
const PAGE: usize = 1_000;
/// Damaged places that are listed one by one.
const NAMED: usize = 5;

/// What the journal has lost and the database still has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(in crate::cli) struct Loss {
    /// The first and last revision of each range.
    pub(super) revisions: Vec<[u64; 2]>,
    pub(super) memories: u64,
    pub(super) conversations: u64,
    /// Relations and vectors.
    pub(super) others: u64,
    /// When the first of these commits was made; `None` if the database does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) since: Option<String>,
    /// The damaged places.
    pub(super) places: Vec<String>,
}

/// Opens the store, reads the whole journal, and closes the store again.
///
/// # Errors
/// Returns the errors of the store and of the file system.
pub(super) fn look(
    dir: &Path,
    options: OpenOptions,
    progress: &mut dyn FnMut(CheckProgress),
) -> Result<Option<Loss>, StoreError> {
    let store = Store::open(dir, options, &mut |_| {})?;
    let damage = store.survey(progress)?;
    let loss = if damage.is_empty() { None } else { Some(Loss::of(&store, &damage)?) };
    store.close()?;
    Ok(loss)
}

impl Loss {
    fn of(store: &Store, damage: &[Damage]) -> Result<Self, StoreError> {
        let mut loss = Self { places: damage.iter().map(Damage::to_string).collect(), ..Self::default() };
        let (mut seen, mut since) = (BTreeSet::new(), None);
        for range in damage.iter().flat_map(|place| &place.revisions) {
            loss.revisions.push([*range.start(), *range.end()]);
            let mut after =
                ChangePosition { revision: Revision::new(range.start().saturating_sub(1)), n: u32::MAX };
            'range: loop {
                let changes = store.changes_since(after, PAGE)?;
                for change in &changes {
                    if change.position.revision.get() > *range.end() {
                        break 'range;
                    }
                    if seen.insert((change.kind as u8, change.id.clone())) {
                        loss.count(change.kind);
                    }
                    since = since.into_iter().chain(written(store, change.kind, &change.id)?).min();
                }
                let Some(last) = changes.last() else { break };
                after = last.position;
            }
        }
        loss.since = since.map(|at| Timestamp::saturating(at).to_string());
        Ok(loss)
    }

    fn count(&mut self, kind: ChangeKind) {
        match kind {
            ChangeKind::Memory => self.memories += 1,
            ChangeKind::Conversation => self.conversations += 1,
            _ => self.others += 1,
        }
    }

    /// Returns what would be lost, and how to keep it.
    pub(super) fn words(&self) -> String {
        let mut said = vec!["the journal is damaged, and a database that is built from it would be poorer than the one that is there; \
                             nothing was changed"
            .to_owned()];
        said.push(format!("it would lack: {}", self.lacking()));
        let named = self.places.iter().take(NAMED).cloned().collect::<Vec<_>>().join("; ");
        let more = self.places.len().saturating_sub(NAMED);
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        said.push(format!("damaged: {named}{more}"));
        said.push(
            "restore a backup with `satchel restore FILE --replace`, or export what can be read; --accept-loss builds it all the \
             same and keeps the one that is there beside it, for `satchel rebuild --put-back`"
                .to_owned(),
        );
        said.join("\n")
    }

    /// Returns the records, revisions and time.
    pub(super) fn lacking(&self) -> String {
        if self.revisions.is_empty() {
            return "no record that is shown; entries of the history of imports and exports".to_owned();
        }
        let ranges: Vec<String> = self
            .revisions
            .iter()
            .map(|[first, last]| if first == last { first.to_string() } else { format!("{first} to {last}") })
            .collect();
        let since = self.since.as_ref().map_or_else(String::new, |at| format!(", from {at} on"));
        format!(
            "{}, {} and {} of relations and vectors, as revisions {} have them{since}",
            text::count(self.memories, "memory", "memories"),
            text::count(self.conversations, "conversation", "conversations"),
            text::count(self.others, "change", "changes"),
            ranges.join(", "),
        )
    }
}

/// Returns when the shown version of a record was written.
fn written(store: &Store, kind: ChangeKind, id: &str) -> Result<Option<i64>, StoreError> {
    let found = match kind {
        ChangeKind::Memory => store.memory(id, None).map(|found| found.map(|found| found.origin.at_micros)),
        ChangeKind::Conversation => {
            store.conversation(id, None).map(|found| found.map(|found| found.origin.at_micros))
        }
        _ => Ok(None),
    };
    match found {
        // Longer records are stored only in the journal.
        Err(StoreError::DamagedRecord { .. }) => Ok(None),
        found => found,
    }
}
