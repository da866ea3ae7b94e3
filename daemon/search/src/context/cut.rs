//! Where a text that is too long ends: after a sentence, or else after a word.

use unicode_segmentation::UnicodeSegmentation as _;

/// Shortest beginning of a text that is worth quoting, in bytes.
const MIN_BYTES: usize = 80;
/// A text ends after a sentence if this leaves at least this part of what would fit, as a divisor.
const SENTENCE_SHARE: usize = 2;

/// Returns the end of the beginning of `text` that `fits`; `None` if that is too short to be of use.
///
/// `fits` must not accept a longer beginning than one that it refuses.
pub(super) fn end(text: &str, fits: impl Fn(&str) -> bool) -> Option<usize> {
    // The longest beginning that fits is in `low..high`.
    let (mut low, mut high) = (0, text.len() + 1);
    while high - low > 1 {
        let middle = usize::midpoint(low, high);
        if fits(&text[..text.floor_char_boundary(middle)]) {
            low = middle;
        } else {
            high = middle;
        }
    }
    let end = boundary(text, text.floor_char_boundary(low));
    (end >= MIN_BYTES).then_some(end)
}

/// Returns the last end of a sentence before `limit`, or of a word, or of a character as a person sees it.
fn boundary(text: &str, limit: usize) -> usize {
    if limit == text.len() {
        return limit;
    }
    let last = |bounds: &mut dyn Iterator<Item = (usize, &str)>| {
        let ends = bounds.map(|(start, part)| (start + part.len(), start + part.trim_end().len()));
        ends.take_while(|(end, _)| *end <= limit).map(|(_, trimmed)| trimmed).last().unwrap_or(0)
    };
    let sentence = last(&mut text.split_sentence_bound_indices());
    if sentence * SENTENCE_SHARE >= limit {
        return sentence;
    }
    let word = last(&mut text.split_word_bound_indices());
    if word * SENTENCE_SHARE >= limit {
        return word;
    }
    let ends = text.grapheme_indices(true).map(|(start, part)| start + part.len());
    ends.take_while(|end| *end <= limit).last().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str, max_bytes: usize) -> Option<&str> {
        end(text, |text| text.len() <= max_bytes).map(|end| &text[..end])
    }

    #[test]
    fn a_text_is_cut_after_a_sentence_or_a_word() {
        let first =
            "The bees are fed with sugar in the autumn, and they sleep through the whole long winter.";
        let text = format!("{first} Then the spring comes, and they fly out again to the willows.");
        assert_eq!(cut(&text, 110), Some(first));
        assert_eq!(cut(&text, text.len()), Some(text.as_str()));
        let long = format!("{first} {}", "and so on ".repeat(60));
        let end = cut(&long, 400).unwrap_or_default();
        assert!(
            end.len() > 380 && (end.ends_with("on") || end.ends_with("so") || end.ends_with("and")),
            "{end}"
        );
        assert_eq!(cut(&text, 40), None, "too short to be of use");
        let chinese = "我喜欢蜜蜂。".repeat(40);
        assert!(cut(&chinese, 200).is_some_and(|end| end.ends_with('。')));
        let encoded = "x".repeat(1_000);
        assert_eq!(cut(&encoded, 200).map(str::len), Some(200));
    }
}
