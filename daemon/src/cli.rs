//! The command line: a client of the daemon that renders what it answers.
//!
//! **Invariant:** whatever comes from data reaches the terminal through `text::clean` (or, in JSON, through `Out::json`), so
//! that no export can steer the terminal; the tests of each renderer hold it with hostile text.

pub mod args;
mod backup;
mod config;
mod conversations;
mod demo;
mod doctor;
pub mod error;
pub mod exit;
mod exports;
mod facts;
mod import;
mod imports;
mod json;
mod keys;
mod link;
mod look;
mod memories;
mod nothing;
mod operation;
mod out;
mod page;
mod pager;
mod path;
mod plugins;
mod purge;
mod rebuild;
mod relations;
mod secret;
mod serve;
mod service;
mod shell;
mod signing;
mod sources;
mod status;
mod steps;
mod table;
mod text;
mod time;
mod verify;
mod words;

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
    vault::{Secret, Unlock},
};
use satchel_host::CodeCache;
use satchel_server::{
    config::Config,
    log::{Log, LogTarget, Verbosity},
};

use self::{
    args::{Cli, ColorWhen, Command, Conversations, Global, Keys, Memories},
    error::CliError,
    exit::Exit,
    link::{Link, Place},
    out::Out,
    page::Left,
    time::Calendar,
};

/// What `main` read from the environment.
#[derive(Default)]
pub struct Environment {
    /// `HOME`.
    pub home: Option<PathBuf>,
    /// `XDG_DATA_HOME`.
    pub data_home: Option<PathBuf>,
    /// `XDG_CONFIG_HOME`.
    pub config_home: Option<PathBuf>,
    /// `XDG_CACHE_HOME`.
    pub cache_home: Option<PathBuf>,
    /// `XDG_STATE_HOME`.
    pub state_home: Option<PathBuf>,
    /// The folder for sockets of data directories with long paths, as [`satchel_server::serve::runtime_folder`] chooses it.
    pub runtime_dir: PathBuf,
    /// `NO_COLOR` is set to something, or `TERM` says that the terminal knows no colours.
    pub no_color: bool,
    /// `PAGER`; empty: no pager.
    pub pager: Option<OsString>,
    /// `LESS`, the options of that pager.
    pub less: Option<OsString>,
    /// `SATCHEL_DATA_PASSPHRASE`.
    pub data_passphrase: Option<Secret>,
    /// `SATCHEL_PASSPHRASE`, of encrypted exports.
    pub passphrase: Option<String>,
    /// `SATCHEL_LOG`.
    pub log: Option<String>,
    /// `JOURNAL_STREAM`, by which the service manager says that stderr is the journal.
    pub journal_stream: Option<String>,
    /// `NOTIFY_SOCKET`, where the service manager wants to hear from us.
    pub notify_socket: Option<OsString>,
    /// How long it waits for a sign of life.
    pub watchdog: Option<Duration>,
    /// The socket that it opened for us.
    pub inherited: Option<UnixListener>,
    /// The program that runs.
    pub executable: Option<PathBuf>,
}

/// How long work of a stopped daemon that nobody waits for, such as an export that was asked for, may hold the process.
const LEFT_BEHIND: Duration = Duration::from_secs(1);

/// How often a command begins anew because the daemon that it had joined left: each time another command ended that had
/// it inside.
const TRIES: usize = 5;

/// What every command works with.
struct Context {
    out: Out,
    calendar: Calendar,
    place: Place,
    log: Log,
    /// `SATCHEL_PASSPHRASE`.
    passphrase: Option<String>,
    /// Names the one change that a command makes, so that it is made once, however often it is asked for.
    request_id: String,
}

impl Context {
    /// Says that a list was cut.
    fn hint(&mut self, left: Left) {
        if let Some(hint) = left.hint() {
            self.out.note(&hint);
        }
    }
}

