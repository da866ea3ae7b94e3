//! Arguments of `serve`, `service` and `config`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};

use super::examples;

/// `mcp`.
#[derive(Debug, Default, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct McpArgs {
    /// Device as which the agent acts: its name or id. Not with --server NAME, where this machine is the device
    #[arg(long = "as", value_name = "NAME")]
    pub device: Option<String>,
    #[command(subcommand)]
    pub command: Option<McpCommand>,
}

/// `mcp …`.
#[derive(Debug, Subcommand)]
pub enum McpCommand {
    /// Add this server to the configuration of a program
    ///
    /// Shows what changes in the file and asks first. The rest of the file stays as it is, and an entry that starts another program is never
    /// changed. If there is no device of the name, it is created.
    #[command(after_help = examples::MCP_INSTALL)]
    Install(McpInstallArgs),
    /// Remove this server from the configuration of a program
    ///
    /// The device stays; `satchel devices revoke` revokes it.
    #[command(after_help = examples::MCP_UNINSTALL)]
    Uninstall(McpEntryArgs),
}

/// `mcp install`.
#[derive(Debug, Args)]
pub struct McpInstallArgs {
    #[command(flatten)]
    pub entry: McpEntryArgs,
    /// Device as which the program acts [default: the program's name here]. Not with --server NAME
    #[arg(long = "as", value_name = "NAME")]
    pub device: Option<String>,
    /// What the device may do if it is created [default: agent]
    #[arg(long, value_name = "ROLE")]
    pub role: Option<AgentRole>,
    /// How long the device is valid if it is created: 12h, 30d, 6mo; at most 366d
    #[arg(long = "for", value_name = "TIME", default_value = "365d")]
    pub valid_for: String,
}

/// An entry in the configuration of a program.
#[derive(Debug, Args)]
pub struct McpEntryArgs {
    /// Program to configure
    #[arg(value_name = "PROGRAM")]
    pub program: AgentProgram,
    /// Name of the server in the configuration of the program
    #[arg(long, value_name = "NAME", default_value = "satchel", value_parser = server_name)]
    pub name: String,
    /// Configuration file of the program, if it is not at its usual place
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: Option<PathBuf>,
    /// Do not ask
    #[arg(short, long)]
    pub yes: bool,
}

/// Accepts the names that all of these programs accept.
fn server_name(text: &str) -> Result<String, String> {
    let valid = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if (1..=64).contains(&text.len()) && text.chars().all(valid) {
        return Ok(text.to_owned());
    }
    Err("a name has 1 to 64 of the letters a to z and A to Z, digits, `-` and `_`".to_owned())
}

/// Programs that `mcp install` can configure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AgentProgram {
    ClaudeCode,
    ClaudeDesktop,
    Codex,
    Cursor,
    Vscode,
    GeminiCli,
    Zed,
}

/// The roles that the device of a program may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AgentRole {
    /// It sees memories that are public or shared with it, and what it writes waits for your review
    Agent,
    /// It sees everything, and writes nothing
    Reader,
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
