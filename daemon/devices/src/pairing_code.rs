//! The code that a person types to pair a new device, and the link that it scans instead.
//!
//! Both contain the start of the daemon's fingerprint, by which the device recognises the daemon before it sends
//! anything, and the token of the pairing window.

mod uri;

use std::{fmt, str::FromStr};

use zeroize::Zeroize as _;

use crate::{
    base32,
    identity::{Fingerprint, FingerprintPrefix},
};
pub use uri::PairingUri;

/// Characters of the fingerprint: 80 bits.
const FINGERPRINT_CHARACTERS: usize = 16;
/// Characters of the token: 40 bits.
const TOKEN_CHARACTERS: usize = 8;
/// Characters of a code: the fingerprint, the token, and a check character.
const CODE_CHARACTERS: usize = FINGERPRINT_CHARACTERS + TOKEN_CHARACTERS + 1;
/// Longest text that is examined, in bytes: a link with eight long addresses.
const MAX_TEXT_BYTES: usize = 8 << 10;

/// The secret of a pairing window: 40 random bits. Its text is never shown by `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct PairingToken([u8; Self::BYTES]);

impl PairingToken {
    /// Bytes of a token.
    pub const BYTES: usize = 5;

    /// Wraps the bytes of a token.
    #[must_use]
    pub const fn new(bytes: [u8; Self::BYTES]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes that are sent to the daemon.
    pub const fn as_bytes(&self) -> &[u8; Self::BYTES] {
        &self.0
    }
}

impl Drop for PairingToken {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl fmt::Debug for PairingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PairingToken(..)")
    }
}

/// The reason why a text is not a pairing code or link.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PairingCodeError {
    /// Nothing was entered.
    #[error("the pairing code is empty")]
    Empty,
    /// The text is far too long.
    #[error("the pairing code is longer than {limit} bytes")]
    TooLong { limit: usize },
    /// Characters are missing or too many.
    #[error("a pairing code has {CODE_CHARACTERS} letters and digits, and this one has {found}")]
    Length { found: usize },
    /// A character that codes do not have.
    #[error("{character:?} (character {position}) does not occur in pairing codes")]
    Character { character: char, position: usize },
    /// The check character does not fit.
    #[error(
        "a character of the pairing code is wrong, or two are swapped; compare it with the one that is shown"
    )]
    Check,
    /// The link is not one for pairing.
    #[error("the link does not begin with \"satchel://pair?\"")]
    NotPairing,
    /// The link is of another version.
    #[error("the link has version {found:?}, and this program knows version 1; update the program")]
    Version { found: String },
    /// A parameter of the link is missing, occurs twice, or cannot be read.
    #[error("the parameter {name:?} of the link {problem}")]
    Parameter { name: &'static str, problem: &'static str },
}

/// The code that a person types: `FFFFF-FFFFF-FFFFF-FTTTT-TTTTC`.
///
/// 16 characters of the daemon's fingerprint, 8 of the token, and a check character that finds every wrong character
/// and every two that are swapped. `Display` shows the token: the text is for the person who pairs a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairingCode {
    fingerprint: [u8; 10],
    token: PairingToken,
}

impl PairingCode {
    /// Makes the code of a window.
    #[must_use]
    pub fn new(fingerprint: &Fingerprint, token: PairingToken) -> Self {
        Self { fingerprint: fingerprint.first_80_bits(), token }
    }
}

impl fmt::Display for PairingCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut symbols = base32::encode(&self.fingerprint);
        symbols.extend(base32::encode(self.token.as_bytes()));
        symbols.push(base32::check_symbol(&symbols));
        f.write_str(&base32::grouped(&base32::text(&symbols), 5))
    }
}

/// Reads a code in any case, with or without spaces and hyphens; `O` is read as 0, `I` and `L` as 1.
impl FromStr for PairingCode {
    type Err = PairingCodeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let symbols = symbols_of(text)?;
        let (check, rest) = symbols.split_last().ok_or(PairingCodeError::Empty)?;
        let length = || PairingCodeError::Length { found: symbols.len() };
        if symbols.len() != CODE_CHARACTERS {
            return Err(length());
        }
        if base32::check_symbol(rest) != *check {
            return Err(PairingCodeError::Check);
        }
        let (fingerprint, token) = rest.split_at_checked(FINGERPRINT_CHARACTERS).ok_or_else(length)?;
        let fingerprint = base32::decode(fingerprint).try_into().map_err(|_| length())?;
        let token = base32::decode(token).try_into().map_err(|_| length())?;
        Ok(Self { fingerprint, token: PairingToken(token) })
    }
}

fn symbols_of(text: &str) -> Result<Vec<u8>, PairingCodeError> {
    if text.len() > MAX_TEXT_BYTES {
        return Err(PairingCodeError::TooLong { limit: MAX_TEXT_BYTES });
    }
    let characters = text.chars().filter(|it| !it.is_whitespace() && !is_hyphen(*it));
    let symbol = |(at, character): (usize, char)| {
        base32::symbol_of(character).ok_or(PairingCodeError::Character { character, position: at + 1 })
    };
    characters.enumerate().map(symbol).collect()
}

/// Hyphens, and the dashes that text programs put in their place.
fn is_hyphen(character: char) -> bool {
    matches!(character, '-' | '\u{ad}' | '\u{2010}'..='\u{2015}' | '\u{2212}')
}

/// The content of a code or a link, as the new device uses it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairingSecret {
    /// The key of the daemon must fit this.
    pub fingerprint: FingerprintPrefix,
    /// The secret to send to the daemon, once the fingerprint fits.
    pub token: PairingToken,
    /// Where the daemon may be reached, as `host:port`; empty for a typed code.
    pub addresses: Vec<String>,
}

impl PairingSecret {
    /// Reads a typed code or a link.
    ///
    /// # Errors
    /// The text is neither; the error says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, PairingCodeError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(PairingCodeError::Empty);
        }
        if text.contains(':') {
            text.parse::<PairingUri>().map(Self::from)
        } else {
            text.parse::<PairingCode>().map(Self::from)
        }
    }
}

impl From<PairingCode> for PairingSecret {
    fn from(code: PairingCode) -> Self {
        let PairingCode { fingerprint, token } = code;
        Self { fingerprint: FingerprintPrefix::Short(fingerprint), token, addresses: Vec::new() }
    }
}

impl From<PairingUri> for PairingSecret {
    fn from(uri: PairingUri) -> Self {
        let PairingUri { addresses, fingerprint, token } = uri;
        Self { fingerprint: FingerprintPrefix::Full(fingerprint), token, addresses }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, clippy::panic, reason = "tests")]
mod tests;
