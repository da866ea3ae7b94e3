use std::fs;

use super::*;
use crate::policy::{Role, Scope};

const NOW: i64 = 1_800_000_000_000_000;
const SECOND: i64 = 1_000_000;

fn policy() -> Policy {
    Policy::for_role(Role::Reader, "")
}

fn new(name: &str, key: &str) -> NewDevice {
    NewDevice {
        key_hash: KeyHash::of_public_key(key.as_bytes()),
        name: name.to_owned(),
        policy: policy(),
        paired_by: "this computer".to_owned(),
        expires_at: NOW + 88 * DAY,
    }
}

fn names(registry: &DeviceRegistry) -> Vec<String> {
    registry.list(true).iter().map(|device| device.name.clone()).collect()
}

#[test]
fn devices_are_found_again_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("devices");
    let registry = DeviceRegistry::open(&folder).unwrap();
    let phone = registry.add(new("phone", "a"), NOW).unwrap();
    let (token, _) = registry.create_token("script", policy(), "phone", NOW + DAY, NOW + 1).unwrap();
    registry.revoke(&token.id, "lost", NOW + 2).unwrap();
    let listed = registry.list(true);
    drop(registry);
    let again = DeviceRegistry::open(&folder).unwrap();
    assert_eq!(again.list(true), listed);
    assert_eq!(again.list(false), [Arc::clone(&phone)]);
    assert_eq!(again.by_key_hash(&phone.key_hash), Some(phone));
    assert_eq!(listed[1].revoke_reason.as_deref(), Some("lost"));
}

#[test]
fn a_revoked_key_is_refused_for_ever() {
    let dir = tempfile::tempdir().unwrap();
    let registry = DeviceRegistry::open(dir.path()).unwrap();
    let phone = registry.add(new("phone", "a"), NOW).unwrap();
    assert!(
        matches!(registry.add(new("other", "a"), NOW), Err(DevicesError::AlreadyPaired { name }) if name == "phone")
    );
    registry.revoke(&phone.id, "stolen", NOW).unwrap();
    assert_eq!(registry.by_key_hash(&phone.key_hash), None);
    assert!(matches!(registry.add(new("phone", "a"), NOW), Err(DevicesError::Revoked { .. })));
    assert!(matches!(registry.revoke(&phone.id, "again", NOW), Err(DevicesError::Revoked { .. })));
    assert!(matches!(registry.rename(&phone.id, "x"), Err(DevicesError::Revoked { .. })));
    assert!(matches!(registry.set_policy(&phone.id, policy()), Err(DevicesError::Revoked { .. })));
    assert!(matches!(registry.certificate_renewed(&phone.key_hash, NOW), Err(DevicesError::Revoked { .. })));
    // Its name is free for the next one.
    assert_eq!(registry.add(new("phone", "b"), NOW).unwrap().name, "phone");
}

#[test]
fn a_taken_name_gets_a_number() {
    let dir = tempfile::tempdir().unwrap();
    let registry = DeviceRegistry::open(dir.path()).unwrap();
    let long = "x".repeat(64);
    let first = registry.add(new(" phone ", "a"), NOW).unwrap();
    registry.add(new("Phone", "b"), NOW + 1).unwrap();
    registry.add(new("phone", "c"), NOW + 2).unwrap();
    registry.add(new(&long, "d"), NOW + 3).unwrap();
    registry.add(new(&long, "e"), NOW + 4).unwrap();
    assert_eq!(names(&registry), ["phone", "Phone 2", "phone 3", &long, &format!("{} 2", "x".repeat(62))]);
    assert!(matches!(registry.rename(&first.id, "PHONE 2"), Err(DevicesError::Name { .. })));
    assert_eq!(registry.rename(&first.id, "Phone").unwrap().name, "Phone");
    for bad in ["", "  ", "a\nb", "a\u{202e}b", &"x".repeat(65)] {
        assert!(matches!(registry.add(new(bad, "f"), NOW), Err(DevicesError::Name { .. })), "{bad:?}");
    }
}

#[test]
fn a_device_is_found_by_id_name_or_unique_start() {
    let dir = tempfile::tempdir().unwrap();
    let registry = DeviceRegistry::open(dir.path()).unwrap();
    let tablet = registry.add(new("Tablet", "a"), NOW).unwrap();
    let phone = registry.add(new("phone", "b"), NOW).unwrap();
    let other = registry.add(new("phone of Ada", "c"), NOW).unwrap();
    let found = |text: &str| registry.find(text).unwrap().name.clone();
    assert_eq!(found("tablet"), "Tablet");
    assert_eq!(found("t"), "Tablet");
    assert_eq!(found("phone"), "phone");
    assert_eq!(found("phone o"), "phone of Ada");
    assert_eq!(found(&phone.id.as_str().to_uppercase().replace('-', "")), "phone");
    assert_eq!(found(&tablet.id.as_str()[..14]), "Tablet");
    let error = registry.find("pho").unwrap_err().to_string();
    assert!(error.contains("phone of Ada") && error.contains(phone.id.as_str()), "{error}");
    for missing in ["", " ", "-", "laptop"] {
        assert!(matches!(registry.find(missing), Err(DevicesError::NotFound { .. })), "{missing:?}");
    }
    // An exact name is meant before the start of another, also when the device was revoked.
    registry.revoke(&phone.id, "", NOW).unwrap();
    assert_eq!(registry.find("phone").unwrap().id, phone.id);
    assert_eq!(registry.find("pho").unwrap().id, other.id);
}

