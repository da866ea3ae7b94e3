//! The thread of one watched folder.

use std::{
    panic::{self, AssertUnwindSafe},
    path::{Path, PathBuf},
    sync::{Arc, Condvar, Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use satchel_source::names;

use super::{
    Inner,
    events::{Events, Hints},
    folder::{Folder, FolderView, Parts, State, Trouble},
    mailbox::Mailbox,
    memory::Kept,
    queue::Feed,
    scan::Ground,
    settle::Moment,
    spec::WatchSpec,
};

/// Shortest time between two inspections that are caused by events; a growing file causes thousands of events.
const LEAST: Duration = Duration::from_millis(250);
/// An inspection that takes longer is reported as a problem: a lost share can block it for minutes, or for ever.
const LONG_LOOK: Duration = Duration::from_secs(30);

/// The thread of one watched folder; it ends when this is dropped.
pub(super) struct Running {
    mailbox: Arc<Mailbox>,
    shared: Arc<Shared>,
    root: PathBuf,
}

#[derive(Default)]
struct Shared {
    /// Guards the status shown to users, and whether the thread has ended.
    state: Mutex<(FolderView, bool)>,
    ended: Condvar,
    /// Guards the start time of the current inspection, if one runs.
    looking: Mutex<Option<Instant>>,
}

impl Running {
    pub(super) fn start(inner: &Inner, spec: &WatchSpec) -> Self {
        let mailbox = Arc::new(Mailbox::default());
        let shared = Arc::new(Shared::default());
        let (parts, least) = parts(inner, spec, &mailbox);
        let base = inner.base;
        let (thread_mailbox, thread_shared) = (Arc::clone(&mailbox), Arc::clone(&shared));
        thread::spawn(move || {
            let (root, pulse) = (parts.root.clone(), parts.pace.pulse);
            let work =
                AssertUnwindSafe(|| watch(Folder::new(parts), &thread_mailbox, &thread_shared, base, least));
            if panic::catch_unwind(work).is_err() {
                tracing::error!(folder = %root.display(), "the watcher of a folder broke off");
                thread_shared.show(FolderView {
                    state: State::Broken,
                    troubles: vec![broke_off(&root, base.elapsed() + pulse)],
                    ..FolderView::default()
                });
            }
            thread_shared.end();
        });
        Self { mailbox, shared, root: spec.path.clone() }
    }

    pub(super) fn rescan(&self) {
        self.mailbox.rescan();
    }

    pub(super) fn stop(&self) {
        self.mailbox.stop();
    }

    /// Waits until the thread has ended. Returns false on timeout.
    pub(super) fn wait(&self, most: Duration) -> bool {
        let state = self.shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.shared.ended.wait_timeout_while(state, most, |(_, ended)| !*ended);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    pub(super) fn view(&self) -> FolderView {
        let mut view = self.shared.state.lock().unwrap_or_else(PoisonError::into_inner).0.clone();
        let looking = *self.shared.looking.lock().unwrap_or_else(PoisonError::into_inner);
        view.troubles.extend(looking.and_then(|since| silent(&self.root, since.elapsed())));
        view
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.mailbox.stop();
    }
}

impl Shared {
    fn show(&self, view: FolderView) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).0 = view;
    }

    fn looks(&self, since: Option<Instant>) {
        *self.looking.lock().unwrap_or_else(PoisonError::into_inner) = since;
    }

    fn end(&self) {
        self.looks(None);
        self.state.lock().unwrap_or_else(PoisonError::into_inner).1 = true;
        self.ended.notify_all();
    }
}

/// Returns a problem if an inspection takes too long.
fn silent(root: &Path, time: Duration) -> Option<Trouble> {
    (time >= LONG_LOOK).then(|| Trouble {
        message: format!(
            "the watched folder {:?} has not answered for {} seconds; other folders go on",
            names::shown(root.as_os_str()),
            time.as_secs()
        ),
        fix: "look at its disk or network; it goes on by itself".to_owned(),
        tries: 1,
        next: Moment::ZERO,
    })
}

fn parts(inner: &Inner, spec: &WatchSpec, mailbox: &Arc<Mailbox>) -> (Parts, Duration) {
    let pace = spec.paced(&inner.pace);
    let least = LEAST.min(pace.quiet / 4);
    let root = spec.path.clone();
    let listen = {
        let (root, mailbox) = (root.clone(), Arc::clone(mailbox));
        Box::new(move || {
            let events = Events::new(root.clone(), Arc::clone(&mailbox))?;
            Ok(Box::new(events) as Box<dyn Hints>)
        })
    };
    let (base, clock, stopping) = (inner.base, Arc::clone(&inner.clock), Arc::clone(mailbox));
    let parts = Parts {
        disk: Box::new(Ground::new(&root, spec.recursive, &spec.patterns(), &inner.data_dir)),
        listen,
        queue: Box::new(Feed {
            imports: inner.imports.clone(),
            root: root.clone(),
            providers: spec.providers.clone(),
            mailbox: Arc::clone(mailbox),
        }),
        memory: Box::new(Kept::new(inner.store.clone(), &root)),
        wall: Box::new(move || clock.now_micros()),
        clock: Box::new(move || base.elapsed()),
        stopping: Box::new(move || stopping.stopping()),
        root,
        pace,
        poll: spec.poll,
    };
    (parts, least)
}

fn watch(mut folder: Folder, mailbox: &Mailbox, shared: &Shared, base: Instant, least: Duration) {
    loop {
        let (now, next) = (base.elapsed(), folder.next());
        let most = next.saturating_sub(now);
        // Work that is due does not wait; events do, so that they are collected.
        let pending = mailbox.wait(least.min(most), most);
        if pending.stop {
            return;
        }
        shared.looks(Some(Instant::now()));
        folder.step(pending);
        shared.looks(None);
        shared.show(folder.view());
    }
}

fn broke_off(root: &Path, next: Moment) -> Trouble {
    Trouble {
        message: format!("the watcher of {:?} broke off by an internal error", root.display().to_string()),
        fix: "please report this, and restart the daemon".to_owned(),
        tries: 1,
        next,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a folder whose inspection started `time` ago.
    fn looked_at_for(time: Duration) -> Running {
        let shared = Arc::new(Shared::default());
        shared.looks(Instant::now().checked_sub(time));
        Running { mailbox: Arc::default(), shared, root: "/net/dead share".into() }
    }

    #[test]
    fn a_look_that_takes_long_is_told_until_it_ends() {
        assert_eq!(looked_at_for(Duration::ZERO).view().troubles, []);
        let folder = looked_at_for(LONG_LOOK + Duration::from_secs(5));
        let troubles = folder.view().troubles;
        let told = troubles.first().map(|trouble| (trouble.message.as_str(), trouble.fix.as_str()));
        let (message, fix) = told.unwrap_or_default();
        assert!(message.contains("\"/net/dead share\" has not answered for 35 seconds"), "{message:?}");
        assert!(fix.contains("look at its disk or network"), "{fix:?}");
        folder.shared.looks(None);
        assert_eq!(folder.view().troubles, []);
    }
}
