//! `imports undo` and `imports redo`: shows what would change, asks for confirmation and makes the change.

use std::io::{IsTerminal as _, stdin};

use satchel_proto::{
    integers::{signed, unsigned},
    v1::{
        Import, ImportReversal, RecordEffect, RedoImportRequest, RevisionRange, UndoImportRequest,
        operation::Result as Reached,
    },
};

use super::resolve;
use crate::cli::{
    Context, args::UndoArgs, client::DaemonClient, confirm, error::CliError, exit::Exit, json,
    operation::unexpected_result, text,
};

/// The direction: undo or redo.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Undo,
    Redo,
}

/// The response of the daemon to either request.
struct Reversal {
    import: Import,
    effects: [(&'static str, Option<RecordEffect>); 3],
    records: u64,
    revisions: Option<RevisionRange>,
}

pub(super) async fn run(
    context: &mut Context,
    client: &DaemonClient,
    args: &UndoArgs,
    direction: Direction,
) -> Result<Exit, CliError> {
    let id = resolve(client, args.id.given()).await?;
    if args.dry_run {
        let preview = call(client, direction, &id, true, None).await?;
        return print_result(context, &preview, true, direction);
    }
    let mut expected = None;
    if !args.yes {
        let preview = call(client, direction, &id, true, None).await?;
        context.out.note(&describe(&preview, true, direction));
        if !confirm(direction).await? {
            return Err(CliError::Cancelled);
        }
        expected = Some(preview.records);
    }
    let done = call(client, direction, &id, false, expected).await?;
    print_result(context, &done, false, direction)
}

async fn call(
    client: &DaemonClient,
    direction: Direction,
    id: &str,
    dry_run: bool,
    expected_records: Option<u64>,
) -> Result<Reversal, CliError> {
    let (id, expected_records) = (id.to_owned(), signed(expected_records));
    let mut imports = client.imports();
    let operation = match direction {
        Direction::Undo => {
            let request = UndoImportRequest { id, dry_run, expected_records };
            client.start(imports.undo_import(request)).await?.operation
        }
        Direction::Redo => {
            let request = RedoImportRequest { id, dry_run, expected_records };
            client.start(imports.redo_import(request)).await?.operation
        }
    };
    let Reached::Reversal(reversal) = client.result_of(operation, |_| {}).await? else {
        return Err(unexpected_result());
    };
    let ImportReversal { receipt, conversations, memories, relations, records, revisions } = reversal;
    Ok(Reversal {
        import: receipt.unwrap_or_default(),
        effects: [("conversation", conversations), ("memory", memories), ("relation", relations)],
        records: unsigned(records),
        revisions,
    })
}

/// Asks for confirmation on a terminal; without a terminal, `--yes` is required.
async fn confirm(direction: Direction) -> Result<bool, CliError> {
    let verb = if direction == Direction::Undo { "undo" } else { "redo" };
    if !stdin().is_terminal() {
        return Err(CliError::Usage(format!(
            "cannot ask for confirmation without a terminal; use --yes to {verb} the import, or --dry-run"
        )));
    }
    confirm::ask(format!("{verb} this import? [y/N] ")).await
}

fn print_result(
    context: &mut Context,
    reversal: &Reversal,
    dry_run: bool,
    direction: Direction,
) -> Result<Exit, CliError> {
    if context.out.json {
        let [conversations, memories, relations] = &reversal.effects;
        context.out.json(&json::import::ReversedImport {
            import: json::import::Import::new(&reversal.import),
            conversations: json::import::Effect::new(conversations.1.as_ref()),
            memories: json::import::Effect::new(memories.1.as_ref()),
            relations: json::import::Effect::new(relations.1.as_ref()),
            records: reversal.records,
            revisions: reversal.revisions.as_ref().map(|range| [range.first, range.last].map(unsigned)),
            dry_run,
        })?;
        return Ok(Exit::Done);
    }
    context.out.print(&format!("{}\n", describe(reversal, dry_run, direction)))?;
    if !dry_run && direction == Direction::Undo {
        let id = text::short_id(&reversal.import.id);
        context.out.note(&format!("the history is kept; `satchel imports redo {id}` reverses this"));
    }
    Ok(Exit::Done)
}

/// Returns the changes in words: `3 conversations, 2 memories no longer shown`.
fn describe(reversal: &Reversal, dry_run: bool, direction: Direction) -> String {
    let source = text::one_line(&reversal.import.source);
    let begin = match (direction, dry_run) {
        (Direction::Undo, true) => format!("would undo {source:?}: "),
        (Direction::Undo, false) => format!("undid {source:?}: "),
        (Direction::Redo, true) => format!("would redo {source:?}: "),
        (Direction::Redo, false) => format!("redid {source:?}: "),
    };
    let part = |words: &str, pick: fn(&RecordEffect) -> u64| {
        let counts: Vec<String> = reversal
            .effects
            .iter()
            .filter_map(|(name, effect)| Some((name, pick(effect.as_ref()?))))
            .filter(|(_, count)| *count > 0)
            .map(|(name, count)| text::count(count, name, &plural(name)))
            .collect();
        (!counts.is_empty()).then(|| format!("{} {words}", counts.join(", ")))
    };
    let parts: Vec<String> = [
        part("no longer shown", |effect| unsigned(effect.withdrawn)),
        part("shown again", |effect| unsigned(effect.restored)),
        part("changed to the version of other imports", |effect| unsigned(effect.changed)),
    ]
    .into_iter()
    .flatten()
    .collect();
    if parts.is_empty() { format!("{begin}nothing changes") } else { begin + &parts.join("; ") }
}

fn plural(name: &str) -> String {
    name.strip_suffix('y').map_or_else(|| format!("{name}s"), |stem| format!("{stem}ies"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_undo_describes_what_changes() {
        let effect = |withdrawn, restored, changed| Some(RecordEffect { withdrawn, restored, changed });
        let mut reversal = Reversal {
            import: Import { source: "export.zip".to_owned(), ..Import::default() },
            effects: [
                ("conversation", effect(3, 0, 1)),
                ("memory", effect(2, 0, 0)),
                ("relation", effect(0, 0, 0)),
            ],
            records: 6,
            revisions: None,
        };
        assert_eq!(
            describe(&reversal, false, Direction::Undo),
            "undid \"export.zip\": 3 conversations, 2 memories no longer shown; 1 conversation changed to the version of other imports"
        );
        reversal.effects = [("conversation", None), ("memory", effect(0, 1, 0)), ("relation", None)];
        assert_eq!(
            describe(&reversal, true, Direction::Redo),
            "would redo \"export.zip\": 1 memory shown again"
        );
        reversal.effects[1].1 = None;
        assert_eq!(describe(&reversal, true, Direction::Undo), "would undo \"export.zip\": nothing changes");
    }
}
