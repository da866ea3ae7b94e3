//! `verify`: checks a bundle from any source, offline.

use satchel_bundle::{
    manifest::Selected,
    verify::{self, Coverage, Covered, Finding, Options, Part, Report, Signed},
};
use satchel_pam::issue::Severity;
use satchel_source::{CancelToken, envelope::Keys};
use serde::Serialize;

use super::{
    Context,
    args::VerifyArgs,
    error::CliError,
    exit::Exit,
    look::{Look, Paint},
    secret,
    table::{Cell, Column, Table},
    text,
};

/// Findings that are shown; `--json` prints all of them.
const SHOWN: usize = 30;

/// Checks the bundle and prints whether it is valid. `own_keys` are the current and former signing keys of our data
/// directory.
///
/// # Errors
/// Fails if the bundle cannot be read, or is not a bundle.
pub(crate) fn run(args: &VerifyArgs, own_keys: Vec<String>, context: &mut Context) -> Result<Exit, CliError> {
    let unlock = secret::unlock(&args.unlock, context.passphrase.as_deref())?;
    let keys = unlock
        .map(|unlock| Keys::parse(&unlock.identities, Some(unlock.passphrase).filter(|one| !one.is_empty())));
    let keys = keys.transpose().map_err(|error| CliError::Usage(error.to_string()))?;
    let out = &mut context.out;
    let options = Options {
        signers: args.signer.clone(),
        base: args.base.clone(),
        own_keys,
        strict: args.strict,
        keys,
        cancel: CancelToken::new(),
    };
    let spinner = out.spinner("checking");
    let checked = verify::path(&args.path, &options);
    spinner.finish_and_clear();
    let report = checked.map_err(|error| match error {
        verify::VerifyError::BadSigner { .. } => CliError::Usage(error.to_string()),
        verify::VerifyError::NoBundle { .. } => CliError::NoBundle(error.to_string()),
        error => CliError::Step {
            what: format!("{} cannot be checked", args.path.display()),
            source: error.into(),
        },
    })?;
    if out.json {
        out.json(&Verdict::new(&report))?;
    } else {
        out.print(&render(&report, out.look))?;
    }
    Ok(if report.valid { Exit::Done } else { Exit::CheckFailed })
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Verdict<'a> {
    valid: bool,
    signature: &'static str,
    manifest: &'static str,
    signer: Option<&'a str>,
    /// Older keys that the signer's key is proven to follow.
    predecessors: &'a [String],
    issues: Vec<Issue<'a>>,
    issues_total: usize,
    memories: u64,
    conversations: u64,
    /// Null without `--base`, or if base and bundle do not fit together.
    merged: Option<Merged>,
    /// Set if the bundle is not a complete copy of a store: how it differs.
    selection: Option<&'a Selected>,
    covered: Coverages,
    /// Each bundle at the path, and the documents there that belong to no bundle.
    bundles: Vec<Bundle<'a>>,
}

/// The parts that a signature covers: `signed`, `unsigned` or `absent`.
#[derive(Debug, Serialize)]
struct Coverages {
    memories: &'static str,
    relations: &'static str,
    conversations: &'static str,
    attachments: &'static str,
}

#[derive(Debug, Serialize)]
struct Bundle<'a> {
    /// Empty if there is nothing else at the path.
    path: &'a str,
    valid: bool,
    signature: &'static str,
    manifest: &'static str,
    signer: Option<&'a str>,
    covered: Coverages,
    memories: u64,
    conversations: u64,
}

impl Coverages {
    fn new(covered: Covered) -> Self {
        let Covered { memories, relations, conversations, attachments, embeddings: _ } = covered;
        Self {
            memories: coverage_word(memories),
            relations: coverage_word(relations),
            conversations: coverage_word(conversations),
            attachments: coverage_word(attachments),
        }
    }
}

impl<'a> Bundle<'a> {
    fn new(part: &'a Part) -> Self {
        Self {
            path: &part.path,
            valid: part.valid,
            signature: word(part.signature),
            manifest: word(part.manifest),
            signer: part.signer.as_deref(),
            covered: Coverages::new(part.covered),
            memories: part.memories,
            conversations: part.conversations,
        }
    }
}

