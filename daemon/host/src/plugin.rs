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
pub struct Plugin {
    loaded: Arc<LoadedPlugin>,
    /// The name under which its notes on pieces are remembered.
    memo_scope: Arc<str>,
}

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
        let memo_scope = format!("{}/{}", info.name, info.version).into();
        Self { loaded: Arc::new(LoadedPlugin { runtime, pre, info, imports, sha256 }), memo_scope }
    }

    /// Returns the plugin with another name for what it remembers of pieces, instead of its name and version.
    #[must_use]
    pub fn with_memo_scope(self, scope: impl Into<Arc<str>>) -> Self {
        Self { memo_scope: scope.into(), ..self }
    }

    /// Returns the plugin's checked description of itself.
    pub fn info(&self) -> &PluginInfo {
        &self.loaded.info
    }

    /// Returns the SHA-256 of the component.
    pub fn sha256(&self) -> [u8; 32] {
        self.loaded.sha256
    }

    /// Returns the SHA-256 as 64 lower-case hex digits.
    pub fn sha256_hex(&self) -> String {
        Sha256Digest::from_bytes(self.loaded.sha256).to_hex()
    }

    /// Returns the interfaces that it imports, such as `satchel:importer/files@1.0.0`.
    pub fn imports(&self) -> &[String] {
        &self.loaded.imports
    }

    /// Lets the plugin look for its exports among `files`. It may use 1 s of processor time and read 16 MiB of each
    /// file. Wrong claims (a format or a file that does not exist) are left out and logged.
    pub fn detect(&self, files: Arc<dyn FileSet>) -> Result<Vec<Detection>, PluginError> {
        self.detect_reporting(files, &mut |problem| {
            tracing::warn!(plugin = self.loaded.info.name, problem, "a wrong claim is left out");
        })
    }

    /// Does the same as [`Plugin::detect`], and calls `report` with each wrong claim.
    pub fn detect_reporting(
        &self,
        files: Arc<dyn FileSet>,
        report: &mut dyn FnMut(String),
    ) -> Result<Vec<Detection>, PluginError> {
        let known: BTreeSet<String> = files.list().iter().map(|entry| entry.path.clone()).collect();
        let found = run::detect(&self.loaded.runtime, &self.loaded.pre, files)?;
        let checked = found.into_iter();
        Ok(checked.filter_map(|detection| self.detection_from_wit(detection, &known, report)).collect())
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
        if !self.loaded.info.formats.iter().any(|known| known == format) {
            return Err(PluginError::UnknownFormat(format.to_owned()));
        }
        let memo = memo.map(|memo| (memo, self.memo_scope.to_string()));
        let job = run::PluginRun { files, format, limits, cancel, memo };
        run::run(&self.loaded.runtime, &self.loaded.pre, &job, sink)
    }

    fn detection_from_wit(
        &self,
        detection: wit::Detection,
        known: &BTreeSet<String>,
        report: &mut dyn FnMut(String),
    ) -> Option<Detection> {
        let wit::Detection { format, confidence, files, account } = detection;
        if !self.loaded.info.formats.contains(&format) {
            report(format!("the format \"{}\" is none that it declares", text::clean(&format)));
            return None;
        }
        if confidence > 100 {
            report(format!("the confidence {confidence} is more than 100"));
        }
        let mut seen = BTreeSet::new();
        let (files, left_out): (Vec<String>, Vec<String>) =
            files.into_iter().partition(|file| known.contains(file) && seen.insert(file.clone()));
        if let Some(first) = left_out.first() {
            let (count, first) = (left_out.len(), text::clean(first));
            report(format!("{count} of its files do not exist or are claimed twice, such as \"{first}\""));
        }
        let account = account.map(text::clean_owned).filter(|account| !account.is_empty());
        (!files.is_empty()).then(|| Detection { format, confidence: confidence.min(100), files, account })
    }
}
