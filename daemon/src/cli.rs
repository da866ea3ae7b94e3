//! The command line: a client of the daemon that renders its responses.
//!
//! **Invariant:** text from stored data reaches the terminal only through `text::clean` (or, as JSON, through
//! `Out::json`), so that no export can inject terminal control sequences. The tests of each renderer check this
//! with hostile text.

mod agent_homes;
pub mod args;
mod attachments;
mod backup;
mod browse;
mod byte_progress;
mod client;
mod config;
mod confirm;
mod conversations;
mod demo;
mod devices;
mod doctor;
mod empty_list;
pub mod error;
pub mod exit;
mod exports;
mod import;
mod imports;
mod json;
mod keys;
mod labels;
mod location;
mod mcp;
mod memories;
mod operation;
mod output;
mod pager;
mod pagination;
mod pairing;
mod path;
mod peers;
mod plugins;
mod prompt_context;
mod properties;
mod purge;
mod rebuild;
mod relations;
mod search;
mod secret;
mod serve;
mod servers;
mod service;
mod shell;
mod signing;
mod sources;
mod status;
mod style;
mod table;
mod text;
mod time;
mod transfer;
mod verify;

use std::{
    ffi::OsString,
    io::IsTerminal,
    os::unix::net::UnixListener,
    path::{Path, PathBuf},
    time::Duration,
};

use jiff::{Timestamp, tz::TimeZone};
use satchel_core::{
    clock::{self, Clock, SystemClock},
    data_dir,
    vault::Secret,
};
use satchel_server::log::{Log, LogTarget, Verbosity};
use tokio::signal::unix::{SignalKind, signal};

use self::{
    agent_homes::AgentHomes,
    args::{
        Cli, ColorWhen, Command, Conversations, Devices, Global, Imports, InstalledCommand, Keys, McpArgs,
        Memories, Peers, Plugins,
    },
    client::{DaemonClient, DaemonLocation},
    error::CliError,
    exit::Exit,
    location::{code_cache, command_location, config_home, default_config},
    output::Output,
    pagination::Remaining,
    time::Calendar,
};

/// The parts of the environment that `main` reads.
#[derive(Default)]
pub struct Environment {
    /// `HOME`.
    pub home: Option<PathBuf>,
    /// `CLAUDE_CONFIG_DIR`, where Claude Code keeps its files instead of `~/.claude`.
    pub claude_config_dir: Option<PathBuf>,
    /// `CODEX_HOME`, where Codex keeps its files instead of `~/.codex`.
    pub codex_home: Option<PathBuf>,
    /// `GEMINI_CLI_HOME`, the folder in which Gemini CLI has its `.gemini`, instead of the home folder.
    pub gemini_cli_home: Option<PathBuf>,
    /// `PATH`.
    pub search_path: Option<OsString>,
    /// `XDG_DATA_HOME`.
    pub data_home: Option<PathBuf>,
    /// `XDG_CONFIG_HOME`.
    pub config_home: Option<PathBuf>,
    /// `XDG_CACHE_HOME`.
    pub cache_home: Option<PathBuf>,
    /// `XDG_STATE_HOME`.
    pub state_home: Option<PathBuf>,
    /// The folder for the sockets of data directories whose paths are too long, as
    /// [`satchel_server::socket::default_runtime_dir`] chooses it.
    pub runtime_dir: PathBuf,
    /// True if `NO_COLOR` is set to a value, or if `TERM` names a terminal without colours.
    pub no_color: bool,
    /// `PAGER`; if empty, no pager is used.
    pub pager: Option<OsString>,
    /// `LESS`, the options of `less`.
    pub less: Option<OsString>,
    /// `SATCHEL_DATA_PASSPHRASE`.
    pub data_passphrase: Option<Secret>,
    /// `SATCHEL_PASSPHRASE`, the passphrase of encrypted exports.
    pub passphrase: Option<String>,
    /// `SATCHEL_LOG`.
    pub log: Option<String>,
    /// `JOURNAL_STREAM`, with which the service manager marks stderr as connected to the journal.
    pub journal_stream: Option<String>,
    /// `NOTIFY_SOCKET`, the socket on which the service manager expects status messages.
    pub notify_socket: Option<OsString>,
    /// How long the service manager waits for a watchdog message.
    pub watchdog: Option<Duration>,
    /// The listening socket that the service manager passed to this process.
    pub inherited: Option<UnixListener>,
    /// Path of the running executable.
    pub executable: Option<PathBuf>,
}

