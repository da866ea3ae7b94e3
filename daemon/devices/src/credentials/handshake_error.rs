//! The reasons why a handshake fails, with advice for the person who sees them.

use jiff::Timestamp;
use rustls::{AlertDescription, CertificateError, Error, pki_types::UnixTime};

use crate::identity::{Fingerprint, FingerprintPrefix};

/// The reason why a handshake ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HandshakeError {
    /// Another daemon answered than the one whose code was entered.
    #[error(
        "this is not the daemon that showed the code: its fingerprint is {found}, expected was {expected}; nothing was \
         sent to it. Check the address, and that nobody interferes with the network"
    )]
    FingerprintMismatch { expected: FingerprintPrefix, found: Fingerprint },
    /// The daemon did not show the certificate of an authority.
    #[error(
        "the server shows no certificate of a Satchel authority; another program may answer at this address"
    )]
    NoAuthority,
    /// The daemon's certificate begins later than the time on this machine.
    #[error(
        "the daemon's certificate is valid from {not_before}, and the clock of this machine shows {now}; the clock of \
         one of the two machines may be wrong"
    )]
    NotYetValid { not_before: Timestamp, now: Timestamp },
    /// The daemon's certificate ended earlier than the time on this machine.
    #[error(
        "the daemon's certificate was valid until {not_after}, and the clock of this machine shows {now}; the clock of \
         one of the two machines may be wrong, or the daemon has not run for a year"
    )]
    Expired { not_after: Timestamp, now: Timestamp },
    /// The certificate of the daemon is of another authority, name or purpose.
    #[error("the certificate of the server is not one of the paired daemon: {reason}")]
    WrongCertificate { reason: String },
    /// The daemon says that the certificate of this device has expired.
    #[error(
        "the daemon says that the certificate of this device has expired; if the clocks of both machines are right, pair \
         this device again"
    )]
    OwnCertificateExpired,
    /// The daemon does not accept the certificate of this device.
    #[error("the daemon does not accept the certificate of this device ({alert}); pair this device again")]
    OwnCertificateRefused { alert: String },
    /// Anything else.
    #[error("the secure connection cannot be made: {reason}")]
    Other { reason: String },
}

/// On the side of the device that connects.
impl From<&Error> for HandshakeError {
    fn from(error: &Error) -> Self {
        match error {
            Error::InvalidCertificate(problem) => of_certificate(problem),
            Error::AlertReceived(AlertDescription::CertificateExpired) => Self::OwnCertificateExpired,
            Error::AlertReceived(
                alert @ (AlertDescription::BadCertificate
                | AlertDescription::CertificateUnknown
                | AlertDescription::CertificateRevoked
                | AlertDescription::UnsupportedCertificate
                | AlertDescription::UnknownCA
                | AlertDescription::AccessDenied
                | AlertDescription::DecryptError),
            ) => Self::OwnCertificateRefused { alert: format!("{alert:?}") },
            other => Self::Other { reason: other.to_string() },
        }
    }
}

impl HandshakeError {
    /// Returns the reason that is somewhere inside an error of another library, such as an HTTP client.
    pub fn find(error: &(dyn std::error::Error + 'static)) -> Option<Self> {
        let mut next = Some(error);
        // Causes are nested less deep; the bound is for those that contain themselves.
        for _ in 0..MAX_CAUSES {
            let error = next?;
            if let Some(found) = error.downcast_ref::<Error>() {
                return Some(Self::from(found));
            }
            // An I/O error does not name the error inside it as its source, but the source of that error.
            let inside = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
            next = inside.map(|inside| inside as _).or_else(|| error.source());
        }
        None
    }
}

/// Most causes that are searched.
const MAX_CAUSES: usize = 32;

fn of_certificate(problem: &CertificateError) -> HandshakeError {
    match problem {
        CertificateError::NotValidYetContext { time, not_before } => {
            HandshakeError::NotYetValid { not_before: timestamp(*not_before), now: timestamp(*time) }
        }
        CertificateError::ExpiredContext { time, not_after } => {
            HandshakeError::Expired { not_after: timestamp(*not_after), now: timestamp(*time) }
        }
        CertificateError::Other(other) => match other.0.downcast_ref::<HandshakeError>() {
            Some(error) => error.clone(),
            None => HandshakeError::WrongCertificate { reason: other.to_string() },
        },
        other => HandshakeError::WrongCertificate { reason: other.to_string() },
    }
}

fn timestamp(time: UnixTime) -> Timestamp {
    i64::try_from(time.as_secs())
        .ok()
        .and_then(|seconds| Timestamp::from_second(seconds).ok())
        .unwrap_or(Timestamp::MAX)
}
