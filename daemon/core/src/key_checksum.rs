//! The checksum in a key file. Without it, a flipped bit would silently turn the key into a different one.

use satchel_pam::{hash::Sha256Digest, jcs};
use serde::Serialize;

/// Returns the SHA-256, in hex digits, of the canonical JSON of `file` without its member `checksum`. Returns `None` if
/// it is not an object.
pub(crate) fn compute(file: &impl Serialize) -> Option<String> {
    let mut value = serde_json::to_value(file).ok()?;
    value.as_object_mut()?.remove("checksum");
    Some(Sha256Digest::of(&jcs::write(&value).ok()?).to_hex())
}
