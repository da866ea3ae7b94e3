//! Reads exports: the chat with My AI in two passes, its memory, and the number of the other chats.

use satchel_importer::{
    AccountRecord, Bundle, Element, ImportError, Importer as _, JsonArray, JsonLists, RecordKind, Sink,
    Summary, order::SORTED,
};

use crate::{
    Snapchat, chats,
    detect::{self, Export, MEMORY},
    map::{self, Photos},
    memory::Memories,
    order::{AI, MAX_ENTRIES, Order},
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
    for path in &export.own {
        let list = JsonArray::new(path).pointer("/My AI Content").kind(RecordKind::Message);
        let read = reader.list(&list, CONVERSATION, &format!("{path}.{}", detect::CONTENT), sink)?;
        let remembered = reader.memory(path, sink)?;
        if !read && !remembered {
            sink.skip(RecordKind::Conversation, path, "it has neither messages nor memories")?;
        }
    }
    if let Some(path) = &export.chats {
        reader.chats(path, sink)?;
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
        list: &JsonArray<'_>,
        id: &'static str,
        locator: &str,
        sink: &mut Sink,
    ) -> Result<bool, ImportError> {
        let order = Order::read(self.bundle, list)?;
        if !order.list.is_empty() {
            sink.conversation(&map::conversation(id, self.account, &order, self.version, locator), &[])?;
        }
        let photos = &mut self.photos;
        let walked = list.each(self.bundle, sink, |element, sink| {
            let place = || format!("{locator}[{}]", element.index());
            entry(&element, &order, photos, sink).map_err(|error| error.at(place()))
        });
        detect::ignore_other_formats(walked.map(|_| ()))?;
        warn(&order, locator, sink);
        Ok(!order.list.is_empty())
    }

    /// Reads the memory; whether there is any.
    fn memory(&self, path: &str, sink: &mut Sink) -> Result<bool, ImportError> {
        let mut memories = Memories::default();
        let lists = [(MEMORY, RecordKind::Memory)];
        let walked = JsonLists::new(path, &lists)
            .each(self.bundle, sink, |_, element, sink| memories.add(&element, sink))?;
        for name in walked.others.iter().filter(|name| *name != detect::CONTENT) {
            sink.warn(&format!("{path}.{name}"), "no member of this name is known; it is not imported");
        }
        let locator = format!("{path}.{MEMORY}");
        memories.emit(self.account, &locator, sink)?;
        Ok(walked.elements.iter().sum::<u64>() > 0)
    }

    fn chats(&mut self, path: &str, sink: &mut Sink) -> Result<(), ImportError> {
        for name in AI {
            let pointer = format!("/{name}");
            let list = JsonArray::new(path).pointer(&pointer).kind(RecordKind::Message);
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
    element: &Element<'_>,
    order: &Order,
    photos: &mut Photos<'_>,
    sink: &mut Sink,
) -> Result<(), ImportError> {
    let raw = Entry::read(&mut element.parser())?.map_err(ImportError::malformed)?;
    let Some(at) = order.place(element.index()) else {
        return Err(ImportError::malformed(format!("the list has more than {MAX_ENTRIES} entries")));
    };
    let Some(place) = order.list.get(at) else { return Ok(()) };
    let parent = at.checked_sub(1).and_then(|before| order.list.get(before));
    sink.more_messages(&[map::message(raw, place, parent, photos, element.arena())])
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
    if order.undated > 0 {
        let message = format!(
            "there is no time for {}, read as My AI's unless a sender is named",
            entries(order.undated)
        );
        sink.warn(locator, &message);
    }
    for (kind, count) in &order.unknown {
        let named = if kind.is_empty() { "no type".to_owned() } else { format!("the unknown type {kind:?}") };
        sink.warn(locator, &format!("there is {named} for {}; the content is kept", entries(*count)));
    }
}

fn entries(count: u64) -> String {
    if count == 1 { "1 entry".to_owned() } else { format!("{count} entries") }
}
