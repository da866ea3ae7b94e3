//! `mcp install` and `mcp uninstall`: the entry for this server in the configuration of a program.

mod file;
mod server_entry;

use std::path::Path;

use clap::ValueEnum as _;
use satchel_proto::v1::{CreateTokenRequest, Device, DevicePolicy, DeviceRole};
use serde::Serialize;

use self::file::{ConfigFile, PreparedFile};
use super::{
    config_edit::{self, EditError, EntryLocation, ServerEntry},
    programs::ProgramConfig,
};
use crate::cli::{
    Context, Environment,
    args::{AgentProgram, AgentRole, Cli, McpCommand, McpEntryArgs, McpInstallArgs},
    client::DaemonClient,
    confirm, devices,
    error::CliError,
    exit::Exit,
    secret, text,
};

/// What `install` and `uninstall` print as JSON.
#[derive(Debug, Serialize)]
struct Report<'a> {
    program: &'a str,
    file: &'a Path,
    server: &'a str,
    /// False if the file was as it should be.
    changed: bool,
    /// The device as which the program acts; null for a paired daemon.
    device: Option<&'a str>,
}

/// Runs one of the commands.
///
/// # Errors
/// Fails if the program is not installed, its file cannot be edited, or the person declines.
pub(in crate::cli) async fn run(
    context: &mut Context,
    (cli, environment): (&Cli, &Environment),
    command: &McpCommand,
) -> Result<Exit, CliError> {
    match command {
        McpCommand::Install(args) => install(context, (cli, environment), args).await,
        McpCommand::Uninstall(args) => uninstall(context, environment, args).await,
    }
}

async fn install(
    context: &mut Context,
    (cli, environment): (&Cli, &Environment),
    args: &McpInstallArgs,
) -> Result<Exit, CliError> {
    let device = device_name(context, args)?;
    let executable = server_entry::executable(environment)?;
    let entry = server_entry::of(&cli.global, environment, device.as_deref())?;
    let config = config(context, &args.entry)?;
    check_present(&config, &args.entry)?;
    let file = ConfigFile::read(&config.file)?;
    let edited = config_edit::install(&file.text, place(&config, &args.entry, &executable), &entry)
        .map_err(|error| not_edited(&file, &error))?;
    let changed = edited.before.as_ref() != Some(&entry);
    // Before the device is created: it would stay if the file cannot be written.
    let prepared = if changed { Some(file.prepare(&edited.text)?) } else { None };
    if changed {
        confirm(context, &args.entry, &file, (edited.before.as_ref(), Some(&entry))).await?;
    }
    let created = match &device {
        Some(device) => ensure_device(context, device, args).await?,
        None => false,
    };
    prepared.map_or(Ok(()), PreparedFile::persist)?;
    report(context, &args.entry, &file, (changed, device.as_deref()))?;
    if !context.out.json {
        context.out.note(config.reload);
        if let Some(device) = device.filter(|_| created && args.role != Some(AgentRole::Reader)) {
            context.out.note(&format!(
                "{device:?} sees what is public or shared with it; `satchel devices update {} --role reader` lets it read everything",
                text::shell_quoted(&device)
            ));
        }
    }
    Ok(Exit::Done)
}

async fn uninstall(
    context: &mut Context,
    environment: &Environment,
    args: &McpEntryArgs,
) -> Result<Exit, CliError> {
    let executable = server_entry::executable(environment)?;
    let config = config(context, args)?;
    let file = ConfigFile::read(&config.file)?;
    let edited = config_edit::uninstall(&file.text, place(&config, args, &executable))
        .map_err(|error| not_edited(&file, &error))?;
    let Some(before) = edited.before else {
        return report(context, args, &file, (false, None)).map(|()| Exit::Done);
    };
    let prepared = file.prepare(&edited.text)?;
    confirm(context, args, &file, (Some(&before), None)).await?;
    prepared.persist()?;
    let device = device_of(&before);
    report(context, args, &file, (true, device))?;
    if let Some(device) = device.filter(|_| !context.out.json) {
        let device = text::shell_quoted(device);
        context.out.note(&format!("the device stays; `satchel devices revoke {device}` revokes it"));
    }
    Ok(Exit::Done)
}

fn place<'a>(config: &ProgramConfig, args: &'a McpEntryArgs, executable: &'a Path) -> EntryLocation<'a> {
    EntryLocation { format: config.format, name: &args.name, executable }
}

/// Checks that the program is installed, or that the folder of the file that was named exists.
fn check_present(config: &ProgramConfig, args: &McpEntryArgs) -> Result<(), CliError> {
    let folder = match &args.file {
        Some(_) => config.file.parent().unwrap_or(Path::new("/")),
        None => &config.folder,
    };
    if config.file.exists() || folder.is_dir() {
        return Ok(());
    }
    Err(CliError::Usage(match &args.file {
        Some(_) => format!("there is no folder {folder:?}"),
        None => format!(
            "{} does not seem to be installed: there is no folder {folder:?}; if its configuration is somewhere else, use --file",
            args.program.label()
        ),
    }))
}

/// Returns the name of the device as which the program acts; `None` for a paired daemon.
fn device_name(context: &Context, args: &McpInstallArgs) -> Result<Option<String>, CliError> {
    if context.location.is_paired() {
        if args.device.is_some() || args.role.is_some() {
            return Err(CliError::Usage(
                "--as and --role are for devices of the daemon on this machine; with --server NAME the program is the device that was paired"
                    .to_owned(),
            ));
        }
        return Ok(None);
    }
    let usual = || args.entry.program.to_possible_value().map(|value| value.get_name().to_owned());
    Ok(args.device.clone().or_else(usual))
}

