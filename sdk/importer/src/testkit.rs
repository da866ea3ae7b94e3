//! Runs an importer natively on its fixtures; the same comparison serves the run in the sandbox.
//!
//! A fixture is a folder `fixtures/<behaviour>` with the export's files below `input/` and what comes out in
//! `expected.json`. `UPDATE=1` in the environment writes that file anew: read the difference before you commit it.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

use satchel_pam::record::Line;
use serde_json::{Value, json};

use crate::{Bundle, Detection, ImportError, Importer, Sink};

mod difference;
mod endure;
mod fields;
mod recall;
mod renamed;
pub mod round;
mod threads;

pub use difference::first_difference;
pub use endure::{BETWEEN_FILES, Flaw, endure, files, replay};
pub use fields::{Emitted, FieldTable, Rule};
pub use renamed::{renamed, renamed_samples};
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
    /// A file or folder cannot be read or written.
    #[error("{path:?}: {source}")]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// `expected.json` is no JSON, or records cannot be written as JSON.
    #[error("{path:?}: {source}")]
    Json {
        /// Which fixture.
        path: PathBuf,
        /// Why.
        source: serde_json::Error,
    },
    /// `detect` failed.
    #[error("{path:?}: detect: {source}")]
    Detect {
        /// Which fixture.
        path: PathBuf,
        /// Why.
        source: ImportError,
    },
    /// There is nothing to check.
    #[error("{path:?} holds no fixture: no folder in it has a folder `input`")]
    Empty {
        /// The folder.
        path: PathBuf,
    },
    /// A run that recalls earlier ones gives something else.
    #[error(
        "{path:?}: with what earlier runs remembered of the same pieces it gives something else: {difference}"
    )]
    Recalls {
        /// Which fixture.
        path: PathBuf,
        /// The first difference: its place and both sides.
        difference: String,
    },
    /// Words vanish where a field is renamed, and no warning and no skip says so.
    #[error("{}", faults.join("\n"))]
    Silent {
        /// One line for each: the fixture, the field and the words.
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
        let bundle = Bundle::from_folder(&fixture.join("input"));
        let produced = bundle.and_then(|bundle| produce::<T>(&bundle));
        let produced = produced.map_err(|source| FixtureError::Detect { path: fixture.clone(), source })?;
        compare(&fixture, &produced)?;
    }
    recall::check::<T>(&fixtures(folder.as_ref())?)
}

/// The fixtures below `folder`, by name: each folder with an `input`. At least one.
pub fn fixtures(folder: &Path) -> Result<Vec<PathBuf>, FixtureError> {
    let list = || -> io::Result<Vec<PathBuf>> {
        let entries = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
        Ok(entries.into_iter().map(|entry| entry.path()).filter(|path| path.join("input").is_dir()).collect())
    };
    let mut found = list().map_err(|source| FixtureError::File { path: folder.to_owned(), source })?;
    found.sort();
    if found.is_empty() {
        return Err(FixtureError::Empty { path: folder.to_owned() });
    }
    Ok(found)
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

/// Compares with `expected.json` of the folder `fixture`, or writes it where `UPDATE=1` is set.
pub fn compare(fixture: &Path, produced: &Produced) -> Result<(), FixtureError> {
    let path = fixture.join("expected.json");
    let json_error = |source| FixtureError::Json { path: path.clone(), source };
    let file_error = |source| FixtureError::File { path: path.clone(), source };
    let actual = produced.to_json().map_err(json_error)?;
    if env::var_os("UPDATE").is_some_and(|value| value == "1") {
        let text = serde_json::to_string_pretty(&actual).map_err(json_error)?;
        return fs::write(&path, text + "\n").map_err(file_error);
    }
    let expected = fs::read(&path).map_err(file_error)?;
    let expected: Value = serde_json::from_slice(&expected).map_err(json_error)?;
    match first_difference(&expected, &actual) {
        Some(difference) => Err(FixtureError::Differs { path: fixture.to_owned(), difference }),
        None => Ok(()),
    }
}

impl Produced {
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
