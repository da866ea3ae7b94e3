//! Tests about what may not be read mean nothing to the superuser; such a one runs them again as a user without rights.

use std::{
    fs::Permissions,
    os::unix::{fs::PermissionsExt as _, process::CommandExt as _},
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, ensure};

/// The user to whom nothing belongs, on every Linux.
const NOBODY: u32 = 65_534;

/// Whether everything is open to this process.
#[must_use]
pub fn superuser() -> bool {
    rustix::process::geteuid().is_root()
}

/// Runs one test of the calling program as a user without rights, in a process of its own, and fails if it fails. The test must
/// read nothing of this repository, which may lie where that user does not come.
///
/// # Errors
/// When it fails, or that user may not run a program in the folder for temporary files.
pub fn runs(test: &str) -> Result<()> {
    let folder = tempfile::tempdir()?;
    std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755))?;
    let program = folder.path().join("test");
    std::fs::copy(std::env::current_exe()?, &program)?;
    std::fs::set_permissions(&program, Permissions::from_mode(0o755))?;
    let mut command = Command::new(&program);
    command.args(["--exact", test, "--test-threads", "1"]).uid(NOBODY).gid(NOBODY).current_dir("/");
    let output = command.env("HOME", "/").stdin(Stdio::null()).output().with_context(|| {
        format!("user {NOBODY} cannot run {program:?}; name another folder by TMPDIR, or test as another user than root")
    })?;
    let told = String::from_utf8_lossy(&output.stdout);
    let failed = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success() && told.contains("1 passed"), "as user {NOBODY}: {told}{failed}");
    Ok(())
}