#[test]
fn an_id_survives_renewal_renaming_and_a_new_policy() {
    let dir = tempfile::tempdir().unwrap();
    let registry = DeviceRegistry::open(dir.path()).unwrap();
    let phone = registry.add(new("phone", "a"), NOW).unwrap();
    let owner = Policy::for_role(Role::Owner, "");
    registry.rename(&phone.id, "mobile").unwrap();
    registry.set_policy(&phone.id, owner.clone()).unwrap();
    let renewed = registry.certificate_renewed(&phone.key_hash, NOW + 100 * DAY).unwrap();
    assert_eq!(
        (&renewed.id, renewed.name.as_str(), renewed.expires_at),
        (&phone.id, "mobile", NOW + 100 * DAY)
    );
    assert_eq!(registry.by_key_hash(&phone.key_hash).unwrap().policy, owner);
    let unknown = KeyHash::of_public_key(b"unknown");
    assert!(matches!(registry.certificate_renewed(&unknown, NOW), Err(DevicesError::NotFound { .. })));
}

#[test]
fn a_token_works_until_it_ends_or_is_revoked() {
    let dir = tempfile::tempdir().unwrap();
    let registry = DeviceRegistry::open(dir.path()).unwrap();
    let (token, secret) = registry.create_token("script", policy(), "owner", NOW + DAY, NOW).unwrap();
    let text = secret.expose();
    assert!(text.starts_with("satchel_") && text.len() == 8 + 43);
    assert_eq!(registry.by_token_secret(text, NOW), Some(Arc::clone(&token)));
    assert_eq!(registry.by_token_secret(text, NOW + DAY), None);
    let end = if text.ends_with('A') { "B" } else { "A" };
    let other = format!("{}{end}", &text[..text.len() - 1]);
    for wrong in ["", "satchel_", &text[8..], &other, &format!("{text}A")] {
        assert_eq!(registry.by_token_secret(wrong, NOW), None);
    }
    // The hash of a secret is not the key of a certificate.
    assert_eq!(registry.by_key_hash(&token.key_hash), None);
    assert!(matches!(registry.certificate_renewed(&token.key_hash, NOW), Err(DevicesError::NotFound { .. })));
    assert_eq!(format!("{secret:?}"), "TokenSecret(..)");
    let stored = fs::read_to_string(dir.path().join(FILE)).unwrap();
    assert!(!stored.contains(&text[8..]));
    registry.revoke(&token.id, "", NOW).unwrap();
    assert_eq!(registry.by_token_secret(text, NOW), None);
}

#[test]
fn a_token_needs_an_end_within_366_days() {
    let dir = tempfile::tempdir().unwrap();
    let registry = DeviceRegistry::open(dir.path()).unwrap();
    let create = |expires_at| registry.create_token("script", policy(), "owner", expires_at, NOW);
    for wrong in [NOW, NOW - 1, NOW + 366 * DAY + 1, i64::MAX] {
        assert!(matches!(create(wrong), Err(DevicesError::TokenLifetime { .. })), "{wrong}");
    }
    assert!(create(NOW + 366 * DAY).is_ok());
}

#[test]
fn last_calls_are_written_once_a_minute_and_at_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let registry = DeviceRegistry::open(dir.path()).unwrap();
    let phone = registry.add(new("phone", "a"), NOW).unwrap();
    let stored = || stored::read(&dir.path().join(FILE)).unwrap()[&phone.id].last_seen;
    let call = |address, at| {
        if registry.record_seen(&phone.id, address, at) {
            registry.flush().unwrap();
        }
    };
    call("192.168.1.7:50000", NOW);
    assert_eq!(stored(), Some(NOW));
    let revision = registry.revision();
    call("192.168.1.8:50000", NOW + 59 * SECOND);
    assert_eq!(stored(), Some(NOW));
    let shown = registry.find("phone").unwrap();
    assert_eq!(
        (shown.last_seen, shown.last_address.as_deref()),
        (Some(NOW + 59 * SECOND), Some("192.168.1.8:50000"))
    );
    call("192.168.1.8:50000", NOW + 60 * SECOND);
    assert_eq!(stored(), Some(NOW + 60 * SECOND));
    call("192.168.1.8:50000", NOW + 61 * SECOND);
    assert_eq!(registry.revision(), revision);
    drop(registry);
    assert_eq!(stored(), Some(NOW + 61 * SECOND));
}

