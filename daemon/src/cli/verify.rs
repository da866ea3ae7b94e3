//! `verify`: checks a bundle from any source, offline.

use satchel_bundle::{
    manifest::BundleSelection,
    verify::{
        self, BundleReport, Coverage, SignatureCoverage, SignatureState, VerifyFinding, VerifyOptions,
        VerifyReport,
    },
};
use satchel_pam::issue::Severity;
use satchel_source::{CancelToken, envelope::DecryptionKeys};
use serde::Serialize;

use super::{
    Context,
    args::VerifyArgs,
    error::CliError,
    exit::Exit,
    secret,
    style::{Paint, TerminalStyle},
    table::{Cell, Column, Table},
    text,
};

/// Findings that are shown; `--json` prints all of them.
const MAX_SHOWN: usize = 30;

/// Checks the bundle and prints whether it is valid. `own_keys` are the current and former signing keys of our data
/// directory.
///
/// # Errors
/// Fails if the bundle cannot be read, or is not a bundle.
pub(crate) fn run(args: &VerifyArgs, own_keys: Vec<String>, context: &mut Context) -> Result<Exit, CliError> {
    let unlock = secret::unlock(&args.unlock, context.passphrase.as_deref())?;
    let keys = unlock.map(|unlock| {
        DecryptionKeys::parse(&unlock.identities, Some(unlock.passphrase).filter(|one| !one.is_empty()))
    });
    let keys = keys.transpose().map_err(|error| CliError::Usage(error.to_string()))?;
    let out = &mut context.out;
    let options = VerifyOptions {
        signers: args.signer.clone(),
        base: args.base.clone(),
        own_keys,
        strict: args.strict,
        keys,
        cancel: CancelToken::new(),
        ..VerifyOptions::default()
    };
    let spinner = out.spinner("verifying");
    let checked = verify::path(&args.path, &options);
    spinner.finish_and_clear();
    let report = checked.map_err(|error| match error {
        verify::VerifyError::BadSigner { .. } => CliError::Usage(error.to_string()),
        verify::VerifyError::NoBundle { .. } => CliError::NoBundle(error.to_string()),
        error => CliError::step(format!("cannot verify {}", args.path.display()), error),
    })?;
    if out.json {
        out.json(&Verdict::new(&report))?;
    } else {
        out.print(&render(&report, out.style))?;
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
    issues: Vec<IssueJson<'a>>,
    issues_total: usize,
    memories: u64,
    conversations: u64,
    /// Null without `--base`, or if base and bundle do not fit together.
    merged: Option<MergedJson>,
    /// Set if the bundle is not a complete copy of a store: how it differs.
    selection: Option<&'a BundleSelection>,
    covered: CoverageJson,
    /// Each bundle at the path, and the documents there that belong to no bundle.
    bundles: Vec<BundleJson<'a>>,
}

/// The parts that a signature covers: `signed`, `unsigned` or `absent`.
#[derive(Debug, Serialize)]
struct CoverageJson {
    memories: &'static str,
    relations: &'static str,
    conversations: &'static str,
    attachments: &'static str,
}

#[derive(Debug, Serialize)]
struct BundleJson<'a> {
    /// Empty if there is nothing else at the path.
    path: &'a str,
    valid: bool,
    signature: &'static str,
    manifest: &'static str,
    signer: Option<&'a str>,
    covered: CoverageJson,
    memories: u64,
    conversations: u64,
}

impl CoverageJson {
    fn new(covered: SignatureCoverage) -> Self {
        let SignatureCoverage { memories, relations, conversations, attachments, embeddings: _ } = covered;
        Self {
            memories: coverage_label(memories),
            relations: coverage_label(relations),
            conversations: coverage_label(conversations),
            attachments: coverage_label(attachments),
        }
    }
}

