//! Opens all that the daemon serves.

use std::{net::SocketAddr, path::Path, sync::Arc};

use satchel_core::{
    clock::{self, Clock, SystemClock},
    data_dir,
    export::{ExportSettings, Exports},
    ingest::Imports,
    open_store, purge,
    uploads::Uploads,
    vault,
};
use satchel_indexer::Indexer;
use satchel_registry::{Plugins, PluginsOptions};
use satchel_seal::Seal;
use satchel_search::index::IndexLocation;
use satchel_store::{OpenEvent, OpenOptions, Store};
use satchel_watch::Watch;

use super::RunError;
use crate::{
    config::Config,
    devices::{self, Devices},
    embeddings::Embedder,
    grpc::{
        ServerState, listing_cache::ListingCache, observe_revisions, operation::Operations,
        page_token::PageKey, short_reads::ShortReads,
    },
    peers::{Peers, PeersContext},
};

/// Opens all that the daemon serves, for a test.
///
/// # Errors
/// As for [`run`](super::run).
#[cfg(test)]
pub(crate) fn open(
    config: &Config,
    allow_read_only: bool,
    address: Option<SocketAddr>,
    notice: impl FnMut(&OpenEvent),
) -> Result<(ServerState, Vec<String>), RunError> {
    let (state, notices, _) = open_with(config, allow_read_only, address, None, notice)?;
    Ok((state, notices))
}

/// Opens all that the daemon serves, and returns it with notices for the user. The store is opened with `options` if it was open before, and
/// else as the configuration says; the options are returned as well.
///
/// # Errors
/// As for [`run`](super::run).
pub(super) fn open_with(
    config: &Config,
    allow_read_only: bool,
    address: Option<SocketAddr>,
    options: Option<OpenOptions>,
    mut notice: impl FnMut(&OpenEvent),
) -> Result<(ServerState, Vec<String>, OpenOptions), RunError> {
    let data_dir = config.data_dir.clone();
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    clock::check(clock.now_micros())?;
    data_dir::prepare(&data_dir, config.allow_other_owner)?;
    let mut notices = Vec::new();
    let options = match options {
        Some(options) => options,
        None => vault::open_options(&config.data_dir, &config.unlock, config.cache_bytes)?,
    };
    let seal = options.seal.clone();
    let mut opened = || {
        let mut report = |event: OpenEvent| {
            notice(&event);
            notices.extend(open_notice(&event));
        };
        if !allow_read_only {
            return Store::open(&data_dir, options.clone(), &mut report);
        }
        let (store, read_only_reason) =
            open_store::open_or_read_only(&data_dir, options.clone(), &mut report)?;
        notices.extend(
            read_only_reason
                .map(|why| format!("the store is open read-only, because nothing can be written: {why}")),
        );
        Ok(store)
    };
    let store = opened()?;
    let store = purge::complete(&data_dir, store, seal.as_ref(), &mut opened)?;
    vault::confirm(&data_dir);
    let plugins_options =
        PluginsOptions { cache: config.code_cache.clone(), compiler: config.plugin_compiler.clone() };
    let plugins = Arc::new(Plugins::open(&config.data_dir.join(data_dir::PLUGINS), plugins_options));
    let limits = satchel_host::PluginLimits::default();
    let imports = Imports::new(
        store.clone(),
        Arc::clone(&plugins),
        Arc::clone(&clock),
        config.import_limits.clone(),
        limits,
    )?;
    imports.set_secret_handling(config.secrets);
    let watch =
        Watch::new(store.clone(), imports.clone(), Arc::clone(&clock), data_dir.clone(), &config.watching)?;
    let keys = data_dir.join("keys");
    let settings = ExportSettings {
        renewal: config.renewal,
        did: config.owner_did.clone(),
        type_registry: config.type_registry.clone(),
    };
    let exports = Exports::with_settings(store.clone(), Arc::clone(&clock), keys, settings);
    let signers = exports.clone();
    imports.know_signers(move || signers.public_keys());
    let confidence_decay = config.confidence_decay.clone();
    let started_at = clock.now_micros();
    if config.web.is_some() {
        devices::create_folder(&data_dir)?;
    }
    let index_location = index_location(&data_dir, &store, seal.clone());
    let uploads = Uploads::open(&data_dir, seal, config.upload_bytes, started_at);
    let devices = Devices::open(&data_dir, address, started_at)?;
    let peers = Peers::open(PeersContext {
        store: store.clone(),
        imports: imports.clone(),
        devices: devices.clone(),
        clock: Arc::clone(&clock),
        data_dir: data_dir.clone(),
    })?;
    let indexer = Indexer::new(store.clone(), index_location);
    let running = imports.clone();
    indexer.yield_to_imports(move || running.is_active());
    let embedder = config.embeddings.clone().map(Embedder::new).transpose()?;
    let page_key = PageKey::load_or_create(&data_dir.join("keys"));
    Ok((
        ServerState {
            revisions: observe_revisions(&store, &indexer, embedder.as_ref()),
            indexer,
            embedder,
            store,
            plugins,
            imports,
            operations: Operations::default(),
            watch,
            exports,
            uploads,
            devices,
            peers,
            clock,
            page_key,
            data_dir,
            started_at,
            confidence_decay,
            listings: ListingCache::default(),
            short_reads: ShortReads::new(),
        },
        notices,
        options,
    ))
}

/// Returns where the search index is kept: in memory if nothing can be written.
fn index_location(data_dir: &Path, store: &Store, seal: Option<Seal>) -> IndexLocation {
    let path = data_dir.join(data_dir::SEARCH);
    match seal {
        _ if store.opened_read_only() => IndexLocation::Memory,
        Some(seal) => IndexLocation::SealedFolder { path, seal },
        None => IndexLocation::Folder(path),
    }
}

/// Returns a notice for the user about the opening of the store.
fn open_notice(event: &OpenEvent) -> Option<String> {
    match event {
        OpenEvent::Rebuilding { reason } => {
            Some(format!("the database was rebuilt from the journal: {reason}"))
        }
        OpenEvent::TailCut { bytes } => Some(format!(
            "{bytes} incomplete bytes at the end of the journal were removed; they contained nothing that had been committed"
        )),
        OpenEvent::Damaged(damage) => {
            Some(format!("the journal is damaged: {damage}; the store is read-only until it is restored"))
        }
        _ => None,
    }
}
