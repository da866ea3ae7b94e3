//! Takes a message apart. A prompt with its pictures is one piece; each text, thought, call and result of an answer is one, too.

use std::borrow::Cow;

use satchel_importer::{
    Arena, Fields, ImportError, JsonError, Role,
    json::{FieldReader, Value, ValueFields},
};

use crate::{
    block::{Block, What},
    piece::{Piece, PieceKind},
    result::ToolResult,
};

/// Fields of a message that are known and kept as they are.
const KEPT: [&str; 3] = ["created", "metadata", "id"];

/// Fields of the metadata of a message that are known.
const METADATA: [&str; 10] = [
    "userVisible",
    "agentVisible",
    "inference",
    "outputTokenLimitReached",
    "steer",
    "turnContext",
    "usage",
    "observationId",
    "operations",
    "provider",
];

/// A message, taken apart.
pub(crate) struct Record<'a> {
    pub(crate) pieces: Vec<Piece<'a>>,
    /// What its id is made of.
    pub(crate) key: Vec<&'a str>,
    /// Microseconds.
    pub(crate) created: Option<i64>,
    pub(crate) model: Option<&'a str>,
    /// The role as the file has it, if that is not known.
    pub(crate) unknown_role: Option<&'a str>,
    /// Types of parts that are not known.
    pub(crate) unknown: Vec<&'a str>,
    /// Fields of a prompt that are not known.
    pub(crate) unknown_fields: Vec<&'a str>,
    /// Whether the bytes of a file cannot be decoded.
    pub(crate) unreadable: bool,
    /// The numbers of the parts that cannot be read, and why.
    pub(crate) broken: Vec<(usize, String)>,
}

/// Whether the fields are those of a message.
pub(crate) fn is_message(fields: &Fields<'_>) -> bool {
    fields.get("role").text().is_some() && (fields.has("content") || fields.has("created"))
}

impl<'a> Record<'a> {
    /// Takes the fields of a message apart. `decode` says whether the bytes of files are needed.
    pub(crate) fn read(mut fields: Fields<'a>, decode: bool) -> Result<Self, ImportError> {
        if !is_message(&fields) {
            return Err(ImportError::malformed("it is not a message"));
        }
        let arena = fields.arena();
        let mut builder = Builder::new(&mut fields)?;
        let content = fields.take("content");
        for (at, part) in parts_of(content, arena)?.into_iter().enumerate() {
            match read_part(part, decode) {
                Ok(Some(block)) => builder.add(block),
                Ok(None) => {}
                Err(error) => builder.record.broken.push((at, ImportError::from(error).message)),
            }
        }
        Ok(builder.finish(&fields))
    }

    /// The first text that the person wrote.
    pub(crate) fn prompt(&self) -> Option<&str> {
        let prompt = self.pieces.iter().find(|piece| piece.kind == PieceKind::Prompt)?;
        prompt.texts.first().map(|text| &**text)
    }
}

/// The parts of a message. In place of a list there may be a single one.
fn parts_of<'a>(content: Value<'a>, arena: &'a Arena) -> Result<Vec<ValueFields<'a>>, ImportError> {
    match content {
        Value::Raw(raw) if raw.starts_with('[') => Ok(FieldReader::new().item_fields(raw, arena)?),
        Value::Null => Ok(Vec::new()),
        other => Ok(vec![ValueFields { value: other, fields: Fields::of(other, arena) }]),
    }
}

fn read_part(part: ValueFields<'_>, decode: bool) -> Result<Option<Block<'_>>, JsonError> {
    match (part.value, part.fields?) {
        (_, Some(fields)) => Block::read(fields, decode).map(Some),
        (Value::Null, _) => Ok(None),
        (Value::Text(text), _) => Ok(Some(Block::of_text(text))),
        (Value::Raw(_), None) => {
            Err(JsonError { offset: 0, problem: "a part of the message is not an object" })
        }
    }
}

/// Collects the pieces of one message.
struct Builder<'a> {
    record: Record<'a>,
    role: Role,
    /// Whether the program does not show the message to the person.
    hidden: bool,
    tokens: Option<u64>,
    id: Option<&'a str>,
    /// The place of the piece with the texts and pictures of the person.
    prompt: Option<usize>,
    /// What is left of parts before the first piece.
    notes: Vec<String>,
    unread: Option<&'a str>,
}

impl<'a> Builder<'a> {
    fn new(fields: &mut Fields<'a>) -> Result<Self, ImportError> {
        let role = fields.get("role").text();
        let stamp = fields.get("created");
        let stamp = stamp.text().or(stamp.raw()).unwrap_or_default();
        let created = fields.take_time("created");
        // The same moment may be written in another unit.
        let moment = created.map(|micros| fields.arena().alloc_str(&micros.to_string()) as &str);
        let known = match role {
            Some("user") => Some(Role::User),
            Some("assistant") => Some(Role::Assistant),
            _ => None,
        };
        if known.is_some() {
            fields.take("role");
        }
        let metadata = fields.object("metadata")?;
        let inference = metadata.object("inference")?;
        let model = inference.get("resolvedModel").nonempty_text();
        let mut record = Record {
            pieces: Vec::new(),
            key: vec![role.unwrap_or_default(), moment.unwrap_or(stamp)],
            created,
            model: model.or(inference.get("requestedModel").nonempty_text()),
            unknown_role: known.is_none().then(|| role.unwrap_or("none")),
            unknown: Vec::new(),
            unknown_fields: Vec::new(),
            unreadable: false,
            broken: Vec::new(),
        };
        let hidden = metadata.get("userVisible").raw() == Some("false");
        if metadata
            .iter()
            .all(|(key, value)| matches!(key, "userVisible" | "agentVisible") && value.is_true())
            && fields.get("metadata").raw().is_some_and(|raw| raw.starts_with('{'))
        {
            fields.take("metadata");
        }
        if known == Some(Role::User) {
            record.unknown_fields.extend(metadata.unknown(&METADATA));
        }
        let tokens = metadata.object("usage")?.get("outputTokens").as_u64();
        let id = fields.take_id("id");
        Ok(Self {
            record,
            role: known.unwrap_or(Role::Assistant),
            hidden,
            tokens,
            id,
            prompt: None,
            notes: Vec::new(),
            unread: None,
        })
    }

