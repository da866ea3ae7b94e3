//! Reads parts of a document a second time, in any order.

use std::io::{self, Read};

use super::TextSource;

/// Bytes of parts that are held at once if a text can only be read from its start.
const WINDOW: usize = 64 << 20;

/// A text whose parts are read again.
pub(super) struct Rereader<'t> {
    text: &'t dyn TextSource,
    /// Bytes at its start that offsets leave out.
    skipped: usize,
    /// A reader from the start of the text, and its position.
    input: Option<(Box<dyn Read + 't>, usize)>,
}

impl<'t> Rereader<'t> {
    pub(super) fn new(text: &'t dyn TextSource, skipped: usize) -> Self {
        Self { text, skipped, input: None }
    }

    /// Passes the parts at these offsets and lengths to `take`, in this order; false as soon as `take` returns false.
    pub(super) fn each(
        &mut self,
        places: &[(usize, u32)],
        take: &mut dyn FnMut(&[u8]) -> bool,
    ) -> io::Result<bool> {
        let mut rest = places;
        while let Some((first, _)) = rest.first() {
            if let Some(bytes) = self.text.read_at((first + self.skipped) as u64, rest[0].1 as usize)? {
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

    /// Reads the parts of a window in the order of the text and passes them on in the order of the window.
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

/// How many of the parts fit into a window, at least one.
fn fitting(places: &[(usize, u32)]) -> usize {
    let mut bytes = 0_usize;
    let fit = places.iter().take_while(|(_, length)| {
        bytes += *length as usize;
        bytes <= WINDOW
    });
    fit.count().max(1)
}
