//! Takes the steps of a version apart. Each text, thought, call and result becomes a piece.

use std::borrow::Cow;

use satchel_importer::{
    Citation, Fields, ImportError, JsonError, Role,
    json::{EMPTY_OBJECT, Value, ValueFields, array_of},
    warnings::shortened,
};

use crate::{
    budget::{Budget, TOO_MANY},
    fields::FIELD_READER,
    files::Files,
    layout,
    part::{self, ReadPart, What},
    piece::{IdSource, Piece},
    reports::Findings,
};

/// Bytes of an id. A longer one counts as absent.
const MAX_ID: usize = 256;
/// Fields of steps that are known and kept as they are.
const KEPT: [&str; 19] = [
    "callId",
    "citedText",
    "debugInfo",
    "defaultShouldIncludeInContext",
    "fileIdentifier",
    "fileName",
    "genInfo",
    "indentation",
    "lineNumber",
    "pageNumber",
    "prefix",
    "roleOverride",
    "shouldIncludeInContext",
    "source",
    "statusState",
    "stepIdentifier",
    "style",
    "suffix",
    "type",
];
/// Settings of a prediction that repeat the template and all tools of a model with each step.
const BULK: [&str; 3] = ["llm.prediction.promptTemplate", "llm.prediction.tools", "llm.load.promptTemplate"];
/// A citation of a file without a name.
const UNNAMED: &str = "a file";

/// What the parts of one step, or of a version without steps, have in common.
pub(crate) struct Block<'a> {
    pub(crate) id: Option<&'a str>,
    pub(crate) index: usize,
    pub(crate) role: Role,
    /// Microseconds.
    pub(crate) time: Option<i64>,
    pub(crate) model: Option<&'a str>,
    pub(crate) thought: bool,
    pub(crate) tokens: Option<u64>,
    pub(crate) streamed: bool,
}

/// Builds the pieces of one version.
pub(crate) struct Builder<'a, 'f> {
    pub(crate) pieces: Vec<Piece<'a>>,
    /// What belongs to the first piece, which has not come yet.
    notes: Vec<String>,
    citations: Vec<Citation<'a>>,
    findings: &'f mut Findings,
    budget: &'f mut Budget,
    files: Option<&'f Files<'f>>,
    /// The version, for reports.
    place: String,
}

/// The role with this name.
pub(crate) fn role_of(name: &str) -> Option<Role> {
    match name {
        "user" => Some(Role::User),
        "assistant" => Some(Role::Assistant),
        "system" => Some(Role::System),
        "tool" => Some(Role::Tool),
        _ => None,
    }
}

/// The id of a step, if it can be one. A colon would make it look like the id of a part.
pub(crate) fn id_of<'a>(step: &Fields<'a>) -> Option<&'a str> {
    let id = step.get("stepIdentifier").nonempty_text()?;
    Some(id).filter(|id| id.len() <= MAX_ID && !id.contains([':', '#', '~']))
}

impl<'a, 'f> Builder<'a, 'f> {
    pub(crate) fn new(
        findings: &'f mut Findings,
        budget: &'f mut Budget,
        files: Option<&'f Files<'f>>,
        place: String,
    ) -> Self {
        let (pieces, notes, citations) = (Vec::new(), Vec::new(), Vec::new());
        Self { pieces, notes, citations, findings, budget, files, place }
    }

    /// Adds the step with this number. One that cannot be read costs only itself.
    pub(crate) fn step(&mut self, index: usize, step: ValueFields<'a>, role: Role) {
        let reason = match self.budget.take_item().then_some(step.fields) {
            None => TOO_MANY.to_owned(),
            Some(Ok(Some(step))) => match self.read_step(index, step, role) {
                Ok(()) => return,
                Err(error) => error.message,
            },
            Some(Ok(None)) => "it is not an object".to_owned(),
            Some(Err(error)) => error.to_string(),
        };
        self.findings.skip(|| format!("{}.steps[{index}]", self.place), reason);
    }

    fn read_step(&mut self, index: usize, mut step: Fields<'a>, role: Role) -> Result<(), ImportError> {
        let kind = step.get("type").nonempty_text();
        match kind {
            Some("contentBlock") => self.content_block(index, step, role),
            Some("toolStatus" | "status" | "debugInfoBlock") => {
                self.note_unread(&step);
                self.note(step.into_json());
                Ok(())
            }
            Some("citationBlock") => {
                let citation = citation(&step)?;
                match self.pieces.last_mut() {
                    Some(piece) => piece.citations.push(citation),
                    None => self.citations.push(citation),
                }
                self.note_unread(&step);
                self.note(step.into_json());
                Ok(())
            }
            other => {
                self.findings.warn_of_type("a step", other);
                if step.get("content") == Value::Null
                    && let Some(text) = step.take_text("text")
                {
                    let mut part = FIELD_READER.none(step.arena());
                    part.push("type", Value::Text("text"));
                    part.push("text", Value::Text(text));
                    let part = part.into_json();
                    step.push_json("content", &format!("[{part}]"));
                }
                self.content_block(index, step, role)
            }
        }
    }

