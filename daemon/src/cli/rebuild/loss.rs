//! Determines what a rebuild from a damaged journal would lose, before anything is changed.

use std::{collections::BTreeSet, path::Path};

use satchel_pam::time::Timestamp;
use satchel_store::{
    ChangeKind, ChangePosition, CheckProgress, Damage, OpenOptions, Revision, Store, StoreError,
};
use serde::Serialize;

use crate::cli::text;

/// Changes read per page.
const PAGE_SIZE: usize = 1_000;
/// Damaged places that are listed one by one.
const LISTED_PLACES: usize = 5;

/// What the journal has lost and the database still has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(in crate::cli) struct DataLoss {
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
pub(super) fn assess(
    dir: &Path,
    options: OpenOptions,
    progress: &mut dyn FnMut(CheckProgress),
) -> Result<Option<DataLoss>, StoreError> {
    let store = Store::open(dir, options, &mut |_| {})?;
    let damage = store.find_damage(progress)?;
    let loss = if damage.is_empty() { None } else { Some(DataLoss::measure(&store, &damage)?) };
    store.close()?;
    Ok(loss)
}

impl DataLoss {
    fn measure(store: &Store, damage: &[Damage]) -> Result<Self, StoreError> {
        let mut loss = Self { places: damage.iter().map(Damage::to_string).collect(), ..Self::default() };
        let (mut seen, mut since) = (BTreeSet::new(), None);
        for range in damage.iter().flat_map(|place| &place.revisions) {
            loss.revisions.push([*range.start(), *range.end()]);
            let mut after =
                ChangePosition { revision: Revision::new(range.start().saturating_sub(1)), n: u32::MAX };
            'range: loop {
                let changes = store.changes_since(after, PAGE_SIZE)?;
                for change in &changes {
                    if change.position.revision.get() > *range.end() {
                        break 'range;
                    }
                    if seen.insert((change.kind as u8, change.id.clone())) {
                        loss.count(change.kind);
                    }
                    since = since.into_iter().chain(written_at(store, change.kind, &change.id)?).min();
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
    pub(super) fn message(&self) -> String {
        let mut lines = vec!["the journal is damaged, and a database rebuilt from it would lose data that the current one has; \
                             nothing was changed"
            .to_owned()];
        lines.push(format!("it would lose: {}", self.summary()));
        let named = self.places.iter().take(LISTED_PLACES).cloned().collect::<Vec<_>>().join("; ");
        let more = self.places.len().saturating_sub(LISTED_PLACES);
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        lines.push(format!("damaged: {named}{more}"));
        lines.push(
            "restore a backup with `satchel restore FILE --replace`, or export what can be read; --accept-loss rebuilds it \
             anyway and keeps the current database, which `satchel rebuild --put-back` restores"
                .to_owned(),
        );
        lines.join("\n")
    }

    /// Returns the records, revisions and time.
    pub(super) fn summary(&self) -> String {
        if self.revisions.is_empty() {
            return "no records, only entries in the history of imports and exports".to_owned();
        }
        let ranges: Vec<String> = self
            .revisions
            .iter()
            .map(|[first, last]| if first == last { first.to_string() } else { format!("{first} to {last}") })
            .collect();
        let since = self.since.as_ref().map_or_else(String::new, |at| format!(", from {at} on"));
        format!(
            "{}, {} and {} of relations and vectors, in revisions {}{since}",
            text::count(self.memories, "memory", "memories"),
            text::count(self.conversations, "conversation", "conversations"),
            text::count(self.others, "change", "changes"),
            ranges.join(", "),
        )
    }
}

/// Returns when the shown version of a record was written.
fn written_at(store: &Store, kind: ChangeKind, id: &str) -> Result<Option<i64>, StoreError> {
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
