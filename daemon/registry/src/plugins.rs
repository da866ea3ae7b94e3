//! The importers that imports use, each loaded when it is needed.
//!
//! **Invariant:** a command that needs no importer loads none; `only_commands_that_need_importers_load_them` holds it.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock,
        atomic::{AtomicUsize, Ordering},
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::Duration,
};

use satchel_host::{
    CacheStatus, CodeCache, Host, HostOptions, Plugin, PluginError, PluginErrorKind, Throttle,
};
use satchel_plugins::BUILT_IN;

use crate::{
    importer::{Importer, Origin, PluginLoadError},
    package::AuthorKey,
    registry::{Author, Installed, InstalledState, Registry, RegistryError},
    retry_once::RetryOnce,
};

/// Importers that are loaded at once. Compiling one needs memory, and uses all processors already.
const MAX_PARALLEL: usize = 2;
/// Interval between two checks whether the caller still waits: a fraction of the second within which a cancellation
/// must take effect.
pub const CANCEL_POLL: Duration = Duration::from_millis(100);
/// Runs in a row that an installed importer may end badly before it is disabled.
pub const MAX_FAILURES: u32 = 3;

/// The platform name of PAM documents, which need no importer.
const PAM: &str = "pam";

/// How importers are compiled.
#[derive(Clone, Debug, Default)]
pub struct PluginsOptions {
    /// Keeps compiled code between starts.
    pub cache: Option<CodeCache>,
    /// The program that compiles packages in a child process, called as [`crate::compile`] says; `None`: they are
    /// compiled in this process.
    pub compiler: Option<PathBuf>,
}

/// The importers: those that come with the program, and the installed ones.
///
/// **Invariant:** an importer that was loaded is kept, and one that failed to load is tried again.
pub struct Plugins {
    options: PluginsOptions,
    pace: Throttle,
    host: RetryOnce<Host>,
    built_in: Vec<Arc<Importer>>,
    /// The hash of the built-in importers and of the program's version.
    built_in_hash: OnceLock<crc32fast::Hasher>,
    /// The installed importers; an error if their list cannot be read.
    registry: Result<Mutex<Registry>, RegistryError>,
    /// The importers in use. Replaced as a whole after each change of the registry.
    in_use: RwLock<Arc<[Arc<Importer>]>>,
}

/// One line of the list of importers.
#[derive(Clone, Debug)]
pub struct ImporterRow {
    pub name: String,
    pub version: String,
    pub platform: String,
    pub newest_format: String,
    pub formats: Vec<String>,
    /// SHA-256 of the component or package, 64 hex digits.
    pub sha256: String,
    /// The registry's entry; `None` if it is built in.
    pub installed: Option<Installed>,
    /// For a built-in importer: the name of the installed one that replaces it.
    pub replaced_by: Option<String>,
}

impl Plugins {
    /// Opens the importers of the data directory whose folder of installed importers is `folder`. If their list cannot
    /// be read, only the built-in ones are used; [`Plugins::registry_error`] says why. The caller holds the lock of the
    /// data directory, since what an interrupted change left behind is removed.
    pub fn open(folder: &Path, options: PluginsOptions) -> Self {
        let registry = Registry::open(folder).inspect(Registry::remove_unlisted).inspect_err(|error| {
            tracing::error!(error = satchel_source::chain(error), "installed importers are not used");
        });
        Self::new(registry, options)
    }

    /// Creates the set of built-in importers. `cache` keeps their compiled code between starts.
    pub fn built_in(cache: Option<CodeCache>) -> Self {
        Self::new(Err(RegistryError::NoFolder), PluginsOptions { cache, compiler: None })
    }

    fn new(registry: Result<Registry, RegistryError>, options: PluginsOptions) -> Self {
        let built_in = BUILT_IN.iter().map(|one| Arc::new(Importer::new(Origin::BuiltIn(one)))).collect();
        let plugins = Self {
            options,
            pace: Throttle::default(),
            host: RetryOnce::default(),
            built_in,
            built_in_hash: OnceLock::new(),
            registry: registry.map(Mutex::new),
            in_use: RwLock::new(Arc::new([])),
        };
        match &plugins.registry {
            Ok(registry) => plugins.use_registry(&lock(registry)),
            Err(_) => plugins.set_in_use(plugins.built_in.clone()),
        }
        plugins
    }

