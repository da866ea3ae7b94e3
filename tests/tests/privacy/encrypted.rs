//! Encrypted exports: one file that only its recipients open, checked and applied as any other.

use std::{fs, path::Path};

use age::secrecy::ExposeSecret as _;
use anyhow::{Context as _, Result, ensure};
use satchel_daemon::{
    envelope::{Keys, Lock},
    export::ExportRequest,
    ingest::{Apply, ImportRequest, receipt::ImportStatus},
    verify::{self, Options},
};
use satchel_tests::archive::{Archive, demo, whole};

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
