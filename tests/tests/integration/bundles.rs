//! A bundle proves that it is complete, unchanged and ours; if it is not, verification says what is wrong.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use satchel_bundle::verify::{self, SignatureState, VerifyOptions};
use satchel_pam::time::Timestamp;
use satchel_tests::{
    generate::Rng,
    test_core::{ExportedState, TestCore, demo_folder},
};
use serde_json::Value;

fn core_with_exports(folder: &Path) -> Result<TestCore> {
    let core = TestCore::open(&folder.join("data"))?;
    core.import(&demo_folder().join("chatgpt-export"))?;
    core.import(&demo_folder().join("claude-export"))?;
    Ok(core)
}

fn files(bundle: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![bundle.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    Ok(files)
}

#[test]
fn a_bundle_is_valid_as_a_folder_and_as_a_zip() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let core = core_with_exports(folder.path())?;
    for output in ["bundle", "bundle.zip"] {
        let path = folder.path().join(output);
        let made = core.export(&path)?;
        let report = verify::path(
            &path,
            &VerifyOptions { signers: vec![made.signer.clone()], ..VerifyOptions::default() },
        )?;
        assert!(report.valid, "{output}: {:?}", report.issues);
        assert_eq!((report.signature, report.manifest), (SignatureState::Valid, SignatureState::Valid));
        assert_eq!(report.signer.as_deref(), Some(made.signer.as_str()));
        assert_eq!(report.memories, made.memories);
    }
    Ok(())
}

#[test]
fn ten_thousand_single_byte_changes_are_all_refused() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let bundle = folder.path().join("bundle");
    core_with_exports(folder.path())?.export(&bundle)?;
    let files = files(&bundle)?;
    let mut rng = Rng::new(4);
    let mut refused = 0;
    for _ in 0..10_000 {
        let path = &files[usize::try_from(rng.below(files.len() as u64))?];
        let original = fs::read(path)?;
        let at = usize::try_from(rng.below(original.len() as u64))?;
        let mut changed = original.clone();
        changed[at] ^= 1 << rng.below(8);
        fs::write(path, &changed)?;
        let valid = verify::path(&bundle, &VerifyOptions::default()).is_ok_and(|report| report.valid);
        fs::write(path, &original)?;
        ensure!(!valid, "byte {at} of {path:?} was changed and the bundle is still valid");
        refused += 1;
    }
    assert_eq!(refused, 10_000);
    assert!(verify::path(&bundle, &VerifyOptions::default())?.valid);
    Ok(())
}

#[test]
fn a_store_without_a_manifest_is_verified_by_its_own_signature_unless_satchel_wrote_it() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let bundle = folder.path().join("bundle");
    core_with_exports(folder.path())?.export(&bundle)?;
    let store = folder.path().join("memory-store.json");
    fs::copy(bundle.join("memory-store.json"), &store)?;
    let report = verify::path(&store, &VerifyOptions::default())?;
    ensure!(!report.valid && report.manifest == SignatureState::Absent, "{report:?}");
    let text = fs::read_to_string(&store)?;
    let lines = text.lines().filter(|line| !line.contains("\"exported_by\""));
    fs::write(&store, lines.collect::<Vec<_>>().join("\n"))?;
    let original = fs::read(&store)?;
    let report = verify::path(&store, &VerifyOptions::default())?;
    assert!(
        report.valid
            && report.signature == SignatureState::Valid
            && report.manifest == SignatureState::Absent,
        "{report:?}"
    );
    let document: Value = serde_json::from_slice(&original)?;
    let mut rng = Rng::new(5);
    for _ in 0..1_000 {
        let at = usize::try_from(rng.below(original.len() as u64))?;
        let mut changed = original.clone();
        changed[at] ^= 1 << rng.below(8);
        fs::write(&store, &changed)?;
        let valid = verify::path(&store, &VerifyOptions::default()).is_ok_and(|report| report.valid);
        // PAM's signature covers memories, id, date and owner; everything else is covered by the manifest.
        let covered = |document: &Value| {
            let part = |key: &str| normalized_times(&document[key]);
            (
                part("memories"),
                part("export_id"),
                part("export_date"),
                normalized_times(&document["owner"]["id"]),
            )
        };
        let same = serde_json::from_slice::<Value>(&changed)
            .is_ok_and(|changed| covered(&changed) == covered(&document));
        ensure!(!valid || same, "byte {at} changed what is signed, and the store is still valid");
    }
    Ok(())
}

