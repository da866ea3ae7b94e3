//! The first pass over the files: the time, the conversations and the position of each row.

use std::collections::BTreeMap;

use satchel_importer::{Bundle, ErrorKind, ImportError, JsonArray, RecordKind, Sink};

use super::{
    cards, key, page,
    row::{ReadMode, Row},
    verb::{self, Action},
};

const CUT: &str = "the file ends inside this record";
const CUT_BETWEEN: &str = "the file ends before its page does";
const NO_TIME: &str = "no time that is understood stands in this row; it is imported without one";
const REPEATED: &str = "the same row stands in another file of this export";

/// The format of an activity file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ActivityFormat {
    /// A JSON list.
    List,
    /// An HTML page.
    Page,
}

/// All rows of an export.
#[derive(Debug, Default)]
pub(crate) struct Index {
    pub(super) paths: Vec<String>,
    pub(super) formats: Vec<ActivityFormat>,
    pub(super) rows: Vec<RowEntry>,
    /// The ids of all conversations. Rows refer to them by index.
    pub(super) conversations: Vec<String>,
    /// The index of each id in `conversations`.
    conversation_numbers: BTreeMap<String, u32>,
    /// For each key, the number of its rows in the earlier file that has most of them.
    earlier_counts: BTreeMap<u64, u32>,
    /// For each possible verb of an unknown language, its number and its count of answered rows.
    possible_verbs: BTreeMap<String, (u32, u32)>,
    /// Answered rows with an unknown verb.
    unknown_answered: u32,
    /// A row has a known verb of prompts.
    pub(super) has_known_prompts: bool,
}

/// The position of one row, and the facts by which it is grouped.
#[derive(Clone, Debug)]
pub(super) struct RowEntry {
    /// Index of the file.
    pub(super) file: u32,
    pub(super) number: u32,
    pub(super) offset: u64,
    pub(super) length: u32,
    /// Microseconds.
    pub(super) time: Option<i64>,
    pub(super) kind: RowKind,
    /// The number of its possible verb, if its language is unknown.
    pub(super) possible_verb: Option<u32>,
    pub(super) answered: bool,
    /// The number of rows with the same key before this one in its file.
    pub(super) repeat: u32,
    pub(super) conversations: Box<[u32]>,
}

/// The kind of a row, by its title.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowKind {
    Prompt,
    /// Something that Gemini created, with its content.
    Creation,
    /// Any other event, or a creation without its content.
    Event,
    Unknown,
}

impl Index {
    /// Adds the rows of a file. Rows of earlier files are skipped, so lists must be added before pages, which hold less.
    pub(crate) fn add(
        &mut self,
        path: &str,
        format: ActivityFormat,
        bundle: &Bundle,
        sink: &mut Sink,
    ) -> Result<(), ImportError> {
        self.paths.push(path.to_owned());
        self.formats.push(format);
        let mut counts = BTreeMap::new();
        let others = match format {
            ActivityFormat::List => self.add_list(path, &mut counts, bundle, sink)?,
            ActivityFormat::Page => self.add_page(path, &mut counts, bundle, sink)?,
        };
        for (key, count) in counts {
            let most = self.earlier_counts.entry(key).or_default();
            *most = count.max(*most);
        }
        if others > 0 {
            let message = format!("{others} rows are of other products and are left alone");
            sink.warn(path, &message);
        }
        Ok(())
    }

    /// Returns the number of rows of other products. `counts` is the number of rows in this file by key.
    fn add_list(
        &mut self,
        path: &str,
        counts: &mut BTreeMap<u64, u32>,
        bundle: &Bundle,
        sink: &mut Sink,
    ) -> Result<u64, ImportError> {
        let mut others = 0;
        JsonArray::new(path).kind(RecordKind::Message).each(bundle, sink, |element, sink| {
            let mut json = element.parser();
            let row = Row::read(&mut json, ReadMode::Summary)?
                .ok_or_else(|| ImportError::malformed("it is not an object"))?;
            if !row.is_gemini() {
                others += 1;
                return Ok(());
            }
            let position = RowPosition {
                number: u32::try_from(element.index()).unwrap_or(u32::MAX),
                offset: element.offset(),
                length: element.text().len(),
            };
            if row.time.is_none() {
                sink.warn(&element.locator(), NO_TIME);
            }
            self.add_row(&row, position, counts, || element.locator(), sink)
        })?;
        Ok(others)
    }

    fn add_page(
        &mut self,
        path: &str,
        counts: &mut BTreeMap<u64, u32>,
        bundle: &Bundle,
        sink: &mut Sink,
    ) -> Result<u64, ImportError> {
        let (mut others, mut reader) = (0, page::CardReader::new(ReadMode::Summary));
        cards::each(bundle, path, sink, |raw, sink| {
            let locator = || cards::locator(path, raw.number);
            let card = reader.read(raw.html);
            if raw.last && !card.complete {
                return sink.skip(RecordKind::Message, &format!("{path}@{}", raw.offset), CUT);
            }
            if raw.last && !has_end_tag(raw.html) {
                let end = raw.offset + raw.length as u64;
                sink.skip(RecordKind::Message, &format!("{path}@{end}"), CUT_BETWEEN)?;
            }
            if !card.row.is_gemini() {
                others += 1;
                return Ok(());
            }
            if card.row.title.is_empty() && card.row.answers.is_empty() {
                return sink.skip(RecordKind::Message, &locator(), "the card holds no text");
            }
            if !card.has_time {
                sink.warn(&locator(), "no time that is understood stands in the card");
            }
            let position = RowPosition { number: raw.number, offset: raw.offset, length: raw.length };
            self.add_row(&card.row, position, counts, locator, sink)
        })?;
        Ok(others)
    }

