//! Tests about what may not be read mean nothing to the superuser; such a one runs them again as a user without rights.

use std::{
    os::unix::process::CommandExt as _,
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

/// Runs one test of the calling program as a user without rights, in a process of its own, and fails if it fails.
///
/// # Errors
/// When it fails, or that user may not run this program because a folder above it is closed.
pub fn runs(test: &str) -> Result<()> {
    let program = std::env::current_exe()?;
    let mut command = Command::new(&program);
    command.args(["--exact", test, "--test-threads", "1"]).uid(NOBODY).gid(NOBODY).current_dir("/");
    let output = command.env("HOME", "/").stdin(Stdio::null()).output().with_context(|| {
        format!("user {NOBODY} cannot run {program:?}; open the folders above it, or test as another user than root")
    })?;
    let told = String::from_utf8_lossy(&output.stdout);
    let failed = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success() && told.contains("1 passed"), "as user {NOBODY}: {told}{failed}");
    Ok(())
}
