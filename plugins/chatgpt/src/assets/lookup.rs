//! Look-ups of files by the messages of one conversation, recorded so that a later run can repeat them.

/// One look-up.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Lookup {
    /// A file by its id.
    File(String),
    /// A canvas document by its id.
    Document(String),
    /// A file of the library by its name, for a message of a conversation.
    Named { name: String, message: String, thread: String },
}

impl Lookup {
    /// Its type and its arguments.
    pub(crate) fn fields(&self) -> Vec<&str> {
        match self {
            Self::File(id) => vec!["f", id],
            Self::Document(id) => vec!["d", id],
            Self::Named { name, message, thread } => vec!["n", name, message, thread],
        }
    }

    /// The look-up with these [`Lookup::fields`].
    pub(crate) fn parse(fields: &[&str]) -> Option<Self> {
        let owned = |field: &&str| (*field).to_owned();
        match fields {
            ["f", id] => Some(Self::File(owned(id))),
            ["d", id] => Some(Self::Document(owned(id))),
            ["n", name, message, thread] => {
                Some(Self::Named { name: owned(name), message: owned(message), thread: owned(thread) })
            }
            _ => None,
        }
    }
}
