//! The first walk over the files: which rows there are, when they were, and where they belong.

use std::collections::BTreeMap;

use satchel_importer::{Bundle, ErrorKind, ImportError, JsonArray, RecordKind, Sink};

use super::{
    cards, key, page,
    row::{Depth, Row},
    verb::{self, Act},
};

const CUT: &str = "the file ends inside this record";
const CUT_BETWEEN: &str = "the file ends before its page does";
const NO_TIME: &str = "no time that is understood stands in this row; it is imported without one";
const REPEATED: &str = "the same row stands in another file of this export";

/// How a file holds its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Shape {
    /// A JSON list.
    List,
    /// An HTML page.
    Page,
}

/// All rows of an export.
#[derive(Debug, Default)]
pub(crate) struct Index {
    pub(super) paths: Vec<String>,
    pub(super) shapes: Vec<Shape>,
    pub(super) rows: Vec<Entry>,
    /// Ids of conversations; rows name them by their place here.
    pub(super) conversations: Vec<String>,
    numbers: BTreeMap<String, u32>,
    /// How many rows of the files before had a key.
    seen: BTreeMap<u64, u32>,
    /// How rows of unknown languages begin: the number of each beginning, and how many of those rows have an answer.
    beginnings: BTreeMap<String, (u32, u32)>,
    unknown: u32,
    pub(super) spoken: bool,
}

/// One row, by what it takes to put it into its place.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) file: u32,
    pub(super) number: u32,
    pub(super) offset: u64,
    pub(super) length: u32,
    /// Microseconds.
    pub(super) time: Option<i64>,
    pub(super) kind: Kind,
    /// The number of its beginning, if its language is not known.
    pub(super) beginning: Option<u32>,
    pub(super) answered: bool,
    /// Rows of the same key before this one in its file.
    pub(super) repeat: u32,
    pub(super) conversations: Box<[u32]>,
}

/// What a row is, as far as its title tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Prompt,
    /// What Gemini made, with the work itself.
    Creation,
    /// Something else, or a mere remark that Gemini made something.
    Event,
    Unknown,
}

impl Index {
    /// Walks over one more file. Lists come before pages, which say less.
    pub(crate) fn add(
        &mut self,
        path: &str,
        shape: Shape,
        bundle: &Bundle,
        sink: &mut Sink,
    ) -> Result<(), ImportError> {
        self.paths.push(path.to_owned());
        self.shapes.push(shape);
        let mut here = BTreeMap::new();
        let others = match shape {
            Shape::List => self.add_list(path, &mut here, bundle, sink)?,
            Shape::Page => self.add_page(path, &mut here, bundle, sink)?,
        };
        for (key, count) in here {
            let most = self.seen.entry(key).or_default();
            *most = count.max(*most);
        }
        if others > 0 {
            let message = format!("{others} rows are of other products and are left alone");
            sink.warn(path, &message);
        }
        Ok(())
    }

    fn add_list(
        &mut self,
        path: &str,
        here: &mut BTreeMap<u64, u32>,
        bundle: &Bundle,
        sink: &mut Sink,
    ) -> Result<u64, ImportError> {
        let mut others = 0;
        JsonArray::new(path).kind(RecordKind::Message).each(bundle, sink, |element, sink| {
            let mut json = element.parser();
            let row = Row::read(&mut json, Depth::Noted)?
                .ok_or_else(|| ImportError::malformed("it is not an object"))?;
            if !row.is_ours() {
                others += 1;
                return Ok(());
            }
            let place = Place {
                number: u32::try_from(element.index()).unwrap_or(u32::MAX),
                offset: element.offset(),
                length: element.text().len(),
            };
            if row.time.is_none() {
                sink.warn(&element.locator(), NO_TIME);
            }
            self.note(&row, place, here, || element.locator(), sink)
        })?;
        Ok(others)
    }

    fn add_page(
        &mut self,
        path: &str,
        here: &mut BTreeMap<u64, u32>,
        bundle: &Bundle,
        sink: &mut Sink,
    ) -> Result<u64, ImportError> {
        let (mut others, mut cards) = (0, page::Cards::new(Depth::Noted));
        cards::each(bundle, path, sink, |piece, sink| {
            let locator = || cards::locator(path, piece.number);
            let card = cards.read(piece.html);
            if piece.last && !card.whole {
                return sink.skip(RecordKind::Message, &format!("{path}@{}", piece.offset), CUT);
            }
            if piece.last && !ends_whole(piece.html) {
                let end = piece.offset + piece.length as u64;
                sink.skip(RecordKind::Message, &format!("{path}@{end}"), CUT_BETWEEN)?;
            }
            if !card.row.is_ours() {
                others += 1;
                return Ok(());
            }
            if card.row.title.is_empty() && card.row.answers.is_empty() {
                return sink.skip(RecordKind::Message, &locator(), "the card holds no text");
            }
            if !card.dated {
                sink.warn(&locator(), "no time that is understood stands in the card");
            }
            let place = Place { number: piece.number, offset: piece.offset, length: piece.length };
            self.note(&card.row, place, here, locator, sink)
        })?;
        Ok(others)
    }

