//! `memories purge` and `conversations purge`: erase content for good.
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
    ingest::{
        IngestError,
        purge::{self, Plan, Target},
    },
    leftovers, reading, vault,
};
use satchel_proto::v1::{GetPurgePlanRequest, get_purge_plan_request::Target as Named};
use satchel_seal::Seal;
use satchel_server::{config::Config, connect::connect};
use satchel_store::{CheckProgress, Store, StoreError};

use self::render::Outlook;
use super::{
    Context,
    args::PurgeArgs,
    error::CliError,
    exit::Exit,
    link::{Link, Place},
    page,
    steps::Steps,
    text,
};

/// Maximum length of an answer, in bytes.
const LONGEST_ANSWER: u64 = 4 << 10;

/// What to erase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Memory,
    Conversation { keep_memories: bool },
}

impl Kind {
    fn word(self) -> &'static str {
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
pub(super) async fn run(context: &mut Context, kind: Kind, args: &PurgeArgs) -> Result<Exit, CliError> {
    let Place::Local(config) = context.place.clone() else {
        let problem = "erasing works on the data directory itself; leave --server and SATCHEL_SERVER out";
        return Err(CliError::Usage(problem.to_owned()));
    };
    let given = args.id.id.clone();
    if args.dry_run && connect(&config.data_dir).await.is_ok() {
        return ask(context, kind, &given).await;
    }
    let (store, seal, plan) = off_thread({
        let config = config.clone();
        let dry_run = args.dry_run;
        move || look(&config, kind, &given, dry_run)
    })
    .await?;
    render::plan(context, kind.word(), &Outlook::from(&plan), args.dry_run)?;
    let beside = nothing_beside(&config.data_dir, "erased");
    if args.dry_run {
        store.close().map_err(failed)?;
        let ready = purge::ready(&config.data_dir, seal.as_ref(), std::slice::from_ref(&plan.record));
        let beside = beside.err().map(|error| satchel_source::chain(&error));
        for in_the_way in beside.into_iter().chain(ready.err().map(|error| satchel_source::chain(&error))) {
            context.out.note(&format!("before it is done: {in_the_way}"));
        }
        return Ok(Exit::Done);
    }
    if let Err(refused) = beside {
        store.close().map_err(failed)?;
        return Err(refused);
    }
    let id = named(&plan, kind);
    let confirm = args.confirm.clone();
    let meant = off_thread({
        let (dir, seal, record) = (config.data_dir.clone(), seal.clone(), plan.record.clone());
        move || {
            confirmed(&id, confirm, kind.word())?;
            // Check again, because it may have taken a while to type the id.
            purge::ready(&dir, seal.as_ref(), std::slice::from_ref(&record)).map_err(failed)
        }
    })
    .await;
    if let Err(refused) = meant {
        store.close().map_err(failed)?;
        return Err(refused);
    }
    let attachments = erase(context, &config, (store, seal), plan.clone()).await?;
    render::done(context, &Outlook::from(&plan), attachments)?;
    Ok(Exit::Done)
}

/// Lets the daemon say what would be erased: a dry run does not require it to be stopped.
async fn ask(context: &mut Context, kind: Kind, given: &str) -> Result<Exit, CliError> {
    let place = context.place.clone();
    let link = Link::open(&place, &mut context.out).await?;
    let (target, keep_memories) = match kind {
        Kind::Memory => (Named::MemoryId(super::memories::resolve(&link, given).await?), false),
        Kind::Conversation { keep_memories } => {
            (Named::ConversationId(super::conversations::resolve(&link, given).await?), keep_memories)
        }
    };
    let request = GetPurgePlanRequest { target: Some(target), keep_memories };
    let answer = link.admin().get_purge_plan(request).await?.into_inner();
    render::plan(context, kind.word(), &Outlook::from(answer), true)?;
    link.close(&place).await?;
    Ok(Exit::Done)
}

/// Makes sure that no data directory that was set aside lies next to this one: everything that is `done` here would
/// remain unchanged in it.
///
/// # Errors
/// Fails with the paths of those directories, and what to do.
pub(super) fn nothing_beside(data_dir: &Path, done: &str) -> Result<(), CliError> {
    let read = |source| CliError::File { action: "list what lies beside", path: data_dir.to_owned(), source };
    let beside = leftovers::beside(data_dir).map_err(read)?;
    let [first, ..] = beside.as_slice() else { return Ok(()) };
    let all: Vec<String> = beside.iter().map(|path| text::quoted(&path.to_string_lossy())).collect();
    Err(CliError::Step {
        what: format!("nothing was {done}"),
        source: format!(
            "a restore set older data aside in {}, where it would stay as it is; when you need it no more, remove it: rm -r {}",
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
        purge::note(&store, &plan.record)?;
        purge::carry_out(&dir, store, seal.as_ref(), progress)
    };
    let outcome = Steps::follow(&mut context.out, "writing anew what stays", work).await;
    outcome.map_err(broken)?.map_err(|error: IngestError| CliError::Step {
        what: "the erasure is not complete; what was noted of it the next start goes on with".to_owned(),
        source: error.into(),
    })
}

/// Opens the data directory and determines what would be erased.
fn look(
    config: &Config,
    kind: Kind,
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
            return reading::open(dir, options.clone(), &mut |_| {}).map(|(store, _)| store);
        }
        Store::open(dir, options.clone(), &mut |_| {})
    };
    let store = opened().map_err(|error| match error {
        StoreError::Locked { pid, .. } => CliError::Declined(format!(
            "process {pid} has the data directory {}; everything in it is written anew, so stop the daemon first \
             (`systemctl --user stop satchel`, or end `satchel serve`), then try again",
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
        return Err(CliError::Declined(format!("{} {id} has nothing left to erase", kind.word())));
    };
    if !dry_run {
        purge::ready(dir, seal.as_ref(), std::slice::from_ref(&plan.record)).map_err(failed)?;
    }
    Ok((store, seal, plan))
}

/// Returns the full id for `given`.
fn resolve(store: &Store, kind: Kind, given: &str) -> Result<String, CliError> {
    let known = match kind {
        Kind::Memory => store.memory(given, None).map_err(failed)?.is_some(),
        Kind::Conversation { .. } => store.conversation(given, None).map_err(failed)?.is_some(),
    };
    if known {
        return Ok(given.to_owned());
    }
    let at = store.revision();
    let fitting = match kind {
        Kind::Memory => store.memory_ids(given, at),
        Kind::Conversation { .. } => store.conversation_ids(given, at),
    };
    page::pick_long(kind.word(), given, fitting.map_err(failed)?)
}

/// Returns the id that has to be typed: that of the named record, which comes first.
fn named(plan: &Plan, kind: Kind) -> String {
    let lines = match kind {
        Kind::Memory => &plan.memories,
        Kind::Conversation { .. } => &plan.conversations,
    };
    lines.first().map(|line| line.id.clone()).unwrap_or_default()
}

/// Asks for confirmation: the full id has to be given again.
fn confirmed(id: &str, confirm: Option<String>, word: &str) -> Result<(), CliError> {
    let differs = || CliError::Usage(format!("nothing was erased: that is not the whole id of the {word}"));
    if let Some(confirm) = confirm {
        return if confirm == id { Ok(()) } else { Err(differs()) };
    }
    if !(std::io::stdin().is_terminal() && std::io::stderr().is_terminal()) {
        return Err(CliError::Usage(format!(
            "nothing was erased: there is no terminal to ask; add --confirm {id} if you mean it"
        )));
    }
    let mut line = String::new();
    let mut ask = || {
        write!(std::io::stderr(), "type the whole id of the {word} to erase it for good: ")?;
        std::io::stderr().flush()?;
        std::io::Read::take(std::io::stdin().lock(), LONGEST_ANSWER).read_line(&mut line)
    };
    ask().map_err(|source| CliError::File { action: "read", path: "standard input".into(), source })?;
    if line.trim() == id { Ok(()) } else { Err(differs()) }
}

async fn off_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, CliError> + Send + 'static,
) -> Result<T, CliError> {
    tokio::task::spawn_blocking(work).await.map_err(broken)?
}

fn broken(error: tokio::task::JoinError) -> CliError {
    CliError::Step { what: "the erasure broke off".to_owned(), source: error.into() }
}

fn failed(source: StoreError) -> CliError {
    CliError::Step { what: "nothing was erased".to_owned(), source: source.into() }
}
