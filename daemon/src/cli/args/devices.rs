//! Arguments of `devices`, `pair` and `servers`.

use clap::{Args, Subcommand, ValueEnum};
use satchel_proto::v1::{DeviceRole, Scope};

use super::{MemoryTypeArg, Paging, examples::devices as examples};

/// `devices …`.
#[derive(Debug, Subcommand)]
pub enum Devices {
    /// Pair a device: show a code that it enters
    ///
    /// Opens a window in which one device can pair, and shows a QR code for apps and a code to type. The window closes when a device has
    /// paired, after five wrong codes, when the time is over, or with Ctrl-C. The daemon has to listen: `satchel serve --listen ADDR:PORT`.
    #[command(after_help = examples::PAIR_DEVICE)]
    Pair(PairDeviceArgs),
    /// List the paired devices and the tokens
    #[command(after_help = examples::LIST)]
    List {
        /// Also list devices that were revoked
        #[arg(long)]
        all: bool,
    },
    /// Show what a device may do and see, and when it called last
    #[command(after_help = examples::SHOW)]
    Show(DeviceArg),
    /// Rename a device
    #[command(after_help = examples::RENAME)]
    Rename {
        #[command(flatten)]
        device: DeviceArg,
        /// New name: 1 to 64 characters
        name: String,
    },
    /// Change what a device may do and see, from its next call on
    ///
    /// Options that are given replace what was set before; the rest stays. With --role and without --scope, the device gets the permissions
    /// of the new role.
    #[command(after_help = examples::UPDATE)]
    Update {
        #[command(flatten)]
        device: DeviceArg,
        #[command(flatten)]
        policy: PolicyArgs,
        /// Restriction to remove; may be repeated
        #[arg(long, value_name = "OPTION")]
        clear: Vec<ClearableRestriction>,
    },
    /// Revoke a device or token for good; its open calls end at once
    #[command(after_help = examples::REVOKE)]
    Revoke {
        #[command(flatten)]
        device: DeviceArg,
        /// Why; stored with the device
        #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
        reason: String,
    },
    /// List the calls that devices made, newest first
    #[command(after_help = examples::LOG)]
    Log {
        /// Id, name, or the beginning of either; without it, the calls of all devices are listed
        #[arg(value_name = "DEVICE")]
        device: Option<String>,
        #[command(flatten)]
        paging: Paging,
    },
    /// Create a token for a script; it is shown only once
    ///
    /// The token is sent in the header `authorization: Bearer …`, over TLS only.
    #[command(after_help = examples::TOKEN)]
    Token(TokenArgs),
}

/// A device, as people name it.
#[derive(Clone, Debug, Args)]
pub struct DeviceArg {
    /// Id, name, or the beginning of either
    #[arg(value_name = "DEVICE")]
    pub device: String,
}

/// `devices pair`.
#[derive(Clone, Debug, Args)]
pub struct PairDeviceArgs {
    /// Name of the device: 1 to 64 characters
    #[arg(long = "as", value_name = "NAME")]
    pub name: String,
    #[command(flatten)]
    pub policy: PolicyArgs,
    /// How long the code can be used: 1s to 15m
    #[arg(long = "for", value_name = "TIME", default_value = "5m")]
    pub valid_for: String,
    /// Do not wait until the device has paired; the default with --json
    #[arg(long)]
    pub no_wait: bool,
    /// Wait until the device has paired, also with --json
    #[arg(long, conflicts_with = "no_wait")]
    pub wait: bool,
}

/// `devices token`.
#[derive(Clone, Debug, Args)]
pub struct TokenArgs {
    /// Name of the token: 1 to 64 characters
    #[arg(long = "as", value_name = "NAME")]
    pub name: String,
    #[command(flatten)]
    pub policy: PolicyArgs,
    /// How long the token is valid: 12h, 30d, 6mo; at most 366d
    #[arg(long = "for", value_name = "TIME")]
    pub valid_for: String,
}

/// What a device may do and see.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Permissions")]
pub struct PolicyArgs {
    /// What the device is for [default: owner]
    #[arg(long, value_name = "ROLE")]
    pub role: Option<DeviceRoleArg>,
    #[command(flatten)]
    pub selection: SelectionArgs,
    /// It has only this permission [default: those of its role]; may be repeated
    #[arg(long = "scope", value_name = "SCOPE", value_delimiter = ',')]
    pub scopes: Vec<ScopeArg>,
    /// What it writes as an agent is stored at once, and need not be approved with `satchel memories review`
    #[arg(long)]
    pub trusted_writes: bool,
}