    /// Returns why installed importers are not used, if their list cannot be read.
    pub fn registry_error(&self) -> Option<&RegistryError> {
        self.registry.as_ref().err().filter(|error| !matches!(error, RegistryError::NoFolder))
    }

    /// Returns the importers in use.
    pub fn in_use(&self) -> Arc<[Arc<Importer>]> {
        Arc::clone(&self.in_use.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the installed importers, by name, the newest version of each first.
    pub fn installed(&self) -> Vec<Installed> {
        self.registry.as_ref().map(|registry| lock(registry).installed().to_vec()).unwrap_or_default()
    }

    /// Returns the keys that are trusted or signed an installed importer.
    pub fn authors(&self) -> Vec<Author> {
        self.registry.as_ref().map(|registry| lock(registry).authors()).unwrap_or_default()
    }

    /// Returns all importers, built in and installed, sorted by name, the newest version of each first. Loads the
    /// built-in ones.
    ///
    /// # Errors
    /// A built-in importer cannot be loaded.
    pub fn list(&self) -> Result<Vec<ImporterRow>, PluginLoadError> {
        let installed = self.installed();
        let replaced = |row: &Plugin| {
            let by =
                installed.iter().filter(|one| one.state == InstalledState::Enabled && one.replaces_built_in);
            by.into_iter().find(|one| replaces(one, &row.info().name)).map(|one| one.manifest.name.clone())
        };
        let mut rows: Vec<ImporterRow> = Vec::new();
        for plugin in self.load_all()? {
            let replaced_by = replaced(&plugin);
            let satchel_host::PluginInfo { name, version, platform, importer_version, formats } =
                plugin.info().clone();
            let (sha256, newest_format) = (plugin.sha256_hex(), importer_version);
            rows.push(ImporterRow {
                name,
                version,
                platform,
                newest_format,
                formats,
                sha256,
                installed: None,
                replaced_by,
            });
        }
        rows.extend(installed.into_iter().map(|one| ImporterRow {
            name: one.manifest.name.clone(),
            version: one.manifest.version.clone(),
            platform: one.manifest.platform.clone(),
            newest_format: one.manifest.importer_version.clone(),
            formats: one.manifest.formats.clone(),
            sha256: one.sha256.clone(),
            installed: Some(one),
            replaced_by: None,
        }));
        // Stable: installed versions stay in their order, after a built-in importer of the same name.
        rows.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(rows)
    }

    /// Enables or disables an installed importer; of several versions the one in use, or the given one instead of it.
    /// Durable when this returns.
    ///
    /// # Errors
    /// It is not installed, or the registry cannot be written.
    pub fn set_enabled(
        &self,
        name: &str,
        version: Option<&str>,
        enabled: bool,
    ) -> Result<Installed, RegistryError> {
        self.change(|registry| registry.set_enabled(name, version, enabled))
            .map_err(|error| or_built_in(name, error))
    }

    /// Removes one version of an installed importer, or all of them. What it imported stays. Durable when this returns.
    ///
    /// # Errors
    /// It is not installed, or the registry cannot be written.
    pub fn remove(&self, name: &str, version: Option<&str>) -> Result<Vec<Installed>, RegistryError> {
        self.change(|registry| registry.remove(name, version)).map_err(|error| or_built_in(name, error))
    }

    /// Trusts an author's key. Returns false if it was trusted already. Durable when this returns.
    ///
    /// # Errors
    /// The registry cannot be written.
    pub fn trust(&self, key: &AuthorKey, now: i64) -> Result<bool, RegistryError> {
        self.change(|registry| registry.trust(*key, now))
    }

    /// Stops trusting an author's key, and using what it signed. Returns the names of these importers. Durable when
    /// this returns.
    ///
    /// # Errors
    /// The key is not known here, or the registry cannot be written.
    pub fn untrust(&self, key: &AuthorKey) -> Result<Vec<String>, RegistryError> {
        self.change(|registry| registry.untrust(*key))
    }

    /// Records how a run of `importer` ended. After [`MAX_FAILURES`] runs in a row that the importer itself ended badly
    /// it is disabled; returns true then. The failures of built-in importers are not counted.
    pub fn record_run(&self, importer: &Importer, outcome: Result<(), &PluginError>) -> bool {
        let Some(installed) = importer.installed() else { return false };
        let failure = match outcome {
            Ok(()) => None,
            Err(error) if is_fault(error) => Some(error.to_string()),
            // The files or the machine are at fault; this says nothing about the importer.
            Err(_) => return false,
        };
        let sha256 = &installed.sha256;
        self.change(|registry| registry.record_run(sha256, failure.as_deref(), MAX_FAILURES)).unwrap_or_else(
            |error| {
                tracing::warn!(error = satchel_source::chain(&error), "the end of a run is not recorded");
                false
            },
        )
    }

    /// Changes the registry and then the set in use.
    pub(crate) fn change<T>(
        &self,
        change: impl FnOnce(&mut Registry) -> Result<T, RegistryError>,
    ) -> Result<T, RegistryError> {
        let mut registry = self.registry()?;
        let result = change(&mut registry);
        self.use_registry(&registry);
        result
    }

    /// Returns the registry, locked.
    pub(crate) fn registry(&self) -> Result<MutexGuard<'_, Registry>, RegistryError> {
        match &self.registry {
            Ok(registry) => Ok(lock(registry)),
            Err(RegistryError::Damaged { path, reason }) => {
                Err(RegistryError::Damaged { path: path.clone(), reason: reason.clone() })
            }
            Err(RegistryError::Io { path, source }) => {
                let source = std::io::Error::new(source.kind(), source.to_string());
                Err(RegistryError::Io { path: path.clone(), source })
            }
            Err(_) => Err(RegistryError::NoFolder),
        }
    }

    /// Uses the enabled importers of the registry. An importer that was in use stays loaded.
    fn use_registry(&self, registry: &Registry) {
        let before = self.in_use();
        let enabled: Vec<&Installed> =
            registry.installed().iter().filter(|one| one.state == InstalledState::Enabled).collect();
        let replaced = |importer: &Importer| {
            enabled.iter().any(|one| one.replaces_built_in && replaces(one, importer.name()))
        };
        let mut importers: Vec<Arc<Importer>> =
            self.built_in.iter().filter(|importer| !replaced(importer)).cloned().collect();
        importers.extend(enabled.iter().map(|installed| {
            let known = before
                .iter()
                .find(|importer| importer.installed().is_some_and(|it| it.sha256 == installed.sha256));
            known.cloned().unwrap_or_else(|| {
                let path = registry.path(&installed.sha256);
                let installed = Box::new((*installed).clone());
                Arc::new(Importer::new(Origin::Installed { installed, path }))
            })
        }));
        self.set_in_use(importers);
    }

    fn set_in_use(&self, importers: Vec<Arc<Importer>>) {
        *self.in_use.write().unwrap_or_else(PoisonError::into_inner) = importers.into();
    }

    /// Returns whether an importer of this name comes with the program.
    pub fn is_built_in(name: &str) -> bool {
        BUILT_IN.iter().any(|built_in| built_in.name == name)
    }

    /// Returns the platforms that can be read without an installed importer.
    pub fn built_in_platforms() -> Vec<&'static str> {
        BUILT_IN.iter().map(|built_in| built_in.name).chain([PAM]).collect()
    }

