//! What the daemon refused: its message, exit code, and what to do about it.

use std::error::Error;

use tonic::{Code, Status};
use tonic_types::StatusExt;

use super::{CliError, Exit, fields};

/// A status that the daemon sent.
#[derive(Debug)]
pub struct Refusal(Status);

impl Refusal {
    /// Returns the message of the daemon.
    pub(super) fn message(&self) -> String {
        if self.connection_ended() {
            return "the connection to the daemon was lost".to_owned();
        }
        match (self.0.message(), self.0.code()) {
            ("", code) => format!("the daemon refused the request: {code}"),
            (message, _) => self.with_option_names(message),
        }
    }

    /// Returns the message with the names of fields replaced by those that people use.
    fn with_option_names(&self, message: &str) -> String {
        let details = self.0.get_details_bad_request();
        let violations = details.map(|details| details.field_violations).unwrap_or_default();
        let named = violations.iter().find_map(|violation| {
            let rest = message.strip_prefix(&violation.field)?;
            rest.starts_with(' ').then(|| format!("{}{rest}", fields::name(&violation.field)))
        });
        named.unwrap_or_else(|| message.to_owned())
    }

    /// Returns whether the connection ended instead of an answer: the message is one of the transport then.
    fn connection_ended(&self) -> bool {
        self.0.source().is_some_and(<dyn Error>::is::<tonic::transport::Error>)
    }

    /// Returns whether the daemon did not answer.
    pub(super) fn is_unavailable(&self) -> bool {
        self.0.code() == Code::Unavailable
    }

    /// Returns the reason of `proto/README.md`; empty if there is none.
    pub(super) fn reason(&self) -> String {
        reason_of(&self.0)
    }

    /// Returns the exit code for the status.
    pub(super) fn exit(&self) -> Exit {
        exit_of(self.0.code())
    }

    /// Returns what to do about the reasons of `proto/README.md`.
    pub(super) fn remedy(&self) -> Option<String> {
        let remedy = match self.reason().as_str() {
            "FIELD_INVALID" => return field_lines(&self.0),
            "PAGE_TOKEN_INVALID" => "run the command again",
            "MEMORY_NOT_FOUND" => "`satchel memories list --status all` lists all memories",
            "RELATION_NOT_FOUND" => "`satchel relations list` lists all relations",
            "CHANGE_NOT_FOUND" => {
                "use the token that the change printed; `satchel memories history ID` shows all versions"
            }
            "ETAG_MISMATCH" => {
                "the record was changed in the meantime; run the command again if the change is still right"
            }
            "MATCH_COUNT_CHANGED" => "run the command with --dry-run again",
            "CONVERSATION_NOT_FOUND" => "`satchel conversations list` lists all conversations",
            "MESSAGE_NOT_FOUND" => "`satchel conversations show ID --tree` shows all messages",
            "IMPORT_NOT_FOUND" => "`satchel imports list` lists all imports",
            "PLUGIN_NOT_FOUND" => "`satchel plugins list` lists the importers",
            "PLUGIN_CONSENT_NEEDED" => "run the command again, and agree to it",
            "SOURCE_NOT_FOUND" => "`satchel sources list` lists the watched folders",
            "EXPORT_NOT_FOUND" => "`satchel exports list` lists all exports",
            "IMPORT_STATE" => "`satchel imports list` shows the state of each import",
            "OUTPUT_EXISTS" => {
                "choose a file that does not exist, or a folder that is empty or does not exist"
            }
            "OUTPUT_REFUSED" => "choose a path that you can write to",
            "BUNDLE_GONE" => "put the bundle back, or export again",
            "DISK_FULL" => "free some space and run the command again; the stored data is intact",
            "STORE_CORRUPT" => "run `satchel doctor` to see what is affected",
            "STORE_STOPPED" => "check the disk, then restart the daemon",
            "SHUTTING_DOWN" => "run the command again when the daemon has stopped",
            "DEVICE_NOT_FOUND" => "`satchel devices list --all` lists all devices",
            "PAIRING_NOT_FOUND" => "run `satchel devices pair` again",
            "PAIRING_REFUSED" => "run `satchel devices pair` there again, and enter the new code",
            "NO_CREDENTIALS" | "CERTIFICATE_EXPIRED" => {
                "run `satchel devices pair` there, and `satchel pair CODE` here"
            }
            "PEER_NOT_FOUND" => "`satchel peers list` lists all peers",
            "PEER_PAUSED" => "ask on the other machine; `satchel peers resume` there resumes it",
            "ATTACHMENT_ELSEWHERE" => "`satchel peers list` shows which peers can be reached",
            "PEER_KEY_UNKNOWN" => "run `satchel sync` once while both daemons can reach each other",
            "PEER_UNREACHABLE" => {
                "check that `satchel serve --listen ADDR:PORT` runs there and that no firewall is between"
            }
            "DEVICE_REVOKED" => {
                "ask the owner; `satchel devices pair` there and `satchel pair CODE` here pair this device anew"
            }
            "POLICY_CHANGED" => "run the command again",
            "SCOPE_MISSING" => return missing_scope(&self.0),
            "ACCESS_DENIED" if self.0.message().ends_with(PATH_DENIED) => {
                "run the command on the machine of the daemon, where the path is"
            }
            "NOT_OWNER" => "run the command as the user who owns the data directory",
            "INTERNAL" => return request_id(&self.0),
            _ if self.0.code() == Code::Unavailable => {
                "check whether the daemon is still running, and run the command again"
            }
            _ => return None,
        };
        Some(remedy.to_owned())
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message())
    }
}

