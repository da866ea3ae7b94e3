//! A source is hashed before it is read if an import of the same size is known, otherwise while it is read. Both give
//! the same result, and a source that changes meanwhile is not recorded as the one that was read.

use std::{
    fs::{self, File},
    io::Write as _,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use satchel_core::ingest::receipt::{ImportRecord, ImportStatus};
use satchel_pam::hash::Sha256Digest;
use satchel_tests::{
    generate,
    test_core::{TestCore, only_import},
};
use zip::{ZipWriter, write::SimpleFileOptions};

use crate::{
    cancel_while_deriving::{start_import, wait_until_ended},
    gate::{self, Gate},
};

/// Writes an export in every packaging that can be read.
fn write_packagings(folder: &Path) -> Result<Vec<PathBuf>> {
    let export = folder.join("export");
    generate::chatgpt(&export, 300_000, 81)?;
    let zip = |to: &Path, files: &[(&str, Vec<u8>)]| -> Result<()> {
        let mut writer = ZipWriter::new(File::create(to)?);
        for (name, bytes) in files {
            writer.start_file(*name, SimpleFileOptions::default())?;
            writer.write_all(bytes)?;
        }
        writer.finish()?;
        Ok(())
    };
    let conversations = fs::read(export.join("conversations.json"))?;
    let (flat, nested, holder) = (folder.join("flat.zip"), folder.join("nested.zip"), folder.join("holder"));
    zip(&flat, &[("conversations.json", conversations.clone()), ("notes.txt", b"mine".to_vec())])?;
    let inner = folder.join("inner.zip");
    zip(&inner, &[("conversations.json", conversations)])?;
    zip(&nested, &[("conversations__1.zip", fs::read(&inner)?)])?;
    fs::create_dir(&holder)?;
    fs::rename(inner, holder.join("chats.zip"))?;
    Ok(vec![export.join("conversations.json"), export, flat, nested, holder])
}

/// Returns a receipt without the parts that depend on time and chance.
fn comparable(import: ImportRecord) -> ImportRecord {
    ImportRecord {
        id: String::new(),
        job: String::new(),
        same_as: None,
        machine: None,
        reason: None,
        started_at: 0,
        finished_at: None,
        elapsed_ms: 0,
        ..import
    }
}

/// Returns the source checksums of the conversations in a bundle.
fn checksums(core: &TestCore) -> Result<Vec<String>> {
    let out = tempfile::tempdir()?;
    let bundle = out.path().join("bundle");
    core.export(&bundle)?;
    let mut all = Vec::new();
    for file in fs::read_dir(bundle.join("conversations"))? {
        let conversation: serde_json::Value = serde_json::from_slice(&fs::read(file?.path())?)?;
        let checksum = conversation["import_metadata"]["source_checksum"].as_str().context("a checksum")?;
        all.push(checksum.to_owned());
    }
    all.sort();
    all.dedup();
    Ok(all)
}

/// Imports `export` and blocks it for a moment when it is listed; returns whether it was hashed by then, and the
/// receipt.
fn import_and_block(core: &TestCore, export: &Path) -> Result<(bool, ImportRecord)> {
    let gate = Gate::at("import listed", 1);
    let (_, mut view) = start_import(core, export)?;
    gate.wait_for_thread()?;
    let imports = core.imports.list(None, 1)?.items;
    let hashed = imports.first().context("it is listed")?.source_checksum.is_some();
    gate.open();
    Ok((hashed, wait_until_ended(&mut view)?))
}

#[test]
fn hashing_before_or_during_reading_gives_the_same_store_and_receipt() -> Result<()> {
    let folder = tempfile::tempdir()?;
    for (at, export) in write_packagings(folder.path())?.into_iter().enumerate() {
        let open = |name: &str| TestCore::open(&folder.path().join(format!("{name}-{at}")));
        let (beside, first) = (open("beside")?, open("first")?);
        let (hashed, receipt) = import_and_block(&beside, &export)?;
        ensure!(!hashed && receipt.status == ImportStatus::Completed, "{export:?}: {receipt:?}");
        first.record_source_size(receipt.bytes)?;
        let (hashed, other) = import_and_block(&first, &export)?;
        ensure!(hashed, "{export:?} was not hashed before it was read");
        ensure!(comparable(receipt.clone()) == comparable(other.clone()), "{receipt:?}, but {other:?}");
        ensure!(beside.state()? == first.state()?, "{export:?}");
        let digest = receipt.source_checksum.clone().context("a digest")?;
        if export.is_file() {
            ensure!(digest == Sha256Digest::of(&fs::read(&export)?).to_string(), "{export:?}: {digest}");
        }
        for core in [&beside, &first] {
            ensure!(checksums(core)? == [digest.clone()], "{export:?}: {:?}", checksums(core)?);
            let _alone = gate::exclusive();
            let again = only_import(core.import(&export)?)?;
            ensure!(again.status == ImportStatus::Unchanged && again.same_as.is_some(), "{again:?}");
            ensure!(again.source_checksum.as_ref() == Some(&digest), "{again:?}");
        }
        beside.close()?;
        first.close()?;
    }
    Ok(())
}

/// A source that was imported before is not read: the job never reaches the failpoint where an import is listed.
#[test]
fn an_unchanged_source_is_recognised_before_it_is_read() -> Result<()> {
    let folder = tempfile::tempdir()?;
    for (at, export) in write_packagings(folder.path())?.into_iter().enumerate() {
        let core = TestCore::open(&folder.path().join(format!("data-{at}")))?;
        let alone = gate::exclusive();
        let first = only_import(core.import(&export)?)?;
        drop(alone);
        let gate = Gate::at("import listed", 1);
        let (_, mut view) = start_import(&core, &export)?;
        // The job would never end if the source were read.
        let again = wait_until_ended(&mut view)?;
        ensure!(again.status == ImportStatus::Unchanged && again.same_as == Some(first.id), "{again:?}");
        drop(gate);
        core.close()?;
    }
    Ok(())
}

/// A change to a file while it is read.
type FileChange = fn(&Path) -> Result<()>;

const CHANGES: [(&str, FileChange); 3] = [
    ("appended to", |path| Ok(File::options().append(true).open(path)?.write_all(b"\n")?)),
    ("cut", |path| {
        let file = File::options().write(true).open(path)?;
        Ok(file.set_len(file.metadata()?.len() / 2)?)
    }),
    ("replaced", |path| {
        let other = path.with_extension("other");
        fs::copy(path, &other)?;
        Ok(fs::rename(other, path)?)
    }),
];

#[test]
fn an_import_fails_if_its_source_changes_while_it_is_read() -> Result<()> {
    for (what, change) in CHANGES {
        for at in 0..3 {
            // The file, the folder and a ZIP in turn.
            let folder = tempfile::tempdir()?;
            let export = write_packagings(folder.path())?.remove(at);
            let file = if export.is_dir() { export.join("conversations.json") } else { export.clone() };
            let before = fs::read(&file)?;
            let core = TestCore::open(&folder.path().join("data"))?;
            let gate = Gate::at("import read", 1);
            let (_, mut view) = start_import(&core, &export)?;
            gate.wait_for_thread()?;
            change(&file)?;
            gate.open();
            let import = wait_until_ended(&mut view)?;
            drop(gate);
            let reason = import.reason.clone().unwrap_or_default();
            ensure!(import.status == ImportStatus::Failed, "{what}, {export:?}: {import:?}");
            ensure!(reason.contains("changed while it was read"), "{what}, {export:?}: {reason}");
            // Neither the old nor the new content counts as imported.
            fs::write(&file, &before)?;
            let _alone = gate::exclusive();
            let again = only_import(core.import(&export)?)?;
            ensure!(again.status == ImportStatus::Completed, "{what}, {export:?}: {again:?}");
            ensure!(again.conversations.found == again.conversations.unchanged, "{again:?}");
            core.close()?;
        }
    }
    Ok(())
}

/// A cancel while only hashing is left takes effect after one chunk, and a repeated import completes the work.
#[test]
fn an_import_is_cancelled_while_the_rest_of_its_source_is_hashed() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let export = write_packagings(folder.path())?.remove(0);
    let core = TestCore::open(&folder.path().join("data"))?;
    let gate = Gate::at("bytes hashed", 1);
    let (job, mut view) = start_import(&core, &export)?;
    gate.wait_for_thread()?;
    ensure!(core.imports.cancel(&job), "no such job runs");
    gate.open();
    let import = wait_until_ended(&mut view)?;
    ensure!(import.status == ImportStatus::Cancelled && import.source_checksum.is_none(), "{import:?}");
    drop(gate);
    let _alone = gate::exclusive();
    let completed = only_import(core.import(&export)?)?;
    ensure!(completed.status == ImportStatus::Completed, "{completed:?}");
    core.close()
}

/// The sizes of imports by an older version are taken from its receipts.
#[test]
fn sources_imported_before_sizes_were_recorded_are_recognised() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let exports = write_packagings(folder.path())?;
    let core = TestCore::open(&folder.path().join("data"))?;
    let _alone = gate::exclusive();
    let (one, other) = (&exports[0], &exports[2]);
    let receipts = [only_import(core.import(one)?)?, only_import(core.import(other)?)?];
    core.remove_source_sizes(&receipts.map(|receipt| receipt.bytes))?;
    for export in [other, one] {
        let again = only_import(core.import(export)?)?;
        ensure!(again.status == ImportStatus::Unchanged, "{again:?}");
    }
    core.close()
}