    /// Returns the platforms that the data directory with this folder of installed importers can read.
    pub fn known_platforms(folder: &Path) -> Vec<String> {
        let installed =
            Registry::open(folder).map(|registry| registry.installed().to_vec()).unwrap_or_default();
        let platforms = Self::built_in_platforms().into_iter().map(str::to_owned);
        platforms.chain(installed.into_iter().map(|one| one.manifest.platform)).collect()
    }

    /// Returns the platforms whose exports can be read now.
    pub fn platforms(&self) -> Vec<String> {
        let mut platforms: Vec<String> =
            self.in_use().iter().map(|importer| importer.platform().to_owned()).collect();
        platforms.push(PAM.to_owned());
        platforms.sort();
        platforms.dedup();
        platforms
    }

    /// Returns whether any importer has been compiled, or read from the cache.
    pub fn loaded_any(&self) -> bool {
        self.in_use().iter().any(|importer| importer.loaded().is_some())
    }

    /// Returns the built-in importers, compiling them or reading them from the cache at the first call.
    ///
    /// # Errors
    /// One of them cannot be loaded.
    pub fn load_all(&self) -> Result<Vec<Plugin>, PluginLoadError> {
        self.load(&self.built_in).into_iter().collect()
    }

    /// Loads these importers, side by side; returns each or its error, in order.
    fn load(&self, importers: &[Arc<Importer>]) -> Vec<Result<Plugin, PluginLoadError>> {
        let next = AtomicUsize::new(0);
        let work = || {
            while let Some(importer) = importers.get(next.fetch_add(1, Ordering::Relaxed)) {
                // The iteration below retries what failed here, and returns the error.
                drop(self.load_one(importer));
            }
        };
        let missing = importers.iter().filter(|importer| importer.loaded().is_none()).count();
        thread::scope(|scope| {
            for _ in 1..MAX_PARALLEL.min(missing) {
                scope.spawn(work);
            }
            work();
        });
        importers.iter().map(|importer| self.load_one(importer)).collect()
    }

