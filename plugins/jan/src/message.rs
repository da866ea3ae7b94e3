//! Takes one message apart into its pieces.

use std::{
    borrow::Cow,
    collections::{BTreeMap, VecDeque},
};

use satchel_importer::{
    Arena, Attachment, AttachmentKind, ImportError, Parser, Role, Source, json::Value, natural_key,
};

use crate::{
    fields::{Fields, list_of, time_of},
    file::{self, Files},
    part::{self, ReadPart},
    piece::Piece,
    reports::{Findings, shortened},
    tool::{self, Tool},
};

/// Bytes of one message. A guest has 128 MiB for it, its decoded texts and its files.
pub(crate) const MAX_LENGTH: usize = 16 * 1024 * 1024;
/// Bytes of an id. A longer one is replaced by a hash.
const MAX_ID: usize = 256;
/// Fields that are known and kept as they are.
const KEPT: [&str; 15] = [
    "assistant_id",
    "attachments",
    "completed_at",
    "created",
    "created_at",
    "error_code",
    "id",
    "metadata",
    "model",
    "role",
    "session_id",
    "status",
    "tool_call_id",
    "type",
    "updated",
];
/// The marks around reasoning in the texts of early versions.
const THINK: (&str, &str) = ("<think>", "</think>");

/// What a message says about the one before it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Link {
    /// Nothing: threads without versions.
    #[default]
    Absent,
    Root,
    Parent(String),
}

/// A message that was taken apart. It has at least one piece.
pub(crate) struct Record<'a> {
    /// The id, or what replaces it.
    pub(crate) key: String,
    /// Whether the key is the id that the program gave.
    pub(crate) given: bool,
    /// Whether the key is made of the words, so that other messages may have the same.
    pub(crate) of_words: bool,
    pub(crate) thread: Option<&'a str>,
    pub(crate) role: Role,
    /// Microseconds.
    pub(crate) time: Option<i64>,
    pub(crate) model: Option<&'a str>,
    pub(crate) link: Link,
    /// The key of the version that the person sees behind it.
    pub(crate) active_child: Option<String>,
    pub(crate) pieces: Vec<Piece<'a>>,
    pub(crate) findings: Findings,
}

/// The key for an id. Ids of pieces have colons, and those of repeated messages a tilde.
pub(crate) fn key_of(id: &str) -> String {
    let plain = id.len() <= MAX_ID && !id.contains([':', '#', '~']);
    if plain { id.to_owned() } else { natural_key(&[Some(id)]) }
}

/// Messages of one line; real lines have two at most.
const MAX_IN_LINE: usize = 1_000;

/// Splits a line into the messages in it: some versions forgot the line break between two. What is behind the limit is one that
/// cannot be read.
pub(crate) fn split<'a>(text: &'a str, arena: &'a Arena) -> Vec<&'a str> {
    let (mut found, mut rest) = (Vec::new(), text);
    while !rest.trim_start().is_empty() {
        let mut json = Parser::new(rest, arena);
        let taken = json.raw_value().is_ok().then(|| json.offset()).and_then(|at| rest.split_at_checked(at));
        match taken {
            Some((one, behind)) if !one.is_empty() && found.len() < MAX_IN_LINE => {
                found.push(one);
                rest = behind;
            }
            _ => {
                found.push(rest);
                break;
            }
        }
    }
    found
}

/// Reads a message. The first pass has no `files`.
pub(crate) fn read<'a>(
    text: &'a str,
    arena: &'a Arena,
    files: Option<&Files<'_>>,
) -> Result<Record<'a>, ImportError> {
    if text.len() > MAX_LENGTH {
        return Err(ImportError::malformed(format!("it is longer than {MAX_LENGTH} bytes")));
    }
    let mut json = Parser::new(text, arena);
    let mut fields = Fields::read(&mut json)?;
    json.end()?;
    if fields.get("role") == Value::Null && fields.get("content") == Value::Null {
        return Err(ImportError::malformed("it is not a message"));
    }
    let mut findings = Findings::default();
    let role = role(&mut fields, &mut findings);
    let mut metadata = fields.take_object("metadata")?;
    let mut builder = Builder { pieces: Vec::new(), role, open: false, files, findings };
    builder.content(&mut fields)?;
    if let Some(metadata) = &mut metadata {
        builder.tool_calls(metadata)?;
        builder.documents(metadata)?;
    }
    if builder.pieces.is_empty() {
        builder.pieces.push(Piece::new(None, role));
    }
    let Builder { pieces, findings, .. } = builder;
    let mut record = Record {
        key: String::new(),
        given: true,
        of_words: false,
        thread: fields.take_text("thread_id"),
        role,
        time: time_of(fields.get("created_at")).or(time_of(fields.get("created"))),
        model: fields.get("model").nonempty_text(),
        link: Link::Absent,
        active_child: None,
        pieces,
        findings,
    };
    if let Some(metadata) = metadata {
        record.read_metadata(&metadata)?;
        fields.push_json("metadata", &metadata.into_json());
    }
    record.name(&mut fields);
    if let Some(first) = record.pieces.first_mut() {
        fields.add_to(&mut first.rest, &KEPT);
    }
    Ok(record)
}

