//! Memories as text for a person.

use satchel_merge::evidence::UNSIGNED;
use satchel_proto::{
    integers::unsigned,
    v1::{Confidence, Memory, MemoryStatus, MemoryVersion},
};
use textwrap::Options;

use crate::cli::{
    labels,
    properties::Properties,
    style::{Paint, TerminalStyle},
    table::{Cell, Column, Table},
    text,
    time::Calendar,
};

/// The label of a memory whose validity has ended.
const EXPIRED: &str = "expired";
/// Lines of metadata that are shown.
const METADATA_LINES: usize = 40;

/// Returns the table of `memories list`. It has a status column if the memories have several statuses.
pub(super) fn table(memories: &[Memory], states: bool, calendar: &Calendar) -> Table {
    let ids = text::ShortIds::new(memories.iter().map(|memory| memory.id.as_str()));
    let mut table = Table::new([
        Column::new("id"),
        Column::new("type"),
        Column::new("status"),
        Column::new("memory").shrinks_to(24),
        Column::new("platform").optional(1),
        Column::new("changed").optional(2),
    ]);
    for memory in memories {
        let temporal = memory.temporal.clone().unwrap_or_default();
        let changed = temporal.updated_at.as_ref().or(temporal.created_at.as_ref());
        let platform = memory.provenance.as_ref().map_or("", |provenance| &provenance.platform);
        table.row([
            Cell::painted(&ids.shorten(&memory.id), Paint::Id),
            Cell::new(&kind(memory)),
            if calendar.is_past(temporal.valid_until.as_ref()) {
                let words = if states { labels::memory_status(memory.status) + ", " } else { String::new() };
                Cell::painted(&(words + EXPIRED), Paint::Warn)
            } else if states {
                status(memory.status)
            } else {
                Cell::new("")
            },
            Cell::new(memory.summary.as_deref().unwrap_or(&memory.content)),
            Cell::new(platform),
            Cell::painted(&calendar.short_or_unknown(changed), Paint::Dim),
        ]);
    }
    table
}

/// Returns one memory with all its facts.
pub(in crate::cli) fn details(
    memory: &Memory,
    untrusted: &str,
    calendar: &Calendar,
    style: TerminalStyle,
) -> String {
    let content = text::clean(content(memory));
    let options = Options::new(style.text_columns()).initial_indent("  ").subsequent_indent("  ");
    let mut out = format!("{}\n", textwrap::fill(&content, options));
    if memory.abridged {
        out.push_str("  … truncated; an export contains the whole text\n");
    }
    out.push('\n');
    out.push_str(&properties(memory, untrusted, calendar).render(style));
    out.push_str(&metadata(memory, style));
    out
}

/// Returns a hint to the earlier versions, if there are any.
pub(super) fn hint(memory: &Memory) -> Option<String> {
    let command = format!("satchel memories history {}", text::short_id(&memory.id));
    (memory.version > 1).then(|| format!("`{command}` shows its {} versions", memory.version))
}

fn properties(memory: &Memory, untrusted: &str, calendar: &Calendar) -> Properties {
    let mut properties = Properties::new();
    properties.add_painted("id", &memory.id, Paint::Id);
    properties.add("type", &kind(memory));
    properties.add_painted("status", &labels::memory_status(memory.status), status_paint(memory.status));
    if memory.withdrawn {
        let why = if erased(memory) {
            "no: you erased it permanently; `satchel memories history` shows when"
        } else {
            "no: the import that added it was undone"
        };
        properties.add_painted("shown", why, Paint::Warn);
    }
    match untrusted {
        "" => {}
        UNSIGNED => properties.add_painted("source", "an unsigned document", Paint::Warn),
        key => {
            properties.add_painted(
                "source",
                &format!("a document signed with the untrusted key {key}"),
                Paint::Warn,
            );
        }
    }
    properties.add_optional("summary", memory.summary.as_deref());
    properties.add("tags", &memory.tags.join(", "));
    if let Some(provenance) = &memory.provenance {
        properties.add("platform", &provenance.platform);
        properties.add_optional("account", provenance.platform_user_id.as_deref());
        properties.add_optional("conversation", provenance.conversation_ref.as_deref());
        properties.add_optional("message", provenance.message_ref.as_deref());
        let method = labels::extraction_method(provenance.extraction_method);
        properties.add("extraction", if method == "unspecified" { "" } else { &method });
        properties.add_optional("extractor", provenance.extractor.as_deref());
        properties.add("extracted", &calendar.minute(provenance.extracted_at.as_ref()));
    }
    if let Some(temporal) = &memory.temporal {
        properties.add("created", &calendar.minute_or_unknown(temporal.created_at.as_ref()));
        properties.add("changed", &calendar.minute(temporal.updated_at.as_ref()));
        properties.add("valid from", &calendar.minute(temporal.valid_from.as_ref()));
        let until = calendar.minute(temporal.valid_until.as_ref());
        if calendar.is_past(temporal.valid_until.as_ref()) {
            properties.add_painted("valid until", &format!("{until}, {EXPIRED}"), Paint::Warn);
        } else {
            properties.add("valid until", &until);
        }
        properties.add_optional("replaced by", temporal.superseded_by.as_deref());
    }
    properties.add("confidence", &memory.confidence.as_ref().map(confidence).unwrap_or_default());
    if let Some(access) = &memory.access {
        let held = if access.exportable { "" } else { ", not exportable" };
        properties.add("visibility", &format!("{}{held}", labels::visibility(access.visibility)));
        for grant in &access.shared_with {
            let may: Vec<String> =
                grant.permissions.iter().map(|permission| labels::permission(*permission)).collect();
            properties.add("shared with", &format!("{} ({})", grant.entity, may.join(", ")));
        }
    }
    properties.add("hash", &memory.content_hash);
    properties
}

