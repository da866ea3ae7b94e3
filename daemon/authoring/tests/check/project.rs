//! A project with fixtures in a temporary folder.

use std::{fs, path::PathBuf};

use satchel_authoring::check::{CheckKind, CheckOptions, CheckReport, Outcome, check};
use tempfile::TempDir;

use crate::guests::{EXPORT, README};

/// A project: a README and fixtures.
pub(crate) struct Project(TempDir);

impl Project {
    /// A project with one fixture `one`, whose input `a.json` is [`EXPORT`].
    pub(crate) fn new() -> Self {
        let project = Self(tempfile::tempdir().unwrap());
        fs::write(project.0.path().join("README.md"), README).unwrap();
        project.with("one", EXPORT)
    }

    /// Adds a fixture whose input has this `a.json`.
    pub(crate) fn with(self, name: &str, export: &str) -> Self {
        let input = self.fixtures().join(name).join("input");
        fs::create_dir_all(&input).unwrap();
        fs::write(input.join("a.json"), export).unwrap();
        self
    }

    /// Replaces the README.
    pub(crate) fn with_readme(self, text: &str) -> Self {
        fs::write(self.0.path().join("README.md"), text).unwrap();
        self
    }

    pub(crate) fn fixtures(&self) -> PathBuf {
        self.0.path().join("fixtures")
    }

    /// Checks an importer on the fixtures, after their `expected.json` were written.
    pub(crate) fn check(&self, importer: &[u8]) -> CheckReport {
        self.check_with(importer, &CheckOptions { update: true, mutations: 0, ..quick() });
        self.check_with(importer, &quick())
    }

    pub(crate) fn check_with(&self, importer: &[u8], options: &CheckOptions) -> CheckReport {
        check(importer, &self.fixtures(), options, &mut |_| {}).unwrap()
    }
}

/// Options without a measurement.
pub(crate) fn quick() -> CheckOptions {
    CheckOptions { measured_time: std::time::Duration::ZERO, mutations: 8, ..CheckOptions::default() }
}

/// Returns the faults of one check, of all fixtures and overall.
pub(crate) fn faults(report: &CheckReport, kind: CheckKind) -> Vec<String> {
    let of_kind = report.failures().filter(|(_, failed, _)| *failed == kind);
    of_kind.flat_map(|(_, _, faults)| faults.to_vec()).collect()
}

/// Returns the kinds of checks that failed.
pub(crate) fn failed(report: &CheckReport) -> Vec<CheckKind> {
    let mut kinds: Vec<CheckKind> = report.failures().map(|(_, kind, _)| kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}

/// Checks that exactly this check failed, with a fault that contains `text`.
pub(crate) fn assert_only_fault(report: &CheckReport, kind: CheckKind, text: &str) {
    let faults = faults(report, kind);
    assert!(faults.iter().any(|fault| fault.contains(text)), "{text:?} is in none of {faults:#?}");
    assert_eq!(failed(report), [kind], "{:#?}", report.failures().collect::<Vec<_>>());
}

/// Returns how a check of a fixture ended.
pub(crate) fn outcome(report: &CheckReport, fixture: &str, kind: CheckKind) -> Outcome {
    let fixture = report.fixtures.iter().find(|one| one.name == fixture).unwrap();
    fixture.outcome(kind).unwrap().clone()
}
