//! `plugins test`: checks an importer on its fixtures, and prints what is wrong and what was kept.

use std::path::Path;

use satchel_authoring::check::{
    self, CheckError, CheckKind, CheckOptions, CheckProgress, CheckReport, CheckResult, FixtureReport,
    Measures, Outcome,
};
use satchel_authoring::run::LoadError;
use serde::Serialize;

use super::{
    AuthorContext, FIXTURES, cancel_on_interrupt, failed, package_at, read,
    run::{CountsJson, counted, millis},
};
use crate::cli::{
    args::TestArgs,
    error::CliError,
    exit::Exit,
    style::{Paint, TerminalStyle},
    table::{Cell, Column, Table},
    text,
};

pub(super) fn run(context: &mut AuthorContext<'_>, args: &TestArgs) -> Result<Exit, CliError> {
    let TestArgs { path, update, bench } = args;
    let package = package_at(path)?;
    let folder = if path.is_dir() { path.as_path() } else { parent(path) };
    let options = CheckOptions {
        update: *update,
        bench: bench.clone(),
        cache: context.cache.clone(),
        cancel: cancel_on_interrupt()?,
        ..CheckOptions::default()
    };
    let out = &mut *context.out;
    let mut progress = |step: CheckProgress| out.note(&step_words(&step));
    let report = check::check(&read(&package)?, &folder.join(FIXTURES), &options, &mut progress);
    let report = report.map_err(check_error)?;
    if out.json {
        out.json(&ReportJson::new(&report))?;
    } else {
        out.print(&render(&report, out.style))?;
    }
    Ok(if report.passed() { Exit::Done } else { Exit::CheckFailed })
}

/// Returns the folder of a file.
fn parent(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn check_error(error: CheckError) -> CliError {
    match error {
        CheckError::Cancelled => CliError::Cancelled,
        CheckError::Load(LoadError::Package(error)) => CliError::Declined(error.to_string()),
        error => failed("test the importer", error),
    }
}

fn step_words(step: &CheckProgress) -> String {
    match step {
        CheckProgress::Loading => "compiling the importer".to_owned(),
        CheckProgress::Fixture { name, number, count } => {
            format!("fixture {number} of {count}: {}", text::one_line(name))
        }
        CheckProgress::Importing { reversed: false } => "importing all fixtures".to_owned(),
        CheckProgress::Importing { reversed: true } => "importing all fixtures in reverse order".to_owned(),
        CheckProgress::Measuring => "measuring the speed".to_owned(),
    }
}

/// What a check is about, in words.
fn check_words(kind: CheckKind) -> &'static str {
    match kind {
        CheckKind::Ends => "ends in order",
        CheckKind::Expected => "as expected.json",
        CheckKind::Rules => "keeps the rules of the interface",
        CheckKind::Counts => "found = emitted + skipped",
        CheckKind::Texts => "invents no text",
        CheckKind::Repeat => "a second run gives the same",
        CheckKind::Fields => "every value is kept or in the field table",
        CheckKind::Mutations => "survives damaged input",
        CheckKind::Order => "the order of imports does not matter",
        CheckKind::Receipts => "receipts balance",
    }
}

/// The key of a check in JSON.
fn check_key(kind: CheckKind) -> &'static str {
    match kind {
        CheckKind::Ends => "ends",
        CheckKind::Expected => "expected",
        CheckKind::Rules => "rules",
        CheckKind::Counts => "counts",
        CheckKind::Texts => "texts",
        CheckKind::Repeat => "repeat",
        CheckKind::Fields => "fields",
        CheckKind::Mutations => "mutations",
        CheckKind::Order => "order",
        CheckKind::Receipts => "receipts",
    }
}

fn render(report: &CheckReport, style: TerminalStyle) -> String {
    let mut out = String::new();
    for fixture in &report.fixtures {
        let FixtureReport { name, results, counts, .. } = fixture;
        let name = style.paint(Paint::Strong, &text::one_line(name));
        text::append(&mut out, format_args!("{name}: {}\n", counted(counts)));
        results.iter().for_each(|result| out.push_str(&result_lines(result, style)));
    }
    text::append(&mut out, format_args!("{}\n", style.paint(Paint::Strong, "all fixtures")));
    report.overall.iter().for_each(|result| out.push_str(&result_lines(result, style)));
    out.push_str(&kept_table(report).render(style));
    if let Some(measures) = &report.measures {
        text::append(&mut out, format_args!("{}\n", measure_words(measures)));
    }
    let failures = report.failures().count() as u64;
    let (mark, paint, words) = if failures == 0 {
        ("✓", Paint::Good, "all checks passed".to_owned())
    } else {
        ("✗", Paint::Bad, format!("{} failed", text::count(failures, "check", "checks")))
    };
    text::append(&mut out, format_args!("{} {words}\n", style.paint(paint, mark)));
    out
}

fn result_lines(result: &CheckResult, style: TerminalStyle) -> String {
    let words = check_words(result.kind);
    let (mark, paint, note) = match &result.outcome {
        Outcome::Passed => ("✓", Paint::Good, String::new()),
        Outcome::Updated => ("✓", Paint::Warn, ": written".to_owned()),
        Outcome::NotApplicable(reason) => ("-", Paint::Dim, format!(": {}", text::one_line(reason))),
        Outcome::Failed(_) => ("✗", Paint::Bad, String::new()),
    };
    let mut lines = format!("  {} {words}{note}\n", style.paint(paint, mark));
    if let Outcome::Failed(faults) = &result.outcome {
        let options =
            textwrap::Options::new(style.text_columns()).initial_indent("      ").subsequent_indent("      ");
        for fault in faults {
            text::append(&mut lines, format_args!("{}\n", textwrap::fill(&text::clean(fault), &options)));
        }
    }
    lines
}

