//! Reads the messages of a session one at a time: first all of them without their parts, for their order, then each with its parts.

use std::{borrow::Cow, collections::BTreeSet};

use satchel_importer::{
    Arena, ErrorKind, ImportError, RecordKind, Role, Sink, unless_malformed, warnings::shortened,
};

use crate::{
    message::{Info, PartText, Record},
    order::{self, Entry, PieceIds},
    reading::{self, Reports},
    session::Facts,
};

/// Prompts that are searched for a title.
const MAX_PROMPTS: usize = 8;
/// Bytes of the parts of such a prompt.
const MAX_TITLE_BYTES: usize = 4 * 1024 * 1024;
/// Parts of one message that are stored apart from it; as many as a list inside of a message may have.
pub(crate) const MAX_PARTS: usize = 50_000;

/// A message and its parts.
pub(crate) type WholeMessage<'a> = (Info<'a>, Vec<PartText<'a>>);

/// The messages of a session in their order, and what they say about it.
pub(crate) type Survey<Key> = (Vec<Entry<Key>>, Facts);

/// Where the messages of a session are kept: in files, or in rows of a database.
pub(crate) trait MessageStore {
    /// What a message is found by.
    type Key: Copy + Ord;

    /// Where the message is, for reports.
    fn locator(&self, key: Self::Key) -> Cow<'_, str>;

    /// The id of a message that states none.
    fn fallback_id(&self, key: Self::Key) -> Cow<'_, str>;

    /// The place of the message among those of the same moment.
    fn rank(&self, key: Self::Key) -> Option<i64>;

    /// The message without its parts; none if it cannot be read, which is not reported.
    fn peek<'a>(&self, key: Self::Key, arena: &'a Arena) -> Result<Option<Info<'a>>, ImportError>;

    /// The first parts of the message that have at most `limit` bytes together. What cannot be read is not reported.
    fn peek_parts<'a>(
        &self,
        key: Self::Key,
        info: &mut Info<'a>,
        limit: usize,
    ) -> Result<Vec<PartText<'a>>, ImportError>;

    /// The message with its parts. What cannot be read is reported.
    fn read<'a>(
        &self,
        key: Self::Key,
        arena: &'a Arena,
        sink: &mut Sink,
    ) -> Result<Option<WholeMessage<'a>>, ImportError>;
}

/// Reads all messages without their parts: their order, and what they say about the session.
pub(crate) fn survey<S: MessageStore>(
    store: &S,
    keys: impl IntoIterator<Item = S::Key>,
    without_title: bool,
) -> Result<Survey<S::Key>, ImportError> {
    let (mut entries, mut facts) = (Vec::new(), Facts::default());
    let mut prompts = BTreeSet::new();
    let mut arena = Arena::new();
    for key in keys {
        let info = store.peek(key, &arena)?;
        let own = info.as_ref().and_then(|info| info.id);
        let id = own.map_or_else(|| store.fallback_id(key), Cow::Borrowed).into_owned();
        if let Some(info) = &info {
            facts.add(info, &id);
            prompts.extend((info.role == Role::User).then_some(key));
        }
        let created = info.as_ref().and_then(|info| info.created);
        entries.push(Entry { id, rank: store.rank(key), created, source: key });
        arena.reset();
    }
    order::sort(&mut entries);
    let first = entries.iter().filter(|entry| without_title && prompts.contains(&entry.source));
    for entry in first.take(MAX_PROMPTS) {
        if facts.title.is_none() {
            add_title(store, entry, &mut facts)?;
        }
    }
    Ok((entries, facts))
}

/// Adds the first text of the person.
fn add_title<S: MessageStore>(
    store: &S,
    entry: &Entry<S::Key>,
    facts: &mut Facts,
) -> Result<(), ImportError> {
    let arena = Arena::new();
    let Some(mut info) = store.peek(entry.source, &arena)? else { return Ok(()) };
    let parts = store.peek_parts(entry.source, &mut info, MAX_TITLE_BYTES)?;
    let id = arena.alloc_str(&entry.id);
    let Some(record) = unless_malformed(Record::read(info, id, &parts, None, false))? else {
        return Ok(());
    };
    for piece in record.pieces.iter().filter(|piece| piece.message.role == Role::User) {
        piece.texts.iter().for_each(|text| facts.add_prompt(text, (entry.created, entry.id.clone())));
    }
    Ok(())
}

/// Emits the messages in their order, each of which follows the one before it.
pub(crate) fn emit<S: MessageStore>(
    store: &S,
    entries: &[Entry<S::Key>],
    facts: &Facts,
    sink: &mut Sink,
) -> Result<(), ImportError> {
    let mut emitted = Emitted::default();
    let mut arena = Arena::new();
    for entry in entries {
        match emitted.add(store, entry, facts, &arena, sink) {
            Err(error) if error.kind == ErrorKind::Malformed => {
                sink.skip(RecordKind::Message, &store.locator(entry.source), &error.message)?;
            }
            result => result?,
        }
        arena.reset();
    }
    Ok(())
}

/// What was emitted of a session so far.
#[derive(Default)]
struct Emitted {
    ids: PieceIds,
    reports: Reports,
    /// The id of the last piece.
    last: Option<String>,
}

impl Emitted {
    fn add<S: MessageStore>(
        &mut self,
        store: &S,
        entry: &Entry<S::Key>,
        facts: &Facts,
        arena: &Arena,
        sink: &mut Sink,
    ) -> Result<(), ImportError> {
        let Some((info, parts)) = store.read(entry.source, arena, sink)? else { return Ok(()) };
        let role = info.unknown_role;
        let mut record =
            Record::read(info, arena.alloc_str(&entry.id), &parts, facts.system.as_deref(), true)?;
        let locator = store.locator(entry.source);
        for id in self.ids.claim(&mut record) {
            let place = format!("{locator}#{}", shortened(&id));
            sink.skip(RecordKind::Message, &place, self.ids.reason())?;
        }
        self.reports.add(&record, role, &locator, sink)?;
        self.last = reading::emit(record.pieces, self.last.as_deref(), sink)?.or(self.last.take());
        Ok(())
    }
}
