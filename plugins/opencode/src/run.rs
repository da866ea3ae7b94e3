//! Reads all that detection claimed.

use satchel_importer::{Bundle, ImportError, Importer as _, RecordKind, Sink, Summary};

use crate::{OpenCode, detect, export, storage, storage_index::StorageIndex};

/// Reads every storage and export among the files, whatever `format` detection gave them.
pub(crate) fn run(format: &str, bundle: &Bundle, sink: &mut Sink) -> Result<Summary, ImportError> {
    OpenCode::describe().version_of(format)?;
    let index = StorageIndex::read(bundle);
    let projects = detect::projects(bundle, &index)?;
    for ((root, project), sessions) in &projects {
        for key in sessions {
            storage::read(bundle, &index, *key, index.project(root, project), sink)?;
        }
    }
    if !projects.is_empty() {
        for (_, path) in index.lost_parts() {
            sink.skip(RecordKind::File, path, "the message of this part is not there")?;
        }
    }
    let exports = detect::exports(bundle)?;
    for path in &exports {
        export::read(bundle, path, sink)?;
    }
    if projects.is_empty() && exports.is_empty() {
        return Err(ImportError::not_this_format("none of the files is a session of OpenCode"));
    }
    Ok(bundle.summary())
}