    fn add(&mut self, block: Block<'a>) {
        let Block { what, key, hidden, unknown, unknown_field, unread, unreadable, rest } = block;
        self.record.unknown_fields.extend(unknown_field.filter(|_| self.role == Role::User));
        if self.record.key.len() == 2 {
            self.record.key.extend(key);
        }
        self.record.unknown.extend(unknown);
        self.record.unreadable |= unreadable;
        self.unread = self.unread.or(unread);
        let hidden = hidden || self.hidden;
        match what {
            What::Text(text) => self.text(hidden, rest).texts.push(text.into()),
            What::File(file) => self.file(hidden, rest).message.attachments.push(file),
            What::Thought(text) => {
                self.joined(PieceKind::Thought, Role::Assistant, hidden, rest).texts.push(text.into());
            }
            What::Call(call) => {
                let piece = self.push(PieceKind::Other, Role::Assistant, hidden, rest);
                piece.message.tool_calls = vec![*call];
            }
            What::Result(result) => self.result(*result, rest),
            What::Notice(text) => {
                let piece = self.push(PieceKind::Other, Role::System, self.hidden, rest);
                piece.texts.extend(text.map(Cow::Borrowed));
            }
            What::Answer(text) => {
                self.push(PieceKind::Other, Role::User, self.hidden, rest).texts.push(text);
            }
            What::Note => match self.record.pieces.last_mut() {
                Some(piece) => piece.parts.push(rest),
                None => self.notes.push(rest),
            },
        }
    }

    fn push(&mut self, kind: PieceKind, role: Role, hidden: bool, rest: String) -> &mut Piece<'a> {
        let mut piece = Piece::new(kind, role, self.record.created);
        piece.hidden = hidden;
        piece.parts = std::mem::take(&mut self.notes);
        piece.parts.push(rest);
        self.record.pieces.push_mut(piece)
    }

    /// The last piece if it is of the same kind, or else a new one. The program joins neighbours, too, which come from a stream.
    fn joined(&mut self, kind: PieceKind, role: Role, hidden: bool, rest: String) -> &mut Piece<'a> {
        let last = self.record.pieces.last();
        if last.is_none_or(|last| last.kind != kind || last.hidden != hidden || last.message.role != role) {
            return self.push(kind, role, hidden, rest);
        }
        let at = self.record.pieces.len() - 1;
        let piece = &mut self.record.pieces[at];
        piece.parts.push(rest);
        piece
    }

    /// The piece for a text. What the program wrote for the model in the name of the person belongs to the system.
    fn text(&mut self, hidden: bool, rest: String) -> &mut Piece<'a> {
        match self.role {
            Role::User if hidden => self.joined(PieceKind::Text, Role::System, hidden, rest),
            Role::User => self.own(rest),
            role => self.joined(PieceKind::Text, role, hidden, rest),
        }
    }

    fn file(&mut self, hidden: bool, rest: String) -> &mut Piece<'a> {
        match self.role {
            Role::User if hidden => self.push(PieceKind::Other, Role::System, hidden, rest),
            Role::User => self.own(rest),
            role => self.push(PieceKind::Other, role, hidden, rest),
        }
    }

    /// The piece with the texts and pictures of the person.
    fn own(&mut self, rest: String) -> &mut Piece<'a> {
        let Some(at) = self.prompt else {
            self.prompt = Some(self.record.pieces.len());
            return self.push(PieceKind::Prompt, Role::User, false, rest);
        };
        let piece = &mut self.record.pieces[at];
        piece.parts.push(rest);
        piece
    }

    fn result(&mut self, result: ToolResult<'a>, rest: String) {
        let piece = self.push(PieceKind::Other, Role::Tool, self.hidden, rest);
        if let Some(call) = result.call {
            piece.rest.add_text("call_id", call);
        }
        piece.texts = result.texts;
        piece.message.attachments = result.attachments;
    }

    /// Adds the fields of the message to its first piece. A message without parts is one without words.
    fn finish(mut self, fields: &Fields<'a>) -> Record<'a> {
        if self.record.pieces.is_empty() {
            let kind = if self.role == Role::User { PieceKind::Prompt } else { PieceKind::Text };
            self.push(kind, self.role, self.hidden, "{}".to_owned());
        }
        let model = self.record.model;
        for piece in &mut self.record.pieces {
            if piece.message.role == Role::Assistant {
                piece.message.model = model.map(Cow::Borrowed);
            }
        }
        if self.role == Role::User {
            self.record.unknown_fields.extend(fields.unknown(&KEPT));
        }
        let tokens = self.tokens.filter(|_| self.role == Role::Assistant);
        if let Some(first) = self.record.pieces.first_mut() {
            first.message.token_count = tokens;
            first.message.provider_message_id = self.id.map(Cow::Borrowed);
            fields.add_to(&mut first.rest, &KEPT);
            if let Some(unread) = self.unread {
                first.rest.mark_unread(unread);
            }
        }
        self.record
    }
}