/// How long background work that no caller waits for, such as a requested export, may delay the exit of a stopped
/// daemon.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

/// Maximum number of times that a command is run. It is run again if the daemon that it had joined goes away, which
/// happens whenever the command that hosted that daemon ends.
const MAX_ATTEMPTS: usize = 5;

/// The state that every command works with.
struct Context {
    out: Output,
    calendar: Calendar,
    location: DaemonLocation,
    log: Log,
    /// `SATCHEL_PASSPHRASE`.
    passphrase: Option<String>,
    agent_homes: AgentHomes,
    /// Identifies the one change that a command makes, so that the change is made once even if the request is
    /// repeated.
    request_id: String,
}

impl Context {
    /// Prints a note if a list was cut off.
    fn note_remaining(&mut self, remaining: Remaining) {
        if let Some(hint) = remaining.hint() {
            self.out.note(&hint);
        }
    }
}

/// Runs the command that was typed.
///
/// # Errors
/// Returns an error that says what went wrong and what to do about it. A printed result is not an error, whatever
/// it says.
pub fn run(cli: &Cli, environment: &Environment) -> Result<Exit, CliError> {
    let mut out = Output::for_process(&cli.global, environment);
    // These commands need neither a place nor a clock.
    match &cli.command {
        Command::Completions { shell } => return shell::completions(*shell, &mut out).map(|()| Exit::Done),
        Command::Man { output } => {
            refuse_output_in_data_dir(output.as_deref(), &cli.global, environment)?;
            return shell::man(output.as_deref(), &mut out).map(|()| Exit::Done);
        }
        Command::Plugins(Plugins::CompileChild(args)) => return plugins::compile_child(args, &mut out),
        Command::Plugins(Plugins::Author(command)) => {
            let (config_home, cache) = (config_home(environment), code_cache(environment));
            let mut context = plugins::author::AuthorContext { out: &mut out, config_home, cache };
            return plugins::author::run(&mut context, command);
        }
        Command::Config(command) => return config::run(*command, &cli.global, environment, &mut out),
        Command::Service(command) => return service::run(command, &cli.global, environment, &mut out),
        _ => {}
    }
    let mut location = command_location(cli, environment)?;
    if let (Command::Serve(args), DaemonLocation::DataDir(config)) = (&cli.command, &mut location) {
        serve::apply_args(config, args)?;
    }
    let log = start_log(cli, environment, &location)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| CliError::step("cannot start the runtime", error))?;
    let now = clock::check(SystemClock.now_micros()).map_err(CliError::Clock)?;
    let now = Timestamp::from_microsecond(now).unwrap_or_default();
    let calendar = Calendar { now, zone: TimeZone::system() };
    let passphrase = environment.passphrase.clone();
    let request_id = uuid::Uuid::new_v4().to_string();
    let agent_homes = AgentHomes::of(environment);
    let mut context = Context { out, calendar, location, log, passphrase, agent_homes, request_id };
    let exit = runtime.block_on(async {
        match &cli.command {
            Command::Serve(args) => serve::run(&mut context, cli, args, environment).await,
            Command::Demo => demo::run(&mut context).await,
            Command::Mcp(McpArgs { command: Some(command), .. }) => {
                mcp::install::run(&mut context, (cli, environment), command).await
            }
            command => execute(&mut context, command).await,
        }
    });
    // What reads standard input may wait for it for ever.
    if let Command::Serve(_) | Command::Mcp(_) = &cli.command {
        runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
    }
    exit
}

