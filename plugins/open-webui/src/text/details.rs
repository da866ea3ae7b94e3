//! One `<details type="…">` block.

use std::borrow::Cow;

use super::unescape;

const CLOSE: &str = "</details>";

/// A block with its attributes, still escaped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Details<'t> {
    attributes: Vec<(&'t str, &'t str)>,
    /// The text behind the summary.
    pub(crate) body: &'t str,
}

impl<'t> Details<'t> {
    /// Reads the block at the beginning of `text`, and what follows it. A block that was never closed ends with the text.
    pub(super) fn parse(text: &'t str) -> Option<(Self, &'t str)> {
        let (attributes, inside) = attributes(text.strip_prefix("<details")?)?;
        // A line of reasoning that contains the tag has a mark before it.
        let line_end = inside.find("\n</details>").map(|at| at + 1);
        let end = line_end.or_else(|| inside.find(CLOSE));
        let (body, after) = inside.split_at(end.unwrap_or(inside.len()));
        let body = body.strip_suffix('\n').unwrap_or(body);
        let after = after.strip_prefix(CLOSE).unwrap_or(after);
        Some((Self { attributes, body: without_summary(body) }, after))
    }

    /// The type of the block.
    pub(crate) fn kind(&self) -> &'t str {
        self.raw("type").unwrap_or_default()
    }

    /// All attributes, decoded.
    pub(crate) fn attributes(&self) -> impl Iterator<Item = (&'t str, Cow<'t, str>)> {
        self.attributes.iter().map(|(name, value)| (*name, unescape(value)))
    }

    /// An attribute, decoded; none if it is empty.
    pub(crate) fn attribute(&self, name: &str) -> Option<Cow<'t, str>> {
        self.raw(name).filter(|value| !value.is_empty()).map(unescape)
    }

    /// The text of reasoning: without the marks of quotation, and decoded if it was encoded.
    pub(crate) fn quoted(&self) -> String {
        let body = self.body.trim();
        let encoded = body.lines().any(|line| line.starts_with("&gt;"));
        let mark = if encoded { "&gt;" } else { ">" };
        let lines = body.lines().map(|line| {
            let plain = line.strip_prefix(mark).map(|rest| rest.strip_prefix(' ').unwrap_or(rest));
            let plain = plain.unwrap_or(line);
            if encoded { unescape(plain) } else { Cow::Borrowed(plain) }
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    /// The code in the body and its language.
    pub(crate) fn code(&self) -> Option<(&'t str, &'t str)> {
        let (_, fenced) = self.body.split_once("```")?;
        let (language, code) = fenced.split_once('\n')?;
        let code = code.rsplit_once("```").map_or(code, |(code, _)| code);
        Some((language.trim(), code.trim_end()))
    }

    fn raw(&self, name: &str) -> Option<&'t str> {
        self.attributes.iter().find(|(own, _)| *own == name).map(|(_, value)| *value)
    }
}

/// Reads ` name="value"` until `>`, and what follows.
fn attributes(text: &str) -> Option<(Vec<(&str, &str)>, &str)> {
    let (mut found, mut rest) = (Vec::new(), text);
    loop {
        rest = rest.trim_start();
        if let Some(inside) = rest.strip_prefix('>') {
            return Some((found, inside));
        }
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '_'))?;
        let (name, after) = rest.split_at(end);
        let (value, after) = after.strip_prefix("=\"")?.split_once('"')?;
        if name.is_empty() {
            return None;
        }
        found.push((name, value));
        rest = after;
    }
}

fn without_summary(body: &str) -> &str {
    let inside = body.trim_start().strip_prefix("<summary>");
    inside.and_then(|inside| inside.split_once("</summary>")).map_or(body, |(_, after)| after)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Details<'_> {
        Details::parse(text).expect("a block").0
    }

    #[test]
    fn reasoning_is_read_in_both_encodings() {
        let plain = "<details type=\"reasoning\">\n<summary>Thought</summary>\n> a < b\n>\n> </details> is a tag\n</details>";
        assert_eq!(parse(plain).quoted(), "a < b\n\n</details> is a tag");
        let encoded =
            "<details type=\"reasoning\">\n<summary>Thought</summary>\n&gt; a &lt; b\n&gt; c\n</details> x";
        assert_eq!(parse(encoded).quoted(), "a < b\nc");
        assert_eq!(Details::parse(encoded).map(|(_, after)| after), Some(" x"));
    }

    #[test]
    fn code_and_attributes_are_read() {
        let text = "<details type=\"code_interpreter\" output=\"{&quot;a&quot;: 1}\" done=\"\">\n<summary>Analyzed</summary>\n```python\nprint(1)\n```\n</details>";
        let details = parse(text);
        assert_eq!(details.code(), Some(("python", "print(1)")));
        assert_eq!(details.attribute("output").as_deref(), Some("{\"a\": 1}"));
        assert_eq!(details.attribute("done"), None);
    }

    #[test]
    fn broken_tags_are_no_blocks() {
        for text in
            ["<details", "<details type=", "<details type=\"a", "<details =\"a\">", "<details type=a>"]
        {
            assert_eq!(Details::parse(text), None, "{text}");
        }
        assert_eq!(
            Details::parse("<details>open").map(|(details, after)| (details.body, after)),
            Some(("open", ""))
        );
    }
}
