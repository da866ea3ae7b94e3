//! The second pass: reads the rows of one conversation after another and emits them.

use std::borrow::Cow;

use satchel_importer::{
    Arena, Bundle, Content, Conversation, ImportError, Leftover, Message, Parser, RecordKind, Role, Sink,
    natural_key,
};

use super::{
    block_cache::BlockCache,
    cards,
    group::{Group, group},
    index::{ActivityFormat, Index, RowEntry},
    key,
    messages::{RowContext, messages},
    page::CardReader,
    row::{ReadMode, Row},
};
use crate::{files, html};

/// Bytes of rows that are in memory at once. A longer conversation is emitted in parts.
const MAX_BATCH: usize = 2 * 1024 * 1024;
/// The longest title that is taken from a prompt, in characters.
const MAX_TITLE: usize = 80;
const NO_CONVERSATION: &str = "it tells of an event outside of any conversation";

/// Emits all conversations of the index. `versions` are the format versions of lists and of pages.
pub(crate) fn emit(
    index: &Index,
    versions: (&'static str, &'static str),
    bundle: &Bundle,
    sink: &mut Sink,
) -> Result<(), ImportError> {
    let (groups, ungrouped) = group(index);
    let folders = index.paths.iter().map(|path| files::folders(bundle, path)).collect();
    let (blocks, cards) = (BlockCache::new(bundle, &index.paths), CardReader::new(ReadMode::Full));
    let mut emitter = Emitter { index, versions, bundle, folders, blocks, cards };
    for group in &groups {
        emitter.emit(group, sink)?;
    }
    for row in ungrouped.into_iter().filter_map(|at| index.rows.get(at)) {
        sink.skip(RecordKind::Message, &emitter.locator(row), NO_CONVERSATION)?;
    }
    Ok(())
}

struct Emitter<'e> {
    index: &'e Index,
    versions: (&'static str, &'static str),
    bundle: &'e Bundle,
    /// For each file, the folders that may hold its attachments.
    folders: Vec<Vec<String>>,
    blocks: BlockCache<'e>,
    cards: CardReader,
}

impl Emitter<'_> {
    fn emit(&mut self, group: &Group, sink: &mut Sink) -> Result<(), ImportError> {
        let rows: Vec<&RowEntry> = group.rows.iter().filter_map(|at| self.index.rows.get(*at)).collect();
        let (mut rest, mut parent, mut begun) = (rows.as_slice(), None, false);
        while !rest.is_empty() {
            let (batch, behind) = rest.split_at(batch_size(rest));
            rest = behind;
            let arena = Arena::new();
            let mut messages = Vec::new();
            for row in batch {
                let more = self.messages(row, parent.take(), &arena)?;
                parent = more.last().map(|last| last.id.to_string());
                messages.extend(more);
            }
            if begun {
                sink.more_messages(&messages)?;
            } else {
                sink.conversation(&self.conversation(group, &rows, &messages), &messages)?;
                begun = true;
            }
        }
        Ok(())
    }

    /// Reads one row from its file and converts it.
    fn messages<'a>(
        &mut self,
        entry: &RowEntry,
        parent: Option<String>,
        arena: &'a Arena,
    ) -> Result<Vec<Message<'a>>, ImportError> {
        let (file, length) = (entry.file as usize, entry.length as usize);
        let bytes = self.blocks.read(file, entry.offset, length)?;
        let text = html::utf8_lossy(&bytes);
        let row = match self.index.formats.get(file) {
            Some(ActivityFormat::List) => {
                let text = arena.alloc_str(&text);
                Row::read(&mut Parser::new(text, arena), ReadMode::Full)?.unwrap_or_default()
            }
            Some(ActivityFormat::Page) | None => self.cards.read(&text).row,
        };
        let mut key = key::row_key(&row.title, row.time);
        if entry.repeat > 0 {
            key = format!("{key}#{}", entry.repeat);
        }
        let context = RowContext {
            bundle: self.bundle,
            folders: self.folders.get(file).map_or(&[], Vec::as_slice),
            learned_verb: self.index.learned_verb().map(|(verb, _)| verb),
            assume_prompts: self.index.assumes_prompts(),
        };
        Ok(messages(row, &key, parent, &context))
    }

    /// The conversation with all its `rows`. `messages` are its first ones.
    fn conversation<'a>(
        &self,
        group: &Group,
        rows: &[&RowEntry],
        messages: &[Message<'a>],
    ) -> Conversation<'a> {
        let id = group.conversation.and_then(|at| self.index.conversations.get(at as usize));
        let first = messages.iter().find(|message| !is_hidden(message)).or(messages.first());
        let natural = || natural_key(&[Some("activity"), first.map(|message| message.id.as_ref())]);
        let mut times = rows.iter().filter_map(|row| row.time);
        let created_at = times.next();
        let newest = times.next_back().or(created_at);
        let title = title(messages);
        let mut metadata = Leftover::default();
        if title.is_some() {
            metadata.add_text("title_source", "the first prompt");
        }
        if id.is_none() {
            metadata.add_text("grouped_by", "time");
        }
        let format = rows.first().and_then(|row| self.index.formats.get(row.file as usize));
        let (list, page) = self.versions;
        let version = if format == Some(&ActivityFormat::Page) { page } else { list };
        Conversation {
            id: id.map_or_else(|| Cow::Owned(natural()), |id| Cow::Owned(id.clone())),
            provider_conversation_id: id.map(|id| Cow::Owned(id.clone())),
            export_format_version: Some(Cow::Borrowed(version)),
            title: title.map(Cow::Owned),
            created_at,
            updated_at: newest,
            raw_metadata: metadata.into_json().map(|json| Cow::Owned(json.into_owned())),
            locator: Cow::Owned(rows.first().map(|row| self.locator(row)).unwrap_or_default()),
            ..Conversation::default()
        }
    }

    fn locator(&self, row: &RowEntry) -> String {
        cards::locator(self.index.paths.get(row.file as usize).map_or("", String::as_str), row.number)
    }
}

/// The number of `rows` in the next batch, at least one.
fn batch_size(rows: &[&RowEntry]) -> usize {
    let mut bytes = 0;
    let fits = |row: &&&RowEntry| {
        bytes += row.length as usize;
        bytes <= MAX_BATCH
    };
    rows.iter().take_while(fits).count().max(1)
}

fn is_hidden(message: &Message<'_>) -> bool {
    message.role == Role::System
}

/// The first line of the first prompt, as exports hold no titles.
fn title(messages: &[Message<'_>]) -> Option<String> {
    let texts =
        messages.iter().filter(|message| !is_hidden(message)).filter_map(|message| match &message.content {
            Some(Content::Text(text)) => Some(text.as_ref()),
            Some(Content::Multipart(_)) | None => None,
        });
    let line = texts
        .flat_map(str::lines)
        .map(|line| line.trim_start_matches('#').trim())
        .find(|line| !line.is_empty())?;
    Some(match line.char_indices().nth(MAX_TITLE) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default().trim_end()),
        None => line.to_owned(),
    })
}
