//! Reads conversation documents.

use std::io::{self, Read};

use super::{
    LARGEST_CONVERSATION, SalvageReport, UnreadableEntry,
    fields::Fields,
    path::Path,
    root::{self, Event, Heading, Item, RootWalk},
    sink::{Sink, UNKNOWN_KEY, Version},
    stream::StreamError,
    values::{self, ValueRef},
};
use crate::{
    conversation::{
        Attachment, AttachmentKind, Citation, Content, ContentKind, Conversation, ConversationHeader,
        ConversationTemporal, ImportMetadata, Message, Part, PartKind, Participant, Provider, Role, SCHEMA,
        ToolCall,
    },
    issue::Issue,
    json::tree::Node,
    raw::RawObject,
};

const LISTS: &[&str] = &["messages"];
/// Required keys besides `schema` and `schema_version`, which the heading checks.
const REQUIRED: &[&str] = &["id", "provider", "temporal", "messages"];
/// Unreadable messages of a document at most: the reason for each is held in memory, and no program writes so many.
const MAX_UNREADABLE: usize = 100_000;
/// Approximate bytes that a message takes in memory besides its text.
const MESSAGE_BYTES: usize = 700;
/// The same for a file, citation, call, part or participant.
const MEMBER_BYTES: usize = 200;
/// The same for an id or tag in a list.
const NAME_BYTES: usize = 60;

#[derive(Default)]
struct Document {
    heading: Heading,
    id: Option<String>,
    provider: Option<Provider>,
    title: Option<String>,
    temporal: Option<ConversationTemporal>,
    participants: Vec<Participant>,
    messages: Option<Vec<Message>>,
    model: Option<String>,
    system_instruction: Option<String>,
    is_archived: bool,
    tags: Vec<String>,
    raw_metadata: Option<RawObject>,
    import_metadata: Option<ImportMetadata>,
    /// Required keys that are present, readable or not.
    present: Vec<&'static str>,
    report: SalvageReport,
    /// There are more than [`MAX_UNREADABLE`] unreadable messages.
    too_many_unreadable: bool,
    /// Approximate bytes that the lists take in memory besides their texts.
    held: usize,
}

pub(super) fn read(
    input: impl Read,
    salvage: bool,
) -> io::Result<(Option<Conversation>, Vec<Issue>, SalvageReport)> {
    let mut sink = Sink::default();
    let mut walk = RootWalk::new(input, LISTS, salvage, &mut sink)?;
    let mut document = Document::default();
    if let Err(error) = document.fill(&mut walk, &mut sink) {
        let problem = error.report(&mut sink)?;
        if !salvage {
            return Ok((None, sink.finish(Version::Current).0, SalvageReport::default()));
        }
        document.report.broken = Some(problem);
    }
    if salvage {
        document.messages.get_or_insert_default();
    }
    Ok(document.finish(sink, walk.duplicate_keys))
}

impl Document {
    fn fill<R: Read>(&mut self, walk: &mut RootWalk<R>, sink: &mut Sink) -> Result<(), StreamError> {
        let root = Path::ROOT;
        let list = root.key("messages");
        while let Some(event) = walk.next(sink)? {
            match event {
                Event::List(_) => {
                    self.messages = Some(Vec::new());
                    self.present.push("messages");
                }
                Event::Item(Item { index, node, offset, duplicate_key, .. }) => {
                    let value = ValueRef { node: &node, path: &list.index(index), rule: "R-25.1" };
                    let message = message(value, sink).filter(|_| !duplicate_key);
                    self.hold(message.as_ref().map_or(0, bytes_beside_text), offset)?;
                    match message {
                        Some(message) => self.messages.get_or_insert_default().push(message),
                        None => self.skip("messages", index, sink.reason()),
                    }
                }
                Event::Broken(list, index, problem) => {
                    sink.push_json(&problem);
                    self.skip(list, index, problem.to_string());
                }
                Event::Field(key, node) => {
                    self.present.extend(REQUIRED.iter().copied().find(|required| *required == key));
                    if !self.heading.take(&key, &node, sink) {
                        self.field(&key, &node, sink);
                    }
                }
            }
            if self.report.unreadable.len() > MAX_UNREADABLE {
                self.too_many_unreadable = true;
                sink.error("R-25.1", &list, format!("more than {MAX_UNREADABLE} messages cannot be read"));
                break;
            }
        }
        Ok(())
    }

