//! `servers …`: the daemons that this machine is paired with.

use std::path::Path;

use jiff::Timestamp;
use satchel_core::data_dir;
use satchel_devices::{Credentials, DevicesError};

use super::{
    Context,
    args::Servers,
    error::CliError,
    exit::Exit,
    json::device as json,
    properties::Properties,
    style::Paint,
    table::{Cell, Column, Table},
    text,
};

/// Runs one of the commands. They read and write the files of credentials; no daemon is asked.
///
/// # Errors
/// There are no credentials of this name, or their file cannot be read or written.
pub(super) fn run(context: &mut Context, command: &Servers) -> Result<Exit, CliError> {
    let config = context.location.local_config("the keys for paired daemons are on this machine")?;
    let dir = config.data_dir.as_path();
    data_dir::inspect(dir, config.allow_other_owner).map_err(CliError::DataDir)?;
    match command {
        Servers::List => list(context, dir)?,
        Servers::Show(server) => show(context, &load(dir, &server.name)?)?,
        Servers::SetAddress { server, addresses } => {
            addresses.iter().try_for_each(|address| check_address(address))?;
            let mut credentials = load(dir, &server.name)?;
            credentials.addresses.clone_from(addresses);
            credentials.save(dir).map_err(CliError::Credentials)?;
            show(context, &credentials)?;
        }
        Servers::Remove(server) => remove(context, dir, &server.name)?,
    }
    Ok(Exit::Done)
}

fn load(dir: &Path, name: &str) -> Result<Credentials, CliError> {
    Credentials::load(dir, name).map_err(CliError::Credentials)
}

/// Checks that an address has the form `host:port`.
///
/// # Errors
/// It has not.
pub(super) fn check_address(address: &str) -> Result<(), CliError> {
    let parts = address.rsplit_once(':').filter(|(host, port)| {
        // Without brackets, the last part of an IPv6 address would be taken for a port.
        let bare = !host.contains(':') || (host.starts_with('[') && host.ends_with(']'));
        let plain = !host.chars().any(|it| it.is_whitespace() || it.is_control() || "/@".contains(it));
        !host.is_empty() && bare && plain && port.parse::<u16>().is_ok_and(|port| port != 0)
    });
    parts.map(drop).ok_or_else(|| {
        CliError::Usage(format!(
            "the address {address:?} is not of the form HOST:PORT; use 192.168.1.7:7443, [fd00::7]:7443 or desk.example:7443"
        ))
    })
}

fn list(context: &mut Context, dir: &Path) -> Result<(), CliError> {
    let names = Credentials::list(dir).map_err(CliError::Credentials)?;
    let servers: Vec<json::Server> = names.iter().map(|name| listed(dir, name)).collect();
    if context.out.json {
        return context.out.json(&json::Servers { servers: &servers });
    }
    if servers.is_empty() {
        context.out.note("no daemons are paired; `satchel pair CODE` pairs with one");
        return Ok(());
    }
    let mut table = Table::new([
        Column::new("name"),
        Column::new("addresses").shrinks_to(20),
        Column::new("device").shrinks_to(11).optional(2),
        Column::new("certificate until").optional(1),
        Column::new("problem").shrinks_to(20),
    ]);
    for server in &servers {
        table.row([
            Cell::painted(&server.name, Paint::Strong),
            Cell::new(&server.addresses.join(", ")),
            Cell::painted(server.device_id.as_deref().unwrap_or_default(), Paint::Id),
            Cell::new(server.expires_at.as_deref().unwrap_or_default()),
            Cell::painted(server.problem.as_deref().unwrap_or_default(), Paint::Bad),
        ]);
    }
    context.out.print(&table.render(context.out.style))
}

/// Returns a row of the list; credentials that cannot be read do not hide the others.
fn listed(dir: &Path, name: &str) -> json::Server {
    let server = Credentials::load(dir, name).and_then(|credentials| describe(&credentials));
    server.unwrap_or_else(|error| json::Server {
        name: name.to_owned(),
        problem: Some(error.to_string()),
        ..json::Server::default()
    })
}

/// Returns what is shown of credentials: never the key.
///
/// # Errors
/// A certificate or the key cannot be read.
pub(super) fn describe(credentials: &Credentials) -> Result<json::Server, DevicesError> {
    let expires_at = Timestamp::from_microsecond(credentials.expires_at()?).ok();
    Ok(json::Server {
        name: credentials.name.clone(),
        addresses: credentials.addresses.clone(),
        fingerprint: Some(credentials.fingerprint()?.to_string()),
        device_id: Some(credentials.device_id()?.to_string()),
        expires_at: expires_at.map(|time| time.to_string()),
        problem: None,
    })
}

fn show(context: &mut Context, credentials: &Credentials) -> Result<(), CliError> {
    let server = describe(credentials).map_err(CliError::Credentials)?;
    if context.out.json {
        return context.out.json(&server);
    }
    let mut properties = Properties::new();
    properties.add_painted("name", &server.name, Paint::Strong);
    properties.add("addresses", &server.addresses.join(", "));
    properties.add_optional("fingerprint", server.fingerprint.as_deref());
    properties.add_optional("device", server.device_id.as_deref());
    properties.add_optional("certificate until", server.expires_at.as_deref());
    context.out.print(&properties.render(context.out.style))
}

fn remove(context: &mut Context, dir: &Path, name: &str) -> Result<(), CliError> {
    Credentials::remove(dir, name).map_err(CliError::Credentials)?;
    if context.out.json {
        return context.out.json(&json::RemovedServer { removed: name });
    }
    context.out.print(&format!("{}: removed\n", text::one_line(name)))?;
    context.out.note("that daemon lists this device until `satchel devices revoke` revokes it there");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::check_address;

    #[test]
    fn an_address_is_a_host_and_a_port() {
        for good in ["192.168.1.7:7443", "[fd00::7]:7443", "desk.example:1", "desk:65535"] {
            assert!(check_address(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "desk",
            "desk:",
            ":7443",
            "desk:0",
            "desk:65536",
            "fd00::7:7443",
            "a b:1",
            "http://desk:1",
            "a\u{1b}:1",
        ] {
            assert!(check_address(bad).is_err(), "{bad}");
        }
    }
}
