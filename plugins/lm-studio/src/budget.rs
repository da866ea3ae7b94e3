//! Bounds what one entry of `messages` becomes, because a guest has 128 MiB for it.

/// Steps and parts of all versions. Real entries have fewer than a thousand.
const MAX_ITEMS: usize = 50_000;
/// Messages that they become.
const MAX_MESSAGES: usize = 25_000;
/// The reason of a skip.
pub(crate) const TOO_MANY: &str = "there are too many steps, parts or versions before it in the same message";

/// What an entry has used so far.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    items: usize,
    messages: usize,
}

impl Budget {
    /// Counts a step or a part; false if it is beyond the bound.
    pub(crate) fn take_item(&mut self) -> bool {
        self.items += 1;
        self.items <= MAX_ITEMS
    }

    /// Counts a message; false if it is beyond the bound.
    pub(crate) fn take_message(&mut self) -> bool {
        self.messages += 1;
        self.messages <= MAX_MESSAGES
    }
}
