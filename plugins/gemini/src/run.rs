//! Reads one export: its activity, then files of one conversation each, then what it says about memories.

use satchel_importer::{Bundle, Element, ImportError, Importer as _, JsonArray, Sink, Summary};

use crate::{
    Gemini,
    activity::{self, Index, Shape},
    detect::{self, File, Kind},
    gems, studio, workspace,
};

const UNREAD: &str = "settings of this kind are not read; they are not imported";

/// Reads all that detection claimed for `format`.
pub(crate) fn run(format: &str, bundle: &Bundle, sink: &mut Sink) -> Result<Summary, ImportError> {
    let info = Gemini::describe();
    info.version_of(format)?;
    let files: Vec<File> = detect::survey(bundle)?.into_values().flatten().collect();
    if !files.iter().any(|file| file.kind != Kind::Attachment) {
        return Err(ImportError::not_this_format("none of the files is of a Gemini export"));
    }
    read_activity(&files, bundle, sink)?;
    for File { path, kind } in &files {
        match kind {
            Kind::Workspace => each(path, bundle, sink, |element, sink| {
                workspace::read(element, info.version_of(detect::WORKSPACE)?, path, bundle, sink)
            })?,
            Kind::Studio => each(path, bundle, sink, |element, sink| {
                studio::read(element, info.version_of(detect::STUDIO)?, path, bundle, sink)
            })?,
            Kind::Settings(setting) => gems::read(path, *setting, bundle, sink)?,
            Kind::Unknown => sink.warn(path, UNREAD),
            Kind::Activity(_) | Kind::Attachment => {}
        }
    }
    Ok(bundle.summary())
}

fn read_activity(files: &[File], bundle: &Bundle, sink: &mut Sink) -> Result<(), ImportError> {
    let info = Gemini::describe();
    let mut index = Index::default();
    for shape in [Shape::List, Shape::Page] {
        for file in files.iter().filter(|file| file.kind == Kind::Activity(shape)) {
            index.add(&file.path, shape, bundle, sink)?;
        }
    }
    let versions = (info.version_of(detect::LIST)?, info.version_of(detect::PAGE)?);
    activity::emit(&index, versions, bundle, sink)
}

fn each(
    path: &str,
    bundle: &Bundle,
    sink: &mut Sink,
    mut read: impl FnMut(&Element<'_>, &mut Sink) -> Result<(), ImportError>,
) -> Result<(), ImportError> {
    JsonArray::new(path).each(bundle, sink, |element, sink| read(&element, sink))?;
    Ok(())
}
