//! The Model Context Protocol on the same listener, for agents that do not start `satchel mcp`: Streamable HTTP at [`PATH`].
//!
//! Each call of an agent passes the guard like a call over gRPC-Web with the same token.

use std::{future, net::SocketAddr, pin::Pin, sync::Arc};

use http::{
    HeaderMap, HeaderValue, Request, Response, StatusCode,
    header::{CONTENT_TYPE, WWW_AUTHENTICATE},
};
use satchel_devices::Role;
use satchel_mcp::{Connection, GrpcServices, HttpEndpoint, HttpPeer};
use tonic::body::Body;
use tower::{BoxError, Service, ServiceExt as _};

use crate::grpc::{
    connection::{ConnectionPeer, Peer},
    guard::GuardLayer,
    status::CallError,
};

/// The path at which agents are served.
pub(super) const PATH: &str = "/mcp";

/// Serves agents.
#[derive(Clone)]
pub(in crate::grpc) struct AgentEndpoint {
    endpoint: HttpEndpoint,
    guard: GuardLayer,
}

impl AgentEndpoint {
    /// Serves agents by the calls of `services`, which `guard` guards.
    pub(in crate::grpc) fn new<S>(services: S, guard: GuardLayer) -> Self
    where
        S: Service<Request<Body>, Response = Response<Body>, Error = BoxError>
            + Clone
            + Send
            + Sync
            + 'static,
        S::Future: Send + 'static,
    {
        let services = services.map_request(|mut request: Request<Body>| {
            // Without one, the guard refuses the call.
            if let Some(HttpPeer(address)) = request.extensions_mut().remove() {
                request.extensions_mut().insert(ConnectionPeer::new(Peer::Web { address }));
            }
            request
        });
        let endpoint = HttpEndpoint::new(Arc::new(InProcess(satchel_mcp::services(services))));
        Self { endpoint, guard }
    }

    /// Answers a request, of which the host and the origin were checked.
    pub(super) async fn answer(&self, mut request: Request<Body>, address: SocketAddr) -> Response<Body> {
        // Before the body is read: only those who have a token may cause that much work.
        if let Err(refused) = self.check_token(request.headers()) {
            return *refused;
        }
        request.extensions_mut().insert(HttpPeer(address));
        self.endpoint.answer(request).await
    }

    fn check_token(&self, headers: &HeaderMap) -> Result<(), Box<Response<Body>>> {
        let device = match self.guard.token_device(headers) {
            Ok(Some(device)) => device,
            Ok(None) => return Err(Box::new(unauthorized(CallError::NoCredentials, "Bearer"))),
            Err(error) => return Err(Box::new(unauthorized(error, "Bearer error=\"invalid_token\""))),
        };
        if device.policy.role == Role::Owner {
            let reason = format!(
                "the device {:?} has the role owner, with which an agent could read and change everything; use a token of another role",
                device.name
            );
            return Err(Box::new(refusal(StatusCode::FORBIDDEN, reason)));
        }
        Ok(())
    }
}

fn unauthorized(error: CallError, challenge: &'static str) -> Response<Body> {
    let mut response = refusal(StatusCode::UNAUTHORIZED, error.into_status().message().to_owned());
    response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
    response
}

fn refusal(status: StatusCode, reason: String) -> Response<Body> {
    let mut response = Response::new(Body::new(reason + "\n"));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

/// The services of this process.
struct InProcess(GrpcServices);

impl Connection for InProcess {
    fn services(&self) -> Pin<Box<dyn Future<Output = GrpcServices> + Send + '_>> {
        Box::pin(future::ready(self.0.clone()))
    }
}
