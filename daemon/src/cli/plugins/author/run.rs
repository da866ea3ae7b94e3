//! `plugins run`: shows what an importer emits for an export.

use std::{io, time::Duration};

use satchel_authoring::run::{self, ExportReport, LineCounts, RunEvent, RunOptions, RunReport};
use satchel_host::{PluginError, SinkVerdict};
use satchel_pam::record::Line;
use serde::Serialize;
use serde_json::Value;

use super::{AuthorContext, cancel_on_interrupt, failed, package_at, read};
use crate::cli::{args::RunArgs, error::CliError, exit::Exit, output::Output, style::Paint, text};

/// Columns of the kind of a record.
const KIND_COLUMNS: usize = 13;

pub(super) fn run(context: &mut AuthorContext<'_>, args: &RunArgs) -> Result<Exit, CliError> {
    let RunArgs { file, path } = args;
    let importer = read(&package_at(file)?)?;
    let options = RunOptions { cache: context.cache.clone(), cancel: cancel_on_interrupt()? };
    let mut printer = RecordPrinter { out: context.out, first: true, error: None };
    printer.begin()?;
    let report = run::run(&importer, path, &options, &mut |event| printer.show(event));
    let RecordPrinter { out, error, first: _ } = printer;
    match error {
        // The reader of the output has seen enough.
        Some(CliError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(Exit::Done),
        Some(error) => return Err(error),
        None => {}
    }
    let report = report.map_err(|error| failed("run the importer", error))?;
    if out.json {
        let report = serde_json::to_string(&ReportJson::new(&report)).unwrap_or_default();
        // The report continues the document that the records began.
        let rest = report.trim_start_matches('{');
        out.print(&format!("\n],\n{}\n", text::escape_json(rest)))?;
    } else {
        print_report(out, &report)?;
    }
    Ok(exit(&report))
}

fn exit(report: &RunReport) -> Exit {
    let of = |export: &ExportReport| match &export.outcome {
        Ok(_) => Exit::Done,
        Err(PluginError::Cancelled) => Exit::Cancelled,
        Err(_) => Exit::Failed,
    };
    if report.exports.is_empty() {
        return Exit::Unrecognized;
    }
    report.exports.iter().map(of).fold(Exit::Done, Exit::worst)
}

/// Prints each record as it arrives, so that the memory needed does not depend on the export.
struct RecordPrinter<'a> {
    out: &'a mut Output,
    first: bool,
    /// Why nothing more is printed.
    error: Option<CliError>,
}

impl RecordPrinter<'_> {
    fn begin(&mut self) -> Result<(), CliError> {
        if self.out.json { self.out.print("{\"records\": [\n") } else { Ok(()) }
    }

    fn show(&mut self, event: RunEvent<'_>) -> SinkVerdict {
        let printed = match event {
            RunEvent::Line(line) => self.print(line),
            RunEvent::Detected(_) | RunEvent::Progress { .. } => Ok(()),
        };
        match printed {
            Ok(()) => SinkVerdict::Proceed,
            Err(error) => {
                self.error = Some(error);
                SinkVerdict::Stop
            }
        }
    }

    fn print(&mut self, line: &Line) -> Result<(), CliError> {
        if !self.out.json {
            let shown = record_line(line, self.out.style.columns);
            return self.out.print(&format!("{shown}\n"));
        }
        let json = serde_json::to_string(line)
            .map_err(|error| CliError::step("cannot write a record as JSON", error))?;
        let gap = if std::mem::take(&mut self.first) { "" } else { ",\n" };
        self.out.print(&format!("{gap}{}", text::escape_json(&json)))
    }
}

/// Returns one record on one line: its kind, what it is called, and where it is in the export.
fn record_line(line: &Line, columns: Option<usize>) -> String {
    let json = serde_json::to_value(line).unwrap_or_default();
    let (kind, record) = json
        .as_object()
        .and_then(|fields| fields.iter().next())
        .map_or((String::new(), Value::Null), |(kind, record)| (kind.clone(), record.clone()));
    let field = |name: &str| record.get(name).and_then(Value::as_str).map(text::one_line);
    let name = ["title", "reason", "message", "name", "id"].into_iter().find_map(field);
    let name = name.unwrap_or_default();
    let messages = record
        .get("messages")
        .and_then(Value::as_array)
        .map(|messages| format!(" ({})", text::count(messages.len() as u64, "message", "messages")));
    let place = field("locator").map(|place| format!("  {place}")).unwrap_or_default();
    let kind = if kind == "skip" { format!("skip {}", field("kind").unwrap_or_default()) } else { kind };
    let shown = format!("{kind:<KIND_COLUMNS$} {name}{}{place}", messages.unwrap_or_default());
    columns.map_or_else(|| shown.clone(), |columns| text::fit(&shown, columns).into_owned())
}

