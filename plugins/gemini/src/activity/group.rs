//! Groups rows into conversations: by the id that they name, else by the pauses between them.

use std::collections::BTreeMap;

use super::index::{Index, RowEntry, RowKind};

/// The pause after which another conversation begins, in microseconds.
const MAX_PAUSE: i64 = 30 * 60 * 1_000_000;

/// The rows of one conversation, oldest first.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Group {
    /// The index of its id in [`Index::conversations`], if it has one.
    pub(super) conversation: Option<u32>,
    /// Indexes in [`Index::rows`].
    pub(super) rows: Vec<usize>,
}

/// Groups all rows. Returns the conversations in the order of the files, and the rows that belong to none.
pub(super) fn group(index: &Index) -> (Vec<Group>, Vec<usize>) {
    let mut with_id: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    let mut without_id = Vec::new();
    for (at, row) in index.rows.iter().enumerate() {
        for conversation in &row.conversations {
            with_id.entry(*conversation).or_default().push(at);
        }
        if row.conversations.is_empty() {
            without_id.push(at);
        }
    }
    let with_id = with_id.into_iter();
    let mut groups: Vec<Group> = with_id.map(|(id, rows)| Group { conversation: Some(id), rows }).collect();
    sort(&mut without_id, &index.rows);
    let ungrouped = group_by_time(without_id, index, &mut groups);
    let position = |at: &usize| index.rows.get(*at).map(|row| (row.file, row.offset));
    groups.sort_by_key(|group| group.rows.iter().map(position).min());
    (groups, ungrouped)
}

/// Sorts rows by time, those without a time last. Files begin with the newest row, so rows of the same time are in reverse
/// order.
fn sort(rows: &mut [usize], entries: &[RowEntry]) {
    rows.sort_by_key(|at| {
        let row = entries.get(*at);
        let time = row.and_then(|row| row.time).unwrap_or(i64::MAX);
        (time, row.map(|row| row.file), std::cmp::Reverse(row.map(|row| row.offset)))
    });
}

/// Groups rows without an id. Prompts form conversations. Creations and events join the conversation of their time.
/// Creations outside of any form conversations of their own; events outside of any are returned.
fn group_by_time(rows: Vec<usize>, index: &Index, groups: &mut Vec<Group>) -> Vec<usize> {
    let in_dialogue = index.dialogue_filter();
    let (mut prompts, mut creations, mut events) = (Vec::new(), Vec::new(), Vec::new());
    for at in rows {
        match index.rows.get(at) {
            Some(RowEntry { kind: RowKind::Creation, .. }) => creations.push(at),
            Some(row) if in_dialogue(row) => prompts.push(at),
            Some(_) | None => events.push(at),
        }
    }
    groups.extend(split_at_pauses(prompts, index));
    let separate = join_nearest(creations, index, groups);
    groups.extend(split_at_pauses(separate, index));
    let ungrouped = join_nearest(events, index, groups);
    groups.iter_mut().for_each(|group| sort(&mut group.rows, &index.rows));
    ungrouped
}

/// Splits rows, oldest first, where there is a pause.
fn split_at_pauses(rows: Vec<usize>, index: &Index) -> Vec<Group> {
    let time = |at: usize| index.rows.get(at).and_then(|row| row.time);
    let mut groups: Vec<Group> = Vec::new();
    for at in rows {
        let continues = |group: &&mut Group| {
            let last = group.rows.last().and_then(|last| time(*last));
            last.zip(time(at)).is_some_and(|(last, now)| now - last <= MAX_PAUSE)
        };
        match groups.last_mut().filter(continues) {
            Some(group) => group.rows.push(at),
            None => groups.push(Group { conversation: None, rows: vec![at] }),
        }
    }
    groups
}

