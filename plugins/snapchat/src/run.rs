//! Reads exports: the chat with My AI in two passes, its memory, and the number of the other chats.

use satchel_importer::{
    AccountRecord, Arena, Bundle, ErrorKind, ImportError, Importer as _, JsonArray, JsonLists, Parser,
    RecordKind, Sink, Summary, order::SORTED, warnings::shortened,
};

use crate::{
    Snapchat, chats,
    detect::{self, Export, MEMORY},
    list::List,
    map::{self, Photos},
    memory::Memories,
    order::{AI, MAX_ENTRIES, Order},
    page,
    raw::Entry,
};

/// The key of the conversation. An account has one.
const CONVERSATION: &str = "my-ai";
/// The key of the one among the chats with people.
const AMONG_CHATS: &str = "my-ai:chat-history";

/// Reads all that detection claimed for `format`.
pub(crate) fn run(format: &str, bundle: &Bundle, sink: &mut Sink) -> Result<Summary, ImportError> {
    let version = Snapchat::describe().version_of(format)?;
    let exports = detect::exports(bundle)?;
    if exports.is_empty() {
        return Err(ImportError::not_this_format("none of the files is about My AI of Snapchat"));
    }
    for export in &exports {
        read(export, version, bundle, sink)?;
    }
    Ok(bundle.summary())
}

fn read(export: &Export, version: &'static str, bundle: &Bundle, sink: &mut Sink) -> Result<(), ImportError> {
    if let (Some(id), Some(path)) = (&export.account, &export.account_file) {
        sink.account(&AccountRecord { id: id.clone(), name: None, locator: path.clone() })?;
    }
    let account = export.account.as_deref();
    let mut reader = Reader { bundle, account, version, photos: Photos::new(&export.photos) };
    if let Some(path) = &export.page {
        reader.page(path, sink)?;
    }
    for path in &export.own {
        let list = List::Json(JsonArray::new(path).pointer("/My AI Content"));
        let read = reader.list(&list, CONVERSATION, &format!("{path}.{}", detect::CONTENT), sink)?;
        let remembered = reader.memory(path, sink)?;
        if !read && !remembered {
            sink.skip(RecordKind::Conversation, path, "it has neither messages nor memories")?;
        }
    }
    if let Some(path) = &export.chats {
        reader.chats(path, sink)?;
    }
    if let Some((count, first)) = reader.photos.missing() {
        let locator = export.own.first().or(export.page.as_ref()).or(export.chats.as_ref());
        let message = format!("files that entries name are not in the export: {count}, such as {first:?}");
        sink.warn(locator.map_or("", String::as_str), &message);
    }
    for path in reader.photos.unused(&export.photos) {
        sink.skip(RecordKind::File, path, "no message names this file")?;
    }
    Ok(())
}

/// Reads the lists of one export.
struct Reader<'r> {
    bundle: &'r Bundle,
    account: Option<&'r str>,
    version: &'static str,
    photos: Photos<'r>,
}