/// The result of merging base and bundle.
#[derive(Debug, Serialize)]
struct Merged {
    memories: u64,
    checksum: Option<String>,
}

#[derive(Debug, Serialize)]
struct Issue<'a> {
    severity: &'static str,
    check: &'a str,
    path: &'a str,
    message: &'a str,
}

impl<'a> Verdict<'a> {
    fn new(report: &'a Report) -> Self {
        let Report {
            valid,
            signature,
            manifest,
            signer,
            predecessors,
            issues,
            issues_found,
            memories,
            conversations,
            merged,
            selection,
            covered,
            bundles,
        } = report;
        Self {
            valid: *valid,
            signature: word(*signature),
            manifest: word(*manifest),
            signer: signer.as_deref(),
            predecessors,
            issues: issues.iter().map(Issue::new).collect(),
            issues_total: *issues_found,
            memories: *memories,
            conversations: *conversations,
            merged: merged.as_ref().map(|merged| Merged {
                memories: merged.memories,
                checksum: merged.checksum.map(|sum| sum.to_string()),
            }),
            selection: selection.as_ref(),
            covered: Coverages::new(*covered),
            bundles: bundles.iter().map(Bundle::new).collect(),
        }
    }
}

impl<'a> Issue<'a> {
    fn new(finding: &'a Finding) -> Self {
        let Finding { severity, check, path, message } = finding;
        Self { severity: severity_word(*severity), check, path, message }
    }
}

fn render(report: &Report, look: Look) -> String {
    let (mark, verdict) = if report.valid {
        (look.paint(Paint::Good, "✓"), look.paint(Paint::Good, "valid"))
    } else {
        (look.paint(Paint::Bad, "✗"), look.paint(Paint::Bad, "not valid"))
    };
    let what = format!(
        "{}, {}",
        text::count(report.memories, "memory", "memories"),
        text::count(report.conversations, "conversation", "conversations")
    );
    let mut facts = super::facts::Facts::new();
    facts.painted("signature", word(report.signature), paint(report.signature));
    facts.painted("manifest", word(report.manifest), paint(report.manifest));
    facts.maybe("signed by", report.signer.as_deref());
    facts.add("covers", &coverage(report.covered));
    if !report.predecessors.is_empty() {
        facts.add("follows", &report.predecessors.join(", "));
    }
    if let Some(selection) = &report.selection {
        facts.add("holds", &format!("{}; no copy of the store, and nothing builds on it", selection.words()));
    }
    if let Some(merged) = &report.merged {
        facts.add("with base", &text::count(merged.memories, "memory", "memories"));
        facts.maybe("checksum", merged.checksum.map(|sum| sum.to_string()).as_deref());
    }
    let mut out = format!("{mark} {verdict}: {what}\n\n{}", facts.render(look));
    out.push_str(&bundles(report, look));
    out.push_str(&findings(report, look));
    out
}

/// Returns what the signatures cover, in a sentence.
fn coverage(covered: Covered) -> String {
    let of = |wanted: Coverage| -> Vec<&str> {
        let named = covered.named().into_iter();
        named.filter(|(_, coverage)| *coverage == wanted).map(|(name, _)| name).collect()
    };
    let (signed, open) = (of(Coverage::Signed), of(Coverage::Unsigned));
    let signed = (!signed.is_empty()).then(|| format!("{}: signed", signed.join(", ")));
    let open = (!open.is_empty()).then(|| format!("{}: not covered by any signature", open.join(", ")));
    signed.into_iter().chain(open).collect::<Vec<_>>().join("; ")
}

/// Returns a table of the bundles, if there are several.
fn bundles(report: &Report, look: Look) -> String {
    if report.bundles.len() < 2 {
        return String::new();
    }
    let mut table = Table::new([
        Column::new("bundle").shrinks_to(16),
        Column::new("verdict"),
        Column::new("signed by").shrinks_to(16),
        Column::new("covers").shrinks_to(24),
    ]);
    for part in &report.bundles {
        let (verdict, paint) = if part.valid { ("valid", Paint::Good) } else { ("not valid", Paint::Bad) };
        table.row([
            Cell::new(&part.path),
            Cell::painted(verdict, paint),
            Cell::new(part.signer.as_deref().unwrap_or("nobody")),
            Cell::new(&coverage(part.covered)),
        ]);
    }
    format!("\n{}", table.render(look))
}

