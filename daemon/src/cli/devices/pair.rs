//! `devices pair`: shows a code, and waits until a device has paired.

use std::time::Duration;

use qrcode::{EcLevel, QrCode, render::unicode::Dense1x2};
use satchel_proto::v1::{
    CancelPairingRequest, CreatePairingRequest, CreatePairingResponse, Device, GetPairingRequest, Pairing,
    PairingState,
};
use tokio::time::{Instant, sleep};

use super::policy;
use crate::cli::{
    Context,
    args::{DeviceRoleArg, PairDeviceArgs},
    client::DaemonClient,
    error::CliError,
    exit::Exit,
    json::device as json,
    labels,
    properties::Properties,
    style::Paint,
    text,
    time::span_to_wire,
};

/// Interval between two questions whether the device has paired.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Opens a window, shows its code, and waits until it closes. Ctrl-C closes it.
///
/// # Errors
/// Returns the error of the daemon, and fails if no device has paired.
pub(crate) async fn run(
    context: &mut Context,
    client: &DaemonClient,
    args: &PairDeviceArgs,
) -> Result<Exit, CliError> {
    if !client.is_daemon() {
        return Err(CliError::Declined(
            "no daemon is running that the device could connect to; start one with `satchel serve --listen ADDR:PORT`"
                .to_owned(),
        ));
    }
    let end = context.calendar.ahead("--for", &args.valid_for)?;
    let micros = context.calendar.micros_until(&end);
    let request = CreatePairingRequest {
        policy: Some(policy::new(&args.policy, &context.calendar)?),
        name: args.name.clone(),
        valid_for: Some(span_to_wire(micros)),
    };
    let opened = client.devices().create_pairing(request).await?.into_inner();
    show(context, &opened, args)?;
    let wait = args.wait || !(args.no_wait || context.out.json);
    let pairing = opened.pairing.unwrap_or_default();
    if wait {
        wait_or_cancel(context, client, &pairing, micros).await?;
    }
    Ok(Exit::Done)
}

fn show(
    context: &mut Context,
    opened: &CreatePairingResponse,
    args: &PairDeviceArgs,
) -> Result<(), CliError> {
    let CreatePairingResponse { pairing, code, uri, addresses, header: _ } = opened;
    let expire_time = pairing.as_ref().and_then(|pairing| pairing.expire_time.as_ref());
    if context.out.json {
        let id = pairing.as_ref().map_or("", |pairing| &pairing.id);
        let expires_at = crate::cli::json::timestamp(expire_time);
        return context.out.json(&json::Pairing { id, code, uri, addresses, expires_at });
    }
    // Only a terminal has a reader with a camera.
    if context.out.style.columns.is_some() {
        context.out.print(&qr_code(uri, context.out.style.color)?)?;
    }
    let mut properties = Properties::new();
    properties.add_painted("code", code, Paint::Strong);
    properties.add("addresses", &addresses.join(", "));
    properties.add("device", &args.name);
    properties
        .add("valid", &format!("for {}, until {}", args.valid_for, context.calendar.minute(expire_time)));
    context.out.print(&properties.render(context.out.style))?;
    let address = addresses.first().map_or("HOST:PORT", String::as_str);
    let peer = args.policy.role == Some(DeviceRoleArg::Peer);
    context.out.note(&format!(
        "enter it on the other machine with `satchel {} {} --address {}`",
        if peer { "peers add" } else { "pair" },
        text::one_line(code),
        text::one_line(address)
    ));
    Ok(())
}

/// Returns the link as a QR code, with two modules in each character. With colours it is black on white; without, light
/// modules are drawn, because most terminals are dark and scanners need light surroundings.
fn qr_code(uri: &str, color: bool) -> Result<String, CliError> {
    let code = QrCode::with_error_correction_level(uri, EcLevel::L)
        .map_err(|error| CliError::step("cannot make the QR code", error))?;
    let (dark, light) =
        if color { (Dense1x2::Dark, Dense1x2::Light) } else { (Dense1x2::Light, Dense1x2::Dark) };
    let image = code.render::<Dense1x2>().dark_color(dark).light_color(light).build();
    let (on, off) = if color { ("\x1b[30;107m", "\x1b[0m") } else { ("", "") };
    let mut lines = String::new();
    for line in image.lines() {
        lines.extend([on, line, off, "\n"]);
    }
    Ok(lines + "\n")
}

/// Waits until the window closes; closes it on Ctrl-C.
async fn wait_or_cancel(
    context: &mut Context,
    client: &DaemonClient,
    pairing: &Pairing,
    micros: i64,
) -> Result<(), CliError> {
    let paired = tokio::select! {
        paired = wait(context, client, pairing, micros) => paired,
        _ = tokio::signal::ctrl_c() => {
            let request = CancelPairingRequest { id: pairing.id.clone() };
            client.devices().cancel_pairing(request).await?;
            return Err(CliError::Cancelled);
        }
    };
    let device = paired?;
    let role = device.policy.as_ref().map_or(0, |policy| policy.role);
    let paired = format!("paired with {:?} ({}, {})", device.name, labels::device_role(role), device.id);
    let paired = text::one_line(&paired);
    if context.out.json {
        context.out.note(&paired);
        return Ok(());
    }
    let mark = context.out.style.paint(Paint::Good, "✓");
    context.out.print(&format!("{mark} {paired}\n"))
}

async fn wait(
    context: &Context,
    client: &DaemonClient,
    pairing: &Pairing,
    micros: i64,
) -> Result<Device, CliError> {
    let end = Instant::now() + Duration::from_micros(micros.unsigned_abs());
    let spinner = context.out.spinner("waiting for the device; Ctrl-C cancels");
    loop {
        let request = GetPairingRequest { id: pairing.id.clone() };
        let now = client.devices().get_pairing(request).await?.into_inner().pairing.unwrap_or_default();
        match now.state() {
            PairingState::Open => {}
            PairingState::Completed => {
                spinner.finish_and_clear();
                return Ok(now.device.unwrap_or_default());
            }
            PairingState::Closed | PairingState::Unspecified => {
                spinner.finish_and_clear();
                return Err(CliError::Declined(
                    "no device has paired: the time is over, five wrong codes were tried, or another pairing was begun"
                        .to_owned(),
                ));
            }
        }
        let left = end.saturating_duration_since(Instant::now()).as_secs();
        spinner.set_message(format!(
            "waiting for the device, {}:{:02} left; Ctrl-C cancels",
            left / 60,
            left % 60
        ));
        sleep(POLL_INTERVAL).await;
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_link_becomes_a_square_with_a_quiet_zone() {
        let uri = "satchel://pair?v=1&a=192.168.1.7:7443&f=AAAA&t=AAAA";
        let image = qr_code(uri, false).unwrap();
        let lines: Vec<&str> = image.trim_end_matches('\n').lines().collect();
        let width = lines[0].chars().count();
        assert!(lines.iter().all(|line| line.chars().count() == width), "{image}");
        assert_eq!(lines.len(), width.div_ceil(2));
        assert!(lines[0].chars().all(|module| module == '█'), "{image}");
        assert!(qr_code(uri, true).unwrap().lines().next().unwrap().starts_with("\u{1b}[30;107m    "));
    }
}
