//! Handshakes between a daemon and devices, in memory.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::{io::Write as _, path::Path, sync::Arc, time::Duration};

use rcgen::{CertificateParams, Issuer};
use rustls::{
    AlertDescription, CertificateError, ClientConfig, ClientConnection, Error, HandshakeKind,
    ProtocolVersion, ServerConfig, ServerConnection,
    client::Resumption,
    pki_types::{CertificateDer, PrivatePkcs8KeyDer, UnixTime},
    time_provider::TimeProvider,
    version::TLS13,
};

use crate::{
    authority::{CertificateAuthority, SERVER_NAME, key_hash_of, provider},
    certificate::{self, DAY, Purpose},
    credentials::{
        Credentials, HandshakeError, PairingConfig, generate_key_and_csr, pairing_config_with_clock,
        server_name,
    },
    identity::{Fingerprint, FingerprintPrefix},
    pairing::PairingWindows,
    pairing_code::{PairingCode, PairingSecret, PairingUri},
    policy::{Policy, Role},
    registry::{DeviceRegistry, NewDevice},
};

const NOW: i64 = 1_800_000_000_000_000;

/// A clock that stands still.
#[derive(Debug)]
struct Clock(i64);

impl TimeProvider for Clock {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(Duration::from_micros(self.0.unsigned_abs())))
    }
}

fn clock(now: i64) -> Arc<dyn TimeProvider> {
    Arc::new(Clock(now))
}

fn authority(dir: &Path, name: &str, now: i64) -> CertificateAuthority {
    CertificateAuthority::load_or_create(&dir.join(name), now).unwrap()
}

fn credentials(authority: &CertificateAuthority, now: i64) -> Credentials {
    let (key, csr) = generate_key_and_csr().unwrap();
    let issued = authority.issue(&csr, now).unwrap();
    Credentials::new("home", Vec::new(), authority.certificate_der().to_vec(), issued.der, key).unwrap()
}

fn pairing(expected: FingerprintPrefix, now: i64) -> PairingConfig {
    pairing_config_with_clock(&expected, clock(now)).unwrap()
}

/// Both ends of a connection, how the handshake ended for each, and what the server received.
struct Outcome {
    client: ClientConnection,
    server: ServerConnection,
    client_error: Option<Error>,
    server_error: Option<Error>,
    received: Vec<u8>,
}

impl Outcome {
    fn accepted(&self) -> bool {
        self.client_error.is_none() && self.server_error.is_none() && self.received == b"token"
    }

    fn client_says(&self) -> HandshakeError {
        HandshakeError::from(self.client_error.as_ref().unwrap())
    }
}

/// Connects, and sends `token` as soon as the client has finished its handshake.
fn connect(client: &Arc<ClientConfig>, server: &Arc<ServerConfig>) -> Outcome {
    let mut outcome = Outcome {
        client: ClientConnection::new(Arc::clone(client), server_name().unwrap()).unwrap(),
        server: ServerConnection::new(Arc::clone(server)).unwrap(),
        client_error: None,
        server_error: None,
        received: Vec::new(),
    };
    let mut sent = false;
    for _ in 0..10 {
        if !sent && !outcome.client.is_handshaking() && outcome.client_error.is_none() {
            outcome.client.writer().write_all(b"token").unwrap();
            sent = true;
        }
        let mut bytes = Vec::new();
        while outcome.client.wants_write() {
            outcome.client.write_tls(&mut bytes).unwrap();
        }
        let mut bytes = bytes.as_slice();
        while !bytes.is_empty() && outcome.server.read_tls(&mut bytes).unwrap() > 0 {
            if let Err(error) = outcome.server.process_new_packets() {
                outcome.server_error.get_or_insert(error);
            }
        }
        let mut buffer = [0; 64];
        if let Ok(length) = std::io::Read::read(&mut outcome.server.reader(), &mut buffer) {
            outcome.received.extend(&buffer[..length]);
        }
        let mut bytes = Vec::new();
        while outcome.server.wants_write() {
            outcome.server.write_tls(&mut bytes).unwrap();
        }
        let mut bytes = bytes.as_slice();
        while !bytes.is_empty() && outcome.client.read_tls(&mut bytes).unwrap() > 0 {
            if let Err(error) = outcome.client.process_new_packets() {
                outcome.client_error.get_or_insert(error);
            }
        }
    }
    outcome
}

