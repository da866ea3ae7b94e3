//! Signing keys: one key succeeds another, and the signatures of both can still be verified.

use std::{fs, path::Path, sync::Arc};

use anyhow::{Context as _, Result, ensure};
use satchel_bundle::verify::{self, VerifyOptions, VerifyReport};
use satchel_core::{
    clock::SystemClock,
    export::{ExportSettings, Exports, Selection},
};
use satchel_store::Change;
use satchel_tests::test_core::{TestCore, demo_folder, full_export};
use serde_json::Value;

use super::canaries::{commit, memory};

fn core_with_export(folder: &Path) -> Result<TestCore> {
    let core = TestCore::open(&folder.join("data"))?;
    core.import(&demo_folder().join("chatgpt-export"))?;
    Ok(core)
}

fn verify_signer(path: &Path, signer: &str) -> Result<VerifyReport> {
    Ok(verify::path(
        path,
        &VerifyOptions { signers: vec![signer.to_owned()], strict: true, ..VerifyOptions::default() },
    )?)
}

#[test]
fn exports_stay_valid_after_a_key_rotation_and_the_old_key_vouches_for_the_new() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let core = core_with_export(folder.path())?;
    let (before, after) = (folder.path().join("before"), folder.path().join("after"));
    let old = core.export(&before)?;
    core.exports.rotate_key()?;
    let rotated = core.exports.rotate_key()?;
    let new = core.export(&after)?;
    assert_eq!(new.signer, rotated.keys[0].public_key);
    assert_eq!(core.exports.public_keys()[2], old.signer);
    let store = |path: &Path| -> Result<Value> {
        Ok(serde_json::from_slice(&fs::read(path.join("memory-store.json"))?)?)
    };
    let (one, other) = (store(&before)?, store(&after)?);
    assert_eq!(one["owner"]["id"], other["owner"]["id"]);
    assert_eq!(other["owner"]["did"], format!("did:key:{}", new.signer));
    for (path, signer) in [(&before, &old.signer), (&after, &new.signer), (&after, &old.signer)] {
        let report = verify_signer(path, signer)?;
        ensure!(report.valid, "{path:?} by {signer}: {:?}", report.issues);
    }
    ensure!(!verify_signer(&before, &new.signer)?.valid, "an older bundle is valid with the new key");
    ensure!(verify_signer(&after, &old.signer)?.predecessors.last() == Some(&old.signer));
    // Nobody can insert their own key into the succession.
    let manifest = after.join("satchel-manifest.json");
    let text = fs::read_to_string(&manifest)?;
    fs::write(&manifest, text.replacen(&old.signer, &rotated.keys[1].public_key, 1))?;
    ensure!(!verify_signer(&after, &old.signer)?.valid);
    Ok(())
}

#[test]
fn changes_signed_with_the_new_key_build_on_an_export_of_the_old_one() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let core = core_with_export(folder.path())?;
    let (base, delta) = (folder.path().join("base"), folder.path().join("delta"));
    core.export(&base)?;
    core.exports.rotate_key()?;
    commit(&core, vec![Change::Memory(Box::new(memory("new", "Learns to sail")))])?;
    let made = core.export_changes(None, &delta)?;
    assert_eq!(made.export_type, "incremental", "{:?}", made.reason);
    let report = verify::path(
        &delta,
        &VerifyOptions { base: Some(base.clone()), strict: true, ..VerifyOptions::default() },
    )?;
    ensure!(report.valid, "{:?}", report.issues);
    // Our own bundle without its manifest is not considered complete, whichever of our keys signed it.
    fs::remove_file(base.join("satchel-manifest.json"))?;
    fs::remove_file(base.join("satchel-manifest.sig"))?;
    let options = VerifyOptions { own_keys: core.exports.public_keys(), ..VerifyOptions::default() };
    ensure!(!verify::path(&base, &options)?.valid);
    Ok(())
}

#[test]
fn signing_keys_are_created_by_the_first_export() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let core = core_with_export(folder.path())?;
    ensure!(core.exports.signing_keys()?.is_none());
    let made = core.export(&folder.path().join("bundle"))?;
    let keys = core.exports.signing_keys()?.context("a key")?;
    assert_eq!((keys.keys.len(), keys.keys[0].public_key.as_str()), (1, made.signer.as_str()));
    assert_eq!(keys.did, format!("did:key:{}", made.signer));
    Ok(())
}

#[test]
fn a_configured_did_names_the_owner_except_in_stripped_exports() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let core = core_with_export(folder.path())?;
    let did = "did:web:lea.example.org";
    let settings = ExportSettings { did: Some(did.to_owned()), ..ExportSettings::default() };
    let keys = folder.path().join("data/keys");
    let exports = Exports::with_settings(core.store.clone(), Arc::new(SystemClock), keys, settings);
    let (open, stripped) = (folder.path().join("open"), folder.path().join("stripped"));
    let made = exports.create(&full_export(open.clone()))?;
    let mut request = full_export(stripped.clone());
    request.selection = Selection { strip: true, ..Selection::default() };
    exports.create(&request)?;
    let store: Value = serde_json::from_slice(&fs::read(open.join("memory-store.json"))?)?;
    assert_eq!(store["owner"]["did"], did);
    assert_eq!(store["signature"]["key_id"], format!("{did}#{}", made.signer));
    ensure!(super::files_containing(&stripped, "lea.example.org")?.is_empty());
    for path in [&open, &stripped] {
        let report = verify::path(path, &VerifyOptions { strict: true, ..VerifyOptions::default() })?;
        ensure!(report.valid, "{:?}", report.issues);
    }
    Ok(())
}
