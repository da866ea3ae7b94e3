//! Reads parts of a document once more, in an order of its own.

use std::io::{self, Read};

use super::Text;

/// Bytes of parts that are held at once where a text can only be read from its beginning on.
const WINDOW: usize = 64 << 20;

/// A text whose parts are wanted again.
pub(super) struct Again<'t> {
    text: &'t dyn Text,
    /// Bytes at its start that offsets do not count.
    skipped: usize,
    /// What is being read from the beginning on, and how far.
    input: Option<(Box<dyn Read + 't>, usize)>,
}

impl<'t> Again<'t> {
    pub(super) fn new(text: &'t dyn Text, skipped: usize) -> Self {
        Self { text, skipped, input: None }
    }

    /// Hands over the parts at these places, in this order; false as soon as `take` is.
    pub(super) fn each(
        &mut self,
        places: &[(usize, u32)],
        take: &mut dyn FnMut(&[u8]) -> bool,
    ) -> io::Result<bool> {
        let mut rest = places;
        while let Some((first, _)) = rest.first() {
            if let Some(bytes) = self.text.part((first + self.skipped) as u64, rest[0].1 as usize)? {
                if !take(&bytes) {
                    return Ok(false);
                }
                rest = &rest[1..];
                continue;
            }
            let (window, after) = rest.split_at(fitting(rest));
            if !self.window(window, take)? {
                return Ok(false);
            }
            rest = after;
        }
        Ok(true)
    }

    /// Reads the parts of a window in the order of the text, and hands them over in theirs.
    fn window(&mut self, window: &[(usize, u32)], take: &mut dyn FnMut(&[u8]) -> bool) -> io::Result<bool> {
        let mut by_offset: Vec<usize> = (0..window.len()).collect();
        by_offset.sort_by_key(|at| window[*at].0);
        let mut parts: Vec<Vec<u8>> = vec![Vec::new(); window.len()];
        for at in by_offset {
            let (offset, length) = window[at];
            parts[at] = self.read(offset + self.skipped, length as usize)?;
        }
        Ok(parts.iter().all(|part| take(part)))
    }

    fn read(&mut self, offset: usize, length: usize) -> io::Result<Vec<u8>> {
        let (mut input, at) = match self.input.take() {
            Some((input, at)) if at <= offset => (input, at),
            _ => (self.text.reader()?, 0),
        };
        let before = (offset - at) as u64;
        let passed = io::copy(&mut input.by_ref().take(before), &mut io::sink())?;
        let mut bytes = Vec::with_capacity(length);
        let read = input.by_ref().take(length as u64).read_to_end(&mut bytes)?;
        if passed != before || read != length {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the document was changed while it was read",
            ));
        }
        self.input = Some((input, offset + length));
        Ok(bytes)
    }
}

/// How many of the parts fit into a window; one always does.
fn fitting(places: &[(usize, u32)]) -> usize {
    let mut bytes = 0_usize;
    let fit = places.iter().take_while(|(_, length)| {
        bytes += *length as usize;
        bytes <= WINDOW
    });
    fit.count().max(1)
}
