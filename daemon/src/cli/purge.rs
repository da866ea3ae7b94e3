//! `memories purge` and `conversations purge`: erase content permanently.
//!
//! They work on the files directly, like `rebuild`. The whole store is rewritten, so no other process may have it
//! open.

mod render;

use std::{
    io::{BufRead as _, IsTerminal as _, Write as _},
    path::Path,
};

use satchel_core::{
    clock::{Clock as _, SystemClock},
    open_store,
    provenance::ProvenanceError,
    purge::{self, Plan, Target},
    residue, vault,
};
use satchel_proto::v1::{GetPurgePlanRequest, get_purge_plan_request::Target as Named};
use satchel_seal::Seal;
use satchel_server::{config::Config, connect::connect, grpc::purge_plan_to_wire};
use satchel_store::{CheckProgress, Store, StoreError};

use super::{
    Context, args::PurgeArgs, byte_progress::ByteProgress, client::DaemonClient, error::CliError, exit::Exit,
    pagination, text,
};

/// Maximum length of an answer, in bytes.
const MAX_ANSWER_BYTES: u64 = 4 << 10;

/// What to erase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PurgeKind {
    Memory,
    Conversation { keep_memories: bool },
}

impl PurgeKind {
    fn label(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Conversation { .. } => "conversation",
        }
    }

    fn target(self, id: String) -> Target {
        match self {
            Self::Memory => Target::Memory(id),
            Self::Conversation { keep_memories } => Target::Conversation { id, keep_memories },
        }
    }
}

/// Lists what will be erased, asks for the id, and erases.
///
/// # Errors
/// Fails if a daemon has the store open, if the id is not confirmed, or if the file system refuses.
pub(super) async fn run(context: &mut Context, kind: PurgeKind, args: &PurgeArgs) -> Result<Exit, CliError> {
    let config = context.location.local_config("purge works on a local data directory")?;
    let given = args.id.id.clone();
    if args.dry_run && connect(&config.data_dir).await.is_ok() {
        return preview_from_daemon(context, kind, &given).await;
    }
    let (store, seal, plan) = run_blocking({
        let config = config.clone();
        let dry_run = args.dry_run;
        move || open_and_plan(&config, kind, &given, dry_run)
    })
    .await?;
    let preview = purge_plan_to_wire(plan.clone());
    render::plan(context, kind.label(), &preview, args.dry_run)?;
    let set_aside = refuse_set_aside_data(&config.data_dir, "erased");
    if args.dry_run {
        store.close().map_err(not_erased)?;
        let ready = purge::check_ready(&config.data_dir, seal.as_ref(), std::slice::from_ref(&plan.record));
        let set_aside = set_aside.err().map(|error| satchel_source::chain(&error));
        for obstacle in set_aside.into_iter().chain(ready.err().map(|error| satchel_source::chain(&error))) {
            context.out.note(&format!("to resolve before erasing: {obstacle}"));
        }
        return Ok(Exit::Done);
    }
    if let Err(refused) = set_aside {
        store.close().map_err(not_erased)?;
        return Err(refused);
    }
    let id = id_to_confirm(&plan, kind);
    let confirm = args.confirm.clone();
    let confirmed = run_blocking({
        let (dir, seal, record) = (config.data_dir.clone(), seal.clone(), plan.record.clone());
        move || {
            check_confirmation(&id, confirm, kind.label())?;
            // Check again, because it may have taken a while to type the id.
            purge::check_ready(&dir, seal.as_ref(), std::slice::from_ref(&record)).map_err(not_erased)
        }
    })
    .await;
    if let Err(refused) = confirmed {
        store.close().map_err(not_erased)?;
        return Err(refused);
    }
    let attachments = erase(context, &config, (store, seal), plan).await?;
    render::done(context, &preview, attachments)?;
    Ok(Exit::Done)
}

/// Asks the daemon what would be erased, because a dry run does not require it to be stopped.
async fn preview_from_daemon(context: &mut Context, kind: PurgeKind, given: &str) -> Result<Exit, CliError> {
    let location = context.location.clone();
    let client = DaemonClient::open(&location, &mut context.out).await?;
    let (target, keep_memories) = match kind {
        PurgeKind::Memory => (Named::MemoryId(super::memories::resolve(&client, given).await?), false),
        PurgeKind::Conversation { keep_memories } => {
            (Named::ConversationId(super::conversations::resolve(&client, given).await?), keep_memories)
        }
    };
    let request = GetPurgePlanRequest { target: Some(target), keep_memories };
    let answer = client.admin().get_purge_plan(request).await?.into_inner();
    render::plan(context, kind.label(), &answer, true)?;
    client.close(&location).await?;
    Ok(Exit::Done)
}

/// Makes sure that no data directory that was set aside lies next to this one: everything that is `done` here would
/// remain unchanged in it.
///
/// # Errors
/// Fails with the paths of those directories, and what to do.
pub(super) fn refuse_set_aside_data(data_dir: &Path, done: &str) -> Result<(), CliError> {
    let read = CliError::file("list the folders next to", data_dir);
    let set_aside = residue::next_to(data_dir).map_err(read)?;
    let [first, ..] = set_aside.as_slice() else { return Ok(()) };
    let all: Vec<String> = set_aside.iter().map(|path| text::shell_quoted(&path.to_string_lossy())).collect();
    Err(CliError::Step {
        what: format!("nothing was {done}"),
        source: format!(
            "a restore moved older data aside to {}, where it would stay unchanged; when you no longer need it, remove it: rm -r {}",
            first.display(),
            all.join(" ")
        )
        .into(),
    })
}

