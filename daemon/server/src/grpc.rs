//! The gRPC interface of the daemon: services over store, imports and exports.
//!
//! **Invariant:** generated types stay in `grpc::wire` and the service files; other modules use the daemon's own types.

mod accept;
mod access;
mod admin;
mod attachment;
mod call_state;
pub(crate) mod change_batches;
mod change_feed;
pub(crate) mod chunks;
mod connection;
mod contradictions;
mod conversation;
mod device;
mod download;
mod duplicates;
mod edit;
mod embedding;
mod export;
pub mod guard;
mod import;
pub mod listing_cache;
mod maintenance;
mod memory;
pub mod operation;
pub mod page_token;
mod pairing;
mod peer;
mod plugin;
mod quarantine;
mod recording;
mod related;
mod relation;
mod request;
mod search;
pub mod short_reads;
mod source;
pub mod status;
mod sync;
mod tls;
mod unknown_clients;
mod unread_limit;
mod upload;
mod web;
pub mod wire;
mod withheld_ranges;

pub use self::admin::purge_plan_to_wire;

use std::{error::Error, future::Future, io, path::PathBuf, pin::Pin, sync::Arc, time::Duration};

use satchel_core::{clock::Clock, export::Exports, ingest::Imports, uploads::Uploads};
use satchel_indexer::Indexer;
use satchel_proto::v1::{
    admin_service_server::{self, AdminServiceServer},
    attachment_service_server::{self, AttachmentServiceServer},
    conversation_service_server::{self, ConversationServiceServer},
    device_service_server::{self, DeviceServiceServer},
    embedding_service_server::{self, EmbeddingServiceServer},
    export_service_server::{self, ExportServiceServer},
    import_service_server::{self, ImportServiceServer},
    memory_service_server::{self, MemoryServiceServer},
    operation_service_server::{self, OperationServiceServer},
    pairing_service_server::{self, PairingServiceServer},
    peer_service_server::{self, PeerServiceServer},
    plugin_service_server::{self, PluginServiceServer},
    search_service_server::{self, SearchServiceServer},
    sync_service_server::{self, SyncServiceServer},
    upload_service_server::{self, UploadServiceServer},
    watch_service_server::{self, WatchServiceServer},
};
use satchel_registry::Plugins;
use satchel_store::{Revision, Store};
use satchel_watch::Watch;
use tokio::{
    net::UnixStream,
    sync::{mpsc, watch},
};
use tokio_stream::{Stream, StreamExt as _, wrappers::ReceiverStream};
use tonic::{service::Routes, transport::Server};
use tonic_health::{ServingStatus, server::HealthReporter};
use tonic_web::GrpcWebLayer;
use tower::Layer as _;

use self::web::AgentEndpoint;
use self::{
    connection::Connection,
    guard::{GuardLayer, MAX_CALLS_PER_CONNECTION, MAX_MESSAGE_BYTES},
    listing_cache::ListingCache,
    operation::Operations,
    page_token::PageKey,
    short_reads::ShortReads,
};
pub(crate) use self::{tls::TlsListener, web::WebListener};
use crate::{
    config::ConfidenceDecay,
    devices::Devices,
    embeddings::Embedder,
    peers::Peers,
    socket::{Listener, SocketFiles},
};

/// How long open calls may continue after a stop, so that a client that reads slowly does not delay the daemon.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(5);
/// A client that was silent for this long is asked whether it is there. One that lost its network would otherwise keep its
/// connection, of which a device has a few, for hours.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(30);
/// How long it may take to answer.
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(20);
/// Time between two updates of the socket's modification time. Cleaners of temporary files count in days.
const TOUCH_INTERVAL: Duration = Duration::from_hours(1);

/// The service names for the health service; the empty one stands for the whole daemon.
const SERVICES: [&str; 17] = [
    "",
    memory_service_server::SERVICE_NAME,
    conversation_service_server::SERVICE_NAME,
    import_service_server::SERVICE_NAME,
    operation_service_server::SERVICE_NAME,
    plugin_service_server::SERVICE_NAME,
    export_service_server::SERVICE_NAME,
    watch_service_server::SERVICE_NAME,
    device_service_server::SERVICE_NAME,
    pairing_service_server::SERVICE_NAME,
    admin_service_server::SERVICE_NAME,
    upload_service_server::SERVICE_NAME,
    attachment_service_server::SERVICE_NAME,
    embedding_service_server::SERVICE_NAME,
    search_service_server::SERVICE_NAME,
    sync_service_server::SERVICE_NAME,
    peer_service_server::SERVICE_NAME,
];

