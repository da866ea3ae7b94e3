//! `pair`: pairs this machine with a daemon on another one.

use std::{io::Read as _, path::Path, process::Command};

use satchel_core::data_dir;
use satchel_devices::{Credentials, DevicesError, PairingSecret};
use satchel_proto::v1::DeviceRole;
use satchel_server::connect::{Paired, PairingAttempt, pair};

use super::{
    Context,
    args::PairArgs,
    error::CliError,
    exit::Exit,
    json::device as json,
    servers::{check_address, describe},
    style::Paint,
    text,
};

/// How a daemon is called here if neither an option nor an address names it.
const DEFAULT_SERVER: &str = "home";
/// How this device is called if the system has no name for it.
const DEFAULT_DEVICE: &str = "device";
/// Longest name of a device, in characters.
const MAX_NAME_CHARS: usize = 64;
/// Longest name of a server, in bytes.
const MAX_SERVER_BYTES: usize = 64;
/// Maximum length of a code or link from standard input, in bytes.
const MAX_CODE_BYTES: u64 = 8 << 10;
/// Where Linux has the name of the machine.
const HOST_NAME_FILE: &str = "/proc/sys/kernel/hostname";

/// Pairs, and stores the credentials.
///
/// # Errors
/// The code is mistyped, refused, or of another daemon; no address answers; the credentials cannot be stored.
pub(super) async fn run(context: &mut Context, args: &PairArgs) -> Result<Exit, CliError> {
    let config = context.location.local_config("pair stores the key for a daemon on this machine")?;
    let dir = config.data_dir.as_path();
    data_dir::inspect(dir, config.allow_other_owner).map_err(CliError::DataDir)?;
    let secret =
        PairingSecret::parse(&read_code(&args.code)?).map_err(|error| CliError::Usage(error.to_string()))?;
    let addresses = addresses(args, &secret)?;
    let server = args.server_name.clone().unwrap_or_else(|| server_name(&args.addresses));
    check_free(dir, &server, &secret)?;
    let device_name = args.name.clone().unwrap_or_else(host_name);
    let attempt =
        PairingAttempt { secret: &secret, addresses, device_name: &device_name, server_name: &server };
    let failed = |source| CliError::Remote { server: server.clone(), source: Box::new(source) };
    let Paired { credentials, device } = pair(attempt).await.map_err(failed)?;
    if device.policy.as_ref().is_some_and(|policy| policy.role() == DeviceRole::Peer) {
        return Err(CliError::Declined(
            "this code was for a peer, and is used up; run `satchel devices pair --role peer` there again, and `satchel peers add CODE` here"
                .to_owned(),
        ));
    }
    credentials.save(dir).map_err(CliError::Credentials)?;
    let described = describe(&credentials).map_err(CliError::Credentials)?;
    if context.out.json {
        context.out.json(&json::Paired { server: &described, device: json::Device::new(&device) })?;
        return Ok(Exit::Done);
    }
    let mark = context.out.style.paint(Paint::Good, "✓");
    context.out.print(&format!("{mark} paired with {server:?}, as {}\n", text::one_line(&device.name)))?;
    context.out.note(&format!("now use it with: satchel --server {server} memories list"));
    Ok(Exit::Done)
}

/// Returns the code; `-` stands for standard input.
pub(super) fn read_code(code: &str) -> Result<String, CliError> {
    if code != "-" {
        return Ok(code.to_owned());
    }
    let mut text = String::new();
    let read = std::io::stdin().take(MAX_CODE_BYTES).read_to_string(&mut text);
    read.map_err(CliError::file("read", Path::new("standard input")))?;
    Ok(text)
}

/// Returns the addresses that were typed, and then those of the link.
fn addresses(args: &PairArgs, secret: &PairingSecret) -> Result<Vec<String>, CliError> {
    args.addresses.iter().try_for_each(|address| check_address(address))?;
    let mut addresses = args.addresses.clone();
    for address in &secret.addresses {
        if !addresses.contains(address) {
            addresses.push(address.clone());
        }
    }
    if addresses.is_empty() {
        return Err(CliError::Usage(
            "a code contains no address; add --address HOST:PORT, as `satchel devices pair` shows it, or use the link"
                .to_owned(),
        ));
    }
    Ok(addresses)
}

/// Refuses a name that stands for another daemon, before the code is used up. The same daemon may be paired with again.
fn check_free(dir: &Path, server: &str, secret: &PairingSecret) -> Result<(), CliError> {
    Credentials::check_name(server).map_err(CliError::Credentials)?;
    let known = match Credentials::load(dir, server) {
        Err(DevicesError::NoCredentials { .. }) => return Ok(()),
        known => known.map_err(CliError::Credentials)?,
    };
    if secret.fingerprint.matches(&known.fingerprint().map_err(CliError::Credentials)?) {
        return Ok(());
    }
    Err(CliError::Declined(format!(
        "{server:?} is another daemon already; choose another name with --as, or run `satchel servers remove {server}` first"
    )))
}

/// Returns a name for the daemon from the first address.
pub(super) fn server_name(addresses: &[String]) -> String {
    let host = addresses.first().and_then(|address| address.rsplit_once(':')).map(|(host, _)| host);
    let plain = |it: char| {
        if it.is_ascii_alphanumeric() || "-_.".contains(it) { it.to_ascii_lowercase() } else { '-' }
    };
    let name: String = host.unwrap_or_default().chars().map(plain).take(MAX_SERVER_BYTES).collect();
    let name = name.trim_matches(['-', '.']);
    if name.is_empty() { DEFAULT_SERVER.to_owned() } else { name.to_owned() }
}

/// Returns the name of this machine.
pub(super) fn host_name() -> String {
    // Other systems tell it through a program only.
    let asked = || Command::new("uname").arg("-n").output().ok().map(|output| output.stdout);
    let name = std::fs::read(HOST_NAME_FILE).ok().or_else(asked).unwrap_or_default();
    let name = String::from_utf8_lossy(&name);
    let shown = name.trim().chars().filter(|letter| !letter.is_control()).take(MAX_NAME_CHARS);
    let name: String = shown.collect();
    if name.is_empty() { DEFAULT_DEVICE.to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_called_after_its_address() {
        let name = |address: &str| server_name(&[address.to_owned()]);
        assert_eq!(name("Desk.example:7443"), "desk.example");
        assert_eq!(name("192.168.1.7:7443"), "192.168.1.7");
        assert_eq!(name("[fd00::7]:7443"), "fd00--7");
        assert_eq!(name("../x:1"), "x");
        assert_eq!(name("münchen:1"), "m-nchen");
        assert_eq!(server_name(&[]), "home");
        assert!(!host_name().is_empty());
    }
}
