//! Rows into conversations: by the id that they name, else by the silence between them.

use std::collections::BTreeMap;

use super::index::{Entry, Index, Kind};

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

/// Groups rows without ids by the prompts in them. What Gemini made, and other events, go to the conversation that was going on
/// then; what it made apart from any is a conversation of its own, for the work in it. Gives the events for which there is
/// none.
fn by_silence(loose: Vec<usize>, index: &Index, groups: &mut Vec<Group>) -> Vec<usize> {
    let speaker = index.speakers();
    let kind = |at: &usize| index.rows.get(*at).map(|row| (row.kind, speaker(row)));
    let (mut prompts, mut works, mut events) = (Vec::new(), Vec::new(), Vec::new());
    for at in loose {
        match kind(&at) {
            Some((Kind::Creation, _)) => works.push(at),
            Some((_, true)) => prompts.push(at),
            Some((_, false)) | None => events.push(at),
        }
    }
    groups.extend(runs(prompts, index));
    let apart = join(works, index, groups);
    groups.extend(runs(apart, index));
    let alone = join(events, index, groups);
    groups.iter_mut().for_each(|group| sort(&mut group.rows, &index.rows));
    alone
}

/// Rows, oldest first, parted where there was silence.
fn runs(rows: Vec<usize>, index: &Index) -> Vec<Group> {
    let time = |at: usize| index.rows.get(at).and_then(|row| row.time);
    let mut runs: Vec<Group> = Vec::new();
    for at in rows {
        let goes_on = |group: &&mut Group| {
            let last = group.rows.last().and_then(|last| time(*last));
            last.zip(time(at)).is_some_and(|(last, now)| now - last <= GAP)
        };
        match runs.last_mut().filter(goes_on) {
            Some(group) => group.rows.push(at),
            None => runs.push(Group { conversation: None, rows: vec![at] }),
        }
    }
    runs
}

/// Puts each of `rows` to the conversation with the row before it, else to that with the row behind, if that is not too long
/// ago; gives those for which there is none.
fn join(rows: Vec<usize>, index: &Index, groups: &mut [Group]) -> Vec<usize> {
    if rows.is_empty() {
        return rows;
    }
    let time = |at: usize| index.rows.get(at).and_then(|row| row.time);
    let mut times: Vec<(i64, usize)> = Vec::new();
    for (number, group) in groups.iter().enumerate() {
        times.extend(group.rows.iter().filter_map(|at| Some((time(*at)?, number))));
    }
    times.sort_unstable();
    let mut alone = Vec::new();
    for at in rows {
        let found = time(at).and_then(|now| {
            let behind = times.partition_point(|(time, _)| *time <= now);
            let before = behind.checked_sub(1);
            let near = |place: &usize| {
                times.get(*place).filter(|(time, _)| now.abs_diff(*time) <= GAP.unsigned_abs())
            };
            before.as_ref().and_then(near).or_else(|| near(&behind)).map(|(_, group)| *group)
        });
        match found.and_then(|number| groups.get_mut(number)) {
            Some(group) => group.rows.push(at),
            None => alone.push(at),
        }
    }
    alone
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn what_gemini_made_belongs_to_the_conversation_before_it() {
        let (groups, alone) = grouped(vec![
            entry(0, Some(1000), Kind::Creation, &[]),
            entry(1, Some(505), Kind::Creation, &[]),
            entry(2, Some(500), Kind::Prompt, &[0]),
            entry(3, Some(103), Kind::Event, &[]),
            entry(4, Some(102), Kind::Creation, &[]),
            entry(5, Some(100), Kind::Prompt, &[]),
            entry(6, Some(99), Kind::Prompt, &[1]),
            entry(7, Some(40), Kind::Event, &[]),
            entry(8, None, Kind::Event, &[]),
        ]);
        assert_eq!(
            groups,
            [(None, vec![0]), (Some(0), vec![2, 1]), (None, vec![5, 4, 3]), (Some(1), vec![6])]
        );
        assert_eq!(alone, [7, 8]);
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
