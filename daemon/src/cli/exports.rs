//! `export` and `exports …`.

use indicatif::ProgressBar;
use satchel_bundle::manifest::Selected;
use satchel_proto::{
    signed::unsigned,
    v1::{
        CreateExportRequest, Export, ExportFormat, ExportType, GetExportRequest, ListExportsRequest,
        MemoryFilter, Operation, OperationPhase, OperationProgress, operation::Result as Reached,
    },
};

use super::{
    Context,
    args::{ExportArgs, ExportSelect, Exports, FormatWord, Paging},
    error::CliError,
    exit::Exit,
    facts::Facts,
    json,
    link::Link,
    look::{Look, Paint},
    operation::unexpected,
    page::{self, Page},
    path,
    table::{Cell, Column, Table},
    text,
    time::Calendar,
    words,
};

/// Writes an export.
///
/// # Errors
/// Returns the error of the daemon.
pub(crate) async fn create(
    context: &mut Context,
    link: &Link,
    args: &ExportArgs,
    passphrase: Option<&str>,
) -> Result<Exit, CliError> {
    let absolute = std::path::absolute(&args.output);
    let output =
        absolute.map_err(|source| CliError::File { action: "find", path: args.output.clone(), source })?;
    let format = match args.format {
        FormatWord::Pam => ExportFormat::Pam,
        FormatWord::Memu => ExportFormat::Memu,
        FormatWord::Markdown => ExportFormat::Markdown,
    };
    let kind = if args.incremental { ExportType::Incremental } else { ExportType::Full };
    let base_export_id = match &args.base {
        Some(given) => resolve(link, unless_last(given)).await?,
        None => String::new(),
    };
    let request = CreateExportRequest {
        r#type: kind.into(),
        base_export_id,
        output: path::text_of(output)?,
        without_conversations: args.no_conversations,
        attachments: args.attachments,
        format: format.into(),
        filter: filter(&args.select, &context.calendar)?,
        strip_identifiers: args.strip_identifiers,
        age_recipients: args.encrypt_to.clone(),
        passphrase: passphrase.unwrap_or_default().to_owned(),
    };
    let spinner = context.out.spinner("writing the export");
    let made = make(link, request, &spinner).await;
    spinner.finish_and_clear();
    let export = made?;
    for line in remarks(&export) {
        context.out.note(&line);
    }
    if context.out.json {
        context.out.json(&json::admin::Export::new(&export))?;
        return Ok(Exit::Done);
    }
    let text = written(&export, &context.calendar, context.out.look);
    context.out.print(&text)?;
    context.out.note(&hint(&export));
    Ok(Exit::Done)
}

/// Returns the filter for memories and conversations; `None` selects all.
fn filter(select: &ExportSelect, calendar: &Calendar) -> Result<Option<MemoryFilter>, CliError> {
    let ExportSelect { types, tags, platforms, since, until, created_since, created_until } = select;
    let filter = MemoryFilter {
        types: types.iter().map(|word| word.to_wire().into()).collect(),
        platforms: platforms.clone(),
        tags_all: tags.clone(),
        updated: calendar.range(since.as_deref(), until.as_deref())?,
        created: calendar.created(created_since.as_deref(), created_until.as_deref())?,
        ..MemoryFilter::default()
    };
    Ok((filter != MemoryFilter::default()).then_some(filter))
}

/// Creates the export and shows its progress.
async fn make(link: &Link, request: CreateExportRequest, spinner: &ProgressBar) -> Result<Export, CliError> {
    let operation = link.exports().create_export(request).await?.into_inner().operation;
    let show = |operation: &Operation| {
        if let Some(stage) = operation.progress.as_ref().and_then(stage) {
            spinner.set_message(stage);
        }
    };
    match link.result_of(operation, show).await? {
        Reached::Export(export) => Ok(export),
        _ => Err(unexpected()),
    }
}

/// Returns the progress in words.
fn stage(progress: &OperationProgress) -> Option<String> {
    let what = match progress.phase() {
        OperationPhase::WritingConversations => "conversations",
        OperationPhase::WritingMemories => "memories",
        _ => return None,
    };
    let done = progress.records_done;
    let total = progress.records_total.unwrap_or(done).max(done);
    Some(format!("writing {what}: {} of {}", text::number(unsigned(done)), text::number(unsigned(total))))
}

/// Runs one of the commands.
///
/// # Errors
/// Returns the errors of the daemon, and fails for an id that matches no export or several.
pub(crate) async fn run(context: &mut Context, link: &Link, command: &Exports) -> Result<Exit, CliError> {
    match command {
        Exports::List(paging) => list(context, link, *paging).await,
        Exports::Show(id) => show(context, link, id.given()).await,
    }
}