/// Does what was typed.
///
/// # Errors
/// What went wrong, with what to do about it; results that are printed are no errors, whatever they say.
pub fn run(cli: &Cli, environment: &Environment) -> Result<Exit, CliError> {
    let mut out = Out::of_process(&cli.global, environment);
    // These need neither a place nor a clock.
    match &cli.command {
        Command::Completions { shell } => return shell::completions(*shell, &mut out).map(|()| Exit::Done),
        Command::Man { output } => {
            outside(output.as_deref(), &cli.global, environment)?;
            return shell::man(output.as_deref(), &mut out).map(|()| Exit::Done);
        }
        Command::Config(command) => return config::run(*command, &cli.global, environment, &mut out),
        Command::Service(command) => return service::run(command, &cli.global, environment, &mut out),
        _ => {}
    }
    let mut place = place(&cli.global, environment)?;
    if let (Command::Serve(args), Place::Local(config)) = (&cli.command, &mut place) {
        serve::overlay(config, args)?;
    }
    let log = start_log(cli, environment, &place)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime =
        runtime.map_err(|error| CliError::Step { what: "cannot start".to_owned(), source: error.into() })?;
    let now = clock::check(SystemClock.now_micros()).map_err(CliError::Clock)?;
    let now = Timestamp::from_microsecond(now).unwrap_or_default();
    let calendar = Calendar { now, zone: TimeZone::system() };
    let passphrase = environment.passphrase.clone();
    let request_id = uuid::Uuid::new_v4().to_string();
    let mut context = Context { out, calendar, place, log, passphrase, request_id };
    let exit = runtime.block_on(async {
        match &cli.command {
            Command::Serve(args) => serve::run(&mut context, cli, args, environment).await,
            Command::Demo => demo::run(&mut context).await,
            command => perform(&mut context, command).await,
        }
    });
    if let Command::Serve(_) = &cli.command {
        runtime.shutdown_timeout(LEFT_BEHIND);
    }
    exit
}

/// Refuses an output in the data directory, if there is one.
fn outside(output: Option<&Path>, global: &Global, environment: &Environment) -> Result<(), CliError> {
    let (Some(output), Ok(config)) = (output, defaults(global, environment)) else { return Ok(()) };
    data_dir::refuse_inside(&config.data_dir, output).map_err(CliError::DataDir)
}

