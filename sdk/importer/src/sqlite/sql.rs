//! Reads the columns of a table from the statement that created it.

use super::{
    default::{self, Affinity},
    schema::Column,
};

/// A piece of a statement.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// A keyword or a name without quotes.
    Word(String),
    /// A name in quotes or brackets.
    Name(String),
    Text(String),
    Number(String),
    Mark(char),
}

/// Columns of a table; SQLite refuses to have more.
const MAX_COLUMNS: usize = 32_767;
/// Words that end the type of a column.
const CONSTRAINTS: [&str; 11] = [
    "CONSTRAINT",
    "PRIMARY",
    "NOT",
    "NULL",
    "UNIQUE",
    "CHECK",
    "DEFAULT",
    "COLLATE",
    "REFERENCES",
    "GENERATED",
    "AS",
];
/// Words that begin a constraint of the whole table.
const TABLE_CONSTRAINTS: [&str; 5] = ["CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK", "FOREIGN"];

/// The columns of a `CREATE TABLE` statement. None if it is something else, such as a virtual table, or a table without rowids.
pub(super) fn columns(statement: &str) -> Option<Vec<Column>> {
    let tokens = tokens(statement)?;
    let open = tokens.iter().position(|token| *token == Token::Mark('('))?;
    if tokens.get(1).is_some_and(|token| token.is("VIRTUAL")) {
        return None;
    }
    let (definitions, rest) = definitions(tokens.get(open + 1..)?)?;
    if rest.windows(2).any(|pair| pair[0].is("WITHOUT") && pair[1].is("ROWID")) {
        return None;
    }
    let (constraints, definitions): (Vec<_>, Vec<_>) =
        definitions.into_iter().partition(|tokens| begins_constraint(tokens));
    if definitions.len() > MAX_COLUMNS {
        return None;
    }
    let key = constraints.iter().find_map(|constraint| single_key(constraint));
    let (mut columns, mut stored) = (Vec::new(), 0);
    for definition in definitions {
        let mut column = column(definition, stored)?;
        let is_key = key.is_some_and(|key| column.name.eq_ignore_ascii_case(key)) || primary_key(definition);
        column.is_rowid = is_key && is_integer(definition);
        stored += usize::from(column.stored.is_some());
        columns.push(column);
    }
    Some(columns)
}

impl Token {
    pub(super) fn is(&self, word: &str) -> bool {
        matches!(self, Self::Word(own) if own.eq_ignore_ascii_case(word))
    }

    fn name(&self) -> Option<&str> {
        match self {
            Self::Word(name) | Self::Name(name) | Self::Text(name) => Some(name),
            Self::Number(_) | Self::Mark(_) => None,
        }
    }
}