/// Refuses an output path inside the data directory, if there is one.
fn refuse_output_in_data_dir(
    output: Option<&Path>,
    global: &Global,
    environment: &Environment,
) -> Result<(), CliError> {
    let (Some(output), Ok(config)) = (output, default_config(global, environment)) else { return Ok(()) };
    data_dir::refuse_inside(&config.data_dir, output).map_err(CliError::DataDir)
}

/// Starts the log. Only a daemon logs where its configuration says; the log of any other command goes to stderr,
/// for the person who ran it.
fn start_log(cli: &Cli, environment: &Environment, location: &DaemonLocation) -> Result<Log, CliError> {
    let daemon = matches!(cli.command, Command::Serve(_));
    let color = match cli.global.color {
        ColorWhen::Always => true,
        ColorWhen::Never => false,
        ColorWhen::Auto => !environment.no_color && std::io::stderr().is_terminal(),
    };
    let verbosity = Verbosity {
        directives: environment.log.clone(),
        verbose: cli.global.verbose,
        // Warnings would be written over the screen of `browse`.
        quiet: cli.global.quiet || (matches!(cli.command, Command::Browse(_)) && cli.global.verbose == 0),
        daemon,
    };
    verbosity.check().map_err(|problem| CliError::Usage(format!("invalid SATCHEL_LOG: {problem}")))?;
    let (target, level) = match location {
        DaemonLocation::DataDir(config) if daemon => (
            LogTarget::for_daemon(&config.log, environment.journal_stream.as_deref(), color),
            config.log.level,
        ),
        DaemonLocation::DataDir(_) | DaemonLocation::Socket(_) | DaemonLocation::Paired(_) => {
            (LogTarget::Stderr { color }, None)
        }
    };
    let path = match &target {
        LogTarget::File { path, .. } => path.clone(),
        LogTarget::Stderr { .. } | LogTarget::Journal => PathBuf::new(),
    };
    Log::start(target, verbosity, level).map_err(|source| CliError::File {
        action: "write the log file",
        path,
        source,
    })
}

/// Returns whether a command creates the data directory if there is none. These are the commands that store
/// something, and `keys encrypt`: it has to run before anything is stored if no plaintext is ever to reach the
/// disk.
fn creates_data_dir(command: &Command) -> bool {
    matches!(
        command,
        Command::Serve(_)
            | Command::Import(_)
            | Command::Apply(_)
            | Command::Restore(_)
            | Command::Memories(Memories::Add(_))
            | Command::Peers(Peers::Add(_))
            | Command::Plugins(Plugins::Installed(InstalledCommand::Install(_) | InstalledCommand::Trust(_)))
            | Command::Keys(Keys::Encryption(args::EncryptionCommand::Encrypt(_)))
    )
}

/// Refuses a folder that belongs to another user or is not a data directory, and refuses a command that would find
/// nothing: a mistyped data directory must not look like an empty one.
fn check_data_dir(location: &DaemonLocation, creates: bool) -> Result<(), CliError> {
    let DaemonLocation::DataDir(config) = location else { return Ok(()) };
    data_dir::inspect(&config.data_dir, config.allow_other_owner).map_err(CliError::DataDir)?;
    // The remains of a damaged data directory count as one, and so does a folder in which a service manager
    // listens.
    let left = ["db", "blobs"].iter().any(|name| config.data_dir.join(name).is_dir());
    let served = !matches!(satchel_server::socket::socket_path(&config.data_dir), Ok(None));
    if creates || left || served || satchel_store::has_journal(&config.data_dir) {
        return Ok(());
    }
    Err(CliError::NoData { dir: config.data_dir.clone() })
}

