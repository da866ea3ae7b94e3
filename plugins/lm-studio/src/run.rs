//! Reads all chats that detection claimed.

use std::{cell::RefCell, collections::BTreeMap};

use satchel_importer::{Bundle, ImportError, Importer as _, Sink, Summary};

use crate::{LmStudio, chat, detect, files::Files, layout};

/// Reads every chat among the files, in the order of their paths.
pub(crate) fn run(format: &str, bundle: &Bundle, sink: &mut Sink) -> Result<Summary, ImportError> {
    LmStudio::describe().version_of(format)?;
    let chats = detect::chats(bundle)?;
    if chats.is_empty() {
        return Err(ImportError::not_this_format("none of the files is a chat of LM Studio"));
    }
    let (mut taken, used) = (BTreeMap::<String, usize>::new(), RefCell::default());
    for path in &chats {
        let files = Files::new(bundle, layout::place(path).root, &used);
        let mut name = |id: String| {
            let count = taken.entry(id.clone()).or_default();
            *count += 1;
            if *count == 1 { (id, false) } else { (format!("{id}#{count}"), true) }
        };
        chat::read(bundle, path, &files, &mut name, sink)?;
    }
    let used = used.into_inner();
    let others = bundle.entries().iter().map(|entry| entry.path.as_str());
    let others: Vec<&str> = others
        .filter(|path| !used.contains(*path) && !chats.contains(path) && !layout::is_description(path))
        .collect();
    if let [first, ..] = others.as_slice() {
        let message = format!("files that no message names are left out: {}", others.len());
        sink.warn(first, &message);
    }
    Ok(bundle.summary())
}
