//! Output of an erasure. The erased text itself is not printed, because a terminal keeps its scrollback.

use satchel_proto::{integers::unsigned, v1::GetPurgePlanResponse};
use serde::Serialize;

use crate::cli::{Context, error::CliError, style::Paint, text};

/// Maximum number of ids listed per kind.
const MAX_LISTED: usize = 50;

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct PurgeReport<'a> {
    erased: bool,
    memories: Vec<&'a str>,
    conversations: Vec<&'a str>,
    versions: u64,
    messages: u64,
    evidence: u64,
    words_by_hand: u64,
    attachments: u64,
    conversations_that_stay: Vec<&'a str>,
}

impl<'a> PurgeReport<'a> {
    fn new(plan: &'a GetPurgePlanResponse, erased: bool, attachments: u64) -> Self {
        let all = || plan.memories.iter().chain(&plan.conversations);
        Self {
            erased,
            memories: plan.memories.iter().map(|line| line.id.as_str()).collect(),
            conversations: plan.conversations.iter().map(|line| line.id.as_str()).collect(),
            versions: all().map(|line| u64::from(unsigned(line.versions))).sum(),
            messages: all().map(|line| unsigned(line.messages)).sum(),
            evidence: unsigned(plan.evidence),
            words_by_hand: unsigned(plan.changes_by_hand),
            attachments,
            conversations_that_stay: plan.staying_conversation_ids.iter().map(String::as_str).collect(),
        }
    }
}

/// Lists what will be erased.
pub(super) fn plan(
    context: &mut Context,
    word: &str,
    plan: &GetPurgePlanResponse,
    dry_run: bool,
) -> Result<(), CliError> {
    if context.out.json {
        let report = PurgeReport::new(plan, false, unsigned(plan.attachments));
        return if dry_run { context.out.json(&report) } else { Ok(()) };
    }
    let mut out = String::from(if dry_run {
        "would be erased permanently:\n"
    } else {
        "will be erased permanently:\n"
    });
    for (name, lines) in [("conversation", &plan.conversations), ("memory", &plan.memories)] {
        for line in lines.iter().take(MAX_LISTED) {
            let created = context.calendar.minute_or_unknown(line.created_at.as_ref());
            let id = text::one_line(&line.id);
            let id = context.out.style.paint(Paint::Id, &id);
            let versions = text::count(u64::from(unsigned(line.versions)), "version", "versions");
            let messages = match line.messages {
                0 => String::new(),
                some => format!(", {}", text::count(unsigned(some), "message", "messages")),
            };
            let platform = text::one_line(&line.platform);
            text::append(
                &mut out,
                format_args!("  {name} {id}  {platform}, {created}, {versions}{messages}\n"),
            );
        }
        if lines.len() > MAX_LISTED {
            text::append(
                &mut out,
                format_args!("  and {} more; --json lists all\n", lines.len() - MAX_LISTED),
            );
        }
    }
    let counts = [
        (unsigned(plan.evidence), "piece of evidence from exports", "pieces of evidence from exports"),
        (unsigned(plan.changes_by_hand), "edit", "edits"),
        (
            unsigned(plan.attachments),
            "attachment, unless another conversation has it",
            "attachments, except those that other conversations have",
        ),
    ];
    for (count, one, many) in counts.into_iter().filter(|(count, ..)| *count > 0) {
        text::append(&mut out, format_args!("  {}\n", text::count(count, one, many)));
    }
    out.push_str("  including their vectors, older versions, and what imports recorded about them\n");
    out.push_str("kept: the ids, the hashes of the texts, and the fact that you erased them\n");
    for id in plan.staying_conversation_ids.iter().take(MAX_LISTED) {
        let id = text::one_line(id);
        text::append(
            &mut out,
            format_args!(
                "conversation {id}, the source of a {word}, is kept and may contain the same text: `satchel conversations purge {id}`\n"
            ),
        );
    }
    context.out.print(&out)
}

/// Prints what was erased, and what remains to be done elsewhere.
pub(super) fn done(
    context: &mut Context,
    plan: &GetPurgePlanResponse,
    attachments: u64,
) -> Result<(), CliError> {
    if context.out.json {
        return context.out.json(&PurgeReport::new(plan, true, attachments));
    }
    let mark = context.out.style.paint(Paint::Good, "✓");
    let mut out = format!("{mark} erased permanently; the old files were overwritten\n");
    let retained = unsigned(plan.attachments).saturating_sub(attachments);
    if retained > 0 {
        let retained = text::count(retained, "attachment", "attachments");
        text::append(&mut out, format_args!("  kept {retained} that other conversations have\n"));
    }
    out.push_str(
        "not erased: exports and backups that you made before, and the files that you imported. Delete those that contain\n\
         the data and make new ones; the next export is a full one. Flash memory and snapshots may keep old bytes; if a\n\
         password leaked, change it.\n",
    );
    context.out.print(&out)
}
