//! A data directory under test, driven through the same library calls as in the daemon.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, Result, bail, ensure};
use satchel_core::{
    clock::{Clock, SystemClock},
    data_dir,
    export::{ExportFormat, ExportRecord, ExportRequest, Exports, Extent, Selection},
    ingest::{Apply, ImportRequest, Imports, Phase, receipt::ImportRecord},
    trust,
};
use satchel_host::{CodeCache, PluginLimits};
use satchel_pam::sign::PublicKey;
use satchel_registry::{Plugins, PluginsOptions};
use satchel_source::{Limits, envelope::DecryptionKeys};
use satchel_store::{Durability, Ledger, LedgerWrite, OpenOptions, Store};
use serde_json::Value;

/// Time limit to stop an import.
const STOP_TIMEOUT: Duration = Duration::from_mins(2);
/// Processor time without progress of an installed plugin.
const IDLE_TIME: Duration = Duration::from_secs(3);

/// An opened data directory.
pub struct TestCore {
    /// The store.
    pub store: Store,
    /// Runs imports into the store.
    pub imports: Imports,
    /// Runs exports of the store.
    pub exports: Exports,
}

impl TestCore {
    /// Opens the data directory `dir`, or creates it.
    ///
    /// # Errors
    /// If the store cannot be opened.
    pub fn open(dir: &Path) -> Result<Self> {
        Self::with_limits(dir, Limits::default())
    }

    /// Opens `dir` with custom limits.
    ///
    /// # Errors
    /// If the store cannot be opened.
    pub fn with_limits(dir: &Path, limits: Limits) -> Result<Self> {
        Self::with_limits_and_clock(dir, limits, Arc::new(SystemClock))
    }

    /// Opens `dir` with custom limits and a custom clock.
    ///
    /// # Errors
    /// If the store cannot be opened.
    pub fn with_limits_and_clock(dir: &Path, limits: Limits, clock: Arc<dyn Clock>) -> Result<Self> {
        // All tests share one cache: compiling the importers again for each test would take most of its time.
        let plugins = Arc::new(Plugins::built_in(Some(code_cache())));
        Self::with_plugins(dir, plugins, (limits, PluginLimits::default()), clock)
    }

    /// Opens `dir` with these importers, whose installed ones are in its folder `plugins`.
    ///
    /// # Errors
    /// If the store cannot be opened.
    pub fn with_installed_plugins(dir: &Path) -> Result<(Self, Arc<Plugins>)> {
        let options = PluginsOptions { cache: Some(code_cache()), compiler: None };
        let plugins = Arc::new(Plugins::open(&dir.join(data_dir::PLUGINS), options));
        // A plugin that hangs ends sooner than with the default limits.
        let limits = PluginLimits { idle: IDLE_TIME, ..PluginLimits::default() };
        let clock = Arc::new(SystemClock);
        let core = Self::with_plugins(dir, Arc::clone(&plugins), (Limits::default(), limits), clock)?;
        Ok((core, plugins))
    }

    fn with_plugins(
        dir: &Path,
        plugins: Arc<Plugins>,
        (limits, plugin_limits): (Limits, PluginLimits),
        clock: Arc<dyn Clock>,
    ) -> Result<Self> {
        let store = Store::open(dir, OpenOptions::default(), &mut |_| {})?;
        let imports = Imports::new(store.clone(), plugins, Arc::clone(&clock), limits, plugin_limits)?;
        let exports = Exports::new(store.clone(), clock, dir.join("keys"));
        let signers = exports.clone();
        imports.know_signers(move || signers.public_keys());
        Ok(Self { store, imports, exports })
    }

    /// Imports `path` and waits until the import has ended.
    ///
    /// # Errors
    /// If the job cannot be started.
    pub fn import(&self, path: &Path) -> Result<Vec<ImportRecord>> {
        self.run(ImportRequest {
            path: path.to_owned(),
            provider: None,
            plugin: None,
            again: false,
            dry_run: false,
            apply: None,
        })
    }