    fn add_row(
        &mut self,
        row: &Row<'_>,
        position: RowPosition,
        counts: &mut BTreeMap<u64, u32>,
        locator: impl FnOnce() -> String,
        sink: &mut Sink,
    ) -> Result<(), ImportError> {
        let hash = key::row_hash(&row.title, row.time);
        let count = counts.entry(hash).or_default();
        let repeat = *count;
        *count += 1;
        if self.earlier_counts.get(&hash).is_some_and(|earlier| repeat < *earlier) {
            return sink.skip(RecordKind::Message, &locator(), REPEATED);
        }
        let Ok(length) = u32::try_from(position.length) else {
            return sink.skip(RecordKind::Message, &locator(), "it is longer than 4 GiB");
        };
        let answered = !row.answers.is_empty();
        let kind = self.kind(row);
        let unknown = kind == RowKind::Unknown;
        let possible_verb = if unknown { self.count_possible_verb(&row.title, answered) } else { None };
        let file = u32::try_from(self.paths.len().saturating_sub(1))
            .map_err(|_| ImportError::new(ErrorKind::Limit, "there are too many files"))?;
        let conversations = row.conversations.iter().map(|id| self.conversation_number(id)).collect();
        self.rows.push(RowEntry {
            file,
            number: position.number,
            offset: position.offset,
            length,
            time: row.time,
            kind,
            possible_verb,
            answered,
            repeat,
            conversations,
        });
        Ok(())
    }

    fn kind(&mut self, row: &Row<'_>) -> RowKind {
        if row.prompt.is_some() {
            return RowKind::Prompt;
        }
        match verb::parse(&row.title, row.is_english(), None) {
            Action::Prompt { .. } => {
                self.has_known_prompts = true;
                RowKind::Prompt
            }
            Action::Creation if !row.answers.is_empty() || !row.remarks.is_empty() => RowKind::Creation,
            Action::Creation | Action::Event => RowKind::Event,
            Action::Unknown => RowKind::Unknown,
        }
    }

    /// Counts the possible verb of a row in an unknown language. Returns the number of the verb.
    fn count_possible_verb(&mut self, title: &str, answered: bool) -> Option<u32> {
        /// The most verbs that are counted. A real verb is among the first; the others are beginnings of prompts.
        const MAX_VERBS: usize = 1000;
        let answered = u32::from(answered);
        self.unknown_answered += answered;
        let verb = verb::possible_verb(title)?;
        let verbs = self.possible_verbs.len();
        if !self.possible_verbs.contains_key(verb) && verbs < MAX_VERBS {
            self.possible_verbs.insert(verb.to_owned(), (u32::try_from(verbs).ok()?, 0));
        }
        let (number, count) = self.possible_verbs.get_mut(verb)?;
        *count += answered;
        Some(*number)
    }

    fn conversation_number(&mut self, id: &str) -> u32 {
        if let Some(number) = self.conversation_numbers.get(id) {
            return *number;
        }
        let number = u32::try_from(self.conversations.len()).unwrap_or(u32::MAX);
        self.conversation_numbers.insert(id.to_owned(), number);
        self.conversations.push(id.to_owned());
        number
    }

    /// The verb of prompts in the unknown language of this export, with its number: nearly all answered rows begin with
    /// it.
    pub(super) fn learned_verb(&self) -> Option<(&str, u32)> {
        /// The number of rows that proves a verb.
        const MIN_ROWS: u32 = 3;
        let (verb, (number, count)) = self.possible_verbs.iter().max_by_key(|(_, (_, count))| *count)?;
        let proven = *count >= MIN_ROWS && u64::from(*count) * 10 >= u64::from(self.unknown_answered) * 9;
        proven.then_some((verb.as_str(), *number))
    }

    /// Whether unanswered rows with an unknown verb are taken for prompts, because no verb of prompts is known.
    pub(super) fn assumes_prompts(&self) -> bool {
        !self.has_known_prompts && self.learned_verb().is_none()
    }

    /// Returns a function that says whether a row is a prompt or has an answer.
    pub(super) fn dialogue_filter(&self) -> impl Fn(&RowEntry) -> bool + use<> {
        let (assume, learned) = (self.assumes_prompts(), self.learned_verb().map(|(_, number)| number));
        move |row| {
            let known = row.answered || row.kind == RowKind::Prompt;
            let has_learned_verb = row.possible_verb.is_some() && row.possible_verb == learned;
            known || has_learned_verb || (assume && row.kind == RowKind::Unknown)
        }
    }
}

/// Whether the page ends with the end tag of the document.
fn has_end_tag(html: &str) -> bool {
    const END: &[u8] = b"</html>";
    let html = html.trim_end().as_bytes();
    html.len().checked_sub(END.len()).is_some_and(|at| html[at..].eq_ignore_ascii_case(END))
}

/// The position of a row in its file.
struct RowPosition {
    number: u32,
    offset: u64,
    length: usize,
}
