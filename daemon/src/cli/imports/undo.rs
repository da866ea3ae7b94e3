//! `imports undo` and `imports redo`: shows what would change, asks for confirmation and makes the change.

use std::io::{IsTerminal as _, stdin};

use satchel_proto::{
    signed::{signed, unsigned},
    v1::{
        Import, ImportReversal, RecordEffect, RedoImportRequest, RevisionRange, UndoImportRequest,
        operation::Result as Reached,
    },
};

use super::resolve;
use crate::cli::{
    Context, args::UndoArgs, error::CliError, exit::Exit, json, link::Link, operation::unexpected, text,
};

/// The direction: undo or redo.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Undo,
    Redo,
}

/// The response of the daemon to either request.
struct Turned {
    import: Import,
    effects: [(&'static str, Option<RecordEffect>); 3],
    records: u64,
    revisions: Option<RevisionRange>,
}

pub(super) async fn run(
    context: &mut Context,
    link: &Link,
    args: &UndoArgs,
    way: Way,
) -> Result<Exit, CliError> {
    let id = resolve(link, args.id.given()).await?;
    if args.dry_run {
        let preview = call(link, way, &id, true, None).await?;
        return told(context, &preview, true, way);
    }
    let mut expected = None;
    if !args.yes {
        let preview = call(link, way, &id, true, None).await?;
        context.out.note(&sentence(&preview, true, way));
        if !agreed(way).await? {
            return Err(CliError::Cancelled);
        }
        expected = Some(preview.records);
    }
    let done = call(link, way, &id, false, expected).await?;
    told(context, &done, false, way)
}

async fn call(
    link: &Link,
    way: Way,
    id: &str,
    dry_run: bool,
    expected_records: Option<u64>,
) -> Result<Turned, CliError> {
    let (id, expected_records) = (id.to_owned(), signed(expected_records));
    let mut imports = link.imports();
    let operation = match way {
        Way::Undo => {
            let request = UndoImportRequest { id, dry_run, expected_records };
            imports.undo_import(request).await?.into_inner().operation
        }
        Way::Redo => {
            let request = RedoImportRequest { id, dry_run, expected_records };
            imports.redo_import(request).await?.into_inner().operation
        }
    };
    let Reached::Reversal(reversal) = link.result_of(operation, |_| {}).await? else {
        return Err(unexpected());
    };
    let ImportReversal { receipt, conversations, memories, relations, records, revisions } = reversal;
    Ok(Turned {
        import: receipt.unwrap_or_default(),
        effects: [("conversation", conversations), ("memory", memories), ("relation", relations)],
        records: unsigned(records),
        revisions,
    })
}

/// Asks for confirmation on a terminal; without a terminal, `--yes` is required.
async fn agreed(way: Way) -> Result<bool, CliError> {
    let verb = if way == Way::Undo { "undo" } else { "redo" };
    if !stdin().is_terminal() {
        return Err(CliError::Usage(format!("nothing was changed; add --yes to {verb} it, or --dry-run")));
    }
    let answer = tokio::task::spawn_blocking(move || {
        let mut answer = String::new();
        std::io::Write::write_all(&mut std::io::stderr(), format!("{verb} it? [y/N] ").as_bytes())?;
        stdin().read_line(&mut answer).map(|_| answer)
    });
    let answer = answer.await.map_err(|_| CliError::Cancelled)?.map_err(CliError::Output)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

fn told(context: &mut Context, turned: &Turned, dry_run: bool, way: Way) -> Result<Exit, CliError> {
    if context.out.json {
        let [conversations, memories, relations] = &turned.effects;
        context.out.json(&json::import::Turned {
            import: json::import::Import::new(&turned.import),
            conversations: json::import::Effect::new(conversations.1.as_ref()),
            memories: json::import::Effect::new(memories.1.as_ref()),
            relations: json::import::Effect::new(relations.1.as_ref()),
            records: turned.records,
            revisions: turned.revisions.as_ref().map(|range| [range.first, range.last].map(unsigned)),
            dry_run,
        })?;
        return Ok(Exit::Done);
    }
    context.out.print(&format!("{}\n", sentence(turned, dry_run, way)))?;
    if !dry_run && way == Way::Undo {
        let id = text::short_id(&turned.import.id);
        context.out.note(&format!("history stays; `satchel imports redo {id}` brings it back"));
    }
    Ok(Exit::Done)
}

/// Returns the changes in words: `3 conversations and 2 memories are shown no more; 1 conversation changes`.
fn sentence(turned: &Turned, dry_run: bool, way: Way) -> String {
    let source = text::one_line(&turned.import.source);
    let begin = match (way, dry_run) {
        (Way::Undo, true) => format!("without {source:?}: "),
        (Way::Undo, false) => format!("{source:?} is undone: "),
        (Way::Redo, true) => format!("with {source:?} again: "),
        (Way::Redo, false) => format!("{source:?} is back: "),
    };
    let part = |words: &str, pick: fn(&RecordEffect) -> u64| {
        let counts: Vec<String> = turned
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
        part("as the other imports have it", |effect| unsigned(effect.changed)),
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
    fn an_undo_says_what_changes() {
        let effect = |withdrawn, restored, changed| Some(RecordEffect { withdrawn, restored, changed });
        let mut turned = Turned {
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
            sentence(&turned, false, Way::Undo),
            "\"export.zip\" is undone: 3 conversations, 2 memories no longer shown; 1 conversation as the other imports have it"
        );
        turned.effects = [("conversation", None), ("memory", effect(0, 1, 0)), ("relation", None)];
        assert_eq!(sentence(&turned, true, Way::Redo), "with \"export.zip\" again: 1 memory shown again");
        turned.effects[1].1 = None;
        assert_eq!(sentence(&turned, true, Way::Undo), "without \"export.zip\": nothing changes");
    }
}
