//! Arguments of `plugins`: the importers that are installed, and what the author of one uses.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};

use super::examples::plugins as examples;

/// `plugins …`.
#[derive(Debug, Subcommand)]
pub enum Plugins {
    #[command(flatten)]
    Installed(InstalledCommand),
    #[command(flatten)]
    Author(AuthorCommand),
    /// Compile one package; the daemon calls this in a process of its own
    #[command(hide = true, after_help = examples::COMPILE_CHILD)]
    CompileChild(CompileChildArgs),
}

/// The commands of `plugins` for the person who imports; they are sent to a daemon.
#[derive(Debug, Subcommand)]
pub enum InstalledCommand {
    /// List the importers: those that come with satchel, and the installed ones
    #[command(after_help = examples::LIST)]
    List,
    /// Show an importer: who signed it, what it reads, what it may use
    #[command(after_help = examples::SHOW, disable_version_flag = true)]
    Show(PluginArgs),
    /// Install an importer from a file
    ///
    /// Shows its name, its author's key, what it reads and what it may use, and asks before it changes anything. The importer is compiled
    /// in a process of its own with little memory and time, and compared with what its file says of it. It sees the files of an export that
    /// you import, and nothing else: no network, no other files, no clock.
    #[command(after_help = examples::INSTALL)]
    Install(PluginInstallArgs),
    /// Install another version of an importer that is installed
    ///
    /// Works like `satchel plugins install`. The file has to be signed by the key that signed the installed version. Shows which earlier
    /// imports the new version would read differently.
    #[command(after_help = examples::UPGRADE)]
    Upgrade(PluginInstallArgs),
    /// Enable an importer again, or use another installed version of it
    #[command(after_help = examples::ENABLE, disable_version_flag = true)]
    Enable(PluginArgs),
    /// Disable an installed importer; it stays installed
    #[command(after_help = examples::DISABLE, disable_version_flag = true)]
    Disable(PluginArgs),
    /// Remove an installed importer; what it imported is kept
    ///
    /// `satchel imports undo` takes back an import. If the importer had replaced one that comes with satchel, that one is used again.
    #[command(after_help = examples::REMOVE, disable_version_flag = true)]
    Remove(PluginArgs),
    /// Trust the key of an importer's author
    #[command(after_help = examples::TRUST)]
    Trust(AuthorKeyArgs),
    /// Stop trusting the key of an author; the importers that it signed are disabled
    #[command(after_help = examples::UNTRUST)]
    Untrust(AuthorKeyArgs),
    /// List the keys of authors, and the importers that they signed
    #[command(after_help = examples::KEYS)]
    Keys,
}

/// The commands of `plugins` for the author of an importer; they need no data directory.
#[derive(Debug, Subcommand)]
pub enum AuthorCommand {
    /// Write the project of a new importer
    ///
    /// The project is complete: an importer that reads an invented format, a fixture, a test, and a CI example. It needs nothing from
    /// satchel's own repository.
    #[command(after_help = examples::NEW)]
    New(NewArgs),
    /// Build the package of an importer: one file NAME-VERSION.satchel
    #[command(after_help = examples::BUILD)]
    Build(BuildArgs),
    /// Run an importer in the sandbox over its fixtures, and over damaged copies of them
    ///
    /// Compares the records of each `fixtures/*/input` with `expected.json`, checks that found = emitted + skipped and that the result does
    /// not depend on the order of the files, and measures speed and memory. Exits with code 1 if a check fails.
    #[command(after_help = examples::TEST)]
    Test(TestArgs),
    /// Show what an importer would emit for an export; nothing is stored
    #[command(after_help = examples::RUN)]
    Run(RunArgs),
    /// Create the key that signs your packages
    #[command(subcommand, after_help = examples::KEY)]
    Key(KeyCommand),
    /// Sign a package with your key
    #[command(after_help = examples::SIGN)]
    Sign(SignArgs),
}

