//! Encrypted exports: one file that only its recipients can open; it is verified and applied like any other export.

use std::{fs, path::Path};

use age::secrecy::ExposeSecret as _;
use anyhow::{Context as _, Result, ensure};
use satchel_bundle::verify::{self, VerifyOptions};
use satchel_core::{
    export::ExportRequest,
    ingest::{Apply, ImportRequest, receipt::ImportStatus},
};
use satchel_source::envelope::{DecryptionKeys, ExportEncryption};
use satchel_tests::{
    generate,
    test_core::{TestCore, demo_folder, full_export},
};

fn core_with_export(folder: &Path) -> Result<TestCore> {
    let core = TestCore::open(&folder.join("data"))?;
    core.import(&demo_folder().join("chatgpt-export"))?;
    Ok(core)
}

fn keyring(identity: &age::x25519::Identity) -> Result<Option<DecryptionKeys>> {
    Ok(Some(DecryptionKeys::parse(&[identity.to_string().expose_secret().to_owned()], None)?))
}

fn encrypted_request(output: &Path, lock: Option<ExportEncryption>) -> ExportRequest {
    ExportRequest { lock, attachments: true, ..full_export(output.to_owned()) }
}

#[test]
fn an_export_to_recipients_can_be_decrypted_by_each_of_them_and_nobody_else() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let core = core_with_export(folder.path())?;
    let identities = [(); 3].map(|()| age::x25519::Identity::generate());
    let to: Vec<String> = identities[..2].iter().map(|one| one.to_public().to_string()).collect();
    let out = folder.path().join("out/bundle.zip.age");
    let made = core.export_with(&encrypted_request(&out, ExportEncryption::parse(&to, None)?))?;
    ensure!(made.encrypted && fs::read(&out)?.starts_with(b"age-encryption.org/v1\n"));
    assert_eq!(fs::read_dir(folder.path().join("out"))?.count(), 1, "there are other files");
    for plain in ["memory-store", "satchel-manifest", "bees", &made.export_id] {
        ensure!(super::files_containing(&folder.path().join("out"), plain)?.is_empty(), "{plain}");
    }
    for one in &identities[..2] {
        let report = verify::path(
            &out,
            &VerifyOptions { keys: keyring(one)?, strict: true, ..VerifyOptions::default() },
        )?;
        ensure!(report.valid && report.memories == made.memories, "{:?}", report.issues);
    }
    for (given, expected) in [(keyring(&identities[2])?, "none of the identities"), (None, "--identity FILE")]
    {
        let error = verify::path(&out, &VerifyOptions { keys: given, ..VerifyOptions::default() })
            .err()
            .context("the bundle is encrypted")?;
        ensure!(format!("{:#}", anyhow::Error::from(error)).contains(expected));
    }
    Ok(())
}

#[test]
fn an_export_with_a_passphrase_can_be_applied_and_a_truncated_one_cannot() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let here = core_with_export(folder.path())?;
    let out = folder.path().join("bundle.zip.age");
    let passphrase = || Some("correct horse battery".to_owned());
    here.export_with(&encrypted_request(&out, ExportEncryption::parse(&[], passphrase())?))?;
    let there = TestCore::open(&folder.path().join("there"))?;
    let request = |path: &Path| ImportRequest {
        path: path.to_owned(),
        provider: None,
        plugin: None,
        again: false,
        dry_run: false,
        apply: Some(Apply::default()),
    };
    let wrong = there
        .run_with_keys(request(&out), Some(DecryptionKeys::parse(&[], Some("another passphrase".into()))?))?;
    ensure!(wrong[0].status == ImportStatus::Failed, "{wrong:?}");
    let cut = folder.path().join("cut.zip.age");
    let bytes = fs::read(&out)?;
    fs::write(&cut, &bytes[..bytes.len() - 100])?;
    let failed = there.run_with_keys(request(&cut), Some(DecryptionKeys::parse(&[], passphrase())?))?;
    ensure!(failed[0].status == ImportStatus::Failed, "{failed:?}");
    let done = there.run_with_keys(request(&out), Some(DecryptionKeys::parse(&[], passphrase())?))?;
    ensure!(done[0].status == ImportStatus::Completed, "{done:?}");
    assert_eq!(there.state()?.memories, here.state()?.memories);
    Ok(())
}

#[test]
fn the_file_name_must_match_the_encryption() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let core = core_with_export(folder.path())?;
    let lock = || ExportEncryption::parse(&[], Some("correct horse battery".into()));
    for (name, lock) in [("plain.zip", lock()?), ("folder", lock()?), ("locked.zip.age", None)] {
        let out = folder.path().join(name);
        ensure!(core.export_with(&encrypted_request(&out, lock)).is_err() && !out.exists(), "{name}");
    }
    Ok(())
}

/// Returns some positions in a file of this length: in its header, at its end, and across the rest.
fn sample_positions(length: usize) -> impl Iterator<Item = usize> {
    let head = (0..400).step_by(23);
    head.chain((400..length).step_by(length / 25))
        .chain([length - 17, length - 1])
        .filter(move |at| *at < length)
}

#[test]
fn a_changed_or_truncated_file_is_refused_and_changes_nothing() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let here = core_with_export(folder.path())?;
    generate::chatgpt(&folder.path().join("large"), 600_000, 41)?;
    here.import(&folder.path().join("large"))?;
    let one = age::x25519::Identity::generate();
    let out = folder.path().join("bundle.zip.age");
    here.export_with(&encrypted_request(
        &out,
        ExportEncryption::parse(&[one.to_public().to_string()], None)?,
    ))?;
    let bytes = fs::read(&out)?;
    ensure!(bytes.len() > 70_000, "the file has only one chunk: {}", bytes.len());
    let there = TestCore::open(&folder.path().join("there"))?;
    there.import(&demo_folder().join("claude-export"))?;
    let before = there.state()?;
    let broken = folder.path().join("broken.zip.age");
    for at in sample_positions(bytes.len()) {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1;
        for (how, content) in [("changed", &flipped[..]), ("cut", &bytes[..at])] {
            fs::write(&broken, content)?;
            let checked =
                verify::path(&broken, &VerifyOptions { keys: keyring(&one)?, ..VerifyOptions::default() });
            let valid = checked.is_ok_and(|report| report.valid);
            ensure!(!valid, "{how} at {at}: the file is reported as valid");
            let request = ImportRequest {
                path: broken.clone(),
                provider: None,
                plugin: None,
                again: true,
                dry_run: false,
                apply: Some(Apply::default()),
            };
            let records = there.run_with_keys(request, keyring(&one)?)?;
            let taken = records.iter().any(|record| {
                matches!(record.status, ImportStatus::Completed | ImportStatus::CompletedWithSkips)
            });
            ensure!(!taken, "{how} at {at}: {records:?}");
        }
    }
    ensure!(there.state()? == before, "a damaged file changed the store");
    Ok(())
}

#[test]
fn a_bundle_decrypted_by_another_program_is_valid() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let core = core_with_export(folder.path())?;
    let one = age::x25519::Identity::generate();
    let out = folder.path().join("bundle.zip.age");
    core.export_with(&encrypted_request(
        &out,
        ExportEncryption::parse(&[one.to_public().to_string()], None)?,
    ))?;
    let plain = folder.path().join("bundle.zip");
    fs::write(&plain, age::decrypt(&one, &fs::read(&out)?)?)?;
    let report = verify::path(&plain, &VerifyOptions { strict: true, ..VerifyOptions::default() })?;
    ensure!(report.valid, "{:?}", report.issues);
    Ok(())
}
