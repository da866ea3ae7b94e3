//! Reads a query from left to right.

use std::ops::Range;

use super::{
    ALL_TIMES, Atom, Calendar, Clause, Filter, FilterField, MAX_PARTS, MAX_QUERY_BYTES, MAX_WORDS, Matching,
    Query, QueryError, QueryProblem, TextField, Validity, ValidityFilter,
};
use crate::analysis::{Words, fold};

/// Most letters by which a fuzzy word may differ.
const MAX_DISTANCE: u8 = 2;
/// The words before a colon that are not in [`FilterField`].
const TITLE: &str = "title";
const DATES: [&str; 3] = ["before", "after", "on"];
const VALIDITIES: [(&str, Validity); 2] = [("valid", Validity::Valid), ("expired", Validity::Expired)];

pub(super) struct Parser<'a> {
    text: &'a str,
    calendar: &'a Calendar,
    query: Query,
    /// Whether the next atom is an alternative to the last clause.
    or: bool,
    /// Words and phrases, each alternative by itself.
    parts: usize,
    /// Words of all of them.
    words: usize,
}

/// A piece of the query without spaces, or in quotation marks.
struct Piece<'a> {
    text: &'a str,
    at: Range<usize>,
    quoted: bool,
}

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a str, calendar: &'a Calendar) -> Result<Self, QueryError> {
        if text.len() > MAX_QUERY_BYTES {
            let end = text.len();
            return Err(QueryError::new(
                text.floor_char_boundary(MAX_QUERY_BYTES)..end,
                QueryProblem::TooLong,
            ));
        }
        let query = Query { time: ALL_TIMES, ..Query::default() };
        Ok(Self { text, calendar, query, or: false, parts: 0, words: 0 })
    }

    pub(super) fn query(mut self) -> Result<Query, QueryError> {
        let mut at = 0;
        while let Some(start) = self.text[at..].find(|c: char| !c.is_whitespace()).map(|skipped| at + skipped)
        {
            at = self.item(start)?;
            if self.parts + self.query.filters.len() + self.query.validity.len() > MAX_PARTS {
                return Err(QueryError::new(start..at, QueryProblem::TooManyParts));
            }
            if self.words > MAX_WORDS {
                return Err(QueryError::new(start..at, QueryProblem::TooManyWords));
            }
        }
        let whole = 0..self.text.len();
        if self.query.time.is_empty() {
            return Err(QueryError::new(whole, QueryProblem::EmptyTime));
        }
        let wanted = self.query.clauses.iter().any(|clause| !clause.excluded)
            || self.query.filters.iter().any(|filter| !filter.excluded)
            || self.query.validity.iter().any(|filter| !filter.excluded)
            || self.query.time != ALL_TIMES;
        if !wanted && !self.query.is_empty() {
            return Err(QueryError::new(whole, QueryProblem::OnlyExcluded));
        }
        Ok(self.query)
    }

    /// Reads one word, phrase or filter, and returns where it ends.
    fn item(&mut self, start: usize) -> Result<usize, QueryError> {
        let (sign, from) = match self.text[start..].chars().next() {
            Some(sign @ ('-' | '+')) if self.is_joined(start + 1) => (Some(sign), start + 1),
            _ => (None, start),
        };
        let excluded = sign == Some('-');
        let piece = self.piece(from);
        let end = piece.at.end;
        if !piece.quoted {
            if piece.text == "OR" && sign.is_none() && !self.query.clauses.is_empty() {
                self.or = true;
                return Ok(end);
            }
            if let Some((word, value)) = filter_at(&piece) {
                return self.filter(excluded, word, value);
            }
            check_mistyped(&piece)?;
        }
        self.add(excluded, atom(&piece, sign == Some('+'), TextField::All));
        Ok(end)
    }

    /// Returns whether a word begins here, so that the sign before it belongs to it.
    fn is_joined(&self, at: usize) -> bool {
        self.text[at..].chars().next().is_some_and(|c| !c.is_whitespace())
    }

    /// Returns the piece that begins here. A quotation mark without an end reaches to the end of the query.
    fn piece(&self, from: usize) -> Piece<'a> {
        let rest = &self.text[from..];
        let open = rest.chars().next().filter(|c| closing(*c).is_some());
        if let Some(close) = open.and_then(closing) {
            let inside = from + open.map_or(0, char::len_utf8);
            let length = self.text[inside..].find(close);
            let to = length.map_or(self.text.len(), |length| inside + length);
            let end = length.map_or(to, |_| to + close.len_utf8());
            return Piece { text: &self.text[inside..to], at: from..end, quoted: true };
        }
        // A quotation mark after a colon begins the value of a filter.
        let end = rest
            .find(|c: char| c.is_whitespace() || c == '"')
            .map_or(self.text.len(), |length| from + length);
        Piece { text: &self.text[from..end], at: from..end, quoted: false }
    }

    /// Reads the value of a filter, and returns where it ends. A filter without a value is still being typed.
    fn filter(&mut self, excluded: bool, word: &str, from: usize) -> Result<usize, QueryError> {
        if !self.is_joined(from) {
            return Ok(from);
        }
        let value = self.piece(from);
        let end = value.at.end;
        if word == TITLE {
            self.add(excluded, atom(&value, false, TextField::Title));
        } else if DATES.contains(&word) {
            self.date(word, &value)?;
        } else if let Some((_, validity)) = VALIDITIES.iter().find(|(name, _)| *name == word) {
            let (first, after) = self.range(&value)?;
            self.query.validity.push(ValidityFilter { excluded, validity: *validity, at: first..after });
        } else if let Some(field) = FilterField::ALL.iter().find(|field| field.word() == word) {
            let values = values(*field, &value)?;
            if !values.is_empty() {
                self.query.filters.push(Filter { excluded, field: *field, values });
            }
        }
        Ok(end)
    }

    fn date(&mut self, word: &str, value: &Piece<'_>) -> Result<(), QueryError> {
        let (first, after) = self.range(value)?;
        let time = &mut self.query.time;
        match word {
            "before" => time.end = time.end.min(first),
            "on" => *time = time.start.max(first)..time.end.min(after),
            // A span such as `30d` includes its first day.
            _ if value.text.ends_with(|c: char| c.is_ascii_alphabetic()) => {
                time.start = time.start.max(first);
            }
            _ => time.start = time.start.max(after),
        }
        Ok(())
    }

    /// Returns the first moment of a date and the first one after it.
    fn range(&self, value: &Piece<'_>) -> Result<(i64, i64), QueryError> {
        self.calendar.range(&value.text.to_lowercase()).ok_or_else(|| {
            QueryError::new(value.at.clone(), QueryProblem::BadDate { given: value.text.to_owned() })
        })
    }

    fn add(&mut self, excluded: bool, atom: Option<Atom>) {
        let or = std::mem::take(&mut self.or);
        let Some(atom) = atom else { return };
        self.parts += 1;
        self.words += Words::of(&atom.text).len();
        match self.query.clauses.last_mut() {
            Some(clause) if or && clause.excluded == excluded => clause.any.push(atom),
            _ => self.query.clauses.push(Clause { excluded, any: vec![atom] }),
        }
    }
}

