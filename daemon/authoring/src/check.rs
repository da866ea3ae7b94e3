//! Checks an importer on its fixtures in the sandbox, in whatever language it is written.
//!
//! [`check`] runs the built component on every folder `fixtures/*/input` and returns a [`CheckReport`] with one result for
//! each fixture and check. It prints nothing. **Invariant:** nothing in a report depends on the time or on chance, except
//! [`Measures`].

mod error;
mod expected;
mod fields;
mod files;
mod hostile;
mod kept;
mod measure;
mod mutation;
mod order;
mod output;
mod repeat;
mod report;
mod rules;
mod texts;

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use satchel_host::CodeCache;
use satchel_importer::testkit;
use satchel_source::{CancelToken, FileSet as _};

pub use self::{
    error::CheckError,
    kept::KeptFields,
    measure::Measures,
    report::{CheckKind, CheckReport, CheckResult, FixtureReport, Outcome},
};
use self::{
    fields::FieldRules, files::MemoryFiles, kept::count_kept, output::Sandbox, repeat::Repeats,
    texts::OwnWords,
};
use crate::run::{LineCounts, LoadedImporter};

/// Changed variants of each fixture that are read.
const MUTATIONS: usize = 30;
/// Processor time without progress on such a variant.
const IDLE: Duration = Duration::from_secs(10);
/// The time over which the speed is measured.
const MEASURED_TIME: Duration = Duration::from_secs(1);

/// Options of a check.
#[derive(Clone, Debug)]
pub struct CheckOptions {
    /// Writes each `expected.json` that differs from the output.
    pub update: bool,
    /// The file with the field table; by default `README.md` beside the folder of the fixtures.
    pub readme: Option<PathBuf>,
    /// The file or folder on which the speed is measured; by default the largest fixture.
    pub bench: Option<PathBuf>,
    /// The least time over which the speed is measured; zero: it is not measured.
    pub measured_time: Duration,
    /// Changed variants of each fixture that are read.
    pub mutations: usize,
    /// Processor time without progress after which a run on such a variant is ended. Fixtures are small, so an importer
    /// that works for longer has lost its way.
    pub idle: Duration,
    /// Chooses the variants; the same seed gives the same ones.
    pub seed: u64,
    /// Keeps compiled code between checks.
    pub cache: Option<CodeCache>,
    /// Ends the check when it is set.
    pub cancel: CancelToken,
}

impl Default for CheckOptions {
    fn default() -> Self {
        Self {
            update: false,
            readme: None,
            bench: None,
            measured_time: MEASURED_TIME,
            mutations: MUTATIONS,
            idle: IDLE,
            seed: 0,
            cache: None,
            cancel: CancelToken::new(),
        }
    }
}

/// What a check does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckProgress {
    /// The component is compiled.
    Loading,
    /// A fixture is checked.
    Fixture {
        /// Its name.
        name: String,
        /// Its number, from 1.
        number: usize,
        /// The number of fixtures.
        count: usize,
    },
    /// All fixtures are imported, in this order.
    Importing {
        /// Whether the order is reversed.
        reversed: bool,
    },
    /// The speed is measured.
    Measuring,
}