fn print_report(out: &mut Output, report: &RunReport) -> Result<(), CliError> {
    let RunReport { importer, exports, unclaimed, unread, wrong_claims } = report;
    let name = format!("{} {}", text::one_line(&importer.name), text::one_line(&importer.version));
    for export in exports {
        let (mark, paint, end) = match &export.outcome {
            Ok(_) => ("✓", Paint::Good, String::new()),
            Err(error) => {
                ("✗", Paint::Bad, format!("; it ended early: {}", text::one_line(&error.to_string())))
            }
        };
        let ExportReport { detection, counts, bytes, elapsed, outcome: _ } = export;
        let format = text::one_line(&detection.format);
        let size = text::bytes(*bytes);
        let mark = out.style.paint(paint, mark);
        let (found, took) = (counted(counts), text::duration(millis(*elapsed)));
        out.print(&format!("{mark} {name} read {format}, {size}, in {took}: {found}{end}\n"))?;
    }
    if exports.is_empty() {
        let mark = out.style.paint(Paint::Bad, "✗");
        out.print(&format!("{mark} {name} recognises no export here\n"))?;
    }
    for problem in wrong_claims.iter().chain(unread) {
        out.note(&text::one_line(problem));
    }
    if !unclaimed.is_empty() {
        let count = text::count(unclaimed.len() as u64, "file", "files");
        let first: Vec<String> = unclaimed.iter().take(5).map(|name| text::one_line(name)).collect();
        out.note(&format!("{count} not claimed: {}", first.join(", ")));
    }
    Ok(())
}

/// Returns what was emitted, in words.
pub(super) fn counted(counts: &LineCounts) -> String {
    let LineCounts { conversations, messages, evidence, relations, embeddings, accounts, skipped, warnings } =
        counts;
    let skips: u64 = skipped.values().sum();
    let all = [
        (*conversations, "conversation", "conversations"),
        (*messages, "message", "messages"),
        (*evidence, "piece of evidence about memories", "pieces of evidence about memories"),
        (*relations, "relation", "relations"),
        (*embeddings, "embedding", "embeddings"),
        (*accounts, "account", "accounts"),
        (skips, "skip", "skips"),
        (*warnings, "warning", "warnings"),
    ];
    let some = all.into_iter().filter(|(count, ..)| *count > 0);
    let words: Vec<String> = some.map(|(count, one, many)| text::count(count, one, many)).collect();
    if words.is_empty() { "nothing".to_owned() } else { words.join(", ") }
}

pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// What `plugins run --json` prints after the records.
#[derive(Debug, Serialize)]
struct ReportJson<'a> {
    importer: String,
    exports: Vec<ExportJson<'a>>,
    /// Files that it did not claim.
    unclaimed: &'a [String],
    /// Files that could not be read.
    unread: &'a [String],
    /// Claims that were left out because they are wrong.
    wrong_claims: &'a [String],
}

#[derive(Debug, Serialize)]
struct ExportJson<'a> {
    format: &'a str,
    confidence: u8,
    files: &'a [String],
    account: Option<&'a str>,
    bytes: u64,
    elapsed_ms: u64,
    #[serde(flatten)]
    counts: CountsJson,
    /// The most memory that it used; null if it ended early.
    memory_bytes: Option<u64>,
    /// Why it ended early; null if it did not.
    error: Option<String>,
}

/// Numbers of records that an importer emitted.
#[derive(Debug, Serialize)]
pub(super) struct CountsJson {
    conversations: u64,
    messages: u64,
    evidence: u64,
    relations: u64,
    embeddings: u64,
    accounts: u64,
    skipped: u64,
    warnings: u64,
}

impl CountsJson {
    pub(super) fn new(counts: &LineCounts) -> Self {
        let LineCounts {
            conversations,
            messages,
            evidence,
            relations,
            embeddings,
            accounts,
            skipped,
            warnings,
        } = counts;
        Self {
            conversations: *conversations,
            messages: *messages,
            evidence: *evidence,
            relations: *relations,
            embeddings: *embeddings,
            accounts: *accounts,
            skipped: skipped.values().sum(),
            warnings: *warnings,
        }
    }
}

impl<'a> ReportJson<'a> {
    fn new(report: &'a RunReport) -> Self {
        let RunReport { importer, exports, unclaimed, unread, wrong_claims } = report;
        let export = |export: &'a ExportReport| ExportJson {
            format: &export.detection.format,
            confidence: export.detection.confidence,
            files: &export.detection.files,
            account: export.detection.account.as_deref(),
            bytes: export.bytes,
            elapsed_ms: millis(export.elapsed),
            counts: CountsJson::new(&export.counts),
            memory_bytes: export.outcome.as_ref().ok().map(|summary| summary.memory_bytes as u64),
            error: export.outcome.as_ref().err().map(ToString::to_string),
        };
        Self {
            importer: format!("{}/{}", importer.name, importer.version),
            exports: exports.iter().map(export).collect(),
            unclaimed,
            unread,
            wrong_claims,
        }
    }
}

#[cfg(test)]
mod tests {
    use satchel_pam::record::{RecordKind, Skip};

    use super::*;

    #[test]
    fn each_record_is_one_line_without_control_characters() {
        let message = r#"{"id": "m", "role": "user"}"#;
        let conversation = format!(
            r#"{{"conversation": {{"id": "n1", "title": "Garden\n\u001b[2J", "locator": "notes.json[0]",
            "messages": [{message}, {message}]}}}}"#
        );
        let conversation: Line = serde_json::from_str(&conversation).expect("a record");
        let shown = record_line(&conversation, None);
        assert_eq!(shown, "conversation  Garden \\u{1b}[2J (2 messages)  notes.json[0]");
        let skip = Skip {
            kind: RecordKind::Conversation,
            locator: "notes.json[1]".to_owned(),
            reason: "it has no id".to_owned(),
        };
        let shown = record_line(&Line::Skip(skip), Some(40));
        assert_eq!(shown, "skip conversation it has no id  notes.j…");
    }

    #[test]
    fn counts_leave_out_what_there_is_none_of() {
        let counts = LineCounts { conversations: 1, messages: 2, ..LineCounts::default() };
        assert_eq!(counted(&counts), "1 conversation, 2 messages");
        assert_eq!(counted(&LineCounts::default()), "nothing");
    }
}
