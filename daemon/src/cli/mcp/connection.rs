//! The connection of an agent's server, which lives longer than the daemon that it found at its start.

use std::pin::Pin;

use satchel_mcp::{Connection, GrpcServices, services_over};
use satchel_server::connect::is_listening;
use tokio::sync::Mutex;
use tonic::transport::Channel;

use crate::cli::{
    client::{DaemonClient, DaemonLocation},
    error::CliError,
    output::Output,
};

/// Connects again when the daemon of the data directory has ended. If no other one runs then, this process becomes the daemon,
/// as at its start.
pub(super) struct AgentConnection {
    location: DaemonLocation,
    /// The channel at the start. It reconnects by itself to whichever daemon listens on the same socket.
    channel: Channel,
    /// Whether the daemon at the start is inside this process, and so lives as long.
    in_process: bool,
    replacement: Mutex<Option<DaemonClient>>,
}

impl AgentConnection {
    pub(super) fn new(client: &DaemonClient, location: &DaemonLocation) -> Self {
        Self {
            location: location.clone(),
            channel: client.channel().clone(),
            in_process: !client.is_daemon(),
            replacement: Mutex::new(None),
        }
    }

    async fn current_channel(&self) -> Channel {
        let DaemonLocation::DataDir(config) = &self.location else {
            return self.channel.clone();
        };
        // One request after the other: only one of them opens the store.
        let mut replacement = self.replacement.lock().await;
        let in_process = self.in_process || replacement.as_ref().is_some_and(|client| !client.is_daemon());
        if !in_process && !is_listening(&config.data_dir).await {
            match DaemonClient::open(&self.location, &mut Output::silent()).await {
                Ok(client) => *replacement = Some(client),
                // The request fails then, and the next one tries again.
                Err(error) => {
                    tracing::warn!(error = satchel_source::chain(&error), "there is no daemon any more");
                }
            }
        }
        replacement.as_ref().map_or(&self.channel, DaemonClient::channel).clone()
    }

    /// Closes the daemon that this process has become, after the operations of others that use it.
    ///
    /// # Errors
    /// Fails if that daemon could not close its store.
    pub(super) async fn close(&self) -> Result<(), CliError> {
        let Some(client) = self.replacement.lock().await.take() else {
            return Ok(());
        };
        let mut out = Output::silent();
        tokio::select! {
            () = client.wait_for_other_operations(&mut out) => {}
            _ = tokio::signal::ctrl_c() => {}
        }
        client.close(&self.location).await
    }
}

impl Connection for AgentConnection {
    fn services(&self) -> Pin<Box<dyn Future<Output = GrpcServices> + Send + '_>> {
        Box::pin(async { services_over(self.current_channel().await) })
    }
}