/// Checks `importer` (a component or a package) on the folders in `fixtures`.
///
/// # Errors
/// The importer cannot be loaded, there is no fixture, a fixture cannot be read, or the check was cancelled. What the
/// importer does wrong is part of the report.
pub fn check(
    importer: &[u8],
    fixtures: &Path,
    options: &CheckOptions,
    progress: &mut dyn FnMut(CheckProgress),
) -> Result<CheckReport, CheckError> {
    progress(CheckProgress::Loading);
    // Without a cache, each of the stores below would compile the importer again.
    let own = tempfile::tempdir().map_err(CheckError::temporary)?;
    let cache = options.cache.clone().unwrap_or_else(|| own_cache(own.path()));
    let importer = LoadedImporter::load(importer, Some(cache.clone()))?;
    let folders = testkit::fixtures(fixtures)?;
    let sandbox = Sandbox::new(&importer, &options.cancel);
    let readme = read_readme(fixtures, options)?;
    let (fields, own_words) = (FieldRules::parse(&readme), OwnWords::parse(&readme));
    let (repeats, reports) = (Repeats::default(), Vec::new());
    let mut session = Session { sandbox, options, fields, own_words, repeats, reports };
    for (at, folder) in folders.iter().enumerate() {
        let name = name_of(folder);
        progress(CheckProgress::Fixture { name: name.clone(), number: at + 1, count: folders.len() });
        let report = session.check_fixture(name, folder)?;
        session.reports.push(report);
    }
    session.check_notes_again(&folders)?;
    let Session { sandbox, reports, fields, .. } = session;
    let mut overall = fields.table_results(&reports);
    overall.extend(order::check(&importer, &cache, &folders, &reports, &options.cancel, progress)?);
    progress(CheckProgress::Measuring);
    let measures = measure::measure(&sandbox, &folders, &reports, options)?;
    Ok(CheckReport::new(importer.plugin().info().clone(), reports, overall, measures))
}

/// The check of all fixtures.
struct Session<'a> {
    sandbox: Sandbox<'a>,
    options: &'a CheckOptions,
    fields: FieldRules,
    own_words: OwnWords,
    repeats: Repeats,
    reports: Vec<FixtureReport>,
}

impl Session<'_> {
    fn check_fixture(&mut self, name: String, folder: &Path) -> Result<FixtureReport, CheckError> {
        let files = MemoryFiles::read(&folder.join("input"), &self.options.cancel)?;
        let output = self.sandbox.produce(&files)?;
        let lines = output.produced.exports.iter().flat_map(|export| &export.lines);
        let (mut counts, mut kept) = (LineCounts::default(), KeptFields::default());
        for line in lines {
            counts.add(line);
            count_kept(line, &mut kept);
        }
        let results = vec![
            CheckResult::new(CheckKind::Ends, output.crashes()),
            expected::check(folder, &output, self.options.update)?,
            CheckResult::new(CheckKind::Rules, rules::breaches(&output)),
            CheckResult::new(CheckKind::Counts, output.count_differences()),
            CheckResult::new(CheckKind::Texts, texts::invented(&files, &output, &self.own_words)),
            self.repeats.check(&self.sandbox, &files, &output)?,
            self.fields.check(&folder.join("input"), &output)?,
            hostile::check(&self.sandbox, &name, &files, &output, self.options)?,
        ];
        Ok(FixtureReport {
            name,
            results,
            counts,
            kept,
            input_bytes: files.list().iter().map(|entry| entry.size).sum(),
            read_to_end: output.read_to_end(),
            memory_bytes: output.memory_bytes(),
        })
    }

    /// Reads all fixtures again with what the importer noted about the pieces of all of them.
    fn check_notes_again(&mut self, folders: &[PathBuf]) -> Result<(), CheckError> {
        if self.repeats.is_empty() {
            return Ok(());
        }
        for (folder, report) in folders.iter().zip(&mut self.reports) {
            let files = MemoryFiles::read(&folder.join("input"), &self.options.cancel)?;
            let output = self.sandbox.produce(&files)?;
            let result = self.repeats.check_notes(&self.sandbox, &files, &output)?;
            report.add(CheckResult::new(CheckKind::Repeat, result));
        }
        Ok(())
    }
}

fn own_cache(folder: &Path) -> CodeCache {
    CodeCache { folder: folder.join("code"), key_file: folder.join("key").join("code-cache.key") }
}

/// Returns the text of the README; empty if there is none.
fn read_readme(fixtures: &Path, options: &CheckOptions) -> Result<String, CheckError> {
    let path = options.readme.clone().unwrap_or_else(|| fixtures.join("../README.md"));
    match fs::read_to_string(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        read => read.map_err(|source| CheckError::Read { path, source }),
    }
}

fn name_of(folder: &Path) -> String {
    folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
