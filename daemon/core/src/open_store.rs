//! Opens a store, falling back to read-only access if its disk cannot be written.

use std::path::Path;

use satchel_source::chain;
use satchel_store::{OpenEvent, OpenOptions, Store, StoreError};

/// Opens the store in `data_dir`. If its disk is full or read-only, the database is built in memory, and the reason is
/// returned too.
///
/// # Errors
/// As [`Store::open`] and [`Store::open_read_only`].
pub fn open_or_read_only(
    data_dir: &Path,
    options: OpenOptions,
    report: &mut dyn FnMut(OpenEvent),
) -> Result<(Store, Option<String>), StoreError> {
    match Store::open(data_dir, options.clone(), report) {
        Err(error) if error.unwritable() && data_dir.join("journal").is_dir() => {
            let reason = chain(&error);
            let store = Store::open_read_only(data_dir, options, reason.clone(), report)?;
            Ok((store, Some(reason)))
        }
        store => Ok((store?, None)),
    }
}
