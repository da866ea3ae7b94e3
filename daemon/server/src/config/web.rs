//! Settings of gRPC-Web: a loopback address, and the origins of web pages.

use std::{fmt, net::SocketAddr, str::FromStr};

/// Longest origin that is accepted, in bytes: a host name of 253, its scheme and its port fit.
const MAX_ORIGIN_BYTES: usize = 300;

/// An address of this machine that other machines cannot reach, with a port; port 0 means a free one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoopbackAddress(SocketAddr);

/// The reason why a text is not a [`LoopbackAddress`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidLoopbackAddress {
    /// The text is not an address with a port.
    #[error(
        "the address for gRPC-Web must be a loopback address and a port such as \"127.0.0.1:7444\" or \"[::1]:7444\", not {0:?}"
    )]
    Syntax(String),
    /// Other machines can reach the address.
    #[error(
        "the address for gRPC-Web must be a loopback address such as 127.0.0.1:7444, not {0}, because tokens would cross the network unencrypted; devices on other machines connect over TLS, with --listen or [server] listen"
    )]
    NotLoopback(SocketAddr),
}

impl LoopbackAddress {
    /// Returns the address.
    #[must_use]
    pub fn get(self) -> SocketAddr {
        self.0
    }
}

impl TryFrom<SocketAddr> for LoopbackAddress {
    type Error = InvalidLoopbackAddress;

    fn try_from(address: SocketAddr) -> Result<Self, InvalidLoopbackAddress> {
        let loopback = address.ip().is_loopback();
        if loopback { Ok(Self(address)) } else { Err(InvalidLoopbackAddress::NotLoopback(address)) }
    }
}

impl FromStr for LoopbackAddress {
    type Err = InvalidLoopbackAddress;

    fn from_str(text: &str) -> Result<Self, InvalidLoopbackAddress> {
        let address = text.parse::<SocketAddr>();
        address.map_err(|_| InvalidLoopbackAddress::Syntax(text.to_owned()))?.try_into()
    }
}

impl fmt::Display for LoopbackAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// The origin of a web page, exactly as a browser sends it: scheme, host and, unless it is the scheme's own, the port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebOrigin(String);

/// The text is not a [`WebOrigin`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "an origin must be a scheme and a host, with the port unless it is the default, as a browser sends it, such as \"http://localhost:5173\" or \"https://app.example.org\", not {found:?}"
)]
pub struct InvalidOrigin {
    found: String,
}

impl WebOrigin {
    /// Returns the text of the origin.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for WebOrigin {
    type Err = InvalidOrigin;

    /// Accepts neither `*` nor `null`: any page can have the origin `null`, for example in a sandboxed frame.
    fn from_str(text: &str) -> Result<Self, InvalidOrigin> {
        let valid = text.len() <= MAX_ORIGIN_BYTES
            && text.split_once("://").is_some_and(|(scheme, host)| {
                valid_scheme(scheme) && valid_host(host) && !host.ends_with(default_port(scheme))
            });
        if valid { Ok(Self(text.to_owned())) } else { Err(InvalidOrigin { found: text.to_owned() }) }
    }
}

impl fmt::Display for WebOrigin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

fn valid_scheme(scheme: &str) -> bool {
    // Browser extensions and desktop programs have schemes of their own.
    scheme.starts_with(|c: char| c.is_ascii_lowercase())
        && scheme.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'+' | b'-' | b'.'))
}

/// Browsers send hosts in lower case and in ASCII.
fn valid_host(host: &str) -> bool {
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => (name, Some(port)),
        _ => (host, None),
    };
    let name = match name.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']').filter(|ip| ip.parse::<std::net::Ipv6Addr>().is_ok()),
        None => Some(name).filter(|name| !name.contains(':')),
    };
    let allowed = |byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b':');
    name.is_some_and(|name| !name.is_empty() && name.bytes().all(allowed))
        && port.is_none_or(|port| !port.starts_with('0') && port.parse::<u16>().is_ok())
}

/// Returns the ending of a host that browsers leave out, so that an origin with it would never match.
fn default_port(scheme: &str) -> &'static str {
    match scheme {
        "http" => ":80",
        "https" => ":443",
        // No host ends like this.
        _ => "/",
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_addresses_are_accepted() {
        for text in ["127.0.0.1:7444", "127.0.0.1:0", "127.3.2.1:1", "[::1]:7444"] {
            assert_eq!(text.parse::<LoopbackAddress>().unwrap().to_string(), text);
        }
        for text in ["0.0.0.0:7444", "[::]:7444", "192.168.1.2:7444", "[::ffff:127.0.0.1]:7444"] {
            let error = text.parse::<LoopbackAddress>().unwrap_err().to_string();
            assert!(error.contains(text) && error.contains("--listen"), "{error}");
        }
        for text in ["", "7444", "localhost:7444", "127.0.0.1", "127.0.0.1:99999"] {
            let error = text.parse::<LoopbackAddress>().unwrap_err();
            assert_eq!(error, InvalidLoopbackAddress::Syntax(text.to_owned()));
        }
    }

    #[test]
    fn origins_are_written_as_browsers_send_them() {
        for text in [
            "http://localhost:5173",
            "https://app.example.org",
            "http://127.0.0.1:8080",
            "http://[::1]:8080",
            "http://[::1]",
            "chrome-extension://abcdefghijklmnop",
            "tauri://localhost",
        ] {
            assert_eq!(text.parse::<WebOrigin>().unwrap().as_str(), text);
        }
        let long = format!("https://{}", "a".repeat(300));
        for text in [
            "",
            "*",
            "null",
            "localhost:5173",
            "http://",
            "http://*",
            "https://*.example.org",
            "https://app.example.org/",
            "https://app.example.org/path",
            "https://App.example.org",
            "HTTPS://app.example.org",
            "https://user@app.example.org",
            "https://app.example.org:443",
            "http://app.example.org:80",
            "http://localhost:0",
            "http://localhost:x",
            "http://localhost:1:2",
            "http://[::g]",
            "http://a b",
            long.as_str(),
        ] {
            assert!(text.parse::<WebOrigin>().is_err(), "{text}");
        }
    }
}
