//! Arranges the messages of a history by time, oldest first.

use satchel_importer::order::contradicts;

use crate::{map::Details, order::OrderedMessage};

/// Removes the time of the export from messages that have it instead of their own; returns their number.
///
/// Exporters write it for messages whose time they do not know, and as the end of the history. It would put old messages last and
/// change with each export. Only the last messages can really have it.
pub(crate) fn clear_export_times(list: &mut [OrderedMessage], details: &Details) -> usize {
    let exported = |time: &i64| details.end == Some(*time) && details.start != Some(*time);
    let Some(exported) = details.created.filter(exported) else { return 0 };
    let other = |message: &OrderedMessage| message.time.filter(|time| *time != exported);
    if newest_first(list.iter().filter_map(other)) {
        return 0;
    }
    let last = list.iter().rposition(|message| other(message).is_some());
    let before = last.unwrap_or(if list.len() > 1 { list.len() } else { 0 });
    let mut cleared = 0;
    for message in list.iter_mut().take(before).filter(|message| message.time == Some(exported)) {
        message.time = None;
        cleared += 1;
    }
    cleared
}

/// Sorts the messages if their times contradict the order of the file; returns whether they do.
///
/// At the same time, messages of the person (`of_person`) come first. For the rest, the order of the file counts, or its reverse if the
/// file is newest first. A message without a time stays behind its predecessor.
pub(crate) fn arrange(list: &mut Vec<OrderedMessage>, of_person: impl Fn(&OrderedMessage) -> bool) -> bool {
    if !contradicts(list.iter().map(|message| message.time)) {
        return false;
    }
    if newest_first(list.iter().filter_map(|message| message.time)) {
        list.reverse();
    }
    let mut key = (i64::MIN, false);
    let keyed = |message: OrderedMessage| {
        if let Some(time) = message.time {
            key = (time, !of_person(&message));
        }
        (key, message)
    };
    let mut keyed: Vec<_> = list.drain(..).map(keyed).collect();
    keyed.sort_by_key(|(key, _)| *key);
    list.extend(keyed.into_iter().map(|(_, message)| message));
    true
}

/// Whether no time is later than the one before, and some are earlier.
fn newest_first(times: impl Iterator<Item = i64>) -> bool {
    let (mut before, mut earlier) = (None, false);
    for time in times {
        match before {
            Some(before) if time > before => return false,
            Some(before) => earlier |= time < before,
            None => {}
        }
        before = Some(time);
    }
    earlier
}
