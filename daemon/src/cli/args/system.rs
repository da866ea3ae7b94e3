//! What can be typed about the daemon as a part of the system: serving, the service, the configuration.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use super::examples;

/// `serve`.
#[derive(Clone, Debug, Default, Args)]
pub struct ServeArgs {
    /// Watch this folder too, as long as this daemon runs; may be given several times
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub watch: Vec<PathBuf>,
    /// Log to this file, which is set aside when it is full, instead of stderr
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub log_file: Option<PathBuf>,
}

/// `service …`.
#[derive(Debug, Subcommand)]
pub enum Service {
    /// Write the service's files and let the system start it at login
    ///
    /// Installing again brings the files up to date: after the program has moved, or with another data directory. What is
    /// changed, and each command that is run, is told.
    #[command(after_help = examples::SERVICE_INSTALL)]
    Install(InstallArgs),
    /// Whether the service is installed, starts at login, and runs
    #[command(after_help = examples::SERVICE_STATUS)]
    Status,
    /// Stop the service and remove its files; your data stays
    #[command(after_help = examples::SERVICE_UNINSTALL)]
    Uninstall,
}

/// `service install`.
#[derive(Clone, Debug, Args)]
pub struct InstallArgs {
    /// A folder that the daemon is to watch, beside those of the configuration; may be given several times
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub watch: Vec<PathBuf>,
    /// Start it at once, not only at the next login
    #[arg(long)]
    pub now: bool,
    /// Replace files of these names that `satchel` has not written
    #[arg(long)]
    pub force: bool,
}

/// `config …`.
#[derive(Clone, Copy, Debug, Subcommand)]
pub enum ConfigCommand {
    /// Say whether the configuration can be used, and if not, where and why
    ///
    /// Exit code 1 when it cannot.
    #[command(after_help = examples::CONFIG_CHECK)]
    Check,
    /// Print the settings that are used, as a configuration file
    #[command(after_help = examples::CONFIG_SHOW)]
    Show {
        /// Those of a program without a configuration file
        #[arg(long)]
        defaults: bool,
    },
}
