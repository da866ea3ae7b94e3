//! The log of this process: to stderr in the form for terminals, to stderr in the form for the system journal, or to a
//! file of limited size.

mod journal;
mod rotating;

use std::{io, os::fd::AsFd, path::PathBuf};

use tracing_subscriber::{
    EnvFilter, Layer, Registry,
    filter::LevelFilter,
    layer::SubscriberExt,
    reload::{self, Handle},
    util::SubscriberInitExt,
};

use self::{journal::JournalFormat, rotating::RotatingFile};
use crate::config::{LogConfig, LogLevel};

/// The destination of log events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogTarget {
    /// Stderr, for people to read.
    Stderr { color: bool },
    /// Stderr is the system journal, which adds the time itself and reads the level from the line.
    Journal,
    /// A file that is rotated when it is full.
    File { path: PathBuf, max_bytes: u64, keep: u32 },
}

/// The log level from flags and environment. If they set none, the configuration decides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verbosity {
    /// `SATCHEL_LOG`, which takes precedence over everything else.
    pub directives: Option<String>,
    /// How often `-v` was given.
    pub verbose: u8,
    /// `-q`.
    pub quiet: bool,
    /// Whether this is a daemon, which logs more than a command.
    pub daemon: bool,
}

/// The running log. The default value logs nothing.
#[derive(Default)]
pub struct Log {
    verbosity: Verbosity,
    filter: Option<Handle<EnvFilter, Registry>>,
}

impl LogTarget {
    /// Returns the target of a daemon with the log settings `config`. `journal` is the variable in which systemd names
    /// the journal's stream.
    pub fn for_daemon(config: &LogConfig, journal: Option<&str>, color: bool) -> Self {
        match &config.file {
            Some(path) => Self::File { path: path.clone(), max_bytes: config.max_bytes, keep: config.keep },
            None if journal.is_some_and(stderr_is) => Self::Journal,
            None => Self::Stderr { color },
        }
    }
}

/// Libraries that log nothing: wasmtime's cache logs errors about files that were removed with the cache folder of this
/// process, and rmcp whole requests and answers.
const QUIET: &str = "wasmtime_internal_cache=off,rmcp=off";

impl Verbosity {
    /// Returns the directives for the filter.
    fn directives(&self, configured: Option<LogLevel>) -> String {
        if let Some(directives) = &self.directives {
            return format!("{QUIET},{directives}");
        }
        let level = match (self.quiet, self.verbose) {
            (true, _) => LogLevel::Error,
            (false, 0) => configured.unwrap_or(if self.daemon { LogLevel::Info } else { LogLevel::Warn }),
            (false, 1) => LogLevel::Info,
            (false, _) => LogLevel::Debug,
        };
        let word = match level {
            LogLevel::Error => "error",
            LogLevel::Warn => "warn",
            LogLevel::Info => "info",
            LogLevel::Debug => "debug",
        };
        format!("warn,{QUIET},satchel={word}")
    }

    /// Checks the directives from the environment.
    ///
    /// # Errors
    /// The problem: an unknown level, or a filter that cannot be parsed.
    pub fn check(&self) -> Result<(), String> {
        let Some(directives) = &self.directives else { return Ok(()) };
        for part in directives.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let level = part.rsplit_once('=').map_or(part, |(_, level)| level).trim();
            // The filter takes any other single word for the name of a module, and would log nothing of ours.
            let names_our_target =
                part == level && (part.starts_with("satchel") || part.contains(['[', ':']));
            if !names_our_target && level.parse::<LevelFilter>().is_err() {
                return Err(format!(
                    "{level:?} is not a log level; use error, warn, info, debug, trace or off"
                ));
            }
        }
        EnvFilter::try_new(directives).map(drop).map_err(|error| error.to_string())
    }

    fn filter(&self, configured: Option<LogLevel>) -> EnvFilter {
        let builder = EnvFilter::builder().with_default_directive(LevelFilter::WARN.into());
        builder.parse_lossy(self.directives(configured))
    }
}

