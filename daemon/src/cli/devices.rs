//! `devices …`: the devices that may use the daemon over TLS.

pub(super) mod pair;
pub(super) mod policy;
pub(super) mod render;

use satchel_proto::v1::{
    CreateTokenRequest, CreateTokenResponse, Device, ListAuditEventsRequest, ListAuditEventsResponse,
    ListDevicesRequest, ListDevicesResponse, RevokeDeviceRequest, UpdateDeviceRequest,
};

use super::{
    Context,
    args::{Devices, Paging, TokenArgs},
    client::DaemonClient,
    error::CliError,
    exit::Exit,
    json::device as json,
    pagination::{self, ResultPage},
    text,
};

/// Runs one of the commands.
///
/// # Errors
/// Returns the error of the daemon, and fails for a name that fits no device or several.
pub(crate) async fn run(
    context: &mut Context,
    client: &DaemonClient,
    command: &Devices,
) -> Result<Exit, CliError> {
    match command {
        Devices::Pair(args) => return pair::run(context, client, args).await,
        Devices::List { all } => list(context, client, *all).await?,
        Devices::Show(device) => {
            let device = find(client, &device.device).await?;
            print(context, &device)?;
        }
        Devices::Rename { device, name } => {
            let device = find_active(context, client, &device.device).await?.id;
            change(context, client, UpdateDeviceRequest { device, name: name.clone(), policy: None }).await?;
        }
        Devices::Update { device, policy, clear } => {
            if policy.is_empty() && clear.is_empty() {
                return Err(CliError::Usage("name what to change, such as --role or --tag".to_owned()));
            }
            let device = find_active(context, client, &device.device).await?;
            let policy =
                policy::changed(device.policy.unwrap_or_default(), policy, clear, &context.calendar)?;
            let request =
                UpdateDeviceRequest { device: device.id, name: String::new(), policy: Some(policy) };
            change(context, client, request).await?;
        }
        Devices::Revoke { device, reason } => revoke(context, client, &device.device, reason).await?,
        Devices::Log { device, paging } => log(context, client, device.as_deref(), *paging).await?,
        Devices::Token(args) => create_token(context, client, args).await?,
    }
    Ok(Exit::Done)
}

async fn list(context: &mut Context, client: &DaemonClient, all: bool) -> Result<(), CliError> {
    let devices = devices(client, all).await?;
    if context.out.json {
        return context.out.json(&json::Devices { devices: devices.iter().map(json::Device::new).collect() });
    }
    if devices.is_empty() {
        context.out.note("no devices are paired; `satchel devices pair --as NAME` pairs one");
        return Ok(());
    }
    context.out.print(&render::table(&devices, &context.calendar).render(context.out.style))
}

async fn devices(client: &DaemonClient, include_revoked: bool) -> Result<Vec<Device>, CliError> {
    let devices = pagination::collect_rows(None, async |page_size, page_token| {
        let request = ListDevicesRequest { include_revoked, page_size, page_token };
        let ListDevicesResponse { devices, next_page_token, .. } =
            client.devices().list_devices(request).await?.into_inner();
        Ok(ResultPage { rows: devices, next: next_page_token })
    });
    Ok(devices.await?.rows)
}

/// Returns the device with this name, unless it was revoked.
///
/// # Errors
/// Returns the error of the daemon.
pub(super) async fn active_with_name(client: &DaemonClient, name: &str) -> Result<Option<Device>, CliError> {
    let name = name.trim().to_lowercase();
    Ok(devices(client, false).await?.into_iter().find(|device| device.name.to_lowercase() == name))
}

/// Returns the device with this id or name, or else the only one whose id or name begins this way. Devices that were
/// revoked are found if no other fits, as in the daemon.
async fn find(client: &DaemonClient, given: &str) -> Result<Device, CliError> {
    select(devices(client, true).await?, given)
}

fn select(devices: Vec<Device>, given: &str) -> Result<Device, CliError> {
    let wanted = given.trim().to_lowercase();
    let whole = |device: &Device| device.id.to_lowercase() == wanted || device.name.to_lowercase() == wanted;
    let begins = |device: &Device| {
        device.id.to_lowercase().starts_with(&wanted) || device.name.to_lowercase().starts_with(&wanted)
    };
    let missing = || CliError::NoSuchName { kind: "device", given: given.to_owned() };
    if wanted.is_empty() {
        return Err(missing());
    }
    for (complete, revoked) in [(true, false), (true, true), (false, false), (false, true)] {
        let fits = |device: &&Device| {
            device.revoked_at.is_some() == revoked && if complete { whole(device) } else { begins(device) }
        };
        let fitting: Vec<&Device> = devices.iter().filter(fits).collect();
        match fitting.as_slice() {
            [] => {}
            [device] => return Ok(Device::clone(device)),
            several => {
                let fitting = several.iter().map(|one| format!("{} ({})", one.name, one.id)).collect();
                return Err(CliError::Ambiguous { kind: "device", given: given.to_owned(), fitting });
            }
        }
    }
    Err(missing())
}

