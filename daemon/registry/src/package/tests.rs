use ed25519_dalek::SigningKey;

use super::*;

/// The smallest component: a header and nothing else.
pub(crate) const EMPTY_COMPONENT: &[u8] = b"\0asm\x0d\0\x01\0";

pub(crate) fn manifest(name: &str, version: &str) -> Manifest {
    Manifest {
        manifest_version: MANIFEST_VERSION,
        name: name.to_owned(),
        version: version.to_owned(),
        platform: name.to_owned(),
        importer_version: format!("{name}-importer/2026.01"),
        formats: vec!["flat".to_owned()],
        api: "1.0.0".to_owned(),
        description: "Reads notes".to_owned(),
        authors: vec!["Ana Silva".to_owned()],
        license: "Apache-2.0".to_owned(),
        homepage: None,
        files: vec!["*.json".to_owned()],
        contains: Vec::new(),
        memory_mib: 64,
        toolchain: String::new(),
    }
}

fn key(seed: u8) -> SigningKey {
    SigningKey::from_bytes(&[seed; 32])
}

fn unsigned() -> Package {
    Package::pack(EMPTY_COMPONENT, &manifest("notes", "1.0.0")).unwrap()
}

#[test]
fn a_package_is_read_as_it_was_packed_and_signed() {
    let package = unsigned();
    assert_eq!(package.signer(), None);
    assert_eq!(package.file_name(), "notes-1.0.0.satchel");
    let signed = package.sign(&key(1)).unwrap();
    let read = Package::read(signed.bytes().to_vec()).unwrap();
    assert_eq!(read.signer(), Some(&AuthorKey::of(&key(1))));
    assert_eq!(read.manifest(), &manifest("notes", "1.0.0"));
    let again = signed.sign(&key(2)).unwrap();
    assert_eq!(again.signer(), Some(&AuthorKey::of(&key(2))));
    assert_eq!(again.bytes().len(), signed.bytes().len());
    let repacked = Package::pack(signed.bytes(), &manifest("notes", "1.0.1")).unwrap();
    assert_eq!((repacked.signer(), repacked.manifest().version.as_str()), (None, "1.0.1"));
}

#[test]
fn every_flipped_bit_is_noticed() {
    let bytes = unsigned().sign(&key(1)).unwrap().bytes().to_vec();
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut changed = bytes.clone();
            changed[at] ^= 1 << bit;
            let read = Package::read(changed);
            // The result of a flip in a section's name may be read as a component without it, never as signed.
            assert!(read.as_ref().is_err(), "byte {at}, bit {bit}: {read:?}");
        }
    }
}

#[test]
fn every_cut_is_noticed() {
    let unsigned = unsigned();
    let bytes = unsigned.sign(&key(1)).unwrap().bytes().to_vec();
    for length in 0..bytes.len() {
        match Package::read(bytes[..length].to_vec()) {
            Ok(package) => assert_eq!((length, package.signer()), (unsigned.bytes().len(), None)),
            Err(_) => assert_ne!(length, unsigned.bytes().len()),
        }
    }
}

#[test]
fn nothing_stands_after_or_between_the_sections() {
    let signed = unsigned().sign(&key(1)).unwrap();
    let custom = |name: &str| {
        let mut bytes = Vec::new();
        sections::append(&mut bytes, name, b"more");
        bytes
    };
    for name in ["other", sections::MANIFEST, sections::SIGNATURE] {
        let after = [signed.bytes(), &custom(name)].concat();
        assert!(matches!(Package::read(after), Err(PackageError::Layout { .. })), "{name}");
    }
    let unsigned = unsigned();
    let mut between = [unsigned.bytes(), &custom("other")].concat();
    let content = signed.bytes()[signed.bytes().len() - 96..].to_vec();
    sections::append(&mut between, sections::SIGNATURE, &content);
    assert!(matches!(Package::read(between), Err(PackageError::Layout { .. })));
}

#[test]
fn a_signature_fits_one_package_only() {
    let (one, other) = (unsigned(), Package::pack(EMPTY_COMPONENT, &manifest("notes", "2.0.0")).unwrap());
    let signed = one.sign(&key(1)).unwrap();
    let content = signed.bytes()[signed.bytes().len() - 96..].to_vec();
    let mut forged = other.bytes().to_vec();
    sections::append(&mut forged, sections::SIGNATURE, &content);
    assert!(matches!(Package::read(forged), Err(PackageError::Signature)));
}

#[test]
fn a_component_without_a_manifest_is_no_package() {
    assert!(matches!(Package::read(EMPTY_COMPONENT.to_vec()), Err(PackageError::Layout { .. })));
    assert!(matches!(Package::read(b"hello".to_vec()), Err(PackageError::NotAComponent { .. })));
    assert!(matches!(Package::read(b"\0asm\x01\0\0\0".to_vec()), Err(PackageError::NotAComponent { .. })));
}

#[test]
fn each_field_of_the_manifest_has_its_rule() {
    type Change = fn(&mut Manifest);
    let cases: [(&str, Change); 13] = [
        ("manifest-version", |it| it.manifest_version = 2),
        // A Cyrillic letter that looks like the Latin one.
        ("name", |it| it.name = "ch\u{430}tgpt".to_owned()),
        ("version", |it| it.version = "1.0".to_owned()),
        ("platform", |it| it.platform = "Notes".to_owned()),
        ("formats", |it| it.formats.clear()),
        ("description", |it| it.description = "ok\u{1b}[2J".to_owned()),
        ("description", |it| it.description = "abc\u{202e}txt.exe".to_owned()),
        ("authors", |it| it.authors = vec![String::new()]),
        ("homepage", |it| it.homepage = Some("http://example.org".to_owned())),
        ("files", |it| it.files.clear()),
        ("files", |it| it.files = vec!["a/b".to_owned()]),
        ("contains", |it| it.contains = vec!["x".repeat(200)]),
        ("memory-mib", |it| it.memory_mib = 4096),
    ];
    for (expected, change) in cases {
        let mut changed = manifest("notes", "1.0.0");
        change(&mut changed);
        let packed = Package::pack(EMPTY_COMPONENT, &changed);
        assert!(
            matches!(packed, Err(PackageError::Field { field, .. }) if field == expected),
            "{expected}: {packed:?}"
        );
    }
}

#[test]
fn unknown_fields_of_a_manifest_are_refused() {
    let mut json: serde_json::Value = serde_json::to_value(manifest("notes", "1.0.0")).unwrap();
    json["network"] = true.into();
    let mut bytes = EMPTY_COMPONENT.to_vec();
    sections::append(&mut bytes, sections::MANIFEST, json.to_string().as_bytes());
    assert!(matches!(Package::read(bytes), Err(PackageError::Manifest { .. })));
}

#[test]
fn versions_are_ordered_by_their_numbers() {
    assert!(version_key("1.10.0") > version_key("1.9.9"));
    assert_eq!(version_key("1.0"), None);
    assert_eq!(version_key("1.0.0-a"), None);
}