    fn content_block(&mut self, index: usize, mut step: Fields<'a>, role: Role) -> Result<(), ImportError> {
        let block = self.block(index, &mut step, role)?;
        let content = match step.get("content") {
            Value::Null => Vec::new(),
            text @ Value::Text(_) => {
                step.take("content");
                vec![ValueFields { value: text, fields: Ok(None) }]
            }
            // An object has no parts, and stays in the step.
            Value::Raw(_) => step.take_array_fields("content")?.unwrap_or_default(),
        };
        let before = self.pieces.len();
        let left = self.parts(&block, content);
        if left.iter().any(|part| part != EMPTY_OBJECT) {
            step.push_json("content", &array_of(&left));
        }
        self.keep_step(step, before, &block);
        Ok(())
    }

    /// What the parts of a step have in common.
    fn block(&mut self, index: usize, step: &mut Fields<'a>, role: Role) -> Result<Block<'a>, ImportError> {
        let id = id_of(step);
        let other = step.get("roleOverride").nonempty_text();
        if let Some(name) = other.filter(|name| role_of(name).is_none()) {
            self.findings.warn(format!("the role {:?} of a step is unknown; it is ignored", shortened(name)));
        }
        let mut block = Block {
            id,
            index,
            role: other.and_then(role_of).unwrap_or(role),
            time: time_of(id),
            model: None,
            thought: step.object("style")?.get("type").text() == Some("thinking"),
            tokens: None,
            streamed: true,
        };
        if let Some(mut info) = step.take_object("genInfo")? {
            block.model = model_in(&info);
            block.tokens = info.object("stats")?.get("predictedTokensCount").as_u64();
            without_bulk(&mut info)?;
            step.push_json("genInfo", &info.into_json());
        }
        Ok(block)
    }

    /// Keeps what is left of a step in its first piece.
    fn keep_step(&mut self, mut step: Fields<'a>, before: usize, block: &Block<'a>) {
        self.note_unread(&step);
        if step.get("type").text() == Some("contentBlock") {
            step.take("type");
        }
        let Some(first) = self.pieces.get_mut(before) else { return self.note(step.into_json()) };
        first.tokens = block.tokens;
        // The version has the id of its first step, and other steps give theirs to a piece.
        if matches!(first.name, IdSource::Step(_)) || (block.index == 0 && block.id.is_some()) {
            step.take("stepIdentifier");
        }
        first.steps.push(step.into_json());
    }

    /// Adds the parts of a block; one that cannot be read costs only itself. Returns what belongs to no piece, as JSON texts.
    pub(crate) fn parts(&mut self, block: &Block<'a>, parts: Vec<ValueFields<'a>>) -> Vec<String> {
        let (before, mut left, mut open) = (self.pieces.len(), Vec::new(), false);
        for (at, value) in parts.into_iter().enumerate() {
            let place = || format!("{}.steps[{}].content[{at}]", self.place, block.index);
            let outcome =
                if self.budget.take_item() { self.read_part(value) } else { Err(TOO_MANY.to_owned()) };
            let read = match outcome {
                Ok(read) => read,
                Err(reason) => {
                    self.findings.skip(place, reason);
                    continue;
                }
            };
            if read.unknown {
                self.findings.warn_of_type("a part", read.kind);
            }
            let is_note = matches!(read.what, What::Note);
            if !is_note {
                let shown = matches!(read.what, What::Text(_) | What::File(_));
                if !(shown && open) {
                    if !self.budget.take_message() {
                        self.findings.skip(place, TOO_MANY);
                        continue;
                    }
                    self.begin(block, at, before, &read.what);
                }
                open = shown;
            }
            let Some(piece) = self.pieces.get_mut(before..).and_then(<[_]>::last_mut) else {
                read.unread.iter().for_each(|field| self.findings.warn_of_field(field, "a part"));
                left.push(read.rest);
                continue;
            };
            piece.parts.append(&mut left);
            add(piece, read);
        }
        left
    }

    fn read_part(&self, value: ValueFields<'a>) -> Result<ReadPart<'a>, String> {
        if let Value::Text(text) = value.value {
            let rest = EMPTY_OBJECT.to_owned();
            return Ok(ReadPart { what: What::Text(text), unknown: false, kind: None, unread: None, rest });
        }
        let fields = value.fields.map_err(|error| error.to_string())?;
        let fields = fields.ok_or("it is not an object")?;
        part::read(fields, self.files).map_err(|error| error.to_string())
    }

    /// Begins a piece with the part `at`. `before` is the number of pieces before the block.
    fn begin(&mut self, block: &Block<'a>, at: usize, before: usize, what: &What<'a>) {
        let name = match block.id {
            _ if self.pieces.is_empty() => IdSource::Version,
            Some(id) if self.pieces.len() == before => IdSource::Step(id),
            Some(id) => IdSource::PartOf(id, at),
            None => IdSource::Numbered(block.index, at),
        };
        let role = match what {
            What::Call(_) => Role::Assistant,
            What::Answer(_) => Role::Tool,
            What::Text(_) | What::File(_) | What::Note => block.role,
        };
        let mut piece = Piece::new(name, role, block.time);
        piece.model = block.model;
        piece.streamed = block.streamed;
        piece.thought = block.thought && role == Role::Assistant && matches!(what, What::Text(_));
        self.push(piece);
    }

    /// Adds the only piece of a version that shows nothing.
    pub(crate) fn push_empty(&mut self, role: Role, time: Option<i64>) -> Result<(), ImportError> {
        if !self.budget.take_message() {
            return Err(ImportError::malformed(TOO_MANY));
        }
        self.push(Piece::new(IdSource::Version, role, time));
        Ok(())
    }

    /// Adds a piece. The first one takes what came before it.
    fn push(&mut self, mut piece: Piece<'a>) {
        piece.steps.append(&mut self.notes);
        piece.citations.append(&mut self.citations);
        self.pieces.push(piece);
    }

    fn note(&mut self, rest: String) {
        match self.pieces.last_mut() {
            Some(piece) => piece.steps.push(rest),
            None => self.notes.push(rest),
        }
    }

    fn note_unread(&mut self, step: &Fields<'a>) {
        let is_role = |value: Value<'_>| value.text().and_then(role_of).is_some();
        for (field, _) in step.iter().filter(|(key, value)| !KEPT.contains(key) && is_role(*value)) {
            let field = shortened(field);
            self.findings
                .warn(format!("the field {field:?} of a step is unknown; it may say whose words they are"));
        }
        if let Some(field) = step.unread(&KEPT) {
            self.findings.warn_of_field(field, "a step");
        }
    }
}

/// Adds a part to its piece.
fn add<'a>(piece: &mut Piece<'a>, part: ReadPart<'a>) {
    match part.what {
        What::Text(text) => piece.texts.push(text.into()),
        What::File(file) => piece.files.push(*file),
        What::Call(call) => piece.calls.push(*call),
        What::Answer(text) => piece.texts.extend(text),
        What::Note => {}
    }
    piece.parts.push(part.rest);
    if let Some(field) = part.unread {
        piece.rest.mark_unread(field);
    }
}

/// The time in the id of a step, in microseconds.
pub(crate) fn time_of(id: Option<&str>) -> Option<i64> {
    id.and_then(layout::step_time).map(|time| time * 1000)
}

/// The model that wrote a step.
fn model_in<'a>(info: &Fields<'a>) -> Option<&'a str> {
    ["identifier", "indexedModelIdentifier"].into_iter().find_map(|key| info.get(key).nonempty_text())
}