    fn skip(&mut self, list: &'static str, index: usize, reason: String) {
        self.report.unreadable.push(UnreadableEntry { list, index, reason });
    }

    /// Adds `more` to the bytes that are held besides the text; `read` bytes of the text were read so far.
    fn hold(&mut self, more: usize, read: usize) -> io::Result<()> {
        self.held += more;
        if self.held + read <= LARGEST_CONVERSATION {
            return Ok(());
        }
        let limit = LARGEST_CONVERSATION >> 20;
        Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!(
                "a conversation is held in memory, and this one would take more than {limit} MiB, as some 240,000 short messages \
                 do; divide it into several documents"
            ),
        ))
    }

    fn field(&mut self, key: &str, node: &Node<'_>, sink: &mut Sink) {
        let root = Path::ROOT;
        let path = root.key(key);
        let value = |rule| ValueRef { node, path: &path, rule };
        let null = *node == Node::Null;
        match key {
            "id" => self.id = values::text(value("R-25.1"), sink),
            "provider" => self.provider = provider(value("R-25.1"), sink),
            "temporal" => self.temporal = temporal(value("R-25.1"), sink),
            "messages" => sink.error("R-25.1", &path, format!("is {}, not a list", node.kind())),
            "title" if !null => self.title = values::text(value("R-25.1"), sink),
            "model" if !null => self.model = values::text(value("R-25.1"), sink),
            "system_instruction" if !null => self.system_instruction = values::text(value("R-25.1"), sink),
            "title" | "model" | "system_instruction" => {}
            "participants" => {
                self.participants = values::list(value("R-25.4"), sink, participant).unwrap_or_default();
                self.held += self.participants.len() * MEMBER_BYTES;
            }
            "is_archived" => self.is_archived = values::boolean(value("R-25.1"), sink).unwrap_or_default(),
            "tags" => {
                self.tags = values::list(value("R-4.4"), sink, values::text).unwrap_or_default();
                self.held += self.tags.len() * NAME_BYTES;
            }
            "raw_metadata" => self.raw_metadata = values::raw(value("R-25.8"), sink),
            "import_metadata" => self.import_metadata = import_metadata(value("R-25.6"), sink),
            _ => root::unknown_field(key, node, sink),
        }
    }

    fn finish(
        self,
        mut sink: Sink,
        duplicate_keys: bool,
    ) -> (Option<Conversation>, Vec<Issue>, SalvageReport) {
        let version = self.heading.check(SCHEMA, &mut sink);
        for key in REQUIRED.iter().filter(|key| !self.present.contains(key)) {
            sink.error("R-25.1", &Path::ROOT.key(key), "is missing");
        }
        let (issues, unknown) = sink.finish(version);
        let header = match (self.id, self.provider, self.temporal) {
            (Some(id), Some(provider), Some(temporal)) => Some(ConversationHeader {
                id,
                provider,
                title: self.title,
                temporal,
                participants: self.participants,
                model: self.model,
                system_instruction: self.system_instruction,
                is_archived: self.is_archived,
                tags: self.tags,
                raw_metadata: self.raw_metadata,
                import_metadata: self.import_metadata,
            }),
            _ => None,
        };
        let whole = version != Version::Unsupported && !duplicate_keys && !self.too_many_unreadable;
        let document = header.filter(|_| whole).zip(self.messages).map(|(header, messages)| Conversation {
            schema_version: self.heading.schema_version.unwrap_or_default(),
            header,
            messages,
            unknown,
        });
        (document, issues, self.report)
    }
}