impl Log {
    /// Starts the log of this process.
    ///
    /// # Errors
    /// If the log file cannot be created.
    pub fn start(target: LogTarget, verbosity: Verbosity, configured: Option<LogLevel>) -> io::Result<Self> {
        let (filter, handle) = reload::Layer::new(verbosity.filter(configured));
        let registry = tracing_subscriber::registry().with(filter);
        // An event that cannot be written is dropped. To report it on the same closed stderr would panic in the thread
        // of the event, and sled waits forever for one of its own threads that dies this way.
        let layer = tracing_subscriber::fmt::layer().log_internal_errors(false);
        let layer = match target {
            LogTarget::Stderr { color } => layer.with_ansi(color).with_writer(io::stderr).boxed(),
            LogTarget::Journal => {
                layer.with_ansi(false).event_format(JournalFormat::new()).with_writer(io::stderr).boxed()
            }
            LogTarget::File { path, max_bytes, keep } => {
                layer.with_ansi(false).with_writer(RotatingFile::open(path, max_bytes, keep)?).boxed()
            }
        };
        if registry.with(layer).try_init().is_err() {
            // The process already has a log.
            return Ok(Self::default());
        }
        Ok(Self { verbosity, filter: Some(handle) })
    }

    /// Applies the level of new settings, unless flags or environment set one.
    pub fn set_level(&self, configured: Option<LogLevel>) {
        let Some(filter) = &self.filter else { return };
        if let Err(error) = filter.reload(self.verbosity.filter(configured)) {
            tracing::warn!(%error, "cannot change the log level");
        }
    }
}

/// Returns whether stderr is the stream that systemd names `device:inode`.
fn stderr_is(stream: &str) -> bool {
    let Some((device, inode)) = stream.split_once(':') else { return false };
    rustix::fs::fstat(io::stderr().as_fd())
        .is_ok_and(|stat| device.parse() == Ok(stat.st_dev) && inode.parse() == Ok(stat.st_ino))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn flags_override_the_configuration_and_the_environment_overrides_both() {
        let verbosity = |verbose, quiet, daemon| Verbosity { directives: None, verbose, quiet, daemon };
        let debug = Some(LogLevel::Debug);
        for (verbosity, configured, level) in [
            (verbosity(0, false, false), None, "warn"),
            (verbosity(0, false, true), None, "info"),
            (verbosity(0, false, true), debug, "debug"),
            (verbosity(0, true, true), debug, "error"),
            (verbosity(1, false, false), Some(LogLevel::Error), "info"),
            (verbosity(2, false, false), None, "debug"),
        ] {
            assert_eq!(
                verbosity.directives(configured),
                format!("warn,{QUIET},satchel={level}"),
                "{verbosity:?}"
            );
        }
        let named = Verbosity { directives: Some("trace".to_owned()), ..verbosity(0, true, true) };
        assert_eq!(named.directives(debug), format!("{QUIET},trace"));
    }

    #[test]
    fn a_log_file_overrides_the_journal_and_only_stderr_can_be_the_journal() {
        let mut log = Config::new("/d".into(), "/r".into()).log;
        for stream in [None, Some("1:2"), Some(""), Some("x:y")] {
            assert_eq!(
                LogTarget::for_daemon(&log, stream, true),
                LogTarget::Stderr { color: true },
                "{stream:?}"
            );
        }
        if let Ok(stat) = rustix::fs::fstat(io::stderr().as_fd()) {
            let stream = format!("{}:{}", stat.st_dev, stat.st_ino);
            assert_eq!(LogTarget::for_daemon(&log, Some(&stream), true), LogTarget::Journal);
            log.file = Some("/l".into());
            let file = LogTarget::File { path: "/l".into(), max_bytes: log.max_bytes, keep: log.keep };
            assert_eq!(LogTarget::for_daemon(&log, Some(&stream), true), file);
        }
    }
}
