//! The index page of the export.

use super::{ExportError, ExportJob, ExportTarget, FrontMatter, LinkTargets, name::UNDATED};

/// Writes `index.md`.
pub(super) fn write(
    job: &ExportJob<'_>,
    target: &mut ExportTarget,
    targets: &LinkTargets,
) -> Result<(), ExportError> {
    let failed = ExportError::write(&job.request.output);
    target.file("index.md", |out| {
        let mut front = FrontMatter::new("index");
        front.text("export_id", Some(&job.id));
        front.plain("exported", job.date());
        let selection = job.request.selection.description().map(|selection| selection.describe());
        front.text("selection", selection.as_deref());
        front.plain("memories", targets.types.values().sum::<u64>());
        front.plain("conversations", targets.conversations.len());
        front.write(out).map_err(&failed)?;
        writeln!(out, "# Satchel\n").map_err(&failed)?;
        if let Some(selection) = selection {
            writeln!(out, "This is {selection}: no copy of everything.\n").map_err(&failed)?;
        }
        if !targets.types.is_empty() {
            writeln!(out, "## Memories\n").map_err(&failed)?;
        }
        for (kind, count) in &targets.types {
            let name = kind.as_str();
            writeln!(out, "- [{name}](memories/{name}.md): {count}").map_err(&failed)?;
        }
        let mut names: Vec<&str> = targets.conversations.values().map(String::as_str).collect();
        // Names begin with the day: newest first, undated ones last.
        names.sort_unstable_by(|one, other| other.cmp(one));
        names.sort_by_key(|name| name.starts_with(UNDATED));
        let mut month = "";
        for name in names {
            let this = if name.starts_with(UNDATED) { "Time unknown" } else { &name[.."2026-01".len()] };
            if this != month {
                let gap = if month.is_empty() && targets.types.is_empty() { "" } else { "\n" };
                writeln!(out, "{gap}## {this}\n").map_err(&failed)?;
                month = this;
            }
            writeln!(out, "- [{name}](conversations/{name}.md)").map_err(&failed)?;
        }
        Ok(())
    })?;
    Ok(())
}
