//! The checksum that a key file holds of itself: a file of which a bit has changed would hold another key, and say nothing.

use satchel_pam::{hash::Sha256Digest, jcs};
use serde::Serialize;

/// The SHA-256, in hex digits, of the canonical JSON of `file` without its own member `checksum`; none if it is no object.
pub(crate) fn of(file: &impl Serialize) -> Option<String> {
    let mut value = serde_json::to_value(file).ok()?;
    value.as_object_mut()?.remove("checksum");
    Some(Sha256Digest::of(&jcs::write(&value).ok()?).to_hex())
}
