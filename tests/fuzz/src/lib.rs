//! What each target does with an input.

use satchel_importer::{Importer, testkit};

/// Runs `T` on `input`.
///
/// # Panics
/// With what `T` does wrong.
pub fn check<T: Importer>(input: &[u8]) {
    if let Err(flaw) = testkit::check_input::<T>(input) {
        panic!("{flaw}");
    }
}
