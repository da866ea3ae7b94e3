//! Tests importers natively on their fixtures.
//!
//! A fixture is a folder `fixtures/<behaviour>` with the files of an export in `input/` and the expected output in
//! `expected.json`. `UPDATE=1` in the environment rewrites that file; read the diff before you commit it.

use std::{
    collections::BTreeSet,
    env, fs, io,
    path::{Path, PathBuf},
};

use satchel_pam::record::Line;
use serde_json::{Value, json};

use crate::{Bundle, Detection, ImportError, Importer, Sink};

#[cfg(any(test, feature = "property-tests"))]
mod broken;
mod difference;
mod fields;
mod fuzz;
mod lines;
mod renamed_fields;
mod reuse;
pub mod round_trip;
mod run;
mod samples;
mod suite;

#[cfg(any(test, feature = "property-tests"))]
pub use broken::{BrokenFiles, CutFile};
pub use difference::{by_kind, first_difference, without_locators};
pub use fields::{Emitted, FieldCheck, FieldTable, Rule, value_of};
pub use fuzz::{FILE_SEPARATOR, Flaw, check_input, check_lines, input_files, replay};
pub use lines::{
    conversation_ids, conversations, evidence, messages, parents_are_messages, skips, skips_of, text,
    warnings,
};
pub use renamed_fields::{check_renamed_fields, check_renamed_samples};
pub use run::{
    FileRun, Threads, Unclaimed, cancelled_run, json_list, large_tree, nested_json, run_file, threads,
};
pub use samples::{Sample, check_other_samples};

/// The output of an importer for one fixture.
#[derive(Clone, Debug, PartialEq)]
pub struct Produced {
    /// One for each detected export, in the order of `detect`.
    pub exports: Vec<ProducedExport>,
}

/// The output of an importer for one export.
#[derive(Clone, Debug, PartialEq)]
pub struct ProducedExport {
    /// The result of `detect`.
    pub detection: Detection,
    /// What `run` emitted, in order.
    pub lines: Vec<Line>,
    /// The error with which `run` ended, if it failed.
    pub error: Option<ImportError>,
}

/// Why a check of fixtures failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FixtureError {
    /// A file or folder cannot be read or written or is not valid JSON, or detection failed.
    #[error("{path:?}: {source}")]
    Failed {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// There are no fixtures.
    #[error("{path:?} holds no fixture: no folder in it has a folder `input`")]
    Empty {
        /// The folder.
        path: PathBuf,
    },
    /// A run with the memo of earlier runs has another output.
    #[error(
        "{path:?}: with what earlier runs remembered of the same pieces it gives something else: {difference}"
    )]
    Reuse {
        /// The fixture.
        path: PathBuf,
        /// The first difference: where it is, and both sides.
        difference: String,
    },
    /// A check found faults.
    #[error("{} faults\n{}", faults.len(), faults.join("\n"))]
    Faults {
        /// One line for each: the fixture and what is wrong.
        faults: Vec<String>,
    },
    /// The output differs from `expected.json`.
    #[error("{path:?}: {difference}\nrun with UPDATE=1 to accept what comes out now")]
    Differs {
        /// The fixture.
        path: PathBuf,
        /// The first difference: where it is, and both sides.
        difference: String,
    },
}

/// Runs `T` on every fixture in `folder` and compares the output with `expected.json`; then again with the memo of all fixtures, which
/// must not change the output.
pub fn check<T: Importer>(folder: impl AsRef<Path>) -> Result<(), FixtureError> {
    for fixture in fixtures(folder.as_ref())? {
        compare(&fixture, &produce_folder::<T>(&fixture.join("input"))?)?;
    }
    reuse::check::<T>(&fixtures(folder.as_ref())?)
}

/// The fixtures in `folder`, sorted: the folders that contain a folder `input`.
///
/// # Errors
/// [`FixtureError::Empty`] if there are none.
pub fn fixtures(folder: &Path) -> Result<Vec<PathBuf>, FixtureError> {
    let mut found = entries_of(folder)?;
    found.retain(|path| path.join("input").is_dir());
    if found.is_empty() {
        return Err(FixtureError::Empty { path: folder.to_owned() });
    }
    Ok(found)
}

/// The files and folders in `folder`, sorted.
fn entries_of(folder: &Path) -> Result<Vec<PathBuf>, FixtureError> {
    let list = || fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>();
    let mut found = list().map_err(FixtureError::at(folder))?;
    found.sort();
    Ok(found)
}

/// A file of the export of a fixture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FixtureFile {
    /// The name of the fixture.
    pub fixture: String,
    /// The path of the file in the export.
    pub name: String,
    /// Its content.
    pub bytes: Vec<u8>,
}

/// The files of all fixtures in `folder`, sorted by fixture and path.
pub fn fixture_files(folder: impl AsRef<Path>) -> Result<Vec<FixtureFile>, FixtureError> {
    let mut files = Vec::new();
    for fixture in fixtures(folder.as_ref())? {
        let input = fixture.join("input");
        let name = fixture.file_name().unwrap_or_default().to_string_lossy();
        let bundle = Bundle::from_folder(&input).map_err(FixtureError::at(&input))?;
        for entry in bundle.entries() {
            let path = input.join(&entry.path);
            let bytes = fs::read(&path).map_err(FixtureError::at(&path))?;
            files.push(FixtureFile { fixture: name.clone().into_owned(), name: entry.path.clone(), bytes });
        }
    }
    Ok(files)
}