/// A server that shows any chain and asks for no certificate.
fn server_with(chain: Vec<CertificateDer<'static>>, key: &rcgen::KeyPair) -> Arc<ServerConfig> {
    let key = PrivatePkcs8KeyDer::from(key.serialized_der().to_vec());
    let mut config = ServerConfig::builder_with_details(provider(), clock(NOW))
        .with_protocol_versions(&[&TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key.into())
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    Arc::new(config)
}

fn key_of(dir: &Path, file: &str) -> rcgen::KeyPair {
    certificate::read_key(&std::fs::read(dir.join(file)).unwrap()).unwrap()
}

#[test]
fn a_device_is_paired_and_then_known_by_its_certificate() {
    let dir = tempfile::tempdir().unwrap();
    let authority = authority(dir.path(), "tls", NOW);
    let server = authority.server_config_with_clock(clock(NOW)).unwrap();
    let registry = DeviceRegistry::open(&dir.path().join("devices")).unwrap();
    let windows = PairingWindows::default();
    let policy = Policy::for_role(Role::Owner, "");
    let opener = crate::Opener { name: "owner".to_owned(), device: None };
    let window = windows.open(policy, Some("phone".to_owned()), opener, Duration::from_mins(5), NOW).unwrap();
    let code = PairingCode::new(&authority.fingerprint(), window.token.clone()).to_string();

    // The new device.
    let secret = PairingSecret::parse(&code.to_lowercase()).unwrap();
    let config = pairing(secret.fingerprint, NOW);
    assert_eq!(config.authority(), None);
    let outcome = connect(&config.tls, &server);
    assert!(outcome.accepted());
    assert!(outcome.server.peer_certificates().is_none());
    assert_eq!(outcome.client.alpn_protocol(), Some(&b"h2"[..]));
    assert_eq!(outcome.client.protocol_version(), Some(ProtocolVersion::TLSv1_3));
    let (key, csr) = generate_key_and_csr().unwrap();

    // The daemon.
    let grant = windows.redeem(secret.token.as_bytes(), NOW).unwrap();
    let issued = authority.issue(&csr, NOW).unwrap();
    let new = NewDevice {
        key_hash: issued.key_hash,
        name: grant.name.unwrap(),
        policy: grant.policy,
        paired_by: "this computer".to_owned(),
        expires_at: issued.not_after,
    };
    let device = registry.add(new, NOW).unwrap();

    // The device again, with its certificate.
    let seen = config.authority().unwrap();
    assert_eq!(seen, authority.certificate_der());
    let credentials = Credentials::new("home", Vec::new(), seen, issued.der, key).unwrap();
    let outcome = connect(&credentials.client_config_with_clock(clock(NOW)).unwrap(), &server);
    assert!(outcome.accepted());
    let shown = outcome.server.peer_certificates().unwrap();
    assert_eq!(registry.by_key_hash(&key_hash_of(&shown[0]).unwrap()), Some(Arc::clone(&device)));
    assert_eq!(credentials.device_id().unwrap(), device.id);
}

#[test]
fn pairing_works_by_link_as_well() {
    let dir = tempfile::tempdir().unwrap();
    let authority = authority(dir.path(), "tls", NOW);
    let server = authority.server_config_with_clock(clock(NOW)).unwrap();
    let token = crate::PairingToken::new([7; 5]);
    let uri = PairingUri { addresses: Vec::new(), fingerprint: authority.fingerprint(), token }.to_string();
    let secret = PairingSecret::parse(&uri).unwrap();
    assert!(connect(&pairing(secret.fingerprint, NOW).tls, &server).accepted());
}

#[test]
fn pairing_with_another_daemon_ends_before_anything_is_sent() {
    let dir = tempfile::tempdir().unwrap();
    let real = authority(dir.path(), "real", NOW);
    let other = authority(dir.path(), "other", NOW).server_config_with_clock(clock(NOW)).unwrap();
    let short = *real.fingerprint().as_bytes().first_chunk().unwrap();
    for expected in [FingerprintPrefix::Full(real.fingerprint()), FingerprintPrefix::Short(short)] {
        let config = pairing(expected, NOW);
        let outcome = connect(&config.tls, &other);
        assert!(matches!(outcome.client_says(), HandshakeError::FingerprintMismatch { .. }));
        assert!(outcome.received.is_empty() && outcome.server.is_handshaking());
        assert_eq!(config.authority(), None);
    }
}

#[test]
fn pairing_refuses_a_wrong_chain() {
    let dir = tempfile::tempdir().unwrap();
    let real = authority(dir.path(), "real", NOW);
    let ca = CertificateDer::from(real.certificate_der().to_vec());
    let expected = FingerprintPrefix::Full(real.fingerprint());
    let attacker = certificate::new_key().unwrap();
    let signed = |by: &Issuer<'_, rcgen::KeyPair>, key: &rcgen::KeyPair| {
        let parameters = certificate::parameters(Purpose::Server, SERVER_NAME, 90, NOW).unwrap();
        CertificateDer::from(parameters.signed_by(key, by).unwrap())
    };
    // A paired device, which has a certificate of the real authority, and signs with its key.
    let device = certificate::new_key().unwrap();
    let csr = CertificateParams::default().serialize_request(&device).unwrap();
    let device_der = CertificateDer::from(real.issue(csr.der(), NOW).unwrap().der);
    let device_key = certificate::read_key(device.serialized_der()).unwrap();
    let device_issuer = Issuer::from_ca_cert_der(&device_der, device_key).unwrap();
    let by_device = signed(&device_issuer, &attacker);
    // A certificate with the name of the real authority, but signed by another key.
    let impostor_key = certificate::new_key().unwrap();
    let impostor = Issuer::from_ca_cert_der(&ca, impostor_key).unwrap();
    let by_impostor = signed(&impostor, &attacker);
    for chain in [
        vec![by_impostor.clone(), ca.clone()],
        vec![by_device.clone(), ca.clone()],
        vec![by_device.clone(), device_der.clone(), ca.clone()],
        vec![by_device.clone(), ca.clone(), device_der.clone()],
        vec![by_device.clone()],
    ] {
        let outcome = connect(&pairing(expected, NOW).tls, &server_with(chain, &attacker));
        let error = outcome.client_says();
        assert!(
            matches!(error, HandshakeError::WrongCertificate { .. } | HandshakeError::NoAuthority),
            "{error}"
        );
        assert!(outcome.received.is_empty());
    }
    // The certificate of a device is no certificate of a daemon.
    let outcome =
        connect(&pairing(expected, NOW).tls, &server_with(vec![device_der.clone(), ca.clone()], &device));
    assert!(matches!(outcome.client_says(), HandshakeError::WrongCertificate { .. }));
    // A leaf is no authority, even if its fingerprint is the expected one.
    let leaf = FingerprintPrefix::Full(Fingerprint::of_public_key(
        &certificate::read(&device_der).unwrap().public_key,
    ));
    let outcome = connect(&pairing(leaf, NOW).tls, &server_with(vec![by_device, device_der], &attacker));
    assert_eq!(outcome.client_says(), HandshakeError::NoAuthority);
    // An authority is no leaf.
    let ca_key = key_of(&dir.path().join("real"), "ca.key");
    let outcome = connect(&pairing(expected, NOW).tls, &server_with(vec![ca.clone(), ca], &ca_key));
    assert!(matches!(outcome.client_says(), HandshakeError::WrongCertificate { .. }));
}