impl<'a> Record<'a> {
    /// Reads the links, the model and the tokens; the metadata are kept as they are.
    fn read_metadata(&mut self, metadata: &Fields<'a>) -> Result<(), ImportError> {
        let named = |key| metadata.get(key).nonempty_text();
        self.link = match (metadata.iter_all().any(|(key, _)| key == "parentId"), named("parentId")) {
            (_, Some(id)) => Link::Parent(key_of(id)),
            (true, None) => Link::Root,
            (false, None) => Link::Absent,
        };
        self.active_child = named("activeChildId").map(key_of);
        self.model = self.model.or_else(|| named("modelId"));
        let (usage, speed) = (metadata.object("usage")?, metadata.object("tokenSpeed")?);
        let counts = [usage.get("outputTokens"), usage.get("completion_tokens"), speed.get("tokenCount")];
        let tokens = counts.into_iter().find_map(Value::as_u64).filter(|tokens| *tokens > 0);
        if self.role == Role::Assistant
            && let Some(first) = self.pieces.first_mut()
        {
            first.tokens = tokens;
        }
        Ok(())
    }

    /// Finds the key, and leaves out the fields that say nothing more.
    fn name(&mut self, fields: &mut Fields<'a>) {
        if let Some(id) = fields.get("id").nonempty_text() {
            self.key = key_of(id);
            self.given = self.key == id;
            if self.given {
                fields.take("id");
            }
        } else {
            let words: Vec<String> = self.pieces.iter().map(|piece| piece.texts.concat()).collect();
            let (time, words) = (self.time.map(|time| time.to_string()), words.join("\n"));
            self.key = natural_key(&[Some(role_name(self.role)), time.as_deref(), Some(&words)]);
            (self.given, self.of_words) = (false, true);
        }
        for (key, usual) in [("object", "thread.message"), ("status", "ready")] {
            if fields.get(key).text() == Some(usual) {
                fields.take(key);
            }
        }
    }
}

/// Takes the role. One that is not known is kept, with a warning.
fn role(fields: &mut Fields<'_>, findings: &mut Findings) -> Role {
    let name = fields.get("role").text();
    let role = match name {
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("system") => Role::System,
        Some("tool") => Role::Tool,
        other => {
            let name = shortened(other.unwrap_or("none"));
            findings.warn(format!("the role {name:?} is unknown; the message is read as an answer"));
            return Role::Assistant;
        }
    };
    fields.take("role");
    role
}

fn role_name(role: Role) -> &'static str {
    match role {
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::System => "system",
        Role::Tool => "tool",
    }
}

/// Builds the pieces of a message.
struct Builder<'a, 'f> {
    pieces: Vec<Piece<'a>>,
    role: Role,
    /// Whether the last piece takes further texts and files.
    open: bool,
    files: Option<&'f Files<'f>>,
    findings: Findings,
}