/// Runs a command that is not a daemon itself.
async fn execute(context: &mut Context, command: &Command) -> Result<Exit, CliError> {
    if let Command::Verify(args) = command {
        let own_keys = own_public_keys(context).await;
        return verify::run(args, own_keys, context);
    }
    match command {
        // These need a data directory for their keys, but no store.
        Command::Pair(args) => return pairing::run(context, args).await,
        Command::Servers(command) => return servers::run(context, command),
        _ => {}
    }
    if let Command::Browse(_) = command {
        // Before anything is opened or asked for.
        browse::check(context)?;
    }
    check_data_dir(&context.location, creates_data_dir(command))?;
    match command {
        Command::Doctor(args) => return doctor::run(context, *args).await,
        Command::Restore(args) => return backup::restore(context, args).await,
        Command::Rebuild(args) => return rebuild::run(context, *args).await,
        Command::Keys(Keys::Encryption(command)) => return keys::run(context, command).await,
        Command::Memories(Memories::Purge(args)) => {
            return purge::run(context, purge::PurgeKind::Memory, args).await;
        }
        Command::Conversations(Conversations::Purge { purge: args, keep_memories }) => {
            let kind = purge::PurgeKind::Conversation { keep_memories: *keep_memories };
            return purge::run(context, kind, args).await;
        }
        _ => {}
    }
    let prompted = PromptedSecrets::prompt(context, command)?;
    let location = context.location.clone();
    let mut attempts = 1;
    loop {
        let client = DaemonClient::open(&location, &mut context.out).await?;
        let joined = location.is_local() && client.is_daemon();
        let outcome = run_until_interrupted(context, &client, command, &prompted).await;
        if !matches!(outcome, Ok(Exit::Cancelled) | Err(CliError::Cancelled)) {
            tokio::select! {
                () = client.wait_for_other_operations(&mut context.out) => {}
                _ = tokio::signal::ctrl_c() => {}
            }
        }
        let closed = client.close(&location).await;
        match outcome {
            // The daemon was hosted by another command, which has ended. Connect again: this process then hosts the
            // daemon, unless yet another command does.
            Err(error) if joined && error.connection_lost() && attempts < MAX_ATTEMPTS => attempts += 1,
            outcome => return outcome.and_then(|exit| closed.map(|()| exit)),
        }
    }
}

/// The secrets that a command asks a person for, before it connects to a daemon.
#[derive(Default)]
struct PromptedSecrets {
    /// Opens the input.
    unlock: Option<satchel_proto::v1::Unlock>,
    /// Encrypts the output.
    passphrase: Option<String>,
}

impl PromptedSecrets {
    fn prompt(context: &Context, command: &Command) -> Result<Self, CliError> {
        let known = context.passphrase.as_deref();
        Ok(match command {
            Command::Import(args) => Self { unlock: secret::unlock(&args.unlock, known)?, ..Self::default() },
            Command::Apply(args) => Self { unlock: secret::unlock(&args.unlock, known)?, ..Self::default() },
            Command::Export(args) => {
                Self { passphrase: secret::new_passphrase(&args.passphrase, known)?, ..Self::default() }
            }
            _ => Self::default(),
        })
    }
}