impl PolicyArgs {
    /// Returns whether no option is given.
    pub fn is_empty(&self) -> bool {
        let Self { role, selection, scopes, trusted_writes } = self;
        role.is_none() && selection.is_empty() && scopes.is_empty() && !trusted_writes
    }
}

/// The part of the store that a device sees, or a peer gets.
#[derive(Clone, Debug, Default, Args)]
pub struct SelectionArgs {
    /// Only records from this platform, such as chatgpt; may be repeated
    #[arg(long = "platform", value_name = "NAME", value_delimiter = ',')]
    pub platforms: Vec<String>,
    /// Only records with this tag; if repeated, with one of them
    #[arg(long = "tag", value_name = "TAG", value_delimiter = ',')]
    pub tags: Vec<String>,
    /// Only memories of this type, and all conversations; may be repeated
    #[arg(long = "type", value_name = "TYPE", value_delimiter = ',')]
    pub types: Vec<MemoryTypeArg>,
    /// No records with this tag; may be repeated
    #[arg(long = "deny-tag", value_name = "TAG", value_delimiter = ',')]
    pub denied_tags: Vec<String>,
    /// Only records created at or after this time: 2026-03-01, 2026-03, yesterday, 2026-03-01T14:00:00Z
    #[arg(long, value_name = "TIME")]
    pub created_since: Option<String>,
    /// Only records created up to this time; a day, month or year is included as a whole
    #[arg(long, value_name = "TIME")]
    pub created_until: Option<String>,
    /// No memories that exports must not contain
    #[arg(long)]
    pub exportable_only: bool,
}

impl SelectionArgs {
    /// Returns whether no option is given.
    pub fn is_empty(&self) -> bool {
        let Self { platforms, tags, types, denied_tags, created_since, created_until, exportable_only } =
            self;
        platforms.is_empty()
            && tags.is_empty()
            && types.is_empty()
            && denied_tags.is_empty()
            && created_since.is_none()
            && created_until.is_none()
            && !exportable_only
    }
}

/// A part of a policy that can be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ClearableRestriction {
    Platform,
    Tag,
    Type,
    DenyTag,
    /// When records were created.
    Created,
    ExportableOnly,
    /// The device gets the permissions of its role.
    Scope,
    /// What an agent writes must be approved again.
    TrustedWrites,
}

wire_args! {
    /// The roles, as typed.
    DeviceRoleArg: DeviceRole {
        /// You: sees and may do everything
        Owner,
        /// You, on a device that only reads
        Reader,
        /// A program: sees memories that are public or shared with it, and may add memories and record conversations
        Agent,
        /// Another daemon, which keeps its store in step with this one, or with the part that it gets (`satchel peers add` there)
        Peer,
    }
    /// The permissions, as typed.
    ScopeArg: Scope {
        MemoriesRead,
        MemoriesWrite,
        MemoriesDelete,
        ConversationsRead,
        ConversationsWrite,
        Imports,
        Exports,
        Plugins,
        Devices,
        Admin,
    }
}

/// `pair`.
#[derive(Clone, Debug, Args)]
pub struct PairArgs {
    /// Code or `satchel://` link that `satchel devices pair` shows; `-` reads it from standard input
    pub code: String,
    /// Address of the daemon; needed with a code, as only links contain addresses; may be repeated
    #[arg(long = "address", value_name = "HOST:PORT")]
    pub addresses: Vec<String>,
    /// Name of this device, if `satchel devices pair` did not set one [default: the host name]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// What to call the daemon here [default: the host of --address, or home]
    #[arg(long = "as", value_name = "SERVER_NAME")]
    pub server_name: Option<String>,
}

/// `servers …`.
#[derive(Clone, Debug, Subcommand)]
pub enum Servers {
    /// List the daemons that this machine is paired with
    #[command(after_help = examples::SERVERS_LIST)]
    List,
    /// Show the addresses, the fingerprint and the certificate for a daemon
    #[command(after_help = examples::SERVERS_SHOW)]
    Show(ServerArg),
    /// Set the addresses at which a daemon is reached
    #[command(after_help = examples::SERVERS_SET_ADDRESS)]
    SetAddress {
        #[command(flatten)]
        server: ServerArg,
        /// Addresses, the likeliest first
        #[arg(required = true, value_name = "HOST:PORT")]
        addresses: Vec<String>,
    },
    /// Remove the key for a daemon; the daemon lists this device until it is revoked there
    #[command(after_help = examples::SERVERS_REMOVE)]
    Remove(ServerArg),
}

/// A paired daemon.
#[derive(Clone, Debug, Args)]
pub struct ServerArg {
    /// Name, as `satchel servers list` shows it
    #[arg(value_name = "NAME")]
    pub name: String,
}
