//! Packages of importers, made from the guests.

use anyhow::Result;
use ed25519_dalek::SigningKey;
use satchel_registry::{
    Consent,
    package::{MANIFEST_VERSION, Manifest, Package},
};

use crate::guests;

/// Agreement to everything.
pub const AGREED: Consent =
    Consent { trust_key: true, unsigned: true, replace_built_in: true, downgrade: true };

/// Returns a manifest that fits a guest with this name and version.
pub fn manifest(name: &str, version: &str) -> Manifest {
    Manifest {
        manifest_version: MANIFEST_VERSION,
        name: name.to_owned(),
        version: version.to_owned(),
        platform: name.to_owned(),
        importer_version: "hostile/2026.01".to_owned(),
        formats: vec![name.to_owned()],
        api: "1.0.0".to_owned(),
        description: "Reads a.json".to_owned(),
        authors: vec!["Ana Silva".to_owned()],
        license: "Apache-2.0".to_owned(),
        homepage: None,
        files: vec!["a.json".to_owned()],
        contains: Vec::new(),
        memory_mib: 16,
        toolchain: "wat".to_owned(),
    }
}

/// Returns the package of a guest, signed with the key of this seed.
///
/// # Errors
/// If the guest does not become a component.
pub fn signed(guest: &str, name: &str, version: &str, seed: u8) -> Result<Package> {
    Ok(unsigned(guest, name, version)?.sign(&signing_key(seed))?)
}

/// Returns the package of a guest that nobody signed.
///
/// # Errors
/// If the guest does not become a component.
pub fn unsigned(guest: &str, name: &str, version: &str) -> Result<Package> {
    let component = guests::component_called(guest, name, version)?;
    Ok(Package::pack(&component, &manifest(name, version))?)
}

/// Returns an author's key.
pub fn signing_key(seed: u8) -> SigningKey {
    SigningKey::from_bytes(&[seed; 32])
}
