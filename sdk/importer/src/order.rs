//! The order of messages without parents, each of which answers the one before.
//!
//! Exports list such messages oldest first, newest first, or in no order. If the times are more reliable than the file, use
//! [`sort_by_time`]; otherwise keep the order of the file and use [`contradicts`]. If the two disagree, emit one warning for each
//! conversation: [`SORTED`] or [`KEPT`]. The importer's README should say which order it uses.

use crate::Role;

/// The warning if messages were sorted by time.
pub const SORTED: &str =
    "the file lists its messages in another order than their times; they are read in the order of time";
/// The warning if the order of the file was kept although times contradict it.
pub const KEPT: &str =
    "the file lists its messages in another order than their times; they are read in the order of the file";

/// Whether a time is earlier than one before it. Messages without a time are ignored.
pub fn contradicts(times: impl IntoIterator<Item = Option<i64>>) -> bool {
    let mut latest = i64::MIN;
    times.into_iter().flatten().any(|time| {
        let earlier = time < latest;
        latest = latest.max(time);
        earlier
    })
}

/// Sorts messages by time if their times contradict the order of the file; returns whether they do.
///
/// `key` gives the role and the time of a message, in microseconds. At the same time, messages of the person and instructions come
/// before those of the assistant and of tools; otherwise the order of the file counts. If all messages have times and none is later than
/// the one before it, the file lists the newest first, and so also messages of one time. In any other file, a message without a time stays
/// behind its predecessor.
pub fn sort_by_time<T>(messages: &mut Vec<T>, key: impl Fn(&T) -> (Role, Option<i64>)) -> bool {
    if !contradicts(messages.iter().map(|message| key(message).1)) {
        return false;
    }
    if newest_first(messages.iter().map(|message| key(message).1)) {
        messages.reverse();
    }
    let mut place = (i64::MIN, false);
    let placed = |message: T| {
        if let (role, Some(time)) = key(&message) {
            place = (time, matches!(role, Role::Assistant | Role::Tool));
        }
        (place, message)
    };
    let mut placed: Vec<_> = messages.drain(..).map(placed).collect();
    // The sort is stable, so the order of the file decides the rest.
    placed.sort_by_key(|(place, _)| *place);
    messages.extend(placed.into_iter().map(|(_, message)| message));
    true
}

/// Whether every message has a time and none is later than the one before it.
fn newest_first(times: impl IntoIterator<Item = Option<i64>>) -> bool {
    let mut earliest = i64::MAX;
    times.into_iter().all(|time| {
        let descends = time.is_some_and(|time| time <= earliest);
        earliest = time.unwrap_or(earliest);
        descends
    })
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, option, prelude::*, sample::select};

    use super::*;

    type Message = (usize, Role, Option<i64>);

    fn messages() -> impl Strategy<Value = Vec<Message>> {
        let role = select(vec![Role::User, Role::Assistant, Role::System, Role::Tool]);
        vec((role, option::weighted(0.8, 0..6_i64)), 0..12).prop_map(|drawn| {
            drawn.into_iter().enumerate().map(|(at, (role, time))| (at, role, time)).collect()
        })
    }

    fn sorted(mut messages: Vec<Message>) -> (Vec<Message>, bool) {
        let changed = sort_by_time(&mut messages, |(_, role, time)| (*role, *time));
        (messages, changed)
    }

    fn answers(role: Role) -> bool {
        matches!(role, Role::Assistant | Role::Tool)
    }

    proptest! {
        #[test]
        fn messages_in_order_of_time_are_not_moved(messages in messages()) {
            let times: Vec<i64> = messages.iter().filter_map(|message| message.2).collect();
            let (after, changed) = sorted(messages.clone());
            prop_assert_eq!(changed, !times.is_sorted());
            prop_assert_eq!(changed, contradicts(messages.iter().map(|message| message.2)));
            if !changed {
                prop_assert_eq!(after, messages);
            }
        }

        #[test]
        fn all_messages_are_sorted_by_time(messages in messages()) {
            let (after, _) = sorted(messages.clone());
            let dated: Vec<_> = after.iter().filter_map(|message| message.2).collect();
            prop_assert!(dated.is_sorted());
            let mut places: Vec<_> = after.iter().map(|message| message.0).collect();
            places.sort_unstable();
            prop_assert!(places.into_iter().eq(0..messages.len()));
            // Sorting again changes nothing.
            prop_assert_eq!(sorted(after.clone()), (after, false));
        }

        #[test]
        fn at_the_same_time_the_person_comes_first_and_then_the_file_counts(messages in messages()) {
            let reversed = newest_first(messages.iter().map(|message| message.2));
            let (after, changed) = sorted(messages);
            let dated: Vec<Message> = after.into_iter().filter(|message| message.2.is_some()).collect();
            for pair in dated.windows(2).filter(|pair| changed && pair[0].2 == pair[1].2) {
                let place = |message: &Message| if reversed { usize::MAX - message.0 } else { message.0 };
                let key = |message: &Message| (answers(message.1), place(message));
                prop_assert!(key(&pair[0]) < key(&pair[1]), "{pair:?}");
            }
        }

        #[test]
        fn a_message_without_a_time_follows_its_predecessor(messages in messages()) {
            let (after, _) = sorted(messages);
            for (at, (place, _, time)) in after.iter().enumerate().filter(|(_, message)| message.2.is_none()) {
                let before = at.checked_sub(1).map(|at| after[at].0 + 1);
                prop_assert_eq!(before.unwrap_or_default(), *place, "{:?}", time);
            }
        }
    }

    #[test]
    fn newest_first_is_reversed() {
        let messages = [
            (0, Role::Assistant, Some(4)),
            (1, Role::User, Some(3)),
            (2, Role::Assistant, Some(1)),
            (3, Role::User, Some(1)),
        ];
        let (after, changed) = sorted(messages.into());
        assert!(changed);
        assert_eq!(after.iter().map(|message| message.0).collect::<Vec<_>>(), [3, 2, 1, 0]);
    }

    #[test]
    fn messages_of_one_second_are_reversed_in_a_file_with_the_newest_first() {
        let places = |times: &[Option<i64>]| {
            let messages = times.iter().enumerate().map(|(at, time)| (at, Role::User, *time));
            sorted(messages.collect()).0.iter().map(|message| message.0).collect::<Vec<_>>()
        };
        assert_eq!(places(&[Some(5), Some(5), Some(1), Some(1)]), [3, 2, 1, 0]);
        // Neither a file in no order nor one with messages without times says so.
        assert_eq!(places(&[Some(5), Some(5), Some(1), Some(2)]), [2, 3, 0, 1]);
        assert_eq!(places(&[Some(5), Some(5), None, Some(1)]), [3, 0, 1, 2]);
    }

    #[test]
    fn equal_times_contradict_nothing() {
        let answer_first =
            vec![(0, Role::Assistant, Some(1)), (1, Role::User, Some(1)), (2, Role::User, None)];
        assert_eq!(sorted(answer_first.clone()), (answer_first, false));
        assert!(!sorted(Vec::new()).1);
    }
}
