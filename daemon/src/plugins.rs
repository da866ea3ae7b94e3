//! The importers that came with the program, compiled when the first of them is needed.
//!
//! **Invariant:** a command that needs no importer loads none; `only_commands_that_need_importers_load_them` holds it.

use std::{
    path::PathBuf,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::Duration,
};

use satchel_host::{Host, HostError, HostOptions, Pace, Plugin};
use satchel_plugins::BUILT_IN;

/// Importers that are loaded at once. Compiling one takes memory, and uses all processors by itself.
const AT_ONCE: usize = 2;
/// Between two looks whether they are still waited for: a part of the second within which a cancel takes effect.
pub(crate) const LOOK: Duration = Duration::from_millis(100);

/// What stands for PAM documents, which no importer is needed for, among the names of platforms.
const PAM: &str = "pam";

/// Importers, in the order in which they are asked.
pub struct Plugins {
    cache: Option<PathBuf>,
    pace: Pace,
    loaded: OnceLock<Result<Vec<Plugin>, PluginsError>>,
    fingerprint: OnceLock<String>,
}

/// Why the importers cannot run.
#[derive(Clone, Debug, thiserror::Error)]
#[error(
    "the importer {name:?} that came with this program cannot be loaded: {problem}; install the program again"
)]
pub struct PluginsError {
    name: String,
    problem: String,
}

impl Plugins {
    /// The importers of this program; `cache` keeps their compiled code between starts.
    pub fn built_in(cache: Option<PathBuf>) -> Self {
        Self { cache, pace: Pace::default(), loaded: OnceLock::new(), fingerprint: OnceLock::new() }
    }

    /// Whether one that came with this program is for `platform`, after which each of those is named. None is compiled for it.
    pub fn come_with(platform: &str) -> bool {
        BUILT_IN.iter().any(|built_in| built_in.name == platform)
    }

    /// The platforms whose exports can be read: those of the importers that came with this program, and PAM's own documents.
    pub fn platforms() -> Vec<&'static str> {
        BUILT_IN.iter().map(|built_in| built_in.name).chain([PAM]).collect()
    }

    /// Whether exports of `platform` can be read.
    pub fn knows(platform: &str) -> bool {
        Self::platforms().contains(&platform)
    }

    /// Whether they have been compiled, or read from the cache.
    #[cfg(test)]
    pub(crate) fn compiled(&self) -> bool {
        self.loaded.get().is_some()
    }

    /// All of them, compiled or read from the cache at the first call.
    ///
    /// # Errors
    /// When one of them does not load.
    pub fn all(&self) -> Result<&[Plugin], PluginsError> {
        let loaded = self.loaded.get_or_init(|| load(self.cache.clone(), self.pace.clone()));
        loaded.as_deref().map_err(Clone::clone)
    }

    /// What makes room for questions while they run.
    pub fn pace(&self) -> &Pace {
        &self.pace
    }

    /// As [`Plugins::all`]; none once `stop` says so. To compile all of them takes longer than a cancel may.
    ///
    /// # Errors
    /// When one of them does not load.
    pub fn all_until(self: &Arc<Self>, stop: &dyn Fn() -> bool) -> Result<Option<&[Plugin]>, PluginsError> {
        if self.loaded.get().is_none() {
            let plugins = Arc::clone(self);
            let loaded = until(
                move || {
                    plugins.loaded.get_or_init(|| load(plugins.cache.clone(), plugins.pace.clone())).is_ok()
                },
                stop,
            );
            if loaded.is_none() && stop() {
                return Ok(None);
            }
        }
        self.all().map(Some)
    }

    /// Tells this set of importers from any other, without compiling them.
    pub fn fingerprint(&self) -> &str {
        self.fingerprint.get_or_init(|| {
            let mut all = env!("CARGO_PKG_VERSION").as_bytes().to_vec();
            for built_in in BUILT_IN {
                all.extend_from_slice(built_in.name.as_bytes());
                all.extend_from_slice(&crc32fast::hash(built_in.wasm).to_be_bytes());
            }
            format!("{:08x}", crc32fast::hash(&all))
        })
    }
}

/// What `work` gives; none if `stop` says so before, or it breaks off. It goes on then, and nobody hears of it.
fn until<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static, stop: &dyn Fn() -> bool) -> Option<T> {
    let (sender, receiver) = mpsc::sync_channel(1);
    thread::spawn(move || drop(sender.send(work())));
    loop {
        match receiver.recv_timeout(LOOK) {
            Ok(given) => return Some(given),
            Err(RecvTimeoutError::Timeout) if !stop() => {}
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return None,
        }
    }
}

fn load(cache_dir: Option<PathBuf>, pace: Pace) -> Result<Vec<Plugin>, PluginsError> {
    let failed =
        |name: &str, error: &HostError| PluginsError { name: name.to_owned(), problem: crate::chain(error) };
    let host = Host::new(HostOptions { cache_dir, pace }).map_err(|error| failed("host", &error))?;
    let places = BUILT_IN.iter().map(|_| OnceLock::new()).collect::<Vec<OnceLock<_>>>();
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some((place, built_in)) = {
            let at = next.fetch_add(1, Ordering::Relaxed);
            places.get(at).zip(BUILT_IN.get(at))
        } {
            place.get_or_init(|| host.load(built_in.wasm).map_err(|error| failed(built_in.name, &error)));
        }
    };
    thread::scope(|scope| {
        for _ in 1..AT_ONCE {
            scope.spawn(work);
        }
        work();
    });
    places.into_iter().filter_map(OnceLock::into_inner).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_for_what_takes_long_can_be_told_to_stop() {
        let (tell, wait) = mpsc::channel::<()>();
        let looks = AtomicUsize::new(0);
        let stop = || looks.fetch_add(1, Ordering::Relaxed) == 2;
        assert_eq!(until(move || wait.recv().is_err(), &stop), None);
        assert_eq!(looks.load(Ordering::Relaxed), 3);
        drop(tell);
        assert_eq!(until(|| 7, &|| false), Some(7));
    }
}