/// Returns the device that an entry names.
fn device_of(entry: &ServerEntry) -> Option<&str> {
    let mut args = entry.args.iter();
    args.find(|arg| *arg == "--as")?;
    args.next().map(String::as_str)
}

fn config(context: &Context, args: &McpEntryArgs) -> Result<ProgramConfig, CliError> {
    let missing = || CliError::Usage("HOME is not set; name the configuration file with --file".to_owned());
    let config = args.program.config(&context.agent_homes).ok_or_else(missing)?;
    Ok(match &args.file {
        Some(file) => config.at(&crate::cli::path::absolute(file)?),
        None => config,
    })
}

fn not_edited(file: &ConfigFile, error: &EditError) -> CliError {
    CliError::Declined(format!("{:?} was not changed: {error}", file.path))
}

/// Shows what changes, and asks. The rest of the file is not shown: it may contain keys of other servers.
async fn confirm(
    context: &mut Context,
    args: &McpEntryArgs,
    file: &ConfigFile,
    (before, after): (Option<&ServerEntry>, Option<&ServerEntry>),
) -> Result<(), CliError> {
    if !context.out.json {
        let line = |sign: &str, entry: &ServerEntry| format!("{sign} {}: {}", args.name, entry.line());
        let path = file.path.to_string_lossy().into_owned();
        let lines =
            before.map(|entry| line("-", entry)).into_iter().chain(after.map(|entry| line("+", entry)));
        for line in std::iter::once(path).chain(lines) {
            context.out.print(&format!("{}\n", text::one_line(&line)))?;
        }
    }
    if args.yes {
        return Ok(());
    }
    if context.out.json || !secret::is_interactive() {
        return Err(CliError::Usage(
            "cannot ask for confirmation without a terminal; use --yes to change the file".to_owned(),
        ));
    }
    if confirm::ask(format!("change the configuration of {}? [y/N] ", args.program.label())).await? {
        return Ok(());
    }
    Err(CliError::Declined("nothing was changed".to_owned()))
}

/// Creates the device, unless there is one. Returns whether it was created.
async fn ensure_device(context: &mut Context, name: &str, args: &McpInstallArgs) -> Result<bool, CliError> {
    let location = context.location.clone();
    crate::cli::check_data_dir(&location, false)?;
    let client = DaemonClient::open(&location, &mut context.out).await?;
    let ensured = ensure_device_with(context, &client, name, args).await;
    client.close(&location).await.and(ensured)
}

async fn ensure_device_with(
    context: &Context,
    client: &DaemonClient,
    name: &str,
    args: &McpInstallArgs,
) -> Result<bool, CliError> {
    if let Some(known) = devices::active_with_name(client, name).await? {
        let now = context.calendar.now.as_second();
        return check_known(&known, (name, args.role), now).map(|()| false);
    }
    let role = role_to_wire(args.role.unwrap_or(AgentRole::Agent));
    let request = CreateTokenRequest {
        name: name.to_owned(),
        policy: Some(DevicePolicy { role: role.into(), ..DevicePolicy::default() }),
        expire_time: Some(context.calendar.ahead("--for", &args.valid_for)?),
    };
    // The token is for access over the network. Here, the owner names the device.
    client.devices().create_token(request).await?;
    Ok(true)
}

fn role_to_wire(role: AgentRole) -> DeviceRole {
    match role {
        AgentRole::Agent => DeviceRole::Agent,
        AgentRole::Reader => DeviceRole::Reader,
    }
}

/// Checks that a device can be that of a program, and has the name and role that were asked for. `now` is in seconds.
fn check_known(device: &Device, (name, role): (&str, Option<AgentRole>), now: i64) -> Result<(), CliError> {
    let known = device.policy.as_ref().map_or(DeviceRole::Unspecified, DevicePolicy::role);
    let quoted = text::shell_quoted(&device.name);
    if known == DeviceRole::Owner {
        return Err(super::owner_refused(device));
    }
    if device.name != name {
        return Err(CliError::Declined(format!(
            "there is a device {:?}; use --as {quoted} for it, or choose another name",
            device.name
        )));
    }
    if device.expire_time.as_ref().is_some_and(|expires| expires.seconds <= now) {
        return Err(CliError::Declined(format!(
            "the device {name:?} has expired; `satchel devices revoke {quoted}` makes its name free"
        )));
    }
    if role.is_some_and(|role| role_to_wire(role) != known) {
        return Err(CliError::Declined(format!(
            "there is a device {:?} with another role; change it with `satchel devices update {quoted} --role`, or choose another name with --as",
            device.name
        )));
    }
    Ok(())
}

fn report(
    context: &mut Context,
    args: &McpEntryArgs,
    file: &ConfigFile,
    (changed, device): (bool, Option<&str>),
) -> Result<(), CliError> {
    let program: AgentProgram = args.program;
    if context.out.json {
        let value = program.to_possible_value();
        let program = value.as_ref().map_or("", |value| value.get_name());
        let report = Report { program, file: &file.path, server: &args.name, changed, device };
        return context.out.json(&report);
    }
    let done = if changed { "changed" } else { "is as it should be; nothing was changed" };
    context.out.print(&format!("{}: {done}\n", text::one_line(&file.path.to_string_lossy())))
}
