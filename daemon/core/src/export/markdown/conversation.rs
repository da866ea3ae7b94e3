//! Writes one conversation: first the branch that the user last saw, then all others.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, Write},
};

use satchel_pam::conversation::{
    Attachment, Citation, Content, ConversationHeader, Message, Part, PartKind, Role, ToolCall, ToolInput,
};
use satchel_store::{ConversationRecord, MessageHead};

use super::{
    AttachmentFiles, ExportError, ExportJob, ExportTarget, FrontMatter, LinkTargets, memory, name, text,
};
use crate::conversation_record;

/// Bytes of messages that are in memory at once, unless a single message is larger.
const MAX_BATCH_BYTES: u64 = 4 << 20;

/// A message in the order of the file.
struct OrderedMessage<'r> {
    /// Its position in the record.
    at: usize,
    /// The id of the message that it answers, unless that one is directly above.
    answers: Option<&'r str>,
}

/// The messages that are shown, and their order.
struct MessageOrder<'r> {
    active: Vec<OrderedMessage<'r>>,
    others: Vec<OrderedMessage<'r>>,
    hidden: usize,
    branches: usize,
}

/// Writes the conversation's file, and records its name.
pub(super) fn write(
    job: &ExportJob<'_>,
    target: &mut ExportTarget,
    id: &str,
    targets: &mut LinkTargets,
    files: &mut AttachmentFiles,
) -> Result<(), ExportError> {
    let Some(record) = job.store.conversation(id, Some(job.revision))? else { return Ok(()) };
    let header = job.exported_header(&record)?;
    let name = name::conversation(&header);
    target.file(&format!("conversations/{name}.md"), |out| {
        let order = MessageOrder::of(&record);
        let failed = ExportError::write(&job.request.output);
        write_head(out, &header, &record, &order).map_err(&failed)?;
        let tree = conversation_record::MessageTree::new(&record);
        write_messages(job, out, (&record, &tree), &order.active, files)?;
        if !order.others.is_empty() {
            writeln!(out, "# Other branches\n").map_err(&failed)?;
            write_messages(job, out, (&record, &tree), &order.others, files)?;
        }
        write_memories(job, out, targets.derived.get(id))
    })?;
    targets.conversations.insert(id.to_owned(), name);
    Ok(())
}

fn write_head(
    out: &mut dyn Write,
    header: &ConversationHeader,
    record: &ConversationRecord,
    order: &MessageOrder<'_>,
) -> io::Result<()> {
    let mut front = FrontMatter::new("conversation");
    front.text("id", Some(&header.id));
    front.text("title", header.title.as_deref());
    front.text("platform", Some(&header.provider.name));
    front.text("platform_id", header.provider.conversation_id.as_deref());
    front.text("account", header.provider.account_id.as_deref());
    front.plain("created", text::time(header.temporal.created_at));
    if let Some(updated) = header.temporal.updated_at.filter(|updated| updated.known()) {
        front.plain("updated", updated);
    }
    front.text("model", header.model.as_deref());
    front.list("tags", &header.tags);
    if header.is_archived {
        front.plain("archived", true);
    }
    front.plain("messages", record.heads.len());
    front.plain("branches", order.branches);
    if order.hidden > 0 {
        front.plain("hidden_messages", order.hidden);
    }
    front.write(out)?;
    let title = text::inline(header.title.as_deref().unwrap_or_default());
    writeln!(out, "# {}\n", if title.is_empty() { "Untitled" } else { &title })?;
    if order.hidden > 0 {
        // A memory may be derived from a hidden message, so the anchors of hidden messages are kept.
        for head in record.heads.iter().filter(|head| head.hidden) {
            write!(out, "<a id=\"m-{}\"></a>", name::short_hash(&head.id))?;
        }
        writeln!(out, "Without {} that the platform does not show.\n", order.hidden)?;
    }
    if let Some(instruction) = &header.system_instruction {
        writeln!(out, "## Instructions\n")?;
        text::quote(out, instruction)?;
    }
    Ok(())
}

/// Returns the visible parent of each message. Hidden messages are left out, and their children are moved below the
/// nearest visible ancestor. Each hidden message is visited once, however many messages follow it. Messages below a
/// cycle of hidden messages have no parent.
fn visible_parents(heads: &[MessageHead], index: &BTreeMap<&str, usize>) -> Vec<Option<usize>> {
    let parent = |at: usize| heads[at].parent.as_deref().and_then(|parent| index.get(parent)).copied();
    // The visible ancestor of each hidden message, once it is known.
    let mut known: Vec<Option<Option<usize>>> = vec![None; heads.len()];
    let mut all = Vec::with_capacity(heads.len());
    for at in 0..heads.len() {
        let (mut up, mut passed) = (parent(at), Vec::new());
        let found = loop {
            match up {
                Some(hidden) if heads[hidden].hidden => {
                    if let Some(found) = known[hidden] {
                        break found;
                    }
                    // In a cycle, the message is reached again and then has no parent.
                    known[hidden] = Some(None);
                    passed.push(hidden);
                    up = parent(hidden);
                }
                found => break found,
            }
        };
        for hidden in passed {
            known[hidden] = Some(found);
        }
        all.push(found);
    }
    all
}

