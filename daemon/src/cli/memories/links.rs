//! `memories related`, `memories duplicates` and `memories contradictions`.

use satchel_proto::{
    integers::unsigned,
    v1::{
        Contradiction, ContradictionReason, Direction, DuplicateGroup, ListContradictionsRequest,
        ListDuplicateMemoriesRequest, ListRelatedMemoriesRequest, Memory, MemoryLink, MemoryLinkKind,
        MemoryView, RelatedMemory, StoreHeader,
    },
};

use super::resolve;
use crate::cli::{
    Context,
    args::{ContradictionsArgs, DuplicatesArgs, RelatedArgs},
    client::DaemonClient,
    error::CliError,
    exit::Exit,
    json, labels,
    pagination::{self, ResultPage},
    style::{Paint, TerminalStyle},
    table::{Cell, Column, Table},
    text,
    time::Calendar,
};

/// The note below a list that a limit of the daemon has cut.
const TRUNCATED: &str = "not everything was looked at, as there is too much; the manual names the limits";

/// JSON output has the whole PAM object, which only this view contains.
fn view(context: &Context) -> i32 {
    if context.out.json { MemoryView::PamJson } else { MemoryView::Basic }.into()
}

pub(super) async fn related(
    context: &mut Context,
    client: &DaemonClient,
    args: &RelatedArgs,
) -> Result<Exit, CliError> {
    let id = resolve(client, &args.id.id).await?;
    let (mut header, mut truncated) = (StoreHeader::default(), false);
    let listing = pagination::collect_rows(args.paging.max_rows(), async |page_size, page_token| {
        let request = ListRelatedMemoriesRequest {
            id: id.clone(),
            depth: i32::try_from(args.depth).unwrap_or(i32::MAX),
            kinds: args.via.iter().map(|word| word.to_wire().into()).collect(),
            types: args.types.iter().map(|word| word.to_wire().into()).collect(),
            page_size,
            page_token,
            view: view(context),
            as_of_revision: args.revision,
        };
        let answer = client.memories().list_related_memories(request).await?.into_inner();
        header = answer.header.unwrap_or_default();
        truncated = answer.truncated;
        Ok(ResultPage { rows: answer.memories, next: answer.next_page_token })
    })
    .await?;
    if context.out.json {
        let memories = listing.rows.iter().map(json::links::RelatedMemory::new).collect();
        let (more, revision) = (listing.remaining.more(), unsigned(header.revision));
        let store_id = &header.store_id;
        context.out.json(&json::links::RelatedMemories {
            id: &id,
            memories,
            more,
            truncated,
            revision,
            store_id,
        })?;
        return Ok(Exit::Done);
    }
    if listing.rows.is_empty() {
        context.out.note("no related memories; `satchel relations add FROM TYPE TO` relates two");
    } else {
        let shown = related_table(&listing.rows, &id).render(context.out.style);
        context.out.print(&shown)?;
        context
            .out
            .note("`satchel memories show ID` shows one of them, `satchel relations list ID` its relations");
    }
    if truncated {
        context.out.note(TRUNCATED);
    }
    context.note_remaining(listing.remaining);
    Ok(Exit::Done)
}

fn related_table(related: &[RelatedMemory], start: &str) -> Table {
    let memory = |row: &RelatedMemory| row.memory.clone().unwrap_or_default();
    let ids = related.iter().filter_map(|row| row.memory.as_ref()).map(|memory| memory.id.as_str());
    let ids = text::ShortIds::new(ids.chain([start]));
    let mut table = Table::new([
        Column::right("steps"),
        Column::new("id"),
        Column::new("status"),
        Column::new("memory").shrinks_to(24),
        Column::new("through").shrinks_to(24),
        Column::new("platform").optional(1),
    ]);
    for row in related {
        let memory = memory(row);
        table.row([
            Cell::new(&row.distance.to_string()),
            Cell::painted(&ids.shorten(&memory.id), Paint::Id),
            Cell::new(&labels::memory_status(memory.status)),
            Cell::new(statement(&memory)),
            Cell::painted(&path(row, start, &ids), Paint::Dim),
            Cell::new(platform(&memory)),
        ]);
    }
    table
}

/// Returns the steps of a path, as `9c41 supports 71aa`, each from the memory where the one before ended.
fn path(row: &RelatedMemory, start: &str, ids: &text::ShortIds) -> String {
    let mut shown = ids.shorten(start);
    for link in &row.path {
        shown.push_str(&format!(" {} {}", step(link), ids.shorten(&link.memory_id)));
    }
    shown
}

fn step(link: &MemoryLink) -> String {
    match link.kind() {
        MemoryLinkKind::Relation => {
            let label = labels::relation_type(link.relation_type);
            // The relation is told from the memory that it goes out from.
            if link.direction() == Direction::In { format!("<{label}") } else { format!("{label}>") }
        }
        MemoryLinkKind::SupersededBy => "replaced by".to_owned(),
        MemoryLinkKind::Conversation => "same conversation".to_owned(),
        MemoryLinkKind::Unspecified => "-".to_owned(),
    }
}

