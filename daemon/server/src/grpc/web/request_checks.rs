//! What is checked of a request before anything else: that no foreign web page has caused it.

use std::net::SocketAddr;

use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode,
    header::{
        ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
        ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, ALLOW,
        CONTENT_LENGTH, CONTENT_TYPE, HOST, ORIGIN, VARY, X_CONTENT_TYPE_OPTIONS,
    },
};

use super::{agents::PATH, request_body::MAX_BODY_BYTES};
use crate::config::WebOrigin;

/// The content types of gRPC-Web. A page cannot send them to another origin before a preflight has allowed it.
const CONTENT_TYPES: [&str; 4] = [
    "application/grpc-web",
    "application/grpc-web+proto",
    "application/grpc-web-text",
    "application/grpc-web-text+proto",
];
const METHODS: HeaderValue = HeaderValue::from_static("POST, OPTIONS");
/// The headers that a page may send.
const REQUEST_HEADERS: HeaderValue = HeaderValue::from_static(
    "authorization, content-type, grpc-timeout, x-grpc-web, x-request-id, x-user-agent",
);
/// The headers of a response that a page may read.
const RESPONSE_HEADERS: HeaderValue =
    HeaderValue::from_static("grpc-status, grpc-message, grpc-status-details-bin, x-request-id");
/// How long a browser may remember a preflight, in seconds.
const PREFLIGHT_AGE: HeaderValue = HeaderValue::from_static("600");
/// The answer depends on the origin, also if it has none.
const VARY_ORIGIN: HeaderValue = HeaderValue::from_static("origin");

/// The headers that a page may send at the path for agents.
const AGENT_REQUEST_HEADERS: HeaderValue = HeaderValue::from_static(
    "accept, authorization, content-type, last-event-id, mcp-method, mcp-name, mcp-protocol-version, mcp-session-id",
);

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestKind {
    /// A call of gRPC-Web.
    Call,
    /// A message of an agent.
    Agent,
    /// A question of an agent's program how it can log in. There is no such way, only tokens.
    LoginDiscovery,
}

impl RequestKind {
    pub(super) fn of(path: &str) -> Self {
        match path {
            PATH | "/mcp/" => Self::Agent,
            "/register" | "/authorize" | "/token" => Self::LoginDiscovery,
            path if path.starts_with("/.well-known/") => Self::LoginDiscovery,
            _ => Self::Call,
        }
    }

    /// The headers that a page may send.
    fn request_headers(self) -> HeaderValue {
        match self {
            Self::Call => REQUEST_HEADERS,
            Self::Agent | Self::LoginDiscovery => AGENT_REQUEST_HEADERS,
        }
    }
}

/// A response without a call: a preflight, or a refusal that says why.
type Answer = Box<Response<String>>;

/// The hosts and origins that are allowed.
pub(super) struct RequestChecks {
    hosts: [String; 3],
    origins: Vec<WebOrigin>,
}

impl RequestChecks {
    /// Allows requests to a listener on `address` from pages of these origins, and from programs that are not pages.
    pub(super) fn new(address: SocketAddr, origins: Vec<WebOrigin>) -> Self {
        let port = address.port();
        let own = match address {
            SocketAddr::V4(own) if !own.ip().eq(&std::net::Ipv4Addr::LOCALHOST) => own.to_string(),
            _ => format!("127.0.0.1:{port}"),
        };
        Self { hosts: [own, format!("localhost:{port}"), format!("[::1]:{port}")], origins }
    }

    /// Returns the origin of a request that may be passed on, if it comes from a page.
    ///
    /// # Errors
    /// The response, if it must not be passed on.
    pub(super) fn check<B>(
        &self,
        request: &Request<B>,
        kind: RequestKind,
    ) -> Result<Option<HeaderValue>, Answer> {
        self.check_host(request)?;
        let origin = self.check_origin(request.headers())?;
        let answer = match *request.method() {
            Method::OPTIONS => preflight(request.headers(), origin.as_ref(), kind),
            _ if kind == RequestKind::LoginDiscovery => {
                Err(refusal(StatusCode::NOT_FOUND, "there is no login; send the token of a device"))
            }
            // The endpoint checks the rest. It takes JSON only, which no page can send without a preflight.
            _ if kind == RequestKind::Agent => Ok(()),
            Method::POST => check_content(request.headers()),
            _ => Err(refusal(StatusCode::METHOD_NOT_ALLOWED, "gRPC-Web calls are made with POST")),
        };
        // So that a page of an allowed origin can tell why.
        match (answer, origin) {
            (Ok(()), origin) => Ok(origin),
            (Err(mut answer), Some(origin)) => {
                allow_origin(answer.headers_mut(), origin);
                Err(answer)
            }
            (Err(answer), None) => Err(answer),
        }
    }

    /// Checks that the client has named this listener. A page whose own host name was made to lead here names that one.
    fn check_host<B>(&self, request: &Request<B>) -> Result<(), Answer> {
        let host = single(request.headers(), &HOST).map(str::to_owned);
        // A request line with a whole address has a host of its own.
        let line = request.uri().authority().map(|authority| authority.as_str().to_owned());
        let allowed = |host: &String| self.hosts.iter().any(|own| own.eq_ignore_ascii_case(host));
        if host.as_ref().is_some_and(allowed) && line.as_ref().is_none_or(allowed) {
            return Ok(());
        }
        let hosts = self.hosts.join(", ");
        Err(refusal(StatusCode::FORBIDDEN, &format!("the header Host must be one of {hosts}")))
    }