impl<'a> BundleJson<'a> {
    fn new(part: &'a BundleReport) -> Self {
        Self {
            path: &part.path,
            valid: part.valid,
            signature: state_label(part.signature),
            manifest: state_label(part.manifest),
            signer: part.signer.as_deref(),
            covered: CoverageJson::new(part.coverage),
            memories: part.memories,
            conversations: part.conversations,
        }
    }
}

/// The result of merging base and bundle.
#[derive(Debug, Serialize)]
struct MergedJson {
    memories: u64,
    checksum: Option<String>,
}

#[derive(Debug, Serialize)]
struct IssueJson<'a> {
    severity: &'static str,
    check: &'a str,
    path: &'a str,
    message: &'a str,
}

impl<'a> Verdict<'a> {
    fn new(report: &'a VerifyReport) -> Self {
        let VerifyReport {
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
            coverage: covered,
            bundles,
        } = report;
        Self {
            valid: *valid,
            signature: state_label(*signature),
            manifest: state_label(*manifest),
            signer: signer.as_deref(),
            predecessors,
            issues: issues.iter().map(IssueJson::new).collect(),
            issues_total: *issues_found,
            memories: *memories,
            conversations: *conversations,
            merged: merged.as_ref().map(|merged| MergedJson {
                memories: merged.memories,
                checksum: merged.checksum.map(|sum| sum.to_string()),
            }),
            selection: selection.as_ref(),
            covered: CoverageJson::new(*covered),
            bundles: bundles.iter().map(BundleJson::new).collect(),
        }
    }
}

impl<'a> IssueJson<'a> {
    fn new(finding: &'a VerifyFinding) -> Self {
        let VerifyFinding { severity, check, path, message } = finding;
        Self { severity: severity_label(*severity), check, path, message }
    }
}

fn render(report: &VerifyReport, style: TerminalStyle) -> String {
    let (mark, verdict) = if report.valid {
        (style.paint(Paint::Good, "✓"), style.paint(Paint::Good, "valid"))
    } else {
        (style.paint(Paint::Bad, "✗"), style.paint(Paint::Bad, "not valid"))
    };
    let what = format!(
        "{}, {}",
        text::count(report.memories, "memory", "memories"),
        text::count(report.conversations, "conversation", "conversations")
    );
    let mut properties = super::properties::Properties::new();
    properties.add_painted("signature", state_label(report.signature), paint(report.signature));
    properties.add_painted("manifest", state_label(report.manifest), paint(report.manifest));
    properties.add_optional("signed by", report.signer.as_deref());
    properties.add("covers", &coverage(report.coverage));
    if !report.predecessors.is_empty() {
        properties.add("successor of", &report.predecessors.join(", "));
    }
    if let Some(selection) = &report.selection {
        properties.add(
            "contains",
            &format!(
                "{}; not a copy of the store, and not a base for incremental exports",
                selection.describe()
            ),
        );
    }
    if let Some(merged) = &report.merged {
        properties.add("with base", &text::count(merged.memories, "memory", "memories"));
        properties.add_optional("checksum", merged.checksum.map(|sum| sum.to_string()).as_deref());
    }
    let mut out = format!("{mark} {verdict}: {what}\n\n{}", properties.render(style));
    out.push_str(&bundles(report, style));
    out.push_str(&findings(report, style));
    out
}

/// Returns what the signatures cover, in a sentence.
fn coverage(covered: SignatureCoverage) -> String {
    let parts = |wanted: Coverage| -> Vec<&str> {
        let named = covered.by_part().into_iter();
        named.filter(|(_, coverage)| *coverage == wanted).map(|(name, _)| name).collect()
    };
    let (signed, unsigned) = (parts(Coverage::Signed), parts(Coverage::Unsigned));
    let signed = (!signed.is_empty()).then(|| format!("{}: signed", signed.join(", ")));
    let unsigned =
        (!unsigned.is_empty()).then(|| format!("{}: not covered by any signature", unsigned.join(", ")));
    signed.into_iter().chain(unsigned).collect::<Vec<_>>().join("; ")
}

