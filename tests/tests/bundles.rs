//! A bundle proves that it is complete, unchanged and ours; if it is not, verification says what is wrong.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use satchel_bundle::verify::{self, Options, Signed};
use satchel_pam::time::Timestamp;
use satchel_tests::{
    archive::{Archive, State, demo},
    generate::Dice,
};
use serde_json::Value;

fn archive(folder: &Path) -> Result<Archive> {
    let archive = Archive::open(&folder.join("data"))?;
    archive.import(&demo().join("chatgpt-export"))?;
    archive.import(&demo().join("claude-export"))?;
    Ok(archive)
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
    let archive = archive(folder.path())?;
    for output in ["bundle", "bundle.zip"] {
        let path = folder.path().join(output);
        let made = archive.export(&path)?;
        let report =
            verify::path(&path, &Options { signers: vec![made.signer.clone()], ..Options::default() })?;
        assert!(report.valid, "{output}: {:?}", report.issues);
        assert_eq!((report.signature, report.manifest), (Signed::Valid, Signed::Valid));
        assert_eq!(report.signer.as_deref(), Some(made.signer.as_str()));
        assert_eq!(report.memories, made.memories);
    }
    Ok(())
}

#[test]
fn ten_thousand_single_byte_changes_are_all_refused() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let bundle = folder.path().join("bundle");
    archive(folder.path())?.export(&bundle)?;
    let files = files(&bundle)?;
    let mut dice = Dice::new(4);
    let mut refused = 0;
    for _ in 0..10_000 {
        let path = &files[usize::try_from(dice.below(files.len() as u64))?];
        let whole = fs::read(path)?;
        let at = usize::try_from(dice.below(whole.len() as u64))?;
        let mut changed = whole.clone();
        changed[at] ^= 1 << dice.below(8);
        fs::write(path, &changed)?;
        let valid = verify::path(&bundle, &Options::default()).is_ok_and(|report| report.valid);
        fs::write(path, &whole)?;
        ensure!(!valid, "byte {at} of {path:?} was changed and the bundle is still valid");
        refused += 1;
    }
    assert_eq!(refused, 10_000);
    assert!(verify::path(&bundle, &Options::default())?.valid);
    Ok(())
}

#[test]
fn a_store_without_manifest_stands_by_its_own_signature_unless_it_says_that_it_is_ours() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let bundle = folder.path().join("bundle");
    archive(folder.path())?.export(&bundle)?;
    let store = folder.path().join("memory-store.json");
    fs::copy(bundle.join("memory-store.json"), &store)?;
    let report = verify::path(&store, &Options::default())?;
    ensure!(!report.valid && report.manifest == Signed::Absent, "{report:?}");
    let text = fs::read_to_string(&store)?;
    let lines = text.lines().filter(|line| !line.contains("\"exported_by\""));
    fs::write(&store, lines.collect::<Vec<_>>().join("\n"))?;
    let whole = fs::read(&store)?;
    let report = verify::path(&store, &Options::default())?;
    assert!(
        report.valid && report.signature == Signed::Valid && report.manifest == Signed::Absent,
        "{report:?}"
    );
    let document: Value = serde_json::from_slice(&whole)?;
    let mut dice = Dice::new(5);
    for _ in 0..1_000 {
        let at = usize::try_from(dice.below(whole.len() as u64))?;
        let mut changed = whole.clone();
        changed[at] ^= 1 << dice.below(8);
        fs::write(&store, &changed)?;
        let valid = verify::path(&store, &Options::default()).is_ok_and(|report| report.valid);
        // PAM's signature covers memories, id, date and owner; everything else is covered by the manifest.
        let covered = |document: &Value| {
            let part = |key: &str| times(&document[key]);
            (part("memories"), part("export_id"), part("export_date"), times(&document["owner"]["id"]))
        };
        let same = serde_json::from_slice::<Value>(&changed)
            .is_ok_and(|changed| covered(&changed) == covered(&document));
        ensure!(!valid || same, "byte {at} changed what is signed, and the store is still valid");
    }
    Ok(())
}

