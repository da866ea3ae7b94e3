//! Reads one export: its files of conversations in order, each conversation by itself.

use satchel_importer::{
    Bundle, Element, ImportError, Importer as _, JsonArray, RecordKind, Sink, Summary, names,
};

use crate::{
    ChatGpt,
    assets::Assets,
    detect,
    layout::{self, Kind},
    map::{self, Context},
    sidecar,
};

/// Reads all that detection claimed for `format`.
pub(crate) fn run(format: &str, bundle: &Bundle, sink: &mut Sink) -> Result<Summary, ImportError> {
    let version = ChatGpt::describe().version_of(format)?;
    let (folder, sources) = sources(bundle)?;
    let account = sidecar::account(bundle, &folder);
    let assets = Assets::read(bundle, &folder, &sources, |path, problem| sink.warn(path, problem))?;
    let context = Context { account: account.as_deref(), version, assets: &assets };
    for source in &sources {
        let array = JsonArray::new(source).pointer(detect::pointer(bundle, source)?);
        array.each(bundle, sink, |element, sink| emit(&element, &context, sink))?;
    }
    report_missing(bundle, &folder, sink)?;
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
        // A conversation under a name of the person's own choice.
        let lone = |path: &&str| {
            let name = names::split(path).1;
            names::is_json(name) && layout::kind(name) == Kind::Stranger
        };
        sources.extend(paths().find(lone).map(ToOwned::to_owned));
    }
    sources.sort_by_cached_key(|path| (numbered(path), path.clone()));
    let Some(folder) = sources.first().map(|path| names::split(path).0.to_owned()) else {
        return Err(ImportError::not_this_format("none of the files holds conversations"));
    };
    Ok((folder, sources))
}

fn emit(element: &Element<'_>, context: &Context<'_>, sink: &mut Sink) -> Result<(), ImportError> {
    let records = map::records(element, context)?;
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
fn report_unread(bundle: &Bundle, folder: &str, sources: &[String], assets: &Assets, sink: &mut Sink) {
    for entry in bundle.entries() {
        let Some(below) = entry.path.strip_prefix(folder) else { continue };
        let unread = layout::kind(below) == Kind::NotRead && !sources.contains(&entry.path);
        if unread && !sidecar::holds_nothing(bundle, &entry.path, entry.size) {
            sink.warn(&entry.path, "this file is not read; what it holds is not imported");
        }
    }
    if let Some((count, first)) = assets.unused() {
        let more = if count == 1 { String::new() } else { format!(" (nor {} more)", count - 1) };
        sink.warn(first, &format!("no message names this file{more}; it is not imported"));
    }
}
