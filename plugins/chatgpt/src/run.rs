//! Reads one export: its files of conversations in order, each conversation by itself, then what lies beside them.

use satchel_importer::{Bundle, Element, ImportError, Importer as _, RecordKind, Sink, Summary, names};

use crate::{
    ChatGpt, alone,
    assets::Assets,
    codex, detect, group, known,
    layout::{self, Kind},
    map::{self, Context, Records},
    remarks::Remarks,
    sidecar,
    source::{self, Source},
    stored, textdoc,
};

/// Reads all that detection claimed for `format`.
pub(crate) fn run(format: &str, bundle: &Bundle, sink: &mut Sink) -> Result<Summary, ImportError> {
    let version = ChatGpt::describe().version_of(format)?;
    let (folder, sources) = sources(bundle)?;
    let account = sidecar::account(bundle, &folder);
    alone::tell_account(bundle, &folder, sink)?;
    let assets = Assets::read(bundle, &folder, &sources, |path, problem| sink.warn(path, problem))?;
    let remarks = Remarks::read(bundle, &folder, sink)?;
    let context = Context { account: account.as_deref(), version, assets: &assets, remarks: &remarks };
    for path in &sources {
        let Some(source) = Source::find(bundle, path)? else { continue };
        source.each(bundle, RecordKind::Conversation, sink, |element, sink| {
            let read = |sink: &mut Sink| {
                assets.start_asking();
                let records = map::records(&element, &context)?;
                emit(&records, sink)?;
                Ok(known::note(&records, &context))
            };
            element.remembering(sink, |note| known::holds(note, &context), read)
        })?;
    }
    read_beside(bundle, &folder, &context, sink)?;
    report_missing(bundle, &folder, sink)?;
    remarks.report_unused(sink)?;
    report_unread(bundle, &folder, &sources, &assets, sink);
    Ok(bundle.summary())
}

/// The folder of the export, and its files of conversations in the order of their numbers.
fn sources(bundle: &Bundle) -> Result<(String, Vec<String>), ImportError> {
    let paths = || bundle.entries().iter().map(|entry| entry.path.as_str());
    let numbered = |path: &str| layout::shard(names::split(path).1);
    let manifest = paths().find(|path| layout::kind(names::split(path).1) == Kind::Manifest);
    let listed =
        manifest.map(|path| sidecar::manifest_files(bundle, names::split(path).0)).unwrap_or_default();
    let ours = |path: &&str| numbered(path).is_some() || listed.iter().any(|listed| listed == path);
    let mut sources: Vec<String> = paths().filter(ours).map(ToOwned::to_owned).collect();
    if sources.is_empty() {
        sources.extend(only_source(bundle)?);
    }
    sources.sort_by_cached_key(|path| (numbered(path), path.clone()));
    let alone = || paths().find(|path| detect::stands_alone(bundle, path)).map(ToOwned::to_owned);
    let Some(folder) = sources.first().cloned().or_else(alone).map(|path| names::split(&path).0.to_owned())
    else {
        return Err(ImportError::not_this_format("none of the files holds conversations"));
    };
    Ok((folder, sources))
}

/// A conversation under a name of the person's own choice, else the page.
fn only_source(bundle: &Bundle) -> Result<Option<String>, ImportError> {
    let paths = || bundle.entries().iter().map(|entry| entry.path.as_str());
    let kind = |path: &str| layout::kind(names::split(path).1);
    let lone = paths().filter(|path| names::is_json(path) && kind(path) == Kind::Stranger);
    let page = paths().find(|path| kind(path) == Kind::Page);
    let mut first = None;
    for path in lone {
        if detect::is_ours(bundle, path)? {
            return Ok(Some(path.to_owned()));
        }
        first = first.or(Some(path));
    }
    Ok(page.or(first).map(ToOwned::to_owned))
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

/// Group chats, tasks, memories, and canvas documents that no message named.
fn read_beside(
    bundle: &Bundle,
    folder: &str,
    context: &Context<'_>,
    sink: &mut Sink,
) -> Result<(), ImportError> {
    // Whether conversations lie beside these lists says nothing of them.
    let listed = &Context { version: ChatGpt::describe().version_of(detect::FORMATS[2])?, ..*context };
    for entry in bundle.entries() {
        let Some(below) = entry.path.strip_prefix(folder) else { continue };
        match layout::kind(below) {
            Kind::Groups => {
                let read =
                    |element: Element<'_>, sink: &mut Sink| emit(&group::read(&element, listed)?, sink);
                read_list(bundle, &entry.path, "/chats", sink, read)?;
            }
            Kind::Codex => {
                let read =
                    |element: Element<'_>, sink: &mut Sink| emit(&codex::read(&element, listed)?, sink);
                read_list(bundle, &entry.path, "/tasks", sink, read)?;
            }
            Kind::Memories => {
                let evidence = stored::read(bundle, &entry.path, context.account, sink)?;
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

/// Reads a file of conversations of another shape, below `pointer` or at its root.
fn read_list(
    bundle: &Bundle,
    path: &str,
    pointer: &'static str,
    sink: &mut Sink,
    each: impl Fn(Element<'_>, &mut Sink) -> Result<(), ImportError>,
) -> Result<(), ImportError> {
    if source::holds_nothing(bundle, path) {
        return Ok(());
    }
    Source::below(bundle, path, pointer)?.each(bundle, RecordKind::Conversation, sink, each)
}

/// Files of conversations that the manifest names and that did not come along.
fn report_missing(bundle: &Bundle, folder: &str, sink: &mut Sink) -> Result<(), ImportError> {
    for path in sidecar::manifest_files(bundle, folder) {
        if bundle.entry(&path).is_none() {
            sink.skip(
                RecordKind::File,
                &path,
                "export_manifest.json names it, but the export does not hold it",
            )?;
        }
    }
    Ok(())
}

/// Says which files were left aside, so that nothing is lost in silence.
fn report_unread(bundle: &Bundle, folder: &str, sources: &[String], assets: &Assets<'_>, sink: &mut Sink) {
    for entry in bundle.entries() {
        let Some(below) = entry.path.strip_prefix(folder) else { continue };
        let unread = layout::kind(below) == Kind::NotRead && !sources.contains(&entry.path);
        if unread && !source::holds_nothing(bundle, &entry.path) {
            sink.warn(&entry.path, "this file is not read; what it holds is not imported");
        }
    }
    if let Some((count, first)) = assets.unused() {
        let more = if count == 1 { String::new() } else { format!(" (nor {} more)", count - 1) };
        sink.warn(first, &format!("no message names this file{more}; it is not imported"));
    }
}
