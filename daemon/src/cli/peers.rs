//! `peers …`: the daemons with which this one exchanges changes.

mod change_files;
mod conflicts;
mod sync;

use satchel_proto::v1::{
    self as v1, AddPeerRequest, DeviceSelection, ListPeersRequest, ListPeersResponse, Peer, PeerState,
    RemovePeerRequest, UpdatePeerRequest,
};

use super::{
    Context,
    args::{AddPeerArgs, PeerAttachments, Peers, SelectionArgs},
    client::DaemonClient,
    devices::{policy, render::add_selection},
    error::CliError,
    exit::Exit,
    json::peer as json,
    labels,
    pagination::{self, ResultPage},
    pairing::{self, host_name, server_name},
    properties::Properties,
    servers::check_address,
    style::Paint,
    table::{Cell, Column, Table},
    text,
    time::Calendar,
};

pub(super) use self::{conflicts::run as conflicts, sync::run as sync};

/// Runs one of the commands.
///
/// # Errors
/// Returns the error of the daemon, and fails for a name that fits no peer.
pub(super) async fn run(
    context: &mut Context,
    client: &DaemonClient,
    command: &Peers,
) -> Result<Exit, CliError> {
    match command {
        Peers::Add(args) => add(context, client, args).await?,
        Peers::List => list(context, client).await?,
        Peers::Show(peer) => {
            let found = find(client, &peer.name).await?;
            print(context, &found)?;
        }
        Peers::Pause(peer) => pause(context, client, &peer.name, true).await?,
        Peers::Resume(peer) => pause(context, client, &peer.name, false).await?,
        Peers::SetAddress { peer, addresses } => {
            addresses.iter().try_for_each(|address| check_address(address))?;
            let (peer, addresses) = (peer.name.clone(), addresses.clone());
            let request = UpdatePeerRequest { peer, addresses, ..UpdatePeerRequest::default() };
            update(context, client, request).await?;
        }
        Peers::SetAttachments { peer, which } => {
            let (peer, attachments) = (peer.name.clone(), attachments_to_wire(*which).into());
            let request = UpdatePeerRequest { peer, attachments, ..UpdatePeerRequest::default() };
            update(context, client, request).await?;
        }
        Peers::Restrict { peer, selection, everything } => {
            if selection.is_empty() != *everything {
                return Err(CliError::Usage(
                    "name what the peer gets, such as --tag or --platform, or give it --everything"
                        .to_owned(),
                ));
            }
            restrict(context, client, &peer.name, selection).await?;
        }
        Peers::Remove(peer) => remove(context, client, &peer.name).await?,
    }
    Ok(Exit::Done)
}

fn attachments_to_wire(which: PeerAttachments) -> v1::PeerAttachments {
    match which {
        PeerAttachments::All => v1::PeerAttachments::All,
        PeerAttachments::OnDemand => v1::PeerAttachments::OnDemand,
    }
}

async fn add(context: &mut Context, client: &DaemonClient, args: &AddPeerArgs) -> Result<(), CliError> {
    let AddPeerArgs { code, addresses, device_name, peer_name, attachments, selection } = args;
    addresses.iter().try_for_each(|address| check_address(address))?;
    let request = AddPeerRequest {
        code: pairing::read_code(code)?,
        addresses: addresses.clone(),
        name: peer_name.clone().unwrap_or_else(|| server_name(addresses)),
        device_name: device_name.clone().unwrap_or_else(host_name),
        attachments: attachments_to_wire(*attachments).into(),
        selection: Some(policy::selection(selection, &context.calendar)?),
    };
    let peer = client.peers().add_peer(request).await?.into_inner().peer.unwrap_or_default();
    if context.out.json {
        return context.out.json(&json::PeerDocument { peer: json::Peer::new(&peer) });
    }
    let mark = context.out.style.paint(Paint::Good, "✓");
    context.out.print(&format!("{mark} paired with the peer {:?}\n", text::one_line(&peer.name)))?;
    context.out.note(if client.is_daemon() {
        "both stores come in step now; `satchel sync status` shows how far they are"
    } else {
        "no daemon is running; `satchel serve` keeps both stores in step, `satchel sync` exchanges changes once"
    });
    Ok(())
}

async fn list(context: &mut Context, client: &DaemonClient) -> Result<(), CliError> {
    let peers = all(client).await?;
    if context.out.json {
        return context.out.json(&json::Peers { peers: peers.iter().map(json::Peer::new).collect() });
    }
    if peers.is_empty() {
        context.out.note(
            "there are no peers; `satchel devices pair --role peer` on one machine and `satchel peers add CODE` on the other pair two",
        );
        return Ok(());
    }
    let table = table(&peers, &context.calendar);
    context.out.print(&table.render(context.out.style))
}

/// Returns all peers.
async fn all(client: &DaemonClient) -> Result<Vec<Peer>, CliError> {
    let peers = pagination::collect_rows(None, async |page_size, page_token| {
        let request = ListPeersRequest { page_size, page_token };
        let ListPeersResponse { peers, next_page_token, .. } =
            client.peers().list_peers(request).await?.into_inner();
        Ok(ResultPage { rows: peers, next: next_page_token })
    });
    Ok(peers.await?.rows)
}

async fn find(client: &DaemonClient, given: &str) -> Result<Peer, CliError> {
    let found = all(client).await?.into_iter().find(|peer| peer.name == given || peer.device_id == given);
    found.ok_or_else(|| CliError::NoSuchName { kind: "peer", given: given.to_owned() })
}

async fn pause(
    context: &mut Context,
    client: &DaemonClient,
    peer: &str,
    paused: bool,
) -> Result<(), CliError> {
    let request =
        UpdatePeerRequest { peer: peer.to_owned(), paused: Some(paused), ..UpdatePeerRequest::default() };
    update(context, client, request).await
}

