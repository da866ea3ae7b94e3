//! A compiled importer, ready to detect exports and to read one.

use std::{collections::BTreeSet, sync::Arc};

use satchel_pam::hash::Sha256Digest;
use satchel_source::{CancelToken, FileSet};
use sha2::{Digest as _, Sha256};

use crate::{
    bindings::{ImporterPre, exports::satchel::importer::plugin as wit},
    emitted::{Emitted, RunSummary, SinkVerdict},
    error::PluginError,
    info::PluginInfo,
    limits::PluginLimits,
    memo::PieceMemo,
    run::{self, CallState},
    runtime::Runtime,
    text,
};

/// A compiled importer. Clones share the code. Each run has its own memory, so runs may overlap.
#[derive(Clone)]
pub struct Plugin(Arc<LoadedPlugin>);

struct LoadedPlugin {
    runtime: Arc<Runtime>,
    pre: ImporterPre<CallState>,
    info: PluginInfo,
    imports: Vec<String>,
    sha256: [u8; 32],
}

/// One export that a plugin found among the files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detection {
    /// One of the plugin's formats.
    pub format: String,
    /// 0 to 100. If two plugins claim a file, the higher value wins.
    pub confidence: u8,
    /// The files that belong to the export. Each is one of the files the plugin was given, and none is repeated.
    pub files: Vec<String>,
    /// The account that the export belongs to, if the files say so.
    pub account: Option<String>,
}

impl Plugin {
    pub(crate) fn new(
        runtime: Arc<Runtime>,
        pre: ImporterPre<CallState>,
        info: PluginInfo,
        imports: Vec<String>,
        wasm: &[u8],
    ) -> Self {
        let sha256 = Sha256::digest(wasm).into();
        Self(Arc::new(LoadedPlugin { runtime, pre, info, imports, sha256 }))
    }

    /// Returns the plugin's checked description of itself.
    pub fn info(&self) -> &PluginInfo {
        &self.0.info
    }

    /// Returns the SHA-256 of the component.
    pub fn sha256(&self) -> [u8; 32] {
        self.0.sha256
    }

    /// Returns the SHA-256 as 64 lower-case hex digits.
    pub fn sha256_hex(&self) -> String {
        Sha256Digest::from_bytes(self.0.sha256).to_hex()
    }

    /// Returns the interfaces that it imports, such as `satchel:importer/files@1.0.0`.
    pub fn imports(&self) -> &[String] {
        &self.0.imports
    }

    /// Lets the plugin look for its exports among `files`. It may use 1 s of processor time and read 16 MiB of each
    /// file. Wrong claims (a format or a file that does not exist) are left out and logged.
    pub fn detect(&self, files: Arc<dyn FileSet>) -> Result<Vec<Detection>, PluginError> {
        let known: BTreeSet<String> = files.list().iter().map(|entry| entry.path.clone()).collect();
        let found = run::detect(&self.0.runtime, &self.0.pre, files)?;
        Ok(found.into_iter().filter_map(|detection| self.detection_from_wit(detection, &known)).collect())
    }

    /// Reads the export in `files`, which should be the files of one detection only.
    ///
    /// The plugin runs on its own thread and waits while [`PluginLimits::queue_bytes`] of records wait for `sink`.
    /// `sink` is called on the calling thread. A conversation is delivered as a whole, when the next one begins or the
    /// run succeeds. After `sink` returns [`SinkVerdict::Stop`] or `cancel` is set, nothing more is delivered, and the
    /// run ends within a second with [`PluginError::Cancelled`].
    pub fn run(
        &self,
        files: Arc<dyn FileSet>,
        format: &str,
        limits: &PluginLimits,
        cancel: &CancelToken,
        sink: &mut dyn FnMut(Emitted) -> SinkVerdict,
    ) -> Result<RunSummary, PluginError> {
        self.run_with_memo(files, format, limits, cancel, None, sink)
    }

    /// Does the same as [`Plugin::run`], with the results of earlier runs: a piece that `memo` knows need not be read
    /// again.
    pub fn run_with_memo(
        &self,
        files: Arc<dyn FileSet>,
        format: &str,
        limits: &PluginLimits,
        cancel: &CancelToken,
        memo: Option<Arc<dyn PieceMemo>>,
        sink: &mut dyn FnMut(Emitted) -> SinkVerdict,
    ) -> Result<RunSummary, PluginError> {
        if !self.0.info.formats.iter().any(|known| known == format) {
            return Err(PluginError::UnknownFormat(format.to_owned()));
        }
        let memo = memo.map(|memo| (memo, format!("{}/{}", self.0.info.name, self.0.info.version)));
        let job = run::PluginRun { files, format, limits, cancel, memo };
        run::run(&self.0.runtime, &self.0.pre, &job, sink)
    }

    fn detection_from_wit(&self, detection: wit::Detection, known: &BTreeSet<String>) -> Option<Detection> {
        let wit::Detection { format, confidence, files, account } = detection;
        let plugin = &self.0.info.name;
        if !self.0.info.formats.contains(&format) {
            tracing::warn!(
                plugin,
                format = text::clean(&format),
                "a detection of an undeclared format is left out"
            );
            return None;
        }
        let mut seen = BTreeSet::new();
        let claimed = files.len();
        let files: Vec<String> =
            files.into_iter().filter(|file| known.contains(file) && seen.insert(file.clone())).collect();
        if files.len() < claimed {
            tracing::warn!(
                plugin,
                format,
                claimed,
                kept = files.len(),
                "claimed files that are not there are left out"
            );
        }
        let account = account.map(text::clean_owned).filter(|account| !account.is_empty());
        (!files.is_empty()).then(|| Detection { format, confidence: confidence.min(100), files, account })
    }
}
