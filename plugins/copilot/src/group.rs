//! Groups rows into conversations, which the tables do not name.

use satchel_importer::order::contradicts;

use crate::{layout::Layout, record::Record};

/// Microseconds after which a row begins a new conversation if its title is a common one. Rows with a title of their own
/// stay together over days: people return to a chat by its name.
const GAP: u64 = 30 * 60 * 1_000_000;
/// Bytes of one conversation, which must fit into the sandbox's memory; a longer one is split.
const MAX_BYTES: usize = 24 * 1024 * 1024;
/// Rows of one conversation.
const MAX_ROWS: usize = 100_000;

/// Adjacent rows of one title.
#[derive(Debug, Default)]
pub(crate) struct Group {
    /// Each with its index in the table, in the order of the table.
    rows: Vec<(u64, Record)>,
    bytes: usize,
}

/// Whether a row belongs to a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fit {
    /// It belongs to it.
    Same,
    /// It begins another conversation.
    Another,
    /// It belongs to it, but the group is full.
    Full,
}

impl Group {
    pub(crate) fn fit(&self, record: &Record, layout: Layout) -> Fit {
        let Some((_, last)) = self.rows.last() else { return Fit::Same };
        let paused = match (last.time, record.time) {
            (Some(last), Some(now)) => last.micros.abs_diff(now.micros) > GAP,
            _ => false,
        };
        if last.title != record.title || (paused && !record.titled(layout)) {
            Fit::Another
        } else if self.bytes + record.size() > MAX_BYTES || self.rows.len() == MAX_ROWS {
            Fit::Full
        } else {
            Fit::Same
        }
    }

    pub(crate) fn push(&mut self, index: u64, record: Record) {
        self.bytes += record.size();
        self.rows.push((index, record));
    }

    /// Takes its rows, oldest first. An answer can have the time of its question, so rows of one time keep the order of the
    /// table, reversed if the table is newest first. The second part says whether the rows are in neither order.
    pub(crate) fn take(&mut self, newest_first: bool) -> (Vec<(u64, Record)>, bool) {
        let mut rows = std::mem::take(&mut self.rows);
        self.bytes = 0;
        let mut dated = rows.iter().filter_map(|(_, record)| record.time).map(|time| time.micros);
        let (first, last) = (dated.next(), dated.next_back());
        let reversed = match (first, last) {
            (Some(first), Some(last)) if first != last => first > last,
            _ => newest_first,
        };
        if reversed {
            rows.reverse();
        }
        let contradicted = contradicts(rows.iter().map(|(_, record)| record.time.map(|time| time.micros)));
        // A row without a time stays after the one before it.
        let mut before = i64::MIN;
        let mut keyed: Vec<(i64, (u64, Record))> = Vec::with_capacity(rows.len());
        for (index, record) in rows {
            before = record.time.map_or(before, |time| time.micros);
            keyed.push((before, (index, record)));
        }
        keyed.sort_by_key(|(time, _)| *time);
        (keyed.into_iter().map(|(_, row)| row).collect(), contradicted)
    }
}

#[cfg(test)]
mod tests {
    use satchel_importer::Role;

    use super::*;
    use crate::time::Time;

    const SECOND: i64 = 1_000_000;

    fn record(title: &str, seconds: Option<i64>, role: Role) -> Record {
        Record {
            title: title.to_owned(),
            time: seconds.map(|seconds| Time { micros: seconds * SECOND, naive: true }),
            role,
            name: None,
            text: String::new(),
            rest: None,
        }
    }

    fn group(rows: &[(Option<i64>, Role)]) -> Group {
        let mut group = Group::default();
        for (at, (seconds, role)) in rows.iter().enumerate() {
            group.push(at as u64, record("Untitled", *seconds, *role));
        }
        group
    }

    fn order(mut group: Group, newest_first: bool) -> Vec<u64> {
        group.take(newest_first).0.into_iter().map(|(index, _)| index).collect()
    }

    #[test]
    fn only_rows_with_a_title_of_their_own_stay_together_over_a_pause() {
        let fit = |title: &str, layout, seconds| {
            let mut group = Group::default();
            group.push(0, record(title, Some(0), Role::User));
            group.fit(&record(title, Some(seconds), Role::User), layout)
        };
        assert_eq!(fit("Baking bread", Layout::History, 86_400), Fit::Same);
        assert_eq!(fit("Untitled", Layout::History, 1800), Fit::Same);
        assert_eq!(fit("Untitled", Layout::History, -1801), Fit::Another);
        assert_eq!(fit(" ", Layout::Chat, 1801), Fit::Another);
        assert_eq!(fit("Notepad", Layout::Apps, 1801), Fit::Another);
        let mut other = Group::default();
        other.push(0, record("Baking bread", Some(0), Role::User));
        assert_eq!(other.fit(&record("Baking rolls", Some(0), Role::User), Layout::History), Fit::Another);
    }

    #[test]
    fn rows_are_oldest_first_and_ties_are_reversed() {
        let (user, ai) = (Role::User, Role::Assistant);
        let newest = group(&[(Some(9), ai), (Some(9), user), (Some(5), ai), (Some(5), user)]);
        assert_eq!(order(newest, false), [3, 2, 1, 0]);
        let oldest = group(&[(Some(5), user), (Some(5), ai), (Some(9), user)]);
        assert_eq!(order(oldest, true), [0, 1, 2]);
        assert_eq!(order(group(&[(Some(5), ai), (Some(5), user)]), true), [1, 0]);
        assert_eq!(order(group(&[(Some(5), user), (Some(5), ai)]), false), [0, 1]);
    }

    #[test]
    fn a_row_without_a_time_keeps_its_place() {
        let rows = [(Some(9), Role::User), (None, Role::User), (Some(5), Role::User)];
        assert_eq!(order(group(&rows), true), [2, 1, 0]);
    }
}
