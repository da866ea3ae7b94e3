//! The services of the daemon, called for an agent.

use std::net::SocketAddr;

use http::header::AUTHORIZATION;
use satchel_proto::{
    DEVICE_HEADER,
    v1::{
        conversation_service_client::ConversationServiceClient, memory_service_client::MemoryServiceClient,
        search_service_client::SearchServiceClient, watch_service_client::WatchServiceClient,
    },
};
use tonic::{
    Request, Status,
    body::Body,
    metadata::{Ascii, MetadataValue},
    service::{Interceptor, interceptor::InterceptedService},
    transport::Channel,
};
use tower::{BoxError, Service, ServiceExt as _, util::BoxCloneSyncService};

use super::ServeError;

/// The gRPC services of a daemon: in another process, or in this one.
pub type GrpcServices = BoxCloneSyncService<http::Request<Body>, http::Response<Body>, ServiceError>;

/// Why a service gave no answer.
#[derive(Debug, thiserror::Error)]
#[error("the daemon gives no answer")]
pub struct ServiceError(#[source] BoxError);

/// Returns services in this process as a client calls them.
pub fn services<S>(services: S) -> GrpcServices
where
    S: Service<http::Request<Body>, Response = http::Response<Body>> + Clone + Send + Sync + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
{
    BoxCloneSyncService::new(services.map_err(|error| ServiceError(error.into())))
}

/// Where the HTTP request of an agent comes from. It is among the extensions of that request and of the calls for it.
#[derive(Clone, Copy, Debug)]
pub struct HttpPeer(pub SocketAddr);

/// Returns the services of the daemon at the other end of `channel`.
#[must_use]
pub fn services_over(channel: Channel) -> GrpcServices {
    services(channel)
}

type InterceptedServices = InterceptedService<GrpcServices, CallIdentity>;

/// How the calls for an agent show whose they are.
#[derive(Clone)]
pub(crate) enum AgentIdentity {
    /// The connection to the daemon does.
    Connection,
    /// By the name of a device. The daemon honours it for its owner only.
    Device(MetadataValue<Ascii>),
    /// By the token of the HTTP request that the call is made for.
    RequestToken,
}

impl AgentIdentity {
    /// Returns the identity for the device with this id or name; without one, the connection has credentials of its own.
    pub(crate) fn of(device: Option<&str>) -> Result<Self, ServeError> {
        let Some(device) = device else { return Ok(Self::Connection) };
        let value = MetadataValue::try_from(device);
        value.map(Self::Device).map_err(|_| ServeError::DeviceName(device.to_owned()))
    }

    /// Returns what is added to the calls for one request of the agent.
    pub(crate) fn for_request(&self, extensions: &rmcp::model::Extensions) -> CallIdentity {
        match self {
            Self::Connection => CallIdentity::default(),
            Self::Device(device) => {
                CallIdentity { header: Some((DEVICE_HEADER, device.clone())), peer: None }
            }
            Self::RequestToken => {
                let Some(parts) = extensions.get::<http::request::Parts>() else {
                    // Without a token the daemon refuses the call.
                    return CallIdentity::default();
                };
                let token = parts.headers.get(AUTHORIZATION);
                let token = token.and_then(|token| MetadataValue::try_from(token.as_bytes()).ok());
                CallIdentity {
                    header: token.map(|token| (AUTHORIZATION.as_str(), token)),
                    peer: parts.extensions.get().copied(),
                }
            }
        }
    }
}

/// What is added to each call for one request of the agent.
#[derive(Clone, Default)]
pub(crate) struct CallIdentity {
    header: Option<(&'static str, MetadataValue<Ascii>)>,
    peer: Option<HttpPeer>,
}

impl Interceptor for CallIdentity {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some((name, value)) = &self.header {
            request.metadata_mut().insert(*name, value.clone());
        }
        if let Some(peer) = self.peer {
            request.extensions_mut().insert(peer);
        }
        Ok(request)
    }
}

/// Creates the clients of services, for one request of the agent.
pub(crate) struct Clients {
    services: GrpcServices,
    identity: CallIdentity,
}

impl Clients {
    pub(crate) fn new(services: GrpcServices, identity: CallIdentity) -> Self {
        Self { services, identity }
    }

    pub(crate) fn memories(&self) -> MemoryServiceClient<InterceptedServices> {
        MemoryServiceClient::with_interceptor(self.services.clone(), self.identity.clone())
    }

    pub(crate) fn conversations(&self) -> ConversationServiceClient<InterceptedServices> {
        ConversationServiceClient::with_interceptor(self.services.clone(), self.identity.clone())
    }

    pub(crate) fn search(&self) -> SearchServiceClient<InterceptedServices> {
        SearchServiceClient::with_interceptor(self.services.clone(), self.identity.clone())
    }

    pub(crate) fn changes(&self) -> WatchServiceClient<InterceptedServices> {
        WatchServiceClient::with_interceptor(self.services.clone(), self.identity.clone())
    }
}