async fn erase(
    context: &mut Context,
    config: &Config,
    (store, seal): (Store, Option<Seal>),
    plan: Plan,
) -> Result<u64, CliError> {
    let dir = config.data_dir.clone();
    let work = move |progress: &mut dyn FnMut(CheckProgress)| {
        purge::record_purge(&store, &plan.record)?;
        purge::erase_recorded(&dir, store, seal.as_ref(), progress)
    };
    let outcome = ByteProgress::run_blocking(&mut context.out, "rewriting the remaining data", work).await;
    outcome.map_err(aborted)?.map_err(|error: ProvenanceError| {
        CliError::step(
            "the erasure is not complete; if it was already recorded, the next start completes it",
            error,
        )
    })
}

/// Opens the data directory and determines what would be erased.
fn open_and_plan(
    config: &Config,
    kind: PurgeKind,
    given: &str,
    dry_run: bool,
) -> Result<(Store, Option<Seal>, Plan), CliError> {
    let dir = &config.data_dir;
    let open =
        |source: Box<dyn std::error::Error + Send + Sync>| CliError::Store { dir: dir.clone(), source };
    let options = vault::open_options(&config.data_dir, &config.unlock, config.cache_bytes)
        .map_err(|error| open(error.into()))?;
    let seal = options.seal.clone();
    let mut opened = || {
        if dry_run {
            // This also works where nothing can be written.
            return open_store::open_or_read_only(dir, options.clone(), &mut |_| {}).map(|(store, _)| store);
        }
        Store::open(dir, options.clone(), &mut |_| {})
    };
    let store = opened().map_err(|error| match error {
        StoreError::Locked { pid, .. } => CliError::Declined(format!(
            "process {pid} is using the data directory {}, which has to be rewritten; stop the daemon first \
             (`systemctl --user stop satchel`, or stop `satchel serve`), then try again",
            dir.display()
        )),
        error => open(error.into()),
    })?;
    let store = if dry_run {
        store
    } else {
        purge::complete(dir, store, seal.as_ref(), &mut opened).map_err(|error| open(error.into()))?
    };
    let id = resolve(&store, kind, given)?;
    let plan = purge::planned(&store, &kind.target(id.clone()), SystemClock.now_micros());
    let Some(plan) = plan.map_err(|error| open(error.into()))? else {
        return Err(CliError::Declined(format!("{} {id} has nothing left to erase", kind.label())));
    };
    if !dry_run {
        purge::check_ready(dir, seal.as_ref(), std::slice::from_ref(&plan.record)).map_err(not_erased)?;
    }
    Ok((store, seal, plan))
}

/// Returns the full id for `given`.
fn resolve(store: &Store, kind: PurgeKind, given: &str) -> Result<String, CliError> {
    let known = match kind {
        PurgeKind::Memory => store.memory(given, None).map_err(not_erased)?.is_some(),
        PurgeKind::Conversation { .. } => store.conversation(given, None).map_err(not_erased)?.is_some(),
    };
    if known {
        return Ok(given.to_owned());
    }
    let at = store.revision();
    let fitting = match kind {
        PurgeKind::Memory => store.memory_ids(given, at),
        PurgeKind::Conversation { .. } => store.conversation_ids(given, at),
    };
    pagination::resolve_prefix(kind.label(), given, fitting.map_err(not_erased)?)
}

/// Returns the id that has to be typed: that of the named record, which comes first.
fn id_to_confirm(plan: &Plan, kind: PurgeKind) -> String {
    let lines = match kind {
        PurgeKind::Memory => &plan.memories,
        PurgeKind::Conversation { .. } => &plan.conversations,
    };
    lines.first().map(|line| line.id.clone()).unwrap_or_default()
}

/// Asks for confirmation: the full id has to be given again.
fn check_confirmation(id: &str, confirm: Option<String>, word: &str) -> Result<(), CliError> {
    let differs = || CliError::Usage(format!("nothing was erased: this is not the full id of the {word}"));
    if let Some(confirm) = confirm {
        return if confirm == id { Ok(()) } else { Err(differs()) };
    }
    if !(std::io::stdin().is_terminal() && std::io::stderr().is_terminal()) {
        return Err(CliError::Usage(format!(
            "nothing was erased: cannot ask for confirmation without a terminal; use --confirm {id}"
        )));
    }
    let mut line = String::new();
    let mut ask = || {
        write!(std::io::stderr(), "type the full id of the {word} to erase it permanently: ")?;
        std::io::stderr().flush()?;
        std::io::Read::take(std::io::stdin().lock(), MAX_ANSWER_BYTES).read_line(&mut line)
    };
    ask().map_err(CliError::file("read", Path::new("standard input")))?;
    if line.trim() == id { Ok(()) } else { Err(differs()) }
}

async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, CliError> + Send + 'static,
) -> Result<T, CliError> {
    tokio::task::spawn_blocking(work).await.map_err(aborted)?
}

fn aborted(error: tokio::task::JoinError) -> CliError {
    CliError::step("the erasure was aborted", error)
}

fn not_erased(source: StoreError) -> CliError {
    CliError::step("nothing was erased", source)
}