impl<'r> MessageOrder<'r> {
    fn of(record: &'r ConversationRecord) -> Self {
        let heads = &record.heads;
        let index: BTreeMap<&str, usize> =
            heads.iter().enumerate().map(|(at, head)| (head.id.as_str(), at)).collect();
        let path: Vec<&str> = conversation_record::leaf(record)
            .map(|leaf| conversation_record::branch(record, leaf))
            .unwrap_or_default();
        let on_path: BTreeSet<&str> = path.iter().copied().collect();
        let above = visible_parents(heads, &index);
        let mut below: BTreeMap<Option<usize>, Vec<usize>> = BTreeMap::new();
        let mut starts = Vec::new();
        for (at, head) in heads.iter().enumerate().filter(|(_, head)| !head.hidden) {
            if on_path.contains(head.id.as_str()) {
                continue;
            }
            let up = above[at];
            if up.is_none_or(|up| on_path.contains(heads[up].id.as_str())) {
                starts.push(at);
            } else {
                below.entry(up).or_default().push(at);
            }
        }
        let mut order = Self { active: Vec::new(), others: Vec::new(), hidden: 0, branches: 0 };
        order.hidden = heads.iter().filter(|head| head.hidden).count();
        let parents: BTreeSet<&str> = heads.iter().filter_map(|head| head.parent.as_deref()).collect();
        order.branches = heads.iter().filter(|head| !parents.contains(head.id.as_str())).count();
        let active = path.iter().filter_map(|id| index.get(id)).filter(|at| !heads[**at].hidden);
        order.active = active.map(|at| OrderedMessage { at: *at, answers: None }).collect();
        let mut stack: Vec<usize> = starts.into_iter().rev().collect();
        let mut last = None;
        while let Some(at) = stack.pop() {
            let up = above[at];
            let answers = up.filter(|_| up != last).map(|up| heads[up].id.as_str());
            order.others.push(OrderedMessage { at, answers });
            last = Some(at);
            stack.extend(below.remove(&Some(at)).unwrap_or_default().into_iter().rev());
        }
        order
    }
}