/// The state that the services share. Clones share one.
#[derive(Clone)]
pub struct ServerState {
    pub store: Store,
    /// The revision of the store.
    pub revisions: watch::Receiver<Revision>,
    pub plugins: Arc<Plugins>,
    pub imports: Imports,
    /// The search index.
    pub indexer: Indexer,
    /// The endpoint for embeddings, if the configuration names one.
    pub embedder: Option<Embedder>,
    /// Long-running operations other than imports.
    pub operations: Operations,
    pub watch: Watch,
    pub exports: Exports,
    /// Files that are being uploaded.
    pub uploads: Uploads,
    /// The devices that may call over TLS.
    pub devices: Devices,
    /// The daemons with which this one exchanges changes.
    pub peers: Peers,
    pub clock: Arc<dyn Clock>,
    /// Seals page tokens; it stays the same as long as the data directory exists.
    pub page_key: PageKey,
    pub data_dir: PathBuf,
    /// Microseconds since the Unix epoch.
    pub started_at: i64,
    /// How confidence decays on reads.
    pub confidence_decay: ConfidenceDecay,
    /// Prepared message listings of long conversations.
    pub listings: ListingCache,
    /// Places for short reads on the threads of the runtime.
    pub short_reads: ShortReads,
}

/// Returns a receiver of each new revision of `store`, which wakes `indexer` and `embedder` too. Call this once for each store.
#[must_use]
pub fn observe_revisions(
    store: &Store,
    indexer: &Indexer,
    embedder: Option<&Embedder>,
) -> watch::Receiver<Revision> {
    let (sender, receiver) = watch::channel(store.revision());
    let waker = indexer.waker();
    let embedder = embedder.cloned();
    store.observe_revisions(move |revision| {
        sender.send_replace(revision);
        waker.wake();
        if let Some(embedder) = &embedder {
            embedder.wake();
        }
    });
    receiver
}

/// The reason why serving ended other than by a stop.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The transport failed.
    #[error("the socket can no longer be served")]
    Transport(#[source] tonic::transport::Error),
    /// A bug: the descriptors of the gRPC contract cannot be read.
    #[error("the descriptors of the gRPC contract cannot be read; please report this")]
    Descriptors(#[source] Box<dyn Error + Send + Sync>),
}

/// The ways into the daemon besides its socket.
#[derive(Default)]
pub(crate) struct NetworkListeners {
    /// For paired devices.
    pub(crate) tls: Option<TlsListener>,
    /// For browsers on this machine.
    pub(crate) web: Option<WebListener>,
}

/// Serves `state` on `listener` and on `network` until `stop`. Open calls then have a few seconds to finish, or until `stop_now`.
///
/// # Errors
/// If the transport fails.
pub(crate) async fn serve(
    state: ServerState,
    listener: Listener,
    network: NetworkListeners,
    stop: impl Future<Output = ()> + Send,
    stop_now: impl Future<Output = ()> + Send,
) -> Result<(), ServeError> {
    let NetworkListeners { tls, web } = network;
    // When serving has ended, `files` is dropped, which removes the socket's file.
    let (socket, files) = listener.into_parts();
    let limit = accept::connection_limit();
    let local = accept::incoming(socket, limit);
    let incoming: Incoming = match tls {
        None => Box::pin(local),
        Some(tls) => Box::pin(local.merge(tls::incoming(tls, limit))),
    };
    tokio::select! {
        outcome = serve_streams(state, incoming, web, Box::pin(stop), Box::pin(stop_now)) => outcome,
        () = touch_periodically(&files) => Ok(()),
    }
}

/// Serves `state` to clients in this process, which send the other ends of their connections, until `stop`. Open calls then have a
/// few seconds to finish, or until `stop_now`.
///
/// # Errors
/// If the transport fails.
pub async fn serve_in_process(
    state: ServerState,
    streams: mpsc::Receiver<UnixStream>,
    stop: impl Future<Output = ()> + Send,
    stop_now: impl Future<Output = ()> + Send,
) -> Result<(), ServeError> {
    let incoming = ReceiverStream::new(streams).map(|stream| Ok(Connection::local(stream, None)));
    serve_streams(state, Box::pin(incoming), None, Box::pin(stop), Box::pin(stop_now)).await
}

/// Accepted connections.
type Incoming = Pin<Box<dyn Stream<Item = io::Result<Connection>> + Send>>;
/// A future of any type.
type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Serves the connections until `stop`.
///
/// Nothing here depends on the types of the caller, so that HTTP/2 and TLS are compiled with this crate. If they were
/// compiled with the program, they would be as little optimised as its command line.
fn serve_streams<'a>(
    state: ServerState,
    incoming: Incoming,
    web: Option<WebListener>,
    stop: Boxed<'a, ()>,
    stop_now: Boxed<'a, ()>,
) -> Boxed<'a, Result<(), ServeError>> {
    Box::pin(serve_until(state, incoming, web, stop, stop_now))
}

/// Applies the size limits to a generated server. They are methods of each server type, not of a trait.
macro_rules! limited {
    ($server:ident, $service:expr) => {
        $server::new($service)
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES)
    };
}