impl<'a> Builder<'a, '_> {
    fn content(&mut self, fields: &mut Fields<'a>) -> Result<(), ImportError> {
        if let Some(text) = fields.take_text("content") {
            self.words(text, "0", false);
            return Ok(());
        }
        let Some(list) = fields.take_list("content")? else { return Ok(()) };
        for (at, value) in list.into_iter().enumerate() {
            let read = match (value, Fields::of(value, fields.arena())) {
                (Value::Text(text), _) => {
                    Ok(ReadPart { text: Some(text), rest: "{}".to_owned(), ..ReadPart::default() })
                }
                (_, Ok(Some(part))) => part::read(part, self.files).map_err(|error| error.to_string()),
                (_, Ok(None)) => Err("it is not an object".to_owned()),
                (_, Err(error)) => Err(error.to_string()),
            };
            match read {
                Ok(part) => self.part(part, at),
                Err(reason) => self.findings.skip(format!("content[{at}]"), reason),
            }
        }
        Ok(())
    }

    fn part(&mut self, part: ReadPart<'a>, at: usize) {
        if part.unknown {
            self.findings.warn_of_type("a part", part.kind);
        }
        let suffix = at.to_string();
        if let Some(tool) = part.tool {
            self.tool(tool, &suffix, part.rest);
        } else {
            let says = part.text.is_some() || !part.files.is_empty();
            if let Some(text) = part.text {
                self.words(text, &suffix, part.thought);
            }
            if !part.files.is_empty() {
                self.shown(&suffix).files.extend(part.files);
            }
            if !says && self.pieces.is_empty() {
                // Its fields need a place, and the id of the message is that of the first piece.
                self.shown(&suffix);
            }
            if let Some(piece) = self.pieces.last_mut() {
                piece.parts.push(part.rest);
            }
        }
        if let (Some(field), Some(piece)) = (part.unread, self.pieces.last_mut()) {
            piece.rest.mark_unread(field);
        }
    }

    /// Adds a text. Early versions wrote the reasoning of a model in front of its answer.
    fn words(&mut self, text: &'a str, suffix: &str, thought: bool) {
        let inside =
            text.trim_start().strip_prefix(THINK.0).filter(|_| self.role == Role::Assistant && !thought);
        let (reasoning, answer, behind) = match inside.map(|inside| inside.split_once(THINK.1)) {
            Some(Some((reasoning, answer))) => (reasoning, answer.trim_start(), format!("{suffix}:text")),
            // The model was stopped while it was reasoning.
            Some(None) => (inside.unwrap_or_default(), "", suffix.to_owned()),
            None if thought => (text, "", suffix.to_owned()),
            None => ("", text, suffix.to_owned()),
        };
        if !reasoning.trim().is_empty() {
            let mut piece = self.begin(suffix, Role::Assistant);
            piece.thought = true;
            piece.texts.push(reasoning.into());
            self.pieces.push(piece);
            self.open = false;
        }
        if !answer.is_empty() {
            let piece = self.shown(&behind);
            piece.texts.push(answer.into());
            let listed = file::listed(answer);
            piece.files.extend(listed);
        }
    }

    /// The piece that takes texts and files.
    fn shown(&mut self, suffix: &str) -> &mut Piece<'a> {
        if !self.open || self.pieces.is_empty() {
            let piece = self.begin(suffix, self.role);
            self.pieces.push(piece);
            self.open = true;
        }
        let last = self.pieces.len() - 1;
        &mut self.pieces[last]
    }

    /// A piece; the first one has the id of the message.
    fn begin(&self, suffix: &str, role: Role) -> Piece<'a> {
        Piece::new((!self.pieces.is_empty()).then(|| suffix.to_owned()), role)
    }

    fn tool(&mut self, tool: Tool<'a>, suffix: &str, rest: String) {
        let mut piece = self.begin(suffix, Role::Assistant);
        piece.calls.push(tool.call);
        piece.parts.push(rest);
        self.pieces.push(piece);
        if let Some(answer) = tool.answer {
            let mut piece = Piece::new(Some(format!("{suffix}:result")), Role::Tool);
            piece.texts.push(answer);
            self.pieces.push(piece);
        }
        self.open = false;
    }

    /// The calls that early versions kept in the metadata; the program shows them behind the text.
    fn tool_calls(&mut self, metadata: &mut Fields<'a>) -> Result<(), ImportError> {
        let Some(list) = metadata.take_list("tool_calls")? else { return Ok(()) };
        for (at, value) in list.into_iter().enumerate() {
            let place = format!("metadata.tool_calls[{at}]");
            match Fields::of(value, metadata.arena()) {
                Ok(Some(mut entry)) => match tool::of_metadata(&mut entry) {
                    Ok(tool) => self.tool(tool, &format!("call:{at}"), entry.into_json()),
                    Err(error) => self.findings.skip(place, error),
                },
                Ok(None) => self.findings.skip(place, "it is not an object"),
                Err(error) => self.findings.skip(place, error),
            }
        }
        Ok(())
    }

    /// The documents whose text the program gave to the model with a prompt.
    fn documents(&mut self, metadata: &mut Fields<'a>) -> Result<(), ImportError> {
        let Some(list) = metadata.take_list("inline_file_contents")? else { return Ok(()) };
        let mut left = Vec::new();
        // The places of files without a text, by their names: there may be many of both.
        let mut without_text: BTreeMap<String, VecDeque<usize>> = BTreeMap::new();
        let files = self.first().files.iter().enumerate().filter(|(_, file)| file.source.is_none());
        for (at, name) in files.filter_map(|(at, file)| Some((at, file.name.as_deref()?))) {
            without_text.entry(name.to_owned()).or_default().push_back(at);
        }
        for value in list {
            let entry = Fields::of(value, metadata.arena())?;
            let Some((mut entry, name)) = entry.and_then(|mut entry| {
                let name = entry.take_text("name")?;
                Some((entry, name))
            }) else {
                left.push(value.json().into_owned());
                continue;
            };
            let text = entry.take_text("content");
            let source = text.map(|text| Source::Bytes(Cow::Borrowed(text.as_bytes())));
            let files = &mut self.first().files;
            let places = without_text.entry(name.to_owned()).or_default();
            match places.front().and_then(|at| files.get_mut(*at)) {
                Some(file) => file.source = source,
                None => {
                    places.push_back(files.len());
                    files.push(Attachment {
                        kind: AttachmentKind::of(None, Some(name)),
                        name: Some(name.into()),
                        source,
                        ..Attachment::default()
                    });
                }
            }
            places.pop_front_if(|at| files.get(*at).is_some_and(|file| file.source.is_some()));
            left.push(entry.into_json());
        }
        if left.iter().any(|entry| entry != "{}") {
            metadata.push_json("inline_file_contents", &list_of(&left));
        }
        Ok(())
    }

    fn first(&mut self) -> &mut Piece<'a> {
        if self.pieces.is_empty() {
            self.shown("0");
        }
        &mut self.pieces[0]
    }
}
