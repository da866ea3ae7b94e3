//! The order of a list's entries, their ids and roles. A first pass reads the times, a second one the entries.

use std::collections::BTreeMap;

use satchel_importer::{
    Bundle, ImportError, Role, natural_key,
    order::{contradicts, sort_by_time},
    warnings::shortened,
};

use crate::{
    detect::ignore_other_formats,
    list::List,
    raw::Entry,
    turns::{self, RoleSource, Turn},
};

/// Entries of one list: their order is in memory.
pub(crate) const MAX_ENTRIES: usize = 200_000;
/// The user name of My AI, and its name.
pub(crate) const AI: [&str; 2] = ["myai", "My AI"];

/// The entries of a list, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Order {
    pub(crate) list: Vec<Place>,
    /// By the index of the element.
    places: BTreeMap<u64, usize>,
    /// The times contradict both orders of the file.
    pub(crate) sorted: bool,
    /// Entries without a time.
    pub(crate) undated: u64,
    /// Entries whose role the export does not state.
    pub(crate) inferred: u64,
    /// Those among them of which nothing tells the role.
    pub(crate) assumed: u64,
    /// Types that are not known, with the number of their entries; absent types under the empty text.
    pub(crate) unknown: BTreeMap<String, u64>,
    /// Entries of further unknown types.
    pub(crate) more_unknown: u64,
}

/// One entry.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) id: String,
    index: u64,
    pub(crate) role: Role,
    pub(crate) role_source: RoleSource,
    pub(crate) turn: Turn,
}

/// Kinds of unknown types that are told apart.
const MAX_UNKNOWN: usize = 16;
/// The types that are known.
const KNOWN: [&str; 4] = ["CHAT", "TEXT", "SNAP", "MEDIA"];

impl Order {
    /// Reads the order of a list.
    pub(crate) fn read(bundle: &Bundle, list: &List<'_>) -> Result<Self, ImportError> {
        let mut order = Self::default();
        let mut seen = BTreeMap::new();
        let read = list.survey(bundle, |index, text, arena| {
            if order.list.len() < MAX_ENTRIES
                && let Some(entry) = Entry::peek(text, arena)
            {
                order.add(index, &entry, &mut seen);
            }
        });
        ignore_other_formats(read)?;
        order.finish();
        Ok(order)
    }

    /// The place in the list of the element `index`; none if it is no entry or one beyond the limit.
    pub(crate) fn place(&self, index: u64) -> Option<usize> {
        self.places.get(&index).copied()
    }

    /// The times of the oldest and the newest entry.
    pub(crate) fn times(&self) -> (Option<i64>, Option<i64>) {
        let times = || self.list.iter().filter_map(|place| place.turn.time);
        (times().min(), times().max())
    }

    fn add(&mut self, index: u64, entry: &Entry<'_>, seen: &mut BTreeMap<String, u32>) {
        let time = entry.time.map(|time| time.to_string());
        let said = entry.content.or(entry.media).unwrap_or_default();
        let key = natural_key(&[time.as_deref(), Some(said)]);
        let count = seen.entry(key.clone()).or_default();
        *count += 1;
        let id = if *count == 1 { key } else { format!("{key}:{count}") };
        let kind = entry.kind.unwrap_or_default();
        if !KNOWN.contains(&kind) {
            self.add_unknown(shortened(kind));
        }
        self.undated += u64::from(entry.time.is_none());
        let turn = Turn { time: entry.time, kind: entry.turn_kind(), known: known_role(entry) };
        let (role, role_source) = (Role::Assistant, RoleSource::Assumed);
        self.list.push(Place { id, index, role, role_source, turn });
    }

    fn add_unknown(&mut self, kind: String) {
        if self.unknown.len() < MAX_UNKNOWN || self.unknown.contains_key(&kind) {
            *self.unknown.entry(kind).or_default() += 1;
        } else {
            self.more_unknown += 1;
        }
    }

    fn finish(&mut self) {
        // The file lists the newest first, and so do entries of one second.
        let times = |list: &[Place]| list.iter().map(|place| place.turn.time).collect::<Vec<_>>();
        let oldest_first = !contradicts(times(&self.list)) && {
            let dated: Vec<i64> = times(&self.list).into_iter().flatten().collect();
            dated.first() != dated.last()
        };
        if !oldest_first {
            self.list.reverse();
            // All roles are the same, so that entries of one time keep the order of the file.
            self.sorted = sort_by_time(&mut self.list, |place| (Role::User, place.turn.time));
        }
        let turns: Vec<Turn> = self.list.iter().map(|place| place.turn).collect();
        for (place, (role, source)) in self.list.iter_mut().zip(turns::roles(&turns)) {
            self.inferred += u64::from(source != RoleSource::Stated);
            self.assumed += u64::from(source == RoleSource::Assumed);
            (place.role, place.role_source) = (role, source);
        }
        self.places = self.list.iter().enumerate().map(|(at, place)| (place.index, at)).collect();
    }
}

/// The role, if the entry names its sender.
fn known_role(entry: &Entry<'_>) -> Option<Role> {
    let of = |sent: bool| if sent { Role::User } else { Role::Assistant };
    entry.sent.or_else(|| entry.from.map(|from| !AI.contains(&from))).map(of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_types_are_shortened_and_those_beyond_the_limit_counted() {
        let entries: Vec<String> = (0..MAX_UNKNOWN + 3)
            .map(|at| {
                format!(
                    r#"{{"Timestamp":"2024-01-01 00:00:00 UTC","Content":"a","Type":"{at:02}{}"}}"#,
                    "x".repeat(99)
                )
            })
            .collect();
        let order =
            Order::read(&Bundle::from_files::<&str, &str>([]), &List::Rows(&entries)).expect("it is a list");
        assert_eq!((order.unknown.len(), order.more_unknown), (MAX_UNKNOWN, 3));
        assert!(order.unknown.keys().all(|kind| kind.len() == 64));
    }
}
