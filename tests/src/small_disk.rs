//! A small file system in memory, to be filled up or made read-only.

use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;

/// The file system. It is unmounted on drop.
pub struct SmallDisk(TempDir);

impl SmallDisk {
    /// Returns `None` if this process may not mount one, which it says on stderr, bypassing the captured output of the test.
    ///
    /// # Errors
    /// If a folder cannot be created.
    pub fn mount(megabytes: u64) -> io::Result<Option<Self>> {
        let folder = tempfile::tempdir()?;
        let size = format!("size={megabytes}m,mode=0700");
        let mounted = rustix::process::geteuid().is_root()
            && run(&["mount", "-t", "tmpfs", "-o", &size, "satchel-test"], folder.path()).is_ok();
        if !mounted {
            io::stderr().write_all(b"not run: no tmpfs can be mounted here\n")?;
        }
        Ok(mounted.then(|| Self(folder)))
    }

    /// Where it is mounted.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    fn ballast(&self) -> PathBuf {
        self.path().join("ballast")
    }

    /// Fills the remaining space.
    ///
    /// # Errors
    /// If no file can be created.
    pub fn fill(&self) -> io::Result<()> {
        let mut file = fs::File::create(self.ballast())?;
        while file.write_all(&[1; 8 << 10]).is_ok() {}
        while file.write_all(&[1]).is_ok() {}
        Ok(())
    }

    /// Frees what was filled.
    ///
    /// # Errors
    /// If it was not filled.
    pub fn free(&self) -> io::Result<()> {
        fs::remove_file(self.ballast())
    }

    /// Mounts it with another option, such as `ro`.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn remount(&self, option: &str) -> io::Result<()> {
        run(&["mount", "-o", &format!("remount,{option}")], self.path())
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let unmounted = run(&["umount", "-l"], self.path());
        assert!(
            unmounted.is_ok() || std::thread::panicking(),
            "{:?} stays mounted: {unmounted:?}",
            self.path()
        );
    }
}

fn run(words: &[&str], folder: &Path) -> io::Result<()> {
    let status = Command::new(words[0]).args(&words[1..]).arg(folder).status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("{words:?}: {status}"))) }
}
