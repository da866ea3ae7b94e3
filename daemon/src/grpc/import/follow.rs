//! Follows a job from the outside: as it is, its changes, and its end.

use std::time::Duration;

use satchel_proto::v1;
use tokio::sync::{mpsc, watch};
use tokio_stream::{Stream, wrappers::ReceiverStream};
use tonic::Status;
use uuid::Uuid;

use crate::{
    grpc::{
        Core,
        call::required,
        status::{Fault, Kind},
        wire::import::job_to_wire,
    },
    ingest::{JobView, Phase, receipt::ImportRecord},
};

/// How often a watcher hears of a job when it does not say.
const DEFAULT_INTERVAL: Duration = Duration::from_millis(250);
/// How often a watcher may hear of a job.
const INTERVALS: std::ops::RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_mins(1);
/// Imports of the ledger that are read at once while those of a job are looked for.
const PAGE: usize = 100;
/// Pages of it: the newest five thousand imports.
const MAX_PAGES: usize = 50;
/// A job that can be followed, or the end of one that is forgotten.
pub(super) enum Followed {
    Live(watch::Receiver<JobView>),
    Over(Box<JobView>),
}

impl Followed {
    pub(super) fn now(&self) -> JobView {
        match self {
            Self::Live(view) => view.borrow().clone(),
            Self::Over(view) => (**view).clone(),
        }
    }
}

/// The job with this id, or that of the import with this id.
pub(super) fn job_of(core: &Core, id: &str) -> Result<Followed, Fault> {
    required("id", id)?;
    let live = |id: &str| core.imports.subscribe(Uuid::parse_str(id).ok()?);
    if let Some(view) = live(id) {
        return Ok(Followed::Live(view));
    }
    if let Some(view) =
        core.imports.active().into_iter().find(|view| view.imports.iter().any(|import| import.id == id))
    {
        return live(&view.id.to_string())
            .map(Followed::Live)
            .ok_or_else(|| Fault::missing(Kind::Import, id));
    }
    let (record, mut imports) = if let Some(record) = core.imports.get(id)? {
        if let Some(view) = live(&record.job) {
            return Ok(Followed::Live(view));
        }
        let imports = imports_of(core, &record.job)?;
        (record, imports)
    } else {
        // A job that is forgotten: too many came after it, or the program was started anew.
        let imports = imports_of(core, id)?;
        (imports.first().cloned().ok_or_else(|| Fault::missing(Kind::Import, id))?, imports)
    };
    if imports.is_empty() {
        // So old that it is not looked for among the others of its job.
        imports.push(record.clone());
    }
    Ok(Followed::Over(Box::new(JobView {
        id: Uuid::parse_str(&record.job).map_err(Fault::internal)?,
        path: record.path.clone().into(),
        phase: Phase::Ended,
        done: record.bytes,
        total: record.bytes,
        imports,
    })))
}

/// The imports of a job as the ledger has them, in the order in which they began.
fn imports_of(core: &Core, job: &str) -> Result<Vec<ImportRecord>, Fault> {
    let (mut found, mut after) = (Vec::new(), None);
    for _ in 0..MAX_PAGES {
        let page = core.imports.list(after.as_ref(), PAGE)?;
        let before = found.len();
        found.extend(page.items.into_iter().filter(|record| record.job == job));
        after = page.next;
        // They stand together, with those of a few others between them.
        if after.is_none() || before > 0 && found.len() == before {
            break;
        }
    }
    found.reverse();
    Ok(found)
}

pub(super) fn interval(wire: Option<prost_types::Duration>) -> Result<Duration, Fault> {
    let Some(wire) = wire else { return Ok(DEFAULT_INTERVAL) };
    let interval = Duration::try_from(wire).ok().filter(|interval| INTERVALS.contains(interval));
    interval.ok_or_else(|| Fault::field("min_interval", "must lie between 100 ms and 60 s"))
}

/// The job as it is, its changes, and its end.
pub(super) fn watch(
    core: Core,
    mut stopping: watch::Receiver<bool>,
    mut job: Followed,
    interval: Duration,
) -> impl Stream<Item = Result<v1::WatchImportResponse, Status>> + Send {
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(async move {
        loop {
            let view = match &mut job {
                Followed::Live(view) => view.borrow_and_update().clone(),
                Followed::Over(view) => (**view).clone(),
            };
            let ended = view.phase == Phase::Ended;
            let answer =
                v1::WatchImportResponse { job: Some(job_to_wire(view)), header: Some(core.header()) };
            // Nobody listens any more: the job goes on without us.
            if sender.send(Ok(answer)).await.is_err() || ended {
                return;
            }
            match next(&mut job, &mut stopping, &sender, interval).await {
                Next::Tell => {}
                Next::Nothing => return,
                Next::Stop => {
                    // Nobody to tell is no matter.
                    drop(sender.send(Err(Fault::ShuttingDown.into())).await);
                    return;
                }
            }
        }
    });
    ReceiverStream::new(receiver)
}

/// What a watcher is to be told next.
enum Next {
    /// The job has changed.
    Tell,
    /// Nothing ever again, or nobody is there to tell it to.
    Nothing,
    /// The daemon stops before the job has ended.
    Stop,
}

/// Waits until there is something to tell: the end at once, all else not before the interval has passed.
async fn next<T>(
    job: &mut Followed,
    stopping: &mut watch::Receiver<bool>,
    sender: &mpsc::Sender<T>,
    interval: Duration,
) -> Next {
    let Followed::Live(view) = job else { return Next::Nothing };
    let seen = |outcome: bool| if outcome { Next::Tell } else { Next::Nothing };
    let changed = async {
        tokio::select! {
            outcome = view.wait_for(|view| view.phase == Phase::Ended) => return seen(outcome.is_ok()),
            () = tokio::time::sleep(interval) => {}
        }
        seen(view.changed().await.is_ok())
    };
    tokio::select! {
        next = changed => next,
        _ = stopping.wait_for(|stopping| *stopping) => Next::Stop,
        () = sender.closed() => Next::Nothing,
    }
}
