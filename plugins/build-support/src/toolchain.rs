//! Finds a toolchain that can build for wasm.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use crate::BuildError;

/// The target of every guest. It has no operating system, so a guest can import only the importer world.
pub(crate) const TARGET: &str = "wasm32-unknown-unknown";

/// The folder of Debian's `rustc-web` and `cargo-web`.
const SYSTEM_BIN: &str = "/usr/bin";

/// A cargo and its rustc that can build for wasm.
pub struct Toolchain {
    pub(crate) cargo: PathBuf,
    pub(crate) rustc: PathBuf,
    pub(crate) sysroot: PathBuf,
    /// Such as `rustc 1.95.0`.
    pub(crate) version: String,
    /// It is not the one that runs this build, so it must not see that one's variables.
    pub(crate) foreign: bool,
    /// The target's standard library must be built from source.
    pub(crate) builds_std: bool,
    /// `wasm-ld`, if the toolchain has no linker.
    pub(crate) linker: Option<&'static str>,
}

impl Toolchain {
    /// Finds the toolchain that is used in `folder` or the system's, whichever can build for the target.
    pub fn find(folder: &Path) -> Result<Self, BuildError> {
        let from_env =
            |variable: &str, name: &str| env::var_os(variable).map_or_else(|| name.into(), PathBuf::from);
        let running = (from_env("CARGO", "cargo"), from_env("RUSTC", "rustc"), false);
        let system = (Path::new(SYSTEM_BIN).join("cargo"), Path::new(SYSTEM_BIN).join("rustc"), true);
        let mut found: Vec<Self> = [running, system]
            .into_iter()
            .filter_map(|(cargo, rustc, foreign)| Self::probe(folder, cargo, rustc, foreign))
            .collect();
        // A toolchain that has the standard library builds faster.
        found.sort_by_key(|toolchain| toolchain.builds_std);
        found.into_iter().next().ok_or(BuildError::NoToolchain)
    }

    /// Returns the compiler's name and version, such as `rustc 1.95.0`.
    pub fn version(&self) -> &str {
        &self.version
    }

    fn probe(folder: &Path, cargo: PathBuf, rustc: PathBuf, foreign: bool) -> Option<Self> {
        let query = |arguments: &[&str]| {
            let mut command = Command::new(&rustc);
            // A file `rust-toolchain.toml` in the folder decides which compiler a proxy of rustup runs.
            command.current_dir(folder);
            if foreign {
                command.env_remove("RUSTUP_TOOLCHAIN");
            }
            let output = command.args(arguments).output().ok().filter(|output| output.status.success())?;
            String::from_utf8(output.stdout).ok().map(|text| text.trim_end().to_owned())
        };
        let path = |arguments: &[&str]| query(arguments).map(PathBuf::from);
        let sysroot = path(&["--print", "sysroot"])?;
        let ready = path(&["--print", "target-libdir", "--target", TARGET])?.is_dir();
        let source = sysroot.join("lib/rustlib/src/rust/library/Cargo.lock").is_file();
        if !ready && !source {
            return None;
        }
        let own_linker =
            path(&["--print", "target-libdir"])?.with_file_name("bin").join("rust-lld").is_file();
        // The commit and its date follow in parentheses.
        let version = query(&["--version"])?.split(" (").next()?.to_owned();
        Some(Self {
            cargo,
            rustc,
            sysroot,
            version,
            foreign,
            builds_std: !ready,
            linker: (!own_linker).then_some("wasm-ld"),
        })
    }
}
