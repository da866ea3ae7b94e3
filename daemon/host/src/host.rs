//! The host: checks, compiles and loads plugins.

use std::{
    num::NonZeroUsize,
    panic::{self, AssertUnwindSafe},
    path::Path,
    sync::Arc,
};

use wasmtime::{
    Cache, CacheConfig, Config, Engine,
    component::{Component, HasSelf, Linker},
};

use crate::{
    bindings::{Importer, ImporterPre},
    cache::{CacheStatus, CodeCache, CodeIdentity, CompiledCode, OpenCache},
    error::HostError,
    info, inspect,
    plugin::Plugin,
    run::{self, CallState},
    runtime::Runtime,
    throttle::Throttle,
    ticker::Ticker,
};

/// Native stack that a plugin may use, in bytes.
const MAX_WASM_STACK: usize = 1 << 20;
/// Frames listed in a trap; an endless recursion would list hundreds.
const MAX_FRAMES: usize = 16;

/// Options of a host.
#[derive(Clone, Debug, Default)]
pub struct HostOptions {
    /// Location of the code cache. Without one, or if it cannot be trusted, each load compiles.
    pub cache: Option<CodeCache>,
    /// The throttle that lets requests run while plugins work.
    pub throttle: Throttle,
}

/// A loader of plugins, one per process. Loaded plugins stay usable after the host is dropped.
pub struct Host {
    runtime: Arc<Runtime>,
    cache: Result<OpenCache, CacheStatus>,
    linker: Linker<CallState>,
}

impl Host {
    /// Creates the engine and starts its ticker.
    pub fn new(options: HostOptions) -> Result<Self, HostError> {
        let HostOptions { cache, throttle } = options;
        let cache = open_cache(cache.as_ref());
        let folder = cache.as_ref().ok().map(|cache| cache.scratch().path());
        let engine = engine(folder)?;
        let mut linker = Linker::new(&engine);
        Importer::add_to_linker::<CallState, HasSelf<CallState>>(&mut linker, |state| state)
            .map_err(|error| engine_error(&error))?;
        let ticker =
            Ticker::start(engine.clone()).map_err(|error| HostError::Engine { reason: error.to_string() })?;
        let runtime = Arc::new(Runtime { engine, throttle, ticker });
        Ok(Self { runtime, cache, linker })
    }

    /// Checks and compiles a component, and asks it to describe itself. The first load takes up to a second for each
    /// MiB; with a cache, later loads take a millisecond.
    pub fn load(&self, wasm: &[u8]) -> Result<Plugin, HostError> {
        let imports = inspect::inspect(wasm)?;
        let component = contain_panic(|| {
            if let Ok(cache) = &self.cache {
                self.prepare(cache, wasm)?;
            }
            Component::new(&self.runtime.engine, wasm).map_err(|error| invalid(&error))
        })?;
        let pre = self.linker.instantiate_pre(&component).and_then(ImporterPre::new).map_err(|error| {
            HostError::Mismatch { offered: inspect::API_VERSION.to_owned(), reason: format!("{error:#}") }
        })?;
        let described = run::describe(&self.runtime, &pre).map_err(HostError::Describe)?;
        Ok(Plugin::new(Arc::clone(&self.runtime), pre, info::from_wit(described)?, imports, wasm))
    }

    /// Returns whether the configured cache is in use.
    pub fn cache(&self) -> CacheStatus {
        match &self.cache {
            Ok(cache) => cache.status(),
            Err(why) => why.clone(),
        }
    }

    /// Puts the code of a component where wasmtime finds it: code from the cache, or newly compiled code. If the disk
    /// refuses, wasmtime finds nothing and compiles by itself.
    fn prepare(&self, cache: &OpenCache, wasm: &[u8]) -> Result<(), HostError> {
        let identity = CodeIdentity::of(&self.runtime.engine, wasm);
        let code = match cache.get(&identity) {
            Some(code) => Some(code),
            None => compile(cache, wasm)?.inspect(|code| cache.put(&identity, code)),
        };
        if let Some(error) = code.and_then(|code| cache.scratch().install(&code).err()) {
            tracing::debug!(%error, "compiled code cannot be installed");
        }
        Ok(())
    }
}

/// Turns a panic of the compiler, which would be a bug in it, into an error about the component.
fn contain_panic<T>(compile: impl FnOnce() -> Result<T, HostError>) -> Result<T, HostError> {
    panic::catch_unwind(AssertUnwindSafe(compile)).unwrap_or_else(|_| {
        Err(HostError::Invalid { reason: "the compiler cannot compile it; please report this".to_owned() })
    })
}

/// Compiles a component in a separate engine. An engine keeps the memory of its compiler, about 25 MiB, as long as it
/// exists; this engine is dropped here.
fn compile(cache: &OpenCache, wasm: &[u8]) -> Result<Option<CompiledCode>, HostError> {
    let log_uncached = |error: &std::io::Error| tracing::debug!(%error, "compiled code cannot be cached");
    let folder = match cache.scratch().subfolder() {
        Ok(folder) => folder,
        Err(error) => {
            log_uncached(&error);
            return Ok(None);
        }
    };
    Component::new(&engine(Some(folder.path()))?, wasm).map_err(|error| invalid(&error))?;
    Ok(folder.compiled_code().inspect_err(log_uncached).ok().flatten())
}

fn config(cache: Option<Cache>) -> Config {
    let mut config = Config::new();
    config
        .wasm_component_model(true)
        .epoch_interruption(true)
        .max_wasm_stack(MAX_WASM_STACK)
        .wasm_backtrace_max_frames(NonZeroUsize::new(MAX_FRAMES))
        // Disable features that no importer needs, so that less of the compiler must be trusted.
        .wasm_memory64(false)
        // These settings give the same result on every processor.
        .wasm_relaxed_simd(false)
        .cranelift_nan_canonicalization(true)
        .cache(cache);
    config
}

/// Opens the cache, or returns the reason for not using one.
fn open_cache(options: Option<&CodeCache>) -> Result<OpenCache, CacheStatus> {
    let options = options.ok_or(CacheStatus::Off)?;
    OpenCache::open(options).map_err(|error| {
        let reason = format!("{:?} or {:?} cannot be used: {error}", options.folder, options.key_file);
        tracing::debug!(reason, "importers are compiled at each start");
        CacheStatus::Unusable { reason }
    })
}

/// Creates an engine whose cache is `folder`. This process must have created the folder for itself alone, because
/// wasmtime runs its content as native code.
fn engine(folder: Option<&Path>) -> Result<Engine, HostError> {
    let cache = folder.map(|folder| {
        let mut config = CacheConfig::new();
        config.with_directory(folder);
        Cache::new(config)
    });
    let cache = cache.transpose().map_err(|error| engine_error(&error))?;
    Engine::new(&config(cache)).map_err(|error| engine_error(&error))
}

fn invalid(error: &wasmtime::Error) -> HostError {
    HostError::Invalid { reason: format!("{error:#}") }
}

fn engine_error(error: &wasmtime::Error) -> HostError {
    HostError::Engine { reason: format!("{error:#}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_the_compiler_is_an_error() {
        let refused = contain_panic::<()>(|| panic::resume_unwind(Box::new("a bug")));
        assert!(matches!(refused, Err(HostError::Invalid { .. })));
    }
}
