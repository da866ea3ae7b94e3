//! A receipt as text for a person: a small table whose rows add up, and the skipped records, grouped by reason.

use std::collections::BTreeMap;

use satchel_proto::{
    integers::{millis, signed, unsigned},
    v1::{HeldBack, Import, ImportIssue, ImportStatus, RecordCounts, RecordKind},
};

use super::differences::differences;
use crate::cli::{
    labels,
    style::{Paint, TerminalStyle},
    table::{Cell, Column, Table},
    text,
    time::Calendar,
};

/// Reasons that are listed; the rest is only counted.
const MAX_REASONS: usize = 6;

/// Returns the lines of a receipt; the last one ends with a line feed.
pub(in crate::cli) fn render(import: &Import, calendar: &Calendar, style: TerminalStyle) -> String {
    let mut out = headline(import, style);
    out.push_str(&origin(import, calendar, style));
    if !import.reason.is_empty() {
        let options =
            textwrap::Options::new(style.text_columns()).initial_indent("  ").subsequent_indent("  ");
        text::append(&mut out, format_args!("{}\n", textwrap::fill(&text::clean(&import.reason), options)));
    }
    if let Some(line) = importer_note(import) {
        let paint = if import.plugin_unsigned { Paint::Warn } else { Paint::Dim };
        text::append(&mut out, format_args!("  {}\n", style.paint(paint, &line)));
    }
    for line in trust_notes(import) {
        let options =
            textwrap::Options::new(style.text_columns()).initial_indent("  ").subsequent_indent("  ");
        let line = textwrap::fill(&text::clean(&line), options);
        text::append(&mut out, format_args!("{}\n", style.paint(Paint::Warn, &line)));
    }
    for account in &import.accounts {
        let name = account.name.as_deref().map(|name| format!("{} · ", text::one_line(name)));
        let line = format!("account {}{}", name.unwrap_or_default(), text::one_line(&account.id));
        text::append(&mut out, format_args!("  {}\n", style.paint(Paint::Dim, &line)));
    }
    if let Some(table) = counts(import) {
        out.push('\n');
        for line in table.render(style).lines() {
            text::append(&mut out, format_args!("  {line}\n"));
        }
    }
    out.push_str(&differences(import, style));
    // For an export that was imported before, the first receipt already listed them.
    if import.status() != ImportStatus::Unchanged {
        out.push_str(&skips(import, style));
        out.push_str(&warnings(import, style));
    }
    out
}

/// Returns which installed importer read the export, and who signed it. Importers of the program are not named.
fn importer_note(import: &Import) -> Option<String> {
    let plugin = text::one_line(&import.plugin).replacen('/', " ", 1);
    if import.plugin_unsigned {
        return Some(format!("read by {plugin}, an installed importer that nobody signed"));
    }
    let signer = text::one_line(&import.plugin_signer);
    (!signer.is_empty()).then(|| format!("read by {plugin}, signed by {signer}"))
}

/// Returns what the documents of an untrusted signer would have changed, and the problems of documents that were
/// merged with `--force`.
fn trust_notes(import: &Import) -> Vec<String> {
    let forced = import.forced.iter().map(|problem| format!("merged with --force, although {problem}"));
    let mut lines: Vec<String> = forced.collect();
    if let Some(held) = &import.would_change {
        let HeldBack { memories, relations, conversations, embeddings, memory_ids: _ } = held;
        let counts = [
            (memories, "memory", "memories"),
            (relations, "relation", "relations"),
            (conversations, "conversation", "conversations"),
            (embeddings, "embedding", "embeddings"),
        ];
        let counts = counts.into_iter().filter(|(count, ..)| **count > 0);
        let counts: Vec<String> =
            counts.map(|(count, one, many)| text::count(unsigned(*count), one, many)).collect();
        let option = if import.signer.is_empty() || import.partly_signed {
            "--force".to_owned()
        } else {
            format!("--trust {}", import.signer)
        };
        let path = text::shell_quoted(&text::one_line(&import.path));
        lines.push(format!("would change {}: `satchel apply {option} {path}`", counts.join(", ")));
    }
    lines
}