/// Approximate bytes that a message takes in memory besides its text.
fn bytes_beside_text(message: &Message) -> usize {
    let Message { content, children_ids, attachments, citations, tool_calls, .. } = message;
    let parts = content.as_ref().map_or(0, |content| content.parts.len());
    let members = parts + attachments.len() + citations.len() + tool_calls.len();
    MESSAGE_BYTES + members * MEMBER_BYTES + children_ids.len() * NAME_BYTES
}

fn provider(value: ValueRef<'_>, sink: &mut Sink) -> Option<Provider> {
    const KEYS: &[&str] = &["name", "conversation_id", "account_id", "export_format_version"];
    let mut fields = Fields::open(value, sink, KEYS)?;
    let name = fields.required("name", value.rule, values::text);
    let conversation_id = fields.nullable("conversation_id", value.rule, values::text);
    let account_id = fields.nullable("account_id", value.rule, values::text);
    let export_format_version = fields.nullable("export_format_version", value.rule, values::text);
    Some(Provider { name: name?, conversation_id, account_id, export_format_version })
}

fn participant(value: ValueRef<'_>, sink: &mut Sink) -> Option<Participant> {
    let mut fields = Fields::open(value, sink, &["role", "name", "provider_id"])?;
    let role = read_role(&mut fields);
    let name = fields.nullable("name", value.rule, values::text);
    let provider_id = fields.nullable("provider_id", value.rule, values::text);
    Some(Participant { role: role?, name, provider_id })
}

/// Reads a role. Any other name is an issue; `human` and other spellings of PAM's own roles are read as what they mean, and a role
/// of a later version as `system`, so that its words are attributed to neither person nor model.
fn read_role(fields: &mut Fields<'_>) -> Option<Role> {
    let known = fields.required("role", "R-25.4", values::name);
    let meant = || {
        let name = fields.text("role")?.trim().to_ascii_lowercase();
        if name == "human" { Some(Role::User) } else { name.parse().ok() }
    };
    known.or_else(meant).or(fields.has("role").then_some(Role::System))
}

fn message(value: ValueRef<'_>, sink: &mut Sink) -> Option<Message> {
    let start = sink.unknown_count();
    let message = message_fields(value, sink);
    let unknown = sink.take_unknown_since(start, value.path);
    let mut message = message?;
    if !unknown.is_empty() {
        let raw = message.raw_metadata.take().unwrap_or_default();
        message.raw_metadata = Some(raw.with(UNKNOWN_KEY, &unknown.into()));
    }
    Some(message)
}

fn message_fields(value: ValueRef<'_>, sink: &mut Sink) -> Option<Message> {
    const KEYS: &[&str] = &[
        "id",
        "provider_message_id",
        "role",
        "content",
        "created_at",
        "parent_id",
        "children_ids",
        "model",
        "is_thought",
        "token_count",
        "attachments",
        "citations",
        "tool_calls",
        "raw_metadata",
    ];
    let mut fields = Fields::open(value, sink, KEYS)?;
    let id = fields.required("id", value.rule, values::text);
    let provider_message_id = fields.nullable("provider_message_id", value.rule, values::text);
    let role = read_role(&mut fields);
    let content = fields.optional("content", "R-25.5", content);
    let created_at = fields.required("created_at", value.rule, values::time);
    let parent_id = fields.nullable("parent_id", "R-25.3", values::text);
    let children_ids = fields.list("children_ids", "R-25.3", values::text);
    let model = fields.nullable("model", value.rule, values::text);
    let is_thought = fields.optional("is_thought", value.rule, values::boolean).unwrap_or_default();
    let token_count = fields.nullable("token_count", "R-25.9", values::count);
    let attachments = fields.list("attachments", "R-25.9", attachment);
    let citations = fields.list("citations", "R-25.9", citation);
    let tool_calls = fields.list("tool_calls", "R-25.9", tool_call);
    let raw_metadata = fields.optional("raw_metadata", "R-25.8", values::raw);
    Some(Message {
        id: id?,
        provider_message_id,
        role: role?,
        content,
        created_at: created_at?,
        parent_id,
        children_ids,
        model,
        is_thought,
        token_count,
        attachments,
        citations,
        tool_calls,
        raw_metadata,
    })
}

