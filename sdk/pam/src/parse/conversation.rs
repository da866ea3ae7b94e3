//! Reads conversation documents.

use std::io::{self, Read};

use super::{
    LARGEST_CONVERSATION, LeftOut, Remains,
    fields::Fields,
    json_issue,
    path::Path,
    root::{self, Heading, Item, Part, Walk},
    sink::{Sink, UNKNOWN_KEY, Version},
    store::{conversation_temporal, extend},
    stream::Fault,
    values,
};
use crate::{
    conversation::{
        Attachment, AttachmentKind, Citation, Content, ContentKind, Conversation, ConversationHeader,
        ConversationTemporal, ImportMetadata, Message, Part as ContentPart, PartKind, Participant, Provider,
        Role, SCHEMA, ToolCall,
    },
    issue::Issue,
    json::tree::Node,
    raw::RawObject,
};

const LISTS: &[&str] = &["messages"];
/// Messages that may be unreadable: what is wrong with each is held, and a document of many more is none that any program wrote.
const MOST_UNREADABLE: usize = 100_000;
/// Bytes that a message takes in memory beside its text, about, until it is checked or stored.
const OF_A_MESSAGE: usize = 700;
/// The same of a file, citation, call, part or participant.
const OF_A_MEMBER: usize = 200;
/// The same of an id or tag in a list.
const OF_A_NAME: usize = 60;

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
    /// Required fields that stood there, readable or not.
    present: Vec<&'static str>,
    remains: Remains,
    /// Too much of it is unreadable.
    hopeless: bool,
    /// Bytes that its lists take in memory beside their texts, about.
    held: usize,
}

pub(super) fn read(
    input: impl Read,
    salvage: bool,
) -> io::Result<(Option<Conversation>, Vec<Issue>, Remains)> {
    let mut sink = Sink::default();
    let mut walk = Walk::new(input, LISTS, salvage, &mut sink)?;
    let mut document = Document::default();
    match document.fill(&mut walk, &mut sink) {
        Ok(()) => {}
        Err(Fault::Io(error)) => return Err(error),
        Err(Fault::Json(problem)) => {
            sink.push(json_issue(&problem));
            if !salvage {
                return Ok((None, sink.finish(Version::Ours).0, Remains::default()));
            }
            document.remains.broken = Some(problem);
        }
    }
    if salvage {
        document.messages.get_or_insert_default();
    }
    Ok(document.finish(sink, walk.ambiguous))
}

impl Document {
    fn fill<R: Read>(&mut self, walk: &mut Walk<R>, sink: &mut Sink) -> Result<(), Fault> {
        let root = Path::ROOT;
        let list = root.key("messages");
        while let Some(part) = walk.next(sink)? {
            match part {
                Part::List(_) => {
                    self.messages = Some(Vec::new());
                    self.present.push("messages");
                }
                Part::Item(Item { index, node, offset, twice, .. }) => {
                    let message = message(&node, &list.index(index), "R-25.1", sink);
                    let message = message.filter(|_| !twice);
                    self.hold(message.as_ref().map_or(0, beside_text), offset)?;
                    if !extend(self.messages.get_or_insert_default(), message) {
                        let reason = sink.reason();
                        self.remains.left_out.push(LeftOut { list: "messages", index, reason });
                    }
                }
                Part::Broken(list, index, problem) => {
                    sink.push(json_issue(&problem));
                    self.remains.left_out.push(LeftOut { list, index, reason: problem.to_string() });
                }
                Part::Field(key, node) => {
                    self.present.extend(REQUIRED.iter().copied().find(|required| *required == key));
                    if !self.heading.take(&key, &node, sink) {
                        self.field(&key, &node, sink);
                    }
                }
            }
            if self.remains.left_out.len() > MOST_UNREADABLE {
                self.hopeless = true;
                sink.error("R-25.1", &list, format!("more than {MOST_UNREADABLE} messages cannot be read"));
                break;
            }
        }
        Ok(())
    }

