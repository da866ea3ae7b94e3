//! Conversion of WIT records to the records of `satchel-pam`. Every field is named and every text is moved, not copied.

mod conversation;
mod memory;

pub(crate) use self::{
    conversation::{conversation, message},
    memory::{embedding, evidence, relation},
};
use satchel_pam::{
    raw::RawObject,
    record::{AccountRecord, RecordKind, Skip},
};

use crate::{
    bindings::satchel::importer::{accounts, sink as wit},
    collect::RecordNotes,
};

pub(crate) fn skip(kind: wit::RecordKind, locator: String, reason: String) -> Skip {
    let kind = match kind {
        wit::RecordKind::Conversation => RecordKind::Conversation,
        wit::RecordKind::Message => RecordKind::Message,
        wit::RecordKind::Memory => RecordKind::Memory,
        wit::RecordKind::File => RecordKind::File,
    };
    Skip { kind, locator, reason }
}

pub(crate) fn account(account: accounts::Account) -> AccountRecord {
    let accounts::Account { id, name, locator } = account;
    AccountRecord { id, name, locator }
}

/// Parses the text of a JSON object. Text that is not a JSON object is left out with a note.
fn raw_object(field: &str, text: Option<String>, notes: &mut RecordNotes) -> Option<RawObject> {
    match RawObject::parse_noting(text?) {
        Ok((object, repairs)) => {
            if repairs.duplicate_keys {
                notes.add(format!("an object in {field} gives a key twice; the last value is read"));
            }
            Some(object)
        }
        Err(problem) => {
            notes.left_out(field, &format!("is not a JSON object ({problem})"));
            None
        }
    }
}

#[cfg(test)]
mod tests;
