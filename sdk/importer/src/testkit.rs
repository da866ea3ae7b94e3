//! Runs an importer natively on its fixtures; the same comparison serves the run in the sandbox.
//!
//! A fixture is a folder `fixtures/<behaviour>` with the export's files below `input/` and what comes out in
//! `expected.json`. `UPDATE=1` in the environment writes that file anew: read the difference before you commit it.

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
mod hostile;
mod lines;
mod renamed;
mod reuse;
pub mod round;
mod run;
mod samples;
mod suite;
mod threads;

#[cfg(any(test, feature = "property-tests"))]
pub use broken::{BrokenFiles, CutFile};
pub use difference::first_difference;
pub use fields::{Emitted, FieldTable, Rule};
pub use hostile::{BETWEEN_FILES, Flaw, check_input, check_lines, files, replay};
// The name that the fuzz targets use.
#[doc(hidden)]
pub use hostile::check_input as endure;
pub use lines::{
    conversation_ids, conversations, evidence, messages, parents_are_messages, skips, skips_of, text,
    warnings,
};
pub use renamed::{renamed, renamed_samples};
pub use run::{FileRun, Unclaimed, cancelled_run, json_list, large_tree, nested_json, run_file};
pub use samples::{Sample, check_other_samples};
pub use threads::{Threads, threads};

/// What an importer made of one fixture.
#[derive(Clone, Debug, PartialEq)]
pub struct Produced {
    /// One for each export among the files, in the order of `detect`.
    pub exports: Vec<ProducedExport>,
}

/// What an importer made of one export.
#[derive(Clone, Debug, PartialEq)]
pub struct ProducedExport {
    /// What `detect` said.
    pub detection: Detection,
    /// What `run` emitted, in order.
    pub lines: Vec<Line>,
    /// Why it ended early, if it did.
    pub error: Option<ImportError>,
}

/// What is wrong with a fixture.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FixtureError {
    /// A file or folder cannot be read or written, is not the JSON that it should be, or detection fails.
    #[error("{path:?}: {source}")]
    Failed {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// There is nothing to check.
    #[error("{path:?} holds no fixture: no folder in it has a folder `input`")]
    Empty {
        /// The folder.
        path: PathBuf,
    },
    /// A run that reuses what earlier runs remembered gives something else.
    #[error(
        "{path:?}: with what earlier runs remembered of the same pieces it gives something else: {difference}"
    )]
    Reuse {
        /// Which fixture.
        path: PathBuf,
        /// The first difference: its place and both sides.
        difference: String,
    },
    /// A check of several fixtures found faults.
    #[error("{} faults\n{}", faults.len(), faults.join("\n"))]
    Faults {
        /// One line for each: the fixture and what is wrong.
        faults: Vec<String>,
    },
    /// Something else came out than is expected.
    #[error("{path:?}: {difference}\nrun with UPDATE=1 to accept what comes out now")]
    Differs {
        /// Which fixture.
        path: PathBuf,
        /// The first difference: its place and both sides.
        difference: String,
    },
}

/// Runs `T` on every fixture below `folder` and compares; then again with what it remembers of all of them, which must change
/// nothing.
pub fn check<T: Importer>(folder: impl AsRef<Path>) -> Result<(), FixtureError> {
    for fixture in fixtures(folder.as_ref())? {
        compare(&fixture, &produce_folder::<T>(&fixture.join("input"))?)?;
    }
    reuse::check::<T>(&fixtures(folder.as_ref())?)
}

/// The fixtures below `folder`, by name: each folder with an `input`. At least one.
pub fn fixtures(folder: &Path) -> Result<Vec<PathBuf>, FixtureError> {
    let mut found = entries_of(folder)?;
    found.retain(|path| path.join("input").is_dir());
    if found.is_empty() {
        return Err(FixtureError::Empty { path: folder.to_owned() });
    }
    Ok(found)
}

/// The files and folders directly below `folder`, by name.
fn entries_of(folder: &Path) -> Result<Vec<PathBuf>, FixtureError> {
    let list = || fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>();
    let mut found = list().map_err(FixtureError::at(folder))?;
    found.sort();
    Ok(found)
}

/// A file of the export in a fixture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FixtureFile {
    /// The fixture's name.
    pub fixture: String,
    /// The file's path in the export.
    pub name: String,
    /// What it holds.
    pub bytes: Vec<u8>,
}

/// The files of all fixtures below `folder`, by fixture and name.
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

/// Detects and runs on the export in one folder.
fn produce_folder<T: Importer>(folder: &Path) -> Result<Produced, FixtureError> {
    let produced = Bundle::from_folder(folder).and_then(|bundle| produce::<T>(&bundle));
    produced.map_err(FixtureError::at(folder))
}

/// Detects and runs, as the host does: each run sees only the files that its detection claimed.
pub fn produce<T: Importer>(bundle: &Bundle) -> Result<Produced, ImportError> {
    let run = |detection: Detection| {
        let mut sink = Sink::collecting();
        let error = T::run(&detection.format, &bundle.only(&detection.files), &mut sink).err();
        ProducedExport { detection, lines: sink.into_lines(), error }
    };
    Ok(Produced { exports: T::detect(bundle)?.into_iter().map(run).collect() })
}

/// Checks that for each of `names` among the fixtures below `folder` a record contains the text `present` and none contains one of
/// `secrets`: passwords, keys, mail addresses and the like that the fixture's files hold.
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

/// Compares with `expected.json` of the folder `fixture`, or writes it where `UPDATE=1` is set.
pub fn compare(fixture: &Path, produced: &Produced) -> Result<(), FixtureError> {
    let path = fixture.join("expected.json");
    let actual = produced.to_json().map_err(FixtureError::at(&path))?;
    if env::var_os("UPDATE").is_some_and(|value| value == "1") {
        let text = serde_json::to_string_pretty(&actual).map_err(FixtureError::at(&path))?;
        return fs::write(&path, text + "\n").map_err(FixtureError::at(&path));
    }
    let expected = fs::read(&path).map_err(FixtureError::at(&path))?;
    let expected: Value = serde_json::from_slice(&expected).map_err(FixtureError::at(&path))?;
    match first_difference(&expected, &actual) {
        Some(difference) => Err(FixtureError::Differs { path: fixture.to_owned(), difference }),
        None => Ok(()),
    }
}

impl FixtureError {
    /// Makes an error of anything that goes wrong with `path`.
    fn at<E: Into<Box<dyn std::error::Error + Send + Sync>>>(path: &Path) -> impl Fn(E) -> Self {
        move |source| Self::Failed { path: path.to_owned(), source: source.into() }
    }

    /// An error if there are faults.
    fn of_faults(faults: Vec<String>) -> Result<(), Self> {
        if faults.is_empty() { Ok(()) } else { Err(Self::Faults { faults }) }
    }
}

impl Produced {
    /// The locators of everything that was reported as skipped.
    pub fn skipped(&self) -> BTreeSet<String> {
        let skips = self.exports.iter().flat_map(|export| skips(&export.lines));
        skips.map(|skip| skip.locator.clone()).collect()
    }

    /// As it stands in `expected.json`: an array of exports, each with its detection and its lines.
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
