//! Prepares cargo's command for guests, with a separate target folder.

use std::{
    env,
    ffi::{OsStr, OsString},
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
        let toolchain = Toolchain::find(self.workspace)?;
        let output = self.workspace.join("target/plugins");
        let mut cargo = command(&toolchain, self.workspace, self.workspace, &output);
        // Cargo reads a build script's standard output as instructions.
        cargo.arg("--locked").stdout(Stdio::null());
        cargo.args(self.packages.iter().flat_map(|package| ["--package", package]));
        let start_error = |source| BuildError::Start { program: toolchain.cargo.clone(), source };
        if !cargo.status().map_err(start_error)?.success() {
            return Err(BuildError::Cargo { packages: self.packages.join(", ") });
        }
        let read = |package: &&str| {
            let path = module(&output, package);
            std::fs::read(&path).map_err(|source| BuildError::Read { path, source })
        };
        self.packages.iter().map(read).collect()
    }
}

/// A package outside this repository that becomes a component.
pub struct Project<'a> {
    /// The folder of the package.
    pub folder: &'a Path,
    /// The folder of its workspace; the package's own, or one that contains it.
    pub workspace: &'a Path,
    /// The name of the package.
    pub package: &'a str,
    /// The name of its `cdylib`.
    pub library: &'a str,
}

impl Project<'_> {
    /// Returns the command that builds the core module. It is run by the caller, who shows what cargo prints.
    ///
    /// The command has no `--locked`: an author who adds a dependency expects that cargo adds it to `Cargo.lock`. What
    /// is in that file stays as it is.
    pub fn command(&self, toolchain: &Toolchain) -> Command {
        let mut cargo = command(toolchain, self.folder, self.workspace, &self.output());
        cargo.args(["--package", self.package]);
        cargo
    }

    /// Returns the path of the module that the command writes.
    pub fn module(&self) -> PathBuf {
        module(&self.output(), self.library)
    }

    fn output(&self) -> PathBuf {
        self.folder.join("target/satchel-plugin")
    }
}

/// Returns a cargo that runs in `folder` with `toolchain`, without the variables of a calling build.
pub fn cargo(toolchain: &Toolchain, folder: &Path) -> Command {
    let mut cargo = Command::new(&toolchain.cargo);
    cargo.current_dir(folder).stdin(Stdio::null());
    clean_environment(&mut cargo, toolchain.foreign);
    cargo.env("RUSTC", &toolchain.rustc);
    cargo
}

fn command(toolchain: &Toolchain, folder: &Path, workspace: &Path, output: &Path) -> Command {
    let mut cargo = cargo(toolchain, folder);
    cargo.args(["build", "--lib", "--target", TARGET, "--profile", PROFILE]);
    cargo.arg("--target-dir").arg(output);
    cargo.env("CARGO_ENCODED_RUSTFLAGS", flags(toolchain, workspace));
    if let Some(linker) = toolchain.linker {
        cargo.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker);
    }
    if toolchain.builds_std {
        // A stable compiler builds its own library only under this name.
        cargo.env("RUSTC_BOOTSTRAP", "1").arg("-Zbuild-std=std,panic_abort");
    }
    cargo
}

fn module(output: &Path, library: &str) -> PathBuf {
    output.join(TARGET).join(PROFILE).join(library.replace('-', "_")).with_extension("wasm")
}

/// SIMD more than doubles the speed of an import; the remaps make the bytes independent of the folders' paths.
fn flags(toolchain: &Toolchain, workspace: &Path) -> OsString {
    let mut flags = OsString::from("-Ctarget-feature=+simd128");
    let registry = cargo_home().join("registry/src");
    let library = toolchain.sysroot.join("lib/rustlib/src/rust");
    for (from, to) in [(workspace, "/src"), (&registry, "/cargo"), (&library, "/rust")] {
        let parts = [FLAG_SEPARATOR, "--remap-path-prefix="].map(OsStr::new);
        flags.extend(parts.into_iter().chain([from.as_os_str(), "=".as_ref(), to.as_ref()]));
    }
    flags
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