fn content(value: ValueRef<'_>, sink: &mut Sink) -> Option<Content> {
    let mut fields = Fields::open(value, sink, &["type", "text", "parts"])?;
    let known = fields.required("type", value.rule, values::name);
    let text = fields.nullable("text", value.rule, values::text);
    let parts = fields.list("parts", value.rule, part);
    let default = if parts.is_empty() { ContentKind::Text } else { ContentKind::Multipart };
    Some(Content { kind: known.unwrap_or(default), text, parts })
}

fn part(value: ValueRef<'_>, sink: &mut Sink) -> Option<Part> {
    let mut fields = Fields::open(value, sink, &["type", "text", "language", "mime_type", "ref"])?;
    let known = fields.required("type", value.rule, values::name);
    let kind = known.or(fields.has("type").then_some(PartKind::File));
    let text = fields.nullable("text", value.rule, values::text);
    let language = fields.nullable("language", value.rule, values::text);
    let mime_type = fields.nullable("mime_type", value.rule, values::text);
    let reference = fields.nullable("ref", value.rule, values::text);
    Some(Part { kind: kind?, text, language, mime_type, reference })
}

fn attachment(value: ValueRef<'_>, sink: &mut Sink) -> Option<Attachment> {
    const KEYS: &[&str] = &["type", "name", "mime_type", "size_bytes", "ref", "provider_id"];
    let mut fields = Fields::open(value, sink, KEYS)?;
    let known = fields.required("type", value.rule, values::name);
    let kind = known.or(fields.has("type").then_some(AttachmentKind::File));
    let name = fields.nullable("name", value.rule, values::text);
    let mime_type = fields.nullable("mime_type", value.rule, values::text);
    let size_bytes = fields.nullable("size_bytes", value.rule, values::count);
    let reference = fields.nullable("ref", value.rule, values::text);
    let provider_id = fields.nullable("provider_id", value.rule, values::text);
    Some(Attachment { kind: kind?, name, mime_type, size_bytes, reference, provider_id })
}

fn citation(value: ValueRef<'_>, sink: &mut Sink) -> Option<Citation> {
    let mut fields = Fields::open(value, sink, &["title", "url", "snippet"])?;
    Some(Citation {
        title: fields.nullable("title", value.rule, values::text),
        url: fields.nullable("url", value.rule, values::text),
        snippet: fields.nullable("snippet", value.rule, values::text),
    })
}

fn tool_call(value: ValueRef<'_>, sink: &mut Sink) -> Option<ToolCall> {
    let mut fields = Fields::open(value, sink, &["id", "name", "input", "output"])?;
    let id = fields.nullable("id", value.rule, values::text);
    let name = fields.required("name", value.rule, values::text);
    let input = fields.nullable("input", value.rule, values::tool_input);
    let output = fields.nullable("output", value.rule, values::text);
    Some(ToolCall { id, name: name?, input, output })
}

pub(super) fn temporal(value: ValueRef<'_>, sink: &mut Sink) -> Option<ConversationTemporal> {
    let mut fields = Fields::open(value, sink, &["created_at", "updated_at"])?;
    let created_at = fields.required("created_at", value.rule, values::time);
    let updated_at = fields.nullable("updated_at", value.rule, values::time);
    Some(ConversationTemporal { created_at: created_at?, updated_at })
}

fn import_metadata(value: ValueRef<'_>, sink: &mut Sink) -> Option<ImportMetadata> {
    const KEYS: &[&str] = &["importer", "importer_version", "imported_at", "source_file", "source_checksum"];
    let mut fields = Fields::open(value, sink, KEYS)?;
    Some(ImportMetadata {
        importer: fields.nullable("importer", value.rule, values::text),
        importer_version: fields.nullable("importer_version", value.rule, values::text),
        imported_at: fields.nullable("imported_at", "A-28", values::time),
        source_file: fields.nullable("source_file", value.rule, values::text),
        source_checksum: fields.nullable("source_checksum", "R-25.9", values::digest),
    })
}
