//! The first pass over a file: what must be known before its messages are emitted.

use std::collections::BTreeMap;

use satchel_importer::{Arena, Bundle, Element, ErrorKind, Fields, ImportError, Parser, json::Value, title};

use crate::{
    detect, injected, layout,
    line::{Line, is_message},
    record::{Piece, Record},
    session::Session,
    tree::{MessageTree, Outcome, Repeat},
};

/// Characters of a title, which is the first line of a prompt.
const MAX_TITLE: usize = 120;
/// Types of messages that are counted by name.
const MAX_TYPES: usize = 64;
/// The name of all other types.
const OTHER: &str = "other";
/// What a message counts as that repeats an earlier one.
const REPEATED: &str = "repeated";
/// What a result counts as in whose place there is a note.
const MASKED: &str = "masked";
/// What a piece counts as that was written again with something else.
const CHANGED: &str = "changed";
/// Places that a warning names.
const MAX_PLACES: usize = 8;
/// Bytes of the tokens of all answers.
const MAX_TOKEN_BYTES: usize = 8 * 1024 * 1024;
/// Bytes of the tokens of an answer that are kept; real ones have about 100.
const MAX_TOKENS: usize = 4096;
/// The fields of a file with one object.
const MEMBERS: [&str; 8] = [
    "sessionId",
    "projectHash",
    "startTime",
    "lastUpdated",
    "summary",
    "directories",
    "kind",
    "memoryScratchpad",
];

/// What the whole file says.
#[derive(Debug, Default)]
pub(crate) struct Survey {
    pub(crate) session: Session,
    pub(crate) model: Option<String>,
    /// The first line of the first prompt.
    pub(crate) title: Option<String>,
    pub(crate) oldest: Option<i64>,
    pub(crate) newest: Option<i64>,
    /// How many messages are left out, by their type.
    pub(crate) left_out: BTreeMap<String, u64>,
    pub(crate) has_messages: bool,
    /// The last message that was not taken back.
    pub(crate) current: Option<String>,
    /// The tokens of answers, by the number of the message.
    tokens: BTreeMap<u32, Tokens>,
    /// How often only the output was kept of them.
    pub(crate) tokens_left_out: u64,
    /// How many pieces were written again with something else.
    pub(crate) changed: u64,
    /// Where the first of those are.
    pub(crate) changed_at: Vec<String>,
}

/// The tokens of an answer.
#[derive(Debug)]
pub(crate) struct Tokens {
    /// Those of the text itself.
    pub(crate) output: Option<u64>,
    /// All of them as JSON text; none if that is too long.
    pub(crate) json: Option<Box<str>>,
}

/// Makes a [`Survey`] from the messages of a file.
#[derive(Default)]
struct SurveyBuilder {
    survey: Survey,
    tree: MessageTree,
    /// The first line of the first command to the program.
    command: Option<String>,
    token_bytes: usize,
}

impl Survey {
    /// Reads the file once.
    pub(crate) fn read(bundle: &Bundle, path: &str, format: &str) -> Result<Self, ImportError> {
        let mut builder = SurveyBuilder::default();
        if format == detect::SAVED {
            for name in MEMBERS {
                builder.read_member(bundle, path, name)?;
            }
            layout::member(path, "/messages")
                .survey(bundle, |element| continue_after(builder.add_element(&element)))?;
        } else {
            layout::elements(path).survey(bundle, |element| continue_after(builder.add_line(&element)))?;
        }
        Ok(builder.finish())
    }

    /// The tokens of the message with this number.
    pub(crate) fn tokens(&self, number: u32) -> Option<&Tokens> {
        self.tokens.get(&number)
    }
}

/// Leaves it to the second pass to report what cannot be read.
fn continue_after(result: Result<(), ImportError>) -> Result<bool, ImportError> {
    match result {
        Err(error) if error.kind != ErrorKind::Malformed => Err(error),
        Ok(()) | Err(_) => Ok(true),
    }
}

