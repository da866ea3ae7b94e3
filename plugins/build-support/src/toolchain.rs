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

/// A cargo and its rustc.
pub(crate) struct Toolchain {
    pub(crate) cargo: PathBuf,
    pub(crate) rustc: PathBuf,
    pub(crate) sysroot: PathBuf,
    /// It is not the one that runs this build, so it must not see that one's variables.
    pub(crate) foreign: bool,
    /// The target's standard library must be built from source.
    pub(crate) builds_std: bool,
    /// `wasm-ld`, if the toolchain has no linker.
    pub(crate) linker: Option<&'static str>,
}

impl Toolchain {
    /// Finds the running toolchain or the system's, whichever can build for the target.
    pub(crate) fn find() -> Result<Self, BuildError> {
        let from_env =
            |variable: &str, name: &str| env::var_os(variable).map_or_else(|| name.into(), PathBuf::from);
        let running = (from_env("CARGO", "cargo"), from_env("RUSTC", "rustc"), false);
        let system = (Path::new(SYSTEM_BIN).join("cargo"), Path::new(SYSTEM_BIN).join("rustc"), true);
        let mut found: Vec<Self> = [running, system]
            .into_iter()
            .filter_map(|(cargo, rustc, foreign)| Self::probe(cargo, rustc, foreign))
            .collect();
        // A toolchain that has the standard library builds faster.
        found.sort_by_key(|toolchain| toolchain.builds_std);
        found.into_iter().next().ok_or(BuildError::NoToolchain)
    }

    fn probe(cargo: PathBuf, rustc: PathBuf, foreign: bool) -> Option<Self> {
        let query = |arguments: &[&str]| {
            let mut command = Command::new(&rustc);
            if foreign {
                command.env_remove("RUSTUP_TOOLCHAIN");
            }
            let output = command.args(arguments).output().ok().filter(|output| output.status.success())?;
            String::from_utf8(output.stdout).ok().map(|text| PathBuf::from(text.trim_end()))
        };
        let sysroot = query(&["--print", "sysroot"])?;
        let ready = query(&["--print", "target-libdir", "--target", TARGET])?.is_dir();
        let source = sysroot.join("lib/rustlib/src/rust/library/Cargo.lock").is_file();
        if !ready && !source {
            return None;
        }
        let own_linker =
            query(&["--print", "target-libdir"])?.with_file_name("bin").join("rust-lld").is_file();
        Some(Self {
            cargo,
            rustc,
            sysroot,
            foreign,
            builds_std: !ready,
            linker: (!own_linker).then_some("wasm-ld"),
        })
    }
}
