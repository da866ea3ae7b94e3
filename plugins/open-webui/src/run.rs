//! Reads one export, chat by chat.

use satchel_importer::{Bundle, Element, ImportError, Importer as _, JsonArray, RecordKind, Sink, Summary};

use crate::{OpenWebUi, detect, map, raw};

/// Reads the files that detection claimed for `format`; each shape is read under each format.
pub(crate) fn run(format: &str, bundle: &Bundle, sink: &mut Sink) -> Result<Summary, ImportError> {
    let version = OpenWebUi::describe().version_of(format)?;
    let files = detect::exports(bundle)?;
    if files.is_empty() {
        return Err(ImportError::not_this_format("none of the files is of an export of Open WebUI"));
    }
    for (path, _) in &files {
        JsonArray::new(path).each(bundle, sink, |element, sink| {
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
    let records =
        map::records(raw, version, &element.locator(), element.arena()).map_err(ImportError::malformed)?;
    for (locator, message) in &records.warnings {
        sink.warn(locator, message);
    }
    sink.conversation(&records.conversation, &records.messages)?;
    for (locator, reason) in &records.skipped {
        sink.skip(RecordKind::Message, locator, reason)?;
    }
    Ok(())
}
