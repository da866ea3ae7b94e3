//! A macro for enums of the names that PAM defines.

/// Defines an enum of names with `as_str`, `ALL`, `Display` and `FromStr`; serialised as text.
macro_rules! names {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $($(#[$doc])* #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// All values, in the order of the specification.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The name in documents.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::names::WordError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::ALL.iter().copied().find(|one| one.as_str() == text).ok_or_else(|| $crate::names::WordError {
                    what: stringify!($name),
                    found: text.chars().take(100).collect(),
                    known: Self::ALL.iter().map(|one| one.as_str()).collect::<Vec<_>>().join(", "),
                })
            }
        }
    };
}

pub(crate) use names;

/// A name that is not defined.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{found:?} is not a {what}; known are {known}")]
pub struct WordError {
    pub(crate) what: &'static str,
    pub(crate) found: String,
    pub(crate) known: String,
}
