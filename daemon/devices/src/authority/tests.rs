use std::{fs, os::unix::fs::PermissionsExt as _, sync::LazyLock};

use proptest::prelude::*;
use rcgen::PKCS_ED25519;
use tempfile::TempDir;

use super::*;
use crate::{certificate::DAY, credentials::generate_key_and_csr};

const NOW: i64 = 1_800_000_000_000_000;

fn authority(dir: &TempDir) -> CertificateAuthority {
    CertificateAuthority::load_or_create(&dir.path().join("tls"), NOW).unwrap()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn the_authority_is_the_same_after_a_restart_and_its_files_are_private() {
    let dir = tempfile::tempdir().unwrap();
    let first = authority(&dir);
    let again = authority(&dir);
    assert_eq!(first.fingerprint(), again.fingerprint());
    assert_eq!(first.certificate_der(), again.certificate_der());
    assert_eq!(first.server_certificate_expires(), again.server_certificate_expires());
    let folder = dir.path().join("tls");
    assert_eq!(mode(&folder), 0o700);
    for file in ["ca.key", "ca.crt", "server.key", "server.crt"] {
        assert_eq!(mode(&folder.join(file)), 0o600, "{file}");
    }
    assert_ne!(first.fingerprint(), authority(&tempfile::tempdir().unwrap()).fingerprint());
}

#[test]
fn a_folder_that_others_may_read_is_closed() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("tls");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    authority(&dir);
    assert_eq!(mode(&folder), 0o700);
}

#[test]
fn certificates_have_the_announced_periods_and_purposes() {
    let dir = tempfile::tempdir().unwrap();
    let authority = authority(&dir);
    let ca = certificate::read(authority.certificate_der()).unwrap();
    assert!(ca.authority);
    assert_eq!((ca.not_before, ca.not_after), (NOW - 2 * DAY, NOW + 3_651 * DAY));
    assert_eq!(authority.server_certificate_expires(), NOW + 363 * DAY);
    let (key, csr) = generate_key_and_csr().unwrap();
    let issued = authority.issue(&csr, NOW).unwrap();
    let facts = certificate::read(&issued.der).unwrap();
    assert_eq!((facts.not_before, facts.not_after, facts.authority), (NOW - 2 * DAY, NOW + 88 * DAY, false));
    assert_eq!(issued.not_after, facts.not_after);
    assert_eq!(issued.key_hash, key_hash_of(&issued.der).unwrap());
    assert_eq!(issued.key_hash, key.key_hash().unwrap());
    assert!(certificate::signed_by(&issued.der, authority.certificate_der()).unwrap());
    // Each has its own serial number, so no two are equal.
    assert_ne!(issued.der, authority.issue(&csr, NOW).unwrap().der);
}

#[test]
fn only_the_key_of_a_request_is_used() {
    let dir = tempfile::tempdir().unwrap();
    let authority = authority(&dir);
    // A request that asks for the rights of an authority and for the daemon's name.
    let mut greedy = CertificateParams::new(vec![SERVER_NAME.to_owned()]).unwrap();
    greedy.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    greedy.key_usages = vec![rcgen::KeyUsagePurpose::KeyCertSign];
    greedy.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ServerAuth];
    let key = certificate::new_key().unwrap();
    let issued = authority.issue(greedy.serialize_request(&key).unwrap().der(), NOW).unwrap();
    let (_, parsed) = x509_parser::parse_x509_certificate(&issued.der).unwrap();
    assert!(!parsed.is_ca());
    assert!(parsed.subject_alternative_name().unwrap().is_none());
    let usage = parsed.extended_key_usage().unwrap().unwrap().value;
    assert!(usage.client_auth && !usage.server_auth && !usage.any);
    assert_eq!(parsed.subject().to_string(), "CN=Satchel device");
}

