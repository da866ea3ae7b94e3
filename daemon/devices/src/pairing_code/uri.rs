//! The link for pairing, usually shown as a QR code: `satchel://pair?v=1&a=<host:port>&f=<fingerprint>&t=<token>`.

use std::{fmt, str::FromStr};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

use super::{MAX_TEXT_BYTES, PairingCodeError, PairingToken};
use crate::identity::Fingerprint;

const START: &str = "satchel://pair?";
const VERSION: &str = "1";
/// Most addresses that a link contains: a QR code stays readable.
const MAX_ADDRESSES: usize = 8;
/// Longest address, in bytes: a DNS name and a port.
const MAX_ADDRESS_BYTES: usize = 262;

/// The content of a pairing link. `Display` shows the token: the text is for the person who pairs a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairingUri {
    /// Where the daemon may be reached, as `host:port`, the likeliest first.
    pub addresses: Vec<String>,
    /// The whole fingerprint of the daemon.
    pub fingerprint: Fingerprint,
    /// The token of the pairing window.
    pub token: PairingToken,
}

impl fmt::Display for PairingUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{START}v={VERSION}")?;
        for address in self.addresses.iter().take(MAX_ADDRESSES) {
            f.write_str("&a=")?;
            address.bytes().try_for_each(|byte| write_escaped(f, byte))?;
        }
        let fingerprint = URL_SAFE_NO_PAD.encode(self.fingerprint.as_bytes());
        write!(f, "&f={fingerprint}&t={}", URL_SAFE_NO_PAD.encode(self.token.as_bytes()))
    }
}

/// Parameters may stand in any order; those with unknown names are ignored.
impl FromStr for PairingUri {
    type Err = PairingCodeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.len() > MAX_TEXT_BYTES {
            return Err(PairingCodeError::TooLong { limit: MAX_TEXT_BYTES });
        }
        let start = text.get(..START.len()).filter(|start| start.eq_ignore_ascii_case(START));
        let query = start.and_then(|_| text.get(START.len()..)).ok_or(PairingCodeError::NotPairing)?;
        let parameters: Vec<(&str, &str)> =
            query.split('&').filter_map(|pair| pair.split_once('=')).collect();
        let version = single(&parameters, "v")?;
        if version != VERSION {
            return Err(PairingCodeError::Version { found: version.to_owned() });
        }
        let addresses = parameters.iter().filter(|(name, _)| *name == "a").map(|(_, value)| address(value));
        let addresses: Vec<String> = addresses.collect::<Result<_, _>>()?;
        if addresses.len() > MAX_ADDRESSES {
            return Err(PairingCodeError::Parameter { name: "a", problem: "occurs more than eight times" });
        }
        Ok(Self {
            addresses,
            fingerprint: Fingerprint::new(bytes(&parameters, "f")?),
            token: PairingToken::new(bytes(&parameters, "t")?),
        })
    }
}

fn single<'t>(parameters: &[(&str, &'t str)], name: &'static str) -> Result<&'t str, PairingCodeError> {
    let mut found = parameters.iter().filter(|(other, _)| *other == name).map(|(_, value)| *value);
    match (found.next(), found.next()) {
        (Some(value), None) => Ok(value),
        (None, _) => Err(PairingCodeError::Parameter { name, problem: "is missing" }),
        (Some(_), Some(_)) => Err(PairingCodeError::Parameter { name, problem: "occurs twice" }),
    }
}

fn bytes<const N: usize>(
    parameters: &[(&str, &str)],
    name: &'static str,
) -> Result<[u8; N], PairingCodeError> {
    let wrong = PairingCodeError::Parameter { name, problem: "cannot be read; scan or copy the link again" };
    let decoded = URL_SAFE_NO_PAD.decode(single(parameters, name)?).ok();
    decoded.and_then(|bytes| bytes.try_into().ok()).ok_or(wrong)
}

fn address(escaped: &str) -> Result<String, PairingCodeError> {
    let wrong = || PairingCodeError::Parameter { name: "a", problem: "is not of the form host:port" };
    let address = unescape(escaped).ok_or_else(wrong)?;
    let (host, port) = address.rsplit_once(':').ok_or_else(wrong)?;
    let plain = !address.chars().any(|it| it.is_control() || it.is_whitespace() || "/?#@\\\"".contains(it));
    let port: u16 = port.parse().map_err(|_| wrong())?;
    if host.is_empty() || port == 0 || !plain || address.len() > MAX_ADDRESS_BYTES {
        return Err(wrong());
    }
    Ok(address)
}

fn write_escaped(f: &mut fmt::Formatter<'_>, byte: u8) -> fmt::Result {
    if byte.is_ascii_alphanumeric() || b"-._~:".contains(&byte) {
        write!(f, "{}", char::from(byte))
    } else {
        write!(f, "%{byte:02X}")
    }
}

fn unescape(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let mut digit = || char::from(rest.next()?).to_digit(16);
            let value = digit()? << 4 | digit()?;
            bytes.push(u8::try_from(value).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}
