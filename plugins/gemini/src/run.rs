//! Reads one export: its activity, then the other files in order.

use satchel_importer::{Bundle, Element, ImportError, Importer as _, JsonArray, Sink, Summary};

use crate::{
    Gemini,
    activity::{self, ActivityFormat, Index},
    conversation_file::ConversationFile,
    detect::{self, File, FileKind},
    gems, studio, workspace,
};

const UNREAD: &str = "settings of this kind are not read; they are not imported";

/// Imports every file that detection claimed for `format`.
pub(crate) fn run(format: &str, bundle: &Bundle, sink: &mut Sink) -> Result<Summary, ImportError> {
    Gemini::describe().version_of(format)?;
    let files: Vec<File> = detect::find_exports(bundle)?.into_values().flatten().collect();
    if !files.iter().any(|file| file.kind != FileKind::Attachment) {
        return Err(ImportError::not_this_format("none of the files is of a Gemini export"));
    }
    read_activity(&files, bundle, sink)?;
    for File { path, kind } in &files {
        match kind {
            FileKind::Workspace => read_file(path, detect::WORKSPACE, workspace::read, bundle, sink)?,
            FileKind::Studio => read_file(path, detect::STUDIO, studio::read, bundle, sink)?,
            FileKind::Settings(setting) => gems::read(path, *setting, bundle, sink)?,
            FileKind::UnknownSettings => sink.warn(path, UNREAD),
            FileKind::Activity(_) | FileKind::Attachment => {}
        }
    }
    Ok(bundle.summary())
}

fn read_activity(files: &[File], bundle: &Bundle, sink: &mut Sink) -> Result<(), ImportError> {
    let info = Gemini::describe();
    let mut index = Index::default();
    // Lists come first: pages hold less.
    for format in [ActivityFormat::List, ActivityFormat::Page] {
        for file in files.iter().filter(|file| file.kind == FileKind::Activity(format)) {
            index.add(&file.path, format, bundle, sink)?;
        }
    }
    let versions = (info.version_of(detect::LIST)?, info.version_of(detect::PAGE)?);
    activity::emit(&index, versions, bundle, sink)
}

fn read_file(
    path: &str,
    format: &str,
    read: impl for<'a> Fn(&Element<'a>, &ConversationFile<'_, 'a>, &mut Sink) -> Result<(), ImportError>,
    bundle: &Bundle,
    sink: &mut Sink,
) -> Result<(), ImportError> {
    let version = Gemini::describe().version_of(format)?;
    JsonArray::new(path).each(bundle, sink, |element, sink| {
        let (locator, arena) = (&element.locator(), element.arena());
        read(&element, &ConversationFile { version, path, bundle, locator, arena }, sink)
    })?;
    Ok(())
}
