//! Runs cargo for the guests in a separate target folder.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::{
    BuildError,
    toolchain::{TARGET, Toolchain},
};

/// The guests' profile in the workspace's `Cargo.toml`.
const PROFILE: &str = "guest";

/// The separator of flags in `CARGO_ENCODED_RUSTFLAGS`, which allows spaces in paths.
const FLAG_SEPARATOR: &str = "\u{1f}";

/// Prefixes of cargo's variables that a child cargo inherits: where crates are, the number of jobs, and the build that it is
/// part of (`--target-dir` overrides that folder). The others describe the crate being built, or would change the guests'
/// bytes.
const INHERITED: [&str; 7] = [
    "CARGO_HOME",
    "CARGO_HTTP_",
    "CARGO_MAKEFLAGS",
    "CARGO_NET_",
    "CARGO_REGISTRIES_",
    "CARGO_REGISTRY_",
    "CARGO_TARGET_DIR",
];

/// Members of one workspace that become components.
pub struct Guests<'a> {
    /// The folder of the workspace.
    pub workspace: &'a Path,
    /// Package names; each has a `cdylib`.
    pub packages: &'a [&'a str],
}

impl Guests<'_> {
    /// Builds the packages and returns the core module of each, in order.
    ///
    /// The target folder is always `target/plugins` of the workspace: other flags would make cargo rebuild a shared folder
    /// each time, and the calling cargo locks its own.
    pub fn build(&self) -> Result<Vec<Vec<u8>>, BuildError> {
        let toolchain = Toolchain::find()?;
        let folder = self.workspace.join("target/plugins");
        let start_error = |source| BuildError::Start { program: toolchain.cargo.clone(), source };
        if !self.command(&toolchain, &folder).status().map_err(start_error)?.success() {
            return Err(BuildError::Cargo { packages: self.packages.join(", ") });
        }
        let output = folder.join(TARGET).join(PROFILE);
        let module = |package: &&str| {
            let path = output.join(package.replace('-', "_")).with_extension("wasm");
            std::fs::read(&path).map_err(|source| BuildError::Read { path, source })
        };
        self.packages.iter().map(module).collect()
    }

    fn command(&self, toolchain: &Toolchain, folder: &Path) -> Command {
        let mut cargo = Command::new(&toolchain.cargo);
        cargo.current_dir(self.workspace);
        cargo.args(["build", "--locked", "--lib", "--target", TARGET, "--profile", PROFILE]);
        cargo.arg("--target-dir").arg(folder);
        cargo.args(self.packages.iter().flat_map(|package| ["--package", package]));
        clean_environment(&mut cargo, toolchain.foreign);
        cargo.env("RUSTC", &toolchain.rustc).env("CARGO_ENCODED_RUSTFLAGS", self.flags(toolchain));
        if let Some(linker) = toolchain.linker {
            cargo.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker);
        }
        if toolchain.builds_std {
            // A stable compiler builds its own library only under this name.
            cargo.env("RUSTC_BOOTSTRAP", "1").arg("-Zbuild-std=std,panic_abort");
        }
        // Cargo reads a build script's standard output as instructions.
        cargo.stdin(Stdio::null()).stdout(Stdio::null());
        cargo
    }

    /// SIMD more than doubles the speed of an import; the remaps make the bytes independent of the folders' paths.
    fn flags(&self, toolchain: &Toolchain) -> OsString {
        let mut flags = OsString::from("-Ctarget-feature=+simd128");
        let registry = cargo_home().join("registry/src");
        let library = toolchain.sysroot.join("lib/rustlib/src/rust");
        for (from, to) in [(self.workspace, "/src"), (&registry, "/cargo"), (&library, "/rust")] {
            flags.push(FLAG_SEPARATOR);
            flags.push("--remap-path-prefix=");
            flags.push(from);
            flags.push("=");
            flags.push(to);
        }
        flags
    }
}

/// Removes the variables that cargo, clippy or rustup set for the calling build.
fn clean_environment(command: &mut Command, foreign: bool) {
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        let cargo = text.starts_with("CARGO") && !INHERITED.iter().any(|prefix| text.starts_with(prefix));
        let rust = text.starts_with("RUSTC") || text.starts_with("RUSTDOC") || text == "RUSTFLAGS";
        if cargo || rust || (foreign && text.starts_with("RUSTUP_")) {
            command.env_remove(&name);
        }
    }
    if foreign {
        command.env("PATH", "/usr/bin:/bin");
    }
}

fn cargo_home() -> PathBuf {
    let home = || env::home_dir().unwrap_or_default().join(".cargo");
    env::var_os("CARGO_HOME").map_or_else(home, PathBuf::from)
}
