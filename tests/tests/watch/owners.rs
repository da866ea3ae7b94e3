//! Owners and access lists that change under a daemon: what is closed is a problem by its name, and goes on when it is open again.

#![expect(clippy::print_stderr, reason = "a test that cannot run says so")]

use std::{
    fs::{self, Permissions},
    os::unix::{
        fs::{PermissionsExt as _, chown},
        process::CommandExt as _,
    },
    path::Path,
    process::{Child, Command, Stdio},
    time::Instant,
};

use anyhow::{Context as _, Result, ensure};
use satchel_daemon::{config::Config, connect::connect};
use satchel_proto::v1::{
    self, admin_service_client::AdminServiceClient, import_service_client::ImportServiceClient,
};
use satchel_tests::nobody::superuser;
use tonic::transport::Channel;

use crate::play::{LOOK, PATIENCE, export, watching};

/// Set in the child: the folder with data directory and downloads.
const FOLDER: &str = "SATCHEL_TEST_OWNERS";
/// The user to whom nothing belongs, on every Linux.
const NOBODY: u32 = 65_534;

/// Not a test of its own: the daemon that runs as a user without rights.
#[tokio::test(flavor = "multi_thread")]
async fn daemon_without_rights() -> Result<()> {
    let Some(folder) = std::env::var_os(FOLDER) else { return Ok(()) };
    let folder = Path::new(&folder);
    let mut config = Config::new(folder.join("data"), folder.to_owned());
    watching(&mut config, &folder.join("downloads"));
    Ok(satchel_daemon::run(config, |_| {}, |_| {}, std::future::pending()).await?)
}

/// The daemon, killed when the test ends.
struct Other(Child);

impl Drop for Other {
    fn drop(&mut self) {
        self.0.kill().and_then(|()| self.0.wait().map(drop)).unwrap_or_default();
    }
}

fn give(path: &Path, user: u32, mode: u32) -> Result<()> {
    chown(path, Some(user), Some(user))?;
    Ok(fs::set_permissions(path, Permissions::from_mode(mode))?)
}

fn start(folder: &Path) -> Result<Other> {
    let program = folder.join("test");
    fs::copy(std::env::current_exe()?, &program)?;
    fs::set_permissions(&program, Permissions::from_mode(0o755))?;
    let mut command = Command::new(&program);
    command.args(["--exact", "owners::daemon_without_rights", "--test-threads", "1"]);
    command.env(FOLDER, folder).env("HOME", "/").uid(NOBODY).gid(NOBODY).current_dir("/");
    Ok(Other(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?))
}

async fn reached(folder: &Path) -> Result<Channel> {
    let end = Instant::now() + PATIENCE;
    loop {
        match connect(&folder.join("data")).await {
            Ok(channel) => return Ok(channel),
            Err(error) => ensure!(Instant::now() < end, "the daemon does not answer: {error}"),
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Waits until the problems are as wanted, and so many files are imported.
async fn until(channel: &Channel, imported: u64, problem: Option<&str>) -> Result<()> {
    let (mut imports, mut admin) =
        (ImportServiceClient::new(channel.clone()), AdminServiceClient::new(channel.clone()));
    let end = Instant::now() + PATIENCE;
    loop {
        let sources = imports.list_sources(v1::ListSourcesRequest {}).await?.into_inner().sources;
        let source = sources.into_iter().next().context("a watched folder")?;
        let problems = admin.get_status(v1::GetStatusRequest {}).await?.into_inner().problems;
        let fits = match problem {
            None => problems.is_empty(),
            Some(name) => problems.iter().any(|one| one.message.contains(name) && !one.fix.is_empty()),
        };
        if fits && source.imported >= imported {
            return Ok(());
        }
        ensure!(Instant::now() < end, "it never came: {imported} {problem:?}: {source:?} {problems:?}");
        tokio::time::sleep(LOOK).await;
    }
}

/// A POSIX access list in the kernel's form: the owner reads and writes, user `reader` reads, all others nothing.
fn access_list(reader: u32) -> Vec<u8> {
    const ANY: u32 = u32::MAX;
    let mut bytes = 2_u32.to_le_bytes().to_vec();
    for (tag, rights, id) in
        [(1_u16, 6_u16, ANY), (2, 4, reader), (4, 0, ANY), (0x10, 4, ANY), (0x20, 0, ANY)]
    {
        bytes.extend(tag.to_le_bytes());
        bytes.extend(rights.to_le_bytes());
        bytes.extend(id.to_le_bytes());
    }
    bytes
}

#[tokio::test(flavor = "multi_thread")]
async fn owners_and_access_lists_that_change_are_problems_by_name_and_no_more_when_they_change_back()
-> Result<()> {
    if !superuser() {
        eprintln!("not run: only root gives files to others; `troubles` has it with modes");
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let folder = folder.path();
    fs::set_permissions(folder, Permissions::from_mode(0o755))?;
    let (data, downloads) = (folder.join("data"), folder.join("downloads"));
    for place in [&data, &downloads] {
        fs::create_dir(place)?;
        give(place, NOBODY, 0o700)?;
    }
    let put = |name: &str, number: usize, owner: u32| -> Result<()> {
        let path = downloads.join(name);
        let hidden = downloads.join(format!(".{name}"));
        fs::write(&hidden, export(number))?;
        give(&hidden, owner, 0o600)?;
        Ok(fs::rename(hidden, path)?)
    };
    put("first.json", 1, NOBODY)?;
    let _daemon = start(folder)?;
    let channel = reached(folder).await?;
    until(&channel, 1, None).await?;
    // A file of another owner, and one that is opened by an access list alone; others go on.
    put("others.json", 2, 0)?;
    put("listed.json", 3, 0)?;
    put("mine.json", 4, NOBODY)?;
    until(&channel, 2, Some("others.json")).await?;
    until(&channel, 2, Some("listed.json")).await?;
    give(&downloads.join("others.json"), NOBODY, 0o600)?;
    until(&channel, 3, Some("listed.json")).await?;
    let (name, flags) = ("system.posix_acl_access", rustix::fs::XattrFlags::empty());
    match rustix::fs::setxattr(downloads.join("listed.json"), name, &access_list(NOBODY), flags) {
        Ok(()) => {}
        Err(error) => {
            eprintln!("access lists are not tried: this file system has none ({error})");
            give(&downloads.join("listed.json"), NOBODY, 0o600)?;
        }
    }
    until(&channel, 4, None).await?;
    // The watched folder itself.
    give(&downloads, 0, 0o700)?;
    until(&channel, 0, Some("may not be read")).await?;
    put("later.json", 5, NOBODY)?;
    give(&downloads, NOBODY, 0o700)?;
    until(&channel, 5, None).await?;
    // The data directory: the daemon goes on answering, and imports when it may write again.
    give(&data, 0, 0o700)?;
    let mut admin = AdminServiceClient::new(channel.clone());
    let before = admin.get_stats(v1::GetStatsRequest {}).await?.into_inner().conversations;
    ensure!(before == 5, "{before} conversations");
    put("last.json", 6, NOBODY)?;
    tokio::time::sleep(LOOK * 20).await;
    ensure!(admin.get_stats(v1::GetStatsRequest {}).await?.into_inner().conversations >= before);
    give(&data, NOBODY, 0o700)?;
    until(&channel, 6, None).await?;
    ensure!(admin.get_stats(v1::GetStatsRequest {}).await?.into_inner().conversations == 6);
    Ok(())
}
