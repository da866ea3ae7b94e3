//! The second walk: conversation by conversation, its rows are read again and emitted.

use std::borrow::Cow;

use satchel_importer::{
    Arena, Bundle, Content, Conversation, ImportError, Message, Parser, RecordKind, Sink, natural_key,
};

use super::{
    cards,
    group::{self, Group},
    index::{Entry, Index, Shape},
    key,
    messages::{Setting, messages},
    page::Cards,
    row::{Depth, Row},
    shelf::Shelf,
};
use crate::{files, html};

/// Bytes of rows that are in memory at once; a conversation of more is handed over in parts.
const BATCH: usize = 2 * 1024 * 1024;
/// The longest title that is made of a prompt, in characters.
const LONGEST_TITLE: usize = 80;
const NO_CONVERSATION: &str = "it tells of an event outside of any conversation";

/// Emits all conversations of the index; `versions` are those of lists and of pages.
pub(crate) fn emit(
    index: &Index,
    versions: (&'static str, &'static str),
    bundle: &Bundle,
    sink: &mut Sink,
) -> Result<(), ImportError> {
    let (groups, alone) = group::groups(index);
    let folders = index.paths.iter().map(|path| files::folders(bundle, path)).collect();
    let (shelf, cards) = (Shelf::new(bundle, &index.paths), Cards::new(Depth::Read));
    let mut run = Run { index, versions, bundle, folders, shelf, cards };
    for group in &groups {
        run.group(group, sink)?;
    }
    for row in alone.into_iter().filter_map(|at| index.rows.get(at)) {
        sink.skip(RecordKind::Message, &run.locator(row), NO_CONVERSATION)?;
    }
    Ok(())
}

struct Run<'r> {
    index: &'r Index,
    versions: (&'static str, &'static str),
    bundle: &'r Bundle,
    /// Where attachments may stand, for each file.
    folders: Vec<Vec<String>>,
    shelf: Shelf<'r>,
    cards: Cards,
}

impl Run<'_> {
    fn group(&mut self, group: &Group, sink: &mut Sink) -> Result<(), ImportError> {
        let rows: Vec<&Entry> = group.rows.iter().filter_map(|at| self.index.rows.get(*at)).collect();
        let (mut rest, mut parent, mut begun) = (rows.as_slice(), None, false);
        while !rest.is_empty() {
            let (batch, later) = rest.split_at(batch(rest));
            rest = later;
            let arena = Arena::new();
            let mut said = Vec::new();
            for row in batch {
                let more = self.messages(row, parent.take(), &arena)?;
                parent = more.last().map(|last| last.id.to_string());
                said.extend(more);
            }
            if begun {
                sink.more_messages(&said)?;
            } else {
                sink.conversation(&self.conversation(group, &rows, &said), &said)?;
                begun = true;
            }
        }
        Ok(())
    }

    /// The messages of one row, read from its file again.
    fn messages<'a>(
        &mut self,
        entry: &Entry,
        parent: Option<String>,
        arena: &'a Arena,
    ) -> Result<Vec<Message<'a>>, ImportError> {
        let (file, length) = (entry.file as usize, entry.length as usize);
        let bytes = self.shelf.read(file, entry.offset, length)?;
        let text = html::text(&bytes);
        let row = match self.index.shapes.get(file) {
            Some(Shape::List) => {
                let text = arena.alloc_str(&text);
                Row::read(&mut Parser::new(text, arena), Depth::Read)?.unwrap_or_default()
            }
            Some(Shape::Page) | None => self.cards.read(&text).row,
        };
        let mut key = key::text(&row.title, row.time);
        if entry.repeat > 0 {
            key = format!("{key}#{}", entry.repeat);
        }
        let setting = Setting {
            bundle: self.bundle,
            folders: self.folders.get(file).map_or(&[], Vec::as_slice),
            learned: self.index.learned(),
            guess: self.index.guesses(),
        };
        Ok(messages(row, &key, parent, &setting))
    }

    fn conversation<'a>(&self, group: &Group, rows: &[&Entry], said: &[Message<'a>]) -> Conversation<'a> {
        let id = group.conversation.and_then(|at| self.index.conversations.get(at as usize));
        let first = said.iter().find(|message| !is_hidden(message)).or(said.first());
        let natural = || natural_key(&[Some("activity"), first.map(|message| message.id.as_ref())]);
        let mut times = rows.iter().filter_map(|row| row.time);
        let created_at = times.next();
        let newest = times.next_back().or(created_at);
        let title = title(said);
        let mut kept = satchel_importer::Leftover::default();
        if title.is_some() {
            kept.add_text("title_source", "the first prompt");
        }
        if id.is_none() {
            kept.add_text("grouped_by", "time");
        }
        let shape = rows.first().and_then(|row| self.index.shapes.get(row.file as usize));
        let (list, page) = self.versions;
        Conversation {
            id: id.map_or_else(|| Cow::Owned(natural()), |id| Cow::Owned(id.clone())),
            provider_conversation_id: id.map(|id| Cow::Owned(id.clone())),
            export_format_version: Some(Cow::Borrowed(if shape == Some(&Shape::Page) { page } else { list })),
            title: title.map(Cow::Owned),
            created_at,
            updated_at: newest,
            raw_metadata: kept.into_json().map(|kept| Cow::Owned(kept.into_owned())),
            locator: Cow::Owned(rows.first().map(|row| self.locator(row)).unwrap_or_default()),
            ..Conversation::default()
        }
    }

    fn locator(&self, row: &Entry) -> String {
        cards::locator(self.index.paths.get(row.file as usize).map_or("", String::as_str), row.number)
    }
}

/// How many of `rows` are read at once: at least one.
fn batch(rows: &[&Entry]) -> usize {
    let mut bytes = 0;
    let fits = |row: &&&Entry| {
        bytes += row.length as usize;
        bytes <= BATCH
    };
    rows.iter().take_while(fits).count().max(1)
}

fn is_hidden(message: &Message<'_>) -> bool {
    message.role == satchel_importer::Role::System
}

/// The first line of the first prompt: exports hold no titles.
fn title(said: &[Message<'_>]) -> Option<String> {
    let texts =
        said.iter().filter(|message| !is_hidden(message)).filter_map(|message| match &message.content {
            Some(Content::Text(text)) => Some(text.as_ref()),
            Some(Content::Multipart(_)) | None => None,
        });
    let line = texts
        .flat_map(str::lines)
        .map(|line| line.trim_start_matches('#').trim())
        .find(|line| !line.is_empty())?;
    let cut = line.char_indices().nth(LONGEST_TITLE).map(|(at, _)| at);
    Some(
        cut.map_or_else(
            || line.to_owned(),
            |at| format!("{}…", line.get(..at).unwrap_or_default().trim_end()),
        ),
    )
}
