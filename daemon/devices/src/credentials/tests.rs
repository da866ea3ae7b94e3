use std::{fs, os::unix::fs::PermissionsExt as _};

use base64::{Engine as _, engine::general_purpose::STANDARD};

use super::*;
use crate::authority::CertificateAuthority;

const NOW: i64 = 1_800_000_000_000_000;

fn credentials(name: &str, authority: &CertificateAuthority) -> Result<Credentials, DevicesError> {
    let (key, csr) = generate_key_and_csr()?;
    let issued = authority.issue(&csr, NOW)?;
    let addresses = vec!["192.168.1.20:7443".to_owned()];
    Credentials::new(name, addresses, authority.certificate_der().to_vec(), issued.der, key)
}

#[test]
fn credentials_are_read_as_they_were_saved_and_removed() {
    let dir = tempfile::tempdir().unwrap();
    let authority = CertificateAuthority::load_or_create(&dir.path().join("tls"), NOW).unwrap();
    let client = dir.path().join("client");
    assert!(Credentials::list(&client).unwrap().is_empty());
    let selection = Selection { exportable_only: true, ..Selection::default() };
    let home = Credentials { selection, ..credentials("home", &authority).unwrap() };
    home.save(&client).unwrap();
    credentials("attic.2", &authority).unwrap().save(&client).unwrap();
    fs::write(client.join("servers/.new-abc"), "unfinished").unwrap();
    assert_eq!(Credentials::list(&client).unwrap(), ["attic.2", "home"]);
    let read = Credentials::load(&client, "home").unwrap();
    assert_eq!(
        (&read.addresses, &read.certificate, &read.authority),
        (&home.addresses, &home.certificate, &home.authority)
    );
    assert_eq!(read.key.0, home.key.0);
    assert_eq!(read.selection, home.selection);
    assert!(Credentials::load(&client, "attic.2").unwrap().selection.is_empty());
    assert_eq!(read.fingerprint().unwrap(), authority.fingerprint());
    let key = crate::authority::key_hash_of(&home.certificate).unwrap();
    assert_eq!(read.device_id().unwrap(), DeviceId::of(&key));
    assert!(!read.renewal_due(NOW).unwrap() && read.renewal_due(read.expires_at().unwrap()).unwrap());
    let path = client.join("servers/home.json");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(client.join("servers")).unwrap().permissions().mode() & 0o777, 0o700);
    Credentials::remove(&client, "home").unwrap();
    assert!(!path.exists());
    assert!(matches!(Credentials::remove(&client, "home"), Err(DevicesError::NoCredentials { .. })));
    assert!(matches!(Credentials::load(&client, "home"), Err(DevicesError::NoCredentials { .. })));
}

#[test]
fn parts_that_do_not_fit_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let authority = CertificateAuthority::load_or_create(&dir.path().join("one"), NOW).unwrap();
    let other = CertificateAuthority::load_or_create(&dir.path().join("two"), NOW).unwrap();
    let good = credentials("home", &authority).unwrap();
    let (key, _) = generate_key_and_csr().unwrap();
    for bad in [
        Credentials { authority: other.certificate_der().to_vec(), ..good.clone() },
        Credentials { authority: good.certificate.clone(), ..good.clone() },
        Credentials { certificate: vec![1, 2, 3], ..good.clone() },
        Credentials { key, ..good.clone() },
    ] {
        assert!(matches!(bad.save(dir.path()), Err(DevicesError::Certificate { .. })));
    }
    for name in ["", ".", "..", "../home", "a/b", "Home", ".new-abc", &"a".repeat(65)] {
        assert!(matches!(credentials(name, &authority), Err(DevicesError::Name { .. })), "{name}");
        assert!(matches!(Credentials::load(dir.path(), name), Err(DevicesError::Name { .. })), "{name}");
    }
}

#[test]
fn a_damaged_file_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let authority = CertificateAuthority::load_or_create(&dir.path().join("tls"), NOW).unwrap();
    credentials("home", &authority).unwrap().save(dir.path()).unwrap();
    let path = dir.path().join("servers/home.json");
    let good = fs::read_to_string(&path).unwrap();
    for bad in ["", &good[..good.len() / 2], &good.replace("\"private_key\": \"M", "\"private_key\": \"A")] {
        fs::write(&path, bad).unwrap();
        let error = Credentials::load(dir.path(), "home").unwrap_err();
        assert!(
            matches!(error, DevicesError::Damaged { .. }) && error.to_string().contains("home.json"),
            "{error}"
        );
    }
    fs::write(&path, good.replace("\"format\": 1", "\"format\": 2")).unwrap();
    assert!(matches!(Credentials::load(dir.path(), "home"), Err(DevicesError::Newer { .. })));
}

#[test]
fn an_ed25519_key_of_an_earlier_version_is_refused_with_the_remedy() {
    let dir = tempfile::tempdir().unwrap();
    let authority = CertificateAuthority::load_or_create(&dir.path().join("tls"), NOW).unwrap();
    credentials("home", &authority).unwrap().save(dir.path()).unwrap();
    let path = dir.path().join("servers/home.json");
    let mut stored: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let old = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
    stored["private_key"] = STANDARD.encode(old.serialized_der()).into();
    fs::write(&path, stored.to_string()).unwrap();
    let error = Credentials::load(dir.path(), "home").unwrap_err().to_string();
    assert!(error.contains("home.json") && error.contains("Ed25519"), "{error}");
    assert!(error.contains("servers remove") && error.contains("pair this device again"), "{error}");
    Credentials::remove(dir.path(), "home").unwrap();
}

#[test]
fn debug_output_shows_no_key() {
    let (key, _) = generate_key_and_csr().unwrap();
    assert_eq!(format!("{key:?}"), "ClientKey(..)");
}
