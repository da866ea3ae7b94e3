//! `export` and `exports …`.

use std::path::Path;

use indicatif::ProgressBar;
use satchel_bundle::manifest::BundleSelection;
use satchel_proto::{
    integers::unsigned,
    v1::{
        CreateExportRequest, Export, ExportType, GetExportRequest, ListExportsRequest, MemoryFilter,
        Operation, OperationPhase, OperationProgress, operation::Result as Reached,
    },
};

use super::{
    Context,
    args::{ExportArgs, ExportFilterArgs, Exports, Paging},
    client::DaemonClient,
    error::CliError,
    exit::Exit,
    json, labels,
    operation::unexpected_result,
    pagination::{self, ResultPage},
    path,
    properties::Properties,
    style::{Paint, TerminalStyle},
    table::{Cell, Column, Table},
    text,
    time::Calendar,
    transfer,
};

/// Writes an export.
///
/// # Errors
/// Returns the error of the daemon.
pub(crate) async fn create(
    context: &mut Context,
    client: &DaemonClient,
    args: &ExportArgs,
    passphrase: Option<&str>,
) -> Result<Exit, CliError> {
    let kind = if args.incremental { ExportType::Incremental } else { ExportType::Full };
    let base_export_id = match &args.base {
        Some(given) => resolve(client, unless_last(given)).await?,
        None => String::new(),
    };
    let paired = context.location.is_paired();
    let output = path::absolute(&args.output)?;
    if paired {
        check_fetched(&output, args)?;
    }
    let request = CreateExportRequest {
        r#type: kind.into(),
        base_export_id,
        output: if paired { String::new() } else { path::path_to_string(output.clone())? },
        without_conversations: args.no_conversations,
        attachments: args.attachments,
        format: args.format.to_wire().into(),
        filter: filter(&args.select, &context.calendar)?,
        strip_identifiers: args.strip_identifiers,
        age_recipients: args.encrypt_to.clone(),
        passphrase: passphrase.unwrap_or_default().to_owned(),
    };
    let spinner = context.out.spinner("writing the export");
    let made = make(client, request, &spinner).await;
    spinner.finish_and_clear();
    let mut export = made?;
    if paired {
        transfer::fetch_export(&mut context.out, client, &export.id, &output).await?;
        export.path = path::path_to_string(output)?;
    }
    for line in remarks(&export) {
        context.out.note(&line);
    }
    if context.out.json {
        context.out.json(&json::admin::Export::new(&export))?;
        return Ok(Exit::Done);
    }
    let text = written(&export, &context.calendar, context.out.style);
    context.out.print(&text)?;
    context.out.note(&hint(&export));
    Ok(Exit::Done)
}

/// Checks the output for an export that is fetched from a paired daemon, before the daemon makes it.
///
/// # Errors
/// Fails if the path exists, or is not the name of the file that the daemon sends.
fn check_fetched(output: &Path, args: &ExportArgs) -> Result<(), CliError> {
    let encrypted = !args.encrypt_to.is_empty()
        || args.passphrase.passphrase
        || args.passphrase.passphrase_file.is_some();
    let extension = if encrypted { ".zip.age" } else { ".zip" };
    if !output.to_string_lossy().ends_with(extension) {
        return Err(CliError::Usage(format!(
            "--output must end in {extension}: a paired daemon sends the export as one file"
        )));
    }
    if output.exists() {
        return Err(CliError::Usage(format!("{output:?} exists; choose another --output, or remove it")));
    }
    let folder = output.parent().filter(|folder| !folder.is_dir());
    folder.map_or(Ok(()), |folder| {
        Err(CliError::Usage(format!("there is no folder {folder:?}; create it first")))
    })
}