/// Returns the name of an export: the file or folder that was given, and where the export lies inside it if that
/// adds information.
pub(in crate::cli) fn export_name(import: &Import) -> String {
    let source = text::one_line(&import.source);
    let Some(first) = import.files.first() else { return source };
    // The files of a session are named by their paths in the watched folder, and the source by that of the session.
    let below = |file: &String| file.strip_prefix(&import.source).is_some_and(|rest| rest.starts_with('/'));
    if import.files.contains(&import.source) || import.files.iter().all(below) {
        return source;
    }
    let more = import.files_total.saturating_sub(1);
    if more == 0 {
        return format!("{source}/{}", text::one_line(first));
    }
    // The deepest folder or archive that contains all listed files.
    let shared = first.match_indices('/').map(|(at, _)| &first[..=at]).collect::<Vec<_>>().into_iter();
    let folder = shared.rev().find(|folder| import.files.iter().all(|file| file.starts_with(folder)));
    match folder {
        Some(folder) => format!("{source}/{}", text::one_line(folder.trim_end_matches('/'))),
        None => format!("{source}/{} and {} more", text::one_line(first), text::number(unsigned(more))),
    }
}

fn headline(import: &Import, style: TerminalStyle) -> String {
    let (mark, paint, words, tail) = match import.status() {
        ImportStatus::Completed => ("✓", Paint::Good, "completed", ""),
        ImportStatus::CompletedWithSkips => ("✓", Paint::Warn, "completed", ", with skips"),
        ImportStatus::Unchanged => ("✓", Paint::Good, "unchanged", ""),
        ImportStatus::Unrecognized => ("✗", Paint::Bad, "not recognised", ""),
        ImportStatus::Failed => ("✗", Paint::Bad, "failed", ""),
        ImportStatus::Cancelled => ("✗", Paint::Warn, "cancelled", ""),
        ImportStatus::Undone => ("↺", Paint::Warn, "undone", ""),
        ImportStatus::Running => ("…", Paint::Warn, "running", ""),
        ImportStatus::Waiting => ("…", Paint::Warn, "waiting", ""),
        ImportStatus::Unspecified => ("?", Paint::Warn, "unknown", ""),
    };
    let dry = if import.dry_run { ", dry run: nothing was stored" } else { "" };
    let elapsed = millis(import.elapsed.as_ref());
    let took = match import.status() {
        ImportStatus::Unchanged
        | ImportStatus::Unrecognized
        | ImportStatus::Running
        | ImportStatus::Waiting => String::new(),
        _ if elapsed > 0 => format!(" in {}", text::duration(elapsed)),
        _ => String::new(),
    };
    format!(
        "{} {}  {}{took}{tail}{dry}\n",
        style.paint(paint, mark),
        style.paint(Paint::Strong, &export_name(import)),
        style.paint(paint, words),
    )
}

fn origin(import: &Import, calendar: &Calendar, style: TerminalStyle) -> String {
    let mut facts = Vec::new();
    if !import.format.is_empty() {
        facts.push(text::one_line(&import.format));
    }
    if import.bytes > 0 {
        facts.push(text::bytes(unsigned(import.bytes)));
    }
    if import.attachments > 0 {
        facts.push(text::count(unsigned(import.attachments), "attachment", "attachments"));
    }
    // A download that is still waiting has no import yet.
    if !import.dry_run && import.status() != ImportStatus::Waiting {
        facts.push(format!("import {}", text::short_id(&import.id)));
    }
    if !import.machine.is_empty() {
        facts.push(format!("on {}", text::one_line(&import.machine)));
    }
    if let Some(range) = &import.revisions {
        facts.push(match range.last - range.first.min(range.last) {
            0 => format!("revision {}", range.last),
            _ => format!("revisions {} to {}", range.first, range.last),
        });
    }
    let when = calendar.minute(import.finished_at.as_ref().or(import.started_at.as_ref()));
    if !when.is_empty() {
        facts.push(when);
    }
    format!("  {}\n", style.paint(Paint::Dim, &facts.join(" · ")))
}

