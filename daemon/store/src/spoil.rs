//! Damage that only a check finds, for tests of what looks for it; no program is built with it.

use crate::{
    engine::{self, Changes},
    error::StoreError,
    keys,
    store::Store,
};

impl Store {
    /// Takes the first memory out of the database behind the journal's back.
    ///
    /// # Errors
    /// What the engine refuses.
    pub fn spoil(&self) -> Result<(), StoreError> {
        let mut first = None;
        engine::walk::<StoreError>(self.engine(), &[keys::MEMORY], None, |key, _| {
            first = Some(key.to_vec());
            Ok(false)
        })?;
        let mut changes = Changes::default();
        if let Some(key) = first {
            changes.delete(key);
        }
        Ok(self.engine().apply(changes)?)
    }
}
