//! The connection to a paired daemon on another machine.

use std::path::PathBuf;

use satchel_core::clock::{Clock as _, SystemClock};
use satchel_devices::Credentials;
use satchel_server::connect::{RemoteError, connect_remote, renew};
use tonic::transport::Channel;

use crate::cli::{error::CliError, output::Output, text};

/// The daemon that `--server` names, and the data directory that has the key for it.
#[derive(Clone, Debug)]
pub(crate) struct PairedServer {
    pub(crate) name: String,
    pub(crate) data_dir: PathBuf,
}

/// Connects with the stored credentials, and renews the certificate if it is due.
///
/// # Errors
/// There are no credentials, they are damaged, or the daemon cannot be reached or does not accept them.
pub(super) async fn connect(server: &PairedServer, out: &mut Output) -> Result<Channel, CliError> {
    let PairedServer { name, data_dir } = server;
    let credentials = Credentials::load(data_dir, name).map_err(CliError::Credentials)?;
    let failed = |source| CliError::Remote { server: name.clone(), source: Box::new(source) };
    let channel = connect_remote(&credentials).await.map_err(failed)?;
    if let Err(error) = renew_if_due(server, &credentials, &channel).await {
        let reason = text::one_line(&satchel_source::chain(&error));
        out.note(&format!("the certificate for {name:?} was not renewed, which is tried again: {reason}"));
    }
    Ok(channel)
}

async fn renew_if_due(
    server: &PairedServer,
    credentials: &Credentials,
    channel: &Channel,
) -> Result<(), RemoteError> {
    if !credentials.renewal_due(SystemClock.now_micros())? {
        return Ok(());
    }
    renew(channel.clone(), credentials).await?.save(&server.data_dir)?;
    tracing::debug!(server = server.name, "the certificate of this device was renewed");
    Ok(())
}