/// Returns the table, or `None` if nothing was counted.
fn counts(import: &Import) -> Option<Table> {
    let rows = [
        ("conversations", import.conversations.as_ref()),
        ("messages", import.messages.as_ref()),
        ("memories", import.memories.as_ref()),
        ("embeddings", import.embeddings.as_ref()),
    ];
    let counted: Vec<(&str, &RecordCounts)> = rows
        .into_iter()
        .filter_map(|(name, counts)| {
            counts.filter(|counts| **counts != RecordCounts::default()).map(|counts| (name, counts))
        })
        .collect();
    if counted.is_empty() {
        return None;
    }
    let columns = ["", "found", "= new", "+ updated", "+ unchanged", "+ skipped"]
        .map(|title| if title.is_empty() { Column::new(title) } else { Column::right(title) });
    let mut table = Table::new(columns);
    for (name, counts) in counted {
        let RecordCounts { found, new, updated, unchanged, skipped } = *counts;
        let number = |n: u64, paint| Cell::painted(&text::number(n), if n == 0 { Paint::Dim } else { paint });
        table.row([
            Cell::new(name),
            number(unsigned(found), Paint::Strong),
            number(unsigned(new), Paint::Good),
            number(unsigned(updated), Paint::Good),
            number(unsigned(unchanged), Paint::Plain),
            number(unsigned(skipped), Paint::Warn),
        ]);
    }
    Some(table)
}

/// Returns what was skipped, the most frequent reason first.
fn skips(import: &Import, style: TerminalStyle) -> String {
    if import.skipped.is_empty() {
        return String::new();
    }
    let mut groups: BTreeMap<(i32, &str), Vec<&ImportIssue>> = BTreeMap::new();
    for issue in &import.skipped {
        groups.entry((issue.record, issue.message.as_str())).or_default().push(issue);
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(_, issues)| std::cmp::Reverse(issues.len()));
    let more = if import.more_skipped { "more than " } else { "" };
    let mut out = format!(
        "\n  {}\n",
        style.paint(Paint::Warn, &format!("{more}{} skipped", text::number(import.skipped.len() as u64)))
    );
    let mut table = Table::new([
        Column::right("n"),
        Column::new("kind"),
        Column::new("reason").shrinks_to(20),
        Column::new("first").shrinks_to(16).optional(1),
    ]);
    for ((kind, reason), issues) in groups.iter().take(MAX_REASONS) {
        let n = issues.len() as u64;
        let first = issues.first().map_or("", |issue| &issue.locator);
        table.row([
            Cell::new(&text::number(n)),
            Cell::new(&kind_word(*kind, n)),
            Cell::new(reason),
            Cell::painted(first, Paint::Dim),
        ]);
    }
    let narrow = TerminalStyle { columns: style.columns.map(|columns| columns.saturating_sub(4)), ..style };
    for line in table.render(narrow).lines().skip(1) {
        text::append(&mut out, format_args!("    {line}\n"));
    }
    let rest: usize = groups.iter().skip(MAX_REASONS).map(|(_, issues)| issues.len()).sum();
    if rest > 0 {
        text::append(&mut out, format_args!("    and {} for other reasons\n", text::number(rest as u64)));
    }
    out
}

fn warnings(import: &Import, style: TerminalStyle) -> String {
    let total = import.warnings_total.max(signed(import.warnings.len() as u64));
    let Some(first) = import.warnings.first() else { return String::new() };
    let line = format!("{}: {}", text::one_line(&first.locator), text::one_line(&first.message));
    let line = style
        .columns
        .map_or_else(|| line.clone(), |columns| text::fit(&line, columns.saturating_sub(4)).into_owned());
    let title = style.paint(Paint::Warn, &text::count(unsigned(total), "warning", "warnings"));
    format!("\n  {title}\n    {line}\n")
}

/// Returns the command that lists each skipped record and each warning.
pub(in crate::cli) fn hint(import: &Import) -> Option<String> {
    let some = !import.skipped.is_empty() || !import.warnings.is_empty();
    // A dry run leaves no entry to look at. For an export that was imported before, the first receipt had the hint.
    let has_issues = some && !import.dry_run && import.status() != ImportStatus::Unchanged;
    has_issues.then(|| format!("`satchel imports issues {}` lists all of them", text::short_id(&import.id)))
}

fn kind_word(kind: i32, n: u64) -> String {
    let word = labels::record_kind(kind);
    match (RecordKind::try_from(kind), n) {
        (_, 1) => word,
        (Ok(RecordKind::Memory), _) => "memories".to_owned(),
        _ => format!("{word}s"),
    }
}

#[cfg(test)]
mod tests {
    use satchel_proto::v1::{ImportAccount, IssueKind, RevisionRange};

