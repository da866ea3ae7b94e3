//! Reads exports, one conversation at a time.

use satchel_importer::{Bundle, Element, ImportError, Importer as _, JsonArray, RecordKind, Sink, Summary};

use crate::{LibreChat, detect, map, raw, split};

/// The longest conversation that is read, in bytes; most have less than one MiB. The guest has 128 MiB, for the conversation and up to six
/// copies of its parts: nested messages, records and metadata.
const MAX_CONVERSATION: usize = 16 * 1024 * 1024;

/// Reads the files that detection claimed for `format`. Every layout is read under each format.
pub(crate) fn run(format: &str, bundle: &Bundle, sink: &mut Sink) -> Result<Summary, ImportError> {
    let version = LibreChat::describe().version_of(format)?;
    let exports = detect::exports(bundle)?;
    if exports.is_empty() {
        return Err(ImportError::not_this_format("no file is a conversation of LibreChat"));
    }
    for (path, _) in &exports {
        JsonArray::new(path).limit(MAX_CONVERSATION).each(bundle, sink, |element, sink| {
            // The records depend on the text and on the version.
            element.remembering(
                sink,
                |noted| noted == version.as_bytes(),
                |sink| conversation(&element, version, sink).map(|()| Some(version.as_bytes().to_vec())),
            )
        })?;
    }
    Ok(bundle.summary())
}

fn conversation(element: &Element<'_>, version: &'static str, sink: &mut Sink) -> Result<(), ImportError> {
    let arena = element.arena();
    let split = split::split(element.text(), arena)?;
    if !split.listed {
        return Err(ImportError::malformed("it has no list of messages"));
    }
    let export = raw::Export::read(split, arena)?;
    let records = map::records(export, version, &element.locator(), arena).map_err(ImportError::malformed)?;
    for (locator, message) in &records.warnings {
        sink.warn(locator, message);
    }
    sink.conversation(&records.conversation, &records.messages)?;
    sink.evidence(&records.evidence)?;
    for (locator, reason) in &records.skipped {
        sink.skip(RecordKind::Message, locator, reason)?;
    }
    Ok(())
}
