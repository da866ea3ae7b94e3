//! The engine that compiles and runs plugins.

use std::{
    fs,
    num::NonZeroUsize,
    os::unix::fs::{DirBuilderExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use wasmtime::{
    Cache, CacheConfig, Config, Engine,
    component::{Component, HasSelf, Linker},
};

use crate::{
    bindings::{Importer, ImporterPre},
    error::HostError,
    info, inspect,
    pace::Pace,
    plugin::Plugin,
    run::{self, State},
    ticker::Ticker,
};

/// Native stack that a plugin may use, in bytes.
const MAX_WASM_STACK: usize = 1 << 20;
/// Frames named in a trap; endless recursion would name hundreds.
const MAX_FRAMES: usize = 16;

/// How a host is set up.
#[derive(Clone, Debug, Default)]
pub struct HostOptions {
    /// An absolute path where compiled plugins are kept, made with mode 0700; none: each load compiles. What lies
    /// there runs as native code, so nobody else may write to it.
    pub cache_dir: Option<PathBuf>,
    /// What makes room for questions while plugins run.
    pub pace: Pace,
}

/// The engine. One for a process; plugins that it loaded stay usable after it is dropped.
pub struct Host(Arc<Inner>);

pub(crate) struct Inner {
    engine: Engine,
    cache: Option<Cache>,
    linker: Linker<State>,
    pub(crate) pace: Pace,
    pub(crate) ticker: Ticker,
}

impl Host {
    /// Starts the engine and its clock.
    pub fn new(options: HostOptions) -> Result<Self, HostError> {
        let HostOptions { cache_dir, pace } = options;
        let cache = cache_dir.as_deref().map(open_cache).transpose()?;
        let engine = Engine::new(&config(cache.clone())).map_err(|error| engine_error(&error))?;
        let mut linker = Linker::new(&engine);
        Importer::add_to_linker::<State, HasSelf<State>>(&mut linker, |state| state)
            .map_err(|error| engine_error(&error))?;
        let ticker =
            Ticker::start(engine.clone()).map_err(|error| HostError::Engine { reason: error.to_string() })?;
        Ok(Self(Arc::new(Inner { engine, cache, linker, pace, ticker })))
    }

    /// Checks and compiles a component, and lets it describe itself. The first time takes up to a second for each
    /// MiB, with a cache later ones take a millisecond.
    pub fn load(&self, wasm: &[u8]) -> Result<Plugin, HostError> {
        let imports = inspect::inspect(wasm)?;
        let invalid = |error: wasmtime::Error| HostError::Invalid { reason: format!("{error:#}") };
        if self.0.cache.is_some() {
            // An engine keeps the memory of its compiler, some 25 MiB, as long as it lives. This one only fills the cache.
            let compiling =
                Engine::new(&config(self.0.cache.clone())).map_err(|error| engine_error(&error))?;
            Component::new(&compiling, wasm).map_err(invalid)?;
        }
        let component = Component::new(&self.0.engine, wasm).map_err(invalid)?;
        let pre = self.0.linker.instantiate_pre(&component).and_then(ImporterPre::new).map_err(|error| {
            HostError::Mismatch { offered: inspect::API_VERSION.to_owned(), reason: format!("{error:#}") }
        })?;
        let described = run::describe(&self.0, &pre).map_err(HostError::Describe)?;
        Ok(Plugin::new(Arc::clone(&self.0), pre, info::from_wit(described)?, imports, wasm))
    }
}

impl Inner {
    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }
}

fn config(cache: Option<Cache>) -> Config {
    let mut config = Config::new();
    config
        .wasm_component_model(true)
        .epoch_interruption(true)
        .max_wasm_stack(MAX_WASM_STACK)
        .wasm_backtrace_max_frames(NonZeroUsize::new(MAX_FRAMES))
        // Off what no importer needs: less compiler to trust.
        .wasm_memory64(false)
        .wasm_multi_memory(false)
        // The same result on every processor.
        .wasm_relaxed_simd(false)
        .cranelift_nan_canonicalization(true)
        .cache(cache);
    config
}

/// Opens wasmtime's own cache in a folder that only this user can reach: what lies there is run as native code.
fn open_cache(path: &Path) -> Result<Cache, HostError> {
    let refused = |reason: String| HostError::Cache { path: path.to_owned(), reason };
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.and_then(|()| fs::set_permissions(path, fs::Permissions::from_mode(0o700)))
        .map_err(|error| refused(error.to_string()))?;
    let mut config = CacheConfig::new();
    config.with_directory(path);
    Cache::new(config).map_err(|error| refused(format!("{error:#}")))
}

fn engine_error(error: &wasmtime::Error) -> HostError {
    HostError::Engine { reason: format!("{error:#}") }
}