/// Adds each of `rows` to the conversation of the row before it, else of the row behind it, unless there is a pause
/// between them. Returns the other rows.
fn join_nearest(rows: Vec<usize>, index: &Index, groups: &mut [Group]) -> Vec<usize> {
    if rows.is_empty() {
        return rows;
    }
    let time = |at: usize| index.rows.get(at).and_then(|row| row.time);
    let mut times: Vec<(i64, usize)> = Vec::new();
    for (number, group) in groups.iter().enumerate() {
        times.extend(group.rows.iter().filter_map(|at| Some((time(*at)?, number))));
    }
    times.sort_unstable();
    let mut ungrouped = Vec::new();
    for at in rows {
        let found = time(at).and_then(|now| {
            let behind = times.partition_point(|(time, _)| *time <= now);
            let before = behind.checked_sub(1);
            let near = |at: &usize| {
                times.get(*at).filter(|(time, _)| now.abs_diff(*time) <= MAX_PAUSE.unsigned_abs())
            };
            before.as_ref().and_then(near).or_else(|| near(&behind)).map(|(_, group)| *group)
        });
        match found.and_then(|number| groups.get_mut(number)) {
            Some(group) => group.rows.push(at),
            None => ungrouped.push(at),
        }
    }
    ungrouped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(offset: u64, minute: Option<i64>, kind: RowKind, conversations: &[u32]) -> RowEntry {
        RowEntry {
            file: 0,
            number: 0,
            offset,
            length: 0,
            time: minute.map(|minute| minute * 60_000_000),
            kind,
            possible_verb: None,
            answered: false,
            repeat: 0,
            conversations: conversations.into(),
        }
    }

    type Grouped = (Vec<(Option<u32>, Vec<usize>)>, Vec<usize>);

    fn grouped(rows: Vec<RowEntry>) -> Grouped {
        let mut index = Index::default();
        (index.rows, index.has_known_prompts) = (rows, true);
        let (groups, ungrouped) = group(&index);
        (groups.into_iter().map(|group| (group.conversation, group.rows)).collect(), ungrouped)
    }

    #[test]
    fn rows_without_an_id_are_split_at_pauses() {
        let (groups, ungrouped) = grouped(vec![
            entry(0, Some(100), RowKind::Prompt, &[]),
            entry(1, Some(31), RowKind::Prompt, &[]),
            entry(2, Some(30), RowKind::Event, &[]),
            entry(3, Some(1), RowKind::Prompt, &[]),
            entry(4, Some(1), RowKind::Prompt, &[]),
            entry(5, Some(-500), RowKind::Event, &[]),
            entry(6, None, RowKind::Prompt, &[]),
        ]);
        assert_eq!(groups, [(None, vec![0]), (None, vec![4, 3, 2, 1]), (None, vec![6])]);
        assert_eq!(ungrouped, [5]);
    }

    #[test]
    fn creations_join_the_conversation_before_them() {
        let (groups, ungrouped) = grouped(vec![
            entry(0, Some(1000), RowKind::Creation, &[]),
            entry(1, Some(505), RowKind::Creation, &[]),
            entry(2, Some(500), RowKind::Prompt, &[0]),
            entry(3, Some(103), RowKind::Event, &[]),
            entry(4, Some(102), RowKind::Creation, &[]),
            entry(5, Some(100), RowKind::Prompt, &[]),
            entry(6, Some(99), RowKind::Prompt, &[1]),
            entry(7, Some(40), RowKind::Event, &[]),
            entry(8, None, RowKind::Event, &[]),
        ]);
        assert_eq!(
            groups,
            [(None, vec![0]), (Some(0), vec![2, 1]), (None, vec![5, 4, 3]), (Some(1), vec![6])]
        );
        assert_eq!(ungrouped, [7, 8]);
    }

    #[test]
    fn a_row_belongs_to_all_conversations_that_it_names() {
        let (groups, ungrouped) = grouped(vec![
            entry(0, Some(500), RowKind::Prompt, &[1]),
            entry(1, Some(3), RowKind::Event, &[0]),
            entry(2, Some(1), RowKind::Prompt, &[0, 1]),
        ]);
        assert_eq!(groups, [(Some(1), vec![2, 0]), (Some(0), vec![2, 1])]);
        assert!(ungrouped.is_empty());
    }
}
