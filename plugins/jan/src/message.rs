//! Reads one message, and what it says about those before and behind it.

use satchel_importer::{
    Arena, Fields, ImportError, Parser, Role, json::Value, natural_key, warnings::shortened,
};

use crate::{
    content::Builder,
    fields::{FIELD_READER, time_of},
    file::Files,
    piece::Piece,
    reports::Findings,
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
    let mut fields = FIELD_READER.read(&mut json)?;
    json.end()?;
    if fields.get("role") == Value::Null && fields.get("content") == Value::Null {
        return Err(ImportError::malformed("it is not a message"));
    }
    let mut findings = Findings::default();
    let role = role(&mut fields, &mut findings);
    let mut metadata = fields.take_object("metadata")?;
    let mut builder = Builder::new(role, files, findings);
    builder.content(&mut fields)?;
    if let Some(metadata) = &mut metadata {
        builder.tool_calls(metadata)?;
        builder.documents(metadata)?;
    }
    let (pieces, findings) = builder.finish();
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
