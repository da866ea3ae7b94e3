//! Takes a message apart. Each text, thought, call and result of an answer becomes a message of its own, so that what was
//! imported keeps its id when the answer goes on.

use std::borrow::Cow;

use satchel_importer::{
    Arena, Fields, ImportError, Parser, Role,
    json::{Value, parse_items},
};

use crate::{
    changes::without_contents,
    fields::time_at,
    part::{MessagePart, What, error_text},
    piece::Piece,
    tool::Tool,
};

/// Fields of a message that are known and kept as they are.
const KEPT: [&str; 34] = [
    "agent",
    "agents",
    "cost",
    "description",
    "error",
    "exit",
    "fallbackModels",
    "finish",
    "format",
    "metadata",
    "mode",
    "model",
    "modelID",
    "name",
    "native",
    "parentID",
    "path",
    "providerID",
    "providerState",
    "rawFinish",
    "reason",
    "retry",
    "skill",
    "skills",
    "snapshot",
    "status",
    "structured",
    "summary",
    "system",
    "time",
    "tokens",
    "tools",
    "type",
    "variant",
];
/// The JSON text of a part.
pub(crate) struct PartText<'a> {
    pub(crate) text: &'a str,
    /// What identifies the part if it has no id.
    pub(crate) key: String,
}

/// The fields of a message without its parts.
pub(crate) struct Info<'a> {
    pub(crate) id: Option<&'a str>,
    /// Microseconds.
    pub(crate) created: Option<i64>,
    /// The model that answers.
    pub(crate) model: Option<&'a str>,
    pub(crate) role: Role,
    /// The role as the file has it, if that is not known.
    pub(crate) unknown_role: Option<&'a str>,
    /// The instructions that the program gave to the model.
    pub(crate) system: Option<String>,
    pub(crate) fields: Fields<'a>,
}

/// A message, taken apart.
pub(crate) struct Record<'a> {
    pub(crate) pieces: Vec<Piece<'a>>,
    /// Types of parts that are not known.
    pub(crate) unknown: Vec<&'a str>,
    /// A mark of a text that is not known: it may say that the program wrote the text.
    pub(crate) unknown_mark: Option<&'a str>,
    pub(crate) unreadable: bool,
    /// The parts that cannot be read, and why.
    pub(crate) broken: Vec<(String, String)>,
}

impl<'a> Info<'a> {
    /// Reads the fields of a message.
    pub(crate) fn read(mut fields: Fields<'a>) -> Result<Self, ImportError> {
        // In the first versions, most fields were inside of `metadata`.
        let old = fields.object("metadata")?;
        let old_answer = old.object("assistant")?;
        let role = fields.get("role").text();
        let time = time_at(&fields.object("time")?, "created").or(time_at(&old.object("time")?, "created"));
        let known = match role {
            Some("user") => Some(Role::User),
            Some("assistant") => Some(Role::Assistant),
            _ => None,
        };
        let answers = known != Some(Role::User);
        let model = fields.get("modelID").nonempty_text().or(old_answer.get("modelID").nonempty_text());
        let model = model.or(fields.object("model")?.get("id").nonempty_text());
        let system = take_system(&mut fields, old_answer)?;
        Ok(Self {
            id: fields.id("id"),
            created: time,
            model: model.filter(|_| answers),
            role: known.unwrap_or(Role::Assistant),
            unknown_role: known.is_none().then(|| role.unwrap_or("none")),
            system,
            fields,
        })
    }

    /// The parts inside of the message, as early versions wrote them.
    pub(crate) fn take_parts(&mut self) -> Result<Vec<PartText<'a>>, ImportError> {
        let Some(raw) = self.fields.get("parts").raw().filter(|raw| raw.starts_with('[')) else {
            return Ok(Vec::new());
        };
        self.fields.take("parts");
        parts_of(raw, self.fields.arena())
    }
}

/// The parts in the JSON text of a list, also those that are no objects.
pub(crate) fn parts_of<'a>(raw: &'a str, arena: &'a Arena) -> Result<Vec<PartText<'a>>, ImportError> {
    let mut parts = Vec::new();
    for (at, value) in parse_items(raw, arena)?.into_iter().enumerate() {
        parts.push(PartText { text: value.raw().unwrap_or_default(), key: at.to_string() });
    }
    Ok(parts)
}

/// Takes the instructions of the model; they are the same in each answer of a session.
fn take_system(fields: &mut Fields<'_>, mut old: Fields<'_>) -> Result<Option<String>, ImportError> {
    if let Some(raw) = fields.get("system").raw().filter(|raw| raw.starts_with('[')) {
        let texts = parse_items(raw, fields.arena())?;
        if texts.iter().all(|text| text.text().is_some()) {
            fields.take("system");
            let texts: Vec<&str> = texts.into_iter().filter_map(Value::nonempty_text).collect();
            return Ok(Some(texts.join("\n\n")).filter(|text| !text.is_empty()));
        }
    }
    let Some(raw) = old.take("system").raw().filter(|raw| raw.starts_with('[')) else { return Ok(None) };
    let texts: Vec<&str> =
        parse_items(raw, fields.arena())?.into_iter().filter_map(Value::nonempty_text).collect();
    if let Some(mut metadata) = fields.take_object("metadata")? {
        let mut answer = metadata.take_object("assistant")?.unwrap_or(old);
        answer.take("system");
        metadata.push_json("assistant", &answer.into_json());
        fields.push_json("metadata", &metadata.into_json());
    }
    Ok(Some(texts.join("\n\n")).filter(|text| !text.is_empty()))
}

