//! Reads all that detection claimed.

use satchel_importer::{Bundle, ImportError, Importer as _, Sink, Summary};

use crate::{Goose, database, detect, export, memory, transcript};

/// Reads every session and every memory among the files, whatever `format` detection gave them.
pub(crate) fn run(format: &str, bundle: &Bundle, sink: &mut Sink) -> Result<Summary, ImportError> {
    Goose::describe().version_of(format)?;
    let mut found = false;
    for path in detect::candidates(bundle) {
        match detect::format_of(bundle, path)? {
            Some(detect::LINES) => transcript::read(bundle, path, sink)?,
            Some(detect::DATABASE) => database::read(bundle, path, sink)?,
            Some(_) => export::read(bundle, path, sink)?,
            None => continue,
        }
        found = true;
    }
    found |= memory::read(bundle, format == detect::MEMORIES, sink)?;
    if !found {
        return Err(ImportError::not_this_format("none of the files is a session or a memory of Goose"));
    }
    Ok(bundle.summary())
}