#[test]
fn all_certificates_have_p256_keys_and_ecdsa_signatures() {
    let dir = tempfile::tempdir().unwrap();
    let authority = authority(&dir);
    let (_, csr) = generate_key_and_csr().unwrap();
    let server = fs::read(dir.path().join("tls/server.crt")).unwrap();
    for der in [authority.certificate_der(), &server, &authority.issue(&csr, NOW).unwrap().der] {
        let (_, parsed) = x509_parser::parse_x509_certificate(der).unwrap();
        // ecdsa-with-SHA256 (RFC 5758 §3.2) and secp256r1 (RFC 5480 §2.1.1.1).
        assert_eq!(parsed.signature_algorithm.algorithm.to_id_string(), "1.2.840.10045.4.3.2");
        let curve = parsed.public_key().algorithm.parameters.as_ref().unwrap().as_oid().unwrap();
        assert_eq!(curve.to_id_string(), "1.2.840.10045.3.1.7");
    }
}

#[test]
fn an_ed25519_key_of_an_earlier_version_is_refused_and_stays() {
    let dir = tempfile::tempdir().unwrap();
    authority(&dir);
    let folder = dir.path().join("tls");
    let old = KeyPair::generate_for(&PKCS_ED25519).unwrap().serialized_der().to_vec();
    // Devices do not know the key of the daemon's own certificate: it is replaced.
    fs::write(folder.join("server.key"), &old).unwrap();
    authority(&dir);
    assert_ne!(fs::read(folder.join("server.key")).unwrap(), old);
    fs::write(folder.join("ca.key"), &old).unwrap();
    let error = CertificateAuthority::load_or_create(&folder, NOW).unwrap_err().to_string();
    assert!(error.contains("ca.key") && error.contains("Ed25519"), "{error}");
    assert!(error.contains("pair each device again") && !error.contains("backup"), "{error}");
    assert_eq!(fs::read(folder.join("ca.key")).unwrap(), old);
}

#[test]
fn a_device_may_use_an_ed25519_key() {
    let dir = tempfile::tempdir().unwrap();
    let key = KeyPair::generate_for(&PKCS_ED25519).unwrap();
    let csr = CertificateParams::default().serialize_request(&key).unwrap();
    let issued = authority(&dir).issue(csr.der(), NOW).unwrap();
    assert_eq!(issued.key_hash, KeyHash::of_public_key(&key.subject_public_key_info()));
}

#[test]
fn a_request_with_a_wrong_signature_or_damage_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let authority = authority(&dir);
    let (_, csr) = generate_key_and_csr().unwrap();
    let mut forged = csr.clone();
    *forged.last_mut().unwrap() ^= 1;
    let mut longer = csr.clone();
    longer.push(0);
    for bad in [&forged[..], &longer, &csr[..csr.len() - 1], b"", b"request", &vec![0x30; 20_000]] {
        assert!(matches!(authority.issue(bad, NOW), Err(DevicesError::Request { .. })));
    }
}

#[test]
fn the_server_certificate_is_renewed_with_a_new_key_when_a_third_is_left() {
    let dir = tempfile::tempdir().unwrap();
    let authority = authority(&dir);
    let key = || fs::read(dir.path().join("tls/server.key")).unwrap();
    let first = key();
    let two_thirds = NOW - 2 * DAY + 365 * DAY * 2 / 3;
    assert!(!authority.renew_if_due(two_thirds - DAY).unwrap());
    assert_eq!(key(), first);
    assert!(authority.renew_if_due(two_thirds + DAY).unwrap());
    assert_ne!(key(), first);
    assert_eq!(authority.server_certificate_expires(), two_thirds + 364 * DAY);
    assert!(!authority.renew_if_due(two_thirds + DAY).unwrap());
    // A restart renews it as well.
    let second = key();
    let later = two_thirds + 300 * DAY;
    let again = CertificateAuthority::load_or_create(&dir.path().join("tls"), later).unwrap();
    assert_ne!(key(), second);
    assert_eq!(again.fingerprint(), authority.fingerprint());
}