async fn serve_until(
    state: ServerState,
    incoming: Incoming,
    web: Option<WebListener>,
    stop: Boxed<'_, ()>,
    stop_now: Boxed<'_, ()>,
) -> Result<(), ServeError> {
    let (stopping, stopped) = watch::channel(false);
    let owner = rustix::process::geteuid().as_raw();
    let guard = GuardLayer::new(owner, state.devices.clone(), Arc::clone(&state.clock));
    let pairing = limited!(PairingServiceServer, pairing::PairingHandler(state.clone()));
    let (health, routes) = routes(state, stopped.clone()).await?;
    // A browser has no certificate to ask for.
    let web = Box::pin(serve_web(web, guard.clone(), routes.clone(), ended(stopped.clone())));
    let serving = Server::builder()
        .max_concurrent_streams(MAX_CALLS_PER_CONNECTION)
        .http2_keepalive_interval(Some(KEEPALIVE_INTERVAL))
        .http2_keepalive_timeout(Some(KEEPALIVE_TIMEOUT))
        .layer(guard)
        .add_routes(routes.add_service(pairing))
        .serve_with_incoming_shutdown(incoming, ended(stopped));
    let web = async {
        web.await;
        Ok(())
    };
    let serving = Box::pin(async { tokio::try_join!(serving, web).map(drop) });
    let shutdown = async move {
        stop.await;
        set_health(&health, ServingStatus::NotServing).await;
        stopping.send_replace(true);
        tokio::select! {
            () = tokio::time::sleep(SHUTDOWN_GRACE) => {}
            () = stop_now => {}
        }
    };
    tokio::select! {
        outcome = serving => outcome.map_err(ServeError::Transport),
        () = shutdown => Ok(()),
    }
}

/// Completes at a stop.
async fn ended(mut stopped: watch::Receiver<bool>) {
    // A dropped sender counts as a stop too.
    drop(stopped.wait_for(|stopping| *stopping).await);
}

async fn serve_web(
    listener: Option<WebListener>,
    guard: GuardLayer,
    routes: Routes,
    stopped: impl Future<Output = ()> + Send,
) {
    if let Some(listener) = listener {
        let services = guard.layer(routes.prepare());
        let agents = AgentEndpoint::new(services.clone(), guard);
        listener.serve(GrpcWebLayer::new().layer(services), agents, stopped).await;
    }
}

/// Keeps marking the socket as in use; never returns.
async fn touch_periodically(files: &SocketFiles) {
    loop {
        tokio::time::sleep(TOUCH_INTERVAL).await;
        if let Err(error) = files.touch() {
            tracing::warn!(%error, "the socket cannot be marked as in use; clients may not find it any more");
        }
    }
}

/// Returns all services except that for pairing.
async fn routes(
    state: ServerState,
    stopping: watch::Receiver<bool>,
) -> Result<(HealthReporter, Routes), ServeError> {
    let (health, health_service) = tonic_health::server::health_reporter();
    let descriptors = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(satchel_proto::DESCRIPTOR_SET)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    let unreadable = |error: tonic_reflection::server::Error| ServeError::Descriptors(error.into());
    let reflection = descriptors().build_v1().map_err(unreadable)?;
    // Older clients, such as grpcurl 1.8.6, know only v1alpha.
    let reflection_v1alpha = descriptors().build_v1alpha().map_err(unreadable)?;
    set_health(&health, ServingStatus::Serving).await;
    let routes = Routes::new(health_service)
        .add_service(reflection)
        .add_service(reflection_v1alpha)
        .add_service(limited!(MemoryServiceServer, memory::MemoryHandler(state.clone())))
        .add_service(limited!(ConversationServiceServer, conversation::ConversationHandler(state.clone())))
        .add_service(limited!(ImportServiceServer, import::ImportHandler::new(state.clone())))
        .add_service(limited!(
            OperationServiceServer,
            operation::OperationHandler(state.clone(), stopping.clone())
        ))
        .add_service(limited!(
            WatchServiceServer,
            change_feed::WatchHandler(state.clone(), stopping.clone(), change_feed::SharedBatches::default())
        ))
        .add_service(limited!(SyncServiceServer, sync::SyncHandler(state.clone(), stopping)))
        .add_service(limited!(PeerServiceServer, peer::PeerHandler(state.clone())))
        .add_service(limited!(PluginServiceServer, plugin::PluginHandler::new(state.clone())))
        .add_service(limited!(ExportServiceServer, export::ExportHandler::new(state.clone())))
        .add_service(limited!(DeviceServiceServer, device::DeviceHandler(state.clone())))
        .add_service(limited!(UploadServiceServer, upload::UploadHandler(state.clone())))
        .add_service(limited!(AttachmentServiceServer, attachment::AttachmentHandler::new(state.clone())))
        .add_service(limited!(EmbeddingServiceServer, embedding::EmbeddingHandler(state.clone())))
        .add_service(limited!(SearchServiceServer, search::SearchHandler(state.clone())))
        .add_service(limited!(AdminServiceServer, admin::AdminHandler(state)));
    Ok((health, routes))
}

async fn set_health(health: &HealthReporter, status: ServingStatus) {
    for service in SERVICES {
        health.set_service_status(service, status).await;
    }
}
