//! Checks the root of a store: versions, owner, signature block.

use super::patterns;
use crate::{
    issue::{Issues, quote},
    parse::StoreRoot,
    sign::{Algorithm, PublicKey},
    store::{ExportType, SignatureBlock, StoreHeader},
};

pub(super) fn check(store: &StoreRoot, issues: &mut Issues) {
    check_version(&store.schema_version, "$", issues);
    check_export(&store.header, issues);
    check_owner(&store.header, issues);
    check_integrity(store, issues);
    if let Some(signature) = &store.signature {
        check_signature(signature, store, issues);
    }
}

pub(super) fn check_version(version: &str, root: &str, issues: &mut Issues) {
    if !patterns::schema_version(version) {
        let message = format!("{} is not major.minor", quote(version));
        issues.error("R-3.2", format!("{root}.schema_version"), message);
    }
}

fn check_export(header: &StoreHeader, issues: &mut Issues) {
    let is_uuid_v4 = |text: &str| uuid::Uuid::try_parse(text).is_ok_and(|id| id.get_version_num() == 4);
    let uris = [("spec_uri", "R-3.4", &header.spec_uri), ("type_registry", "R-19.1", &header.type_registry)];
    for (key, rule, value) in uris {
        if let Some(value) = value.as_deref().filter(|value| !patterns::uri(value)) {
            issues.warning(rule, format!("$.{key}"), format!("{} is not a URI", quote(value)));
        }
    }
    if let Some(id) = header.export_id.as_deref().filter(|id| !is_uuid_v4(id)) {
        issues.warning("R-3.5", "$.export_id", format!("{} is not a UUID v4", quote(id)));
    }
    if let Some(name) = header.exported_by.as_deref().filter(|name| !patterns::software(name)) {
        issues.error("R-3.6", "$.exported_by", format!("{} is not name/x.y.z", quote(name)));
    }
    if header.export_type == ExportType::Incremental {
        let missing = "is missing, and the export is incremental";
        if header.base_export_id.is_none() {
            issues.warning("R-16.1", "$.base_export_id", missing);
        }
        if header.since.is_none() {
            issues.warning("R-16.1", "$.since", missing);
        }
    }
}

fn check_owner(header: &StoreHeader, issues: &mut Issues) {
    issues.reject_empty(&header.owner.id, "R-3.10", || "$.owner.id".to_owned());
    if let Some(did) = header.owner.did.as_deref().filter(|did| !patterns::did(did)) {
        issues.error("R-3.11", "$.owner.did", format!("{} is not a DID", quote(did)));
    }
    let unresolvable = |did: &&str| did.starts_with("did:key:") && PublicKey::parse(did).is_err();
    if let Some(did) = header.owner.did.as_deref().filter(unresolvable) {
        let message = format!("{} names no key that this program knows", quote(did));
        issues.warning("R-17.2", "$.owner.did", message);
    }
}

fn check_integrity(store: &StoreRoot, issues: &mut Issues) {
    if let Some(integrity) = &store.integrity
        && integrity.canonicalization != "RFC8785"
    {
        let message = format!("{} is not RFC8785", quote(&integrity.canonicalization));
        issues.error("R-15.1", "$.integrity.canonicalization", message);
    }
}

fn check_signature(signature: &SignatureBlock, store: &StoreRoot, issues: &mut Issues) {
    if signature.algorithm.parse::<Algorithm>().is_err() {
        let known = Algorithm::ALL.iter().map(|algorithm| algorithm.as_str()).collect::<Vec<_>>().join(", ");
        let message = format!("{} is none of {known}", quote(&signature.algorithm));
        issues.error("R-18.2", "$.signature.algorithm", message);
    }
    for (key, value) in [("public_key", &signature.public_key), ("value", &signature.value)] {
        issues.reject_empty(value, "R-18.2", || format!("$.signature.{key}"));
    }
    let header = &store.header;
    if header.export_id.as_deref().is_none_or(str::is_empty) {
        issues.error("R-18.3", "$.export_id", "is missing or empty, and the export is signed");
    }
    if store.integrity.is_none() {
        issues.error("A-22", "$.integrity", "is missing, and the export is signed");
    }
    match header.export_date {
        None => issues.error("R-18.3", "$.export_date", "is missing, and the export is signed"),
        Some(date) if signature.signed_at.micros() < date.micros() => {
            issues.error("R-18.5", "$.signature.signed_at", "is before export_date");
        }
        Some(_) => {}
    }
    check_identity(signature, header, issues);
}

fn check_identity(signature: &SignatureBlock, header: &StoreHeader, issues: &mut Issues) {
    let Some(did) = header.owner.did.as_deref() else { return };
    if did.starts_with("did:key:")
        && let (Ok(owner), Ok(signer)) = (PublicKey::parse(did), PublicKey::parse(&signature.public_key))
        && owner != signer
    {
        issues.warning("R-17.3", "$.signature.public_key", "is not the key of the owner's DID");
    }
    if let Some(key_id) = signature.key_id.as_deref()
        && key_id.split_once('#').is_none_or(|(subject, fragment)| subject != did || fragment.is_empty())
    {
        let message = format!("{} is not a DID URL of the owner's DID", quote(key_id));
        issues.warning("R-18.6", "$.signature.key_id", message);
    }
}
