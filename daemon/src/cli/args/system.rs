//! Arguments of `serve`, `service` and `config`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use super::examples;

/// `mcp`.
#[derive(Clone, Debug, Default, Args)]
pub struct McpArgs {
    /// Device as which the agent acts: its name or id. Not with --server NAME, where this machine is the device
    #[arg(long = "as", value_name = "NAME")]
    pub device: Option<String>,
}

/// `serve`.
#[derive(Clone, Debug, Default, Args)]
pub struct ServeArgs {
    /// Also watch this folder while this daemon runs; may be repeated
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub watch: Vec<PathBuf>,
    /// Also accept paired devices over TLS on this address and port, such as `0.0.0.0:7443`; see `satchel devices pair`
    #[arg(long, value_name = "ADDR:PORT", env = "SATCHEL_LISTEN", hide_env_values = true)]
    pub listen: Option<std::net::SocketAddr>,
    /// Also accept gRPC-Web with tokens on this loopback address and port, such as `127.0.0.1:7444`
    #[arg(long, value_name = "ADDR:PORT", env = "SATCHEL_WEB", hide_env_values = true)]
    pub web: Option<satchel_server::config::LoopbackAddress>,
    /// Log to this file instead of stderr; it is rotated when it is full
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub log_file: Option<PathBuf>,
}

/// `service …`.
#[derive(Debug, Subcommand)]
pub enum Service {
    /// Install the service, so that the system starts the daemon at login
    ///
    /// Run it again to update the service, for example after the program has moved, or with another data directory. Every change and every
    /// command that is run is printed.
    #[command(after_help = examples::SERVICE_INSTALL)]
    Install(InstallArgs),
    /// Show whether the service is installed, enabled and running
    #[command(after_help = examples::SERVICE_STATUS)]
    Status,
    /// Stop and uninstall the service; your data is kept
    #[command(after_help = examples::SERVICE_UNINSTALL)]
    Uninstall,
}

/// `service install`.
#[derive(Clone, Debug, Args)]
pub struct InstallArgs {
    /// Folder to watch, in addition to those in the configuration; may be repeated
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub watch: Vec<PathBuf>,
    /// Start the service now, not only at the next login
    #[arg(long)]
    pub now: bool,
    /// Overwrite service files that `satchel` did not write
    #[arg(long)]
    pub force: bool,
}

/// `config …`.
#[derive(Clone, Copy, Debug, Subcommand)]
pub enum ConfigCommand {
    /// Check the configuration for errors
    ///
    /// Exits with code 1 if the configuration is not valid.
    #[command(after_help = examples::CONFIG_CHECK)]
    Check,
    /// Print the effective settings as a configuration file
    #[command(after_help = examples::CONFIG_SHOW)]
    Show {
        /// Print the built-in defaults instead
        #[arg(long)]
        defaults: bool,
    },
}