#[test]
fn a_paired_device_refuses_another_daemon_and_a_leaf_as_authority() {
    let dir = tempfile::tempdir().unwrap();
    let real = authority(dir.path(), "real", NOW);
    let config = credentials(&real, NOW).client_config_with_clock(clock(NOW)).unwrap();
    let other = authority(dir.path(), "other", NOW).server_config_with_clock(clock(NOW)).unwrap();
    let outcome = connect(&config, &other);
    assert!(matches!(outcome.client_says(), HandshakeError::WrongCertificate { .. }));
    assert!(outcome.received.is_empty());
    // Another paired device shows a certificate that it signed itself.
    let device = certificate::new_key().unwrap();
    let csr = CertificateParams::default().serialize_request(&device).unwrap();
    let device_der = CertificateDer::from(real.issue(csr.der(), NOW).unwrap().der);
    let issuer = Issuer::from_ca_cert_der(&device_der, device).unwrap();
    let key = certificate::new_key().unwrap();
    let parameters = certificate::parameters(Purpose::Server, SERVER_NAME, 90, NOW).unwrap();
    let leaf = CertificateDer::from(parameters.signed_by(&key, &issuer).unwrap());
    let outcome = connect(&config, &server_with(vec![leaf, device_der], &key));
    assert!(matches!(outcome.client_says(), HandshakeError::WrongCertificate { .. }));
}