    /// Returns the origin of the page; `None` if the request does not come from one.
    fn check_origin(&self, headers: &HeaderMap) -> Result<Option<HeaderValue>, Answer> {
        if !headers.contains_key(ORIGIN) {
            return Ok(None);
        }
        let origin = single(headers, &ORIGIN);
        let origin = origin.and_then(|origin| self.origins.iter().find(|allowed| allowed.as_str() == origin));
        let origin = origin.and_then(|origin| HeaderValue::from_str(origin.as_str()).ok());
        origin.map(Some).ok_or_else(|| {
            refusal(
                StatusCode::FORBIDDEN,
                "the Origin of this page is not listed in [server] web-origins of the daemon's configuration",
            )
        })
    }
}

/// Returns the answer to the question of a browser whether a page may make a call.
fn preflight(headers: &HeaderMap, origin: Option<&HeaderValue>, kind: RequestKind) -> Result<(), Answer> {
    if origin.is_none() || !headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD) {
        return Err(refusal(
            StatusCode::METHOD_NOT_ALLOWED,
            "OPTIONS is only for the preflights of browsers",
        ));
    }
    let mut answer = Box::new(Response::new(String::new()));
    *answer.status_mut() = StatusCode::NO_CONTENT;
    let headers = answer.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("POST"));
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, kind.request_headers());
    headers.insert(ACCESS_CONTROL_MAX_AGE, PREFLIGHT_AGE);
    Err(answer)
}

/// Checks the content type and length. Forms have other types, and are sent without a preflight.
fn check_content(headers: &HeaderMap) -> Result<(), Answer> {
    if !single(headers, &CONTENT_TYPE).is_some_and(|found| CONTENT_TYPES.contains(&found)) {
        let types = CONTENT_TYPES.join(", ");
        let message = format!("the header Content-Type must be one of {types}");
        return Err(refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, &message));
    }
    let length = single(headers, &CONTENT_LENGTH).and_then(|length| length.parse::<u64>().ok());
    if length.is_some_and(|length| length > MAX_BODY_BYTES as u64) {
        let message = format!("a request must have at most {MAX_BODY_BYTES} bytes");
        return Err(refusal(StatusCode::PAYLOAD_TOO_LARGE, &message));
    }
    Ok(())
}

/// Returns the value of a header that is there once.
fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    if values.next().is_some() { None } else { value.to_str().ok() }
}

fn refusal(status: StatusCode, message: &str) -> Answer {
    let mut answer = Box::new(Response::new(format!("{message}\n")));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(VARY, VARY_ORIGIN);
    if status == StatusCode::METHOD_NOT_ALLOWED {
        headers.insert(ALLOW, METHODS);
    }
    answer
}

/// Lets a page of this origin read the response.
pub(super) fn allow_origin(headers: &mut HeaderMap, origin: HeaderValue) {
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, RESPONSE_HEADERS);
    headers.insert(VARY, VARY_ORIGIN);
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn checks() -> RequestChecks {
        let origins = vec!["http://localhost:5173".parse().unwrap()];
        RequestChecks::new(([127, 0, 0, 1], 7444).into(), origins)
    }

    fn request(method: &str, uri: &str, headers: &[(&str, &str)]) -> Request<()> {
        let mut request = Request::builder().method(method).uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap()
    }

    fn status(request: &Request<()>) -> u16 {
        checks()
            .check(request, RequestKind::of(request.uri().path()))
            .err()
            .map_or(200, |answer| answer.status().as_u16())
    }

    #[test]
    fn the_host_must_be_this_listener() {
        let content = ("content-type", "application/grpc-web");
        for host in ["127.0.0.1:7444", "localhost:7444", "LocalHost:7444", "[::1]:7444"] {
            assert_eq!(status(&request("POST", "/a/B", &[("host", host), content])), 200, "{host}");
        }
        for host in [
            "",
            "localhost",
            "localhost:7445",
            "127.0.0.1",
            "127.0.0.2:7444",
            "evil.example",
            "evil.example:7444",
            "localhost.evil.example:7444",
            "localhost:7444.evil.example",
            "user@localhost:7444",
        ] {
            assert_eq!(status(&request("POST", "/a/B", &[("host", host), content])), 403, "{host}");
        }
        assert_eq!(status(&request("POST", "/a/B", &[content])), 403, "no host");
        let two = [("host", "localhost:7444"), ("host", "evil.example"), content];
        assert_eq!(status(&request("POST", "/a/B", &two)), 403, "two hosts");
        let own = [("host", "localhost:7444"), content];
        assert_eq!(status(&request("POST", "http://evil.example/a/B", &own)), 403);
        assert_eq!(status(&request("POST", "http://localhost:7444/a/B", &own)), 200);
    }

    #[test]
    fn another_loopback_address_is_a_host_too() {
        let checks = RequestChecks::new(([127, 9, 8, 7], 1).into(), Vec::new());
        let headers = [("host", "127.9.8.7:1"), ("content-type", "application/grpc-web")];
        assert!(checks.check(&request("POST", "/a/B", &headers), RequestKind::Call).is_ok());
    }

    #[test]
    fn the_origin_must_be_listed() {
        let own = [("host", "localhost:7444"), ("content-type", "application/grpc-web")];
        let from = |origin| request("POST", "/a/B", &[own[0], own[1], ("origin", origin)]);
        assert_eq!(status(&from("http://localhost:5173")), 200);
        for origin in [
            "",
            "null",
            "*",
            "http://localhost:7444",
            "https://localhost:5173",
            "http://localhost:51730",
            "http://localhost:5173.evil.example",
            "http://localhost:5173, http://evil.example",
        ] {
            assert_eq!(status(&from(origin)), 403, "{origin}");
        }
        let two = [own[0], own[1], ("origin", "http://localhost:5173"), ("origin", "null")];
        assert_eq!(status(&request("POST", "/a/B", &two)), 403, "two origins");
    }
}
