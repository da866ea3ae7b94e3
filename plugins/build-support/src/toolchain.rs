//! Finds a toolchain that can build for wasm.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use crate::BuildError;

/// The target of every guest: it has no operating system, so nothing to import but our world.
pub const TARGET: &str = "wasm32-unknown-unknown";

/// Where Debian puts the toolchain of `rustc-web`.
const SYSTEM_BIN: &str = "/usr/bin";

/// A cargo and a rustc of the same origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Toolchain {
    pub(crate) cargo: PathBuf,
    pub(crate) rustc: PathBuf,
    pub(crate) sysroot: PathBuf,
    /// Not the one that runs this build, so what that one set must not reach it.
    pub(crate) foreign: bool,
    /// The target's standard library has to be built from its source.
    pub(crate) builds_std: bool,
    /// `wasm-ld`, where the toolchain has no linker of its own.
    pub(crate) linker: Option<&'static str>,
}

impl Toolchain {
    /// The running toolchain if it can, else the system's.
    pub fn find() -> Result<Self, BuildError> {
        let named =
            |variable: &str, name: &str| env::var_os(variable).map_or_else(|| name.into(), PathBuf::from);
        let running = (named("CARGO", "cargo"), named("RUSTC", "rustc"), false);
        let system = (Path::new(SYSTEM_BIN).join("cargo"), Path::new(SYSTEM_BIN).join("rustc"), true);
        let mut found: Vec<Self> = [running, system]
            .into_iter()
            .filter_map(|(cargo, rustc, foreign)| Self::probe(cargo, rustc, foreign))
            .collect();
        // One that has the library ready is quicker, whichever it is.
        found.sort_by_key(|toolchain| toolchain.builds_std);
        found.into_iter().next().ok_or(BuildError::NoToolchain)
    }

    fn probe(cargo: PathBuf, rustc: PathBuf, foreign: bool) -> Option<Self> {
        let ask = |arguments: &[&str]| {
            let mut command = Command::new(&rustc);
            if foreign {
                command.env_remove("RUSTUP_TOOLCHAIN");
            }
            let output = command.args(arguments).output().ok().filter(|output| output.status.success())?;
            String::from_utf8(output.stdout).ok().map(|text| PathBuf::from(text.trim_end()))
        };
        let sysroot = ask(&["--print", "sysroot"])?;
        let ready = ask(&["--print", "target-libdir", "--target", TARGET])?.is_dir();
        let source = sysroot.join("lib/rustlib/src/rust/library/Cargo.lock").is_file();
        if !ready && !source {
            return None;
        }
        let own_linker = ask(&["--print", "target-libdir"])?.with_file_name("bin").join("rust-lld").is_file();
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
