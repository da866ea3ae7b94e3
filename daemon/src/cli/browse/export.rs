//! Writes records to a Markdown file, in the form of the Markdown export: what people and assistants wrote is quoted
//! and made harmless.

use std::{
    fs::File,
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

use satchel_core::{
    data_dir,
    export::markdown::text::{code, inline, quote, web_link},
};
use satchel_proto::v1::{
    Attachment, Citation, Content, ContentPart, Memory, Message, PartKind, ToolCall, tool_call::Input,
};

use super::{
    hits::Target,
    record::{ConversationRecord, Record},
    requests::{explain, fetch_record},
    state::Event,
};
use crate::cli::{
    client::{DaemonClient, DaemonLocation},
    error::CliError,
    labels, path, text,
    time::{UNKNOWN, rfc3339},
};

/// Writes the records to a new file.
pub(super) async fn run(
    client: &DaemonClient,
    location: &DaemonLocation,
    file: PathBuf,
    targets: Vec<Target>,
    hidden: bool,
) -> Event {
    let written = write(client, location, &file, &targets, hidden).await;
    Event::Exported(written.map_err(|error| explain(&error)))
}

async fn write(
    client: &DaemonClient,
    location: &DaemonLocation,
    file: &Path,
    targets: &[Target],
    hidden: bool,
) -> Result<String, CliError> {
    let file = path::absolute(file)?;
    if let DaemonLocation::DataDir(config) = location {
        data_dir::refuse_inside(&config.data_dir, &file).map_err(CliError::DataDir)?;
    }
    // A link that leads nowhere is a file too.
    if file.is_symlink() || file.try_exists().map_err(CliError::file("read", &file))? {
        return Err(exists(&file));
    }
    let failed = CliError::file("write", &file);
    let folder = file.parent().unwrap_or(Path::new("/"));
    // The file appears complete or not at all.
    let mut unfinished = tempfile::NamedTempFile::new_in(folder).map_err(&failed)?;
    let (mut records, mut withheld) = (0, 0);
    {
        let mut out = BufWriter::new(unfinished.as_file_mut());
        for target in targets {
            let record = fetch_record(client, target).await?;
            if may_leave(&record) {
                write_record(&mut out, &record, hidden).map_err(&failed)?;
                records += 1;
            } else {
                withheld += 1;
            }
        }
        out.flush().map_err(&failed)?;
    }
    if records == 0 {
        let problem = "nothing was written: these memories must not be exported";
        return Err(CliError::Declined(problem.to_owned()));
    }
    unfinished.as_file().sync_all().map_err(&failed)?;
    let persisted: Result<File, _> = unfinished.persist_noclobber(&file);
    persisted.map_err(|error| match error.error.kind() {
        io::ErrorKind::AlreadyExists => exists(&file),
        _ => failed(error.error),
    })?;
    Ok(report(&file, records, withheld))
}

fn exists(file: &Path) -> CliError {
    CliError::Declined(format!("{file:?} exists already; choose another name"))
}

fn report(file: &Path, records: u64, withheld: u64) -> String {
    let mut report = format!(
        "{} written to {}",
        text::count(records, "record", "records"),
        text::one_line(&file.to_string_lossy())
    );
    if withheld > 0 {
        let memories =
            text::count(withheld, "memory that must not be exported", "memories that must not be exported");
        text::append(&mut report, format_args!(", without {memories}"));
    }
    report
}

/// Returns whether a record may be exported.
fn may_leave(record: &Record) -> bool {
    match record {
        Record::Memory(record) => record.memory.access.as_ref().is_none_or(|access| access.exportable),
        Record::Conversation(_) => true,
    }
}

fn write_record(out: &mut dyn Write, record: &Record, hidden: bool) -> io::Result<()> {
    match record {
        Record::Conversation(record) => write_conversation(out, record, hidden),
        Record::Memory(record) => write_memory(out, &record.memory),
    }
}

/// Writes the branch of a conversation that was chosen.
fn write_conversation(out: &mut dyn Write, record: &ConversationRecord, hidden: bool) -> io::Result<()> {
    let conversation = &record.conversation;
    let title = inline(conversation.title.as_deref().unwrap_or_default());
    writeln!(out, "# {}\n", if title.is_empty() { "Untitled" } else { &title })?;
    writeln!(out, "- id: `{}`", code_text(&conversation.id))?;
    writeln!(out, "- from: {}", inline(&conversation.platform))?;
    for (name, time) in [("created", &conversation.created_at), ("changed", &conversation.updated_at)] {
        if let Some(time) = time.as_ref().and_then(rfc3339) {
            writeln!(out, "- {name}: {time}")?;
        }
    }
    write_tags(out, &conversation.tags)?;
    writeln!(out)?;
    let shown = record.branch().filter(|message| hidden || !message.hidden);
    shown.into_iter().try_for_each(|message| write_message(out, message))?;
    if record.branch().any(|message| message.hidden) && !hidden {
        writeln!(out, "Without messages that the platform does not show.\n")?;
    }
    Ok(())
}

fn write_message(out: &mut dyn Write, message: &Message) -> io::Result<()> {
    let role = labels::role(message.role);
    let model = message.model.as_deref().map(|model| format!(" ({})", inline(model))).unwrap_or_default();
    let thought = if message.is_thought { ", thought" } else { "" };
    let time = message.created_at.as_ref().and_then(rfc3339).unwrap_or_else(|| UNKNOWN.to_owned());
    writeln!(out, "## {role}{model}{thought} · {time}\n")?;
    if let Some(content) = &message.content {
        write_content(out, content)?;
    }
    if message.abridged {
        writeln!(out, "Truncated; an export contains the whole text.\n")?;
    }
    message.tool_calls.iter().try_for_each(|call| write_tool_call(out, call))?;
    write_list(out, "Files", &message.attachments, write_attachment)?;
    write_list(out, "Sources", &message.citations, write_citation)
}

fn write_content(out: &mut dyn Write, content: &Content) -> io::Result<()> {
    if let Some(text) = content.text.as_deref().filter(|text| !text.is_empty()) {
        quote(out, text)?;
    }
    content.parts.iter().try_for_each(|part| write_part(out, part))
}

fn write_part(out: &mut dyn Write, part: &ContentPart) -> io::Result<()> {
    let text = part.text.as_deref().filter(|text| !text.is_empty());
    match (part.kind(), text) {
        (PartKind::Code, Some(program)) => code(out, part.language.as_deref().unwrap_or_default(), program),
        (_, Some(text)) => quote(out, text),
        (PartKind::Text | PartKind::Code | PartKind::Unspecified, None) => Ok(()),
        (PartKind::Image | PartKind::File | PartKind::Audio | PartKind::Video, None) => {
            let mime = part.mime_type.as_deref().map(|mime| format!(", {}", inline(mime)));
            writeln!(out, "*({}{})*\n", labels::part_kind(part.kind), mime.unwrap_or_default())
        }
    }
}

fn write_tool_call(out: &mut dyn Write, call: &ToolCall) -> io::Result<()> {
    writeln!(out, "Calls {}:\n", inline(&call.name))?;
    match &call.input {
        Some(Input::InputText(input)) => code(out, "", input)?,
        Some(Input::InputJson(input)) => code(out, "json", input)?,
        None => {}
    }
    if let Some(output) = &call.output {
        writeln!(out, "Gets:\n")?;
        code(out, "", output)?;
    }
    Ok(())
}

fn write_list<T>(
    out: &mut dyn Write,
    heading: &str,
    items: &[T],
    write: impl Fn(&mut dyn Write, &T) -> io::Result<()>,
) -> io::Result<()> {
    if items.is_empty() {
        return Ok(());
    }
    writeln!(out, "{heading}:\n")?;
    items.iter().try_for_each(|item| write(out, item))?;
    writeln!(out)
}

fn write_attachment(out: &mut dyn Write, file: &Attachment) -> io::Result<()> {
    let name = inline(file.name.as_deref().unwrap_or_default());
    let name = if name.is_empty() { labels::attachment_kind(file.kind) } else { name };
    let mime = file.mime_type.as_deref().map(|mime| format!(", {}", inline(mime))).unwrap_or_default();
    writeln!(out, "- {name}{mime}")
}

fn write_citation(out: &mut dyn Write, citation: &Citation) -> io::Result<()> {
    let url = citation.url.as_deref().unwrap_or_default();
    let title = inline(citation.title.as_deref().unwrap_or(url));
    let title = if title.is_empty() { "source".to_owned() } else { title };
    match web_link(url) {
        Some(address) => write!(out, "- [{title}]({address})")?,
        None => write!(out, "- {title}")?,
    }
    match citation.snippet.as_deref().map(inline).filter(|snippet| !snippet.is_empty()) {
        Some(snippet) => writeln!(out, ": {snippet}"),
        None => writeln!(out),
    }
}

fn write_memory(out: &mut dyn Write, memory: &Memory) -> io::Result<()> {
    let kind = memory.custom_type.clone().unwrap_or_else(|| labels::memory_type(memory.r#type));
    writeln!(out, "# Memory: {} · {}\n", inline(&kind), labels::memory_status(memory.status))?;
    quote(out, &memory.content)?;
    if memory.abridged {
        writeln!(out, "Truncated; an export contains the whole text.\n")?;
    }
    if let Some(summary) = &memory.summary {
        writeln!(out, "In short:\n")?;
        quote(out, summary)?;
    }
    writeln!(out, "- id: `{}`", code_text(&memory.id))?;
    if let Some(provenance) = &memory.provenance {
        writeln!(out, "- from: {}", inline(&provenance.platform))?;
    }
    let temporal = memory.temporal.clone().unwrap_or_default();
    let times = [
        ("created", &temporal.created_at),
        ("changed", &temporal.updated_at),
        ("valid from", &temporal.valid_from),
        ("valid until", &temporal.valid_until),
    ];
    for (name, time) in times {
        if let Some(time) = time.as_ref().and_then(rfc3339) {
            writeln!(out, "- {name}: {time}")?;
        }
    }
    write_tags(out, &memory.tags)?;
    writeln!(out)
}

fn write_tags(out: &mut dyn Write, tags: &[String]) -> io::Result<()> {
    if tags.is_empty() {
        return Ok(());
    }
    let tags: Vec<String> = tags.iter().map(|tag| format!("\\#{}", inline(tag))).collect();
    writeln!(out, "- tags: {}", tags.join(", "))
}

/// Returns an id as it can stand in code.
fn code_text(id: &str) -> String {
    id.replace(|c: char| c == '`' || text::is_unsafe(c), "?")
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use satchel_proto::v1::{Access, Conversation};

    use super::*;
    use crate::cli::browse::{record::MemoryRecord, tests::forked};

    fn written(record: &Record) -> String {
        let mut out = Vec::new();
        write_record(&mut out, record, false).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_branch_that_was_chosen_is_written() {
        let shown = written(&Record::Conversation(Box::new(forked(Some("a-one")))));
        assert!(shown.starts_with("# Untitled\n\n- id: `c`\n"), "{shown}");
        assert!(
            shown.contains("## user · 2026-03-12T11:20:00Z\n\n> How many hives fit on\n> a balcony?\n"),
            "{shown}"
        );
        assert!(shown.contains("> Two.\n") && !shown.contains("Two small ones"), "{shown}");
        assert!(!shown.contains("> context") && shown.contains("Without messages"), "{shown}");
    }

    #[test]
    fn what_was_written_by_others_does_nothing() {
        let hostile = "<script>x</script>\n# heading\n\u{1b}[2J";
        let message = Message {
            id: "m".to_owned(),
            content: Some(Content { text: Some(hostile.to_owned()), ..Content::default() }),
            citations: vec![Citation { url: Some("javascript:x".to_owned()), ..Citation::default() }],
            ..Message::default()
        };
        let conversation = Conversation { title: Some(hostile.to_owned()), ..Conversation::default() };
        let record = ConversationRecord::new(conversation, vec![message], None);
        let memory = Memory { id: "`x".to_owned(), content: hostile.to_owned(), ..Memory::default() };
        for record in [
            Record::Conversation(Box::new(record)),
            Record::Memory(Box::new(MemoryRecord { memory, untrusted: String::new() })),
        ] {
            let shown = written(&record);
            assert!(!shown.replace("\\<", "").contains('<') && !shown.contains('\u{1b}'), "{shown}");
            assert!(!shown.contains("\n# heading") && !shown.contains("(<javascript"), "{shown}");
        }
    }

    #[test]
    fn memories_that_must_stay_are_not_written() {
        let memory = |exportable| Memory {
            access: Some(Access { exportable, ..Access::default() }),
            ..Memory::default()
        };
        let record = |memory| Record::Memory(Box::new(MemoryRecord { memory, untrusted: String::new() }));
        assert!(may_leave(&record(memory(true))) && may_leave(&record(Memory::default())));
        assert!(!may_leave(&record(memory(false))));
        assert_eq!(report(Path::new("/a.md"), 1, 0), "1 record written to /a.md");
        assert!(report(Path::new("/a.md"), 2, 1).contains("without 1 memory that must not be exported"));
    }
}
