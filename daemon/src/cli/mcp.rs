//! `mcp`: serves an agent over the Model Context Protocol.

use satchel_mcp::ServeError;
use satchel_proto::{DEVICE_HEADER, v1::GetCallerIdentityRequest};
use tokio::signal::unix::{SignalKind, signal};
use tonic::{Request, metadata::MetadataValue};

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
    let device = device(&context.location, args)?;
    if let Some(device) = device {
        check_device(client, device).await?;
    }
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
    match satchel_mcp::serve_stdio(client.channel().clone(), device, stop).await {
        Ok(()) => Ok(Exit::Done),
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

/// Checks that the device exists and is not revoked, so that the agent's program shows it at the start.
async fn check_device(client: &DaemonClient, device: &str) -> Result<(), CliError> {
    let value = MetadataValue::try_from(device)
        .map_err(|_| CliError::Usage(ServeError::DeviceName(device.to_owned()).to_string()))?;
    let mut request = Request::new(GetCallerIdentityRequest {});
    request.metadata_mut().insert(DEVICE_HEADER, value);
    match client.devices().get_caller_identity(request).await {
        Ok(_) => Ok(()),
        Err(status) if status.code() == tonic::Code::Unauthenticated => Err(CliError::Usage(format!(
            "there is no device {device:?}, or its token has expired; `satchel devices token --as {device} --role reader --for 365d` creates one, and \
             `satchel devices list` lists them"
        ))),
        Err(status) => Err(status.into()),
    }
}
