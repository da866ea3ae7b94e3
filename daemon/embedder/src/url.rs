//! The address of an embeddings server.

use std::{fmt, net::IpAddr};

use http::Uri;
use serde::{Deserialize, Serialize};

/// Longest address, in bytes.
const MAX_URL_BYTES: usize = 2_000;
/// What is added to the address for a request.
const METHOD_PATH: &str = "/embeddings";

/// The base address of an embeddings server, such as `http://127.0.0.1:11434/v1`.
#[derive(Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct EndpointUrl {
    /// Without a slash at the end.
    base: String,
    /// The address to which requests go.
    target: Uri,
}

/// The reason why a text is not an [`EndpointUrl`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidEndpointUrl {
    /// The text is not an address of HTTP.
    #[error(
        "the `url` of embeddings must be an address such as \"http://127.0.0.1:11434/v1\" or \"https://api.openai.com/v1\""
    )]
    Syntax,
    /// The address has a user or a password, which would be shown where the address is shown.
    #[error(
        "the `url` of embeddings must not have a user or a password; put the key into a file and name it in `api-key-file`"
    )]
    Credentials,
    /// The address has a query or a fragment.
    #[error("the `url` of embeddings must end after its path, without \"?\" or \"#\"")]
    Query,
    /// The address names the method too.
    #[error("the `url` of embeddings must end before \"/embeddings\", which is added to it")]
    MethodPath,
}

impl EndpointUrl {
    /// Returns whether the server is on this machine: an address of the loopback interface, or `localhost`, which is never
    /// looked up in the DNS.
    #[must_use]
    pub fn loopback(&self) -> bool {
        let host = self.host();
        let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        names_this_machine(host) || address.is_ok_and(|address| address.to_canonical().is_loopback())
    }

    /// Returns whether the connection is encrypted.
    #[must_use]
    pub fn encrypted(&self) -> bool {
        self.target.scheme_str() == Some("https")
    }

    /// Returns the name or address of the server, as it stands in the address.
    #[must_use]
    pub fn host(&self) -> &str {
        self.target.host().unwrap_or_default()
    }

    pub(crate) fn target(&self) -> &Uri {
        &self.target
    }
}

/// Returns whether a host name always means this machine (RFC 6761, section 6.3).
pub(crate) fn names_this_machine(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost")
}

impl TryFrom<String> for EndpointUrl {
    type Error = InvalidEndpointUrl;

    fn try_from(text: String) -> Result<Self, InvalidEndpointUrl> {
        if text.contains(['?', '#']) {
            return Err(InvalidEndpointUrl::Query);
        }
        let base = text.trim_end_matches('/');
        if base.ends_with(METHOD_PATH) {
            return Err(InvalidEndpointUrl::MethodPath);
        }
        if base.len() > MAX_URL_BYTES {
            return Err(InvalidEndpointUrl::Syntax);
        }
        let target: Uri = format!("{base}{METHOD_PATH}").parse().map_err(|_| InvalidEndpointUrl::Syntax)?;
        let authority = target.authority().ok_or(InvalidEndpointUrl::Syntax)?;
        if authority.as_str().contains('@') {
            return Err(InvalidEndpointUrl::Credentials);
        }
        let known_scheme = matches!(target.scheme_str(), Some("http" | "https"));
        if !known_scheme || authority.host().is_empty() {
            return Err(InvalidEndpointUrl::Syntax);
        }
        Ok(Self { base: base.to_owned(), target })
    }
}

impl From<EndpointUrl> for String {
    fn from(url: EndpointUrl) -> Self {
        url.base
    }
}

impl fmt::Display for EndpointUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.base)
    }
}

impl fmt::Debug for EndpointUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.base, formatter)
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<EndpointUrl, InvalidEndpointUrl> {
        text.to_owned().try_into()
    }

    #[test]
    fn the_method_is_added_to_the_path() {
        for text in ["http://127.0.0.1:11434/v1", "http://127.0.0.1:11434/v1/"] {
            let url = parse(text).unwrap();
            assert_eq!(url.target(), "http://127.0.0.1:11434/v1/embeddings");
            assert_eq!(url.to_string(), "http://127.0.0.1:11434/v1");
        }
        assert_eq!(parse("http://localhost:8080").unwrap().target(), "http://localhost:8080/embeddings");
    }

    #[test]
    fn only_addresses_that_cannot_leave_this_machine_are_loopback() {
        for local in
            ["http://127.0.0.1", "http://127.8.9.1:1/v1", "http://LocalHost:1", "http://[::1]:8080/v1"]
        {
            assert!(parse(local).unwrap().loopback(), "{local}");
        }
        for remote in [
            "http://localhost.example.com",
            "http://127.0.0.1.example.com",
            "http://0.0.0.0:1",
            "http://192.168.1.5:11434",
            "https://api.openai.com/v1",
            "http://127.1",
            "http://[fe80::1]:1",
        ] {
            assert!(!parse(remote).unwrap().loopback(), "{remote}");
        }
    }

    #[test]
    fn what_is_not_a_base_address_is_refused() {
        for (text, problem) in [
            ("", InvalidEndpointUrl::Syntax),
            ("127.0.0.1:11434", InvalidEndpointUrl::Syntax),
            ("ftp://127.0.0.1/v1", InvalidEndpointUrl::Syntax),
            ("http:///v1", InvalidEndpointUrl::Syntax),
            ("https://ana:secret@example.com/v1", InvalidEndpointUrl::Credentials),
            ("https://example.com/v1?key=secret", InvalidEndpointUrl::Query),
            ("https://example.com/v1#a", InvalidEndpointUrl::Query),
            ("https://example.com/v1/embeddings/", InvalidEndpointUrl::MethodPath),
        ] {
            assert_eq!(parse(text), Err(problem), "{text}");
        }
    }
}
