//! Reads one export, conversation by conversation.

use satchel_importer::{
    AccountRecord, Bundle, Element, ImportError, Importer as _, JsonArray, RecordKind, Sink, Summary,
    natural_key,
};

use crate::{
    DeepSeek, detect,
    map::{self, Context},
    raw,
};

/// Reads all that detection claimed for `format`.
pub(crate) fn run(format: &str, bundle: &Bundle, sink: &mut Sink) -> Result<Summary, ImportError> {
    let version = DeepSeek::describe().version_of(format)?;
    let exports = detect::find_exports(bundle)?;
    let mut users: Vec<(String, String)> =
        exports.iter().filter_map(|export| Some((export.user.clone()?, export.account.clone()?))).collect();
    if exports.is_empty() {
        users = detect::lone_users(bundle)?;
        if users.is_empty() {
            return Err(ImportError::not_this_format("none of the files is of a DeepSeek export"));
        }
    }
    for (locator, id) in users {
        sink.account(&AccountRecord { id, name: None, locator })?;
    }
    for export in &exports {
        let context = Context { version, account: export.account.as_deref() };
        // A cached conversation is valid only for the same account.
        let note = natural_key(&[context.account]).into_bytes();
        JsonArray::new(&export.path).pointer(export.pointer).each(bundle, sink, |element, sink| {
            element.remembering(
                sink,
                |noted| noted == note,
                |sink| conversation(&element, &context, sink).map(|()| Some(note.clone())),
            )
        })?;
    }
    Ok(bundle.summary())
}

fn conversation(element: &Element<'_>, context: &Context<'_>, sink: &mut Sink) -> Result<(), ImportError> {
    let raw = raw::Conversation::read(&mut element.parser())?
        .ok_or_else(|| ImportError::malformed("it is not an object"))?;
    let records =
        map::records(raw, context, &element.locator(), element.arena()).map_err(ImportError::malformed)?;
    for (locator, message) in &records.warnings {
        sink.warn(locator, message);
    }
    sink.conversation(&records.conversation, &records.messages)?;
    for (locator, reason) in &records.skipped {
        sink.skip(RecordKind::Message, locator, reason)?;
    }
    Ok(())
}