    fn note(
        &mut self,
        row: &Row<'_>,
        place: Place,
        here: &mut BTreeMap<u64, u32>,
        locator: impl FnOnce() -> String,
        sink: &mut Sink,
    ) -> Result<(), ImportError> {
        let hash = key::hash(&row.title, row.time);
        let repeat = here.entry(hash).or_default();
        let before = *repeat;
        *repeat += 1;
        if self.seen.get(&hash).is_some_and(|count| before < *count) {
            return sink.skip(RecordKind::Message, &locator(), REPEATED);
        }
        let Ok(length) = u32::try_from(place.length) else {
            return sink.skip(RecordKind::Message, &locator(), "it is longer than 4 GiB");
        };
        let answered = !row.answers.is_empty();
        let kind = self.kind(row);
        let beginning = if kind == Kind::Unknown { self.note_beginning(&row.title, answered) } else { None };
        let file = u32::try_from(self.paths.len().saturating_sub(1))
            .map_err(|_| ImportError::new(ErrorKind::Limit, "there are too many files"))?;
        let conversations = row.conversations.iter().map(|id| self.conversation(id)).collect();
        let Place { number, offset, .. } = place;
        let (time, repeat) = (row.time, before);
        let entry =
            Entry { file, number, offset, length, time, kind, beginning, answered, repeat, conversations };
        self.rows.push(entry);
        Ok(())
    }

    fn kind(&mut self, row: &Row<'_>) -> Kind {
        if row.prompt.is_some() {
            return Kind::Prompt;
        }
        match verb::read(&row.title, row.in_english(), None) {
            Act::Prompt { .. } => {
                self.spoken = true;
                Kind::Prompt
            }
            Act::Creation if !row.answers.is_empty() || !row.remarks.is_empty() => Kind::Creation,
            Act::Creation | Act::Event => Kind::Event,
            Act::Unknown => Kind::Unknown,
        }
    }

    fn note_beginning(&mut self, title: &str, answered: bool) -> Option<u32> {
        /// A verb shows itself early; more beginnings are words of people.
        const MOST: usize = 1000;
        let answered = u32::from(answered);
        self.unknown += answered;
        let verb = verb::candidate(title)?;
        let count = self.beginnings.len();
        if !self.beginnings.contains_key(verb) && count < MOST {
            self.beginnings.insert(verb.to_owned(), (u32::try_from(count).ok()?, 0));
        }
        let (number, known) = self.beginnings.get_mut(verb)?;
        *known += answered;
        Some(*number)
    }

    fn conversation(&mut self, id: &str) -> u32 {
        if let Some(number) = self.numbers.get(id) {
            return *number;
        }
        let number = u32::try_from(self.conversations.len()).unwrap_or(u32::MAX);
        self.numbers.insert(id.to_owned(), number);
        self.conversations.push(id.to_owned());
        number
    }

    /// How prompts begin in the language of this export, if it is not known and nearly all answered rows begin so.
    pub(super) fn learned(&self) -> Option<&str> {
        self.most_common().map(|(verb, _)| verb)
    }

    fn most_common(&self) -> Option<(&str, u32)> {
        /// Fewer rows prove nothing.
        const LEAST: u32 = 3;
        let (verb, (number, count)) = self.beginnings.iter().max_by_key(|(_, (_, count))| *count)?;
        let proven = *count >= LEAST && u64::from(*count) * 10 >= u64::from(self.unknown) * 9;
        proven.then_some((verb.as_str(), *number))
    }

    /// Whether rows of an unknown language and without an answer are prompts: nothing tells prompts from events.
    pub(super) fn guesses(&self) -> bool {
        !self.spoken && self.learned().is_none()
    }

    /// Says of each row whether somebody speaks in it.
    pub(super) fn speakers(&self) -> impl Fn(&Entry) -> bool + use<> {
        let (guess, learned) = (self.guesses(), self.most_common().map(|(_, number)| number));
        move |row| {
            let known = row.answered || matches!(row.kind, Kind::Prompt | Kind::Creation);
            let begins = row.beginning.is_some() && row.beginning == learned;
            known || begins || (guess && row.kind == Kind::Unknown)
        }
    }
}

/// Whether a page ends as pages end.
fn ends_whole(html: &str) -> bool {
    const END: &[u8] = b"</html>";
    let html = html.trim_end().as_bytes();
    html.len().checked_sub(END.len()).is_some_and(|at| html[at..].eq_ignore_ascii_case(END))
}

/// Where a row stands.
struct Place {
    number: u32,
    offset: u64,
    length: usize,
}
