//! Arguments of `peers`, `sync` and `conflicts`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::{SelectionArgs, examples::peers as examples};

/// `peers …`.
#[derive(Clone, Debug, Subcommand)]
pub enum Peers {
    /// Pair with the daemon of another machine, and keep both stores in step
    ///
    /// Run `satchel devices pair --role peer` on the other machine first; it shows the code. Its daemon has to listen: `satchel serve --listen
    /// ADDR:PORT`. This one connects to it, so only one of the two has to be reachable.
    #[command(after_help = examples::ADD)]
    Add(AddPeerArgs),
    /// List the peers, and how far the exchange with each is
    #[command(after_help = examples::LIST)]
    List,
    /// Show a peer
    #[command(after_help = examples::SHOW)]
    Show(PeerArg),
    /// Pause the exchange with a peer until it is resumed
    #[command(after_help = examples::PAUSE)]
    Pause(PeerArg),
    /// Resume the exchange with a peer
    #[command(after_help = examples::RESUME)]
    Resume(PeerArg),
    /// Set the addresses at which a peer is reached
    #[command(after_help = examples::SET_ADDRESS)]
    SetAddress {
        #[command(flatten)]
        peer: PeerArg,
        /// Addresses, the likeliest first
        #[arg(required = true, value_name = "HOST:PORT")]
        addresses: Vec<String>,
    },
    /// Set whether all attachments come from a peer, or only those that somebody opens
    #[command(after_help = examples::SET_ATTACHMENTS)]
    SetAttachments {
        #[command(flatten)]
        peer: PeerArg,
        /// Which attachments come
        #[arg(value_enum, value_name = "WHICH")]
        which: PeerAttachments,
    },
    /// Give a peer only a part of this store from now on, or everything again
    ///
    /// The options replace all that was set before. The peer takes out the other records that it has, but for those that it has made or changed
    /// itself; it keeps them if it has or had more peers than this one. It still gets all changes, but of those that are about other records only that
    /// there was one, without its contents. Set it on every machine that exchanges changes with the peer.
    #[command(after_help = examples::RESTRICT)]
    Restrict {
        #[command(flatten)]
        peer: PeerArg,
        #[command(flatten)]
        selection: SelectionArgs,
        /// Give it everything
        #[arg(long)]
        everything: bool,
    },
    /// End the exchange with a peer for good; what it has, it keeps
    #[command(after_help = examples::REMOVE)]
    Remove(PeerArg),
}

/// Which attachments come from a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PeerAttachments {
    /// All that this store lacks
    All,
    /// Those that somebody opens
    OnDemand,
}

/// A peer.
#[derive(Clone, Debug, Args)]
pub struct PeerArg {
    /// Name, as `satchel peers list` shows it, or the id of its device
    #[arg(value_name = "NAME")]
    pub name: String,
}

/// `peers add`.
#[derive(Clone, Debug, Args)]
pub struct AddPeerArgs {
    /// Code or `satchel://` link that `satchel devices pair --role peer` shows; `-` reads it from standard input
    pub code: String,
    /// Address of the daemon; needed with a code, as only links contain addresses; may be repeated
    #[arg(long = "address", value_name = "HOST:PORT")]
    pub addresses: Vec<String>,
    /// Name of this machine there, if `satchel devices pair` did not set one [default: the host name]
    #[arg(long = "name", value_name = "NAME")]
    pub device_name: Option<String>,
    /// What to call the peer here [default: the host of --address, or home]
    #[arg(long = "as", value_name = "PEER_NAME")]
    pub peer_name: Option<String>,
    /// Which attachments come from the peer
    #[arg(long, value_enum, value_name = "WHICH", default_value_t = PeerAttachments::All)]
    pub attachments: PeerAttachments,
    #[command(flatten, next_help_heading = "What the peer gets of this store")]
    pub selection: SelectionArgs,
}

/// `sync`.
#[derive(Clone, Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct SyncArgs {
    #[command(subcommand)]
    pub command: Option<SyncCommand>,
    /// Exchange changes only with this peer
    #[arg(value_name = "PEER")]
    pub peer: Option<String>,
    /// End only when all of these stores hold the same, however long that takes
    #[arg(long)]
    pub wait: bool,
}

/// `sync status`.
#[derive(Clone, Debug, Subcommand)]
pub enum SyncCommand {
    /// Show for each peer whether it is in step, and a digest of this store
    ///
    /// Stores that show the same have the same digest. All records are read for it.
    #[command(after_help = examples::SYNC_STATUS)]
    Status,
    /// Write the changes that a peer lacks into a file, for example on a USB stick
    ///
    /// For a peer that cannot be reached over the network. The file has the attachments too. It is encrypted so that only that peer can
    /// read it, and signed by this store. Until a file comes back, each new file contains everything since the last contact, so it does no
    /// harm if one is lost.
    #[command(after_help = examples::SYNC_EXPORT)]
    Export(SyncExportArgs),
    /// Take the changes of a file that a peer has written for this machine
    ///
    /// Nothing is stored before the signature of the whole file was checked. Taking a file twice changes nothing.
    #[command(after_help = examples::SYNC_IMPORT)]
    Import(SyncImportArgs),
}

/// `sync export`.
#[derive(Clone, Debug, Args)]
pub struct SyncExportArgs {
    /// New file; it must not exist
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Name of the peer, as `satchel peers list` shows it, or the id of its device
    #[arg(long = "for", value_name = "PEER")]
    pub peer: String,
    /// Write all changes, also those that the peer had at the last contact: for a peer whose data directory was set back
    #[arg(long)]
    pub full: bool,
}

/// `sync import`.
#[derive(Clone, Debug, Args)]
pub struct SyncImportArgs {
    /// File that `satchel sync export` has written on the other machine
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}
