//! `sync`: exchanges changes now, and shows how far the peers are.

use std::time::Duration;

use satchel_proto::v1::{GetSyncStatusRequest, Peer, PeerDirection, PeerState, SyncPeersRequest};

use super::{all, change_files, json, table};
use crate::cli::{
    Context,
    args::{SyncArgs, SyncCommand},
    client::DaemonClient,
    error::CliError,
    exit::Exit,
    properties::Properties,
    style::Paint,
    text,
};

/// How often to look whether all are in step.
const INTERVAL: Duration = Duration::from_millis(500);

/// Runs the command.
///
/// # Errors
/// Returns the error of the daemon.
pub(in crate::cli) async fn run(
    context: &mut Context,
    client: &DaemonClient,
    args: &SyncArgs,
) -> Result<Exit, CliError> {
    match &args.command {
        Some(SyncCommand::Status) => return status(context, client).await,
        Some(SyncCommand::Export(args)) => return change_files::export(context, client, args).await,
        Some(SyncCommand::Import(args)) => return change_files::import(context, client, args).await,
        None => {}
    }
    let name = args.peer.clone().unwrap_or_default();
    let spinner = context.out.spinner("exchanging changes");
    let outcome = exchange(context, client, &name, args.wait).await;
    spinner.finish_and_clear();
    let peers = outcome?;
    if context.out.json {
        context.out.json(&json::Peers { peers: peers.iter().map(json::Peer::new).collect() })?;
    } else if peers.is_empty() {
        context.out.note("there is no peer that this daemon connects to; `satchel peers list` lists all");
    } else {
        let table = table(&peers, &context.calendar);
        context.out.print(&table.render(context.out.style))?;
    }
    let failed = peers.iter().any(|peer| peer.state == i32::from(PeerState::Failed));
    Ok(if failed { Exit::Failed } else { Exit::Done })
}

/// Exchanges changes once, or until all are in step.
async fn exchange(
    context: &mut Context,
    client: &DaemonClient,
    name: &str,
    wait: bool,
) -> Result<Vec<Peer>, CliError> {
    let mut told = String::new();
    loop {
        let request = SyncPeersRequest { peer: name.to_owned() };
        let peers = match client.peers().sync_peers(request).await {
            // The other daemon connects to this one: there is nothing to begin here.
            Err(status) if wait && status.code() == tonic::Code::NotFound => Vec::new(),
            answer => answer?.into_inner().peers,
        };
        if !wait {
            return Ok(peers);
        }
        let waited_for = |peer: &Peer| {
            peer.state != i32::from(PeerState::Paused) && (name.is_empty() || peer.name == name)
        };
        let peers: Vec<Peer> = all(client).await?.into_iter().filter(waited_for).collect();
        if peers.is_empty() && !name.is_empty() {
            return Err(CliError::NoSuchName { kind: "peer", given: name.to_owned() });
        }
        if peers.iter().all(|peer| peer.in_step) {
            return Ok(peers);
        }
        let problem = peers.iter().find(|peer| !peer.last_error.is_empty() && !peer.in_step);
        if let Some(peer) = problem.filter(|peer| peer.last_error != told) {
            told.clone_from(&peer.last_error);
            let (name, error) = (text::one_line(&peer.name), text::one_line(&peer.last_error));
            context.out.note(&format!("{name}: {error}; trying again"));
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

async fn status(context: &mut Context, client: &DaemonClient) -> Result<Exit, CliError> {
    let spinner = context.out.spinner("reading the store");
    let status = client.peers().get_sync_status(GetSyncStatusRequest { digest: true }).await;
    spinner.finish_and_clear();
    let status = status?.into_inner();
    let peers = all(client).await?;
    if context.out.json {
        let conflicts = if status.conflicts > 0 { super::conflicts::all(client).await? } else { Vec::new() };
        context.out.json(&json::SyncStatus::new(&status, &peers, &conflicts))?;
        return Ok(Exit::Done);
    }
    if peers.is_empty() {
        context.out.note("there are no peers; `satchel peers add CODE` pairs with one");
    } else {
        let table = table(&peers, &context.calendar);
        context.out.print(&table.render(context.out.style))?;
        context.out.print("\n")?;
    }
    let mut properties = Properties::new();
    properties.add("digest", &status.digest);
    let paint = if status.conflicts > 0 { Paint::Warn } else { Paint::Good };
    properties.add_painted("conflicts", &status.conflicts.to_string(), paint);
    if status.pending_erasures > 0 {
        properties.add("pending erasures", &status.pending_erasures.to_string());
    }
    if status.missing_payloads > 0 {
        properties.add("withheld changes", &status.missing_payloads.to_string());
    }
    context.out.print(&properties.render(context.out.style))?;
    if status.conflicts > 0 {
        context.out.note("`satchel conflicts` lists the conflicts; an edit of the field settles each");
    }
    let incoming = i32::from(PeerDirection::Incoming);
    if !client.is_daemon() && peers.iter().any(|peer| peer.direction != incoming) {
        context.out.note("no daemon is running; `satchel sync` exchanges changes once");
    }
    Ok(Exit::Done)
}
