//! The elements of one JSON array, or the lines of a JSON Lines file, cut out without being parsed.

mod input;
mod pointer;
mod scan;

use self::input::{Input, Source};
use crate::{
    error::ErrorKind,
    imports::{Failure, Library, Reader},
    limits::{KIB, MIB},
};

/// Bytes of one element. The guest must hold it too, within its 128 MiB.
const MAX_ELEMENT: usize = 64 * MIB;
/// Bytes of the elements of one answer, whatever the guest asks for.
const MAX_BATCH: usize = 8 * MIB;
/// Elements of one answer: each costs the host a list of its own, however short it is.
const MAX_BATCH_ELEMENTS: usize = 64 * KIB;

/// A place between two elements.
#[expect(unreachable_pub, reason = "the generated bindings name it in their own public names")]
pub struct Elements {
    reader: Reader,
    input: Input,
    shape: Shape,
    first: bool,
    /// Where the first element of the last batch began.
    offset: u64,
    /// Set once there is nothing more to give: the end, or what is wrong there.
    ended: Option<Result<(), Failure>>,
}

/// What stands between elements.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// Commas, and `]` at the end.
    Array,
    /// White space, and the end of the file.
    Lines,
}

/// Reads through the library, which counts and bounds.
struct Counted<'a>(&'a mut Reader, &'a mut Library);

impl Source for Counted<'_> {
    fn chunk(&mut self, len: usize) -> Result<Vec<u8>, Failure> {
        self.1.read(self.0, len)
    }
}

impl Elements {
    /// Goes to the array that `pointer` names. A file whose root is no array is JSON Lines, for the empty pointer.
    pub(crate) fn open(mut reader: Reader, pointer: &str, library: &mut Library) -> Result<Self, Failure> {
        let mut input = Input::new();
        let source = &mut Counted(&mut reader, library);
        input.skip_byte_order_mark(source)?;
        let tokens = pointer::parse(pointer).map_err(|message| Failure {
            kind: ErrorKind::Internal,
            message,
            locator: None,
        })?;
        let found = pointer::find(&mut input, source, &tokens).and_then(|()| input.peek_value(source));
        let shape = match found {
            Ok(Some(b'[')) => Shape::Array,
            Ok(_) if tokens.is_empty() => Shape::Lines,
            Ok(_) => {
                let message = format!("there is no array at \"{}\"", crate::text::clean(pointer));
                return Err(located(&reader, &input, ErrorKind::Malformed, message));
            }
            Err(failure) => return Err(at_offset(failure, &reader, &input)),
        };
        if shape == Shape::Array {
            input.bump();
        }
        let offset = input.offset();
        Ok(Self { reader, input, shape, first: true, offset, ended: None })
    }

    /// Whole elements of about `max_bytes` together, at least one; empty at the end. What is wrong after some
    /// elements is told by the call after the one that gives them.
    pub(crate) fn next(&mut self, max_bytes: usize, library: &mut Library) -> Result<Vec<Vec<u8>>, Failure> {
        let max_bytes = max_bytes.clamp(1, MAX_BATCH);
        let mut batch = Vec::new();
        let mut bytes = 0;
        while bytes < max_bytes && batch.len() < MAX_BATCH_ELEMENTS && self.ended.is_none() {
            match self.element(library) {
                Ok(Some((offset, element))) => {
                    if batch.is_empty() {
                        self.offset = offset;
                    }
                    bytes += element.len();
                    batch.push(element);
                }
                Ok(None) => self.ended = Some(Ok(())),
                Err(failure) => self.ended = Some(Err(at_offset(failure, &self.reader, &self.input))),
            }
        }
        match &self.ended {
            Some(Err(failure)) if batch.is_empty() => Err(failure.clone()),
            _ => Ok(batch),
        }
    }

    /// Byte offset in the file of the first element that the last `next` gave.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    fn element(&mut self, library: &mut Library) -> Result<Option<(u64, Vec<u8>)>, Failure> {
        let source = &mut Counted(&mut self.reader, library);
        let input = &mut self.input;
        let first = std::mem::replace(&mut self.first, false);
        let next = input.peek_value(source)?;
        match (self.shape, next) {
            (Shape::Array, None) => return Err(malformed("the array is cut off here")),
            (Shape::Array, Some(b']')) => {
                input.bump();
                return Ok(None);
            }
            (Shape::Array, Some(b',')) if !first => {
                input.bump();
                if input.peek_value(source)?.is_none_or(|byte| matches!(byte, b',' | b']')) {
                    return Err(malformed("an element of the array is missing here"));
                }
            }
            (Shape::Array, Some(_)) if !first => {
                return Err(malformed("there is no comma between two elements here"));
            }
            (Shape::Lines, None) => return Ok(None),
            (Shape::Array | Shape::Lines, Some(_)) => {}
        }
        let offset = input.offset();
        let mut element = Vec::new();
        input.value(source, Some((&mut element, MAX_ELEMENT)))?;
        Ok(Some((offset, element)))
    }
}

fn malformed(message: &str) -> Failure {
    Failure { kind: ErrorKind::Malformed, message: message.to_owned(), locator: None }
}

/// Says where in the file the reading stood, unless the failure knows better.
fn at_offset(failure: Failure, reader: &Reader, input: &Input) -> Failure {
    match failure.locator {
        Some(_) => failure,
        None => located(reader, input, failure.kind, failure.message),
    }
}

fn located(reader: &Reader, input: &Input, kind: ErrorKind, message: String) -> Failure {
    Failure { kind, message, locator: Some(format!("{}@{}", reader.path(), input.offset())) }
}

#[cfg(test)]
mod tests;