pub(super) async fn duplicates(
    context: &mut Context,
    client: &DaemonClient,
    args: &DuplicatesArgs,
) -> Result<Exit, CliError> {
    let (mut header, mut truncated) = (StoreHeader::default(), false);
    let listing = pagination::collect_rows(args.paging.max_rows(), async |page_size, page_token| {
        let (threshold, view) = (args.threshold, view(context));
        let request = ListDuplicateMemoriesRequest { threshold, page_size, page_token, view };
        let answer = client.memories().list_duplicate_memories(request).await?.into_inner();
        header = answer.header.unwrap_or_default();
        truncated = answer.truncated;
        Ok(ResultPage { rows: answer.groups, next: answer.next_page_token })
    })
    .await?;
    if context.out.json {
        let groups = listing.rows.iter().map(json::links::DuplicateGroup::new).collect();
        let (more, revision) = (listing.remaining.more(), unsigned(header.revision));
        let store_id = &header.store_id;
        context.out.json(&json::links::DuplicateGroups { groups, more, truncated, revision, store_id })?;
        return Ok(Exit::Done);
    }
    if listing.rows.is_empty() {
        context.out.note("no duplicates; `--threshold 0.7` finds memories that are less similar");
    } else {
        let shown = groups(&listing.rows, &context.calendar, context.out.style);
        context.out.print_paged(&shown)?;
        context.out.note("`satchel memories status ID superseded --by ID` replaces one memory by another");
    }
    if truncated {
        context.out.note(TRUNCATED);
    }
    context.note_remaining(listing.remaining);
    Ok(Exit::Done)
}

/// Returns the groups, each as a heading and a table.
fn groups(groups: &[DuplicateGroup], calendar: &Calendar, style: TerminalStyle) -> String {
    let all = groups.iter().flat_map(|group| &group.memories);
    let ids = text::ShortIds::new(all.map(|memory| memory.id.as_str()));
    let mut out = String::new();
    for group in groups {
        if !out.is_empty() {
            out.push('\n');
        }
        let total = unsigned(group.total);
        let mut heading = text::count(total, "memory", "memories");
        heading.push_str(&format!(", {}", labels::duplicate_reason(group.reason).replace('_', " ")));
        if group.similarity < 1.0 {
            // Not more than it is.
            heading.push_str(&format!(", {:.0} %", (group.similarity * 100.0).floor()));
        }
        text::append(&mut out, format_args!("{}\n", style.paint(Paint::Strong, &heading)));
        out.push_str(&group_table(group, &ids, calendar).render(style));
        let rest = total.saturating_sub(group.memories.len() as u64);
        if rest > 0 {
            text::append(&mut out, format_args!("… and {} more\n", text::number(rest)));
        }
    }
    out
}

fn group_table(group: &DuplicateGroup, ids: &text::ShortIds, calendar: &Calendar) -> Table {
    let mut table = Table::new([
        Column::new("id"),
        Column::new("memory").shrinks_to(24),
        Column::new("platform").optional(1),
        Column::new("changed").optional(2),
    ]);
    for memory in &group.memories {
        let temporal = memory.temporal.clone().unwrap_or_default();
        let changed = temporal.updated_at.as_ref().or(temporal.created_at.as_ref());
        table.row([
            Cell::painted(&ids.shorten(&memory.id), Paint::Id),
            // Not the summary: the contents are what is compared.
            Cell::new(&memory.content),
            Cell::new(platform(memory)),
            Cell::painted(&calendar.short_or_unknown(changed), Paint::Dim),
        ]);
    }
    table
}

pub(super) async fn contradictions(
    context: &mut Context,
    client: &DaemonClient,
    args: &ContradictionsArgs,
) -> Result<Exit, CliError> {
    let mut header = StoreHeader::default();
    let listing = pagination::collect_rows(args.paging.max_rows(), async |page_size, page_token| {
        let (include_settled, view) = (args.settled, view(context));
        let request = ListContradictionsRequest { include_settled, page_size, page_token, view };
        let answer = client.memories().list_contradictions(request).await?.into_inner();
        header = answer.header.unwrap_or_default();
        Ok(ResultPage { rows: answer.contradictions, next: answer.next_page_token })
    })
    .await?;
    if context.out.json {
        let contradictions = listing.rows.iter().map(json::links::Contradiction::new).collect();
        let (more, revision) = (listing.remaining.more(), unsigned(header.revision));
        let store_id = &header.store_id;
        context.out.json(&json::links::Contradictions { contradictions, more, revision, store_id })?;
        return Ok(Exit::Done);
    }
    if listing.rows.is_empty() {
        context.out.note("no contradictions; `satchel relations add FROM contradicts TO` records one");
    } else {
        let shown = contradiction_table(&listing.rows).render(context.out.style);
        context.out.print(&shown)?;
    }
    if listing.rows.iter().any(|row| !row.settled) {
        context.out.note(
            "`satchel memories status ID superseded --by ID` settles one; `satchel relations withdraw ID` if it is none",
        );
    }
    context.note_remaining(listing.remaining);
    Ok(Exit::Done)
}

