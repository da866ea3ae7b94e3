//! Trusted keys: they can be added, listed and removed, survive a rebuild, and trust extends to the keys that succeed
//! them.

use anyhow::{Result, ensure};
use satchel_bundle::verify;
use satchel_core::{
    ingest::{
        Apply,
        receipt::{DocumentStanding, ImportStatus},
    },
    trust,
};
use satchel_pam::sign::{PublicKey, SigningKey};
use satchel_store::{OpenOptions, Store};
use satchel_tests::test_core::{TestCore, only_import};

use super::{
    core_with_records,
    verdicts::{remove_exported_by, remove_manifest, rewrite_messages},
};

#[test]
fn a_trusted_key_is_added_once_listed_kept_by_a_rebuild_and_removed() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("data");
    let key = PublicKey::of(&SigningKey::from_bytes(&[3; 32]));
    let core = TestCore::open(&data)?;
    ensure!(trust::add(&core.store, &key, 7)? && !trust::add(&core.store, &key, 8)?);
    let listed = |core: &TestCore| -> Result<Vec<(String, i64)>> {
        Ok(trust::list(&core.store)?.into_iter().map(|one| (one.public_key, one.since)).collect())
    };
    assert_eq!(listed(&core)?, [(key.multibase(), 7)]);
    core.close()?;
    let options = OpenOptions { rebuild: true, ..OpenOptions::default() };
    Store::open(&data, options, &mut |_| {})?.close()?;
    let core = TestCore::open(&data)?;
    assert_eq!(listed(&core)?, [(key.multibase(), 7)], "a rebuild lost the trusted key");
    ensure!(trust::remove(&core.store, &key, 9)? && !trust::remove(&core.store, &key, 9)?);
    ensure!(listed(&core)?.is_empty());
    Ok(())
}

#[test]
fn trust_extends_to_the_successor_of_a_trusted_key() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let here = core_with_records(&folder.path().join("here"))?;
    let first = here.export(&folder.path().join("first"))?.signer;
    let there = TestCore::open(&folder.path().join("there"))?;
    let untrusted = only_import(there.import(&folder.path().join("first"))?)?;
    ensure!(
        untrusted.standing == Some(DocumentStanding::Untrusted)
            && untrusted.signer.as_deref() == Some(&first)
    );
    there.trust(&first)?;
    here.exports.rotate_key()?;
    let second = here.export(&folder.path().join("second"))?.signer;
    let merged = there.apply(&folder.path().join("second"))?;
    ensure!(
        merged.standing == Some(DocumentStanding::Trusted) && merged.signer.as_deref() == Some(&second),
        "{merged:?}"
    );
    // A key that signed here before still counts as the person's own.
    let applied = here.apply(&folder.path().join("first"))?;
    ensure!(applied.standing == Some(DocumentStanding::Own) && applied.would_change.none(), "{applied:?}");
    Ok(())
}

#[test]
fn apply_trusts_the_named_key_and_refuses_bundles_of_others() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let here = core_with_records(&folder.path().join("here"))?;
    let bundle = folder.path().join("bundle");
    let signer = PublicKey::parse(&here.export(&bundle)?.signer)?;
    let there = TestCore::open(&folder.path().join("there"))?;
    let other = PublicKey::of(&SigningKey::from_bytes(&[4; 32]));
    let by = |key: &PublicKey| Apply { trust: Some(key.clone()), ..Apply::default() };
    let refused = there.apply_with(&bundle, false, by(&other))?;
    let reason = refused.reason.unwrap_or_default();
    ensure!(refused.status == ImportStatus::Failed && reason.contains("--trust"), "{reason}");
    ensure!(trust::list(&there.store)?.is_empty(), "an unrelated key became trusted");
    there.apply_with(&bundle, true, by(&signer))?;
    ensure!(trust::list(&there.store)?.is_empty(), "a dry run added a trusted key");
    let merged = there.apply_with(&bundle, false, by(&signer))?;
    ensure!(merged.standing == Some(DocumentStanding::Trusted), "{merged:?}");
    ensure!(trust::list(&there.store)?.iter().any(|one| one.public_key == signer.multibase()));
    // A key that is already trusted vouches for its own bundles, not for those of the named key.
    let refused = there.apply_with(&bundle, false, by(&other))?;
    ensure!(refused.status == ImportStatus::Failed, "{refused:?}");
    ensure!(trust::list(&there.store)?.len() == 1, "an unrelated key became trusted");
    Ok(())
}

#[test]
fn content_that_no_signature_covers_is_not_merged() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let here = core_with_records(&folder.path().join("here"))?;
    let bundle = folder.path().join("bundle");
    let signer = PublicKey::parse(&here.export(&bundle)?.signer)?;
    remove_manifest(&bundle)?;
    rewrite_messages(&bundle)?;
    remove_exported_by(&bundle)?;
    ensure!(
        verify::path(&bundle, &verify::VerifyOptions::default())?.valid,
        "the signed memories are not valid"
    );
    let before = here.state()?;
    let import = only_import(here.import(&bundle)?)?;
    ensure!(import.standing == Some(DocumentStanding::Untrusted) && import.signer.is_none(), "{import:?}");
    let refused = here.apply(&bundle)?;
    ensure!(refused.status == ImportStatus::Failed, "{refused:?}");
    ensure!(here.state()? == before, "unsigned conversations were merged");
    let there = TestCore::open(&folder.path().join("there"))?;
    let trust = Apply { trust: Some(signer), ..Apply::default() };
    let refused = there.apply_with(&bundle, false, trust)?;
    let reason = refused.reason.unwrap_or_default();
    ensure!(refused.status == ImportStatus::Failed && reason.contains("does not cover"), "{reason}");
    Ok(())
}
