//! Sources of an answer: `[citation:3]` in its text refers to the search result whose `cite_index` is 3.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use satchel_importer::{
    Arena, Citation, JsonError, Parser,
    address::{is_uri, unsigned},
    json::{Object, Value},
};

/// Search results of one message that are read; the call keeps all of them.
const MAX_RESULTS: u64 = 5_000;
/// The two forms of a mark, without the closing bracket.
const MARKS: [&str; 2] = ["[citation:", "[reference:"];
/// Bytes of the numbers in one mark; a longer one is text.
const MAX_MARK: usize = 128;

/// Search results, by the number with which a text cites them.
#[derive(Default)]
pub(super) struct Results<'a> {
    by_number: BTreeMap<u64, Citation<'a>>,
    count: u64,
}

impl<'a> Results<'a> {
    /// Adds the results of one search. If none has a number, they are numbered from 1.
    pub(super) fn add(&mut self, list: Value<'a>, arena: &'a Arena) {
        let Some(raw) = list.raw() else { return };
        let (mut json, mut unnumbered, mut numbered) = (Parser::new(raw, arena), Vec::new(), false);
        let mut read = || -> Result<(), JsonError> {
            if json.enter_array()? {
                while self.count < MAX_RESULTS && json.item()? {
                    self.count += 1;
                    let page = Object::parse(json.raw_value()?, arena);
                    match (page.get("cite_index").as_u64(), citation(&page)) {
                        (Some(number), Some(citation)) => {
                            numbered = true;
                            self.by_number.insert(number, citation);
                        }
                        (Some(_), None) => numbered = true,
                        (None, citation) => unnumbered.push(citation),
                    }
                }
            }
            Ok(())
        };
        // The value was checked when it was read.
        read().unwrap_or_default();
        if !numbered {
            let results = (1..).zip(unnumbered);
            self.by_number.extend(results.filter_map(|(number, citation)| Some((number, citation?))));
        }
    }

    /// The results that `texts` cite, in their order, each page once.
    pub(super) fn cited(&self, texts: &[&str]) -> Vec<Citation<'a>> {
        let (mut seen, mut pages, mut cited) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
        for number in texts.iter().flat_map(|text| numbers(text)) {
            let Some(citation) = self.by_number.get(&number).filter(|_| seen.insert(number)) else {
                continue;
            };
            if citation.url.is_none() || pages.insert(citation.url.clone()) {
                cited.push(citation.clone());
            }
        }
        cited
    }
}

fn citation<'a>(page: &Object<'a>) -> Option<Citation<'a>> {
    let title = page.text("title");
    // PAM requires a URI; other texts stay in the call.
    let url = page.text("url").filter(|url| is_uri(url));
    (title.is_some() || url.is_some()).then(|| Citation {
        title: title.map(Cow::Borrowed),
        url: url.map(unsigned),
        snippet: page.text("snippet").map(Cow::Borrowed),
    })
}

/// The numbers in the marks of a text: `[citation:1]`, `[citation:1,2]`.
fn numbers(text: &str) -> Vec<u64> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('[') {
        rest = rest.get(at..).unwrap_or_default();
        let inside = MARKS.iter().find_map(|mark| rest.strip_prefix(mark));
        let numbers = inside.and_then(|inside| {
            let end = inside.bytes().take(MAX_MARK).position(|byte| byte == b']')?;
            inside.get(..end)
        });
        if let Some(numbers) = numbers {
            found.extend(numbers.split(',').map_while(|number| number.trim().parse::<u64>().ok()));
        }
        rest = rest.get(1..).unwrap_or_default();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cited(list: &str, text: &str) -> Vec<String> {
        let arena = Arena::new();
        let mut results = Results::default();
        results.add(Value::Raw(arena.alloc_str(list)), &arena);
        results.cited(&[text]).into_iter().filter_map(|citation| Some(citation.title?.into_owned())).collect()
    }

    #[test]
    fn a_mark_cites_a_result_by_its_number() {
        let list = r#"[{"title":"A","cite_index":2},{"title":"B","cite_index":1},{"title":"C","cite_index":null},{"cite_index":4}]"#;
        assert_eq!(
            cited(list, "x[citation:2] y[citation:1,2] z[citation:9] [citation:4] [citation:x]"),
            ["A", "B"]
        );
        assert_eq!(cited(list, "nothing [1] cited"), [""; 0]);
    }

    #[test]
    fn results_without_numbers_are_counted() {
        let list = r#"[{"title":"A"},{"odd":1},{"title":"C","url":"no address"}]"#;
        assert_eq!(cited(list, "[reference:3][citation:1][citation:2]["), ["C", "A"]);
    }
}
