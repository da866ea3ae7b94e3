//! The changes that a merge would make to memories, as text for a person.

use satchel_proto::{
    signed::{signed, unsigned},
    v1::{DifferenceKind, Import},
};

use crate::cli::{
    look::{Look, Paint},
    text, words,
};

/// Memories that are listed one by one; the rest is only counted.
const DIFFERENCES: usize = 40;

/// Returns the memories that would change: new ones, changed ones in their current and future state, and those
/// whose stored version is kept over the incoming one.
pub(super) fn differences(import: &Import, look: Look) -> String {
    if import.differences.is_empty() {
        return String::new();
    }
    let mut out = String::from("\n  what would change\n");
    for one in import.differences.iter().take(DIFFERENCES) {
        let line = |mark: &str, paint, status: i32, content: &str| {
            let words = text::one_line(&format!("{}: {content}", words::memory_status(status)));
            let words = text::fit(&words, look.text_columns().saturating_sub(6)).into_owned();
            format!("    {} {words}\n", look.paint(paint, mark))
        };
        let held = |mark, paint| line(mark, paint, one.held_status, &one.held_content);
        let came = |mark, paint| line(mark, paint, one.status, &one.content);
        match one.kind() {
            DifferenceKind::New | DifferenceKind::Unspecified => out.push_str(&came("+", Paint::Good)),
            DifferenceKind::Changed => out.push_str(&(held("-", Paint::Bad) + &came("+", Paint::Good))),
            DifferenceKind::Kept => out.push_str(&(held("=", Paint::Plain) + &came("!", Paint::Warn))),
        }
    }
    let shown = import.differences.len().min(DIFFERENCES) as u64;
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
        if import.differences.iter().any(|one| one.kind() == wanted) {
            text::append(&mut out, format_args!("  {}\n", look.paint(Paint::Dim, words)));
        }
    };
    note(DifferenceKind::Kept, "= stays, as it is later or final; ! is kept beside it, as a version");
    out
}

#[cfg(test)]
mod tests {
    use satchel_proto::v1::{MemoryDifference, MemoryStatus};

    use super::*;

    fn difference(kind: DifferenceKind, held: &str, came: &str) -> MemoryDifference {
        let status = |content: &str| {
            let status = if content.is_empty() { MemoryStatus::Unspecified } else { MemoryStatus::Active };
            status.into()
        };
        MemoryDifference {
            id: "m".to_owned(),
            kind: kind.into(),
            held_status: status(held),
            held_content: held.to_owned(),
            status: status(came),
            content: came.to_owned(),
        }
    }

    #[test]
    fn what_is_new_changed_or_stays_is_told_apart() {
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
  what would change
    + active: Has a \\u{1b}[2Jgarden
    - active: Keeps bees
    + active: Keeps bees and hens
    = active: Lives in Graz
    ! active: Lives in Linz
    … 2 more memories; --json lists more
  = stays, as it is later or final; ! is kept beside it, as a version
";
        assert_eq!(differences(&import, Look::plain(80)), expected);
        assert_eq!(differences(&Import::default(), Look::plain(80)), "");
    }
}
