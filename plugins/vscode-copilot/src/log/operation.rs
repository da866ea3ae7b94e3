//! One line of a log: what it changes, and where.

use satchel_importer::{ImportError, JsonError, Parser};

/// Steps of a path; real ones have up to five.
const MAX_STEPS: usize = 32;
/// The member with the new value.
const VALUE: &str = "v";

/// A step of a path. Numbers come in their order, behind all names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    /// A member of an object.
    Key(String),
    /// An item of a list.
    Index(usize),
}

impl Step {
    /// Bytes of its name.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Key(key) => key.len(),
            Self::Index(_) => 0,
        }
    }
}

/// What happens at the end of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change<'a> {
    /// The whole state begins with this one.
    Initial(&'a str),
    /// The value is this one.
    Set(&'a str),
    /// The list is cut to `from` items, and these are appended.
    Push { from: Option<usize>, items: Option<&'a str> },
    /// There is no value any more.
    Delete,
}

/// One line.
#[derive(Debug)]
pub(super) struct Operation<'a> {
    pub(super) path: Vec<Step>,
    change: Change<'a>,
    /// Members that are not known.
    pub(super) unknown: Vec<&'a str>,
}

/// The members of a line.
#[derive(Default)]
struct Members<'a> {
    kind: Option<u64>,
    path: Option<Vec<Step>>,
    value: Option<&'a str>,
    from: Option<usize>,
    unknown: Vec<&'a str>,
}

impl<'a> Operation<'a> {
    pub(super) fn read(json: &mut Parser<'a>) -> Result<Self, ImportError> {
        let Members { kind, path, value, from, unknown } = Members::read(json)?;
        let nothing = || ImportError::malformed("it has no value");
        let change = match kind {
            Some(0) => Change::Initial(value.ok_or_else(nothing)?),
            // The program leaves out what is undefined.
            Some(1) => value.map_or(Change::Delete, Change::Set),
            Some(2) => Change::Push { from, items: value },
            Some(3) => Change::Delete,
            Some(kind) => return Err(ImportError::malformed(format!("its kind {kind} is unknown"))),
            None => return Err(ImportError::malformed("it does not say what it changes")),
        };
        let path = match change {
            Change::Initial(_) => Vec::new(),
            _ => path.ok_or_else(|| ImportError::malformed("it has no path"))?,
        };
        Ok(Self { path, change, unknown })
    }

    pub(super) fn change(&self) -> Change<'a> {
        self.change
    }
}

impl<'a> Members<'a> {
    fn read(json: &mut Parser<'a>) -> Result<Self, ImportError> {
        let mut members = Self::default();
        if !json.enter_object()? {
            return Err(ImportError::malformed("it is not an object"));
        }
        while let Some(key) = json.key()? {
            match key {
                "kind" => members.kind = Some(number(json)?),
                "k" => members.path = Some(path(json)?),
                VALUE => members.value = Some(json.raw_value()?),
                "i" if json.null()? => members.from = None,
                "i" => members.from = Some(usize::try_from(number(json)?).unwrap_or(usize::MAX)),
                _ => {
                    json.skip_value()?;
                    members.unknown.push(key);
                }
            }
        }
        json.end()?;
        Ok(members)
    }
}

/// Goes to the value of a line; false if it has none.
pub(super) fn find_value(json: &mut Parser<'_>) -> Result<bool, JsonError> {
    if json.enter_object()? {
        while let Some(key) = json.key()? {
            if key == VALUE {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

fn path(json: &mut Parser<'_>) -> Result<Vec<Step>, ImportError> {
    let wrong = || ImportError::malformed("its path is not a list of names and numbers");
    let mut steps = Vec::new();
    if !json.enter_array()? {
        return Err(wrong());
    }
    while json.item()? {
        if steps.len() == MAX_STEPS {
            return Err(ImportError::malformed(format!("its path has more than {MAX_STEPS} steps")));
        }
        let raw = json.raw_value()?;
        steps.push(match raw.parse() {
            Ok(index) => Step::Index(index),
            Err(_) => Step::Key(Parser::new(raw, json.arena()).string().map_err(|_| wrong())?.to_owned()),
        });
    }
    Ok(steps)
}

fn number(json: &mut Parser<'_>) -> Result<u64, ImportError> {
    let raw = json.raw_value()?;
    raw.parse().map_err(|_| {
        ImportError::malformed(format!("{} is not a whole number", raw.chars().take(32).collect::<String>()))
    })
}
