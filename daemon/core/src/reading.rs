//! Opens a store, or, where its disk takes nothing, at least for reading.

use std::path::Path;

use satchel_source::chain;
use satchel_store::{OpenEvent, OpenOptions, Store, StoreError};

/// Opens the store in `data_dir`; one whose disk is full or read-only is built in memory, and then why is answered too.
///
/// # Errors
/// As [`Store::open`] and [`Store::open_to_read`].
pub fn open(
    data_dir: &Path,
    options: OpenOptions,
    report: &mut dyn FnMut(OpenEvent),
) -> Result<(Store, Option<String>), StoreError> {
    match Store::open(data_dir, options.clone(), report) {
        Err(error) if error.unwritable() && data_dir.join("journal").is_dir() => {
            let reason = chain(&error);
            let store = Store::open_to_read(data_dir, options, reason.clone(), report)?;
            Ok((store, Some(reason)))
        }
        store => Ok((store?, None)),
    }
}