async fn list(context: &mut Context, link: &Link, paging: Paging) -> Result<Exit, CliError> {
    let listing = page::collect(paging.want(), async |size, token| fetch(link, size, token).await).await?;
    if context.out.json {
        let exports = listing.rows.iter().map(json::admin::Export::new).collect();
        context.out.json(&json::admin::Exports { exports, more: listing.left.more() })?;
        return Ok(Exit::Done);
    }
    if listing.rows.is_empty() {
        context.out.note("nothing was exported yet; `satchel export --output OUT` writes a bundle");
    } else {
        context.out.print(&table(&listing.rows, &context.calendar).render(context.out.look))?;
    }
    context.hint(listing.left);
    Ok(Exit::Done)
}

async fn fetch(link: &Link, page_size: i32, page_token: String) -> Result<Page<Export>, CliError> {
    let answer =
        link.exports().list_exports(ListExportsRequest { page_size, page_token }).await?.into_inner();
    Ok(Page { rows: answer.exports, next: answer.next_page_token })
}

async fn show(context: &mut Context, link: &Link, given: Option<&str>) -> Result<Exit, CliError> {
    let id = resolve(link, given).await?;
    let export =
        link.exports().get_export(GetExportRequest { id }).await?.into_inner().export.unwrap_or_default();
    if context.out.json {
        context.out.json(&json::admin::Export::new(&export))?;
    } else {
        context.out.print(&facts(&export, &context.calendar).render(context.out.look))?;
    }
    Ok(Exit::Done)
}

/// Returns the full id for `given`; without it, the id of the newest export.
async fn resolve(link: &Link, given: Option<&str>) -> Result<String, CliError> {
    let Some(given) = given else {
        let newest = fetch(link, 1, String::new()).await?.rows.into_iter().next();
        return newest.map(|export| export.id).ok_or(CliError::None { kind: "export" });
    };
    page::resolve("export", given, async |size, token| {
        let page = fetch(link, size, token).await?;
        Ok(Page { rows: page.rows.into_iter().map(|export| export.id).collect(), next: page.next })
    })
    .await
}

/// Returns the id that an option names; `None` for `last`, the newest.
pub(super) fn unless_last(given: &str) -> Option<&str> {
    (given != "last").then_some(given)
}

/// Returns what was done differently than requested, and what the export does not contain.
fn remarks(export: &Export) -> Vec<String> {
    let reason = (!export.reason.is_empty()).then(|| format!("this is a full export: {}", export.reason));
    let warnings = export.warnings.iter().map(|warning| format!("note: {warning}"));
    reason.into_iter().chain(warnings).collect()
}

fn table(exports: &[Export], calendar: &Calendar) -> Table {
    let ids = text::ShortIds::new(exports.iter().map(|export| export.id.as_str()));
    let mut table = Table::new([
        Column::new("id"),
        Column::new("type").spare(4),
        Column::new("format").spare(3),
        Column::new("made"),
        Column::right("memories"),
        Column::right("conversations").spare(2),
        Column::right("size").spare(1),
        Column::new("where").shrinks_to(16),
    ]);
    for export in exports {
        table.row([
            Cell::painted(&ids.of(&export.id), Paint::Id),
            Cell::new(&kind(export)),
            Cell::new(&words::export_format(export.format)),
            Cell::painted(&calendar.short(export.created_at.as_ref()), Paint::Dim),
            Cell::new(&text::number(unsigned(export.memories))),
            Cell::new(&text::number(unsigned(export.conversations))),
            Cell::new(&text::bytes(unsigned(export.size_bytes))),
            Cell::new(&export.path),
        ]);
    }
    table
}

