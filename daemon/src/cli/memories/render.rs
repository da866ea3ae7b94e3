//! Memories as text for a person.

use satchel_merge::evidence::UNSIGNED;
use satchel_proto::{
    signed::unsigned,
    v1::{Confidence, Memory, MemoryStatus, MemoryVersion},
};
use textwrap::Options;

use crate::cli::{
    facts::Facts,
    look::{Look, Paint},
    table::{Cell, Column, Table},
    text,
    time::Calendar,
    words,
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
        Column::new("platform").spare(1),
        Column::new("changed").spare(2),
    ]);
    for memory in memories {
        let temporal = memory.temporal.clone().unwrap_or_default();
        let changed = temporal.updated_at.as_ref().or(temporal.created_at.as_ref());
        let platform = memory.provenance.as_ref().map_or("", |provenance| &provenance.platform);
        table.row([
            Cell::painted(&ids.of(&memory.id), Paint::Id),
            Cell::new(&kind(memory)),
            if calendar.passed(temporal.valid_until.as_ref()) {
                let words = if states { words::memory_status(memory.status) + ", " } else { String::new() };
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
pub(super) fn one(memory: &Memory, stranger: &str, calendar: &Calendar, look: Look) -> String {
    let content = text::clean(said(memory));
    let options = Options::new(look.text_columns()).initial_indent("  ").subsequent_indent("  ");
    let mut out = format!("{}\n", textwrap::fill(&content, options));
    if memory.abridged {
        out.push_str("  … it is too large to be shown whole; an export holds all of it\n");
    }
    out.push('\n');
    out.push_str(&facts(memory, stranger, calendar).render(look));
    out.push_str(&metadata(memory, look));
    out
}

/// Returns a hint to the earlier versions, if there are any.
pub(super) fn hint(memory: &Memory) -> Option<String> {
    let command = format!("satchel memories history {}", text::short_id(&memory.id));
    (memory.version > 1).then(|| format!("`{command}` shows its {} versions", memory.version))
}

fn facts(memory: &Memory, stranger: &str, calendar: &Calendar) -> Facts {
    let mut facts = Facts::new();
    facts.painted("id", &memory.id, Paint::Id);
    facts.add("type", &kind(memory));
    facts.painted("status", &words::memory_status(memory.status), status_paint(memory.status));
    if memory.withdrawn {
        let why = if erased(memory) {
            "no: you erased it for good; `satchel memories history` says when"
        } else {
            "no: the import that brought it was undone"
        };
        facts.painted("shown", why, Paint::Warn);
    }
    match stranger {
        "" => {}
        UNSIGNED => facts.painted("source", "a document that nobody signed", Paint::Warn),
        key => facts.painted(
            "source",
            &format!("a document signed by {key}, whom you do not trust"),
            Paint::Warn,
        ),
    }
    facts.maybe("summary", memory.summary.as_deref());
    facts.add("tags", &memory.tags.join(", "));
    if let Some(provenance) = &memory.provenance {
        facts.add("platform", &provenance.platform);
        facts.maybe("account", provenance.platform_user_id.as_deref());
        facts.maybe("conversation", provenance.conversation_ref.as_deref());
        facts.maybe("message", provenance.message_ref.as_deref());
        let method = words::extraction_method(provenance.extraction_method);
        facts.add("found by", if method == "unspecified" { "" } else { &method });
        facts.maybe("read by", provenance.extractor.as_deref());
        facts.add("stated", &calendar.minute(provenance.extracted_at.as_ref()));
    }
    if let Some(temporal) = &memory.temporal {
        facts.add("created", &calendar.minute_or_unknown(temporal.created_at.as_ref()));
        facts.add("changed", &calendar.minute(temporal.updated_at.as_ref()));
        facts.add("valid from", &calendar.minute(temporal.valid_from.as_ref()));
        let until = calendar.minute(temporal.valid_until.as_ref());
        if calendar.passed(temporal.valid_until.as_ref()) {
            facts.painted("valid until", &format!("{until}, {EXPIRED}"), Paint::Warn);
        } else {
            facts.add("valid until", &until);
        }
        facts.maybe("replaced by", temporal.superseded_by.as_deref());
    }
    facts.add("confidence", &memory.confidence.as_ref().map(confidence).unwrap_or_default());
    if let Some(access) = &memory.access {
        let held = if access.exportable { "" } else { ", never exported" };
        facts.add("visibility", &format!("{}{held}", words::visibility(access.visibility)));
        for grant in &access.shared_with {
            let may: Vec<String> =
                grant.permissions.iter().map(|permission| words::permission(*permission)).collect();
            facts.add("shared with", &format!("{} ({})", grant.entity, may.join(", ")));
        }
    }
    facts.add("hash", &memory.content_hash);
    facts
}

fn metadata(memory: &Memory, look: Look) -> String {
    let parsed =
        memory.metadata_json.as_deref().and_then(|json| serde_json::from_str::<serde_json::Value>(json).ok());
    let Some(Ok(pretty)) = parsed.map(|value| serde_json::to_string_pretty(&value)) else {
        return String::new();
    };
    let clean = text::clean(&pretty);
    let mut out = format!("\n{}\n", look.paint(Paint::Dim, "metadata"));
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
pub(super) fn history(versions: &[MemoryVersion], calendar: &Calendar, look: Look) -> String {
    let mut out = String::new();
    for version in versions {
        let memory = version.memory.clone().unwrap_or_default();
        let head = look.paint(Paint::Strong, &format!("version {}", version.version));
        let mut rest =
            vec![words::memory_status(memory.status), calendar.minute(version.changed_at.as_ref())];
        rest.push(format!("by {}", text::one_line(&version.actor)));
        if !version.reason.is_empty() {
            rest.push(text::one_line(&version.reason));
        }
        if !version.import_id.is_empty() {
            rest.push(format!("import {}", text::short_id(&version.import_id)));
        }
        rest.push(format!("revision {}", text::number(unsigned(version.revision))));
        rest.retain(|part| !part.is_empty());
        let options = Options::new(look.text_columns()).initial_indent("  ").subsequent_indent("  ");
        let content = text::clean(said(&memory));
        text::append(&mut out, format_args!("{head}  {}\n", look.paint(Paint::Dim, &rest.join(" · "))));
        text::append(&mut out, format_args!("{}\n", textwrap::fill(&content, options)));
    }
    out
}

/// Returns the content, or a placeholder if it was erased.
fn said(memory: &Memory) -> &str {
    if erased(memory) { "(erased)" } else { &memory.content }
}

/// Returns whether the owner erased the memory for good: only an erased memory is empty.
fn erased(memory: &Memory) -> bool {
    memory.content.is_empty()
}

fn kind(memory: &Memory) -> String {
    memory.custom_type.clone().unwrap_or_else(|| words::memory_type(memory.r#type))
}

fn confidence(confidence: &Confidence) -> String {
    let percent = |part: f64| format!("{:.0} %", part * 100.0);
    let differs = |one: f64, other: f64| (one - other).abs() > 0.005;
    let Some(stored) = confidence.current.or(confidence.initial) else { return String::new() };
    let first = confidence.initial.filter(|initial| differs(stored, *initial));
    let faded = confidence.faded.filter(|faded| differs(stored, *faded));
    let mut said = percent(stored);
    if let Some(first) = first {
        text::append(&mut said, format_args!(", {} at first", percent(first)));
    }
    if let Some(faded) = faded {
        text::append(&mut said, format_args!(", faded to {} by now", percent(faded)));
    }
    said
}

fn status(status: i32) -> Cell {
    Cell::painted(&words::memory_status(status), status_paint(status))
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
        assert_eq!(table(&memories, false, &time::fixed()).render(Look::plain(85)), expected);
        let with_status = table(&memories, true, &time::fixed()).render(Look::plain(120));
        assert!(with_status.contains("STATUS") && with_status.contains("active"));
    }

    #[test]
    fn one_memory_is_shown_with_its_origin() {
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
confidence  75 %, 50 % at first
visibility  private, never exported
hash        sha256:00

metadata
  {
    \"series\": \"saved\"
  }
";
        assert_eq!(one(&memory, "", &time::fixed(), Look::plain(80)), expected);
        let foreign = one(&memory, UNSIGNED, &time::fixed(), Look::plain(80));
        assert!(foreign.contains("a document that nobody signed"), "{foreign}");
        assert_eq!(
            hint(&memory).as_deref(),
            Some("`satchel memories history 9c410001` shows its 3 versions")
        );
        assert_eq!(hint(&Memory { version: 1, ..memory }), None);
    }

    #[test]
    fn the_history_says_who_and_why() {
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
        assert_eq!(history(&[version], &time::fixed(), Look::plain(80)), expected);
    }
}
