//! The payloads of changes that were withheld when the changes came: this store or the peer may be given more by now, or has got them from
//! a third one.

use satchel_core::sync::PayloadRange;
use satchel_proto::v1;

use super::{Exchange, Moved, answered, blocking, next_message};
use crate::{
    grpc::wire::sync::{range_from_wire, range_to_wire},
    peers::{PeersError, lock, status::PayloadStates},
};

/// Ranges of changes in one call.
const RANGES: usize = 10_000;
/// Ranges per page of a list.
const PAGE: usize = 1_000;
/// Most ranges that are read.
const MAX_RANGES: usize = 1_000_000;

impl Exchange<'_> {
    /// Exchanges payloads, if one of the two stores lacks some and the other one may have more of them than the last time. `theirs` is what the
    /// peer says about those that it lacks. Returns whether payloads were exchanged; then both stores may have changed.
    pub(super) async fn exchange_payloads(&mut self, theirs: String) -> Result<bool, PeersError> {
        // Those of before the exchange: what changes meanwhile is exchanged the next time.
        let now = self.payload_states(theirs).await?;
        let last = lock(&self.peer.contact).payloads.clone();
        let due = |(has, lacks): &(String, String)| !has.is_empty() && !lacks.is_empty();
        let (fetches, sends) =
            (due(&now.fetched) && now.fetched != last.fetched, due(&now.sent) && now.sent != last.sent);
        if fetches {
            let fetched = self.fetch_payloads().await?;
            self.moved.add(fetched);
        }
        if sends {
            let sent = self.send_payloads().await?;
            self.moved.add(sent);
        }
        lock(&self.peer.contact).payloads = now;
        Ok(fetches || sends)
    }

    async fn payload_states(&self, theirs: String) -> Result<PayloadStates, PeersError> {
        let has = lock(&self.peer.contact).payload_state.clone();
        let (peers, name, filter) = (self.peers.clone(), self.peer.name(), self.peer.filter());
        blocking(move || {
            let fetched = (has, peers.missing_state(&name)?);
            Ok(PayloadStates { fetched, sent: (peers.part_state(&name, filter.as_ref())?.payloads, theirs) })
        })
        .await
    }

    async fn fetch_payloads(&mut self) -> Result<Moved, PeersError> {
        let peers = self.peers.clone();
        let missing = blocking(move || Ok(peers.0.sync.missing_payloads()?)).await?;
        let received = self.receive_payloads(&missing).await;
        // What has come is applied in any case.
        let applied = self.apply().await?;
        received.map(|moved| moved.and(applied))
    }

    async fn receive_payloads(&mut self, missing: &[PayloadRange]) -> Result<Moved, PeersError> {
        let mut moved = Moved::default();
        for ranges in missing.chunks(RANGES) {
            let request = v1::DownloadPayloadsRequest { ranges: ranges.iter().map(range_to_wire).collect() };
            let mut stream = self.client.download_payloads(request).await?.into_inner();
            while let Some(message) = next_message(&mut stream).await? {
                moved.add(self.receive(message.changes).await?);
            }
        }
        Ok(moved)
    }

    async fn send_payloads(&mut self) -> Result<Moved, PeersError> {
        let malformed = |what: &str| PeersError::Malformed(what.to_owned());
        let (mut missing, mut page_token): (Vec<PayloadRange>, _) = (Vec::new(), String::new());
        loop {
            let request = v1::ListMissingPayloadsRequest {
                page_size: i32::try_from(PAGE).unwrap_or(i32::MAX),
                page_token,
            };
            let answer = answered(self.client.list_missing_payloads(request)).await?;
            if answer.ranges.len() > PAGE {
                return Err(malformed("more ranges of changes than it may"));
            }
            for range in answer.ranges {
                let range = range_from_wire(range).map_err(|_| malformed("a range that is none"))?;
                // The list may grow from page to page.
                if missing.last().is_none_or(|last| last.is_before(&range)) {
                    missing.push(range);
                }
            }
            page_token = answer.next_page_token;
            if page_token.is_empty() || missing.len() > MAX_RANGES {
                break;
            }
        }
        self.send(move |sync, filter, wanted, visit| sync.payloads(&missing, filter, wanted, visit)).await
    }
}