/// Returns the filter for memories and conversations; `None` selects all.
fn filter(select: &ExportFilterArgs, calendar: &Calendar) -> Result<Option<MemoryFilter>, CliError> {
    let ExportFilterArgs { types, tags, platforms, since, until, created_since, created_until } = select;
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
async fn make(
    client: &DaemonClient,
    request: CreateExportRequest,
    spinner: &ProgressBar,
) -> Result<Export, CliError> {
    let operation = client.start(client.exports().create_export(request)).await?.operation;
    let show = |operation: &Operation| {
        if let Some(stage) = operation.progress.as_ref().and_then(stage) {
            spinner.set_message(stage);
        }
    };
    match client.result_of(operation, show).await? {
        Reached::Export(export) => Ok(export),
        _ => Err(unexpected_result()),
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
pub(crate) async fn run(
    context: &mut Context,
    client: &DaemonClient,
    command: &Exports,
) -> Result<Exit, CliError> {
    match command {
        Exports::List(paging) => list(context, client, *paging).await,
        Exports::Show(id) => show(context, client, id.given()).await,
    }
}

async fn list(context: &mut Context, client: &DaemonClient, paging: Paging) -> Result<Exit, CliError> {
    let listing =
        pagination::collect_rows(paging.max_rows(), async |size, token| fetch(client, size, token).await)
            .await?;
    if context.out.json {
        let exports = listing.rows.iter().map(json::admin::Export::new).collect();
        context.out.json(&json::admin::Exports { exports, more: listing.remaining.more() })?;
        return Ok(Exit::Done);
    }
    if listing.rows.is_empty() {
        context.out.note("no exports yet; run `satchel export --output OUT` to write one");
    } else {
        context.out.print(&table(&listing.rows, &context.calendar).render(context.out.style))?;
    }
    context.note_remaining(listing.remaining);
    Ok(Exit::Done)
}

async fn fetch(
    client: &DaemonClient,
    page_size: i32,
    page_token: String,
) -> Result<ResultPage<Export>, CliError> {
    let answer =
        client.exports().list_exports(ListExportsRequest { page_size, page_token }).await?.into_inner();
    Ok(ResultPage { rows: answer.exports, next: answer.next_page_token })
}

async fn show(context: &mut Context, client: &DaemonClient, given: Option<&str>) -> Result<Exit, CliError> {
    let id = resolve(client, given).await?;
    let export =
        client.exports().get_export(GetExportRequest { id }).await?.into_inner().export.unwrap_or_default();
    if context.out.json {
        context.out.json(&json::admin::Export::new(&export))?;
    } else {
        context.out.print(&properties(&export, &context.calendar).render(context.out.style))?;
    }
    Ok(Exit::Done)
}

/// Returns the full id for `given`; without it, the id of the newest export.
async fn resolve(client: &DaemonClient, given: Option<&str>) -> Result<String, CliError> {
    let Some(given) = given else {
        let newest = fetch(client, 1, String::new()).await?.rows.into_iter().next();
        return newest.map(|export| export.id).ok_or(CliError::NoneYet { kind: "export" });
    };
    pagination::resolve_id("export", given, async |size, token| {
        let page = fetch(client, size, token).await?;
        Ok(ResultPage { rows: page.rows.into_iter().map(|export| export.id).collect(), next: page.next })
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
        Column::new("type").optional(4),
        Column::new("format").optional(3),
        Column::new("created"),
        Column::right("memories"),
        Column::right("conversations").optional(2),
        Column::right("size").optional(1),
        Column::new("path").shrinks_to(16),
    ]);
    for export in exports {
        table.row([
            Cell::painted(&ids.shorten(&export.id), Paint::Id),
            Cell::new(&kind(export)),
            Cell::new(&labels::export_format(export.format)),
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
    let kind = labels::export_type(export.r#type);
    let kind = if selection(export).is_some() { format!("{kind}, selection") } else { kind };
    let kind = if export.applied { format!("{kind}, applied") } else { kind };
    if export.machine.is_empty() { kind } else { format!("{kind}, of {}", text::one_line(&export.machine)) }
}

/// Returns how the export differs from a complete copy of the store; `None` if it is one.
fn selection(export: &Export) -> Option<BundleSelection> {
    let (by, stripped) = (export.selected_by.clone(), export.stripped);
    (stripped || !by.is_empty()).then_some(BundleSelection { by, stripped })
}

fn properties(export: &Export, calendar: &Calendar) -> Properties {
    let mut properties = Properties::new();
    properties.add_painted("export", &export.id, Paint::Id);
    properties.add("type", &kind(export));
    properties.add("base", &export.base_export_id);
    properties.add("since", &export.since);
    properties.add("format", &labels::export_format(export.format));
    if let Some(selection) = selection(export) {
        properties.add(
            "contains",
            &format!(
                "{}; not a copy of the store, and not a base for incremental exports",
                selection.describe()
            ),
        );
    }
    properties.add("created", &calendar.minute(export.created_at.as_ref()));
    if export.encrypted {
        properties.add("encrypted", "with age");
    }
    properties.add("made by", &text::one_line(&export.machine));
    properties.add("path", &export.path);
    properties.add("size", &text::bytes(unsigned(export.size_bytes)));
    properties.add("memories", &text::number(unsigned(export.memories)));
    if export.withheld > 0 {
        properties.add(
            "withheld",
            &format!("{}, marked as not exportable", text::number(unsigned(export.withheld))),
        );
    }
    properties.add("conversations", &text::number(unsigned(export.conversations)));
    properties.add("relations", &text::number(unsigned(export.relations)));
    properties.add("revision", &text::number(unsigned(export.revision)));
    if signed(export) {
        properties.add("checksum", &export.checksum);
        properties.add("signed by", &export.signer);
    }
    properties
}

fn written(export: &Export, calendar: &Calendar, style: TerminalStyle) -> String {
    let what = format!(
        "{}, {}",
        text::count(unsigned(export.memories), "memory", "memories"),
        text::count(unsigned(export.conversations), "conversation", "conversations")
    );
    let mark = style.paint(Paint::Good, "✓");
    format!("{mark} exported {what}\n\n{}", properties(export, calendar).render(style))
}

/// Returns how to check the export.
fn hint(export: &Export) -> String {
    if signed(export) {
        format!(
            "`satchel verify {}` verifies it, on any machine",
            text::shell_quoted(&text::one_line(&export.path))
        )
    } else {
        "this format is not signed; `--format pam` writes a signed bundle".to_owned()
    }
}

/// Returns whether the export is signed; only PAM exports are.
fn signed(export: &Export) -> bool {
    !export.signer.is_empty()
}

#[cfg(test)]
mod tests {
    use satchel_proto::v1::ExportFormat;

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
    fn an_export_is_reported_with_its_contents_and_how_to_verify_it() {
        let expected = "\
✓ exported 9 memories, 3 conversations

export         a80c1122-0000-4000-8000-000000000001
type           full
format         pam
created        2026-03-12 11:20
path           /home/ana/my backup.zip
size           48 kB
memories       9
withheld       1, marked as not exportable
conversations  3
relations      2
revision       57
checksum       sha256:00
signed by      z6Mkabc
";
        assert_eq!(written(&export(), &time::fixed(), TerminalStyle::plain(80)), expected);
        assert_eq!(hint(&export()), "`satchel verify '/home/ana/my backup.zip'` verifies it, on any machine");
    }

    #[test]
    fn an_unsigned_export_does_not_suggest_verification() {
        let view = Export {
            format: ExportFormat::Memu.into(),
            checksum: String::new(),
            signer: String::new(),
            ..export()
        };
        let shown = written(&view, &time::fixed(), TerminalStyle::plain(80));
        assert!(shown.contains("format         memu\n"), "{shown}");
        assert!(hint(&view).contains("is not signed"));
        assert!(!["verify", "checksum", "signed by"].iter().any(|word| shown.contains(word)), "{shown}");
    }

    #[test]
    fn an_incremental_export_names_its_base_and_its_warnings() {
        let delta = Export {
            r#type: ExportType::Incremental.into(),
            base_export_id: "0b5e".to_owned(),
            since: "2026-03-11T00:00:00Z".to_owned(),
            warnings: vec!["1 memories were taken back".to_owned()],
            ..export()
        };
        let shown = written(&delta, &time::fixed(), TerminalStyle::plain(80));
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
ID        TYPE  FORMAT  CREATED     MEMORIES  CONVERSATIONS   SIZE  PATH
a80c1122  full  pam     40 min ago         9              3  48 kB  /home/ana/my backup.zip
";
        assert_eq!(table(&[export()], &time::fixed()).render(TerminalStyle::plain(100)), expected);
    }
}