/// Does the same as [`find`], for a change: a device that was revoked cannot be changed.
async fn find_active(context: &Context, client: &DaemonClient, given: &str) -> Result<Device, CliError> {
    let device = find(client, given).await?;
    if device.revoked_at.is_none() {
        return Ok(device);
    }
    let when = context.calendar.minute(device.revoked_at.as_ref());
    Err(CliError::Declined(format!("the device {:?} was revoked on {when}, for good", device.name)))
}

fn print(context: &mut Context, device: &Device) -> Result<(), CliError> {
    if context.out.json {
        return context.out.json(&json::DeviceDocument { device: json::Device::new(device) });
    }
    context.out.print(&render::properties(device, &context.calendar).render(context.out.style))
}

async fn change(
    context: &mut Context,
    client: &DaemonClient,
    request: UpdateDeviceRequest,
) -> Result<(), CliError> {
    let answer = client.devices().update_device(request).await?.into_inner();
    print(context, &answer.device.unwrap_or_default())
}

async fn revoke(
    context: &mut Context,
    client: &DaemonClient,
    device: &str,
    reason: &str,
) -> Result<(), CliError> {
    let device = find_active(context, client, device).await?.id;
    let request = RevokeDeviceRequest { device, reason: reason.to_owned() };
    let device = client.devices().revoke_device(request).await?.into_inner().device.unwrap_or_default();
    if context.out.json {
        return print(context, &device);
    }
    context.out.print(&format!("{}: revoked\n", text::one_line(&device.name)))
}

async fn log(
    context: &mut Context,
    client: &DaemonClient,
    device: Option<&str>,
    paging: Paging,
) -> Result<(), CliError> {
    let device = device.unwrap_or_default();
    let listing = pagination::collect_rows(paging.max_rows(), async |page_size, page_token| {
        let request = ListAuditEventsRequest { device: device.to_owned(), page_size, page_token };
        let ListAuditEventsResponse { events, next_page_token, .. } =
            client.devices().list_audit_events(request).await?.into_inner();
        Ok(ResultPage { rows: events, next: next_page_token })
    });
    let listing = listing.await?;
    if context.out.json {
        return context.out.json(&json::Calls { calls: listing.rows.iter().map(json::Call::new).collect() });
    }
    if listing.rows.is_empty() {
        context.out.note("no calls of devices are logged");
        return Ok(());
    }
    context.out.print(&render::calls(&listing.rows, &context.calendar).render(context.out.style))?;
    context.note_remaining(listing.remaining);
    Ok(())
}

async fn create_token(
    context: &mut Context,
    client: &DaemonClient,
    args: &TokenArgs,
) -> Result<(), CliError> {
    let request = CreateTokenRequest {
        name: args.name.clone(),
        policy: Some(policy::new(&args.policy, &context.calendar)?),
        expire_time: Some(context.calendar.ahead("--for", &args.valid_for)?),
    };
    let answer = client.devices().create_token(request).await?.into_inner();
    let CreateTokenResponse { token, device, .. } = answer;
    let device = device.unwrap_or_default();
    if context.out.json {
        return context.out.json(&json::Token { token: &token, device: json::Device::new(&device) });
    }
    context.out.print(&format!("{}\n", text::one_line(&token)))?;
    let until = context.calendar.minute(device.expire_time.as_ref());
    context.out.note(&format!(
        "valid until {until}, over the network only with TLS; it is not shown again. `satchel devices revoke {}` revokes it",
        text::shell_quoted(&device.name)
    ));
    Ok(())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::cli::time;

    fn device(id: &str, name: &str, revoked: bool) -> Device {
        let revoked_at = if revoked { time::at("2026-03-11T10:00:00Z") } else { None };
        Device { id: id.to_owned(), name: name.to_owned(), revoked_at, ..Device::default() }
    }

    #[test]
    fn a_device_is_found_by_its_id_or_name_or_the_beginning_of_either() {
        let all = || {
            vec![
                device("AAAAA-1", "phone", true),
                device("BBBBB-1", "phone", false),
                device("BBBCC-1", "Phone of Ana", false),
                device("CCCCC-1", "laptop", true),
            ]
        };
        for (given, id) in
            [("phone", "BBBBB-1"), ("phone o", "BBBCC-1"), ("aaaaa", "AAAAA-1"), ("LAP", "CCCCC-1")]
        {
            assert_eq!(select(all(), given).unwrap().id, id, "{given}");
        }
        assert!(matches!(select(all(), "bbb"), Err(CliError::Ambiguous { .. })));
        for given in ["", " ", "tablet"] {
            let error = select(all(), given).unwrap_err();
            assert_eq!(error.reason(), "DEVICE_NOT_FOUND", "{given}");
        }
    }
}
