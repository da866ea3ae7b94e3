//! The payloads of changes that were withheld when the changes came: this store or the peer may be given more by now, or has got them from
//! a third one.

use satchel_core::sync::PayloadRange;
use satchel_proto::v1;

use super::{Exchange, answered, blocking, next_message};
use crate::{
    grpc::wire::sync::{range_from_wire, range_to_wire},
    peers::{Peers, PeersError, lock, status::PayloadsExchanged},
};

/// Ranges of changes in one call.
const RANGES: usize = 10_000;
/// Ranges per page of a list.
const PAGE: i32 = 1_000;
/// Most pages that are read.
const MAX_PAGES: u32 = 10_000;

/// Which payloads are to be exchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PayloadsDue {
    fetch: bool,
    send: bool,
}

impl Exchange<'_> {
    /// Finds out which payloads are to be exchanged, at the beginning of an exchange: those of a store that lacks some, if the other one may have
    /// more of them than the last time. `theirs` is how many the peer lacks. What comes without its payload in this exchange does not count,
    /// as the peer has just withheld it.
    pub(super) async fn find_due_payloads(&mut self, theirs: u64) -> Result<(), PeersError> {
        if self.payloads.is_none() {
            let now = self.payload_states(theirs).await?;
            let last = lock(&self.peer.contact).payloads.clone();
            let due = |now: &(String, u64), last| now.1 > 0 && !now.0.is_empty() && *now != last;
            let (fetch, send) = (due(&now.fetched, last.fetched), due(&now.sent, last.sent));
            self.payloads = Some(PayloadsDue { fetch, send });
        }
        Ok(())
    }

    /// Exchanges the payloads that are due. Returns whether there were any; then both stores may have changed. Otherwise it is noted that there
    /// is nothing to exchange.
    pub(super) async fn exchange_payloads(&mut self, theirs: u64) -> Result<bool, PeersError> {
        let due = self.payloads.replace(PayloadsDue::default()).unwrap_or_default();
        if due.fetch {
            self.fetch_payloads().await?;
        }
        if due.send {
            self.send_payloads().await?;
        }
        if due != PayloadsDue::default() {
            return Ok(true);
        }
        let now = self.payload_states(theirs).await?;
        lock(&self.peer.contact).payloads = now;
        Ok(false)
    }

    async fn payload_states(&self, theirs: u64) -> Result<PayloadsExchanged, PeersError> {
        let fetched = lock(&self.peer.contact).payload_state.clone();
        let (peers, name) = (self.peers.clone(), self.peer.name());
        blocking(move || {
            let filter = peers.filter_of_outgoing(&name);
            let sent = peers.payload_state(&name, filter.as_ref())?;
            Ok(PayloadsExchanged { fetched: (fetched, peers.missing_payloads()?), sent: (sent, theirs) })
        })
        .await
    }

    async fn fetch_payloads(&mut self) -> Result<(), PeersError> {
        let peers = self.peers.clone();
        let missing = blocking(move || Ok(peers.0.sync.missing_payloads()?)).await?;
        for ranges in missing.chunks(RANGES) {
            let request =
                v1::DownloadPayloadsRequest { ranges: ranges.iter().map(range_to_wire).collect() };
            let mut stream = self.client.download_payloads(request).await?.into_inner();
            while let Some(message) = next_message(&mut stream).await? {
                self.receive(message.changes).await?;
            }
        }
        self.apply().await
    }

    async fn send_payloads(&mut self) -> Result<(), PeersError> {
        let (mut missing, mut page_token): (Vec<PayloadRange>, _) = (Vec::new(), String::new());
        for _ in 0..MAX_PAGES {
            let request = v1::ListMissingPayloadsRequest { page_size: PAGE, page_token };
            let answer = answered(self.client.list_missing_payloads(request)).await?;
            let malformed = |error| PeersError::Malformed(format!("a range that cannot be read: {error}"));
            for range in answer.ranges {
                missing.push(range_from_wire(range).map_err(malformed)?);
            }
            page_token = answer.next_page_token;
            if page_token.is_empty() {
                break;
            }
        }
        self.send(move |sync, filter, visit| sync.payloads(&missing, filter, visit)).await
    }
}

impl Peers {
    /// Returns the number of changes of which this store lacks the payloads. Blocks.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub(crate) fn missing_payloads(&self) -> Result<u64, PeersError> {
        let ranges = self.0.sync.missing_payloads()?;
        Ok(ranges.iter().map(|range| range.last.get() - range.first.get() + 1).sum())
    }
}