#[test]
fn certificates_of_another_authority_or_past_their_end_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let real = authority(dir.path(), "real", NOW);
    let server = real.server_config_with_clock(clock(NOW)).unwrap();
    let other = authority(dir.path(), "other", NOW);
    let mut stranger = credentials(&other, NOW);
    // It knows the real daemon, but has its certificate from elsewhere.
    stranger.authority = real.certificate_der().to_vec();
    let outcome = connect(&stranger.client_config_with_clock(clock(NOW)).unwrap(), &server);
    assert!(outcome.server_error.is_some() && outcome.received.is_empty());
    assert!(
        matches!(outcome.client_says(), HandshakeError::OwnCertificateRefused { .. }),
        "{}",
        outcome.client_says()
    );
    let old = credentials(&real, NOW - 89 * DAY);
    let outcome = connect(&old.client_config_with_clock(clock(NOW)).unwrap(), &server);
    let expired = Error::InvalidCertificate(CertificateError::Expired);
    assert_eq!(outcome.server_error.map(|it| without_context(&it)), Some(expired));
    assert_eq!(HandshakeError::from(&outcome.client_error.unwrap()), HandshakeError::OwnCertificateExpired);
    assert!(outcome.received.is_empty());
    let nearly = credentials(&real, NOW - 87 * DAY);
    assert!(connect(&nearly.client_config_with_clock(clock(NOW)).unwrap(), &server).accepted());
}

fn without_context(error: &Error) -> Error {
    match error {
        Error::InvalidCertificate(CertificateError::ExpiredContext { .. }) => {
            Error::InvalidCertificate(CertificateError::Expired)
        }
        other => other.clone(),
    }
}

#[test]
fn a_wrong_clock_is_named_with_both_times() {
    let dir = tempfile::tempdir().unwrap();
    let authority = authority(dir.path(), "tls", NOW);
    let server = authority.server_config_with_clock(clock(NOW)).unwrap();
    let expected = FingerprintPrefix::Full(authority.fingerprint());
    let device = credentials(&authority, NOW);
    for (now, wanted) in [(NOW - 3 * DAY, "2027-01-12"), (NOW + 400 * DAY, "2028-02-19")] {
        let by_code = connect(&pairing(expected, now).tls, &server).client_says();
        let by_certificate =
            connect(&device.client_config_with_clock(clock(now)).unwrap(), &server).client_says();
        assert_eq!(by_code, by_certificate);
        let early = matches!(by_code, HandshakeError::NotYetValid { .. });
        assert!(
            early == (now < NOW) && (early || matches!(by_code, HandshakeError::Expired { .. })),
            "{by_code}"
        );
        let text = by_code.to_string();
        assert!(text.contains("clock") && text.contains(wanted), "{text}");
    }
    // Two days of difference do no harm.
    assert!(connect(&pairing(expected, NOW - 2 * DAY).tls, &server).accepted());
}

