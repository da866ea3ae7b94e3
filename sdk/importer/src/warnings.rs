//! Warnings about one conversation, each of them once.

use std::collections::BTreeSet;

use crate::Sink;

/// Characters of a name that [`shortened`] leaves.
const MAX_NAME: usize = 64;

/// Gives each warning about one conversation once, because one of a kind is enough to see that the format has changed.
///
/// A warning should not name what differs between the records, such as an id: the locator does.
///
/// ```
/// # use satchel_importer::{Sink, warnings::{Warnings, shortened}};
/// # fn warn_of_role(role: &str, locator: &str, warnings: &mut Warnings, sink: &mut Sink) {
/// warnings.warn(locator, format!("the role {:?} is unknown", shortened(role)), sink);
/// # }
/// let warnings = Warnings::new("there are more kinds of warnings about this chat, which are not listed");
/// ```
#[derive(Debug)]
pub struct Warnings {
    given: BTreeSet<String>,
    more: &'static str,
    more_given: bool,
}

impl Warnings {
    /// Different warnings that are given.
    pub const MAX: usize = 64;

    /// `more` is the warning in place of all those beyond [`Warnings::MAX`].
    #[must_use]
    pub fn new(more: &'static str) -> Self {
        Self { given: BTreeSet::new(), more, more_given: false }
    }

    /// Gives `warning` unless it was given before. If there are already [`Warnings::MAX`] others, calls
    /// [`Warnings::warn_of_more`] instead.
    pub fn warn(&mut self, locator: &str, warning: String, sink: &mut Sink) {
        if self.given.contains(&warning) {
            return;
        }
        if self.given.len() == Self::MAX {
            return self.warn_of_more(locator, sink);
        }
        sink.warn(locator, &warning);
        self.given.insert(warning);
    }

    /// Warns that there are warnings that are not listed, unless it was said before.
    pub fn warn_of_more(&mut self, locator: &str, sink: &mut Sink) {
        if !std::mem::replace(&mut self.more_given, true) {
            sink.warn(locator, self.more);
        }
    }
}

/// The first 64 characters of a name from an export, for a warning: names may be as long as the export.
pub fn shortened(name: &str) -> String {
    name.chars().take(MAX_NAME).collect()
}

#[cfg(test)]
mod tests {
    use satchel_pam::record::Line;

    use super::*;

    fn given(sink: Sink) -> Vec<(String, String)> {
        let warning = |line| match line {
            Line::Warning(warning) => Some((warning.locator, warning.message)),
            _ => None,
        };
        sink.into_lines().into_iter().filter_map(warning).collect()
    }

    #[test]
    fn a_warning_is_given_once() {
        let (mut warnings, mut sink) = (Warnings::new("more"), Sink::collecting());
        for (locator, warning) in [("1", "a"), ("2", "b"), ("3", "a")] {
            warnings.warn(locator, warning.to_owned(), &mut sink);
        }
        assert_eq!(given(sink), [("1".into(), "a".into()), ("2".into(), "b".into())]);
    }

    #[test]
    fn one_warning_stands_for_all_beyond_the_limit() {
        let (mut warnings, mut sink) = (Warnings::new("more"), Sink::collecting());
        for number in 0..Warnings::MAX + 3 {
            for _ in 0..2 {
                warnings.warn(&number.to_string(), number.to_string(), &mut sink);
            }
        }
        warnings.warn_of_more("last", &mut sink);
        let given = given(sink);
        assert_eq!(given.len(), Warnings::MAX + 1);
        assert_eq!(given.last(), Some(&(Warnings::MAX.to_string(), "more".to_owned())));
    }

    #[test]
    fn a_caller_can_say_that_there_are_more() {
        let (mut warnings, mut sink) = (Warnings::new("more"), Sink::collecting());
        warnings.warn_of_more("1", &mut sink);
        warnings.warn_of_more("2", &mut sink);
        warnings.warn("3", "a".to_owned(), &mut sink);
        assert_eq!(given(sink), [("1".into(), "more".into()), ("3".into(), "a".into())]);
    }

    #[test]
    fn names_are_shortened_at_a_character() {
        assert_eq!(shortened("role"), "role");
        assert_eq!(shortened(&"é".repeat(100)), "é".repeat(64));
    }
}
