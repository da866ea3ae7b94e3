//! The Model Context Protocol: a server for agents that is itself a client of the gRPC API.
//!
//! Every request of an agent becomes a call as one registered device. So what the agent sees, what it may change, what is
//! recorded of it, and that its writing waits for review are the daemon's decisions, and this crate makes none of them.
//!
//! What is stored reaches the agent as values of JSON or between quotation marks, with its id, date and source. It is data
//! that others wrote, and the instructions of the server say so.

mod clients;
mod http_endpoint;
mod progress;
mod prompts;
mod records;
mod resources;
mod server;
mod tools;

use std::{pin::Pin, sync::Arc};

use rmcp::{
    RoleServer, ServiceExt as _,
    service::ServerInitializeError,
    transport::{async_rw::AsyncRwTransport, stdio_pipes},
};

use self::{clients::AgentIdentity, server::Server};
pub use self::{
    clients::{GrpcServices, HttpPeer, ServiceError, services, services_over},
    http_endpoint::HttpEndpoint,
};

/// The longest message of a client, in bytes. rmcp drops a longer line without an answer. The limit is therefore far above
/// [`tools::MAX_ARGUMENTS`]; arguments over that are refused with an error. Parsing may take a hundred times as much memory.
const MAX_LINE: usize = 16 << 20;

/// Why a client could not be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The name of the device has characters that a header cannot have.
    #[error("the name {0:?} cannot be sent; use the id of the device")]
    DeviceName(String),
    /// The client did not begin as the protocol asks.
    #[error("the client on standard input does not speak the Model Context Protocol: {0}")]
    Handshake(Box<ServerInitializeError>),
    /// The connection ended with an error of its own.
    #[error("the connection to the client failed: {0}")]
    Connection(#[from] tokio::task::JoinError),
}

/// The connection to the daemon.
pub trait Connection: Send + Sync {
    /// Returns the services for the next request of the agent. The daemon may have ended since the last one, and another
    /// one have taken its place.
    fn services(&self) -> Pin<Box<dyn Future<Output = GrpcServices> + Send + '_>>;
}

/// Serves one client on standard input and output, until it closes them or `stop` is ready.
///
/// `device` is the id or name of the device as which the calls to the daemon are made; `None` if the connection has
/// credentials of its own.
///
/// # Errors
/// Returns an error if the client does not begin with a handshake. It is not an error if the client closes its end before.
pub async fn serve_stdio(
    connection: Arc<dyn Connection>,
    device: Option<&str>,
    stop: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let server = Server::new(connection, AgentIdentity::of(device)?);
    let (read, write) = stdio_pipes();
    let transport =
        AsyncRwTransport::<RoleServer, _, _>::new_server(read, write).with_max_line_length(MAX_LINE);
    let served = async {
        match Box::pin(server.serve(transport)).await {
            Ok(running) => running.waiting().await.map(|_| ()).map_err(ServeError::from),
            Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
            Err(error) => Err(ServeError::Handshake(Box::new(error))),
        }
    };
    tokio::select! {
        served = served => served,
        () = stop => Ok(()),
    }
}