impl<'a> Record<'a> {
    /// Takes a message apart. `system` are the instructions that the session has already.
    pub(crate) fn read(
        info: Info<'a>,
        id: &'a str,
        parts: &[PartText<'a>],
        system: Option<&str>,
        decode: bool,
    ) -> Result<Self, ImportError> {
        let arena = info.fields.arena();
        let mut builder = Builder {
            record: Self {
                pieces: Vec::new(),
                unknown: Vec::new(),
                unknown_mark: None,
                unreadable: false,
                broken: Vec::new(),
            },
            id,
            role: info.role,
            created: info.created,
            hidden: info.role == Role::Assistant && info.fields.get("summary").is_true(),
            notes: Vec::new(),
            step_tokens: None,
            unread: None,
            compacts: false,
        };
        for part in parts {
            if !part.text.starts_with('{') {
                builder.record.broken.push((part.key.clone(), "it is not an object".to_owned()));
                continue;
            }
            match Fields::read(&mut Parser::new(part.text, arena))
                .and_then(|fields| MessagePart::read(fields, decode))
            {
                Ok(read) => builder.add(read, &part.key),
                Err(error) => {
                    builder.record.broken.push((part.key.clone(), ImportError::from(error).message));
                }
            }
        }
        builder.finish(info, system)
    }
}

/// Collects the pieces of one message.
struct Builder<'a> {
    record: Record<'a>,
    id: &'a str,
    role: Role,
    created: Option<i64>,
    hidden: bool,
    /// Parts before the first piece that are none themselves.
    notes: Vec<String>,
    step_tokens: Option<u64>,
    unread: Option<&'a str>,
    /// Whether it asks to shorten the session.
    compacts: bool,
}

impl<'a> Builder<'a> {
    fn add(&mut self, part: MessagePart<'a>, key: &str) {
        let MessagePart { what, id, time, step_tokens, unknown, unknown_mark, unread, unreadable, rest } =
            part;
        self.record.unknown.extend(unknown);
        self.record.unknown_mark = self.record.unknown_mark.or(unknown_mark);
        self.record.unreadable |= unreadable;
        self.unread = self.unread.or(unread);
        if let Some(tokens) = step_tokens {
            self.step_tokens = Some(self.step_tokens.unwrap_or(0).saturating_add(tokens));
        }
        let own_id = id.map_or_else(|| Cow::Owned(format!("{}:{key}", self.id)), Cow::Borrowed);
        let named = id.is_some();
        match what {
            What::Note => self.note(rest),
            What::Compaction => {
                self.compacts = true;
                self.own(own_id, named, time).parts.push(rest);
            }
            What::File(file) => {
                let own = self.own(own_id, named, time);
                own.message.attachments.push(file);
                own.parts.push(rest);
            }
            What::Text(text) if self.role == Role::User => {
                let own = self.own(own_id, named, time);
                own.texts.push(text.into());
                own.parts.push(rest);
            }
            What::Text(text) => self.add_text(own_id, named, self.role, time, text, rest),
            What::Synthetic(text) => {
                let role = if self.role == Role::User { Role::System } else { self.role };
                self.add_text(own_id, named, role, time, text, rest);
                if let Some(piece) = self.record.pieces.last_mut() {
                    piece.hidden |= role == Role::System;
                }
            }
            What::Thought(text) => {
                self.add_text(own_id, named, Role::Assistant, time, text, rest);
                if let Some(piece) = self.record.pieces.last_mut() {
                    piece.message.is_thought = true;
                }
            }
            What::Tool(tool) => self.called(own_id, named, time, *tool, rest),
        }
    }

    fn push(&mut self, mut piece: Piece<'a>) {
        if self.record.pieces.is_empty() {
            piece.parts.splice(0..0, std::mem::take(&mut self.notes));
        }
        self.record.pieces.push(piece);
    }