fn metadata(memory: &Memory, style: TerminalStyle) -> String {
    let parsed =
        memory.metadata_json.as_deref().and_then(|json| serde_json::from_str::<serde_json::Value>(json).ok());
    let Some(Ok(pretty)) = parsed.map(|value| serde_json::to_string_pretty(&value)) else {
        return String::new();
    };
    let clean = text::clean(&pretty);
    let mut out = format!("\n{}\n", style.paint(Paint::Dim, "metadata"));
    for line in clean.lines().take(METADATA_LINES) {
        text::append(&mut out, format_args!("  {line}\n"));
    }
    let rest = clean.lines().count().saturating_sub(METADATA_LINES) as u64;
    if rest > 0 {
        text::append(
            &mut out,
            format_args!("  … {}; --json shows all\n", text::count(rest, "more line", "more lines")),
        );
    }
    out
}

/// Returns the versions of a memory, newest first, each with its content.
pub(super) fn history(versions: &[MemoryVersion], calendar: &Calendar, style: TerminalStyle) -> String {
    let mut out = String::new();
    for version in versions {
        let memory = version.memory.clone().unwrap_or_default();
        let head = style.paint(Paint::Strong, &format!("version {}", version.version));
        let mut rest =
            vec![labels::memory_status(memory.status), calendar.minute(version.changed_at.as_ref())];
        rest.push(format!("by {}", text::one_line(&version.actor)));
        if !version.reason.is_empty() {
            rest.push(text::one_line(&version.reason));
        }
        if !version.import_id.is_empty() {
            rest.push(format!("import {}", text::short_id(&version.import_id)));
        }
        rest.push(format!("revision {}", text::number(unsigned(version.revision))));
        rest.retain(|part| !part.is_empty());
        let options = Options::new(style.text_columns()).initial_indent("  ").subsequent_indent("  ");
        let content = text::clean(content(&memory));
        text::append(&mut out, format_args!("{head}  {}\n", style.paint(Paint::Dim, &rest.join(" · "))));
        text::append(&mut out, format_args!("{}\n", textwrap::fill(&content, options)));
    }
    out
}

/// Returns the content, or a placeholder if it was erased.
fn content(memory: &Memory) -> &str {
    if erased(memory) { "(erased)" } else { &memory.content }
}

/// Returns whether the owner erased the memory for good: only an erased memory is empty.
fn erased(memory: &Memory) -> bool {
    memory.content.is_empty()
}