    /// Imports `path` even if it was imported before.
    ///
    /// # Errors
    /// If the job cannot be started.
    pub fn import_again(&self, path: &Path) -> Result<Vec<ImportRecord>> {
        self.run(ImportRequest {
            path: path.to_owned(),
            provider: None,
            plugin: None,
            again: true,
            dry_run: false,
            apply: None,
        })
    }

    /// Merges a PAM document under the default rules, which override no check, and waits until the merge has ended.
    ///
    /// # Errors
    /// If the job cannot be started.
    pub fn apply(&self, path: &Path) -> Result<ImportRecord> {
        self.apply_with(path, false, Apply::default())
    }

    /// Merges a PAM document under the given rules. The owner is always taken from the store.
    ///
    /// # Errors
    /// If the job cannot be started or several documents are found.
    pub fn apply_with(&self, path: &Path, dry_run: bool, rules: Apply) -> Result<ImportRecord> {
        let apply = Some(Apply { owner: self.exports.owner()?, ..rules });
        only_import(self.run(ImportRequest {
            path: path.to_owned(),
            provider: None,
            plugin: None,
            again: false,
            dry_run,
            apply,
        })?)
    }

    /// Runs an import.
    ///
    /// # Errors
    /// If the job cannot be started.
    pub fn run(&self, request: ImportRequest) -> Result<Vec<ImportRecord>> {
        self.run_with_keys(request, None)
    }

    /// Runs an import of a source that `keys` can decrypt.
    ///
    /// # Errors
    /// If the job cannot be started.
    pub fn run_with_keys(
        &self,
        request: ImportRequest,
        keys: Option<DecryptionKeys>,
    ) -> Result<Vec<ImportRecord>> {
        let job = self.imports.start_with(request, keys)?;
        let mut view = self.imports.subscribe(job).context("the job is gone")?;
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        let ended = runtime.block_on(view.wait_for(|view| view.phase == Phase::Ended))?.clone();
        Ok(ended.imports)
    }

    /// Adds this key to the trusted signers.
    ///
    /// # Errors
    /// If the text is not a key or the store rejects it.
    pub fn trust(&self, key: &str) -> Result<()> {
        trust::add(&self.store, &PublicKey::parse(key)?, 0)?;
        Ok(())
    }

    /// Writes a full bundle to `output`.
    ///
    /// # Errors
    /// If the export fails.
    pub fn export(&self, output: &Path) -> Result<ExportRecord> {
        self.export_as(ExportFormat::Pam, output)
    }

    /// Writes a full export in the given format.
    ///
    /// # Errors
    /// If the export fails.
    pub fn export_as(&self, format: ExportFormat, output: &Path) -> Result<ExportRecord> {
        self.export_extent(format, Extent::Full, output)
    }

    /// Writes the changes since the latest full export, or since the one named by `base`.
    ///
    /// # Errors
    /// If the export fails.
    pub fn export_changes(&self, base: Option<&str>, output: &Path) -> Result<ExportRecord> {
        let base = base.map(str::to_owned);
        self.export_extent(ExportFormat::Pam, Extent::Incremental { base }, output)
    }

    fn export_extent(&self, format: ExportFormat, extent: Extent, output: &Path) -> Result<ExportRecord> {
        let output = output.to_owned();
        self.export_with(&ExportRequest { extent, format, ..full_export(output) })
    }

    /// Runs an export.
    ///
    /// # Errors
    /// If the export fails.
    pub fn export_with(&self, request: &ExportRequest) -> Result<ExportRecord> {
        Ok(self.exports.create(request)?)
    }

    /// Returns everything that the store shows, as documents without the parts that depend on time and place: memories
    /// and relations unchanged, conversations without `import_metadata`.
    ///
    /// # Errors
    /// If the export fails.
    pub fn state(&self) -> Result<ExportedState> {
        let dir = tempfile::tempdir()?;
        let bundle = dir.path().join("bundle");
        self.export(&bundle)?;
        ExportedState::read(&bundle)
    }

    /// Records that an export of this size was imported, as the ledger does when an import ends. Another export of the
    /// same size is then hashed before it is read.
    ///
    /// # Errors
    /// If the store rejects the write.
    pub fn record_source_size(&self, bytes: u64) -> Result<()> {
        self.write_source_entries(["sizes".to_owned(), format!("bytes:{bytes}")], b"1")
    }

