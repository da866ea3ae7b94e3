//! Connections of a device to the daemon that it is paired with, and pairing.

use std::{error::Error, fmt, time::Duration};

use satchel_devices::{
    Credentials, DevicesError, FingerprintPrefix, HandshakeError, PairingSecret, generate_key_and_csr,
    pairing_config,
};
use satchel_proto::v1::{
    CompletePairingRequest, CompletePairingResponse, Device, RenewCertificateRequest,
    device_service_client::DeviceServiceClient, pairing_service_client::PairingServiceClient,
};
use tonic::{Request, Status, transport::Channel};

use super::dial::Dialer;

/// How long a daemon may take to answer a call of this module. It writes one small file.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// Why an address does not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressFailure {
    pub address: String,
    pub reason: String,
}

impl fmt::Display for AddressFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.address, self.reason)
    }
}

/// The reason why a daemon on another machine cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RemoteError {
    /// No address answers.
    #[error("{}", reasons(failures))]
    Unreachable { failures: Vec<AddressFailure> },
    /// A server answers, but no secure connection to it can be made.
    #[error("{address}: {error}")]
    Handshake { address: String, error: HandshakeError },
    /// The connection is secure, but no HTTP/2 is spoken over it.
    #[error("{address} does not speak HTTP/2")]
    Http { address: String, source: Box<dyn Error + Send + Sync> },
    /// The daemon refused the call.
    #[error("{}", .0.message())]
    Refused(Box<Status>),
    /// The daemon's answer contains another authority than that of the code.
    #[error("the daemon sent the certificate of another authority than the one of the code, {expected}")]
    WrongAuthority { expected: FingerprintPrefix },
    /// Credentials or certificates cannot be used.
    #[error(transparent)]
    Devices(#[from] DevicesError),
}

impl From<Status> for RemoteError {
    fn from(status: Status) -> Self {
        Self::Refused(Box::new(status))
    }
}

fn reasons(failures: &[AddressFailure]) -> String {
    if failures.is_empty() {
        return "no address of the daemon is known".to_owned();
    }
    failures.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// Connects to a paired daemon. The channel connects again when the connection is lost.
///
/// # Errors
/// No address answers, a server that is not the paired daemon does, or the daemon does not accept the certificate.
pub async fn connect_remote(credentials: &Credentials) -> Result<Channel, RemoteError> {
    let dialer = Dialer::new(credentials.addresses.clone(), credentials.client_config()?);
    let first = dialer.dial().await?;
    dialer.channel(first).await
}

/// Connects to a paired daemon as [`connect_remote`] does, for a connection that stays open while nothing happens.
///
/// # Errors
/// As [`connect_remote`].
pub(crate) async fn connect_peer(credentials: &Credentials) -> Result<Channel, RemoteError> {
    let dialer = Dialer::new(credentials.addresses.clone(), credentials.client_config()?).for_idling();
    let first = dialer.dial().await?;
    dialer.channel(first).await
}

/// Connects to the daemon with this fingerprint, without a certificate of this device: for callers with a token, which
/// they send in the header `authorization`. The channel connects again when the connection is lost.
///
/// # Errors
/// No address answers, or another daemon does.
pub async fn connect_pinned(
    addresses: Vec<String>,
    fingerprint: &FingerprintPrefix,
) -> Result<Channel, RemoteError> {
    let dialer = Dialer::new(addresses, pairing_config(fingerprint)?.tls);
    let first = dialer.dial().await?;
    dialer.channel(first).await
}

/// What a device needs to pair.
#[derive(Clone, Debug)]
pub struct PairingAttempt<'a> {
    /// The code or link.
    pub secret: &'a PairingSecret,
    /// Where the daemon may be reached, the likeliest first.
    pub addresses: Vec<String>,
    /// The name of this device, unless the daemon has set one.
    pub device_name: &'a str,
    /// How the person calls the daemon.
    pub server_name: &'a str,
}

/// The result of pairing.
#[derive(Clone, Debug)]
pub struct Paired {
    /// Not saved yet. The address that answered comes first.
    pub credentials: Credentials,
    /// This device, as the daemon lists it.
    pub device: Device,
}

/// Pairs this device with the daemon that showed a code. Before anything is sent, the key of the daemon is compared
/// with the fingerprint in the code.
///
/// # Errors
/// No address answers, another daemon does, or the daemon refuses the code.
pub async fn pair(attempt: PairingAttempt<'_>) -> Result<Paired, RemoteError> {
    let PairingAttempt { secret, mut addresses, device_name, server_name } = attempt;
    // Checked before the code is used up.
    Credentials::check_name(server_name)?;
    let (key, certificate_request_der) = generate_key_and_csr()?;
    let dialer = Dialer::new(addresses.clone(), pairing_config(&secret.fingerprint)?.tls);
    let first = dialer.dial().await?;
    addresses.retain(|address| *address != first.address);
    addresses.insert(0, first.address.clone());
    let channel = dialer.channel(first).await?;
    let request = CompletePairingRequest {
        token: secret.token.as_bytes().to_vec(),
        certificate_request_der,
        name: device_name.to_owned(),
    };
    let answer = PairingServiceClient::new(channel).complete_pairing(with_timeout(request)).await?;
    let CompletePairingResponse { device, certificate_der, ca_certificate_der, header: _ } =
        answer.into_inner();
    let credentials = Credentials::new(server_name, addresses, ca_certificate_der, certificate_der, key)?;
    if !secret.fingerprint.matches(&credentials.fingerprint()?) {
        return Err(RemoteError::WrongAuthority { expected: secret.fingerprint });
    }
    Ok(Paired { credentials, device: device.unwrap_or_default() })
}

/// Returns the same credentials with a new certificate, which the daemon issues for the same key.
///
/// # Errors
/// The daemon refuses, or its answer does not fit the key.
pub async fn renew(channel: Channel, credentials: &Credentials) -> Result<Credentials, RemoteError> {
    let Credentials { name, addresses, authority, key, selection, certificate: _ } = credentials;
    let request = RenewCertificateRequest { certificate_request_der: key.certificate_request()? };
    let answer = DeviceServiceClient::new(channel).renew_certificate(with_timeout(request)).await?;
    let certificate = answer.into_inner().certificate_der;
    let renewed = Credentials::new(name, addresses.clone(), authority.clone(), certificate, key.clone())?;
    Ok(Credentials { selection: selection.clone(), ..renewed })
}

fn with_timeout<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(CALL_TIMEOUT);
    request
}
