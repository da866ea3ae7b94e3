//! The index page of the export.

use super::{ExportError, Front, Job, Places, Target, name::UNDATED};

/// Writes `index.md`.
pub(super) fn write(job: &Job<'_>, target: &mut Target, places: &Places) -> Result<(), ExportError> {
    let failed = ExportError::write(&job.request.output);
    target.file("index.md", |out| {
        let mut front = Front::of("index");
        front.text("export_id", Some(&job.id));
        front.plain("exported", job.date());
        let selection = job.request.selection.said().map(|selection| selection.words());
        front.text("selection", selection.as_deref());
        front.plain("memories", places.types.values().sum::<u64>());
        front.plain("conversations", places.conversations.len());
        front.write(out).map_err(&failed)?;
        writeln!(out, "# Satchel\n").map_err(&failed)?;
        if let Some(selection) = selection {
            writeln!(out, "This is {selection}: no copy of everything.\n").map_err(&failed)?;
        }
        if !places.types.is_empty() {
            writeln!(out, "## Memories\n").map_err(&failed)?;
        }
        for (kind, count) in &places.types {
            let name = kind.as_str();
            writeln!(out, "- [{name}](memories/{name}.md): {count}").map_err(&failed)?;
        }
        let mut names: Vec<&str> = places.conversations.values().map(String::as_str).collect();
        // Names begin with the day: newest first, undated ones last.
        names.sort_unstable_by(|one, other| other.cmp(one));
        names.sort_by_key(|name| name.starts_with(UNDATED));
        let mut month = "";
        for name in names {
            let this = if name.starts_with(UNDATED) { "Time unknown" } else { &name[.."2026-01".len()] };
            if this != month {
                let gap = if month.is_empty() && places.types.is_empty() { "" } else { "\n" };
                writeln!(out, "{gap}## {this}\n").map_err(&failed)?;
                month = this;
            }
            writeln!(out, "- [{name}](conversations/{name}.md)").map_err(&failed)?;
        }
        Ok(())
    })?;
    Ok(())
}