    use super::*;
    use crate::cli::time;

    fn skip(record: RecordKind, at: usize, reason: &str) -> ImportIssue {
        let locator = format!("conversations-001.json[{at}]");
        ImportIssue {
            kind: IssueKind::Skip.into(),
            record: record.into(),
            locator,
            message: reason.to_owned(),
        }
    }

    #[test]
    fn the_path_of_a_session_is_not_repeated() {
        let named = |source: &str, files: &[&str]| {
            let files: Vec<String> = files.iter().map(ToString::to_string).collect();
            let files_total = i64::try_from(files.len()).unwrap_or_default();
            export_name(&Import { source: source.to_owned(), files, files_total, ..Import::default() })
        };
        assert_eq!(named("p/a.jsonl", &["p/a.jsonl"]), "p/a.jsonl");
        assert_eq!(named("p/a.jsonl", &["p/a.jsonl", "p/a/subagents/b.jsonl"]), "p/a.jsonl");
        assert_eq!(named("p", &["p/a.jsonl", "p/memory/notes.md"]), "p");
        assert_eq!(named("export", &["p/a.jsonl"]), "export/p/a.jsonl");
        assert_eq!(named("export", &["exported/a.jsonl"]), "export/exported/a.jsonl");
    }

    fn import() -> Import {
        let counts = |found, new, updated, unchanged, skipped| {
            Some(RecordCounts { found, new, updated, unchanged, skipped })
        };
        Import {
            id: "3f2a91bc-0000-5000-8000-000000000001".to_owned(),
            source: "chatgpt-export.zip".to_owned(),
            format: "chatgpt-importer/2026.07".to_owned(),
            status: ImportStatus::CompletedWithSkips.into(),
            conversations: counts(44, 12, 1, 28, 3),
            messages: counts(1_312, 410, 2, 900, 0),
            memories: counts(0, 0, 0, 0, 0),
            skipped: vec![
                skip(RecordKind::Conversation, 3, "two messages have the id \u{1b}[2J"),
                skip(RecordKind::Conversation, 17, "mapping is null"),
                skip(RecordKind::Conversation, 18, "mapping is null"),
            ],
            warnings: vec![ImportIssue {
                locator: "user.json".to_owned(),
                message: "has no id".to_owned(),
                ..ImportIssue::default()
            }],
            warnings_total: 7,
            revisions: Some(RevisionRange { first: 52, last: 57 }),
            elapsed: Some(prost_types::Duration { seconds: 0, nanos: 812_000_000 }),
            bytes: 12_400_000,
            finished_at: time::at("2026-03-12T11:58:00Z"),
            ..Import::default()
        }
    }

    fn plain(import: &Import) -> String {
        render(import, &time::fixed(), TerminalStyle::plain(80))
    }