    /// The piece with the texts and files of the person, which comes first; in an answer, a new piece.
    fn own(&mut self, id: Cow<'a, str>, named: bool, time: Option<i64>) -> &mut Piece<'a> {
        let pieces = &mut self.record.pieces;
        let known = pieces.first().is_some_and(|piece| piece.message.role == Role::User);
        if self.role != Role::User {
            let mut piece = Piece::new(id, self.role, time.or(self.created));
            (piece.own_id, piece.parts) = (named, std::mem::take(&mut self.notes));
            return pieces.push_mut(piece);
        }
        if !known {
            let mut own = Piece::new(self.id.into(), self.role, self.created.or(time));
            own.parts = std::mem::take(&mut self.notes);
            pieces.insert(0, own);
        }
        &mut pieces[0]
    }

    fn note(&mut self, rest: String) {
        match self.record.pieces.last_mut() {
            Some(piece) => piece.parts.push(rest),
            None => self.notes.push(rest),
        }
    }

    fn add_text(
        &mut self,
        id: Cow<'a, str>,
        named: bool,
        role: Role,
        time: Option<i64>,
        text: &'a str,
        rest: String,
    ) {
        let mut piece = Piece::new(id, role, time.or(self.created));
        piece.own_id = named;
        piece.texts.push(text.into());
        piece.hidden = self.hidden;
        piece.parts.push(rest);
        self.push(piece);
    }

    fn called(&mut self, id: Cow<'a, str>, named: bool, time: Option<i64>, tool: Tool<'a>, rest: String) {
        let result_id = format!("{id}:result");
        let mut piece = Piece::new(id, Role::Assistant, time.or(self.created));
        piece.own_id = named;
        piece.message.tool_calls = vec![tool.call];
        piece.parts.push(rest);
        let Some(result) = tool.result else {
            if tool.state != "{}" {
                piece.rest.add_json("state", &tool.state);
            }
            return self.push(piece);
        };
        self.push(piece);
        let time = result.ended.or(time).or(self.created);
        let mut answer = Piece::new(result_id.into(), Role::Tool, time);
        answer.own_id = false;
        answer.texts.extend(result.text);
        answer.message.attachments = result.attachments;
        if tool.state != "{}" {
            answer.rest.add_json("state", &tool.state);
        }
        self.push(answer);
    }

    /// Adds the error of the message, and its fields to the first piece.
    fn finish(mut self, info: Info<'a>, system: Option<&str>) -> Result<Record<'a>, ImportError> {
        let Info { mut fields, model, .. } = info;
        if let Some(first) = self.record.pieces.first_mut() {
            // Parts are only ever added behind it, so the first piece stays the first.
            (first.id, first.own_id) = (self.id.into(), true);
        }
        let error = fields.take("error");
        if error != Value::Null {
            let (text, rest) = error_text(error, &fields)?;
            self.fail(text, &rest);
        }
        if self.record.pieces.is_empty() {
            let piece = Piece::new(self.id.into(), self.role, self.created);
            self.push(piece);
        }
        let tokens = self.tokens(&fields)?;
        for piece in &mut self.record.pieces {
            if piece.message.role == Role::Assistant {
                piece.message.model = model.map(Cow::Borrowed);
            }
        }
        let Some(first) = self.record.pieces.first_mut() else { return Ok(self.record) };
        let answers = self.role == Role::Assistant;
        first.message.token_count = tokens.filter(|tokens| answers && *tokens > 0);
        if let Some(own) = info.system.filter(|own| Some(own.as_str()) != system) {
            first.rest.add_text("system", &own);
        }
        keep(&mut fields, self.id, first)?;
        if let Some(unread) = self.unread {
            first.rest.mark_unread(unread);
        }
        // A request to shorten the session has no words of the person.
        let wordless = first.texts.is_empty() && first.message.attachments.is_empty();
        if self.compacts && first.message.role == Role::User && wordless {
            first.message.role = Role::System;
            first.hidden = true;
        }
        Ok(self.record)
    }

    /// The tokens of all steps, or else those that the message states.
    fn tokens(&self, fields: &Fields<'_>) -> Result<Option<u64>, ImportError> {
        let old = fields.object("metadata")?.object("assistant")?.object("tokens")?;
        let own = fields.object("tokens")?.get("output").as_u64().or(old.get("output").as_u64());
        Ok(self.step_tokens.or(own))
    }

    fn fail(&mut self, text: Cow<'a, str>, rest: &str) {
        let id = format!("{}:error", self.id);
        let mut piece = Piece::new(id.into(), Role::System, self.created);
        piece.own_id = false;
        piece.texts.push(text);
        if rest != "{}" {
            piece.rest.add_json("error", rest);
        }
        if self.record.pieces.is_empty() {
            // The id of the message is for an answer, which may still come.
            piece.parts = std::mem::take(&mut self.notes);
        }
        self.record.pieces.push(piece);
    }
}

/// Keeps the fields of the message in its first piece.
fn keep<'a>(fields: &mut Fields<'a>, id: &str, first: &mut Piece<'a>) -> Result<(), ImportError> {
    fields.remove_text("id", id);
    fields.take("sessionID");
    if matches!(fields.get("role").text(), Some("user" | "assistant")) {
        fields.take("role");
    }
    if let Some(mut summary) = fields.take_object("summary")? {
        without_contents(&mut summary, "diffs")?;
        fields.push_json("summary", &summary.into_json());
    }
    fields.add_to(&mut first.rest, &KEPT);
    Ok(())
}
