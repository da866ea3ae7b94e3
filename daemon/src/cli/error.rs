//! The errors of commands, what to do about them, and how they determine the exit code.

mod fields;
mod refusal;
mod remote;

use std::{
    error::Error,
    io,
    path::{Path, PathBuf},
};

use satchel_core::{clock::ClockError, data_dir::DataDirError, vault::VaultError};
use satchel_devices::DevicesError;
use satchel_server::{RunError, connect::RemoteError};
use satchel_store::StoreError;
use serde::Serialize;

pub use self::refusal::Refusal;
use super::{exit::Exit, text};

/// Why a command ended early.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// The command line asks for something that cannot be done.
    #[error("{0}")]
    Usage(String),
    /// The command line is valid, but cannot be executed in the current state.
    #[error("{0}")]
    Declined(String),
    /// There is no data directory, and the command does not create one.
    #[error("no data directory at {dir:?}")]
    NoData { dir: PathBuf },
    /// No record has this id.
    #[error("no {kind} has an id that starts with {given:?}")]
    NoSuch { kind: &'static str, given: String },
    /// There are no records of this kind, so there is no newest one.
    #[error("there are no {kind}s yet")]
    NoneYet { kind: &'static str },
    /// No record has this name or id.
    #[error("no {kind} has the name {given:?}, or an id or name that starts with it")]
    NoSuchName { kind: &'static str, given: String },
    /// The ids of several records start this way.
    #[error("{given:?} matches more than one {kind}: {}", list(fitting))]
    Ambiguous { kind: &'static str, given: String, fitting: Vec<String> },
    /// The daemon refused the request.
    #[error("{}", .0.message())]
    Refused(#[source] Box<Refusal>),
    /// The daemon named with `--server` does not answer.
    #[error("cannot reach the daemon at {address:?}")]
    Unreachable { address: String, source: Box<dyn Error + Send + Sync> },
    /// The paired daemon named with `--server`, or the one to pair with, cannot be used.
    #[error("cannot connect to the daemon {server:?}")]
    Remote { server: String, source: Box<RemoteError> },
    /// The keys for paired daemons cannot be read or written.
    #[error(transparent)]
    Credentials(DevicesError),
    /// The store of the data directory cannot be served here.
    #[error("cannot open the data directory {dir:?}")]
    Store { dir: PathBuf, source: Box<dyn Error + Send + Sync> },
    /// The folder is not a data directory or must not be used as one, or an output path lies inside it.
    #[error(transparent)]
    DataDir(DataDirError),
    /// The configuration cannot be read.
    #[error("invalid configuration")]
    Config(#[source] Box<dyn Error + Send + Sync>),
    /// The file system refused.
    #[error("cannot {action} {path:?}")]
    File { action: &'static str, path: PathBuf, source: io::Error },
    /// The input to be checked is not a bundle.
    #[error("{0}")]
    NoBundle(String),
    /// The clock of this machine is not usable.
    #[error(transparent)]
    Clock(ClockError),
    /// Writing to stdout failed.
    #[error("cannot write the output")]
    Output(#[source] io::Error),
    /// A step of another kind failed.
    #[error("{what}")]
    Step { what: String, source: Box<dyn Error + Send + Sync> },
    /// Ctrl-C was pressed.
    #[error("cancelled")]
    Cancelled,
}

impl CliError {
    /// Returns a function that creates a [`CliError::File`].
    pub(super) fn file(action: &'static str, path: &Path) -> impl Fn(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::File { action, path: path.clone(), source }
    }

    /// Creates a [`CliError::Step`].
    pub(super) fn step(what: impl Into<String>, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Step { what: what.into(), source: source.into() }
    }

    /// Returns the exit code of the program.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Usage(_) | Self::DataDir(DataDirError::OutputInside { .. }) => Exit::Usage,
            Self::DataDir(DataDirError::OtherOwner { .. }) => Exit::NoPermission,
            Self::Refused(refusal) => refusal.exit(),
            Self::Unreachable { .. } => Exit::Unreachable,
            Self::Remote { source, .. } => remote::exit(source),
            Self::Credentials(error) => remote::credentials_exit(error),
            Self::Store { source, .. } | Self::Config(source) | Self::Step { source, .. }
                if denied(source.as_ref()) =>
            {
                Exit::NoPermission
            }
            Self::File { source, .. } | Self::DataDir(DataDirError::Access { source, .. })
                if source.kind() == io::ErrorKind::PermissionDenied =>
            {
                Exit::NoPermission
            }
            // The reader of a pipe has closed it because it has read enough.
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Done,
            Self::Cancelled => Exit::Cancelled,
            Self::Declined(_)
            | Self::NoData { .. }
            | Self::NoneYet { .. }
            | Self::NoSuch { .. }
            | Self::NoSuchName { .. }
            | Self::Ambiguous { .. }
            | Self::NoBundle(_)
            | Self::Store { .. }
            | Self::DataDir(_)
            | Self::Clock(_)
            | Self::Config(_)
            | Self::File { .. }
            | Self::Output(_)
            | Self::Step { .. } => Exit::Failed,
        }
    }

    /// Returns whether the daemon went away before the command was done.
    pub(super) fn connection_lost(&self) -> bool {
        matches!(self, Self::Refused(refusal) if refusal.is_unavailable())
    }

    /// Returns what to do, if the message does not say it.
    pub fn remedy(&self) -> Option<String> {
        match self {
            Self::NoData { .. } => Some(
                "use --data-dir if it is somewhere else; to create it, run `satchel import PATH` or `satchel serve`"
                    .to_owned(),
            ),
            Self::NoSuch { kind, .. } | Self::NoSuchName { kind, .. } => Some(format!("`satchel {}` lists them", list_command(kind))),
            Self::Ambiguous { .. } => Some("type more characters of the id".to_owned()),
            Self::Refused(refusal) => refusal.remedy(),
            Self::Unreachable { .. } => {
                Some("start `satchel serve` there, or omit --server and unset SATCHEL_SERVER".to_owned())
            }
            Self::Remote { server, source } => remote::remedy(server, source),
            Self::Credentials(error) => remote::credentials_remedy(error),
            Self::NoBundle(_) => Some(
                "pass a folder or ZIP written by `satchel export`, or its memory-store.json".to_owned(),
            ),
            // Its own message names the process that has it, or what opens it.
            Self::Store { source, .. } if locked(source.as_ref()) || closed(source.as_ref()) => None,
            Self::Store { source, .. } if unusable(source.as_ref()) => {
                Some("choose a writable folder with --data-dir".to_owned())
            }
            Self::Store { .. } => Some("run `satchel doctor` for details".to_owned()),
            Self::Usage(_)
            | Self::DataDir(_)
            | Self::Clock(_)
            | Self::Declined(_)
            | Self::NoneYet { .. }
            | Self::Config(_)
            | Self::File { .. }
            | Self::Output(_)
            | Self::Step { .. }
            | Self::Cancelled => None,
        }
    }

    /// Returns the machine-readable name of the error: a reason from `proto/README.md` if the daemon refused,
    /// otherwise one of the command line's own.
    pub fn reason(&self) -> String {
        let name = match self {
            Self::Usage(_) => "USAGE",
            Self::Declined(_) => "DECLINED",
            Self::NoData { .. } => "DATA_DIR_MISSING",
            Self::NoSuch { kind, .. } | Self::NoSuchName { kind, .. } | Self::NoneYet { kind } => {
                return format!("{}_NOT_FOUND", kind.to_uppercase());
            }
            Self::Ambiguous { .. } => "ID_AMBIGUOUS",
            Self::Refused(refusal) => match refusal.reason() {
                reason if reason.is_empty() => "REFUSED",
                reason => return reason,
            },
            Self::Unreachable { .. } => "DAEMON_UNREACHABLE",
            Self::Remote { source, .. } => return remote::reason(source),
            Self::Credentials(error) => remote::credentials_reason(error),
            Self::Store { source, .. } if locked(source.as_ref()) => "DATA_DIR_IN_USE",
            Self::Store { source, .. } if closed(source.as_ref()) => "DATA_DIR_CLOSED",
            Self::DataDir(DataDirError::OtherOwner { .. }) => "DATA_DIR_OF_OTHER_USER",
            Self::DataDir(DataDirError::OutputInside { .. }) => "OUTPUT_IN_DATA_DIR",
            Self::Store { .. } | Self::DataDir(_) => "DATA_DIR_UNUSABLE",
            Self::Clock(_) => "CLOCK_WRONG",
            Self::Config(_) => "CONFIG_INVALID",
            Self::File { .. } => "FILE_REFUSED",
            Self::NoBundle(_) => "BUNDLE_UNREADABLE",
            Self::Output(_) => "OUTPUT_REFUSED",
            Self::Step { .. } => "FAILED",
            Self::Cancelled => "CANCELLED",
        };
        name.to_owned()
    }

    /// Returns the messages of the causes, the nearest first, without repeated messages.
    fn causes(&self) -> Vec<String> {
        let mut messages = vec![self.to_string()];
        let mut next = self.source();
        while let Some(cause) = next {
            let text = cause.to_string();
            // A transparent error repeats its cause.
            if !messages.contains(&text) {
                messages.push(text);
            }
            next = cause.source();
        }
        messages.split_off(1)
    }

    /// Returns the error as the single JSON document that `--json` writes to stderr. Empty if there is nothing to
    /// report.
    pub fn report_json(&self) -> String {
        if self.exit() == Exit::Done {
            return String::new();
        }
        let (reason, message) = (self.reason(), self.to_string());
        ErrorDocument::text(&reason, &message, &self.causes(), self.remedy().as_deref(), self.exit())
    }

    /// Returns the lines for stderr: the error, its causes, and what to do. Empty if there is nothing to report.
    pub fn report(&self) -> String {
        if self.exit() == Exit::Done {
            return String::new();
        }
        let mut lines = format!("error: {}\n", indented(&self.to_string()));
        for cause in self.causes() {
            text::append(&mut lines, format_args!("  caused by: {}\n", indented(&cause)));
        }
        if let Some(remedy) = self.remedy() {
            text::append(&mut lines, format_args!("  hint: {}\n", indented(&remedy)));
        }
        lines
    }
}

/// What `--json` prints for an error.
#[derive(Debug, Serialize)]
pub(super) struct ErrorDocument<'a> {
    error: ErrorFields<'a>,
}

#[derive(Debug, Serialize)]
struct ErrorFields<'a> {
    /// `UPPER_SNAKE_CASE`, stable.
    reason: &'a str,
    message: &'a str,
    causes: &'a [String],
    remedy: Option<&'a str>,
    exit_code: u8,
}

impl<'a> ErrorDocument<'a> {
    /// Returns the document with its line end.
    pub(super) fn text(
        reason: &'a str,
        message: &'a str,
        causes: &'a [String],
        remedy: Option<&'a str>,
        exit: Exit,
    ) -> String {
        let error = ErrorFields { reason, message, causes, remedy, exit_code: exit.code() };
        let text = serde_json::to_string_pretty(&Self { error });
        // Strings and a number can always be serialised as JSON.
        let mut text = text::escape_json(&text.unwrap_or_default());
        text.push('\n');
        text
    }
}

/// Returns the JSON document for a command line that cannot be parsed; `message` is the message of the parser.
pub fn usage_json(message: &str) -> String {
    let message = message.trim().strip_prefix("error: ").unwrap_or(message.trim());
    ErrorDocument::text("USAGE", message, &[], None, Exit::Usage)
}

/// Returns whether the data directory is encrypted and could not be opened. The error itself says what opens it.
fn closed(error: &(dyn Error + Send + Sync + 'static)) -> bool {
    error.is::<VaultError>() || matches!(error.downcast_ref::<RunError>(), Some(RunError::Vault(_)))
}

fn locked(error: &(dyn Error + Send + Sync + 'static)) -> bool {
    matches!(error.downcast_ref::<RunError>(), Some(RunError::Store(StoreError::Locked { .. })))
}

/// Returns whether the problem is the folder itself, not its contents.
fn unusable(error: &(dyn Error + Send + Sync + 'static)) -> bool {
    matches!(
        error.downcast_ref::<RunError>(),
        Some(RunError::DataDir(DataDirError::Access { .. } | DataDirError::NotAFolder { .. }))
    )
}

/// Returns whether the file system denied permission anywhere in the chain of causes.
fn denied(error: &(dyn Error + Send + Sync + 'static)) -> bool {
    let mut next: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(cause) = next {
        if cause.downcast_ref::<io::Error>().is_some_and(|io| io.kind() == io::ErrorKind::PermissionDenied) {
            return true;
        }
        next = cause.source();
    }
    false
}

fn indented(text: &str) -> String {
    text::clean(text).trim_end().replace('\n', "\n    ")
}

fn list_command(kind: &str) -> &'static str {
    match kind {
        "memory" => "memories list --status all",
        "import" => "imports list",
        "relation" => "relations list",
        "export" => "exports list",
        "message" => "conversations show ID --tree",
        "device" => "devices list --all",
        "peer" => "peers list",
        _ => "conversations list",
    }
}

fn list(ids: &[String]) -> String {
    ids.join(", ")
}

#[cfg(test)]
mod tests {
    use tonic::{Code, Status};
    use tonic_types::{ErrorDetails, StatusExt as _};

    use super::*;

    fn refused(code: Code, reason: &str, message: &str) -> CliError {
        let details =
            ErrorDetails::with_error_info(reason, "satchel.local", std::collections::HashMap::new());
        Status::with_error_details(code, message, details).into()
    }

    #[test]
    fn a_refusal_names_the_problem_and_what_to_do() {
        let error = refused(Code::FailedPrecondition, "OUTPUT_EXISTS", "\"/b\" exists already");
        assert_eq!(
            error.report(),
            "error: \"/b\" exists already\n  hint: choose a file that does not exist, or a folder that is empty or does not exist\n"
        );
        assert_eq!(error.exit(), Exit::Failed);
    }

    #[test]
    fn a_refusal_lists_the_invalid_fields() {
        let mut details =
            ErrorDetails::with_error_info("FIELD_INVALID", "satchel.local", std::collections::HashMap::new());
        details.add_bad_request_violation("platform", "no importer reads exports of \"x\"");
        let error: CliError =
            Status::with_error_details(Code::InvalidArgument, "a field is wrong", details).into();
        assert_eq!(
            error.report(),
            "error: a field is wrong\n  hint: --provider: no importer reads exports of \"x\"\n"
        );
        assert_eq!(error.exit(), Exit::Usage);
    }

    #[test]
    fn a_refusal_names_the_option_of_a_field() {
        let mut details =
            ErrorDetails::with_error_info("FIELD_INVALID", "satchel.local", std::collections::HashMap::new());
        details.add_bad_request_violation("age_recipients", "cannot be used: \"x\" is no recipient");
        let message = "age_recipients cannot be used: \"x\" is no recipient";
        let error: CliError = Status::with_error_details(Code::InvalidArgument, message, details).into();
        assert_eq!(error.report(), "error: --encrypt-to cannot be used: \"x\" is no recipient\n");
    }

    #[test]
    fn an_error_is_a_json_document_with_its_reason() {
        let error = refused(Code::NotFound, "MEMORY_NOT_FOUND", "there is no memory \"\u{9b}\"");
        let text = error.report_json();
        assert!(!text.contains('\u{9b}') && text.ends_with("}\n"), "{text}");
        let document: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        assert_eq!(
            document.pointer("/error/reason").and_then(serde_json::Value::as_str),
            Some("MEMORY_NOT_FOUND")
        );
        assert_eq!(document.pointer("/error/exit_code").and_then(serde_json::Value::as_u64), Some(4));
        let missing = CliError::NoData { dir: "/nowhere".into() };
        assert_eq!((missing.exit(), missing.reason().as_str()), (Exit::Failed, "DATA_DIR_MISSING"));
        assert!(missing.report().contains("/nowhere") && missing.report().contains("--data-dir"));
        let closed = CliError::Output(io::Error::from(io::ErrorKind::BrokenPipe));
        assert_eq!(closed.report_json(), "");
        assert!(usage_json("error: unexpected argument '--x'\n").contains("\"reason\": \"USAGE\""));
    }

    #[test]
    fn status_codes_map_to_exit_codes() {
        assert_eq!(refused(Code::PermissionDenied, "NOT_OWNER", "m").exit(), Exit::NoPermission);
        assert_eq!(refused(Code::DataLoss, "STORE_CORRUPT", "m").exit(), Exit::Failed);
        let denied = io::Error::from(io::ErrorKind::PermissionDenied);
        let file = CliError::File { action: "read", path: "/p".into(), source: denied };
        assert_eq!(file.exit(), Exit::NoPermission);
        assert_eq!(file.report(), "error: cannot read \"/p\"\n  caused by: permission denied\n");
        let unreachable = CliError::Unreachable { address: "unix:/s".into(), source: "nobody".into() };
        assert_eq!(unreachable.exit(), Exit::Unreachable);
    }

    #[test]
    fn a_data_directory_that_cannot_be_created_is_not_reported_as_damaged() {
        let refused = |kind: io::ErrorKind| CliError::Store {
            dir: "/d".into(),
            source: RunError::DataDir(DataDirError::Access { path: "/d".into(), source: kind.into() }).into(),
        };
        let denied = refused(io::ErrorKind::PermissionDenied);
        assert_eq!(denied.exit(), Exit::NoPermission);
        assert!(denied.report().contains("--data-dir"), "{}", denied.report());
        assert_eq!(refused(io::ErrorKind::NotFound).exit(), Exit::Failed);
    }

    #[test]
    fn a_closed_pipe_is_not_an_error() {
        let error = CliError::Output(io::Error::from(io::ErrorKind::BrokenPipe));
        assert_eq!((error.exit(), error.report()), (Exit::Done, String::new()));
    }

    #[test]
    fn a_hostile_message_cannot_control_the_terminal() {
        let report = refused(Code::Internal, "INTERNAL", "\u{1b}]0;owned\u{7}\u{202e}").report();
        assert_eq!(report, "error: \\u{1b}]0;owned\\u{7}\\u{202e}\n");
    }
}
