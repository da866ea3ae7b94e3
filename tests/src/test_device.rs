//! A device for one test: it is paired with a [`TestDaemon`] and calls it over TLS.

use std::{io, sync::Arc, time::Duration};

use anyhow::{Context as _, Result};
use hyper_util::rt::TokioIo;
use satchel_devices::{
    Credentials, PairingSecret,
    credentials::{generate_key_and_csr, pairing_config, pairing_config_with_clock, server_name},
};
use satchel_proto::v1::{
    self, device_service_client::DeviceServiceClient, pairing_service_client::PairingServiceClient,
};
use satchel_server::config::Config;
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio_rustls::{
    TlsConnector,
    rustls::{ClientConfig, pki_types::UnixTime, time_provider::TimeProvider},
};
use tonic::transport::{Channel, Endpoint, Uri};
use tower::service_fn;

use crate::test_daemon::TestDaemon;

/// A paired device.
pub struct TestDevice {
    /// A connection to the daemon with the certificate of the device.
    pub channel: Channel,
    /// What the daemon knows of the device.
    pub device: v1::Device,
    /// What the device keeps.
    pub credentials: Credentials,
}

/// A clock that is wrong by this many seconds.
#[derive(Clone, Copy, Debug)]
pub struct WrongClock(pub i64);

impl TimeProvider for WrongClock {
    fn current_time(&self) -> Option<UnixTime> {
        let seconds = UnixTime::now().as_secs().checked_add_signed(self.0)?;
        Some(UnixTime::since_unix_epoch(Duration::from_secs(seconds)))
    }
}

/// Makes a daemon accept devices on a free port of this machine.
pub fn listen(config: &mut Config) {
    config.listen = Some(([127, 0, 0, 1], 0).into());
}

/// Starts a daemon that accepts devices.
///
/// # Errors
/// If it does not start.
pub async fn listening_daemon() -> Result<TestDaemon> {
    listening_daemon_in(tempfile::tempdir()?).await
}

/// Starts a daemon that accepts devices, on the data directory in `folder`.
///
/// # Errors
/// If it does not start.
pub async fn listening_daemon_in(folder: TempDir) -> Result<TestDaemon> {
    TestDaemon::start_with(folder, listen).await
}

/// Returns a policy with the default permissions of a role.
#[must_use]
pub fn policy(role: v1::DeviceRole) -> v1::DevicePolicy {
    v1::DevicePolicy { role: role.into(), ..v1::DevicePolicy::default() }
}

/// Opens a window in which one device can pair, and returns its code.
///
/// # Errors
/// If the daemon refuses it.
pub async fn create_pairing(
    daemon: &TestDaemon,
    name: &str,
    policy: v1::DevicePolicy,
) -> Result<v1::CreatePairingResponse> {
    let mut client = DeviceServiceClient::new(daemon.channel.clone());
    let request = v1::CreatePairingRequest { policy: Some(policy), name: name.to_owned(), valid_for: None };
    Ok(client.create_pairing(request).await?.into_inner())
}

impl TestDevice {
    /// Pairs a device with this policy.
    ///
    /// # Errors
    /// If the daemon refuses it.
    pub async fn pair(daemon: &TestDaemon, name: &str, policy: v1::DevicePolicy) -> Result<Self> {
        let pairing = create_pairing(daemon, name, policy).await?;
        Self::pair_with(&PairingSecret::parse(&pairing.uri)?, name).await
    }

    /// Pairs a device with the secret of a link.
    ///
    /// # Errors
    /// If the daemon refuses it.
    pub async fn pair_with(secret: &PairingSecret, name: &str) -> Result<Self> {
        Self::pair_with_clock(secret, name, WrongClock(0)).await
    }

    /// Pairs a device whose clock is wrong with the secret of a link.
    ///
    /// # Errors
    /// If the daemon refuses it, or the certificate of the daemon is not valid by this clock.
    pub async fn pair_with_clock(secret: &PairingSecret, name: &str, clock: WrongClock) -> Result<Self> {
        let address = secret.addresses.first().context("an address")?.clone();
        let (key, certificate_request_der) = generate_key_and_csr()?;
        let clock: Arc<dyn TimeProvider> = Arc::new(clock);
        let config = pairing_config_with_clock(&secret.fingerprint, Arc::clone(&clock))?;
        let channel = connect(&address, config.tls.clone()).await?;
        let request = v1::CompletePairingRequest {
            token: secret.token.as_bytes().to_vec(),
            certificate_request_der,
            name: name.to_owned(),
        };
        let paired = PairingServiceClient::new(channel).complete_pairing(request).await?.into_inner();
        let authority = config.authority().context("the daemon has shown its authority")?;
        let credentials =
            Credentials::new("daemon", vec![address.clone()], authority, paired.certificate_der, key)?;
        let channel = connect(&address, credentials.client_config_with_clock(clock)?).await?;
        Ok(Self { channel, device: paired.device.context("a device")?, credentials })
    }

    /// Connects anew, with the same certificate.
    ///
    /// # Errors
    /// If the connection fails.
    pub async fn connect(credentials: Credentials, device: v1::Device) -> Result<Self> {
        let address = credentials.addresses.first().context("an address")?;
        let channel = connect(address, credentials.client_config()?).await?;
        Ok(Self { channel, device, credentials })
    }

    /// Revokes the device.
    ///
    /// # Errors
    /// If the daemon refuses it.
    pub async fn revoke(&self, daemon: &TestDaemon) -> Result<()> {
        let request = v1::RevokeDeviceRequest { device: self.device.id.clone(), reason: String::new() };
        DeviceServiceClient::new(daemon.channel.clone()).revoke_device(request).await?;
        Ok(())
    }
}

/// Connects to a daemon without a certificate. Its own certificate must come from the authority of `device`.
///
/// # Errors
/// If the connection fails.
pub async fn connect_without_certificate(device: &TestDevice) -> Result<Channel> {
    let fingerprint = satchel_devices::FingerprintPrefix::Full(device.credentials.fingerprint()?);
    let address = device.credentials.addresses.first().context("an address")?;
    connect(address, pairing_config(&fingerprint)?.tls).await
}

/// Connects over TLS.
///
/// # Errors
/// If the connection or the handshake fails.
pub async fn connect(address: &str, config: Arc<ClientConfig>) -> Result<Channel> {
    let address = address.to_owned();
    let connector = service_fn(move |_: Uri| {
        let (address, config) = (address.clone(), Arc::clone(&config));
        async move {
            let stream = TcpStream::connect(&address).await?;
            stream.set_nodelay(true)?;
            let name = server_name().map_err(io::Error::other)?;
            Ok::<_, io::Error>(TokioIo::new(TlsConnector::from(config).connect(name, stream).await?))
        }
    });
    Ok(Endpoint::from_static("https://satchel.local").connect_with_connector(connector).await?)
}