impl Error for Refusal {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}

impl From<Status> for CliError {
    fn from(status: Status) -> Self {
        Self::Refused(Box::new(Refusal(status)))
    }
}

pub(super) fn exit_of(code: Code) -> Exit {
    match code {
        Code::InvalidArgument => Exit::Usage,
        Code::PermissionDenied | Code::Unauthenticated => Exit::NoPermission,
        Code::Cancelled => Exit::Cancelled,
        Code::Ok
        | Code::Unknown
        | Code::DeadlineExceeded
        | Code::NotFound
        | Code::AlreadyExists
        | Code::ResourceExhausted
        | Code::FailedPrecondition
        | Code::Aborted
        | Code::OutOfRange
        | Code::Unimplemented
        | Code::Internal
        | Code::Unavailable
        | Code::DataLoss => Exit::Failed,
    }
}

/// Returns the reason of `proto/README.md` in a status; empty if there is none.
pub(super) fn reason_of(status: &Status) -> String {
    status.get_details_error_info().map(|info| info.reason).unwrap_or_default()
}

/// The end of the daemon's message for a device that names a path.
const PATH_DENIED: &str = "names a path on the daemon's machine";

/// Names the permission as `satchel devices update --scope` does.
fn missing_scope(status: &Status) -> Option<String> {
    let info = status.get_details_error_info()?;
    let scope = info.metadata.get("scope")?.strip_prefix("SCOPE_")?.to_lowercase().replace('_', "-");
    Some(format!(
        "it lacks the permission {scope}; `satchel devices show NAME` on the machine of the daemon lists those that it has, and \
         `satchel devices update NAME --scope …` sets them"
    ))
}

fn field_lines(status: &Status) -> Option<String> {
    let bad = status.get_details_bad_request()?;
    let named = bad.field_violations.iter().filter(|violation| !status.message().contains(&violation.field));
    let lines: Vec<String> = named
        .map(|violation| format!("{}: {}", fields::name(&violation.field), violation.description))
        .collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

fn request_id(status: &Status) -> Option<String> {
    let id = status.metadata().get("x-request-id")?.to_str().ok()?;
    Some(format!("look for {id} in the log of the daemon, and report the problem"))
}