/// Sets what a peer gets, and says if the same machine is a peer under another name as well.
async fn restrict(
    context: &mut Context,
    client: &DaemonClient,
    name: &str,
    selection: &SelectionArgs,
) -> Result<(), CliError> {
    let selection = Some(policy::selection(selection, &context.calendar)?);
    let request = UpdatePeerRequest { peer: name.to_owned(), selection, ..UpdatePeerRequest::default() };
    let peer = client.peers().update_peer(request).await?.into_inner().peer.unwrap_or_default();
    print(context, &peer)?;
    let is_other = |other: &Peer| {
        !peer.origin.is_empty() && other.origin == peer.origin && other.device_id != peer.device_id
    };
    for other in all(client).await?.into_iter().filter(is_other) {
        let (name, id) = (text::one_line(&other.name), text::one_line(&other.device_id));
        context.out.note(&format!(
            "this machine is also the {} peer {name:?}, which has a restriction of its own: `satchel peers restrict {id} …`",
            labels::peer_direction(other.direction),
        ));
    }
    Ok(())
}

async fn update(
    context: &mut Context,
    client: &DaemonClient,
    request: UpdatePeerRequest,
) -> Result<(), CliError> {
    let peer = client.peers().update_peer(request).await?.into_inner().peer.unwrap_or_default();
    print(context, &peer)
}

async fn remove(context: &mut Context, client: &DaemonClient, name: &str) -> Result<(), CliError> {
    let peer = find(client, name).await?;
    // The key of one that cannot be used may not be readable.
    let id = if peer.device_id.is_empty() { &peer.name } else { &peer.device_id };
    client.peers().remove_peer(RemovePeerRequest { peer: id.clone() }).await?;
    if context.out.json {
        return context.out.json(&json::RemovedPeer { removed: &peer.name });
    }
    context.out.print(&format!("{}: removed\n", text::one_line(&peer.name)))?;
    context.out.note("what it has of this store, it keeps");
    if peer.direction == i32::from(v1::PeerDirection::Outgoing) {
        context.out.note("that daemon lists this machine until `satchel peers remove` removes it there");
    }
    Ok(())
}

fn print(context: &mut Context, peer: &Peer) -> Result<(), CliError> {
    if context.out.json {
        return context.out.json(&json::PeerDocument { peer: json::Peer::new(peer) });
    }
    let properties = properties(peer, &context.calendar);
    context.out.print(&properties.render(context.out.style))
}

/// Returns in words whether a peer is in step, and how that is painted.
fn progress(peer: &Peer) -> (String, Paint) {
    let state = PeerState::try_from(peer.state).unwrap_or_default();
    match state {
        PeerState::Paused => ("paused".to_owned(), Paint::Warn),
        PeerState::Failed => ("failed".to_owned(), Paint::Bad),
        PeerState::Waiting => ("waiting".to_owned(), Paint::Dim),
        _ if peer.in_step => ("in step".to_owned(), Paint::Good),
        _ => {
            let mut parts = Vec::new();
            if peer.behind > 0 {
                parts.push(format!("{} to send", peer.behind));
            }
            if peer.ahead > 0 {
                parts.push(format!("{} to fetch", peer.ahead));
            }
            (if parts.is_empty() { "syncing".to_owned() } else { parts.join(", ") }, Paint::Warn)
        }
    }
}

/// Returns the table of `peers list` and `sync`.
fn table(peers: &[Peer], calendar: &Calendar) -> Table {
    let mut table = Table::new([
        Column::new("name").shrinks_to(12),
        Column::new("direction").optional(2),
        Column::new("state"),
        Column::new("last contact"),
        Column::new("address").shrinks_to(15).optional(3),
        Column::new("problem").shrinks_to(20),
    ]);
    for peer in peers {
        let (state, paint) = progress(peer);
        table.row([
            Cell::painted(&peer.name, Paint::Strong),
            Cell::new(&labels::peer_direction(peer.direction)),
            Cell::painted(&state, paint),
            Cell::new(&calendar.short(peer.last_contact_at.as_ref())),
            Cell::new(&peer.addresses.join(", ")),
            Cell::painted(&peer.last_error, Paint::Bad),
        ]);
    }
    table
}

fn properties(peer: &Peer, calendar: &Calendar) -> Properties {
    let mut properties = Properties::new();
    properties.add_painted("name", &peer.name, Paint::Strong);
    let (state, paint) = progress(peer);
    properties.add_painted("state", &state, paint);
    properties.add("direction", &labels::peer_direction(peer.direction));
    properties.add("addresses", &peer.addresses.join(", "));
    properties.add("to send", &peer.behind.to_string());
    properties.add("to fetch", &peer.ahead.to_string());
    let contact = calendar.minute(peer.last_contact_at.as_ref());
    let never = "never";
    properties.add("last contact", if contact.is_empty() { never } else { &contact });
    properties.add("received", &format!("{} changes", peer.received_changes));
    properties.add("sent", &format!("{} changes", peer.sent_changes));
    properties.add("attachments", &labels::peer_attachments(peer.attachments));
    let is_part = peer.selection.as_ref().is_some_and(|selection| *selection != DeviceSelection::default());
    properties.add("gets", if is_part { "a part" } else { "everything" });
    add_selection(&mut properties, peer.selection.as_ref(), calendar);
    properties.add("fingerprint", &peer.fingerprint);
    properties.add("device", &peer.device_id);
    properties.add("series", &peer.origin);
    properties.add_painted("problem", &peer.last_error, Paint::Bad);
    properties
}
