//! What to do about errors of a connection to a paired daemon.

use satchel_devices::{DevicesError, HandshakeError};
use satchel_server::connect::RemoteError;

use crate::cli::exit::Exit;

/// Returns the exit code for a daemon that cannot be used.
pub(super) fn exit(error: &RemoteError) -> Exit {
    match error {
        RemoteError::Unreachable { .. } | RemoteError::Http { .. } => Exit::Unreachable,
        RemoteError::Handshake {
            error: HandshakeError::OwnCertificateExpired | HandshakeError::OwnCertificateRefused { .. },
            ..
        } => Exit::NoPermission,
        RemoteError::Refused(status) => super::refusal::exit_of(status.code()),
        RemoteError::Devices(error) => credentials_exit(error),
        _ => Exit::Failed,
    }
}

/// Returns the machine-readable name of the error.
pub(super) fn reason(error: &RemoteError) -> String {
    let name = match error {
        RemoteError::Unreachable { .. } | RemoteError::Http { .. } => "DAEMON_UNREACHABLE",
        RemoteError::Handshake { error, .. } => match error {
            HandshakeError::FingerprintMismatch { .. } => "FINGERPRINT_MISMATCH",
            HandshakeError::NotYetValid { .. } | HandshakeError::Expired { .. } => "CLOCK_WRONG",
            HandshakeError::OwnCertificateExpired => "CERTIFICATE_EXPIRED",
            HandshakeError::OwnCertificateRefused { .. } => "CERTIFICATE_REFUSED",
            HandshakeError::NoAuthority | HandshakeError::WrongCertificate { .. } => "WRONG_DAEMON",
            _ => "TLS_FAILED",
        },
        RemoteError::WrongAuthority { .. } => "FINGERPRINT_MISMATCH",
        RemoteError::Refused(status) => return super::refusal::reason_of(status),
        RemoteError::Devices(error) => credentials_reason(error),
        _ => "FAILED",
    };
    name.to_owned()
}

/// Returns what to do; `server` is how the daemon is called here.
pub(super) fn remedy(server: &str, error: &RemoteError) -> Option<String> {
    let pair_again =
        || format!("run `satchel devices pair --as NAME` there, and `satchel pair CODE --as {server}` here");
    match error {
        RemoteError::Unreachable { .. } | RemoteError::Http { .. } => Some(format!(
            "check that `satchel serve --listen ADDR:PORT` runs there and that no firewall is between; \
             `satchel servers set-address {server} HOST:PORT` sets a new address"
        )),
        RemoteError::Handshake {
            error: HandshakeError::OwnCertificateExpired | HandshakeError::OwnCertificateRefused { .. },
            ..
        } => Some(pair_again()),
        RemoteError::Handshake {
            error: HandshakeError::NoAuthority | HandshakeError::WrongCertificate { .. },
            ..
        } => Some(format!(
            "check the address with `satchel servers show {server}`; if that daemon was set up anew, pair again"
        )),
        RemoteError::Devices(error) => credentials_remedy(error),
        // Their messages say it.
        _ => None,
    }
}

/// Returns the exit code for credentials that cannot be used.
pub(super) fn credentials_exit(error: &DevicesError) -> Exit {
    match error {
        DevicesError::Name { .. } => Exit::Usage,
        DevicesError::Io { source, .. } if source.kind() == std::io::ErrorKind::PermissionDenied => {
            Exit::NoPermission
        }
        _ => Exit::Failed,
    }
}

/// Returns the machine-readable name of the error.
pub(super) fn credentials_reason(error: &DevicesError) -> &'static str {
    match error {
        DevicesError::Name { .. } => "USAGE",
        DevicesError::NoCredentials { .. } => "SERVER_NOT_FOUND",
        DevicesError::Damaged { .. } | DevicesError::Newer { .. } => "CREDENTIALS_UNUSABLE",
        DevicesError::Io { .. } => "FILE_REFUSED",
        _ => "FAILED",
    }
}

/// Returns what to do about credentials that cannot be used.
pub(super) fn credentials_remedy(error: &DevicesError) -> Option<String> {
    match error {
        DevicesError::NoCredentials { name } => Some(format!(
            "`satchel servers list` lists the paired daemons; `satchel pair CODE --as {name}` pairs with one"
        )),
        _ => None,
    }
}
