//! The payloads that one of the stores has given to the other one and does not give it any more.

use satchel_core::sync::PayloadRange;
use satchel_proto::v1;

use super::{Exchange, blocking, next_message};
use crate::{
    grpc::wire::sync::{range_from_wire, range_to_wire},
    peers::{MAX_WITHHELD_RANGES, PeersError, SelectionFilter, WITHHELD_RANGES, lock},
};

impl Exchange<'_> {
    /// Lets each of the stores take out what the other one has taken back, if one of them may withhold more than the last time.
    pub(super) async fn exchange_withheld(&mut self) -> Result<(), PeersError> {
        // Those of before the exchange: what changes meanwhile is exchanged the next time.
        let theirs = lock(&self.peer.contact).withheld_state.clone();
        let (peers, name, filter) = (self.peers.clone(), self.peer.name(), self.peer.filter());
        let ours = blocking(move || Ok(peers.part_state(&name, filter.as_ref())?.withheld)).await?;
        let last = lock(&self.peer.contact).withheld.clone();
        if !theirs.is_empty() && theirs != last.theirs && self.take_out_withheld().await? {
            lock(&self.peer.contact).withheld.theirs = theirs;
        }
        if !ours.is_empty() && ours != last.ours && self.send_withheld().await? {
            lock(&self.peer.contact).withheld.ours = ours;
        }
        Ok(())
    }

    /// Returns whether that need not be repeated.
    async fn take_out_withheld(&mut self) -> Result<bool, PeersError> {
        let mut withheld: Vec<PayloadRange> = Vec::new();
        let request = v1::DownloadWithheldRangesRequest {};
        let mut stream = self.client.download_withheld_ranges(request).await?.into_inner();
        while let Some(message) = next_message(&mut stream).await? {
            let malformed = |what: &str| PeersError::Malformed(what.to_owned());
            for range in message.ranges {
                let range = range_from_wire(range).map_err(|_| malformed("a range that is none"))?;
                if withheld.last().is_some_and(|last| !last.is_before(&range)) {
                    return Err(malformed("ranges of changes that are in no order"));
                }
                withheld.push(range);
            }
            if withheld.len() > MAX_WITHHELD_RANGES {
                return Err(malformed("more ranges of changes than it may"));
            }
        }
        let (peers, name) = (self.peers.clone(), self.peer.name());
        Ok(!blocking(move || peers.take_out(&name, &withheld)).await?.again)
    }

    /// Returns whether that need not be repeated.
    async fn send_withheld(&mut self) -> Result<bool, PeersError> {
        let (peers, filter) = (self.peers.clone(), self.peer.filter());
        let withheld = blocking(move || match SelectionFilter::of(filter.as_ref()) {
            Some(filter) => Ok(peers.0.sync.withheld_payloads(filter)?),
            None => Ok(Vec::new()),
        });
        let withheld = withheld.await?;
        self.check_wanted()?;
        let messages: Vec<v1::UploadWithheldRangesRequest> = withheld
            .chunks(WITHHELD_RANGES)
            .take(MAX_WITHHELD_RANGES / WITHHELD_RANGES)
            .map(|some| v1::UploadWithheldRangesRequest { ranges: some.iter().map(range_to_wire).collect() })
            .collect();
        let answer = self.client.upload_withheld_ranges(tokio_stream::iter(messages)).await?;
        Ok(!answer.into_inner().incomplete)
    }
}
