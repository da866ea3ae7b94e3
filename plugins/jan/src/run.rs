//! Reads all that detection claimed.

use std::collections::BTreeMap;

use satchel_importer::{Bundle, ImportError, Importer as _, Sink, Summary};

use crate::{
    Jan,
    chat::{self, Messages, Thread},
    detect,
    file::Files,
    header::Header,
    layout::{self, ThreadFiles},
};

/// Reads every thread and export among the files, whatever `format` detection gave them.
pub(crate) fn run(format: &str, bundle: &Bundle, sink: &mut Sink) -> Result<Summary, ImportError> {
    Jan::describe().version_of(format)?;
    let (threads, exports) = (detect::threads(bundle)?, detect::exports(bundle)?);
    if threads.is_empty() && exports.is_empty() {
        return Err(ImportError::not_this_format("none of the files is a thread of Jan"));
    }
    let mut taken: BTreeMap<String, usize> = BTreeMap::new();
    let mut name = |id: String| {
        let count = taken.entry(id.clone()).or_default();
        *count += 1;
        if *count == 1 { (id, false) } else { (format!("{id}#{count}"), true) }
    };
    let mut unused = Vec::new();
    for (folder, files) in &threads {
        unused.extend(read_thread(bundle, folder, files, &mut name, sink)?);
    }
    for path in exports {
        let header = Header::of_export(bundle, path)?;
        let messages = Some(Messages::Export(path));
        let thread = Thread { header, messages, name: "", locator: path, format: detect::EXPORT };
        thread.read(bundle, &Files::new(bundle, ""), &mut name, sink)?;
        chat::report_others(bundle, path, sink)?;
    }
    if let [first, ..] = unused.as_slice() {
        sink.warn(first, &format!("files that no message names are left out: {}", unused.len()));
    }
    Ok(bundle.summary())
}

/// Reads a thread, and returns the files in its folder that no message names.
fn read_thread<'p>(
    bundle: &Bundle,
    folder: &str,
    files: &ThreadFiles<'p>,
    name: &mut dyn FnMut(String) -> (String, bool),
    sink: &mut Sink,
) -> Result<Vec<&'p str>, ImportError> {
    let header = match files.head {
        Some(path) => Header::of_thread(bundle, path, sink)?,
        None => Header::default(),
    };
    let thread = Thread {
        header,
        messages: files.messages.map(Messages::Lines),
        name: layout::name(folder),
        locator: files.messages.or(files.head).unwrap_or(folder),
        format: detect::THREADS,
    };
    let found = Files::new(bundle, folder);
    thread.read(bundle, &found, name, sink)?;
    let used = found.used.into_inner();
    Ok(files.others.iter().copied().filter(|path| !used.contains(*path)).collect())
}