impl Reader<'_> {
    /// Reads one list of entries; whether it has any.
    fn list(
        &mut self,
        list: &List<'_>,
        id: &'static str,
        locator: &str,
        sink: &mut Sink,
    ) -> Result<bool, ImportError> {
        let order = Order::read(self.bundle, list)?;
        if !order.list.is_empty() {
            sink.conversation(&map::conversation(id, self.account, &order, self.version, locator), &[])?;
        }
        let photos = &mut self.photos;
        let read = list
            .each(self.bundle, locator, sink, |index, json, sink| entry(index, json, &order, photos, sink));
        match read {
            // Without the list there is nothing to read.
            Err(error) if error.kind == ErrorKind::NotThisFormat => {}
            read => read?,
        }
        warn(&order, locator, sink);
        Ok(!order.list.is_empty())
    }

    /// Reads the memory; whether there is any.
    fn memory(&self, path: &str, sink: &mut Sink) -> Result<bool, ImportError> {
        let mut memories = Memories::default();
        let lists = [(MEMORY, RecordKind::Memory)];
        let walked = JsonLists::new(path, &lists).each(self.bundle, sink, |_, element, sink| {
            memories.add(&mut element.parser(), &element.locator(), sink)
        })?;
        for name in walked.others.iter().filter(|name| *name != detect::CONTENT) {
            let place = format!("{path}.{}", shortened(name));
            sink.warn(&place, "no member of this name is known; it is not imported");
        }
        walked.warn_of_more_others(path, sink);
        let locator = format!("{path}.{MEMORY}");
        memories.emit(self.account, &locator, sink)?;
        Ok(walked.elements.iter().sum::<u64>() > 0)
    }

    /// Reads the lists of a page.
    fn page(&mut self, path: &str, sink: &mut Sink) -> Result<(), ImportError> {
        let page = match page::read(self.bundle, path) {
            Err(error) if error.kind == ErrorKind::Limit => {
                return sink.skip(RecordKind::File, path, "the page is longer than fits; ask for JSON files");
            }
            read => read?,
        };
        if page.cut {
            sink.skip(RecordKind::File, path, "the page ends inside a table")?;
        }
        for heading in &page.others {
            sink.warn(path, &format!("the section {heading:?} is not known; it is not imported"));
        }
        if page.more_others > 0 {
            let count = page.more_others;
            sink.warn(path, &format!("{count} more sections are not known either; they are not imported"));
        }
        if page.beyond_limit > 0 {
            let reason = format!("{} rows are more than fit", page.beyond_limit);
            sink.skip(RecordKind::Message, path, &reason)?;
        }
        let locator = format!("{path}.{}", detect::CONTENT);
        let read = self.list(&List::Rows(&page.entries), CONVERSATION, &locator, sink)?;
        let (mut memories, arena) = (Memories::default(), Arena::new());
        let locator = format!("{path}.{MEMORY}");
        for (at, row) in page.memories.iter().enumerate() {
            let place = format!("{locator}[{at}]");
            match memories.add(&mut Parser::new(row, &arena), &place, sink) {
                Err(error) if error.kind == ErrorKind::Malformed => {
                    sink.skip(RecordKind::Memory, &place, &error.message)?;
                }
                read => read?,
            }
        }
        memories.emit(self.account, &locator, sink)?;
        if !read && page.memories.is_empty() {
            sink.skip(RecordKind::Conversation, path, "it has neither messages nor memories")?;
        }
        Ok(())
    }

    fn chats(&mut self, path: &str, sink: &mut Sink) -> Result<(), ImportError> {
        for name in AI {
            let pointer = format!("/{name}");
            let list = List::Json(JsonArray::new(path).pointer(&pointer));
            self.list(&list, AMONG_CHATS, &format!("{path}.{name}"), sink)?;
        }
        let others = chats::count_others(self.bundle, path)?;
        if others > 0 {
            let conversations =
                if others == 1 { "1 conversation".to_owned() } else { format!("{others} conversations") };
            sink.warn(path, &format!("{conversations} left out: not with an AI"));
        }
        Ok(())
    }
}

fn entry(
    index: u64,
    json: &mut Parser<'_>,
    order: &Order,
    photos: &mut Photos<'_>,
    sink: &mut Sink,
) -> Result<(), ImportError> {
    let raw = Entry::read(json)?.map_err(ImportError::malformed)?;
    let Some(at) = order.place(index) else {
        return Err(ImportError::malformed(format!("the list has more than {MAX_ENTRIES} entries")));
    };
    let Some(place) = order.list.get(at) else { return Ok(()) };
    let parent = at.checked_sub(1).and_then(|before| order.list.get(before));
    sink.more_messages(&[map::message(raw, place, parent, photos, json.arena())])
}

/// Reports what holds for the whole list.
fn warn(order: &Order, locator: &str, sink: &mut Sink) {
    if order.sorted {
        sink.warn(locator, SORTED);
    }
    if order.inferred > 0 {
        let message = format!(
            "the export does not say who wrote {}; the times tell the person from My AI, which can be wrong",
            entries(order.inferred)
        );
        sink.warn(locator, &message);
    }
    if order.assumed > 0 {
        let message = format!("it is unclear who wrote {}, read as My AI's", entries(order.assumed));
        sink.warn(locator, &message);
    }
    if order.undated > 0 {
        let message = format!(
            "there is no time for {}, read as My AI's unless a sender is named",
            entries(order.undated)
        );
        sink.warn(locator, &message);
    }
    if order.more_unknown > 0 {
        let count = entries(order.more_unknown);
        sink.warn(locator, &format!("further unknown types, which are not listed, are those of {count}"));
    }
    for (kind, count) in &order.unknown {
        let named = if kind.is_empty() { "no type".to_owned() } else { format!("the unknown type {kind:?}") };
        sink.warn(locator, &format!("there is {named} for {}; the content is kept", entries(*count)));
    }
}

fn entries(count: u64) -> String {
    if count == 1 { "1 entry".to_owned() } else { format!("{count} entries") }
}
