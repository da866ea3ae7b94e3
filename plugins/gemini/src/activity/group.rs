//! Rows into conversations: by the id that they name, else by the silence between them.

use std::collections::BTreeMap;

use super::index::{Entry, Index};

/// After so long a silence another conversation begins, in microseconds.
const GAP: i64 = 30 * 60 * 1_000_000;

/// The rows of one conversation, oldest first, by their place in the index.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Group {
    /// The place of its id in the index; none if the rows name none.
    pub(super) conversation: Option<u32>,
    pub(super) rows: Vec<usize>,
}

/// All conversations, in the order of the files, and the rows that belong to none.
pub(super) fn groups(index: &Index) -> (Vec<Group>, Vec<usize>) {
    let mut named: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    let mut loose = Vec::new();
    for (at, row) in index.rows.iter().enumerate() {
        for conversation in &row.conversations {
            named.entry(*conversation).or_default().push(at);
        }
        if row.conversations.is_empty() {
            loose.push(at);
        }
    }
    let named =
        named.into_iter().map(|(conversation, rows)| Group { conversation: Some(conversation), rows });
    let mut groups: Vec<Group> = named.collect();
    groups.iter_mut().for_each(|group| sort(&mut group.rows, &index.rows));
    sort(&mut loose, &index.rows);
    let alone = by_silence(loose, index, &mut groups);
    groups.sort_by_key(|group| group.rows.iter().map(|at| place(&index.rows, *at)).min());
    (groups, alone)
}

/// Oldest first. Files are newest first, so of two rows of one time the one further behind is older; rows without a
/// time come last.
fn sort(rows: &mut [usize], entries: &[Entry]) {
    rows.sort_by_key(|at| {
        let row = entries.get(*at);
        let time = row.and_then(|row| row.time).unwrap_or(i64::MAX);
        (time, row.map(|row| row.file), std::cmp::Reverse(row.map(|row| row.offset)))
    });
}

fn place(entries: &[Entry], at: usize) -> Option<(u32, u64)> {
    entries.get(at).map(|row| (row.file, row.offset))
}

/// Groups rows without ids where somebody says something; events go to the conversation in whose time they fall.
fn by_silence(loose: Vec<usize>, index: &Index, groups: &mut Vec<Group>) -> Vec<usize> {
    let time = |at: usize| index.rows.get(at).and_then(|row| row.time);
    let speaker = index.speakers();
    let speaks = |at: usize| index.rows.get(at).is_some_and(&speaker);
    let mut spoken: Vec<Group> = Vec::new();
    for at in loose.iter().copied().filter(|at| speaks(*at)) {
        let goes_on = |group: &&mut Group| {
            let last = group.rows.last().and_then(|last| time(*last));
            last.zip(time(at)).is_some_and(|(last, now)| now - last <= GAP)
        };
        match spoken.last_mut().filter(goes_on) {
            Some(group) => group.rows.push(at),
            None => spoken.push(Group { conversation: None, rows: vec![at] }),
        }
    }
    let alone = join_events(loose.into_iter().filter(|at| !speaks(*at)), &mut spoken, &time);
    spoken.iter_mut().for_each(|group| sort(&mut group.rows, &index.rows));
    groups.extend(spoken);
    alone
}

/// Puts each event to the conversation that was going on then; gives those for which there is none.
fn join_events(
    events: impl Iterator<Item = usize>,
    spoken: &mut [Group],
    time: &impl Fn(usize) -> Option<i64>,
) -> Vec<usize> {
    let spans: Vec<Option<(i64, i64)>> =
        spoken.iter().map(|group| Some((time(*group.rows.first()?)?, time(*group.rows.last()?)?))).collect();
    let mut alone = Vec::new();
    for at in events {
        let found = time(at).and_then(|now| {
            // Rows without a time are last, and groups are in the order of their times.
            let after = spans.partition_point(|span| span.is_some_and(|(first, _)| first <= now));
            let near = |number: &usize| {
                spans
                    .get(*number)
                    .copied()
                    .flatten()
                    .is_some_and(|(first, last)| now >= first - GAP && now <= last + GAP)
            };
            after.checked_sub(1).filter(near).or_else(|| Some(after).filter(near))
        });
        match found.and_then(|number| spoken.get_mut(number)) {
            Some(group) => group.rows.push(at),
            None => alone.push(at),
        }
    }
    alone
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::activity::index::Kind;

    fn entry(offset: u64, minute: Option<i64>, kind: Kind, conversations: &[u32]) -> Entry {
        Entry {
            file: 0,
            number: 0,
            offset,
            length: 0,
            time: minute.map(|minute| minute * 60_000_000),
            kind,
            beginning: None,
            answered: false,
            repeat: 0,
            conversations: conversations.into(),
        }
    }

    type Grouped = (Vec<(Option<u32>, Vec<usize>)>, Vec<usize>);

    fn grouped(rows: Vec<Entry>) -> Grouped {
        let mut index = Index::default();
        (index.rows, index.spoken) = (rows, true);
        let (groups, alone) = groups(&index);
        (groups.into_iter().map(|group| (group.conversation, group.rows)).collect(), alone)
    }

    #[test]
    fn silence_parts_what_has_no_id() {
        let (groups, alone) = grouped(vec![
            entry(0, Some(100), Kind::Prompt, &[]),
            entry(1, Some(31), Kind::Prompt, &[]),
            entry(2, Some(30), Kind::Event, &[]),
            entry(3, Some(1), Kind::Prompt, &[]),
            entry(4, Some(1), Kind::Prompt, &[]),
            entry(5, Some(-500), Kind::Event, &[]),
            entry(6, None, Kind::Prompt, &[]),
        ]);
        assert_eq!(groups, [(None, vec![0]), (None, vec![4, 3, 2, 1]), (None, vec![6])]);
        assert_eq!(alone, [5]);
    }

    #[test]
    fn a_row_belongs_to_all_conversations_that_it_names() {
        let (groups, alone) = grouped(vec![
            entry(0, Some(500), Kind::Prompt, &[1]),
            entry(1, Some(3), Kind::Event, &[0]),
            entry(2, Some(1), Kind::Prompt, &[0, 1]),
        ]);
        assert_eq!(groups, [(Some(1), vec![2, 0]), (Some(0), vec![2, 1])]);
        assert!(alone.is_empty());
    }
}
