//! The changes that a merge would make to memories, as text for a person.

use satchel_proto::{
    integers::{signed, unsigned},
    v1::{DifferenceKind, Import},
};

use crate::cli::{
    labels,
    style::{Paint, TerminalStyle},
    text,
};

/// Memories that are listed one by one; the rest is only counted.
const MAX_LISTED: usize = 40;

/// Returns the memories that would change: new ones, changed ones in their current and future state, and those
/// whose stored version is kept over the incoming one.
pub(super) fn differences(import: &Import, style: TerminalStyle) -> String {
    if import.differences.is_empty() {
        return String::new();
    }
    let mut out = String::from("\n  memories that would change\n");
    for difference in import.differences.iter().take(MAX_LISTED) {
        let line = |mark: &str, paint, status: i32, content: &str| {
            let words = text::one_line(&format!("{}: {content}", labels::memory_status(status)));
            let words = text::fit(&words, style.text_columns().saturating_sub(6)).into_owned();
            format!("    {} {words}\n", style.paint(paint, mark))
        };
        let held = |mark, paint| line(mark, paint, difference.held_status, &difference.held_content);
        let incoming = |mark, paint| line(mark, paint, difference.status, &difference.content);
        match difference.kind() {
            DifferenceKind::New | DifferenceKind::Unspecified => out.push_str(&incoming("+", Paint::Good)),
            DifferenceKind::Changed => out.push_str(&(held("-", Paint::Bad) + &incoming("+", Paint::Good))),
            DifferenceKind::Kept => out.push_str(&(held("=", Paint::Plain) + &incoming("!", Paint::Warn))),
        }
    }
    let shown = import.differences.len().min(MAX_LISTED) as u64;
    let rest = import.differences_total.saturating_sub(signed(shown));
    if rest > 0 {
        text::append(
            &mut out,
            format_args!(
                "    … {}; --json lists more\n",
                text::count(unsigned(rest), "more memory", "more memories")
            ),
        );
    }
    let mut note = |wanted: DifferenceKind, words: &str| {
        if import.differences.iter().any(|difference| difference.kind() == wanted) {
            text::append(&mut out, format_args!("  {}\n", style.paint(Paint::Dim, words)));
        }
    };
    note(
        DifferenceKind::Kept,
        "= stays current, because it is newer or final; ! is only added to its history",
    );
    out
}

#[cfg(test)]
mod tests {
    use satchel_proto::v1::{MemoryDifference, MemoryStatus};

    use super::*;

    fn difference(kind: DifferenceKind, held: &str, incoming: &str) -> MemoryDifference {
        let status = |content: &str| {
            let status = if content.is_empty() { MemoryStatus::Unspecified } else { MemoryStatus::Active };
            status.into()
        };
        MemoryDifference {
            id: "m".to_owned(),
            kind: kind.into(),
            held_status: status(held),
            held_content: held.to_owned(),
            status: status(incoming),
            content: incoming.to_owned(),
        }
    }

    #[test]
    fn new_changed_and_kept_memories_are_distinguished() {
        let import = Import {
            differences: vec![
                difference(DifferenceKind::New, "", "Has a \u{1b}[2Jgarden"),
                difference(DifferenceKind::Changed, "Keeps bees", "Keeps bees and hens"),
                difference(DifferenceKind::Kept, "Lives in Graz", "Lives in Linz"),
            ],
            differences_total: 5,
            ..Import::default()
        };
        let expected = "
  memories that would change
    + active: Has a \\u{1b}[2Jgarden
    - active: Keeps bees
    + active: Keeps bees and hens
    = active: Lives in Graz
    ! active: Lives in Linz
    … 2 more memories; --json lists more
  = stays current, because it is newer or final; ! is only added to its history
";
        assert_eq!(differences(&import, TerminalStyle::plain(80)), expected);
        assert_eq!(differences(&Import::default(), TerminalStyle::plain(80)), "");
    }
}
