//! Trusted keys: they can be added, listed and removed, survive a rebuild, and trust extends to the keys that succeed
//! them.

use anyhow::{Result, ensure};
use satchel_bundle::verify;
use satchel_core::{
    ingest::{
        Apply,
        receipt::{ImportStatus, Standing},
    },
    trust,
};
use satchel_pam::sign::{PublicKey, SigningKey};
use satchel_store::{OpenOptions, Store};
use satchel_tests::archive::{Archive, only};

use super::{
    filled,
    judged::{rewrite, without_exported_by, without_manifest},
};

#[test]
fn trust_is_said_once_listed_kept_and_taken_back() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("data");
    let key = PublicKey::of(&SigningKey::from_bytes(&[3; 32]));
    let archive = Archive::open(&data)?;
    ensure!(trust::add(&archive.store, &key, 7)? && !trust::add(&archive.store, &key, 8)?);
    let listed = |archive: &Archive| -> Result<Vec<(String, i64)>> {
        Ok(trust::list(&archive.store)?.into_iter().map(|one| (one.public_key, one.since)).collect())
    };
    assert_eq!(listed(&archive)?, [(key.multibase(), 7)]);
    archive.close()?;
    let options = OpenOptions { rebuild: true, ..OpenOptions::default() };
    Store::open(&data, options, &mut |_| {})?.close()?;
    let archive = Archive::open(&data)?;
    assert_eq!(listed(&archive)?, [(key.multibase(), 7)], "a rebuild keeps it");
    ensure!(trust::remove(&archive.store, &key, 9)? && !trust::remove(&archive.store, &key, 9)?);
    ensure!(listed(&archive)?.is_empty());
    Ok(())
}

#[test]
fn a_trusted_key_is_followed_to_the_one_that_took_its_place_and_no_other_is() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let here = filled(&folder.path().join("here"))?;
    let first = here.export(&folder.path().join("first"))?.signer;
    let there = Archive::open(&folder.path().join("there"))?;
    let stranger = only(there.import(&folder.path().join("first"))?)?;
    ensure!(stranger.standing == Some(Standing::Stranger) && stranger.signer.as_deref() == Some(&first));
    there.trust(&first)?;
    here.exports.rotate_key()?;
    let second = here.export(&folder.path().join("second"))?.signer;
    let merged = there.apply(&folder.path().join("second"))?;
    ensure!(
        merged.standing == Some(Standing::Trusted) && merged.signer.as_deref() == Some(&second),
        "{merged:?}"
    );
    // A key that signed here before still counts as the person's own.
    let home = here.apply(&folder.path().join("first"))?;
    ensure!(home.standing == Some(Standing::Own) && home.would_change.none(), "{home:?}");
    Ok(())
}

#[test]
fn apply_trusts_the_key_that_is_named_and_refuses_a_bundle_of_another() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let here = filled(&folder.path().join("here"))?;
    let bundle = folder.path().join("bundle");
    let signer = PublicKey::parse(&here.export(&bundle)?.signer)?;
    let there = Archive::open(&folder.path().join("there"))?;
    let other = PublicKey::of(&SigningKey::from_bytes(&[4; 32]));
    let by = |key: &PublicKey| Apply { trust: Some(key.clone()), ..Apply::default() };
    let refused = there.apply_by(&bundle, false, by(&other))?;
    let reason = refused.reason.unwrap_or_default();
    ensure!(refused.status == ImportStatus::Failed && reason.contains("--trust"), "{reason}");
    ensure!(trust::list(&there.store)?.is_empty(), "a key is trusted that signed nothing");
    there.apply_by(&bundle, true, by(&signer))?;
    ensure!(trust::list(&there.store)?.is_empty(), "a dry run trusts nobody");
    let merged = there.apply_by(&bundle, false, by(&signer))?;
    ensure!(merged.standing == Some(Standing::Trusted), "{merged:?}");
    ensure!(trust::list(&there.store)?.iter().any(|one| one.public_key == signer.multibase()));
    // A key that is already trusted vouches for its own bundles, not for those of the named key.
    let refused = there.apply_by(&bundle, false, by(&other))?;
    ensure!(refused.status == ImportStatus::Failed, "{refused:?}");
    ensure!(trust::list(&there.store)?.len() == 1, "a key is trusted that signed nothing");
    Ok(())
}

#[test]
fn what_no_signature_covers_is_merged_for_nobody() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let here = filled(&folder.path().join("here"))?;
    let bundle = folder.path().join("bundle");
    let signer = PublicKey::parse(&here.export(&bundle)?.signer)?;
    without_manifest(&bundle)?;
    rewrite(&bundle)?;
    without_exported_by(&bundle)?;
    ensure!(verify::path(&bundle, &verify::Options::default())?.valid, "the memories are signed and whole");
    let before = here.state()?;
    let import = only(here.import(&bundle)?)?;
    ensure!(import.standing == Some(Standing::Stranger) && import.signer.is_none(), "{import:?}");
    let refused = here.apply(&bundle)?;
    ensure!(refused.status == ImportStatus::Failed, "{refused:?}");
    ensure!(here.state()? == before, "somebody rewrote conversations in the person's name");
    let there = Archive::open(&folder.path().join("there"))?;
    let trust = Apply { trust: Some(signer), ..Apply::default() };
    let refused = there.apply_by(&bundle, false, trust)?;
    let reason = refused.reason.unwrap_or_default();
    ensure!(refused.status == ImportStatus::Failed && reason.contains("does not cover"), "{reason}");
    Ok(())
}
