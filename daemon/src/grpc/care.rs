//! The long calls of `AdminService`: backups and checks, which tell how far they are.

use std::time::{Duration, Instant};

use satchel_proto::v1;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Response, Status};

use super::{Core, status::Fault};
use crate::{
    backup::{Progress, create},
    examine::{self, Examined, Finding},
    signed::signed,
};

/// Answers that wait for a slow reader.
const AHEAD: usize = 4;
/// Between two answers that only tell how far the work is.
const PACE: Duration = Duration::from_millis(200);

/// Where a long call sends its answers.
pub(super) struct Answers<T> {
    sender: mpsc::Sender<Result<T, Status>>,
    last: Instant,
}

impl<T> Answers<T> {
    /// Tells how far the work is, not too often; false when nobody listens any more.
    fn progress(&mut self, answer: impl FnOnce() -> T) -> bool {
        if self.last.elapsed() >= PACE {
            self.last = Instant::now();
            // A reader that is slow misses some.
            if let Err(mpsc::error::TrySendError::Closed(_)) = self.sender.try_send(Ok(answer())) {
                return false;
            }
        }
        !self.sender.is_closed()
    }
}

/// Runs `work` on a thread of its own and streams what it tells; its result is the last answer.
pub(super) fn stream<T: Send + 'static>(
    work: impl FnOnce(&mut Answers<T>) -> Result<T, Fault> + Send + 'static,
) -> Response<ReceiverStream<Result<T, Status>>> {
    let (sender, receiver) = mpsc::channel(AHEAD);
    let span = tracing::Span::current();
    tokio::task::spawn_blocking(move || {
        span.in_scope(|| {
            let mut answers = Answers { sender, last: Instant::now() };
            let outcome = work(&mut answers).map_err(Status::from);
            // Nobody to tell is no matter.
            drop(answers.sender.blocking_send(outcome));
        });
    });
    Response::new(ReceiverStream::new(receiver))
}

/// Writes a backup.
pub(super) fn back_up(
    core: &Core,
    output: &str,
    answers: &mut Answers<v1::CreateBackupResponse>,
) -> Result<v1::CreateBackupResponse, Fault> {
    let mut reached = Progress::default();
    let now = core.clock.now_micros();
    let backup = create::create(&core.store, &core.data_dir, output.as_ref(), now, &mut |progress| {
        reached = progress;
        answers.progress(|| v1::CreateBackupResponse {
            backup: None,
            header: Some(core.header()),
            done_bytes: signed(progress.done),
            total_bytes: signed(progress.total),
        })
    })?;
    let create::Backup { path, revision, digest, bytes, files, left_out } = backup;
    let backup = v1::Backup {
        path: path.to_string_lossy().into_owned(),
        revision: signed(revision),
        size_bytes: signed(bytes),
        files: signed(files),
        digest,
        left_out,
    };
    Ok(v1::CreateBackupResponse {
        backup: Some(backup),
        header: Some(core.header()),
        done_bytes: signed(reached.done),
        total_bytes: signed(reached.done),
    })
}

/// Checks the store.
pub(super) fn verify(
    core: &Core,
    answers: &mut Answers<v1::VerifyStoreResponse>,
) -> Result<v1::VerifyStoreResponse, Fault> {
    let mut total = 0;
    let idle = || core.imports.active().is_empty();
    let examined = examine::examine_while(&core.store, &idle, &mut |progress| {
        total = progress.total;
        answers.progress(|| v1::VerifyStoreResponse {
            check: None,
            header: Some(core.header()),
            done_bytes: signed(progress.done),
            total_bytes: signed(progress.total),
        });
    })?;
    let Examined { frames, records, files, findings, orphans } = examined;
    let problems = findings
        .into_iter()
        .map(|Finding { reason, message, fix }| v1::Problem {
            reason: reason.to_owned(),
            message,
            fix: fix.to_owned(),
        })
        .collect();
    Ok(v1::VerifyStoreResponse {
        check: Some(v1::StoreCheck {
            frames: signed(frames),
            records: signed(records),
            files: signed(files),
            problems,
            orphans: signed(orphans.len() as u64),
        }),
        header: Some(core.header()),
        done_bytes: signed(total),
        total_bytes: signed(total),
    })
}
