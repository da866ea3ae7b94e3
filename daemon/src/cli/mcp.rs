//! `mcp`: serves an agent over the Model Context Protocol.

mod config_edit;
mod connection;
pub(super) mod install;
mod programs;

use std::sync::Arc;

use satchel_mcp::{Connection, ServeError};
use satchel_proto::{
    DEVICE_HEADER,
    v1::{Device, DeviceRole, GetCallerIdentityRequest},
};
use tokio::signal::unix::{SignalKind, signal};
use tonic::{Request, metadata::MetadataValue};

use self::connection::AgentConnection;
use super::{
    Context,
    args::McpArgs,
    client::{DaemonClient, DaemonLocation},
    error::CliError,
    exit::Exit,
};

/// Serves the agent until it closes its end, or the command is asked to stop.
///
/// # Errors
/// Fails if the device is not known, or the client does not speak the protocol.
pub(super) async fn run(
    context: &mut Context,
    client: &DaemonClient,
    args: &McpArgs,
) -> Result<Exit, CliError> {
    let device = check_device(client, device(&context.location, args)?).await?;
    let listen =
        |kind, name| signal(kind).map_err(|error| CliError::step(format!("cannot listen for {name}"), error));
    let mut interrupt = listen(SignalKind::interrupt(), "SIGINT")?;
    let mut terminate = listen(SignalKind::terminate(), "SIGTERM")?;
    let stop = async {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    };
    let connection = Arc::new(AgentConnection::new(client, &context.location));
    let served =
        satchel_mcp::serve_stdio(Arc::clone(&connection) as Arc<dyn Connection>, device.as_deref(), stop)
            .await;
    let closed = connection.close().await;
    match served {
        Ok(()) => closed.map(|()| Exit::Done),
        Err(error @ (ServeError::DeviceName(_) | ServeError::Handshake(_))) => {
            Err(CliError::Usage(error.to_string()))
        }
        Err(error) => Err(CliError::step("cannot serve the agent", error)),
    }
}

/// Returns the device as which the agent acts; `None` for a paired daemon, which knows this machine as a device.
fn device<'a>(location: &DaemonLocation, args: &'a McpArgs) -> Result<Option<&'a str>, CliError> {
    match (location, &args.device) {
        (DaemonLocation::Paired(_), None) => Ok(None),
        (DaemonLocation::Paired(_), Some(_)) => Err(CliError::Usage(
            "--as names a device of the daemon on this machine; with --server NAME the agent is the device that was paired".to_owned(),
        )),
        (_, Some(device)) => Ok(Some(device)),
        (_, None) => Err(CliError::Usage(
            "--as NAME is missing: the device as which the agent acts; `satchel devices token --as NAME --role reader --for 365d` creates one \
             that reads everything, and --role agent one that sees what is shared with agents and proposes memories"
                .to_owned(),
        )),
    }
}

/// Checks the device, so that the agent's program shows at the start what is wrong, and returns its id: its name may be given
/// to another device later. Returns nothing for a paired daemon, which knows the device by its certificate.
async fn check_device(client: &DaemonClient, device: Option<&str>) -> Result<Option<String>, CliError> {
    let mut request = Request::new(GetCallerIdentityRequest {});
    if let Some(device) = device {
        let value = MetadataValue::try_from(device)
            .map_err(|_| CliError::Usage(ServeError::DeviceName(device.to_owned()).to_string()))?;
        request.metadata_mut().insert(DEVICE_HEADER, value);
    }
    let identity = match (client.devices().get_caller_identity(request).await, device) {
        (Ok(identity), _) => identity.into_inner().device.unwrap_or_default(),
        (Err(status), Some(device)) if status.code() == tonic::Code::Unauthenticated => {
            return Err(CliError::Usage(format!(
                "there is no device {device:?}, or its token has expired; `satchel devices token --as {device} --role reader --for 365d` \
                 creates one, and `satchel devices list` lists them"
            )));
        }
        (Err(status), _) => return Err(status.into()),
    };
    if identity.policy.as_ref().is_some_and(|policy| policy.role() == DeviceRole::Owner) {
        return Err(owner_refused(&identity));
    }
    Ok(device.map(|_| identity.id))
}

/// The error for a device that an agent must not be.
fn owner_refused(device: &Device) -> CliError {
    CliError::Usage(format!(
        "the device {:?} has the role owner, with which an agent could read and change everything; give it another one with \
         `satchel devices update {} --role reader`",
        device.name, device.id
    ))
}
