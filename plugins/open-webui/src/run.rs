//! Reads one export or database, chat by chat.

use satchel_importer::{
    Arena, Bundle, Element, ImportError, Importer as _, JsonArray, RecordKind, Sink, Summary,
};

use crate::{
    OpenWebUi, database,
    detect::{self, Content},
    map, raw,
};

/// Reads the files that detection claimed for `format`; each shape is read under each format.
pub(crate) fn run(format: &str, bundle: &Bundle, sink: &mut Sink) -> Result<Summary, ImportError> {
    let version = OpenWebUi::describe().version_of(format)?;
    let exports = detect::exports(bundle)?;
    if exports.is_empty() {
        return Err(ImportError::not_this_format("none of the files is of an export of Open WebUI"));
    }
    for export in &exports {
        if let Content::Database(_) = export.content {
            database::read(bundle, &export.path, version, sink)?;
            continue;
        }
        JsonArray::new(&export.path).each(bundle, sink, |element, sink| {
            // The records depend on the element and on the version.
            element.remembering(
                sink,
                |noted| noted == version.as_bytes(),
                |sink| chat(&element, version, sink).map(|()| Some(version.as_bytes().to_vec())),
            )
        })?;
    }
    Ok(bundle.summary())
}

fn chat(element: &Element<'_>, version: &'static str, sink: &mut Sink) -> Result<(), ImportError> {
    let raw = raw::Chat::read(&mut element.parser())?
        .ok_or_else(|| ImportError::malformed("it is not an object"))?;
    emit(raw, version, &element.locator(), element.arena(), sink)
}

/// Emits the records of one chat.
pub(crate) fn emit<'a>(
    raw: raw::Chat<'a>,
    version: &'static str,
    locator: &str,
    arena: &'a Arena,
    sink: &mut Sink,
) -> Result<(), ImportError> {
    let records = map::records(raw, version, locator, arena).map_err(ImportError::malformed)?;
    for (locator, message) in &records.warnings {
        sink.warn(locator, message);
    }
    sink.conversation(&records.conversation, &records.messages)?;
    for (locator, reason) in &records.skipped {
        sink.skip(RecordKind::Message, locator, reason)?;
    }
    Ok(())
}
