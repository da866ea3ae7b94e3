//! Reports what is not understood in the messages of a session, each kind of it once.

use satchel_importer::{
    ImportError, RecordKind, Sink,
    warnings::{Warnings, shortened},
};

use crate::message::Record;

/// The warning instead of all further ones.
pub(crate) const NOT_LISTED: &str =
    "there are more kinds of warnings about this session, which are not listed";

/// Reports what is not understood in the message at `place`.
pub(crate) fn report(
    record: &Record<'_>,
    place: &str,
    warnings: &mut Warnings,
    sink: &mut Sink,
) -> Result<(), ImportError> {
    for (at, problem) in &record.broken {
        sink.skip(RecordKind::Message, &format!("{place}.content[{at}]"), problem)?;
    }
    let role = record
        .unknown_role
        .map(|role| format!("the role {:?} is unknown; the message is read as an answer", shortened(role)));
    let types = record.unknown.iter().map(|kind| {
        format!("a part of the unknown type {:?} is kept, and its text is read", shortened(kind))
    });
    let fields = record.unknown_fields.iter().map(|field| {
        format!("the field {:?} of a prompt is unknown; it may say who wrote the prompt", shortened(field))
    });
    for warning in role.into_iter().chain(types).chain(fields) {
        warnings.warn(place, warning, sink);
    }
    if record.unreadable {
        sink.warn(place, "a file in it cannot be decoded or is larger than 16 MiB; it is left out");
    }
    Ok(())
}