/// Returns the table of what was kept: how many values each field of each kind of record has.
fn kept_table(report: &CheckReport) -> Table {
    let mut table = Table::new([Column::new("record"), Column::new("field"), Column::right("values kept")]);
    for (kind, field, count) in report.kept.rows() {
        table.row([Cell::new(kind), Cell::new(field), Cell::new(&text::number(count))]);
    }
    table
}

fn measure_words(measures: &Measures) -> String {
    let memory = text::bytes(measures.memory_bytes as u64);
    let path = text::one_line(&measures.path.to_string_lossy());
    let error = measures.error.as_deref().map(|error| format!("; it ended early: {}", text::one_line(error)));
    format!(
        "{:.1} MB/s, {memory} of memory, measured with {path}{}",
        measures.megabytes_per_second(),
        error.unwrap_or_default()
    )
}

/// What `plugins test --json` prints.
#[derive(Debug, Serialize)]
struct ReportJson<'a> {
    passed: bool,
    importer: String,
    fixtures: Vec<FixtureJson<'a>>,
    /// The checks of all fixtures together.
    overall: Vec<ResultJson<'a>>,
    kept: Vec<KeptJson<'a>>,
    /// Null if nothing was measured.
    measures: Option<MeasuresJson<'a>>,
}

#[derive(Debug, Serialize)]
struct FixtureJson<'a> {
    name: &'a str,
    #[serde(flatten)]
    counts: CountsJson,
    input_bytes: u64,
    memory_bytes: u64,
    checks: Vec<ResultJson<'a>>,
}

#[derive(Debug, Serialize)]
struct ResultJson<'a> {
    check: &'static str,
    /// `passed`, `failed`, `updated` or `not_applicable`.
    outcome: &'static str,
    /// What is wrong; empty unless it failed.
    faults: &'a [String],
    /// Why there is nothing to check.
    reason: Option<&'a str>,
}

#[derive(Debug, Serialize)]
struct KeptJson<'a> {
    record: &'a str,
    field: &'a str,
    values: u64,
}

#[derive(Debug, Serialize)]
struct MeasuresJson<'a> {
    path: String,
    runs: u32,
    bytes: u64,
    elapsed_ms: u64,
    megabytes_per_second: f64,
    memory_bytes: u64,
    error: Option<&'a str>,
}

impl<'a> ReportJson<'a> {
    fn new(report: &'a CheckReport) -> Self {
        let fixture = |fixture: &'a FixtureReport| FixtureJson {
            name: &fixture.name,
            counts: CountsJson::new(&fixture.counts),
            input_bytes: fixture.input_bytes,
            memory_bytes: fixture.memory_bytes as u64,
            checks: fixture.results.iter().map(ResultJson::new).collect(),
        };
        let measures = report.measures.as_ref().map(|measures| MeasuresJson {
            path: measures.path.to_string_lossy().into_owned(),
            runs: measures.runs,
            bytes: measures.bytes,
            elapsed_ms: millis(measures.elapsed),
            megabytes_per_second: measures.megabytes_per_second(),
            memory_bytes: measures.memory_bytes as u64,
            error: measures.error.as_deref(),
        });
        let kept = report.kept.rows().map(|(record, field, values)| KeptJson { record, field, values });
        Self {
            passed: report.passed(),
            importer: format!("{}/{}", report.importer.name, report.importer.version),
            fixtures: report.fixtures.iter().map(fixture).collect(),
            overall: report.overall.iter().map(ResultJson::new).collect(),
            kept: kept.collect(),
            measures,
        }
    }
}

impl<'a> ResultJson<'a> {
    fn new(result: &'a CheckResult) -> Self {
        let (outcome, faults, reason) = match &result.outcome {
            Outcome::Passed => ("passed", &[][..], None),
            Outcome::Failed(faults) => ("failed", faults.as_slice(), None),
            Outcome::Updated => ("updated", &[][..], None),
            Outcome::NotApplicable(reason) => ("not_applicable", &[][..], Some(reason.as_str())),
        };
        Self { check: check_key(result.kind), outcome, faults, reason }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_check_lists_its_faults_without_control_characters() {
        let failed = CheckResult {
            kind: CheckKind::Counts,
            outcome: Outcome::Failed(vec!["3 notes were found\u{1b}[2J".to_owned(), "2 arrived".to_owned()]),
        };
        let expected = "  ✗ found = emitted + skipped\n      3 notes were found\\u{1b}[2J\n      2 arrived\n";
        assert_eq!(result_lines(&failed, TerminalStyle::plain(80)), expected);
        let none = CheckResult {
            kind: CheckKind::Fields,
            outcome: Outcome::NotApplicable("there is no README.md".to_owned()),
        };
        let line = "  - every value is kept or in the field table: there is no README.md\n";
        assert_eq!(result_lines(&none, TerminalStyle::plain(80)), line);
    }
}
