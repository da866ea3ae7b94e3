//! Signing keys: one key succeeds another, and the signatures of both can still be verified.

use std::{fs, path::Path, sync::Arc};

use anyhow::{Context as _, Result, ensure};
use satchel_bundle::verify::{self, Options, Report};
use satchel_core::{
    clock::SystemClock,
    export::{Exports, Selection, Settings},
};
use satchel_store::Change;
use satchel_tests::archive::{Archive, demo, whole};
use serde_json::Value;

use super::canaries::{commit, memory};

fn archive(folder: &Path) -> Result<Archive> {
    let archive = Archive::open(&folder.join("data"))?;
    archive.import(&demo().join("chatgpt-export"))?;
    Ok(archive)
}

fn signed_by(path: &Path, signer: &str) -> Result<Report> {
    Ok(verify::path(path, &Options { signers: vec![signer.to_owned()], strict: true, ..Options::default() })?)
}

#[test]
fn a_rotated_key_leaves_old_exports_valid_and_is_proven_by_the_old_key() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let archive = archive(folder.path())?;
    let (before, after) = (folder.path().join("before"), folder.path().join("after"));
    let old = archive.export(&before)?;
    archive.exports.rotate_key()?;
    let rotated = archive.exports.rotate_key()?;
    let new = archive.export(&after)?;
    assert_eq!(new.signer, rotated.keys[0].public_key);
    assert_eq!(archive.exports.signers()[2], old.signer);
    let store = |path: &Path| -> Result<Value> {
        Ok(serde_json::from_slice(&fs::read(path.join("memory-store.json"))?)?)
    };
    let (one, other) = (store(&before)?, store(&after)?);
    assert_eq!(one["owner"]["id"], other["owner"]["id"]);
    assert_eq!(other["owner"]["did"], format!("did:key:{}", new.signer));
    for (path, signer) in [(&before, &old.signer), (&after, &new.signer), (&after, &old.signer)] {
        let report = signed_by(path, signer)?;
        ensure!(report.valid, "{path:?} by {signer}: {:?}", report.issues);
    }
    ensure!(!signed_by(&before, &new.signer)?.valid, "the new key did not sign what was there before it");
    ensure!(signed_by(&after, &old.signer)?.predecessors.last() == Some(&old.signer));
    // Nobody can insert their own key into the succession.
    let manifest = after.join("satchel-manifest.json");
    let text = fs::read_to_string(&manifest)?;
    fs::write(&manifest, text.replacen(&old.signer, &rotated.keys[1].public_key, 1))?;
    ensure!(!signed_by(&after, &old.signer)?.valid);
    Ok(())
}

#[test]
fn changes_of_the_new_key_build_on_an_export_of_the_old_one() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let archive = archive(folder.path())?;
    let (base, delta) = (folder.path().join("base"), folder.path().join("delta"));
    archive.export(&base)?;
    archive.exports.rotate_key()?;
    commit(&archive, vec![Change::Memory(Box::new(memory("new", "Learns to sail")))])?;
    let made = archive.export_changes(None, &delta)?;
    assert_eq!(made.export_type, "incremental", "{:?}", made.reason);
    let report =
        verify::path(&delta, &Options { base: Some(base.clone()), strict: true, ..Options::default() })?;
    ensure!(report.valid, "{:?}", report.issues);
    // Our own bundle without its manifest is not considered complete, whichever of our keys signed it.
    fs::remove_file(base.join("satchel-manifest.json"))?;
    fs::remove_file(base.join("satchel-manifest.sig"))?;
    let own = Options { own_keys: archive.exports.signers(), ..Options::default() };
    ensure!(!verify::path(&base, &own)?.valid);
    Ok(())
}

#[test]
fn keys_are_there_once_something_was_to_be_signed() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let archive = archive(folder.path())?;
    ensure!(archive.exports.signing_keys()?.is_none());
    let made = archive.export(&folder.path().join("bundle"))?;
    let keys = archive.exports.signing_keys()?.context("a key")?;
    assert_eq!((keys.keys.len(), keys.keys[0].public_key.as_str()), (1, made.signer.as_str()));
    assert_eq!(keys.did, format!("did:key:{}", made.signer));
    Ok(())
}

#[test]
fn a_did_of_ones_own_names_the_owner_but_not_in_what_is_stripped() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let archive = archive(folder.path())?;
    let did = "did:web:lea.example.org";
    let settings = Settings { did: Some(did.to_owned()), ..Settings::default() };
    let keys = folder.path().join("data/keys");
    let exports = Exports::configured(archive.store.clone(), Arc::new(SystemClock), keys, settings);
    let (open, stripped) = (folder.path().join("open"), folder.path().join("stripped"));
    let made = exports.create(&whole(open.clone()))?;
    let mut request = whole(stripped.clone());
    request.selection = Selection { strip: true, ..Selection::default() };
    exports.create(&request)?;
    let store: Value = serde_json::from_slice(&fs::read(open.join("memory-store.json"))?)?;
    assert_eq!(store["owner"]["did"], did);
    assert_eq!(store["signature"]["key_id"], format!("{did}#{}", made.signer));
    ensure!(super::holding(&stripped, "lea.example.org")?.is_empty());
    for path in [&open, &stripped] {
        let report = verify::path(path, &Options { strict: true, ..Options::default() })?;
        ensure!(report.valid, "{:?}", report.issues);
    }
    Ok(())
}
