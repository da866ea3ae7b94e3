//! What each target does with an input.

use satchel_importer::{Importer, testkit};

/// Panics with what `T` does wrong on `input`.
pub fn check<T: Importer>(input: &[u8]) {
    if let Err(flaw) = testkit::endure::<T>(input) {
        panic!("{flaw}");
    }
}