fn kind(memory: &Memory) -> String {
    memory.custom_type.clone().unwrap_or_else(|| labels::memory_type(memory.r#type))
}

fn confidence(confidence: &Confidence) -> String {
    let percent = |part: f64| format!("{:.0} %", part * 100.0);
    let differs = |one: f64, other: f64| (one - other).abs() > 0.005;
    let Some(stored) = confidence.current.or(confidence.initial) else { return String::new() };
    let first = confidence.initial.filter(|initial| differs(stored, *initial));
    let faded = confidence.faded.filter(|faded| differs(stored, *faded));
    let mut text = percent(stored);
    if let Some(first) = first {
        text::append(&mut text, format_args!(", initially {}", percent(first)));
    }
    if let Some(faded) = faded {
        text::append(&mut text, format_args!(", decayed to {} now", percent(faded)));
    }
    text
}

fn status(status: i32) -> Cell {
    Cell::painted(&labels::memory_status(status), status_paint(status))
}

fn status_paint(status: i32) -> Paint {
    match MemoryStatus::try_from(status) {
        Ok(MemoryStatus::Active) => Paint::Good,
        Ok(MemoryStatus::Retracted) => Paint::Bad,
        _ => Paint::Warn,
    }
}

#[cfg(test)]
mod tests {
    use satchel_proto::v1::{Access, MemoryType, Provenance, Temporal, Visibility};

    use super::*;
    use crate::cli::time;

    fn memory(id: u8, kind: MemoryType, content: &str) -> Memory {
        Memory {
            id: format!("9c4100{id:02x}-0000-5000-8000-000000000000"),
            r#type: kind.into(),
            status: MemoryStatus::Active.into(),
            content: content.to_owned(),
            content_hash: "sha256:00".to_owned(),
            temporal: Some(Temporal { created_at: time::at("2026-03-12T11:20:00Z"), ..Temporal::default() }),
            provenance: Some(Provenance { platform: "chatgpt".to_owned(), ..Provenance::default() }),
            version: 1,
            ..Memory::default()
        }
    }

    #[test]
    fn memories_are_listed() {
        let memories = [
            memory(1, MemoryType::Preference, "Prefers metric units,\nand short answers \u{1b}[31m"),
            Memory {
                custom_type: Some("hive".to_owned()),
                ..memory(2, MemoryType::Custom, "Twelve hives near Lindvik")
            },
        ];
        let expected = "\
ID        TYPE        MEMORY                                     PLATFORM  CHANGED
9c410001  preference  Prefers metric units, and short answers…   chatgpt   40 min ago
9c410002  hive        Twelve hives near Lindvik                  chatgpt   40 min ago
";
        assert_eq!(table(&memories, false, &time::fixed()).render(TerminalStyle::plain(85)), expected);
        let with_status = table(&memories, true, &time::fixed()).render(TerminalStyle::plain(120));
        assert!(with_status.contains("STATUS") && with_status.contains("active"));
    }

    #[test]
    fn a_memory_is_shown_with_its_provenance() {
        let memory = Memory {
            tags: vec!["bees".to_owned(), "work".to_owned()],
            confidence: Some(Confidence { initial: Some(0.5), current: Some(0.75), ..Confidence::default() }),
            access: Some(Access {
                visibility: Visibility::Private.into(),
                exportable: false,
                shared_with: Vec::new(),
            }),
            metadata_json: Some("{\"series\":\"saved\"}".to_owned()),
            version: 3,
            ..memory(1, MemoryType::Preference, "Prefers metric units")
        };
        let expected = "  \
  Prefers metric units

id          9c410001-0000-5000-8000-000000000000
type        preference
status      active
tags        bees, work
platform    chatgpt
created     2026-03-12 11:20
confidence  75 %, initially 50 %
visibility  private, not exportable
hash        sha256:00

metadata
  {
    \"series\": \"saved\"
  }
";
        assert_eq!(details(&memory, "", &time::fixed(), TerminalStyle::plain(80)), expected);
        let foreign = details(&memory, UNSIGNED, &time::fixed(), TerminalStyle::plain(80));
        assert!(foreign.contains("an unsigned document"), "{foreign}");
        assert_eq!(
            hint(&memory).as_deref(),
            Some("`satchel memories history 9c410001` shows its 3 versions")
        );
        assert_eq!(hint(&Memory { version: 1, ..memory }), None);
    }

    #[test]
    fn the_history_shows_actor_and_reason() {
        let version = MemoryVersion {
            version: 2,
            revision: 57,
            changed_at: time::at("2026-03-12T11:20:00Z"),
            actor: "chatgpt-importer/1.0.0".to_owned(),
            reason: "import".to_owned(),
            memory: Some(memory(1, MemoryType::Fact, "Twelve hives")),
            import_id: "3f2a91bc-0000-5000-8000-000000000001".to_owned(),
        };
        let expected = "\
version 2  active · 2026-03-12 11:20 · by chatgpt-importer/1.0.0 · import · import 3f2a91bc · revision 57
  Twelve hives
";
        assert_eq!(history(&[version], &time::fixed(), TerminalStyle::plain(80)), expected);
    }
}