    #[test]
    fn a_receipt_balances_and_groups_skips_by_reason() {
        let expected = "\
✓ chatgpt-export.zip  completed in 812 ms, with skips
  chatgpt-importer/2026.07 · 12 MB · import 3f2a91bc · revisions 52 to 57 · 2026-03-12 11:58

                 FOUND  = NEW  + UPDATED  + UNCHANGED  + SKIPPED
  conversations     44     12          1           28          3
  messages       1,312    410          2          900          0

  3 skipped
    2  conversations  mapping is null                 conversations-001.json[17]
    1  conversation   two messages have the id \\u{1…  conversations-001.json[3]

  7 warnings
    user.json: has no id
";
        assert_eq!(plain(&import()), expected);
        assert_eq!(hint(&import()).as_deref(), Some("`satchel imports issues 3f2a91bc` lists all of them"));
    }

    #[test]
    fn a_receipt_names_an_installed_importer_and_who_signed_it() {
        let plugin = "notes/1.0.0\u{1b}[2J".to_owned();
        let signed = Import { plugin, plugin_signer: "z6MkAna".to_owned(), ..import() };
        assert!(plain(&signed).contains("\n  read by notes 1.0.0\\u{1b}[2J, signed by z6MkAna\n"));
        let unsigned = Import { plugin: "notes/1.0.0".to_owned(), plugin_unsigned: true, ..import() };
        assert!(
            plain(&unsigned).contains("\n  read by notes 1.0.0, an installed importer that nobody signed\n")
        );
        assert!(!plain(&import()).contains("read by"));
    }

    #[test]
    fn a_receipt_shows_what_an_untrusted_document_would_change_and_how_to_apply_it() {
        let held = HeldBack { memories: 8, conversations: 1, ..HeldBack::default() };
        let path = "/tmp/theirs.zip".to_owned();
        let mut shown =
            Import { would_change: Some(held), signer: "z6MkTheirs".to_owned(), path, ..import() };
        let words = |import: &Import| trust_notes(import).join("\n");
        assert_eq!(
            words(&shown),
            "would change 8 memories, 1 conversation: `satchel apply --trust z6MkTheirs /tmp/theirs.zip`"
        );
        shown.partly_signed = true;
        assert!(
            words(&shown).ends_with("`satchel apply --force /tmp/theirs.zip`"),
            "its key does not vouch for all"
        );
        (shown.partly_signed, shown.signer) = (false, String::new());
        assert!(words(&shown).ends_with("`satchel apply --force /tmp/theirs.zip`"));
        shown.forced = vec!["nobody signed it".to_owned()];
        assert!(words(&shown).starts_with("merged with --force, although nobody signed it\n"));
        assert!(plain(&shown).contains("would change 8 memories"));
    }

    #[test]
    fn an_export_in_a_folder_is_named_by_its_file() {
        let export_name = |files: &[&str], total| {
            let files = files.iter().map(|file| (*file).to_owned()).collect();
            export_name(&Import {
                source: "Downloads".to_owned(),
                files,
                files_total: total,
                ..Import::default()
            })
        };
        assert_eq!(export_name(&["chat.json"], 1), "Downloads/chat.json");
        assert_eq!(export_name(&["claude.zip/a.json", "claude.zip/b.json"], 2), "Downloads/claude.zip");
        assert_eq!(export_name(&["x/y/a.json", "x/y/b.json"], 40), "Downloads/x/y");
        assert_eq!(export_name(&["a.json", "b.json"], 2), "Downloads/a.json and 1 more");
        assert_eq!(export_name(&[], 0), "Downloads", "a single file, or a receipt of an older version");
    }

    #[test]
    fn a_receipt_names_the_accounts_of_the_export() {
        let account = |id: &str, name: Option<&str>| ImportAccount {
            id: id.to_owned(),
            name: name.map(ToOwned::to_owned),
        };
        let accounts = vec![account("0b1c", Some("Ana \u{1b}[2JExample")), account("77d2", None)];
        let shown = plain(&Import { accounts, ..import() });
        assert!(shown.contains("\n  account Ana \\u{1b}[2JExample · 0b1c\n  account 77d2\n"), "{shown}");
    }

    #[test]
    fn a_failed_receipt_shows_the_reason() {
        let failed = Import {
            id: "3f2a91bc-0000-5000-8000-000000000001".to_owned(),
            source: "export.zip".to_owned(),
            status: ImportStatus::Failed.into(),
            reason: "the archive's directory is damaged; download the export again".to_owned(),
            ..Import::default()
        };
        let expected = "\
✗ export.zip  failed
  import 3f2a91bc
  the archive's directory is damaged; download the export again
";
        assert_eq!(plain(&failed), expected);
    }

    #[test]
    fn unchanged_imports_and_dry_runs_are_marked() {
        let reason = "these bytes were imported before".to_owned();
        let unchanged = Import { status: ImportStatus::Unchanged.into(), reason, ..import() };
        assert!(
            !plain(&unchanged).contains("skipped\n")
                && plain(&unchanged).contains("  these bytes were imported before\n")
        );
        assert!(plain(&unchanged).starts_with("✓ chatgpt-export.zip  unchanged\n"));
        let dry = Import { dry_run: true, ..import() };
        assert!(plain(&dry).contains("dry run: nothing was stored") && hint(&dry).is_none());
    }

    #[test]
    fn additional_reasons_are_counted() {
        let skipped = (0..10).map(|n| skip(RecordKind::Memory, n, &format!("reason {n}"))).collect();
        let shown = plain(&Import { skipped, more_skipped: true, ..import() });
        assert!(
            shown.contains("more than 10 skipped") && shown.contains("and 4 for other reasons"),
            "{shown}"
        );
    }
}