/// The definitions between the parentheses, and what stands behind them.
fn definitions(tokens: &[Token]) -> Option<(Vec<&[Token]>, &[Token])> {
    let (mut found, mut start, mut depth) = (Vec::new(), 0, 0_u32);
    for (index, token) in tokens.iter().enumerate() {
        match token {
            Token::Mark('(') => depth += 1,
            Token::Mark(')') if depth == 0 => {
                found.push(&tokens[start..index]);
                return Some((found, &tokens[index + 1..]));
            }
            Token::Mark(')') => depth -= 1,
            Token::Mark(',') if depth == 0 => {
                found.push(&tokens[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    None
}

fn begins_constraint(tokens: &[Token]) -> bool {
    tokens.first().is_some_and(|first| TABLE_CONSTRAINTS.iter().any(|word| first.is(word)))
}

fn column(tokens: &[Token], stored: usize) -> Option<Column> {
    let name = tokens.first()?.name()?.to_owned();
    let says = |word| outside(tokens).any(|token| token.is(word));
    let computed = says("AS") && !says("STORED");
    let kind: String = type_of(tokens).filter_map(Token::name).collect::<String>().to_ascii_uppercase();
    let affinity = Affinity::of(&kind);
    let default = default::value(tokens, affinity);
    let is_real = affinity == Affinity::Real;
    Some(Column { name, is_rowid: false, is_real, stored: (!computed).then_some(stored), default })
}

/// The tokens that are in no parentheses.
fn outside(tokens: &[Token]) -> impl Iterator<Item = &Token> {
    let mut depth = 0_u32;
    tokens.iter().filter(move |token| {
        match token {
            Token::Mark('(') => depth += 1,
            Token::Mark(')') => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0
    })
}

/// The words of a column's type.
fn type_of(tokens: &[Token]) -> impl Iterator<Item = &Token> {
    let ends =
        |token: &&Token| CONSTRAINTS.iter().any(|word| token.is(word)) || matches!(token, Token::Mark(_));
    tokens.iter().skip(1).take_while(move |token| !ends(token))
}

/// Whether the type is exactly INTEGER: only such a key is the rowid.
fn is_integer(tokens: &[Token]) -> bool {
    let mut kind = type_of(tokens);
    let first = kind.next().and_then(Token::name).is_some_and(|name| name.eq_ignore_ascii_case("INTEGER"));
    first && kind.next().is_none() && tokens.get(2) != Some(&Token::Mark('('))
}

/// Whether it is the key of its table. A descending key of this kind is no rowid, by a mistake that SQLite has kept.
fn primary_key(tokens: &[Token]) -> bool {
    let key = tokens.windows(2).position(|pair| pair[0].is("PRIMARY") && pair[1].is("KEY"));
    key.is_some_and(|at| !tokens.get(at + 2).is_some_and(|token| token.is("DESC")))
}

/// The column of a constraint such as `PRIMARY KEY (id)`, if it is one.
fn single_key(tokens: &[Token]) -> Option<&str> {
    let at = tokens.windows(2).position(|pair| pair[0].is("PRIMARY") && pair[1].is("KEY"))?;
    let end = tokens[at..].iter().position(|token| *token == Token::Mark(')'))?;
    let inside = tokens.get(at + 3..at + end)?;
    if inside.contains(&Token::Mark(',')) { None } else { inside.first()?.name() }
}

/// The tokens of a statement, without comments. None if a quote or a comment has no end.
fn tokens(mut rest: &str) -> Option<Vec<Token>> {
    let mut tokens = Vec::new();
    while let Some(first) = rest.chars().next() {
        if first.is_whitespace() {
            rest = rest.trim_start();
        } else if let Some(comment) = rest.strip_prefix("--") {
            rest = comment.split_once('\n').map_or("", |(_, rest)| rest);
        } else if let Some(comment) = rest.strip_prefix("/*") {
            rest = comment.split_once("*/").map_or("", |(_, rest)| rest);
        } else if let Some(close) = closing(first) {
            let (text, behind) = quoted(&rest[1..], close)?;
            tokens.push(if first == '\'' { Token::Text(text) } else { Token::Name(text) });
            rest = behind;
        } else {
            let word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$') || !c.is_ascii();
            let number = |c: char| word(c) || c == '.';
            let is_number = first.is_ascii_digit() || first == '.';
            let end = rest.find(|c| !(if is_number { number(c) } else { word(c) })).unwrap_or(rest.len());
            let end = if is_number { exponent_end(rest, end) } else { end.max(first.len_utf8()) };
            let (text, behind) = rest.split_at(end);
            tokens.push(match first {
                _ if is_number => Token::Number(text.to_owned()),
                _ if word(first) => Token::Word(text.to_owned()),
                mark => Token::Mark(mark),
            });
            rest = behind;
        }
    }
    Some(tokens)
}

/// Where a number ends of which the first `end` bytes are known: `1e-5` has a sign inside of it.
fn exponent_end(text: &str, end: usize) -> usize {
    let (number, rest) = text.split_at(end);
    let is_decimal = number.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E'));
    match rest.strip_prefix(['-', '+']) {
        Some(digits) if is_decimal && number.ends_with(['e', 'E']) => {
            end + 1 + digits.bytes().take_while(u8::is_ascii_digit).count()
        }
        _ => end,
    }
}

/// What ends a text or a name that begins so.
fn closing(first: char) -> Option<char> {
    match first {
        '\'' | '"' | '`' => Some(first),
        '[' => Some(']'),
        _ => None,
    }
}

/// The text up to `close`, which is doubled inside of it, and what stands behind.
fn quoted(mut rest: &str, close: char) -> Option<(String, &str)> {
    let mut text = String::new();
    loop {
        let (part, behind) = rest.split_once(close)?;
        text.push_str(part);
        match behind.strip_prefix(close).filter(|_| close != ']') {
            Some(more) => {
                text.push(close);
                rest = more;
            }
            None => return Some((text, behind)),
        }
    }
}