fn contradiction_table(contradictions: &[Contradiction]) -> Table {
    let both =
        |row: &Contradiction| (row.first.clone().unwrap_or_default(), row.second.clone().unwrap_or_default());
    let memories = contradictions.iter().flat_map(|row| [&row.first, &row.second]).flatten();
    let ids = text::ShortIds::new(memories.map(|memory| memory.id.as_str()));
    let mut table = Table::new([
        Column::new("id"),
        Column::new("memory").shrinks_to(20),
        Column::new("but"),
        Column::new("id"),
        Column::new("memory").shrinks_to(20),
        Column::new("relation"),
        Column::new("state"),
    ]);
    for row in contradictions {
        let (first, second) = both(row);
        let relation = row.relation.as_ref().map(|relation| text::short_id(&relation.id));
        table.row([
            Cell::painted(&ids.shorten(&first.id), Paint::Id),
            Cell::new(statement(&first)),
            Cell::new(match row.reason() {
                ContradictionReason::Superseded => "supersedes",
                ContradictionReason::Contradicts | ContradictionReason::Unspecified => "contradicts",
            }),
            Cell::painted(&ids.shorten(&second.id), Paint::Id),
            Cell::new(statement(&second)),
            Cell::painted(&relation.unwrap_or_default(), Paint::Id),
            if row.settled {
                Cell::painted("settled", Paint::Dim)
            } else {
                Cell::painted("open", Paint::Warn)
            },
        ]);
    }
    table
}

fn statement(memory: &Memory) -> &str {
    memory.summary.as_deref().unwrap_or(&memory.content)
}

fn platform(memory: &Memory) -> &str {
    memory.provenance.as_ref().map_or("", |provenance| &provenance.platform)
}

#[cfg(test)]
mod tests {
    use satchel_proto::v1::{DuplicateReason, MemoryStatus, Provenance, Relation, RelationType};

    use super::*;
    use crate::cli::time;

    fn memory(id: u8, content: &str) -> Memory {
        Memory {
            id: format!("9c4100{id:02x}-0000-5000-8000-000000000000"),
            status: MemoryStatus::Active.into(),
            content: content.to_owned(),
            provenance: Some(Provenance { platform: "chatgpt".to_owned(), ..Provenance::default() }),
            ..Memory::default()
        }
    }

    #[test]
    fn related_memories_are_listed_with_their_path() {
        let (middle, end) = (memory(2, "Keeps bees"), memory(3, "Sells honey \u{1b}[31m"));
        let relation = MemoryLink {
            kind: MemoryLinkKind::Relation.into(),
            memory_id: middle.id.clone(),
            relation_type: RelationType::Supports.into(),
            direction: Direction::In.into(),
            ..MemoryLink::default()
        };
        let conversation = MemoryLink {
            kind: MemoryLinkKind::Conversation.into(),
            memory_id: end.id.clone(),
            ..MemoryLink::default()
        };
        let row = RelatedMemory { memory: Some(end), distance: 2, path: vec![relation, conversation] };
        let shown = related_table(&[row], &memory(1, "").id).render(TerminalStyle::plain(160));
        assert!(shown.contains("9c410001 <supports 9c410002 same conversation 9c410003"), "{shown}");
        assert!(!shown.contains('\u{1b}'), "{shown}");
    }

    #[test]
    fn groups_have_a_heading_and_a_table() {
        let group = DuplicateGroup {
            memories: vec![memory(1, "Keeps bees"), memory(2, "keeps bees.")],
            total: 5,
            reason: DuplicateReason::SimilarText.into(),
            similarity: 0.8999,
        };
        let shown = groups(&[group], &time::fixed(), TerminalStyle::plain(80));
        let expected = "\
5 memories, similar text, 89 %
ID        MEMORY       PLATFORM  CHANGED
9c410001  Keeps bees   chatgpt   time unknown
9c410002  keeps bees.  chatgpt   time unknown
… and 3 more
";
        assert_eq!(shown, expected);
    }

    #[test]
    fn contradictions_say_whether_they_are_settled() {
        let row = Contradiction {
            reason: ContradictionReason::Contradicts.into(),
            relation: Some(Relation {
                id: "5be01234-0000-5000-8000-000000000000".to_owned(),
                ..Default::default()
            }),
            first: Some(memory(1, "Lives in Oslo")),
            second: Some(memory(2, "Lives in Bergen")),
            settled: false,
        };
        let shown = contradiction_table(&[row.clone(), Contradiction { settled: true, ..row }]);
        let shown = shown.render(TerminalStyle::plain(160));
        assert!(shown.contains("Lives in Oslo  contradicts  9c410002  Lives in Bergen  5be01234"), "{shown}");
        assert!(shown.contains("open") && shown.contains("settled"), "{shown}");
    }
}