/// Returns the value with its times in PAM's notation: `z` and `Z` mean the same, and the checksum of the official SDK
/// covers this one form.
fn times(value: &Value) -> Value {
    match value {
        Value::String(text) => {
            Timestamp::parse(text).map_or_else(|_| value.clone(), |time| time.to_string().into())
        }
        Value::Array(items) => items.iter().map(times).collect(),
        Value::Object(fields) => fields.iter().map(|(key, value)| (key.clone(), times(value))).collect(),
        other => other.clone(),
    }
}

#[test]
fn what_is_added_removed_or_swapped_is_found() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let bundle = folder.path().join("bundle");
    let made = archive(folder.path())?.export(&bundle)?;
    let conversation = fs::read_dir(bundle.join("conversations"))?.next().context("a conversation")??.path();
    let refused = |what: &str| -> Result<()> {
        let report = verify::path(&bundle, &Options::default())?;
        ensure!(
            !report.valid && report.manifest == Signed::Invalid,
            "{what} was not found: {:?}",
            report.issues
        );
        Ok(())
    };
    let added = bundle.join("notes.txt");
    fs::write(&added, "hello")?;
    refused("an added file")?;
    fs::remove_file(&added)?;
    let whole = fs::read(&conversation)?;
    fs::remove_file(&conversation)?;
    refused("a removed conversation")?;
    fs::write(&conversation, whole)?;
    let manifest = bundle.join("satchel-manifest.json");
    let whole = fs::read(&manifest)?;
    fs::remove_file(&manifest)?;
    let with_signer = Options { signers: vec![made.signer], ..Options::default() };
    refused("an orphaned signature")?;
    fs::remove_file(bundle.join("satchel-manifest.sig"))?;
    assert!(!verify::path(&bundle, &with_signer)?.valid, "a named signer's bundle needs its manifest");
    fs::write(&manifest, whole)?;
    Ok(())
}

#[test]
fn another_signer_is_not_the_one_that_was_asked_for() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let bundle = folder.path().join("bundle");
    archive(folder.path())?.export(&bundle)?;
    let other = tempfile::tempdir()?;
    let stranger = archive(other.path())?.export(&other.path().join("bundle"))?.signer;
    let report = verify::path(&bundle, &Options { signers: vec![stranger], ..Options::default() })?;
    assert!(!report.valid && report.signature == Signed::Valid, "{report:?}");
    assert!(verify::path(&bundle, &Options { signers: vec!["zebra".into()], ..Options::default() }).is_err());
    Ok(())
}

#[test]
fn an_output_that_is_taken_is_left_alone() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let archive = archive(folder.path())?;
    let taken = folder.path().join("taken");
    fs::create_dir(&taken)?;
    fs::write(taken.join("mine"), "precious")?;
    assert!(archive.export(&taken).is_err());
    assert_eq!(fs::read_to_string(taken.join("mine"))?, "precious");
    let empty = folder.path().join("empty");
    fs::create_dir(&empty)?;
    archive.export(&empty)?;
    let left: Vec<_> =
        fs::read_dir(folder.path())?.map(|entry| Ok(entry?.file_name())).collect::<Result<_>>()?;
    assert!(left.iter().all(|name| !name.to_string_lossy().contains("partial")), "{left:?}");
    Ok(())
}

#[test]
fn two_exports_of_one_revision_differ_in_id_date_and_signature_only() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let archive = archive(folder.path())?;
    let (one, two) = (folder.path().join("one"), folder.path().join("two"));
    archive.export(&one)?;
    archive.export(&two)?;
    assert_eq!(State::of(&one)?, State::of(&two)?);
    for (left, right) in files(&one)?.iter().zip(files(&two)?) {
        let name = left.file_name().context("a name")?.to_string_lossy().into_owned();
        if name.starts_with("satchel-manifest") || name == "memory-store.json" {
            continue;
        }
        assert_eq!(fs::read(left)?, fs::read(right)?, "{name}");
    }
    Ok(())
}
