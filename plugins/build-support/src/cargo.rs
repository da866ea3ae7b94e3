//! Runs cargo for the guests, in a target folder of its own.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::{BuildError, TARGET, Toolchain};

/// The profile in the workspace's `Cargo.toml` that guests are built with.
const PROFILE: &str = "guest";

/// What separates flags in `CARGO_ENCODED_RUSTFLAGS`, so that paths may hold spaces.
const FLAG_SEPARATOR: &str = "\u{1f}";

/// What of cargo's own variables a child cargo may see: where it finds crates, how many jobs run, and which build it is
/// part of (`--target-dir` overrides that folder). All else speaks of the crate that is being built, or would change the
/// guests' bytes.
const KEPT: [&str; 7] = [
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
    /// Builds the packages and gives the core module of each, in order.
    ///
    /// It uses `target/plugins` below the workspace, whichever target folder the calling build has: the flags differ, so
    /// a shared folder would be rebuilt again and again, and the calling cargo holds the lock of its own.
    pub fn build(&self) -> Result<Vec<Vec<u8>>, BuildError> {
        let toolchain = Toolchain::find()?;
        let folder = self.workspace.join("target/plugins");
        let status = self.command(&toolchain, &folder).status();
        let status =
            status.map_err(|source| BuildError::Start { program: toolchain.cargo.clone(), source })?;
        if !status.success() {
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
        cargo.current_dir(self.workspace).args([
            "build",
            "--locked",
            "--lib",
            "--target",
            TARGET,
            "--profile",
            PROFILE,
        ]);
        cargo.arg("--target-dir").arg(folder);
        self.packages.iter().for_each(|package| {
            cargo.args(["--package", package]);
        });
        clean(&mut cargo, toolchain.foreign);
        cargo.env("RUSTC", &toolchain.rustc).env("CARGO_ENCODED_RUSTFLAGS", self.flags(toolchain));
        if let Some(linker) = toolchain.linker {
            cargo.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker);
        }
        if toolchain.builds_std {
            // A stable compiler builds its own library only under this name.
            cargo.env("RUSTC_BOOTSTRAP", "1").arg("-Zbuild-std=std,panic_abort");
        }
        // A build script's standard output speaks to cargo.
        cargo.stdin(Stdio::null()).stdout(Stdio::null());
        cargo
    }

    /// SIMD more than doubles the speed of an import; without the remaps the bytes depend on where the folders lie.
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

/// Takes away what the calling cargo, clippy or rustup set for the calling build.
fn clean(command: &mut Command, foreign: bool) {
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        let cargo = text.starts_with("CARGO") && !KEPT.iter().any(|kept| text.starts_with(kept));
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