    fn load_one(&self, importer: &Importer) -> Result<Plugin, PluginLoadError> {
        if let Some(plugin) = importer.loaded() {
            return Ok(plugin.clone());
        }
        importer.load(self.host()?).cloned()
    }

    pub(crate) fn host(&self) -> Result<&Host, PluginLoadError> {
        let options = || HostOptions { cache: self.options.cache.clone(), throttle: self.pace.clone() };
        let host = self.host.get_or_try_init(|| Host::new(options()));
        host.map_err(|error| PluginLoadError::built_in("host", &error))
    }

    pub(crate) fn options(&self) -> &PluginsOptions {
        &self.options
    }

    /// Returns how the cache of compiled code was used for the importers loaded so far.
    pub fn cache(&self) -> CacheStatus {
        self.host.get().map_or(CacheStatus::Off, Host::cache)
    }

    /// Returns the pace, which makes the threads of importers pause while requests are served.
    pub fn pace(&self) -> &Throttle {
        &self.pace
    }

    /// Loads these importers and returns each or its error, in order. Returns `None` if `stop` returns true; compiling
    /// an importer takes longer than a cancellation may.
    pub fn load_until(
        self: &Arc<Self>,
        importers: &[Arc<Importer>],
        stop: &dyn Fn() -> bool,
    ) -> Option<Vec<Result<Plugin, PluginLoadError>>> {
        if importers.iter().any(|importer| importer.loaded().is_none()) {
            let (plugins, these) = (Arc::clone(self), importers.to_owned());
            let loaded = run_until(move || plugins.load(&these).len(), stop);
            if loaded.is_none() && stop() {
                return None;
            }
        }
        Some(self.load(importers))
    }

    /// Returns a value that identifies this set of importers, without compiling them.
    pub fn fingerprint(&self) -> String {
        let hasher = self.built_in_hash.get_or_init(|| {
            let mut hasher = crc32fast::Hasher::new();
            hasher.update(env!("CARGO_PKG_VERSION").as_bytes());
            for built_in in BUILT_IN {
                hasher.update(built_in.name.as_bytes());
                hasher.update(&crc32fast::hash(built_in.wasm).to_be_bytes());
            }
            hasher
        });
        let mut hasher = hasher.clone();
        let in_use = self.in_use();
        for installed in in_use.iter().filter_map(|importer| importer.installed()) {
            hasher.update(installed.sha256.as_bytes());
        }
        format!("{:08x}", hasher.finalize())
    }
}

/// Says of an importer that comes with the program that it cannot be changed, instead of that it is not installed.
fn or_built_in(name: &str, error: RegistryError) -> RegistryError {
    let built_in = matches!(error, RegistryError::NotInstalled { .. }) && Plugins::is_built_in(name);
    if built_in { RegistryError::BuiltIn { name: name.to_owned() } } else { error }
}

/// Whether an installed importer takes the place of the built-in one of this name, if the person agreed.
fn replaces(installed: &Installed, built_in: &str) -> bool {
    installed.manifest.name == built_in || installed.manifest.platform == built_in
}

/// Whether the importer itself is to blame for how its run ended.
fn is_fault(error: &PluginError) -> bool {
    matches!(
        error,
        PluginError::NoProgress(_)
            | PluginError::TooLong(_)
            | PluginError::StackOverflow
            | PluginError::OutOfBounds
            | PluginError::Memory(_)
            | PluginError::Panic(_)
            | PluginError::Trap(_)
            | PluginError::TooMuchAtOnce(_)
            | PluginError::TooMuchEmitted(_)
            | PluginError::Reported { kind: PluginErrorKind::Internal, .. }
    )
}

fn lock(registry: &Mutex<Registry>) -> MutexGuard<'_, Registry> {
    registry.lock().unwrap_or_else(PoisonError::into_inner)
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
