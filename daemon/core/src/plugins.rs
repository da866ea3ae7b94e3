//! The importers that come with the program, each compiled when it is needed.
//!
//! **Invariant:** a command that needs no importer loads none; `only_commands_that_need_importers_load_them` holds it.

use std::{
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicUsize, Ordering},
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::Duration,
};

use satchel_host::{CacheStatus, CodeCache, Host, HostError, HostOptions, Plugin, Throttle};
use satchel_plugins::BUILT_IN;

/// Importers that are loaded at once. Compiling one needs memory, and uses all processors already.
const MAX_PARALLEL: usize = 2;
/// Interval between two checks whether the caller still waits: a fraction of the second within which a cancellation
/// must take effect.
pub(crate) const CANCEL_POLL: Duration = Duration::from_millis(100);

/// The platform name of PAM documents, which need no importer.
const PAM: &str = "pam";

/// The importers, in the order in which they are asked.
///
/// **Invariant:** an importer that was loaded is kept, and one that failed to load is tried again: files, memory or
/// disk space may be missing at one moment and available at the next (`a_failed_load_is_retried`).
pub struct Plugins {
    cache: Option<CodeCache>,
    pace: Throttle,
    host: RetryOnce<Host>,
    /// In the order of [`BUILT_IN`].
    loaded: Vec<RetryOnce<Plugin>>,
    fingerprint: OnceLock<String>,
}

/// A value that is created by the first caller that needs it, while other callers wait.
struct RetryOnce<T> {
    value: OnceLock<T>,
    initializing: Mutex<()>,
}

impl<T> Default for RetryOnce<T> {
    fn default() -> Self {
        Self { value: OnceLock::new(), initializing: Mutex::default() }
    }
}

impl<T> RetryOnce<T> {
    fn get(&self) -> Option<&T> {
        self.value.get()
    }

    /// Returns the value, creating it if needed. A failure is returned to this caller and is not remembered.
    fn get_or_try_init<E>(&self, make: impl FnOnce() -> Result<T, E>) -> Result<&T, E> {
        if let Some(value) = self.value.get() {
            return Ok(value);
        }
        let _guard = self.initializing.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = self.value.get() {
            return Ok(value);
        }
        let value = make()?;
        Ok(self.value.get_or_init(|| value))
    }
}

/// The reason why an importer cannot run.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the importer {name:?} that came with this program cannot be loaded: {problem}; {remedy}")]
pub struct PluginLoadError {
    name: String,
    problem: String,
    remedy: &'static str,
}

impl PluginLoadError {
    fn new(name: &str, error: &HostError) -> Self {
        let remedy = match error {
            // A resource of the machine is exhausted; the program itself is fine.
            HostError::Engine { .. } | HostError::Describe(_) => "try again",
            _ => "try again; if the error persists, reinstall satchel",
        };
        Self { name: name.to_owned(), problem: satchel_source::chain(error), remedy }
    }
}

impl Plugins {
    /// Creates the set of built-in importers. `cache` keeps their compiled code between starts.
    pub fn built_in(cache: Option<CodeCache>) -> Self {
        Self {
            cache,
            pace: Throttle::default(),
            host: RetryOnce::default(),
            loaded: BUILT_IN.iter().map(|_| RetryOnce::default()).collect(),
            fingerprint: OnceLock::new(),
        }
    }

