//! Checks that a run with the memo of earlier runs emits the same as a run that reads everything.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use super::{FixtureError, first_difference, without_locators};
use crate::{Bundle, Importer, Sink, native::Memo};

/// Reads all fixtures with the memo of those before, and then again with the memo of all. The fixtures have the same pieces
/// beside other files, so an incomplete note changes the output.
pub(super) fn check<T: Importer>(fixtures: &[PathBuf]) -> Result<(), FixtureError> {
    let mut memos = BTreeMap::new();
    for fixture in fixtures.iter().chain(fixtures) {
        check_fixture::<T>(fixture, &mut memos)?;
    }
    Ok(())
}

fn check_fixture<T: Importer>(
    fixture: &Path,
    memos: &mut BTreeMap<String, Memo>,
) -> Result<(), FixtureError> {
    let failed = FixtureError::at(fixture);
    let bundle = Bundle::from_folder(&fixture.join("input")).map_err(&failed)?;
    for detection in T::detect(&bundle).map_err(&failed)? {
        let files = bundle.only(&detection.files);
        let mut plain = Sink::collecting();
        let expected = T::run(&detection.format, &files, &mut plain).err();
        let mut sink = Sink::with_memo(memos.remove(&detection.format).unwrap_or_default());
        let error = T::run(&detection.format, &files, &mut sink).err();
        let (lines, memo) = sink.into_lines_and_memo();
        memos.insert(detection.format, memo);
        let difference = first_difference(&without_locators(&plain.into_lines()), &without_locators(&lines))
            .or_else(|| (error != expected).then(|| format!("{error:?} instead of {expected:?}")));
        if let Some(difference) = difference {
            return Err(FixtureError::Reuse { path: fixture.to_owned(), difference });
        }
    }
    Ok(())
}
