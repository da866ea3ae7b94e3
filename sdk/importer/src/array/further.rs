//! Reports what stands behind the only record of a file.

use super::{JsonArray, Surveyed};
use crate::{Bundle, ImportError, Sink};

impl JsonArray<'_> {
    /// Reports every element but the first one as skipped, with this reason; for files that have only one record.
    ///
    /// # Errors
    /// If the file cannot be read, or the host asks the run to stop.
    pub fn skip_further(&self, bundle: &Bundle, sink: &mut Sink, reason: &str) -> Result<(), ImportError> {
        self.survey_all(bundle, |found| {
            let (Surveyed::Element(element) | Surveyed::TooLong(element)) = found;
            if element.index() > 0 {
                sink.skip(self.kind, &element.locator(), reason)?;
            }
            Ok(true)
        })
    }
}

#[cfg(test)]
mod tests {
    use satchel_pam::record::Line;

    use super::*;

    fn skips(text: String) -> Vec<String> {
        let (bundle, mut sink) = (Bundle::from_files([("a.json", text)]), Sink::collecting());
        let file = JsonArray::new("a.json").limit(20);
        file.skip_further(&bundle, &mut sink, "only one fits").expect("it can be read");
        let skip = |line| match line {
            Line::Skip(skip) => Some(format!("{}: {}", skip.locator, skip.reason)),
            _ => None,
        };
        sink.into_lines().into_iter().filter_map(skip).collect()
    }

    #[test]
    fn what_follows_is_skipped_also_if_it_is_too_long() {
        assert!(skips("{\"a\":1}".to_owned()).is_empty());
        let long = format!("{{\"a\":\"{}\"}}", "x".repeat(50));
        assert_eq!(
            skips(format!("{{\"a\":1}} {long} {{}}")),
            ["a.json[1]: only one fits", "a.json[2]: only one fits"]
        );
    }

    #[test]
    fn none_of_many_is_left_out() {
        assert_eq!(skips("{}".repeat(1001)).len(), 1000);
    }
}