/// Starts the log. Where it goes is for daemons to say: what a command logs is for whoever typed it.
fn start_log(cli: &Cli, environment: &Environment, place: &Place) -> Result<Log, CliError> {
    let daemon = matches!(cli.command, Command::Serve(_));
    let color = match cli.global.color {
        ColorWhen::Always => true,
        ColorWhen::Never => false,
        ColorWhen::Auto => !environment.no_color && std::io::stderr().is_terminal(),
    };
    let verbosity = Verbosity {
        directives: environment.log.clone(),
        verbose: cli.global.verbose,
        quiet: cli.global.quiet,
        daemon,
    };
    verbosity.check().map_err(|problem| CliError::Usage(format!("SATCHEL_LOG cannot be used: {problem}")))?;
    let (target, level) = match place {
        Place::Local(config) if daemon => {
            (LogTarget::of(&config.log, environment.journal_stream.as_deref(), color), config.log.level)
        }
        Place::Local(_) | Place::Named(_) => (LogTarget::Stderr { color }, None),
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

/// Whether a command begins a data directory where there is none: those that bring something, and the one that has to come before
/// anything is brought if nothing is ever to lie there in plain.
fn begins(command: &Command) -> bool {
    matches!(
        command,
        Command::Serve(_)
            | Command::Import(_)
            | Command::Apply(_)
            | Command::Restore(_)
            | Command::Memories(Memories::Add(_))
            | Command::Keys(Keys::Locking(args::Locking::Encrypt(_)))
    )
}

/// Refuses a folder that is another's or something else, and a command that would find nothing: a data directory that is mistyped
/// must not look like an empty one.
fn fit(place: &Place, command: &Command) -> Result<(), CliError> {
    let Place::Local(config) = place else { return Ok(()) };
    data_dir::look(&config.data_dir, config.allow_other_owner).map_err(CliError::DataDir)?;
    // What is left of a damaged one is one too, and one that a service manager waits at.
    let left = ["db", "blobs"].iter().any(|name| config.data_dir.join(name).is_dir());
    let served = !matches!(satchel_server::serve::socket_path(&config.data_dir), Ok(None));
    if begins(command) || left || served || satchel_store::has_journal(&config.data_dir) {
        return Ok(());
    }
    Err(CliError::NoData { dir: config.data_dir.clone() })
}

/// Does a command that is no daemon itself.
async fn perform(context: &mut Context, command: &Command) -> Result<Exit, CliError> {
    if let Command::Verify(args) = command {
        return verify::run(args, own_keys(&context.place), context);
    }
    fit(&context.place, command)?;
    match command {
        Command::Doctor(args) => return doctor::run(context, *args).await,
        Command::Restore(args) => return backup::restore(context, args).await,
        Command::Rebuild(args) => return rebuild::run(context, *args).await,
        Command::Keys(Keys::Locking(command)) => return keys::run(context, command).await,
        Command::Memories(Memories::Purge(args)) => {
            return purge::run(context, purge::Kind::Memory, args).await;
        }
        Command::Conversations(Conversations::Purge { purge: args, keep_memories }) => {
            let kind = purge::Kind::Conversation { keep_memories: *keep_memories };
            return purge::run(context, kind, args).await;
        }
        _ => {}
    }
    let typed = Typed::of(context, command)?;
    let place = context.place.clone();
    let mut tries = 1;
    loop {
        let link = Link::open(&place, &mut context.out).await?;
        let joined = place.is_local() && link.is_daemon();
        let outcome = through(context, &link, command, &typed).await;
        if !matches!(outcome, Ok(Exit::Cancelled) | Err(CliError::Cancelled)) {
            tokio::select! {
                () = link.wait_for_others(&mut context.out) => {}
                _ = tokio::signal::ctrl_c() => {}
            }
        }
        let closed = link.close(&place).await;
        match outcome {
            // The daemon was in another command, which has ended: from now on it is in this one.
            Err(error) if joined && error.daemon_left() && tries < TRIES => tries += 1,
            outcome => return outcome.and_then(|exit| closed.map(|()| exit)),
        }
    }
}

/// What a command asks a person for, before a daemon is there to be waited for.
#[derive(Default)]
struct Typed {
    /// Opens what is read.
    unlock: Option<satchel_proto::v1::Unlock>,
    /// Encrypts what is written.
    passphrase: Option<String>,
}

impl Typed {
    fn of(context: &Context, command: &Command) -> Result<Self, CliError> {
        let known = context.passphrase.as_deref();
        Ok(match command {
            Command::Import(args) => Self { unlock: secret::unlock(&args.unlock, known)?, ..Self::default() },
            Command::Apply(args) => Self { unlock: secret::unlock(&args.unlock, known)?, ..Self::default() },
            Command::Export(args) => {
                Self { passphrase: secret::chosen(&args.passphrase, known)?, ..Self::default() }
            }
            _ => Self::default(),
        })
    }
}

async fn through(
    context: &mut Context,
    link: &Link,
    command: &Command,
    typed: &Typed,
) -> Result<Exit, CliError> {
    match command {
        // They stop their imports in order.
        Command::Import(args) => return import::run(context, link, args, typed.unlock.clone()).await,
        Command::Apply(args) => return import::run(context, link, args, typed.unlock.clone()).await,
        _ => {}
    }
    tokio::select! {
        outcome = ask(context, link, command, typed) => outcome,
        _ = tokio::signal::ctrl_c() => {
            // What was begun ends in order, unless a second one comes.
            tokio::select! {
                stopped = link.cancel_started() => stopped?,
                _ = tokio::signal::ctrl_c() => {}
            }
            Err(CliError::Cancelled)
        }
    }
}

async fn ask(context: &mut Context, link: &Link, command: &Command, typed: &Typed) -> Result<Exit, CliError> {
    match command {
        Command::Imports(command) => imports::run(context, link, command).await,
        Command::Sources(command) => sources::run(context, link, command).await,
        Command::Memories(command) => memories::run(context, link, command).await,
        Command::Relations(command) => relations::run(context, link, command).await,
        Command::Conversations(command) => conversations::run(context, link, command).await,
        Command::Export(args) => exports::create(context, link, args, typed.passphrase.as_deref()).await,
        Command::Exports(command) => exports::run(context, link, command).await,
        Command::Keys(Keys::Signing(command)) => signing::run(context, link, command).await,
        Command::Plugins(command) => plugins::run(context, link, command).await,
        Command::Status => status::run(context, link).await,
        Command::Backup(args) => backup::create(context, link, args).await,
        Command::Serve(_)
        | Command::Demo
        | Command::Config(_)
        | Command::Service(_)
        | Command::Import(_)
        | Command::Apply(_)
        | Command::Verify(_)
        | Command::Doctor(_)
        | Command::Restore(_)
        | Command::Rebuild(_)
        | Command::Keys(Keys::Locking(_))
        | Command::Completions { .. }
        | Command::Man { .. } => Err(CliError::Usage("this command does not ask a daemon".to_owned())),
    }
}

/// Where the daemon is: flag, environment (which clap reads as the flag), file, default.
fn place(global: &Global, environment: &Environment) -> Result<Place, CliError> {
    if let Some(address) = &global.server {
        return Place::named(address);
    }
    let config = defaults(global, environment)?;
    let config = match config_file(global, environment) {
        Some(file) => config
            .with_file(&file, global.config.is_some())
            .map_err(|error| CliError::Config(error.into()))?,
        None => config,
    };
    Ok(Place::Local(Box::new(config)))
}

/// The settings without those of the file.
fn defaults(global: &Global, environment: &Environment) -> Result<Config, CliError> {
    let data_dir = match &global.data_dir {
        Some(dir) => dir.clone(),
        None => folder(environment.data_home.as_deref(), environment.home.as_deref(), ".local/share")
            .ok_or_else(|| {
                CliError::Usage("no HOME is set; name the data directory with --data-dir".to_owned())
            })?,
    };
    let mut config = Config::new(absolute(&data_dir)?, environment.runtime_dir.clone());
    config.home.clone_from(&environment.home);
    config.allow_other_owner = global.allow_other_owner;
    config.code_cache = code_cache(environment);
    config.unlock.passphrase.clone_from(&environment.data_passphrase);
    let file = global.data_passphrase_file.as_deref().map(absolute).transpose()?;
    // A file that was named goes before the environment.
    if file.is_some() {
        config.unlock.passphrase = None;
        config.unlock.passphrase_file = file;
    }
    config.unlock.terminal = Unlock::somebody() && !global.json;
    Ok(config)
}

/// Where compiled importers are kept for all data directories of the person, and apart from them the key that seals them.
fn code_cache(environment: &Environment) -> Option<CodeCache> {
    let home = environment.home.as_deref().filter(|home| home.is_absolute());
    let cache = folder(environment.cache_home.as_deref(), home, ".cache")?;
    let state = folder(environment.state_home.as_deref(), home, ".local/state")?;
    Some(CodeCache { folder: cache.join("importers"), key_file: state.join("code-cache.key") })
}

/// The file that is read if it is there; one that was named must be.
fn config_file(global: &Global, environment: &Environment) -> Option<PathBuf> {
    let usual = || folder_of_config(environment).map(|folder| folder.join("satchel/satchel.toml"));
    global.config.clone().or_else(usual)
}

fn absolute(path: &Path) -> Result<PathBuf, CliError> {
    std::path::absolute(path).map_err(|source| CliError::File {
        action: "find",
        path: path.to_owned(),
        source,
    })
}

/// The folder of the person's configuration files.
fn folder_of_config(environment: &Environment) -> Option<PathBuf> {
    let named = environment.config_home.clone().filter(|path| path.is_absolute());
    named.or_else(|| environment.home.as_ref().map(|home| home.join(".config")))
}

/// Our folder in one of the person's; a relative path in the environment does not count.
fn folder(named: Option<&Path>, home: Option<&Path>, below_home: &str) -> Option<PathBuf> {
    let named = named.filter(|path| path.is_absolute()).map(Path::to_owned);
    named.or_else(|| home.map(|home| home.join(below_home))).map(|folder| folder.join("satchel"))
}

/// The keys that sign and signed in the data directory, so that its own bundles are held to their manifest.
fn own_keys(place: &Place) -> Vec<String> {
    match place {
        Place::Local(config) => satchel_core::export::signers_of(&config.data_dir),
        Place::Named(_) => Vec::new(),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use clap::Parser;

    use super::*;

    fn dir(words: &[&str], environment: &Environment) -> PathBuf {
        let cli = Cli::try_parse_from([&["satchel", "status"], words].concat()).unwrap();
        match place(&cli.global, environment).unwrap() {
            Place::Local(config) => config.data_dir,
            Place::Named(path) => path,
        }
    }

    #[test]
    fn a_flag_goes_before_the_environment_and_that_before_the_default() {
        let mut environment = Environment { home: Some("/nobody/ana".into()), ..Environment::default() };
        assert_eq!(dir(&[], &environment), PathBuf::from("/nobody/ana/.local/share/satchel"));
        environment.data_home = Some("/nobody/data".into());
        assert_eq!(dir(&[], &environment), PathBuf::from("/nobody/data/satchel"));
        environment.data_home = Some("relative".into());
        assert_eq!(dir(&[], &environment), PathBuf::from("/nobody/ana/.local/share/satchel"));
        assert_eq!(dir(&["--data-dir", "/d"], &environment), PathBuf::from("/d"));
        assert_eq!(dir(&["--server", "unix:/s"], &environment), PathBuf::from("/s"));
        let cli = Cli::try_parse_from(["satchel", "status"]).unwrap();
        assert!(matches!(place(&cli.global, &Environment::default()), Err(CliError::Usage(_))));
    }

    #[test]
    fn a_configuration_that_is_named_must_be_there() {
        let environment = Environment { home: Some("/nobody".into()), ..Environment::default() };
        let cli = Cli::try_parse_from(["satchel", "status", "--config", "/nobody/satchel.toml"]).unwrap();
        let error = place(&cli.global, &environment).unwrap_err();
        assert_eq!(error.exit(), Exit::Failed);
        assert!(error.report().contains("/nobody/satchel.toml"), "{}", error.report());
    }
}