/// Returns a table of the bundles, if there are several.
fn bundles(report: &VerifyReport, style: TerminalStyle) -> String {
    if report.bundles.len() < 2 {
        return String::new();
    }
    let mut table = Table::new([
        Column::new("bundle").shrinks_to(16),
        Column::new("result"),
        Column::new("signed by").shrinks_to(16),
        Column::new("covers").shrinks_to(24),
    ]);
    for part in &report.bundles {
        let (verdict, paint) = if part.valid { ("valid", Paint::Good) } else { ("not valid", Paint::Bad) };
        table.row([
            Cell::new(&part.path),
            Cell::painted(verdict, paint),
            Cell::new(part.signer.as_deref().unwrap_or("none")),
            Cell::new(&coverage(part.coverage)),
        ]);
    }
    format!("\n{}", table.render(style))
}

fn findings(report: &VerifyReport, style: TerminalStyle) -> String {
    if report.issues.is_empty() {
        return String::new();
    }
    let mut table = Table::new([
        Column::new("issue"),
        Column::new("check"),
        Column::new("location").shrinks_to(16),
        Column::new("message").shrinks_to(24),
    ]);
    for finding in report.issues.iter().take(MAX_SHOWN) {
        let paint = if finding.severity == Severity::Error { Paint::Bad } else { Paint::Warn };
        table.row([
            Cell::painted(severity_label(finding.severity), paint),
            Cell::new(&finding.check),
            Cell::painted(&finding.path, Paint::Dim),
            Cell::new(&finding.message),
        ]);
    }
    let mut out = format!("\n{}", table.render(style));
    let rest = report.issues_found.saturating_sub(report.issues.len().min(MAX_SHOWN)) as u64;
    if rest > 0 {
        text::append(
            &mut out,
            format_args!("… {}; --json shows more\n", text::count(rest, "more issue", "more issues")),
        );
    }
    out
}

fn state_label(signed: SignatureState) -> &'static str {
    match signed {
        SignatureState::Valid => "valid",
        SignatureState::Invalid => "invalid",
        SignatureState::Absent => "absent",
        SignatureState::Unsupported => "unsupported",
    }
}

fn coverage_label(coverage: Coverage) -> &'static str {
    match coverage {
        Coverage::Absent => "absent",
        Coverage::Signed => "signed",
        Coverage::Unsigned => "unsigned",
    }
}

fn paint(signed: SignatureState) -> Paint {
    match signed {
        SignatureState::Valid => Paint::Good,
        SignatureState::Invalid => Paint::Bad,
        SignatureState::Absent | SignatureState::Unsupported => Paint::Warn,
    }
}

fn severity_label(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn report() -> VerifyReport {
        let finding = |severity, check: &str, message: &str| VerifyFinding {
            severity,
            check: check.to_owned(),
            path: "memory-store.json $.memories[3]".to_owned(),
            message: message.to_owned(),
        };
        VerifyReport {
            valid: false,
            signature: SignatureState::Invalid,
            manifest: SignatureState::Absent,
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
            coverage: SignatureCoverage {
                memories: Coverage::Signed,
                relations: Coverage::Unsigned,
                conversations: Coverage::Unsigned,
                ..SignatureCoverage::default()
            },
            bundles: Vec::new(),
        }
    }

    #[test]
    fn the_verdict_is_shown_with_its_findings() {
        let expected = "\
✗ not valid: 12 memories, 1 conversation

signature  invalid
manifest   absent
covers     memories: signed; relations, conversations: not covered by any signature

ISSUE    CHECK      LOCATION                         MESSAGE
error    signature  memory-store.json $.memories[3]  does not fit the \\u{1b}[2Jkey
warning  manifest   memory-store.json $.memories[3]  there is none
";
        assert_eq!(render(&report(), TerminalStyle::plain(90)), expected);
    }

    #[test]
    fn the_json_keys_are_stable() {
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
