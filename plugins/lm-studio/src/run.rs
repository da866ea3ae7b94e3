//! Reads all chats that detection claimed.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
};

use satchel_importer::{Bundle, ErrorKind, ImportError, Importer as _, RecordKind, Sink, Summary};

use crate::{LmStudio, chat, detect, files::Files, layout};

/// Reads every chat among the files.
pub(crate) fn run(format: &str, bundle: &Bundle, sink: &mut Sink) -> Result<Summary, ImportError> {
    LmStudio::describe().version_of(format)?;
    let chats = detect::chats(bundle)?;
    if chats.is_empty() {
        return Err(ImportError::not_this_format("none of the files is a chat of LM Studio"));
    }
    let used = RefCell::default();
    read_chats(bundle, &chats, &used, sink)?;
    report_unused(bundle, &chats, &used.into_inner(), sink);
    Ok(bundle.summary())
}

/// Reads the chats. Those whose files have the names that the program gives are first, so that a copy with another name does not take the
/// id of its original.
fn read_chats(
    bundle: &Bundle,
    chats: &[&str],
    used: &RefCell<BTreeSet<String>>,
    sink: &mut Sink,
) -> Result<(), ImportError> {
    let mut taken = BTreeMap::<String, usize>::new();
    let mut name = |id: String| {
        let count = taken.entry(id.clone()).or_default();
        *count += 1;
        if *count == 1 { (id, false) } else { (format!("{id}#{count}"), true) }
    };
    let (own, renamed): (Vec<&str>, Vec<&str>) =
        chats.iter().partition(|path| layout::named_time(path).is_some());
    for path in own.into_iter().chain(renamed) {
        let files = Files::new(bundle, layout::location(path).root, used);
        match chat::read(bundle, path, &files, &mut name, sink) {
            // One chat that cannot be read must not cost the others.
            Err(error) if matches!(error.kind, ErrorKind::Malformed | ErrorKind::NotThisFormat) => {
                sink.skip(RecordKind::Conversation, path, &error.message)?;
            }
            result => result?,
        }
    }
    Ok(())
}

/// Reports the files that no message names.
fn report_unused(bundle: &Bundle, chats: &[&str], used: &BTreeSet<String>, sink: &mut Sink) {
    // The paths are in the order of the bundle.
    let is_chat = |path: &str| chats.binary_search(&path).is_ok();
    let paths = bundle.entries().iter().map(|entry| entry.path.as_str());
    let mut unused =
        paths.filter(|path| !used.contains(*path) && !is_chat(path) && !layout::is_description(path));
    if let Some(first) = unused.next() {
        let count = 1 + unused.count();
        sink.warn(first, &format!("files that no message names are left out: {count}"));
    }
}
