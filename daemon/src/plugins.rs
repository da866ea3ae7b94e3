//! The importers that came with the program, compiled when the first of them is needed.

use std::{path::PathBuf, sync::OnceLock};

use satchel_host::{Host, HostError, HostOptions, Plugin};

/// Importers, in the order in which they are asked.
pub struct Plugins {
    cache: Option<PathBuf>,
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
        Self { cache, loaded: OnceLock::new(), fingerprint: OnceLock::new() }
    }

    /// All of them, compiled or read from the cache at the first call.
    ///
    /// # Errors
    /// When one of them does not load.
    pub fn all(&self) -> Result<&[Plugin], PluginsError> {
        let loaded = self.loaded.get_or_init(|| load(self.cache.clone()));
        loaded.as_deref().map_err(Clone::clone)
    }

    /// Tells this set of importers from any other, without compiling them.
    pub fn fingerprint(&self) -> &str {
        self.fingerprint.get_or_init(|| {
            let mut all = env!("CARGO_PKG_VERSION").as_bytes().to_vec();
            for built_in in satchel_plugins::BUILT_IN {
                all.extend_from_slice(built_in.name.as_bytes());
                all.extend_from_slice(&crc32fast::hash(built_in.wasm).to_be_bytes());
            }
            format!("{:08x}", crc32fast::hash(&all))
        })
    }
}

fn load(cache_dir: Option<PathBuf>) -> Result<Vec<Plugin>, PluginsError> {
    let failed =
        |name: &str, error: &HostError| PluginsError { name: name.to_owned(), problem: crate::chain(error) };
    let host = Host::new(HostOptions { cache_dir }).map_err(|error| failed("host", &error))?;
    satchel_plugins::BUILT_IN
        .iter()
        .map(|built_in| host.load(built_in.wasm).map_err(|error| failed(built_in.name, &error)))
        .collect()
}
