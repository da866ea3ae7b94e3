//! Makes damage that only a check finds, for tests of the checks. Released programs do not contain it.

use crate::{
    engine::{self, Changes},
    error::StoreError,
    keys,
    store::Store,
};

impl Store {
    /// Removes the first memory from the database without the journal knowing.
    ///
    /// # Errors
    /// Any error of the engine.
    pub fn remove_first_memory(&self) -> Result<(), StoreError> {
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