/// Returns the word of a filter and where its value begins.
fn filter_at<'a>(piece: &Piece<'a>) -> Option<(&'a str, usize)> {
    let (word, _) = piece.text.split_once(':')?;
    let known = filter_words().any(|known| known == word);
    known.then(|| (word, piece.at.start + word.len() + 1))
}

/// Returns the words before a colon.
fn filter_words() -> impl Iterator<Item = &'static str> {
    let fields = FilterField::ALL.iter().map(|field| field.word());
    fields.chain(DATES).chain(VALIDITIES.map(|(word, _)| word)).chain([TITLE])
}

/// Refuses a word before a colon that is nearly that of a filter, as its hits would look as if it were none.
fn check_mistyped(piece: &Piece<'_>) -> Result<(), QueryError> {
    let Some((given, value)) = piece.text.split_once(':') else { return Ok(()) };
    if value.is_empty() || value.starts_with("//") || given.len() < 4 {
        return Ok(());
    }
    let lower = given.to_lowercase();
    let near = filter_words()
        .filter(|word| strsim::damerau_levenshtein(word, &lower) <= 1)
        .min_by_key(|word| word.len());
    near.map_or(Ok(()), |near| {
        let at = piece.at.start..piece.at.start + given.len();
        Err(QueryError::new(at, QueryProblem::UnknownFilter { given: given.to_owned(), near }))
    })
}

/// Returns the quotation mark that ends what this one begins.
fn closing(open: char) -> Option<char> {
    match open {
        '"' => Some('"'),
        '“' | '„' => Some('”'),
        '«' => Some('»'),
        '「' => Some('」'),
        _ => None,
    }
}

/// Returns the word or phrase of a piece; `None` if it has no words.
fn atom(piece: &Piece<'_>, exact: bool, field: TextField) -> Option<Atom> {
    let at = piece.at.clone();
    let (text, matching) = if piece.quoted {
        (piece.text, Matching::Phrase)
    } else if let Some(text) = piece.text.strip_suffix('*') {
        (text, Matching::Prefix)
    } else if let Some((text, distance)) = fuzzy(piece.text) {
        (text, Matching::Fuzzy(distance))
    } else {
        (piece.text, if exact { Matching::Exact } else { Matching::Stem })
    };
    let has_word = !Words::of(text).is_empty();
    has_word.then(|| Atom { text: text.to_owned(), matching, field, at })
}

/// Returns the word and the distance of `word~` or `word~2`.
fn fuzzy(text: &str) -> Option<(&str, u8)> {
    let (word, distance) = text.rsplit_once('~')?;
    let distance = if distance.is_empty() { 1 } else { distance.parse().ok()? };
    Some((word, distance)).filter(|_| (1..=MAX_DISTANCE).contains(&distance))
}

/// Returns the values of a filter, in lower case.
fn values(field: FilterField, piece: &Piece<'_>) -> Result<Vec<String>, QueryError> {
    let known = field.known_values();
    let (mut values, mut at) = (Vec::new(), piece.at.start);
    let separator = if piece.quoted { '\0' } else { ',' };
    for given in piece.text.split(separator) {
        let value = if field == FilterField::Conversation { given.to_owned() } else { fold(given) };
        if !known.is_empty() && !value.is_empty() && !known.contains(&value.as_str()) {
            let problem = QueryProblem::UnknownValue {
                field: field.word(),
                given: given.to_owned(),
                expected: known.join(", "),
            };
            return Err(QueryError::new(at..at + given.len(), problem));
        }
        if !value.is_empty() {
            values.push(value);
        }
        at += given.len() + 1;
    }
    Ok(values)
}
