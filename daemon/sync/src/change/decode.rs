//! Reads the encoding of a change.

use super::{Change, ChangeError, DOMAIN, Kind, SignedChange};
use crate::{
    cursor::Cursor,
    frontier::{Frontier, FrontierError},
    head::{ChangeHash, Counter},
    limits::{MAX_PAYLOAD_BYTES, VERSION},
    origin::OriginId,
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
        if cursor.left() != 0 {
            return Err(ChangeError::Trailing { bytes: cursor.left() });
        }
        change.check()?;
        Ok(Self { hash: ChangeHash::of(&signed), change, signature })
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
    let found = usize::try_from(cursor.u32()?).unwrap_or(usize::MAX);
    if found > MAX_PAYLOAD_BYTES {
        return Err(ChangeError::TooLarge { found });
    }
    let payload = cursor.take(found)?.to_vec();
    Ok(Change { origin, counter, previous, context, kind, payload })
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