async fn run_until_interrupted(
    context: &mut Context,
    client: &DaemonClient,
    command: &Command,
    prompted: &PromptedSecrets,
) -> Result<Exit, CliError> {
    match command {
        // These commands stop their imports themselves.
        Command::Import(args) => return import::run(context, client, args, prompted.unlock.clone()).await,
        Command::Apply(args) => return import::run(context, client, args, prompted.unlock.clone()).await,
        Command::Imports(Imports::Again(args)) => return imports::again::run(context, client, args).await,
        Command::Mcp(args) => return mcp::run(context, client, args).await,
        // This one cancels the pairing itself.
        Command::Devices(Devices::Pair(args)) => return devices::pair::run(context, client, args).await,
        _ => {}
    }
    // Listens before the operation starts: a signal that arrives earlier would end the process, which then cannot
    // cancel the operation.
    let mut interrupts =
        signal(SignalKind::interrupt()).map_err(|error| CliError::step("cannot listen for SIGINT", error))?;
    let mut running = Box::pin(dispatch(context, client, command, prompted));
    tokio::select! {
        outcome = &mut running => return outcome,
        _ = interrupts.recv() => {}
    }
    // The operation may have been started, but its id not have arrived yet. A second Ctrl-C waits for nothing.
    tokio::select! {
        outcome = &mut running => return outcome,
        () = client.answered() => {}
        _ = interrupts.recv() => return Err(CliError::Cancelled),
    }
    // Cancels the operation that was started and waits for its end.
    tokio::select! {
        stopped = client.cancel_started() => stopped?,
        _ = interrupts.recv() => {}
    }
    Err(CliError::Cancelled)
}

async fn dispatch(
    context: &mut Context,
    client: &DaemonClient,
    command: &Command,
    prompted: &PromptedSecrets,
) -> Result<Exit, CliError> {
    match command {
        Command::Imports(command) => imports::run(context, client, command).await,
        Command::Sources(command) => sources::run(context, client, command).await,
        Command::Memories(command) => memories::run(context, client, command).await,
        Command::Relations(command) => relations::run(context, client, command).await,
        Command::Conversations(command) => conversations::run(context, client, command).await,
        Command::Search(args) => search::run(context, client, args).await,
        Command::Context(args) => prompt_context::run(context, client, args).await,
        Command::Browse(args) => browse::run(context, client, args).await,
        Command::Attachments(command) => attachments::run(context, client, command).await,
        Command::Export(args) => exports::create(context, client, args, prompted.passphrase.as_deref()).await,
        Command::Exports(command) => exports::run(context, client, command).await,
        Command::Keys(Keys::Signing(command)) => signing::run(context, client, command).await,
        Command::Plugins(Plugins::Installed(command)) => plugins::run(context, client, command).await,
        Command::Devices(command) => devices::run(context, client, command).await,
        Command::Peers(command) => peers::run(context, client, command).await,
        Command::Sync(args) => peers::sync(context, client, args).await,
        Command::Conflicts(paging) => peers::conflicts(context, client, *paging).await,
        Command::Status => status::run(context, client).await,
        Command::Backup(args) => backup::create(context, client, args).await,
        Command::Serve(_)
        | Command::Demo
        | Command::Config(_)
        | Command::Service(_)
        | Command::Import(_)
        | Command::Apply(_)
        | Command::Mcp(_)
        | Command::Verify(_)
        | Command::Doctor(_)
        | Command::Restore(_)
        | Command::Rebuild(_)
        | Command::Plugins(Plugins::Author(_) | Plugins::CompileChild(_))
        | Command::Keys(Keys::Encryption(_))
        | Command::Pair(_)
        | Command::Servers(_)
        | Command::Completions { .. }
        | Command::Man { .. } => Err(CliError::Usage("this command does not use a daemon".to_owned())),
    }
}

/// Returns the current and former signing keys of the data directory or of the daemon that `--server` names, so that a
/// bundle made from it is required to match its manifest.
async fn own_public_keys(context: &mut Context) -> Vec<String> {
    let location = context.location.clone();
    if let DaemonLocation::DataDir(config) = &location {
        return satchel_core::export::public_keys_of(&config.data_dir);
    }
    let fetched = async {
        let client = DaemonClient::open(&location, &mut context.out).await?;
        signing::public_keys(&client).await
    };
    match fetched.await {
        Ok(keys) => keys,
        Err(error) => {
            // Bundles can be checked without a daemon.
            let why = text::one_line(&error.to_string());
            context.out.note(&format!("the signing keys of the daemon are not known: {why}"));
            Vec::new()
        }
    }
}
