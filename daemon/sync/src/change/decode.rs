//! Reads the encoding of a change.

use satchel_pam::hash::Sha256Digest;

use super::{Change, ChangeError, DOMAIN, Kind, SignedChange};
use crate::{
    cursor::Cursor,
    frontier::{Frontier, FrontierError},
    head::{ChangeHash, Counter},
    limits::{MAX_INLINE_BYTES, VERSION},
    origin::OriginId,
    payload::PayloadId,
};

impl SignedChange {
    /// Decodes a change. Its signature is not checked.
    ///
    /// Allocates no more than a small multiple of `bytes.len()`, whatever lengths the bytes claim.
    ///
    /// # Errors
    /// If the bytes are anything other than what [`SignedChange::encode`] writes.
    pub fn decode(bytes: &[u8]) -> Result<Self, ChangeError> {
        let mut cursor = Cursor::new(bytes);
        let change = read(&mut cursor)?;
        let signed = [DOMAIN, &bytes[..bytes.len() - cursor.left()]].concat();
        let signature = cursor.array()?;
        let payload = read_payload(&mut cursor)?;
        if cursor.left() != 0 {
            return Err(ChangeError::Trailing { bytes: cursor.left() });
        }
        change.check()?;
        if payload.is_none() && change.kind == Kind::GENESIS {
            return Err(ChangeError::NoKey { origin: change.origin });
        }
        let signed = Self { hash: ChangeHash::of(&signed), change, signature, payload: None };
        match payload {
            Some(payload) => signed.with_payload(payload),
            None => Ok(signed),
        }
    }
}

fn read(cursor: &mut Cursor<'_>) -> Result<Change, ChangeError> {
    let (origin, counter) = read_prefix(cursor)?;
    let previous = ChangeHash::from_bytes(cursor.array()?);
    let kind = Kind(cursor.u16()?);
    let context = Frontier::read(cursor).map_err(|error| match error {
        FrontierError::Truncated => ChangeError::Truncated,
        error => ChangeError::Context(error),
    })?;
    let payload = PayloadId { length: cursor.u64()?, digest: Sha256Digest::from_bytes(cursor.array()?) };
    Ok(Change { origin, counter, previous, context, kind, payload })
}

/// Reads the payload, if it is present.
fn read_payload(cursor: &mut Cursor<'_>) -> Result<Option<Vec<u8>>, ChangeError> {
    let [presence] = cursor.array()?;
    match presence {
        0 => Ok(None),
        1 => {
            let found = usize::try_from(cursor.u32()?).unwrap_or(usize::MAX);
            if found > MAX_INLINE_BYTES {
                return Err(ChangeError::NotInline { found });
            }
            Ok(Some(cursor.take(found)?.to_vec()))
        }
        found => Err(ChangeError::Presence { found }),
    }
}

/// Reads the fields that stay at their place in all versions, so that a version from the future stops one origin only.
fn read_prefix(cursor: &mut Cursor<'_>) -> Result<(OriginId, Counter), ChangeError> {
    let found = cursor.u16()?;
    let origin = OriginId::from_bytes(cursor.array()?);
    let counter = cursor.u64()?;
    if found != VERSION {
        return Err(ChangeError::UnknownVersion { origin, counter, found });
    }
    if counter == 0 {
        return Err(ChangeError::ZeroCounter { origin });
    }
    let counter = Counter::new(counter).ok_or(ChangeError::CounterOverflow { origin, counter })?;
    Ok((origin, counter))
}
