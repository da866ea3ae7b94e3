//! Reads all that detection claimed.

use std::collections::BTreeSet;

use satchel_importer::{Bundle, ImportError, Importer as _, RecordKind, Sink, Summary};

use crate::{OpenCode, database, detect, export, reading::read_object, storage, storage_index::StorageIndex};

/// Reads every storage, export and database among the files, whatever `format` detection gave them.
pub(crate) fn run(format: &str, bundle: &Bundle, sink: &mut Sink) -> Result<Summary, ImportError> {
    OpenCode::describe().version_of(format)?;
    let index = StorageIndex::read(bundle);
    let projects = detect::projects(bundle, &index)?;
    let mut taken = BTreeSet::new();
    for ((root, project), sessions) in &projects {
        let project = match index.project(root, project) {
            Some(path) => read_object(bundle, path, RecordKind::File, sink)?,
            None => None,
        };
        for key in sessions {
            storage::read(bundle, &index, *key, project.as_deref(), &mut taken, sink)?;
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
    let databases = database::databases(bundle)?;
    for path in &databases {
        database::read(bundle, path, sink)?;
    }
    if projects.is_empty() && exports.is_empty() && databases.is_empty() {
        return Err(ImportError::not_this_format("none of the files is a session of OpenCode"));
    }
    Ok(bundle.summary())
}
