//! Runs the import of one export: the files of conversations in order, then the other files.

use satchel_importer::{Bundle, Element, ImportError, Importer as _, RecordKind, Sink, Summary, names};

use crate::{
    ChatGpt,
    annotations::Annotations,
    assets::Assets,
    codex, detect, group,
    layout::{self, FileKind},
    map::{self, Context, Records},
    record_list::{self, RecordList},
    reuse, saved_memories, sidecar, textdoc,
};

/// Reads the files that detection assigned to `format`.
pub(crate) fn run(format: &str, bundle: &Bundle, sink: &mut Sink) -> Result<Summary, ImportError> {
    let version = ChatGpt::describe().version_of(format)?;
    let (folder, conversations) = conversation_files(bundle)?;
    let account = sidecar::account(bundle, &folder);
    if let Some(account) = &account {
        sink.account(account)?;
    }
    let assets = Assets::read(bundle, &folder, &conversations, sink)?;
    let annotations = Annotations::read(bundle, &folder, sink)?;
    let account = account.as_ref().map(|account| account.id.as_str());
    let context = Context { account, version, assets: &assets, annotations: &annotations };
    for path in &conversations {
        let Some(list) = RecordList::find(bundle, path)? else { continue };
        list.each(bundle, RecordKind::Conversation, sink, |element, sink| {
            let read = |sink: &mut Sink| {
                assets.clear_lookups();
                let records = map::read(&element, &context)?;
                emit(&records, sink)?;
                Ok(reuse::note(&records, &context))
            };
            element.remembering(sink, |note| reuse::is_current(note, &context), read)
        })?;
    }
    read_other_files(bundle, &folder, &context, sink)?;
    report_missing(bundle, &folder, sink)?;
    annotations.report_unused(sink)?;
    report_unread(bundle, &folder, &conversations, &assets, sink);
    Ok(bundle.summary())
}

/// The folder of the export, and its files of conversations in the order of their numbers.
fn conversation_files(bundle: &Bundle) -> Result<(String, Vec<String>), ImportError> {
    let paths = || bundle.entries().iter().map(|entry| entry.path.as_str());
    let number = |path: &str| layout::shard_number(names::split(path).1);
    let manifest = paths().find(|path| kind_of(path) == FileKind::Manifest);
    let listed =
        manifest.map(|path| sidecar::manifest_files(bundle, names::split(path).0)).unwrap_or_default();
    let wanted = |path: &&str| number(path).is_some() || listed.iter().any(|listed| listed == path);
    let mut files: Vec<String> = paths().filter(wanted).map(ToOwned::to_owned).collect();
    if files.is_empty() {
        files.extend(single_file(bundle)?);
    }
    files.sort_by_cached_key(|path| (number(path), path.clone()));
    let first = files.first().map(String::as_str);
    let Some(first) = first.or_else(|| paths().find(|path| sidecar::stands_alone(bundle, path))) else {
        return Err(ImportError::not_this_format("none of the files holds conversations"));
    };
    Ok((names::split(first).0.to_owned(), files))
}

/// The only file of conversations, under a name of the person's choice, else the page.
fn single_file(bundle: &Bundle) -> Result<Option<String>, ImportError> {
    let paths = || bundle.entries().iter().map(|entry| entry.path.as_str());
    let mut first = None;
    for path in paths().filter(|path| names::is_json(path) && kind_of(path) == FileKind::Unknown) {
        if detect::is_ours(bundle, path)? {
            return Ok(Some(path.to_owned()));
        }
        first = first.or(Some(path));
    }
    let page = paths().find(|path| kind_of(path) == FileKind::Page);
    Ok(page.or(first).map(ToOwned::to_owned))
}

/// The kind of a file by its name alone.
fn kind_of(path: &str) -> FileKind {
    layout::kind(names::split(path).1)
}

fn emit(records: &Records<'_>, sink: &mut Sink) -> Result<(), ImportError> {
    for (locator, message) in &records.warnings {
        sink.warn(locator, message);
    }
    sink.conversation(&records.conversation, &records.messages)?;
    for (locator, reason) in &records.skipped {
        sink.skip(RecordKind::Message, locator, reason)?;
    }
    if !records.evidence.is_empty() {
        sink.evidence(&records.evidence)?;
    }
    Ok(())
}

/// Reads group chats, tasks, memories, and canvas documents that no message named.
fn read_other_files(
    bundle: &Bundle,
    folder: &str,
    context: &Context<'_>,
    sink: &mut Sink,
) -> Result<(), ImportError> {
    // The format of these lists does not depend on that of the conversations.
    let lists = &Context { version: ChatGpt::describe().version_of(detect::FORMATS[2])?, ..*context };
    for entry in bundle.entries() {
        let Some(path) = entry.path.strip_prefix(folder) else { continue };
        match layout::kind(path) {
            FileKind::Groups => read_list(bundle, &entry.path, "/chats", group::read, lists, sink)?,
            FileKind::Codex => read_list(bundle, &entry.path, "/tasks", codex::read, lists, sink)?,
            FileKind::Memories => {
                let evidence = saved_memories::read(bundle, &entry.path, context.account, sink)?;
                sink.evidence(evidence.as_slice())?;
            }
            _ => {}
        }
    }
    for (id, path) in context.assets.unused_documents() {
        textdoc::emit(bundle, id, path, context, sink)?;
    }
    Ok(())
}

/// Reads the list of conversations at `pointer` or at the root of a file.
fn read_list(
    bundle: &Bundle,
    path: &str,
    pointer: &'static str,
    read: for<'e> fn(&Element<'e>, &Context<'e>) -> Result<Records<'e>, ImportError>,
    context: &Context<'_>,
    sink: &mut Sink,
) -> Result<(), ImportError> {
    let each = |element: Element<'_>, sink: &mut Sink| emit(&read(&element, context)?, sink);
    if record_list::is_empty(bundle, path) {
        return Ok(());
    }
    RecordList::below(bundle, path, pointer)?.each(bundle, RecordKind::Conversation, sink, each)
}

/// Reports files of conversations that the manifest lists and the export lacks.
fn report_missing(bundle: &Bundle, folder: &str, sink: &mut Sink) -> Result<(), ImportError> {
    let reason = "export_manifest.json names it, but the export does not hold it";
    for path in sidecar::manifest_files(bundle, folder) {
        if bundle.entry(&path).is_none() {
            sink.skip(RecordKind::File, &path, reason)?;
        }
    }
    Ok(())
}

/// Warns about files that were not read.
fn report_unread(
    bundle: &Bundle,
    folder: &str,
    conversations: &[String],
    assets: &Assets<'_>,
    sink: &mut Sink,
) {
    for entry in bundle.entries() {
        let Some(path) = entry.path.strip_prefix(folder) else { continue };
        let unread = layout::kind(path) == FileKind::NotRead && !conversations.contains(&entry.path);
        if unread && !record_list::is_empty(bundle, &entry.path) {
            sink.warn(&entry.path, "this file is not read; what it holds is not imported");
        }
    }
    if let Some((count, first)) = assets.unused() {
        let more = if count == 1 { String::new() } else { format!(" (nor {} more)", count - 1) };
        sink.warn(first, &format!("no message names this file{more}; it is not imported"));
    }
}
