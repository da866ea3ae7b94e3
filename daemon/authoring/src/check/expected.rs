//! Compares the output with `expected.json`.

use std::path::Path;

use satchel_importer::testkit::{FixtureError, by_kind, first_difference, read_expected, write_expected};

use super::{
    CheckError,
    output::SandboxOutput,
    report::{CheckKind, CheckResult, Outcome},
};

/// Compares the output with `expected.json` in `folder`; with `update`, writes that file if it differs. A file that
/// differs only in the order of records of different kinds stays as it is: an importer in Rust may have written it
/// natively.
pub(super) fn check(folder: &Path, output: &SandboxOutput, update: bool) -> Result<CheckResult, CheckError> {
    let produced = output
        .produced
        .to_json()
        .map_err(|error| FixtureError::Failed { path: folder.to_owned(), source: error.into() })?;
    let path = folder.join("expected.json");
    let expected = if path.exists() { Some(read_expected(folder)) } else { None };
    let difference = match expected {
        None => Some("there is no expected.json yet; --update writes it".to_owned()),
        Some(Err(error)) if update => Some(error.to_string()),
        Some(Err(error)) => return Err(error.into()),
        Some(Ok(expected)) => first_difference(&by_kind(expected), &by_kind(produced.clone())),
    };
    let kind = CheckKind::Expected;
    match difference {
        Some(_) if update => {
            write_expected(folder, &produced)?;
            Ok(CheckResult { kind, outcome: Outcome::Updated })
        }
        difference => Ok(CheckResult::new(kind, difference.into_iter().collect())),
    }
}
