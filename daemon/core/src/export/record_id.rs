//! Compact record ids: nearly all ids are UUIDs, which take 16 bytes instead of a string on the heap.

use std::cmp::Ordering;

use uuid::Uuid;

/// A record id. **Invariant:** ids sort like their text (`ids_sort_as_their_texts`), because the memories of an export
/// are in that order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RecordId {
    /// A UUID in lower case with hyphens.
    Uuid([u8; 16]),
    /// Any other id.
    Text(Box<str>),
}

impl RecordId {
    /// Calls `with` with the text of the id.
    pub(super) fn with_text<T>(&self, with: impl FnOnce(&str) -> T) -> T {
        match self {
            Self::Uuid(bytes) => {
                with(Uuid::from_bytes(*bytes).hyphenated().encode_lower(&mut Uuid::encode_buffer()))
            }
            Self::Text(text) => with(text),
        }
    }
}

impl From<&str> for RecordId {
    fn from(text: &str) -> Self {
        // `try_parse` also accepts other spellings, which are different ids.
        let uuid = Uuid::try_parse(text).ok().map(|uuid| Self::Uuid(uuid.into_bytes()));
        uuid.filter(|id| id.with_text(|own| own == text)).unwrap_or_else(|| Self::Text(text.into()))
    }
}

impl Ord for RecordId {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            // Digits sort before letters both as hexadecimal values and in ASCII, and all hyphens are at the same
            // positions.
            (Self::Uuid(one), Self::Uuid(other)) => one.cmp(other),
            (one, other) => one.with_text(|one| other.with_text(|other| one.cmp(other))),
        }
    }
}

impl PartialOrd for RecordId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_sort_as_their_texts() {
        let texts = [
            "67e55044-10b1-426f-9247-bb680e5fe0c8",
            "67E55044-10B1-426F-9247-BB680E5FE0C8",
            "67e5504410b1426f9247bb680e5fe0c8",
            "{67e55044-10b1-426f-9247-bb680e5fe0c8}",
            "a7e55044-10b1-426f-9247-bb680e5fe0c8",
            "97e55044-10b1-426f-9247-bb680e5fe0c8",
            "",
            "9",
            "mem-1",
            "é",
        ];
        for one in texts {
            assert_eq!(RecordId::from(one).with_text(str::to_owned), one);
            for other in texts {
                assert_eq!(RecordId::from(one).cmp(&RecordId::from(other)), one.cmp(other), "{one} {other}");
            }
        }
        assert!(size_of::<RecordId>() <= 24, "an export holds millions of them");
    }
}