fn findings(report: &Report, look: Look) -> String {
    if report.issues.is_empty() {
        return String::new();
    }
    let mut table = Table::new([
        Column::new("issue"),
        Column::new("check"),
        Column::new("where").shrinks_to(16),
        Column::new("what").shrinks_to(24),
    ]);
    for finding in report.issues.iter().take(SHOWN) {
        let paint = if finding.severity == Severity::Error { Paint::Bad } else { Paint::Warn };
        table.row([
            Cell::painted(severity_word(finding.severity), paint),
            Cell::new(&finding.check),
            Cell::painted(&finding.path, Paint::Dim),
            Cell::new(&finding.message),
        ]);
    }
    let mut out = format!("\n{}", table.render(look));
    let rest = report.issues_found.saturating_sub(report.issues.len().min(SHOWN)) as u64;
    if rest > 0 {
        text::append(
            &mut out,
            format_args!("… {}; --json shows more\n", text::count(rest, "more issue", "more issues")),
        );
    }
    out
}

fn word(signed: Signed) -> &'static str {
    match signed {
        Signed::Valid => "valid",
        Signed::Invalid => "invalid",
        Signed::Absent => "absent",
        Signed::Unsupported => "unsupported",
    }
}

fn coverage_word(coverage: Coverage) -> &'static str {
    match coverage {
        Coverage::Absent => "absent",
        Coverage::Signed => "signed",
        Coverage::Unsigned => "unsigned",
    }
}

fn paint(signed: Signed) -> Paint {
    match signed {
        Signed::Valid => Paint::Good,
        Signed::Invalid => Paint::Bad,
        Signed::Absent | Signed::Unsupported => Paint::Warn,
    }
}

fn severity_word(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn report() -> Report {
        let finding = |severity, check: &str, message: &str| Finding {
            severity,
            check: check.to_owned(),
            path: "memory-store.json $.memories[3]".to_owned(),
            message: message.to_owned(),
        };
        Report {
            valid: false,
            signature: Signed::Invalid,
            manifest: Signed::Absent,
            signer: None,
            predecessors: Vec::new(),
            issues: vec![
                finding(Severity::Error, "signature", "does not fit the \u{1b}[2Jkey"),
                finding(Severity::Warning, "manifest", "there is none"),
            ],
            issues_found: 2,
            memories: 12,
            conversations: 1,
            merged: None,
            selection: None,
            covered: Covered {
                memories: Coverage::Signed,
                relations: Coverage::Unsigned,
                conversations: Coverage::Unsigned,
                ..Covered::default()
            },
            bundles: Vec::new(),
        }
    }

    #[test]
    fn the_verdict_is_shown_with_what_was_found() {
        let expected = "\
✗ not valid: 12 memories, 1 conversation

signature  invalid
manifest   absent
covers     memories: signed; relations, conversations: not covered by any signature

ISSUE    CHECK      WHERE                            WHAT
error    signature  memory-store.json $.memories[3]  does not fit the \\u{1b}[2Jkey
warning  manifest   memory-store.json $.memories[3]  there is none
";
        assert_eq!(render(&report(), Look::plain(90)), expected);
    }

    #[test]
    fn the_json_has_the_keys_that_scripts_know() {
        let value = serde_json::to_value(Verdict::new(&report())).unwrap();
        assert_eq!(
            (&value["valid"], &value["signature"], &value["manifest"]),
            (&false.into(), &"invalid".into(), &"absent".into())
        );
        assert!(value["signer"].is_null());
        let covered = serde_json::json!({"memories": "signed", "relations": "unsigned",
            "conversations": "unsigned", "attachments": "absent"});
        assert_eq!(value["covered"], covered);
        let issue = value["issues"][1].as_object().unwrap();
        assert_eq!(issue.keys().collect::<Vec<_>>(), ["check", "message", "path", "severity"]);
        assert_eq!(issue["severity"], "warning");
    }
}
