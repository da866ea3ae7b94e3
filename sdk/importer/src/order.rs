//! The order of messages that name no parents: each answers the one before, so their order is all that links them.
//!
//! Exports list such messages as they were said, or newest first, or in no order at all. An importer that chains by position uses
//! [`sort_by_time`] where times tell more than the file, and [`contradicts`] where the file does; its README says which, and either way
//! one warning for each conversation ([`SORTED`], [`KEPT`]) says that the two disagree.

use crate::Role;

/// The warning where the order of times was taken.
pub const SORTED: &str =
    "the file lists its messages in another order than their times; they are read in the order of time";
/// The warning where the order of the file was taken.
pub const KEPT: &str =
    "the file lists its messages in another order than their times; they are read in the order of the file";

/// Whether some time is earlier than one that stands before it; messages without a time say nothing.
pub fn contradicts(times: impl IntoIterator<Item = Option<i64>>) -> bool {
    let mut latest = i64::MIN;
    times.into_iter().flatten().any(|time| {
        let earlier = time < latest;
        latest = latest.max(time);
        earlier
    })
}

/// Puts messages into the order of their times where that of the file contradicts it; true if it did.
///
/// Of messages of one time what the person said comes first, as does an instruction; then the order of the file counts. A message
/// without a time stays behind the one that it follows in the file.
pub fn sort_by_time<T>(messages: &mut Vec<T>, said: impl Fn(&T) -> (Role, Option<i64>)) -> bool {
    if !contradicts(messages.iter().map(|message| said(message).1)) {
        return false;
    }
    let mut place = (i64::MIN, false);
    let placed = |message: T| {
        if let (role, Some(time)) = said(&message) {
            place = (time, matches!(role, Role::Assistant | Role::Tool));
        }
        (place, message)
    };
    let mut placed: Vec<_> = messages.drain(..).map(placed).collect();
    // Stable: the order of the file decides the rest, and who has no time stands where the one before it does.
    placed.sort_by_key(|(place, _)| *place);
    messages.extend(placed.into_iter().map(|(_, message)| message));
    true
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, option, prelude::*, sample::select};

    use super::*;

    type Said = (usize, Role, Option<i64>);

    fn messages() -> impl Strategy<Value = Vec<Said>> {
        let role = select(vec![Role::User, Role::Assistant, Role::System, Role::Tool]);
        vec((role, option::weighted(0.8, 0..6_i64)), 0..12).prop_map(|drawn| {
            drawn.into_iter().enumerate().map(|(at, (role, time))| (at, role, time)).collect()
        })
    }

    fn sorted(mut messages: Vec<Said>) -> (Vec<Said>, bool) {
        let changed = sort_by_time(&mut messages, |(_, role, time)| (*role, *time));
        (messages, changed)
    }

    fn answers(role: Role) -> bool {
        matches!(role, Role::Assistant | Role::Tool)
    }

    proptest! {
        #[test]
        fn what_stands_by_time_stays(messages in messages()) {
            let times: Vec<i64> = messages.iter().filter_map(|message| message.2).collect();
            let (after, changed) = sorted(messages.clone());
            prop_assert_eq!(changed, !times.is_sorted());
            prop_assert_eq!(changed, contradicts(messages.iter().map(|message| message.2)));
            if !changed {
                prop_assert_eq!(after, messages);
            }
        }

        #[test]
        fn all_messages_come_out_by_time(messages in messages()) {
            let (after, _) = sorted(messages.clone());
            let dated: Vec<_> = after.iter().filter_map(|message| message.2).collect();
            prop_assert!(dated.is_sorted());
            let mut places: Vec<_> = after.iter().map(|message| message.0).collect();
            places.sort_unstable();
            prop_assert!(places.into_iter().eq(0..messages.len()));
            // Once more changes nothing.
            prop_assert_eq!(sorted(after.clone()), (after, false));
        }

        #[test]
        fn of_one_time_the_person_is_first_and_then_the_file(messages in messages()) {
            let (after, changed) = sorted(messages);
            let dated: Vec<Said> = after.into_iter().filter(|message| message.2.is_some()).collect();
            for pair in dated.windows(2).filter(|pair| changed && pair[0].2 == pair[1].2) {
                let key = |said: &Said| (answers(said.1), said.0);
                prop_assert!(key(&pair[0]) < key(&pair[1]), "{pair:?}");
            }
        }

        #[test]
        fn what_has_no_time_follows_whom_it_followed(messages in messages()) {
            let (after, _) = sorted(messages);
            for (at, (place, _, time)) in after.iter().enumerate().filter(|(_, said)| said.2.is_none()) {
                let before = at.checked_sub(1).map(|at| after[at].0 + 1);
                prop_assert_eq!(before.unwrap_or_default(), *place, "{:?}", time);
            }
        }
    }

    #[test]
    fn newest_first_is_turned_round() {
        let messages = [
            (0, Role::Assistant, Some(4)),
            (1, Role::User, Some(3)),
            (2, Role::Assistant, Some(1)),
            (3, Role::User, Some(1)),
        ];
        let (after, changed) = sorted(messages.into());
        assert!(changed);
        assert_eq!(after.iter().map(|said| said.0).collect::<Vec<_>>(), [3, 2, 1, 0]);
    }

    #[test]
    fn equal_times_contradict_nothing() {
        let answer_first =
            vec![(0, Role::Assistant, Some(1)), (1, Role::User, Some(1)), (2, Role::User, None)];
        assert_eq!(sorted(answer_first.clone()), (answer_first, false));
        assert!(!sorted(Vec::new()).1);
    }
}