    /// Counts what is held beside the text, of which there are `read` bytes so far.
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
        let null = *node == Node::Null;
        match key {
            "id" => self.id = values::text(node, &path, "R-25.1", sink),
            "provider" => self.provider = provider(node, &path, "R-25.1", sink),
            "temporal" => self.temporal = conversation_temporal(node, &path, "R-25.1", sink),
            "messages" => sink.error("R-25.1", &path, format!("is {}, not a list", node.kind())),
            "title" if !null => self.title = values::text(node, &path, "R-25.1", sink),
            "model" if !null => self.model = values::text(node, &path, "R-25.1", sink),
            "system_instruction" if !null => {
                self.system_instruction = values::text(node, &path, "R-25.1", sink);
            }
            "title" | "model" | "system_instruction" => {}
            "participants" => {
                self.participants =
                    values::list(node, &path, "R-25.4", sink, participant).unwrap_or_default();
                self.held += self.participants.len() * OF_A_MEMBER;
            }
            "is_archived" => {
                self.is_archived = values::boolean(node, &path, "R-25.1", sink).unwrap_or_default();
            }
            "tags" => {
                self.tags = values::texts(node, &path, "R-4.4", sink).unwrap_or_default();
                self.held += self.tags.len() * OF_A_NAME;
            }
            "raw_metadata" => self.raw_metadata = values::raw(node, &path, "R-25.8", sink),
            "import_metadata" => self.import_metadata = import_metadata(node, &path, "R-25.6", sink),
            _ => root::unknown_field(key, node, sink),
        }
    }

    fn finish(self, mut sink: Sink, ambiguous: bool) -> (Option<Conversation>, Vec<Issue>, Remains) {
        let version = self.heading.judge(SCHEMA, &mut sink);
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
        let whole = version != Version::Foreign && !ambiguous && !self.hopeless;
        let document = header.filter(|_| whole).zip(self.messages).map(|(header, messages)| Conversation {
            schema_version: self.heading.schema_version.unwrap_or_default(),
            header,
            messages,
            unknown,
        });
        (document, issues, self.remains)
    }
}

/// Bytes that a message takes in memory beside its text, about.
fn beside_text(message: &Message) -> usize {
    let Message { content, children_ids, attachments, citations, tool_calls, .. } = message;
    let parts = content.as_ref().map_or(0, |content| content.parts.len());
    let members = parts + attachments.len() + citations.len() + tool_calls.len();
    OF_A_MESSAGE + members * OF_A_MEMBER + children_ids.len() * OF_A_NAME
}

/// Beside `schema` and `schema_version`, which the heading judges.
const REQUIRED: &[&str] = &["id", "provider", "temporal", "messages"];

fn provider(node: &Node<'_>, path: &Path<'_>, rule: &'static str, sink: &mut Sink) -> Option<Provider> {
    const KEYS: &[&str] = &["name", "conversation_id", "account_id", "export_format_version"];
    let mut fields = Fields::open(node, path, rule, sink, KEYS)?;
    let name = fields.required("name", rule, values::text);
    let conversation_id = fields.nullable("conversation_id", rule, values::text);
    let account_id = fields.nullable("account_id", rule, values::text);
    let export_format_version = fields.nullable("export_format_version", rule, values::text);
    Some(Provider { name: name?, conversation_id, account_id, export_format_version })
}

fn participant(node: &Node<'_>, path: &Path<'_>, rule: &'static str, sink: &mut Sink) -> Option<Participant> {
    let mut fields = Fields::open(node, path, rule, sink, &["role", "name", "provider_id"])?;
    let speaker = read_role(&mut fields);
    let name = fields.nullable("name", rule, values::text);
    let provider_id = fields.nullable("provider_id", rule, values::text);
    Some(Participant { role: speaker?, name, provider_id })
}

/// A role by another name is an issue. What some producers write instead of `user`, and other spellings of PAM's own four, are read
/// as what they mean; a role of a later version speaks for the system: shown, and put into nobody's mouth.
fn read_role(fields: &mut Fields<'_, '_>) -> Option<Role> {
    let known = fields.required("role", "R-25.4", values::name);
    let meant = || {
        let name = fields.text("role")?.trim().to_ascii_lowercase();
        if name == "human" { Some(Role::User) } else { name.parse().ok() }
    };
    known.or_else(meant).or(fields.has("role").then_some(Role::System))
}

fn message(node: &Node<'_>, path: &Path<'_>, rule: &'static str, sink: &mut Sink) -> Option<Message> {
    let mark = sink.mark();
    let message = message_fields(node, path, rule, sink);
    let unknown = sink.taken_since(mark, path);
    let mut message = message?;
    if !unknown.is_empty() {
        let raw = message.raw_metadata.take().unwrap_or_default();
        message.raw_metadata = Some(raw.with(UNKNOWN_KEY, &unknown.into()));
    }
    Some(message)
}

