//! The result of a check.

use satchel_host::PluginInfo;

use super::{KeptFields, Measures};
use crate::run::LineCounts;

/// What is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CheckKind {
    /// Detection and run end without a crash.
    Ends,
    /// The output is that of `expected.json`.
    Expected,
    /// Every claim and record follows the rules of the interface, so that the host changes none.
    Rules,
    /// What was found was emitted or skipped.
    Counts,
    /// Every word that is emitted as somebody's text is in the input.
    Texts,
    /// A second run gives the same, also with the notes of earlier runs.
    Repeat,
    /// Every value of the input is kept or named in the field table.
    Fields,
    /// Damaged variants of the input end the run in order.
    Mutations,
    /// The order in which the fixtures are imported does not matter.
    Order,
    /// The receipts of these imports balance, and count the same records as the run.
    Receipts,
}

/// How a check ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing is wrong.
    Passed,
    /// Something is wrong; one text for each fault.
    Failed(Vec<String>),
    /// `expected.json` was written.
    Updated,
    /// There is nothing to check, with the reason.
    NotApplicable(String),
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckResult {
    /// What was checked.
    pub kind: CheckKind,
    /// How it ended.
    pub outcome: Outcome,
}

/// The results for one fixture.
#[derive(Clone, Debug, PartialEq)]
pub struct FixtureReport {
    /// The name of its folder.
    pub name: String,
    /// One for each check.
    pub results: Vec<CheckResult>,
    /// The records, skips and warnings that were emitted.
    pub counts: LineCounts,
    /// How many values of each field were emitted.
    pub kept: KeptFields,
    /// The size of its input in bytes.
    pub input_bytes: u64,
    /// Whether an export was found in it and every export was read to the end.
    pub read_to_end: bool,
    /// The most memory that a run needed, in bytes.
    pub memory_bytes: usize,
}

/// The result of checking an importer.
#[derive(Clone, Debug)]
pub struct CheckReport {
    /// The importer's description of itself.
    pub importer: PluginInfo,
    /// One for each fixture, sorted by name.
    pub fixtures: Vec<FixtureReport>,
    /// The checks of all fixtures together.
    pub overall: Vec<CheckResult>,
    /// The records, skips and warnings of all fixtures.
    pub counts: LineCounts,
    /// How many values of each field were emitted for all fixtures.
    pub kept: KeptFields,
    /// Speed and memory; `None` if no fixture holds an export, or nothing was to be measured.
    pub measures: Option<Measures>,
}

impl CheckResult {
    /// A check that passed if there are no faults.
    pub(super) fn new(kind: CheckKind, faults: Vec<String>) -> Self {
        let outcome = if faults.is_empty() { Outcome::Passed } else { Outcome::Failed(faults) };
        Self { kind, outcome }
    }

    pub(super) fn not_applicable(kind: CheckKind, reason: impl Into<String>) -> Self {
        Self { kind, outcome: Outcome::NotApplicable(reason.into()) }
    }
}

impl FixtureReport {
    /// Adds a result; faults of the same check are joined.
    pub(super) fn add(&mut self, result: CheckResult) {
        let known = self.results.iter_mut().find(|known| known.kind == result.kind);
        match (known, result) {
            (None, result) => self.results.push(result),
            (Some(known), CheckResult { outcome: Outcome::Failed(more), .. }) => match &mut known.outcome {
                Outcome::Failed(faults) => faults.extend(more),
                other => *other = Outcome::Failed(more),
            },
            (Some(_), _) => {}
        }
    }

    /// Returns the result of a check; `None` if it was not made.
    pub fn outcome(&self, kind: CheckKind) -> Option<&Outcome> {
        self.results.iter().find(|result| result.kind == kind).map(|result| &result.outcome)
    }
}

impl CheckReport {
    pub(super) fn new(
        importer: PluginInfo,
        fixtures: Vec<FixtureReport>,
        overall: Vec<CheckResult>,
        measures: Option<Measures>,
    ) -> Self {
        let (mut counts, mut kept) = (LineCounts::default(), KeptFields::default());
        for fixture in &fixtures {
            counts.add_all(&fixture.counts);
            kept.add_all(&fixture.kept);
        }
        Self { importer, fixtures, overall, counts, kept, measures }
    }

    /// Returns whether no check failed.
    pub fn passed(&self) -> bool {
        self.failures().next().is_none()
    }

    /// Returns the faults: the fixture (`None`: all together), the check and its faults.
    pub fn failures(&self) -> impl Iterator<Item = (Option<&str>, CheckKind, &[String])> {
        let of_fixtures = self
            .fixtures
            .iter()
            .flat_map(|fixture| fixture.results.iter().map(|result| (Some(fixture.name.as_str()), result)));
        let all = of_fixtures.chain(self.overall.iter().map(|result| (None, result)));
        all.filter_map(|(fixture, result)| match &result.outcome {
            Outcome::Failed(faults) => Some((fixture, result.kind, faults.as_slice())),
            Outcome::Passed | Outcome::Updated | Outcome::NotApplicable(_) => None,
        })
    }
}
