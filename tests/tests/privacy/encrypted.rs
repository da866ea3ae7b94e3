//! Encrypted exports: one file that only its recipients can open; it is verified and applied like any other export.

use std::{fs, path::Path};

use age::secrecy::ExposeSecret as _;
use anyhow::{Context as _, Result, ensure};
use satchel_bundle::verify::{self, Options};
use satchel_core::{
    export::ExportRequest,
    ingest::{Apply, ImportRequest, receipt::ImportStatus},
};
use satchel_source::envelope::{Keys, Lock};
use satchel_tests::{
    archive::{Archive, demo, whole},
    generate,
};

fn archive(folder: &Path) -> Result<Archive> {
    let archive = Archive::open(&folder.join("data"))?;
    archive.import(&demo().join("chatgpt-export"))?;
    Ok(archive)
}

fn keys(identity: &age::x25519::Identity) -> Result<Option<Keys>> {
    Ok(Some(Keys::parse(&[identity.to_string().expose_secret().to_owned()], None)?))
}

fn locked(output: &Path, lock: Option<Lock>) -> ExportRequest {
    ExportRequest { lock, attachments: true, ..whole(output.to_owned()) }
}

#[test]
fn an_export_to_recipients_opens_for_each_of_them_and_for_nobody_else() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let archive = archive(folder.path())?;
    let people = [(); 3].map(|()| age::x25519::Identity::generate());
    let to: Vec<String> = people[..2].iter().map(|one| one.to_public().to_string()).collect();
    let out = folder.path().join("out/bundle.zip.age");
    let made = archive.export_by(&locked(&out, Lock::parse(&to, None)?))?;
    ensure!(made.encrypted && fs::read(&out)?.starts_with(b"age-encryption.org/v1\n"));
    assert_eq!(fs::read_dir(folder.path().join("out"))?.count(), 1, "nothing lies beside it");
    for plain in ["memory-store", "satchel-manifest", "bees", &made.export_id] {
        ensure!(super::holding(&folder.path().join("out"), plain)?.is_empty(), "{plain}");
    }
    for one in &people[..2] {
        let report = verify::path(&out, &Options { keys: keys(one)?, strict: true, ..Options::default() })?;
        ensure!(report.valid && report.memories == made.memories, "{:?}", report.issues);
    }
    for (given, told) in [(keys(&people[2])?, "none of the identities"), (None, "--identity FILE")] {
        let error = verify::path(&out, &Options { keys: given, ..Options::default() })
            .err()
            .context("it is locked")?;
        ensure!(format!("{:#}", anyhow::Error::from(error)).contains(told));
    }
    Ok(())
}

#[test]
fn an_export_by_a_passphrase_is_applied_elsewhere_and_a_cut_one_is_not() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let here = archive(folder.path())?;
    let out = folder.path().join("bundle.zip.age");
    let passphrase = || Some("correct horse battery".to_owned());
    here.export_by(&locked(&out, Lock::parse(&[], passphrase())?))?;
    let there = Archive::open(&folder.path().join("there"))?;
    let request = |path: &Path| ImportRequest {
        path: path.to_owned(),
        provider: None,
        again: false,
        dry_run: false,
        apply: Some(Apply::default()),
    };
    let wrong = there.run_with(request(&out), Some(Keys::parse(&[], Some("another passphrase".into()))?))?;
    ensure!(wrong[0].status == ImportStatus::Failed, "{wrong:?}");
    let cut = folder.path().join("cut.zip.age");
    let bytes = fs::read(&out)?;
    fs::write(&cut, &bytes[..bytes.len() - 100])?;
    let failed = there.run_with(request(&cut), Some(Keys::parse(&[], passphrase())?))?;
    ensure!(failed[0].status == ImportStatus::Failed, "{failed:?}");
    let done = there.run_with(request(&out), Some(Keys::parse(&[], passphrase())?))?;
    ensure!(done[0].status == ImportStatus::Completed, "{done:?}");
    assert_eq!(there.state()?.memories, here.state()?.memories);
    Ok(())
}

#[test]
fn the_name_says_whether_it_is_encrypted() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let archive = archive(folder.path())?;
    let lock = || Lock::parse(&[], Some("correct horse battery".into()));
    for (name, lock) in [("plain.zip", lock()?), ("folder", lock()?), ("locked.zip.age", None)] {
        let out = folder.path().join(name);
        ensure!(archive.export_by(&locked(&out, lock)).is_err() && !out.exists(), "{name}");
    }
    Ok(())
}

/// Returns some positions in a file of this length: in its header, at its end, and across the rest.
fn spread(length: usize) -> impl Iterator<Item = usize> {
    let head = (0..400).step_by(23);
    head.chain((400..length).step_by(length / 25))
        .chain([length - 17, length - 1])
        .filter(move |at| *at < length)
}

#[test]
fn a_changed_or_cut_file_is_refused_and_costs_nothing_else() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let here = archive(folder.path())?;
    generate::chatgpt(&folder.path().join("large"), 600_000, 41)?;
    here.import(&folder.path().join("large"))?;
    let one = age::x25519::Identity::generate();
    let out = folder.path().join("bundle.zip.age");
    here.export_by(&locked(&out, Lock::parse(&[one.to_public().to_string()], None)?))?;
    let bytes = fs::read(&out)?;
    ensure!(bytes.len() > 70_000, "it is of more than one piece: {}", bytes.len());
    let there = Archive::open(&folder.path().join("there"))?;
    there.import(&demo().join("claude-export"))?;
    let before = there.state()?;
    let broken = folder.path().join("broken.zip.age");
    for at in spread(bytes.len()) {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1;
        for (how, content) in [("changed", &flipped[..]), ("cut", &bytes[..at])] {
            fs::write(&broken, content)?;
            let checked = verify::path(&broken, &Options { keys: keys(&one)?, ..Options::default() });
            let valid = checked.is_ok_and(|report| report.valid);
            ensure!(!valid, "{how} at {at}: it is taken for whole");
            let request = ImportRequest {
                path: broken.clone(),
                provider: None,
                again: true,
                dry_run: false,
                apply: Some(Apply::default()),
            };
            let records = there.run_with(request, keys(&one)?)?;
            let taken = records.iter().any(|record| {
                matches!(record.status, ImportStatus::Completed | ImportStatus::CompletedWithSkips)
            });
            ensure!(!taken, "{how} at {at}: {records:?}");
        }
    }
    ensure!(there.state()? == before, "something of a broken file was stored");
    Ok(())
}

#[test]
fn what_another_program_decrypts_is_a_bundle() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let archive = archive(folder.path())?;
    let one = age::x25519::Identity::generate();
    let out = folder.path().join("bundle.zip.age");
    archive.export_by(&locked(&out, Lock::parse(&[one.to_public().to_string()], None)?))?;
    let plain = folder.path().join("bundle.zip");
    fs::write(&plain, age::decrypt(&one, &fs::read(&out)?)?)?;
    let report = verify::path(&plain, &Options { strict: true, ..Options::default() })?;
    ensure!(report.valid, "{:?}", report.issues);
    Ok(())
}