#[test]
fn a_renewed_server_certificate_is_used_by_the_next_connection() {
    let dir = tempfile::tempdir().unwrap();
    let authority = authority(dir.path(), "tls", NOW);
    let later = NOW + 400 * DAY;
    let server = authority.server_config_with_clock(clock(later)).unwrap();
    let expected = FingerprintPrefix::Full(authority.fingerprint());
    assert!(!connect(&pairing(expected, later).tls, &server).accepted());
    assert!(authority.renew_if_due(later).unwrap());
    assert!(connect(&pairing(expected, later).tls, &server).accepted());
}

#[test]
fn sessions_are_never_resumed() {
    let dir = tempfile::tempdir().unwrap();
    let authority = authority(dir.path(), "tls", NOW);
    let server = authority.server_config_with_clock(clock(NOW)).unwrap();
    let config = credentials(&authority, NOW).client_config_with_clock(clock(NOW)).unwrap();
    let mut eager = ClientConfig::clone(&config);
    eager.resumption = Resumption::in_memory_sessions(8);
    let eager = Arc::new(eager);
    for _ in 0..2 {
        let outcome = connect(&eager, &server);
        assert!(outcome.accepted());
        assert_eq!(outcome.client.handshake_kind(), Some(HandshakeKind::Full));
        assert_eq!(outcome.client.tls13_tickets_received(), 0);
    }
}

#[test]
fn a_client_that_knows_only_tls_1_2_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let server = authority(dir.path(), "tls", NOW).server_config_with_clock(clock(NOW)).unwrap();
    let mut connection = ServerConnection::new(server).unwrap();
    let hello = tls12_hello();
    connection.read_tls(&mut hello.as_slice()).unwrap();
    let error = connection.process_new_packets().unwrap_err();
    assert!(matches!(error, Error::PeerIncompatible(_)), "{error}");
    let mut answer = Vec::new();
    connection.write_tls(&mut answer).unwrap();
    // A fatal alert in plain text: record type 21, version, length 2, level 2.
    assert_eq!(answer, [21, 3, 3, 0, 2, 2, u8::from(AlertDescription::ProtocolVersion)]);
}

/// The first message of a TLS 1.2 client (RFC 5246 §7.4.1.2), with ECDHE and ECDSA.
fn tls12_hello() -> Vec<u8> {
    let extensions: [&[u8]; 3] = [
        // supported_groups: x25519
        &[0, 10, 0, 4, 0, 2, 0, 29],
        // ec_point_formats: uncompressed
        &[0, 11, 0, 2, 1, 0],
        // signature_algorithms: ecdsa_secp256r1_sha256, ed25519
        &[0, 13, 0, 6, 0, 4, 4, 3, 8, 7],
    ];
    let extensions = extensions.concat();
    let mut body = vec![3, 3];
    body.extend([7; 32]);
    // No session; ECDHE-ECDSA and ECDHE-RSA with AES-128-GCM; no compression.
    body.extend([0, 0, 4, 0xc0, 0x2b, 0xc0, 0x2f, 1, 0, 0, u8::try_from(extensions.len()).unwrap()]);
    body.extend(extensions);
    let mut message = vec![1, 0, 0, u8::try_from(body.len()).unwrap()];
    message.extend(body);
    let mut record = vec![22, 3, 1, 0, u8::try_from(message.len()).unwrap()];
    record.extend(message);
    record
}

#[test]
fn the_reason_is_found_inside_the_errors_of_other_libraries() {
    let mismatch = HandshakeError::NoAuthority;
    let tls =
        Error::InvalidCertificate(CertificateError::Other(rustls::OtherError(Arc::new(mismatch.clone()))));
    let inner = std::io::Error::new(std::io::ErrorKind::InvalidData, tls);
    let outer = std::io::Error::other(inner);
    assert_eq!(HandshakeError::find(&outer), Some(mismatch));
    assert_eq!(HandshakeError::find(&std::io::Error::other("refused")), None);
}