impl SurveyBuilder {
    /// Reads one field of a file with one object.
    fn read_member(&mut self, bundle: &Bundle, path: &str, name: &str) -> Result<(), ImportError> {
        let mut values = Vec::new();
        let look = |element: Element<'_>| {
            values.push(element.text().to_owned());
            Ok(true)
        };
        match layout::member(path, &format!("/{name}")).survey(bundle, look) {
            Ok(()) => {}
            Err(error) if error.kind == ErrorKind::NotThisFormat => return Ok(()),
            Err(error) => return Err(error),
        }
        let value = match values.as_slice() {
            [one] if name != "directories" => one.clone(),
            [] => return Ok(()),
            values => format!("[{}]", values.join(",")),
        };
        let arena = Arena::new();
        let object = arena.alloc_str(&format!("{{\"{name}\":{value}}}"));
        if let Ok(fields) = Fields::read(&mut Parser::new(object, &arena)) {
            self.survey.session.add(fields);
        }
        Ok(())
    }

    fn add_line(&mut self, element: &Element<'_>) -> Result<(), ImportError> {
        match Line::read(element)? {
            Line::Message(fields) => self.add(fields, element.text(), &|| element.locator()),
            Line::Rewind(id) => {
                self.tree.rewind(id);
                Ok(())
            }
            Line::Session { fields, messages } => {
                let arena = fields.arena();
                self.survey.session.add(fields);
                let Some(messages) = messages else { return Ok(()) };
                self.tree.begin_checkpoint();
                for (at, value) in messages.into_iter().enumerate() {
                    let place = || format!("{}.messages[{at}]", element.locator());
                    continue_after(self.add_value(value, arena, &place))?;
                }
                self.tree.end_checkpoint();
                Ok(())
            }
        }
    }

    fn add_element(&mut self, element: &Element<'_>) -> Result<(), ImportError> {
        layout::check_length(element)?;
        self.add_value(Value::Raw(element.text()), element.arena(), &|| element.locator())
    }

    /// Adds a message in a list.
    fn add_value<'a>(
        &mut self,
        value: Value<'a>,
        arena: &'a Arena,
        place: &dyn Fn() -> String,
    ) -> Result<(), ImportError> {
        let Some(raw) = value.raw() else { return Ok(()) };
        let fields = Fields::parse(raw, arena)?;
        if is_message(&fields) { self.add(fields, raw, place) } else { Ok(()) }
    }

    fn add(&mut self, fields: Fields<'_>, raw: &str, place: &dyn Fn() -> String) -> Result<(), ImportError> {
        if self.tree.is_full() {
            return Ok(());
        }
        let mut record = Record::read(fields, raw, false)?;
        let survey = &mut self.survey;
        survey.oldest = [survey.oldest, record.time].into_iter().flatten().min();
        survey.newest = survey.newest.max(record.time);
        let outcomes = self.tree.add(&mut record);
        if !outcomes.iter().any(|outcome| matches!(outcome, Outcome::New(_))) {
            self.count(if record.pieces.is_empty() { record.kind } else { REPEATED });
        }
        for (piece, outcome) in record.pieces.iter().zip(&outcomes) {
            match outcome {
                Outcome::New(_) => self.add_piece(piece),
                Outcome::Repeated(Repeat::Same) => {}
                Outcome::Repeated(Repeat::Masked) => self.count(MASKED),
                Outcome::Repeated(Repeat::Changed) => self.add_change(place),
            }
        }
        if let Some(model) = record.model.filter(|_| record.kind != "user") {
            self.survey.model = Some(model.to_owned());
        }
        self.add_tokens(&record);
        Ok(())
    }

    fn add_piece(&mut self, piece: &Piece<'_>) {
        self.survey.has_messages = true;
        self.survey.newest = self.survey.newest.max(piece.message.created_at);
        if self.survey.title.is_some() || !piece.is_prompt() {
            return;
        }
        let line = piece.texts.iter().find_map(|text| title::first_line(text, MAX_TITLE));
        if piece.texts.first().is_some_and(|text| injected::is_command(text)) {
            self.command = self.command.take().or(line);
        } else {
            self.survey.title = line;
        }
    }

    fn add_change(&mut self, place: &dyn Fn() -> String) {
        self.count(CHANGED);
        self.survey.changed += 1;
        if self.survey.changed_at.len() < MAX_PLACES {
            self.survey.changed_at.push(place());
        }
    }

    /// The last tokens of an answer count.
    fn add_tokens(&mut self, record: &Record<'_>) {
        let (Some((json, output)), Some(number)) = (record.tokens, self.tree.answer(record)) else { return };
        let earlier = [number.before, Some(number.own)].into_iter().flatten();
        for tokens in earlier.filter_map(|number| self.survey.tokens.remove(&number)) {
            self.token_bytes -= tokens.json.map_or(0, |json| json.len());
        }
        let fits = json.len() <= MAX_TOKENS && self.token_bytes + json.len() <= MAX_TOKEN_BYTES;
        self.token_bytes += if fits { json.len() } else { 0 };
        let json = fits.then(|| json.into());
        self.survey.tokens_left_out += u64::from(!fits);
        self.survey.tokens.insert(number.own, Tokens { output, json });
    }

    fn count(&mut self, kind: &str) {
        let counts = &mut self.survey.left_out;
        let known = counts.contains_key(kind) || (counts.len() < MAX_TYPES && kind.len() <= MAX_TITLE);
        *counts.entry(if known { kind } else { OTHER }.to_owned()).or_default() += 1;
    }

    fn finish(mut self) -> Survey {
        self.survey.title = self.survey.title.take().or(self.command);
        self.survey.current = self.tree.into_last();
        self.survey
    }
}