#[test]
fn every_change_is_announced() {
    let dir = tempfile::tempdir().unwrap();
    let registry = DeviceRegistry::open(dir.path()).unwrap();
    let mut changes = registry.subscribe();
    let phone = registry.add(new("phone", "a"), NOW).unwrap();
    assert!(changes.has_changed().unwrap());
    assert_eq!(*changes.borrow_and_update(), 1);
    registry.revoke(&phone.id, "", NOW).unwrap();
    assert!(changes.has_changed().unwrap());
    assert_eq!(registry.revision(), 2);
    assert!(registry.revoke(&phone.id, "", NOW).is_err());
    assert_eq!(registry.revision(), 2);
}

#[test]
fn a_revocation_takes_effect_even_if_it_cannot_be_written() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("devices");
    let registry = DeviceRegistry::open(&folder).unwrap();
    let phone = registry.add(new("phone", "a"), NOW).unwrap();
    // A file in place of the folder: nothing can be written there, not even by root.
    fs::rename(&folder, dir.path().join("away")).unwrap();
    fs::write(&folder, "").unwrap();
    assert!(matches!(registry.rename(&phone.id, "mobile"), Err(DevicesError::Io { .. })));
    assert_eq!(registry.find("phone").unwrap().name, "phone");
    assert!(matches!(registry.revoke(&phone.id, "stolen", NOW), Err(DevicesError::Io { .. })));
    assert_eq!(registry.by_key_hash(&phone.key_hash), None);
    assert_eq!(registry.revision(), 2);
    // The next change that can be written contains it.
    fs::remove_file(&folder).unwrap();
    registry.add(new("laptop", "b"), NOW).unwrap();
    assert_eq!(DeviceRegistry::open(&folder).unwrap().by_key_hash(&phone.key_hash), None);
}

#[test]
fn an_unfinished_file_is_harmless() {
    let dir = tempfile::tempdir().unwrap();
    let registry = DeviceRegistry::open(dir.path()).unwrap();
    let phone = registry.add(new("phone", "a"), NOW).unwrap();
    fs::write(dir.path().join(".new-abc123"), "{\"format\": 1, \"dev").unwrap();
    let again = DeviceRegistry::open(dir.path()).unwrap();
    assert_eq!(again.list(true), [phone]);
}

#[test]
fn a_damaged_or_newer_file_is_reported_and_stays() {
    let dir = tempfile::tempdir().unwrap();
    let registry = DeviceRegistry::open(dir.path()).unwrap();
    let phone = registry.add(new("phone", "a"), NOW).unwrap();
    let path = dir.path().join(FILE);
    let good = fs::read_to_string(&path).unwrap();
    let other = DeviceId::of(&KeyHash::of_public_key(b"b"));
    let twice = good
        .replace("\"devices\": [", &format!("\"devices\": [{},", serde_json::to_string(&*phone).unwrap()));
    for bad in [
        "",
        "{",
        &good[..good.len() / 2],
        &good.replace("\"reader\"", "\"god\""),
        &good.replace("\"paired_by\"", "\"paired\""),
        &good.replace(phone.id.as_str(), other.as_str()),
        &good.replace("\"phone\"", "\"\""),
        &twice,
    ] {
        fs::write(&path, bad).unwrap();
        let error = DeviceRegistry::open(dir.path()).unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, DevicesError::Damaged { .. }), "{bad}: {error}");
        assert!(text.contains("devices.json") && text.contains("backup"), "{text}");
        assert_eq!(fs::read_to_string(&path).unwrap(), bad);
    }
    fs::write(&path, good.replace("\"format\": 1", "\"format\": 2, \"new\": 7")).unwrap();
    assert!(matches!(DeviceRegistry::open(dir.path()), Err(DevicesError::Newer { found: 2, known: 1, .. })));
    fs::write(&path, &good[..good.len() / 2]).unwrap();
    let error = DeviceRegistry::open(dir.path()).unwrap_err().to_string();
    assert!(error.contains("line"), "{error}");
}

#[test]
fn concurrent_changes_are_all_stored() {
    let dir = tempfile::tempdir().unwrap();
    let registry = DeviceRegistry::open(dir.path()).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let registry = &registry;
            scope.spawn(move || {
                for at in 0..5 {
                    registry.add(new("device", &format!("{thread} {at}")), NOW).unwrap();
                }
            });
        }
    });
    let again = DeviceRegistry::open(dir.path()).unwrap();
    let names: std::collections::BTreeSet<String> = names(&again).into_iter().collect();
    assert_eq!(names.len(), 20);
    assert!(registry.list(true).iter().all(|device| !device.policy.may(Scope::Devices)));
}
