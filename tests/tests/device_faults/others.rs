//! The calls of somebody else, which must go on while a device misbehaves.

use std::{
    net::Ipv4Addr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use satchel_proto::v1::{
    ListConversationsRequest, ListMessagesRequest, conversation_service_client::ConversationServiceClient,
};
use satchel_tests::test_device::TestDevice;
use tokio::{task::JoinHandle, time::timeout};
use tonic::transport::Channel;

use crate::{CONVERSATION, frames::RawConnection};

/// How long a call may take on a machine that is busy with the load. Without a limit of the load it takes for ever.
const SLOWEST_CALL: Duration = Duration::from_secs(5);
/// Time between two calls, so that they are no load themselves.
const PAUSE: Duration = Duration::from_millis(20);
/// Calls that are made after the stop.
const CALLS_AFTER: u32 = 10;
/// The address from which the device opens new connections: none of the loads comes from there.
const ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 99);

/// Calls that are made until they are stopped.
pub(crate) struct OtherCalls {
    stop: Arc<AtomicBool>,
    calls: JoinHandle<Result<()>>,
}

impl OtherCalls {
    /// Makes calls of a device, over its connection, over new ones, and over the socket.
    pub(crate) fn start(device: TestDevice, socket: &Channel) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let calls = tokio::spawn(call_until(device, socket.clone(), Arc::clone(&stop)));
        Self { stop, calls }
    }

    /// Stops the calls after some more of them. Each must have succeeded, and fast enough.
    pub(crate) async fn all_succeeded(self) -> Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        self.calls.await?
    }
}

async fn call_until(device: TestDevice, socket: Channel, stop: Arc<AtomicBool>) -> Result<()> {
    let (mut calls, mut left) = (0, CALLS_AFTER);
    while left > 0 {
        let began = Instant::now();
        let round = async {
            list(&device.channel).await.context("over the connection of the device")?;
            list(&socket).await.context("over the socket")?;
            let config = device.credentials.client_config()?;
            RawConnection::open(&device, config, ADDRESS, 0).await.context("a new connection")?;
            Ok::<_, anyhow::Error>(())
        };
        timeout(SLOWEST_CALL, round).await.with_context(|| {
            format!("call {calls} of another device takes longer than {SLOWEST_CALL:?}")
        })??;
        ensure!(began.elapsed() < SLOWEST_CALL);
        calls += 1;
        left -= u32::from(stop.load(Ordering::Relaxed));
        tokio::time::sleep(PAUSE).await;
    }
    Ok(())
}

/// Lists conversations, and reads a large page of messages.
async fn list(channel: &Channel) -> Result<()> {
    let mut client = ConversationServiceClient::new(channel.clone());
    let request = ListConversationsRequest { page_size: 20, ..Default::default() };
    let page = client.list_conversations(request).await?.into_inner();
    ensure!(page.conversations.len() == 1, "{page:?}");
    let request =
        ListMessagesRequest { conversation_id: CONVERSATION.to_owned(), page_size: 2, ..Default::default() };
    let page = client.list_messages(request).await?.into_inner();
    ensure!(page.messages.len() == 2);
    Ok(())
}