/// Detects and runs `T` on the files of a folder.
fn produce_folder<T: Importer>(folder: &Path) -> Result<Produced, FixtureError> {
    let produced = Bundle::from_folder(folder).and_then(|bundle| produce::<T>(&bundle));
    produced.map_err(FixtureError::at(folder))
}

/// Detects and runs `T` as the host does: each run has only the files that its detection claimed.
///
/// # Errors
/// If `detect` fails. An error of `run` is part of the result.
pub fn produce<T: Importer>(bundle: &Bundle) -> Result<Produced, ImportError> {
    let run = |detection: Detection| {
        let mut sink = Sink::collecting();
        let error = T::run(&detection.format, &bundle.only(&detection.files), &mut sink).err();
        ProducedExport { detection, lines: sink.into_lines(), error }
    };
    Ok(Produced { exports: T::detect(bundle)?.into_iter().map(run).collect() })
}

/// Checks the fixtures `names` in `folder`: the output of each must contain the text `present` and none of `secrets`, such as passwords,
/// keys and email addresses in the files of the fixture.
pub fn check_secrets<T: Importer>(
    folder: impl AsRef<Path>,
    names: &[&str],
    present: &str,
    secrets: &[&str],
) -> Result<(), FixtureError> {
    let mut faults = Vec::new();
    for name in names {
        let path = folder.as_ref().join(name);
        let produced = produce_folder::<T>(&path.join("input"))?.to_json();
        let text = produced.map_err(FixtureError::at(&path))?.to_string();
        faults.extend((!text.contains(present)).then(|| format!("{name}: {present:?} is not emitted")));
        let emitted = secrets.iter().filter(|secret| text.contains(**secret));
        faults.extend(emitted.map(|secret| format!("{name}: {secret:?} is emitted")));
    }
    FixtureError::of_faults(faults)
}

/// Compares the output with `expected.json` in the folder `fixture`, kind by kind ([`by_kind`]), or writes that file if `UPDATE=1` is set.
pub fn compare(fixture: &Path, produced: &Produced) -> Result<(), FixtureError> {
    let path = fixture.join("expected.json");
    let actual = produced.to_json().map_err(FixtureError::at(&path))?;
    if env::var_os("UPDATE").is_some_and(|value| value == "1") {
        return write_expected(fixture, &actual);
    }
    match first_difference(&by_kind(read_expected(fixture)?), &by_kind(actual)) {
        Some(difference) => Err(FixtureError::Differs { path: fixture.to_owned(), difference }),
        None => Ok(()),
    }
}

/// Reads `expected.json` in the folder `fixture`.
pub fn read_expected(fixture: &Path) -> Result<Value, FixtureError> {
    let path = fixture.join("expected.json");
    let expected = fs::read(&path).map_err(FixtureError::at(&path))?;
    serde_json::from_slice(&expected).map_err(FixtureError::at(&path))
}

/// Writes `expected.json` in the folder `fixture`, with the content that [`Produced::to_json`] returned.
pub fn write_expected(fixture: &Path, produced: &Value) -> Result<(), FixtureError> {
    let path = fixture.join("expected.json");
    let text = serde_json::to_string_pretty(produced).map_err(FixtureError::at(&path))?;
    fs::write(&path, text + "\n").map_err(FixtureError::at(&path))
}

impl FixtureError {
    /// Wraps an error about `path`.
    fn at<E: Into<Box<dyn std::error::Error + Send + Sync>>>(path: &Path) -> impl Fn(E) -> Self {
        move |source| Self::Failed { path: path.to_owned(), source: source.into() }
    }

    /// An error if there are faults.
    fn of_faults(faults: Vec<String>) -> Result<(), Self> {
        if faults.is_empty() { Ok(()) } else { Err(Self::Faults { faults }) }
    }
}

impl Produced {
    /// The locators of all records that were reported as skipped.
    pub fn skipped(&self) -> BTreeSet<String> {
        let skips = self.exports.iter().flat_map(|export| skips(&export.lines));
        skips.map(|skip| skip.locator.clone()).collect()
    }

    /// The content of `expected.json`: an array of exports, each with its detection and its lines.
    pub fn to_json(&self) -> serde_json::Result<Value> {
        let export = |export: &ProducedExport| {
            let ProducedExport { detection, lines, error } = export;
            let Detection { format, confidence, files, account } = detection;
            let lines = lines.iter().map(serde_json::to_value).collect::<serde_json::Result<Vec<_>>>()?;
            let mut object = json!({
                "format": format, "confidence": confidence, "files": files, "account": account, "lines": lines,
            });
            if let (Some(error), Some(object)) = (error, object.as_object_mut()) {
                let kind = format!("{:?}", error.kind);
                let error = json!({ "kind": kind, "message": error.message, "locator": error.locator });
                object.insert("error".to_owned(), error);
            }
            Ok(object)
        };
        self.exports.iter().map(export).collect::<serde_json::Result<Vec<_>>>().map(Value::Array)
    }
}