/// Removes the settings that have no other value in any step and are far longer than the answers.
fn without_bulk(info: &mut Fields<'_>) -> Result<(), JsonError> {
    for key in ["loadModelConfig", "predictionConfig"] {
        let Some(mut config) = info.take_object(key)? else { continue };
        if let Some(list) = config.take_array("fields")? {
            let mut kept = Vec::with_capacity(list.len());
            for value in list {
                let Some(mut field) = FIELD_READER.of(value, config.arena())? else {
                    kept.push(value.json().into_owned());
                    continue;
                };
                if field.get("key").text().is_some_and(|key| BULK.contains(&key)) {
                    field.take("value");
                }
                kept.push(field.into_json());
            }
            config.push_json("fields", &array_of(&kept));
        }
        info.push_json(key, &config.into_json());
    }
    Ok(())
}

/// A place in a file that an answer is based on.
fn citation<'a>(step: &Fields<'a>) -> Result<Citation<'a>, JsonError> {
    let source = step.object("source")?;
    let name = [step.get("fileName"), source.get("fileName")].into_iter().find_map(Value::nonempty_text);
    Ok(Citation {
        title: Some(Cow::Borrowed(name.unwrap_or(UNNAMED))),
        snippet: step.get("citedText").nonempty_text().map(Cow::Borrowed),
        ..Citation::default()
    })
}