/// Returns the value with its times in PAM's notation: `z` and `Z` mean the same, and the checksum of the official SDK
/// covers this one form.
fn normalized_times(value: &Value) -> Value {
    match value {
        Value::String(text) => {
            Timestamp::parse(text).map_or_else(|_| value.clone(), |time| time.to_string().into())
        }
        Value::Array(items) => items.iter().map(normalized_times).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(key, value)| (key.clone(), normalized_times(value))).collect()
        }
        other => other.clone(),
    }
}

#[test]
fn added_removed_and_orphaned_files_are_detected() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let bundle = folder.path().join("bundle");
    let made = core_with_exports(folder.path())?.export(&bundle)?;
    let conversation = fs::read_dir(bundle.join("conversations"))?.next().context("a conversation")??.path();
    let refused = |what: &str| -> Result<()> {
        let report = verify::path(&bundle, &VerifyOptions::default())?;
        ensure!(
            !report.valid && report.manifest == SignatureState::Invalid,
            "{what} was not detected: {:?}",
            report.issues
        );
        Ok(())
    };
    let added = bundle.join("notes.txt");
    fs::write(&added, "hello")?;
    refused("an added file")?;
    fs::remove_file(&added)?;
    let original = fs::read(&conversation)?;
    fs::remove_file(&conversation)?;
    refused("a removed conversation")?;
    fs::write(&conversation, original)?;
    let manifest = bundle.join("satchel-manifest.json");
    let original = fs::read(&manifest)?;
    fs::remove_file(&manifest)?;
    let with_signer = VerifyOptions { signers: vec![made.signer], ..VerifyOptions::default() };
    refused("an orphaned signature")?;
    fs::remove_file(bundle.join("satchel-manifest.sig"))?;
    assert!(!verify::path(&bundle, &with_signer)?.valid, "a named signer's bundle needs its manifest");
    fs::write(&manifest, original)?;
    Ok(())
}

#[test]
fn a_bundle_of_another_signer_is_invalid() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let bundle = folder.path().join("bundle");
    core_with_exports(folder.path())?.export(&bundle)?;
    let other = tempfile::tempdir()?;
    let other_signer = core_with_exports(other.path())?.export(&other.path().join("bundle"))?.signer;
    let report =
        verify::path(&bundle, &VerifyOptions { signers: vec![other_signer], ..VerifyOptions::default() })?;
    assert!(!report.valid && report.signature == SignatureState::Valid, "{report:?}");
    assert!(
        verify::path(&bundle, &VerifyOptions { signers: vec!["zebra".into()], ..VerifyOptions::default() })
            .is_err()
    );
    Ok(())
}

#[test]
fn an_existing_output_is_not_overwritten() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let core = core_with_exports(folder.path())?;
    let taken = folder.path().join("taken");
    fs::create_dir(&taken)?;
    fs::write(taken.join("mine"), "precious")?;
    assert!(core.export(&taken).is_err());
    assert_eq!(fs::read_to_string(taken.join("mine"))?, "precious");
    let empty = folder.path().join("empty");
    fs::create_dir(&empty)?;
    core.export(&empty)?;
    let left: Vec<_> =
        fs::read_dir(folder.path())?.map(|entry| Ok(entry?.file_name())).collect::<Result<_>>()?;
    assert!(left.iter().all(|name| !name.to_string_lossy().contains("partial")), "{left:?}");
    Ok(())
}

#[test]
fn two_exports_of_one_revision_differ_in_id_date_and_signature_only() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let core = core_with_exports(folder.path())?;
    let (one, two) = (folder.path().join("one"), folder.path().join("two"));
    core.export(&one)?;
    core.export(&two)?;
    assert_eq!(ExportedState::read(&one)?, ExportedState::read(&two)?);
    for (left, right) in files(&one)?.iter().zip(files(&two)?) {
        let name = left.file_name().context("a name")?.to_string_lossy().into_owned();
        if name.starts_with("satchel-manifest") || name == "memory-store.json" {
            continue;
        }
        assert_eq!(fs::read(left)?, fs::read(right)?, "{name}");
    }
    Ok(())
}