/// Writes messages, with only a few of them in memory at a time.
fn write_messages(
    job: &ExportJob<'_>,
    out: &mut dyn Write,
    (record, tree): (&ConversationRecord, &conversation_record::MessageTree),
    lines: &[OrderedMessage<'_>],
    files: &mut AttachmentFiles,
) -> Result<(), ExportError> {
    let failed = ExportError::write(&job.request.output);
    let mut rest = lines;
    while !rest.is_empty() {
        let mut bytes = 0;
        let fits = rest.iter().take_while(|line| {
            bytes += u64::from(record.body_locations[line.at].length());
            bytes <= MAX_BATCH_BYTES
        });
        let (some, more) = rest.split_at(fits.count().max(1));
        rest = more;
        let at: Vec<usize> = some.iter().map(|line| line.at).collect();
        for (line, body) in some.iter().zip(job.store.bodies_at(record, &at)?) {
            let message = tree.message(record, line.at, &body);
            let message = message.map_err(|_| ExportError::Unencodable { what: "a stored message" })?;
            let message = job.redact_message(message)?;
            let links = links(job, &message.attachments, files)?;
            write_message(out, &message, line.answers, &links).map_err(&failed)?;
        }
    }
    Ok(())
}

fn links(
    job: &ExportJob<'_>,
    attachments: &[Attachment],
    files: &mut AttachmentFiles,
) -> Result<Vec<Option<String>>, ExportError> {
    attachments.iter().map(|file| files.link(job, file.reference.as_deref(), file.name.as_deref())).collect()
}

fn write_message(
    out: &mut dyn Write,
    message: &Message,
    answers: Option<&str>,
    links: &[Option<String>],
) -> io::Result<()> {
    let who = match message.role {
        Role::User => "User",
        Role::Assistant => "Assistant",
        Role::System => "System",
        Role::Tool => "Tool",
    };
    let model =
        message.model.as_deref().map(|model| format!(" ({})", text::inline(model))).unwrap_or_default();
    let thought = if message.is_thought { ", thought" } else { "" };
    let anchor = name::short_hash(&message.id);
    writeln!(
        out,
        "## <a id=\"m-{anchor}\"></a>{who}{model}{thought} · {}\n",
        text::time(message.created_at)
    )?;
    if let Some(answered) = answers {
        writeln!(out, "Answers [this message](#m-{}).\n", name::short_hash(answered))?;
    }
    if let Some(content) = &message.content {
        write_content(out, content)?;
    }
    message.tool_calls.iter().try_for_each(|call| write_tool_call(out, call))?;
    if !message.attachments.is_empty() {
        writeln!(out, "Files:\n")?;
        for (file, link) in message.attachments.iter().zip(links) {
            write_attachment(out, file, link.as_deref())?;
        }
        writeln!(out)?;
    }
    if !message.citations.is_empty() {
        writeln!(out, "Sources:\n")?;
        message.citations.iter().try_for_each(|citation| write_citation(out, citation))?;
        writeln!(out)?;
    }
    Ok(())
}

fn write_content(out: &mut dyn Write, content: &Content) -> io::Result<()> {
    if let Some(text) = content.text.as_deref().filter(|text| !text.is_empty()) {
        text::quote(out, text)?;
    }
    content.parts.iter().try_for_each(|part| write_part(out, part))
}

fn write_part(out: &mut dyn Write, part: &Part) -> io::Result<()> {
    let text = part.text.as_deref().filter(|text| !text.is_empty());
    match (part.kind, text) {
        (PartKind::Code, Some(code)) => text::code(out, part.language.as_deref().unwrap_or_default(), code),
        (_, Some(text)) => text::quote(out, text),
        (PartKind::Text | PartKind::Code, None) => Ok(()),
        (kind, None) => {
            let mime = part.mime_type.as_deref().map(|mime| format!(", {}", text::inline(mime)));
            writeln!(out, "*({}{})*\n", kind.as_str(), mime.unwrap_or_default())
        }
    }
}

fn write_tool_call(out: &mut dyn Write, call: &ToolCall) -> io::Result<()> {
    writeln!(out, "Calls {}:\n", text::inline(&call.name))?;
    match &call.input {
        Some(ToolInput::Text(input)) => text::code(out, "", input)?,
        Some(ToolInput::Object(input)) => text::code(out, "json", input.as_str())?,
        None => {}
    }
    if let Some(output) = &call.output {
        writeln!(out, "Gets:\n")?;
        text::code(out, "", output)?;
    }
    Ok(())
}

fn write_attachment(out: &mut dyn Write, file: &Attachment, link: Option<&str>) -> io::Result<()> {
    let name = text::inline(file.name.as_deref().unwrap_or_default());
    let name = if name.is_empty() { file.kind.as_str() } else { &name };
    let mime = file.mime_type.as_deref().map(|mime| format!(", {}", text::inline(mime))).unwrap_or_default();
    let size = file.size_bytes.map(|bytes| format!(", {bytes} bytes")).unwrap_or_default();
    match link {
        Some(link) => writeln!(out, "- [{name}]({link}){mime}{size}"),
        None => writeln!(out, "- {name}{mime}{size}"),
    }
}

fn write_citation(out: &mut dyn Write, citation: &Citation) -> io::Result<()> {
    let url = citation.url.as_deref().unwrap_or_default();
    let title = text::inline(citation.title.as_deref().unwrap_or(url));
    let title = if title.is_empty() { "source".to_owned() } else { title };
    match text::web_link(url) {
        Some(address) => write!(out, "- [{title}]({address})")?,
        None => write!(out, "- {title}")?,
    }
    match citation.snippet.as_deref().map(text::inline).filter(|snippet| !snippet.is_empty()) {
        Some(snippet) => writeln!(out, ": {snippet}"),
        None => writeln!(out),
    }
}

/// Writes the memories that were derived from the conversation.
fn write_memories(
    job: &ExportJob<'_>,
    out: &mut dyn Write,
    derived: Option<&Vec<(satchel_pam::memory::MemoryType, String)>>,
) -> Result<(), ExportError> {
    let Some(derived) = derived.filter(|derived| !derived.is_empty()) else { return Ok(()) };
    let failed = ExportError::write(&job.request.output);
    writeln!(out, "# Memories\n").map_err(&failed)?;
    for (kind, id) in derived {
        let Some(record) = job.store.memory(id, Some(job.revision))? else { continue };
        let content = text::inline(&record.memory.content);
        let link = memory::link("../memories/", *kind, id);
        writeln!(out, "- [{content}]({link})").map_err(&failed)?;
    }
    Ok(())
}