/// Returns `full` or `incremental`, and whether the export is a selection or was made elsewhere and applied here.
fn kind(export: &Export) -> String {
    let kind = words::export_type(export.r#type);
    let kind = if selection(export).is_some() { format!("{kind}, selection") } else { kind };
    if export.applied { format!("{kind}, applied") } else { kind }
}

/// Returns how the export differs from a complete copy of the store; `None` if it is one.
fn selection(export: &Export) -> Option<Selected> {
    let (by, stripped) = (export.selected_by.clone(), export.stripped);
    (stripped || !by.is_empty()).then_some(Selected { by, stripped })
}

fn facts(export: &Export, calendar: &Calendar) -> Facts {
    let mut facts = Facts::new();
    facts.painted("export", &export.id, Paint::Id);
    facts.add("type", &kind(export));
    facts.add("base", &export.base_export_id);
    facts.add("since", &export.since);
    facts.add("format", &words::export_format(export.format));
    if let Some(selection) = selection(export) {
        facts.add("holds", &format!("{}; no copy of the store, and nothing builds on it", selection.words()));
    }
    facts.add("made", &calendar.minute(export.created_at.as_ref()));
    if export.encrypted {
        facts.add("encrypted", "by age");
    }
    facts.add("where", &export.path);
    facts.add("size", &text::bytes(unsigned(export.size_bytes)));
    facts.add("memories", &text::number(unsigned(export.memories)));
    if export.withheld > 0 {
        facts.add(
            "withheld",
            &format!("{}, because they must not be exported", text::number(unsigned(export.withheld))),
        );
    }
    facts.add("conversations", &text::number(unsigned(export.conversations)));
    facts.add("relations", &text::number(unsigned(export.relations)));
    facts.add("revision", &text::number(unsigned(export.revision)));
    if signed(export) {
        facts.add("checksum", &export.checksum);
        facts.add("signed by", &export.signer);
    }
    facts
}

fn written(export: &Export, calendar: &Calendar, look: Look) -> String {
    let what = format!(
        "{}, {}",
        text::count(unsigned(export.memories), "memory", "memories"),
        text::count(unsigned(export.conversations), "conversation", "conversations")
    );
    let mark = look.paint(Paint::Good, "✓");
    format!("{mark} exported {what}\n\n{}", facts(export, calendar).render(look))
}

/// Returns how to check the export.
fn hint(export: &Export) -> String {
    if signed(export) {
        format!("`satchel verify {}` checks it, on any machine", text::quoted(&text::one_line(&export.path)))
    } else {
        "nothing in it is signed; a bundle that anyone can check is `--format pam`".to_owned()
    }
}

/// Returns whether the export is signed; only PAM exports are.
fn signed(export: &Export) -> bool {
    !export.signer.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::time;

    fn export() -> Export {
        Export {
            id: "a80c1122-0000-4000-8000-000000000001".to_owned(),
            r#type: ExportType::Full.into(),
            format: ExportFormat::Pam.into(),
            memories: 9,
            withheld: 1,
            conversations: 3,
            relations: 2,
            size_bytes: 48_000,
            revision: 57,
            checksum: "sha256:00".to_owned(),
            signer: "z6Mkabc".to_owned(),
            path: "/home/ana/my backup.zip".to_owned(),
            created_at: time::at("2026-03-12T11:20:00Z"),
            ..Export::default()
        }
    }

    #[test]
    fn an_export_says_what_it_holds_and_how_to_check_it() {
        let expected = "\
✓ exported 9 memories, 3 conversations

export         a80c1122-0000-4000-8000-000000000001
type           full
format         pam
made           2026-03-12 11:20
where          /home/ana/my backup.zip
size           48 kB
memories       9
withheld       1, because they must not be exported
conversations  3
relations      2
revision       57
checksum       sha256:00
signed by      z6Mkabc
";
        assert_eq!(written(&export(), &time::fixed(), Look::plain(80)), expected);
        assert_eq!(hint(&export()), "`satchel verify '/home/ana/my backup.zip'` checks it, on any machine");
    }

    #[test]
    fn an_unsigned_export_names_no_check_that_it_would_fail() {
        let view = Export {
            format: ExportFormat::Memu.into(),
            checksum: String::new(),
            signer: String::new(),
            ..export()
        };
        let shown = written(&view, &time::fixed(), Look::plain(80));
        assert!(shown.contains("format         memu\n"), "{shown}");
        assert!(hint(&view).contains("nothing in it is signed"));
        assert!(!["verify", "checksum", "signed by"].iter().any(|word| shown.contains(word)), "{shown}");
    }

    #[test]
    fn changes_name_their_base_and_what_they_cannot_say() {
        let delta = Export {
            r#type: ExportType::Incremental.into(),
            base_export_id: "0b5e".to_owned(),
            since: "2026-03-11T00:00:00Z".to_owned(),
            warnings: vec!["1 memories were taken back".to_owned()],
            ..export()
        };
        let shown = written(&delta, &time::fixed(), Look::plain(80));
        assert!(
            shown.contains("type           incremental\nbase           0b5e\nsince          2026-03-11"),
            "{shown}"
        );
        assert_eq!(remarks(&delta), ["note: 1 memories were taken back"]);
        let full = Export { reason: "there is no full export".to_owned(), ..export() };
        assert_eq!(remarks(&full), ["this is a full export: there is no full export"]);
        assert_eq!(kind(&Export { applied: true, ..delta }), "incremental, applied");
    }

    #[test]
    fn exports_are_listed() {
        let expected = "\
ID        TYPE  FORMAT  MADE        MEMORIES  CONVERSATIONS   SIZE  WHERE
a80c1122  full  pam     40 min ago         9              3  48 kB  /home/ana/my backup.zip
";
        assert_eq!(table(&[export()], &time::fixed()).render(Look::plain(100)), expected);
    }
}
