//! The generations of MemU: those that are read, and those that are recognized and refused.

/// Lists `profile`, `event` and `mind`, as JSON.
pub(crate) const LISTS: &str = "memu-importer/2025.07";

/// The SQLite database of version 1, which is read too.
pub(crate) const DATABASE: &str = "memu-importer/2026.01";

/// The formats, oldest first.
pub(crate) const FORMATS: [&str; 6] = [
    "memu-importer/2025.06",
    LISTS,
    "memu-importer/2025.08",
    "memu-importer/2025.11",
    DATABASE,
    "memu-importer/2026.07",
];

/// A generation that is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Generation {
    /// `profile_memory` and `event_memory`, before the lists.
    Paragraphs,
    /// Version 0.2: memories by category, files of embeddings.
    Categories,
    /// Version 1: resources, items and categories.
    Items,
    /// Version 2: recall files and their segments.
    RecallFiles,
}

impl Generation {
    const ALL: [Self; 4] = [Self::Paragraphs, Self::Categories, Self::Items, Self::RecallFiles];

    /// Its format id.
    pub(crate) fn format(self) -> &'static str {
        let [paragraphs, _, categories, items, _, recall_files] = FORMATS;
        match self {
            Self::Paragraphs => paragraphs,
            Self::Categories => categories,
            Self::Items => items,
            Self::RecallFiles => recall_files,
        }
    }

    /// The generation that `format` names.
    pub(crate) fn of(format: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|generation| generation.format() == format)
    }

    /// Why its files are not read.
    pub(crate) fn refusal(self) -> String {
        let data = match self {
            Self::Paragraphs => "paragraphs of a memory from before July 2025",
            Self::Categories => "memories by category of version 0.2",
            Self::Items => "items and categories of version 1",
            Self::RecallFiles => "recall files of version 2",
        };
        format!(
            "this is data of another MemU, {data}; what is read is that of July 2025, with the lists profile, event and \
             mind, and its conversations, and the SQLite database of version 1"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_is_either_read_or_refused() {
        let refused: Vec<bool> = FORMATS.iter().map(|format| Generation::of(format).is_some()).collect();
        assert_eq!(refused, [true, false, true, true, false, true]);
        for generation in Generation::ALL {
            assert_eq!(Generation::of(generation.format()), Some(generation));
        }
    }
}
