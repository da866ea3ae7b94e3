//! The engine of an encrypted store: values are sealed, bound to their keys, when they are written, and opened when they are
//! read.

use std::{io, sync::Arc};

use satchel_seal::{KEY_ID, NONCE, Seal};

use super::{Changes, Engine, EngineError, Pair};
use crate::{
    codec::hex,
    keys::Id16,
    value::{self, PLAIN},
};

/// The first bytes of a sealed value: version and key id.
const SEALED: [u8; HEAD] = [value::ENVELOPE, KEY_ID.to_be_bytes()[0], KEY_ID.to_be_bytes()[1]];
/// Length of this prefix.
const HEAD: usize = PLAIN.len();

/// Seals the values of another engine.
pub(crate) struct SealedEngine {
    inner: Arc<dyn Engine>,
    seal: Seal,
}

impl SealedEngine {
    pub(crate) fn new(inner: Arc<dyn Engine>, seal: Seal) -> Self {
        Self { inner, seal }
    }

    /// Turns a plain envelope into a sealed one. Empty values, which only mark that a key exists, stay empty.
    fn seal(&self, key: &[u8], plain: &[u8]) -> io::Result<Vec<u8>> {
        if plain.is_empty() {
            return Ok(Vec::new());
        }
        let bare = || io::Error::other("a value without an envelope is not written to an encrypted store");
        let content = plain.strip_prefix(PLAIN.as_slice()).ok_or_else(bare)?;
        let mut sealed = Vec::with_capacity(plain.len() + satchel_seal::OVERHEAD);
        sealed.extend_from_slice(&SEALED);
        sealed.resize(HEAD + NONCE, 0);
        sealed.extend_from_slice(content);
        self.seal.values().seal_tail(key, &mut sealed, HEAD)?;
        Ok(sealed)
    }

    /// Turns a sealed envelope into a plain one. A plain envelope is refused: this engine never writes one, so somebody without
    /// the key did.
    fn open(&self, key: &[u8], mut stored: Vec<u8>) -> Result<Vec<u8>, EngineError> {
        if stored.is_empty() {
            return Ok(stored);
        }
        let problem = || {
            EngineError(format!(
                "the value of key {} does not open with the data key; it was changed or put in another's place",
                hex(key)
            ))
        };
        let sealed = stored.strip_prefix(SEALED.as_slice()).ok_or_else(problem)?.len();
        let start = stored.len() - sealed;
        let length = self.seal.values().open_in_place(key, &mut stored[start..]).ok_or_else(problem)?.len();
        stored.truncate(HEAD + NONCE + length);
        stored.drain(HEAD..HEAD + NONCE);
        stored[1..HEAD].fill(0);
        Ok(stored)
    }
}

impl Engine for SealedEngine {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, EngineError> {
        self.inner.get(key)?.map(|stored| self.open(key, stored)).transpose()
    }

    fn scan(&self, from: &[u8], until: &[u8], limit: usize, reverse: bool) -> Result<Vec<Pair>, EngineError> {
        let pairs = self.inner.scan(from, until, limit, reverse)?;
        let open = |(key, stored): Pair| self.open(&key, stored).map(|value| (key, value));
        pairs.into_iter().map(open).collect()
    }

    fn apply(&self, batch: Changes) -> Result<(), EngineError> {
        let mut sealed = Changes::default();
        for (key, value) in batch.operations {
            match value {
                Some(plain) => {
                    let value = self.seal(&key, &plain).map_err(|error| EngineError(error.to_string()))?;
                    sealed.put(key, value);
                }
                None => sealed.delete(key),
            }
        }
        self.inner.apply(sealed)
    }

    fn flush(&self) -> Result<(), EngineError> {
        self.inner.flush()
    }

    fn size(&self) -> u64 {
        self.inner.size()
    }

    fn blind(&self, name: &str) -> Id16 {
        self.seal.blind(name)
    }
}
