//! Reads histories in two passes: first the senders and the order, then the messages one by one.

use satchel_importer::{
    Bundle, Element, ErrorKind, ImportError, Importer as _, JsonArray, JsonLists, Parser, RecordKind, Sink,
    Summary, order::SORTED, pam::unread,
};

use crate::{
    Dti, detect,
    map::{self, Details},
    order::{MAX_MESSAGES, Order},
    raw,
    senders::Senders,
};

/// The small members of the root object, in the order in which [`report_members`] numbers them.
const LISTS: [(&str, RecordKind); 2] = [("details", RecordKind::File), ("identifiers", RecordKind::File)];
/// The member with the messages.
const MESSAGES: &str = "messages";

const MORE_PAGES: &str =
    "the history goes on in another file, at the address in raw_metadata.details.nextPage";

/// Reads the histories among the files, which detection claimed for `format`.
pub(crate) fn run(format: &str, bundle: &Bundle, sink: &mut Sink) -> Result<Summary, ImportError> {
    let version = Dti::describe().version_of(format)?;
    let mut read = false;
    for entry in bundle.entries() {
        if detect::is_history(bundle, &entry.path)? {
            history(bundle, &entry.path, version, sink)?;
            read = true;
        }
    }
    if read {
        Ok(bundle.summary())
    } else {
        Err(ImportError::not_this_format("none of the files is a conversation history"))
    }
}

fn history(bundle: &Bundle, path: &str, version: &'static str, sink: &mut Sink) -> Result<(), ImportError> {
    let details = read_details(bundle, path)?;
    let senders = Senders::read(bundle, path)?;
    let order = Order::read(bundle, path, &details, &senders)?;
    if order.list.is_empty() {
        sink.skip(RecordKind::Conversation, path, "the history has no messages")?;
    } else {
        sink.conversation(&map::conversation(&details, &senders, &order, version, path), &[])?;
    }
    let history = History { senders: &senders, order: &order };
    // The first pass walks in the same way, so both find the same messages, even in a damaged file.
    let messages = JsonArray::new(path).pointer("/messages").kind(RecordKind::Message);
    absent_is_empty(
        messages
            .each(bundle, sink, |element, sink| {
                let place = || format!("{path}.{MESSAGES}[{}]", element.index());
                history.message(&element, sink).map_err(|error| error.at(place()))
            })
            .map(|_| ()),
    )?;
    report_members(bundle, path, sink)?;
    history.warn(path, sink);
    Ok(())
}

/// A member that is absent is the same as an empty one.
pub(crate) fn absent_is_empty(read: Result<(), ImportError>) -> Result<(), ImportError> {
    match read {
        Err(error) if error.kind == ErrorKind::NotThisFormat => Ok(()),
        read => read,
    }
}

/// Reports errors in the members other than the messages, and unknown members.
fn report_members(bundle: &Bundle, path: &str, sink: &mut Sink) -> Result<(), ImportError> {
    let walked = JsonLists::new(path, &LISTS).each(bundle, sink, |list, element, sink| match list {
        0 => report_details(&element, sink),
        _ => report_identifier(&element, sink),
    })?;
    let (messages, others): (Vec<_>, Vec<_>) = walked.others.iter().partition(|name| *name == MESSAGES);
    if messages.len() > 1 {
        sink.warn(path, "there are several members with messages; the first one is read");
    }
    for name in others {
        sink.warn(&format!("{path}.{name}"), "no member of this name is known; it is not imported");
    }
    walked.warn_of_more_others(path, sink);
    Ok(())
}

/// The details of a file; the second pass reports errors in them.
fn read_details(bundle: &Bundle, path: &str) -> Result<Details, ImportError> {
    let mut details = Details::default();
    let read = JsonArray::new(path).pointer("/details").survey(bundle, |element| {
        if let Ok(Some(raw)) = raw::Details::read(&mut Parser::new(element.text(), element.arena())) {
            details = Details::of(raw);
        }
        Ok(true)
    });
    absent_is_empty(read)?;
    Ok(details)
}

/// The second pass over a file.
struct History<'h> {
    senders: &'h Senders,
    order: &'h Order,
}

impl History<'_> {
    fn message(&self, element: &Element<'_>, sink: &mut Sink) -> Result<(), ImportError> {
        let raw = raw::Message::read(&mut element.parser())?.map_err(ImportError::malformed)?;
        let Some(at) = self.order.position(element.index()) else {
            let reason = format!("the history has more than {MAX_MESSAGES} messages");
            return Err(ImportError::malformed(reason));
        };
        let Some(ordered) = self.order.list.get(at) else { return Ok(()) };
        let parent = at.checked_sub(1).and_then(|before| self.order.list.get(before));
        let has_ai = self.order.has_ai;
        sink.more_messages(&[map::message(raw, ordered, parent, self.senders, has_ai, element.arena())])
    }

    fn warn(&self, path: &str, sink: &mut Sink) {
        if self.order.sorted {
            sink.warn(path, SORTED);
        }
        if self.order.undated > 0 {
            sink.warn(path, &map::undated(self.order.undated));
        }
        for (sender, count) in &self.order.uncertain {
            let (role, _) = self.senders.role(*sender, self.order.has_ai);
            sink.warn(path, &map::uncertain(*sender, role, *count));
        }
        if self.senders.beyond_limit > 0 {
            let message =
                format!("{} identifiers are more than fit; they are not read", self.senders.beyond_limit);
            sink.warn(&format!("{path}.identifiers"), &message);
        }
    }
}

fn report_details(element: &Element<'_>, sink: &mut Sink) -> Result<(), ImportError> {
    let details = raw::Details::read(&mut element.parser())?
        .ok_or_else(|| ImportError::malformed("it is not an object"))?;
    if details.more_pages {
        sink.warn(&element.locator(), MORE_PAGES);
    }
    if let Some(field) = details.rest.unread() {
        sink.warn(&element.locator(), &unread::in_field(field));
    }
    Ok(())
}

fn report_identifier(element: &Element<'_>, sink: &mut Sink) -> Result<(), ImportError> {
    let item = raw::Identifier::read(&mut element.parser())?.map_err(ImportError::malformed)?;
    if let Some(field) = item.rest.unread() {
        sink.warn(&element.locator(), &unread::in_field(field));
    }
    Ok(())
}