/// An importer, by its name.
#[derive(Clone, Debug, Args)]
pub struct PluginArgs {
    /// Name of the importer, as `satchel plugins list` shows it
    #[arg(value_name = "NAME")]
    pub name: String,
    /// This version instead of the one in use; for remove, instead of all
    #[arg(long, value_name = "X.Y.Z")]
    pub version: Option<String>,
}

/// `plugins install` and `plugins upgrade`.
#[derive(Clone, Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct PluginInstallArgs {
    /// Package of the importer, NAME-VERSION.satchel
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Check the package and show it without installing it
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask for confirmation: trust the author's key, and accept an older version
    #[arg(long, short, conflicts_with = "dry_run")]
    pub yes: bool,
    /// Accept a package that nobody signed
    #[arg(long)]
    pub unsigned: bool,
    /// Use it instead of the importer of the same name or platform that comes with satchel
    #[arg(long)]
    pub replace_built_in: bool,
}

/// The key of an author.
#[derive(Clone, Debug, Args)]
pub struct AuthorKeyArgs {
    /// Key as `satchel plugins keys` shows it: z6Mk…
    #[arg(value_name = "KEY")]
    pub key: String,
}

/// The languages of a new project.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LanguageArg {
    Rust,
    Javascript,
    Python,
}

/// `plugins new`.
#[derive(Clone, Debug, Args)]
pub struct NewArgs {
    /// Name of the importer: 2 to 41 of a-z, 0-9 and -
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Language to write it in
    #[arg(long, value_name = "LANGUAGE")]
    pub language: LanguageArg,
    /// Folder to create [default: NAME]
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub dir: Option<PathBuf>,
}

/// `plugins build`.
#[derive(Clone, Debug, Args)]
pub struct BuildArgs {
    /// Folder of the project
    #[arg(value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    pub dir: PathBuf,
    /// Sign the package with your key
    #[arg(long)]
    pub sign: bool,
    /// File with the secret key [default: satchel/author.key in the user's configuration folder]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "sign")]
    pub key_file: Option<PathBuf>,
}

/// `plugins test`.
#[derive(Clone, Debug, Args)]
pub struct TestArgs {
    /// Folder of the project, or a package beside a folder `fixtures`
    #[arg(value_name = "DIR|FILE", default_value = ".", value_hint = ValueHint::AnyPath)]
    pub path: PathBuf,
    /// Write `expected.json` of each fixture instead of comparing with it
    #[arg(long)]
    pub update: bool,
    /// Measure the speed with this export instead of the largest fixture
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub bench: Option<PathBuf>,
}

/// `plugins run`.
#[derive(Clone, Debug, Args)]
pub struct RunArgs {
    /// Package or component of the importer
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Export to read: a file, a ZIP archive or a folder
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub path: PathBuf,
}

/// `plugins key …`.
#[derive(Clone, Debug, Subcommand)]
pub enum KeyCommand {
    /// Create a new key; an existing one is never overwritten
    #[command(after_help = examples::KEY_NEW)]
    New {
        /// File for the secret key [default: satchel/author.key in the user's configuration folder]
        #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        key_file: Option<PathBuf>,
    },
}

/// `plugins sign`.
#[derive(Clone, Debug, Args)]
pub struct SignArgs {
    /// Package to sign; its earlier signature is replaced
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// File with the secret key [default: satchel/author.key in the user's configuration folder]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub key_file: Option<PathBuf>,
}

/// `plugins compile-child`.
#[derive(Clone, Debug, Args)]
pub struct CompileChildArgs {
    /// Package to compile
    #[arg(value_name = "PACKAGE")]
    pub package: PathBuf,
    /// Folder of compiled code
    #[arg(value_name = "CACHE-FOLDER", requires = "cache_key")]
    pub cache_folder: Option<PathBuf>,
    /// Key that seals compiled code
    #[arg(value_name = "CACHE-KEY")]
    pub cache_key: Option<PathBuf>,
}