fn message_fields(node: &Node<'_>, path: &Path<'_>, rule: &'static str, sink: &mut Sink) -> Option<Message> {
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
    let mut fields = Fields::open(node, path, rule, sink, KEYS)?;
    let id = fields.required("id", rule, values::text);
    let provider_message_id = fields.nullable("provider_message_id", rule, values::text);
    let speaker = read_role(&mut fields);
    let content = fields.optional("content", "R-25.5", content);
    let created_at = fields.required("created_at", rule, values::time);
    let parent_id = fields.nullable("parent_id", "R-25.3", values::text);
    let children_ids = fields.optional("children_ids", "R-25.3", values::texts).unwrap_or_default();
    let model = fields.nullable("model", rule, values::text);
    let is_thought = fields.optional("is_thought", rule, values::boolean).unwrap_or_default();
    let token_count = fields.nullable("token_count", "R-25.9", values::count);
    let attachments = fields.optional("attachments", "R-25.9", attachments).unwrap_or_default();
    let citations = fields.optional("citations", "R-25.9", citations).unwrap_or_default();
    let tool_calls = fields.optional("tool_calls", "R-25.9", tool_calls).unwrap_or_default();
    let raw_metadata = fields.optional("raw_metadata", "R-25.8", values::raw);
    Some(Message {
        id: id?,
        provider_message_id,
        role: speaker?,
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

fn content(node: &Node<'_>, path: &Path<'_>, rule: &'static str, sink: &mut Sink) -> Option<Content> {
    let mut fields = Fields::open(node, path, rule, sink, &["type", "text", "parts"])?;
    let known = fields.required("type", rule, values::name);
    let text = fields.nullable("text", rule, values::text);
    let parts = fields.optional("parts", rule, parts).unwrap_or_default();
    let guess = if parts.is_empty() { ContentKind::Text } else { ContentKind::Multipart };
    Some(Content { kind: known.unwrap_or(guess), text, parts })
}

fn parts(node: &Node<'_>, path: &Path<'_>, rule: &'static str, sink: &mut Sink) -> Option<Vec<ContentPart>> {
    values::list(node, path, rule, sink, part)
}

fn part(node: &Node<'_>, path: &Path<'_>, rule: &'static str, sink: &mut Sink) -> Option<ContentPart> {
    let mut fields = Fields::open(node, path, rule, sink, &["type", "text", "language", "mime_type", "ref"])?;
    let known = fields.required("type", rule, values::name);
    let kind = known.or(fields.has("type").then_some(PartKind::File));
    let text = fields.nullable("text", rule, values::text);
    let language = fields.nullable("language", rule, values::text);
    let mime_type = fields.nullable("mime_type", rule, values::text);
    let reference = fields.nullable("ref", rule, values::text);
    Some(ContentPart { kind: kind?, text, language, mime_type, reference })
}

fn attachments(
    node: &Node<'_>,
    path: &Path<'_>,
    rule: &'static str,
    sink: &mut Sink,
) -> Option<Vec<Attachment>> {
    values::list(node, path, rule, sink, attachment)
}

fn attachment(node: &Node<'_>, path: &Path<'_>, rule: &'static str, sink: &mut Sink) -> Option<Attachment> {
    const KEYS: &[&str] = &["type", "name", "mime_type", "size_bytes", "ref", "provider_id"];
    let mut fields = Fields::open(node, path, rule, sink, KEYS)?;
    let known = fields.required("type", rule, values::name);
    let kind = known.or(fields.has("type").then_some(AttachmentKind::File));
    let name = fields.nullable("name", rule, values::text);
    let mime_type = fields.nullable("mime_type", rule, values::text);
    let size_bytes = fields.nullable("size_bytes", rule, values::count);
    let reference = fields.nullable("ref", rule, values::text);
    let provider_id = fields.nullable("provider_id", rule, values::text);
    Some(Attachment { kind: kind?, name, mime_type, size_bytes, reference, provider_id })
}

fn citations(node: &Node<'_>, path: &Path<'_>, rule: &'static str, sink: &mut Sink) -> Option<Vec<Citation>> {
    values::list(node, path, rule, sink, citation)
}

fn citation(node: &Node<'_>, path: &Path<'_>, rule: &'static str, sink: &mut Sink) -> Option<Citation> {
    let mut fields = Fields::open(node, path, rule, sink, &["title", "url", "snippet"])?;
    Some(Citation {
        title: fields.nullable("title", rule, values::text),
        url: fields.nullable("url", rule, values::text),
        snippet: fields.nullable("snippet", rule, values::text),
    })
}

fn tool_calls(
    node: &Node<'_>,
    path: &Path<'_>,
    rule: &'static str,
    sink: &mut Sink,
) -> Option<Vec<ToolCall>> {
    values::list(node, path, rule, sink, tool_call)
}

fn tool_call(node: &Node<'_>, path: &Path<'_>, rule: &'static str, sink: &mut Sink) -> Option<ToolCall> {
    let mut fields = Fields::open(node, path, rule, sink, &["id", "name", "input", "output"])?;
    let id = fields.nullable("id", rule, values::text);
    let name = fields.required("name", rule, values::text);
    let input = fields.nullable("input", rule, values::tool_input);
    let output = fields.nullable("output", rule, values::text);
    Some(ToolCall { id, name: name?, input, output })
}

fn import_metadata(
    node: &Node<'_>,
    path: &Path<'_>,
    rule: &'static str,
    sink: &mut Sink,
) -> Option<ImportMetadata> {
    const KEYS: &[&str] = &["importer", "importer_version", "imported_at", "source_file", "source_checksum"];
    let mut fields = Fields::open(node, path, rule, sink, KEYS)?;
    Some(ImportMetadata {
        importer: fields.nullable("importer", rule, values::text),
        importer_version: fields.nullable("importer_version", rule, values::text),
        imported_at: fields.nullable("imported_at", "A-28", values::time),
        source_file: fields.nullable("source_file", rule, values::text),
        source_checksum: fields.nullable("source_checksum", "R-25.9", values::digest),
    })
}
