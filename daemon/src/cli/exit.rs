//! The exit codes of the program, which scripts rely on.

use std::process::ExitCode;

/// The exit codes of `satchel`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Done, or nothing had to be done.
    Done,
    /// The requested check failed (`verify`, `doctor`, `config check`).
    CheckFailed,
    /// The command line is not valid.
    Usage,
    /// No importer recognises the files.
    Unrecognized,
    /// The command failed or was refused.
    Failed,
    /// The caller has no permission.
    NoPermission,
    /// The daemon named with `--server` does not answer.
    Unreachable,
    /// Ctrl-C was pressed.
    Cancelled,
}

impl Exit {
    /// Returns the number that the shell sees.
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::CheckFailed => 1,
            Self::Usage => 2,
            Self::Unrecognized => 3,
            Self::Failed => 4,
            Self::NoPermission => 5,
            Self::Unreachable => 6,
            Self::Cancelled => 130,
        }
    }

    /// Returns the more severe of two results: cancelled before failed before unrecognised before done.
    #[must_use]
    pub fn worst(self, other: Self) -> Self {
        if other.code() > self.code() { other } else { self }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_are_stable() {
        let all = [
            Exit::Done,
            Exit::CheckFailed,
            Exit::Usage,
            Exit::Unrecognized,
            Exit::Failed,
            Exit::NoPermission,
            Exit::Unreachable,
            Exit::Cancelled,
        ];
        assert_eq!(all.map(Exit::code), [0, 1, 2, 3, 4, 5, 6, 130]);
    }

    #[test]
    fn the_worst_of_several_results_wins() {
        let worst = |all: &[Exit]| all.iter().fold(Exit::Done, |worst, &next| worst.worst(next));
        assert_eq!(worst(&[]), Exit::Done);
        assert_eq!(worst(&[Exit::Unrecognized, Exit::Done]), Exit::Unrecognized);
        assert_eq!(worst(&[Exit::Unrecognized, Exit::Failed, Exit::Done]), Exit::Failed);
        assert_eq!(worst(&[Exit::Failed, Exit::Cancelled]), Exit::Cancelled);
    }
}