#[test]
fn the_certificate_of_the_authority_is_renewed_with_the_same_key() {
    let dir = tempfile::tempdir().unwrap();
    let first = authority(&dir);
    let later = CertificateAuthority::load_or_create(&dir.path().join("tls"), NOW + 3_000 * DAY).unwrap();
    assert_ne!(first.certificate_der(), later.certificate_der());
    assert_eq!(first.fingerprint(), later.fingerprint());
}

#[test]
fn a_lost_or_damaged_key_is_never_replaced() {
    let dir = tempfile::tempdir().unwrap();
    authority(&dir);
    let folder = dir.path().join("tls");
    let key = folder.join("ca.key");
    fs::write(&key, "damaged").unwrap();
    let error = CertificateAuthority::load_or_create(&folder, NOW).unwrap_err();
    assert!(matches!(error, DevicesError::Damaged { .. }), "{error}");
    assert_eq!(fs::read(&key).unwrap(), b"damaged");
    fs::remove_file(&key).unwrap();
    let error = CertificateAuthority::load_or_create(&folder, NOW).unwrap_err();
    assert!(error.to_string().contains("ca.key") && error.to_string().contains("backup"), "{error}");
    // The key of another authority does not fit the certificate.
    let other = tempfile::tempdir().unwrap();
    authority(&other);
    fs::copy(other.path().join("tls/ca.key"), &key).unwrap();
    assert!(matches!(CertificateAuthority::load_or_create(&folder, NOW), Err(DevicesError::Damaged { .. })));
}

#[test]
fn files_that_a_crash_left_without_each_other_are_made_again() {
    let dir = tempfile::tempdir().unwrap();
    let first = authority(&dir);
    let folder = dir.path().join("tls");
    let other = tempfile::tempdir().unwrap();
    authority(&other);
    for file in ["server.key", "server.crt"] {
        fs::copy(other.path().join("tls").join(file), folder.join(file)).unwrap();
        assert_eq!(authority(&dir).fingerprint(), first.fingerprint());
        let der = fs::read(folder.join("server.crt")).unwrap();
        assert!(certificate::signed_by(&der, first.certificate_der()).unwrap());
        fs::remove_file(folder.join(file)).unwrap();
        authority(&dir);
        assert!(folder.join(file).exists());
    }
    fs::remove_file(folder.join("ca.crt")).unwrap();
    fs::write(folder.join(".new-abc"), "unfinished").unwrap();
    assert_eq!(authority(&dir).fingerprint(), first.fingerprint());
}

#[test]
fn a_clock_outside_of_all_calendars_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    for now in [i64::MIN, -1, i64::MAX] {
        let result = CertificateAuthority::load_or_create(&dir.path().join("tls"), now);
        assert!(matches!(result, Err(DevicesError::Clock)), "{now}");
    }
}

/// Made once for all cases of a property: making it waits for the disk.
static SHARED: LazyLock<(TempDir, CertificateAuthority)> = LazyLock::new(|| {
    let dir = tempfile::tempdir().unwrap();
    let authority = authority(&dir);
    (dir, authority)
});

proptest! {
    #[test]
    fn a_changed_request_gives_no_certificate_for_another_key(at in any::<prop::sample::Index>(), bit in 0..8_u32) {
        let (key, mut csr) = generate_key_and_csr().unwrap();
        let at = at.index(csr.len());
        csr[at] ^= 1 << bit;
        if let Ok(issued) = SHARED.1.issue(&csr, NOW) {
            prop_assert_eq!(issued.key_hash, key.key_hash().unwrap());
        }
    }

    #[test]
    fn arbitrary_bytes_are_neither_a_request_nor_a_certificate(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(certificate::public_key_of_request(&bytes).is_err());
        prop_assert!(key_hash_of(&bytes).is_err());
    }
}