    /// Returns the platforms whose exports can be read: those of the built-in importers, and PAM documents.
    pub fn platforms() -> Vec<&'static str> {
        BUILT_IN.iter().map(|built_in| built_in.name).chain([PAM]).collect()
    }

    /// Returns whether exports of `platform` can be read.
    pub fn is_known(platform: &str) -> bool {
        Self::platforms().contains(&platform)
    }

    /// Returns whether any importer has been compiled, or read from the cache.
    #[cfg(test)]
    pub(crate) fn compiled(&self) -> bool {
        self.loaded.iter().any(|loaded| loaded.get().is_some())
    }

    /// Returns all importers, compiling them or reading them from the cache at the first call.
    ///
    /// # Errors
    /// One of them cannot be loaded.
    pub fn load_all(&self) -> Result<Vec<Plugin>, PluginLoadError> {
        self.load_at(&(0..BUILT_IN.len()).collect::<Vec<_>>())
    }

    /// Returns the importers at these indices of [`BUILT_IN`].
    fn load_at(&self, indices: &[usize]) -> Result<Vec<Plugin>, PluginLoadError> {
        let next = AtomicUsize::new(0);
        let work = || {
            while let Some(at) = indices.get(next.fetch_add(1, Ordering::Relaxed)) {
                // The iteration below retries what failed here, and returns the error.
                drop(self.loaded[*at].get_or_try_init(|| self.load(*at)));
            }
        };
        let missing = indices.iter().filter(|at| self.loaded[**at].get().is_none()).count();
        thread::scope(|scope| {
            for _ in 1..MAX_PARALLEL.min(missing) {
                scope.spawn(work);
            }
            work();
        });
        indices.iter().map(|at| self.loaded[*at].get_or_try_init(|| self.load(*at)).cloned()).collect()
    }

    fn load(&self, at: usize) -> Result<Plugin, PluginLoadError> {
        let built_in = &BUILT_IN[at];
        self.host()?.load(built_in.wasm).map_err(|error| PluginLoadError::new(built_in.name, &error))
    }

    fn host(&self) -> Result<&Host, PluginLoadError> {
        let options = || HostOptions { cache: self.cache.clone(), throttle: self.pace.clone() };
        let host = self.host.get_or_try_init(|| Host::new(options()));
        host.map_err(|error| PluginLoadError::new("host", &error))
    }

    /// Returns how the cache of compiled code was used for the importers loaded so far.
    pub fn cache(&self) -> CacheStatus {
        self.host.get().map_or(CacheStatus::Off, Host::cache)
    }

    /// Returns the pace, which makes the threads of importers pause while requests are served.
    pub fn pace(&self) -> &Throttle {
        &self.pace
    }

    /// Returns the importers at these indices of [`BUILT_IN`], compiling them or reading them from the cache at the
    /// first call. Returns `None` if `stop` returns true; compiling an importer takes longer than a cancellation may.
    ///
    /// # Errors
    /// One of them cannot be loaded.
    pub fn load_until(
        self: &Arc<Self>,
        indices: &[usize],
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<Vec<Plugin>>, PluginLoadError> {
        if indices.iter().any(|at| self.loaded[*at].get().is_none()) {
            let (plugins, indices) = (Arc::clone(self), indices.to_owned());
            let loaded = run_until(move || plugins.load_at(&indices).is_ok(), stop);
            if loaded.is_none() && stop() {
                return Ok(None);
            }
        }
        self.load_at(indices).map(Some)
    }

    /// Returns a value that identifies this set of importers, without compiling them.
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

/// Returns the result of `work`, or `None` if `stop` returns true first or `work` panics. After `stop`, `work`
/// continues in the background and its result is discarded.
fn run_until<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
    stop: &dyn Fn() -> bool,
) -> Option<T> {
    let (sender, receiver) = mpsc::sync_channel(1);
    thread::spawn(move || drop(sender.send(work())));
    loop {
        match receiver.recv_timeout(CANCEL_POLL) {
            Ok(given) => return Some(given),
            Err(RecvTimeoutError::Timeout) if !stop() => {}
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_load_is_retried() {
        let once = RetryOnce::<u8>::default();
        assert_eq!(once.get_or_try_init(|| Err("no file may be opened")), Err("no file may be opened"));
        assert_eq!(once.get_or_try_init(|| Ok::<_, &str>(7)), Ok(&7));
        assert_eq!(once.get_or_try_init(|| Err("never asked again")), Ok(&7));
    }

    #[test]
    fn an_unusable_cache_is_skipped() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = place.path().join("cache");
        std::fs::write(&folder, "in the way").expect("a file is written");
        let cache = CodeCache { folder, key_file: place.path().join("key") };
        let plugins = Plugins::built_in(Some(cache));
        assert!(plugins.host().is_ok());
        assert!(matches!(plugins.cache(), CacheStatus::Unusable { .. }), "{:?}", plugins.cache());
    }

    #[test]
    fn a_long_load_can_be_cancelled() {
        let (tell, wait) = mpsc::channel::<()>();
        let looks = AtomicUsize::new(0);
        let stop = || looks.fetch_add(1, Ordering::Relaxed) == 2;
        assert_eq!(run_until(move || wait.recv().is_err(), &stop), None);
        assert_eq!(looks.load(Ordering::Relaxed), 3);
        drop(tell);
        assert_eq!(run_until(|| 7, &|| false), Some(7));
    }
}