    /// Removes all records of sizes, as if the exports had been imported by a version that did not write them.
    ///
    /// # Errors
    /// If the store rejects the write.
    pub fn remove_source_sizes(&self, bytes: &[u64]) -> Result<()> {
        let sizes = bytes.iter().map(|bytes| format!("bytes:{bytes}"));
        self.write_source_entries(sizes.chain(["sizes".to_owned()]), b"")
    }

    fn write_source_entries(&self, ids: impl IntoIterator<Item = String>, value: &[u8]) -> Result<()> {
        for id in ids {
            let (ledger, value) = (Ledger::Source, value.to_vec());
            let write = LedgerWrite::Entry { ledger, id, at_micros: 0, value };
            self.store.put_ledger(write, Durability::WithNextCommit)?;
        }
        Ok(())
    }

    /// Closes the store cleanly.
    ///
    /// # Errors
    /// If the last bytes cannot be written.
    pub fn close(self) -> Result<()> {
        Ok(self.into_store()?.close()?)
    }

    /// Returns the store once no import uses it any more.
    ///
    /// # Errors
    /// If an import does not stop.
    pub fn into_store(self) -> Result<Store> {
        ensure!(self.imports.stop(STOP_TIMEOUT), "an import does not stop");
        Ok(self.store)
    }
}

/// The content of a bundle, comparable between data directories.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExportedState {
    /// The `memories` of the bundle.
    pub memories: Vec<Value>,
    /// The `relations` of the bundle.
    pub relations: Vec<Value>,
    /// The conversations by file name.
    pub conversations: BTreeMap<String, Value>,
}

impl ExportedState {
    /// Reads the state from a bundle.
    ///
    /// # Errors
    /// If the bundle is incomplete.
    pub fn read(bundle: &Path) -> Result<Self> {
        let store: Value = serde_json::from_slice(&std::fs::read(bundle.join("memory-store.json"))?)?;
        let list = |key: &str| store[key].as_array().cloned().unwrap_or_default();
        let mut conversations = BTreeMap::new();
        let folder = bundle.join("conversations");
        if folder.is_dir() {
            for entry in std::fs::read_dir(folder)? {
                let path = entry?.path();
                let mut conversation: Value = serde_json::from_slice(&std::fs::read(&path)?)?;
                if let Some(object) = conversation.as_object_mut() {
                    object.remove("import_metadata");
                }
                let name = path.file_name().context("a file has a name")?.to_string_lossy().into_owned();
                conversations.insert(name, conversation);
            }
        }
        Ok(Self { memories: list("memories"), relations: list("relations"), conversations })
    }
}

/// Returns the request for a full export of everything to `output`, in PAM.
#[must_use]
pub fn full_export(output: PathBuf) -> ExportRequest {
    ExportRequest {
        output,
        format: ExportFormat::Pam,
        conversations: true,
        attachments: false,
        extent: Extent::Full,
        selection: Selection::default(),
        lock: None,
    }
}

/// Returns the only import of a job.
///
/// # Errors
/// If there are none or several.
pub fn only_import(imports: Vec<ImportRecord>) -> Result<ImportRecord> {
    match <[ImportRecord; 1]>::try_from(imports) {
        Ok([import]) => Ok(import),
        Err(imports) => bail!("one import was expected, not {imports:?}"),
    }
}

/// Returns the folder of sample exports beside the repository, which exists only on development machines.
pub fn shared_samples() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/fixtures");
    folder.is_dir().then_some(folder)
}

/// Returns the folder of sample exports that ships with the program for its demonstration.
pub fn demo_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../daemon/demo")
}

/// Returns the cache of compiled importers, which all tests of a user share.
#[must_use]
pub fn code_cache() -> CodeCache {
    let own = format!("satchel-test-cache-{}", rustix::process::geteuid().as_raw());
    let own = std::env::temp_dir().join(own);
    CodeCache { folder: own.join("code"), key_file: own.join("key/code-cache.key") }
}
