//! Writes JSON in the layout of PAM files: indent 2 and a final newline, field by field.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};

const SPACES: &[u8; 64] = &[b' '; 64];

/// Writes a root object field by field and its lists item by item.
pub(crate) struct Root<W> {
    out: W,
    fields: u64,
    items: u64,
}

impl<W: Write> Root<W> {
    pub(crate) fn begin(mut out: W) -> io::Result<Self> {
        out.write_all(b"{")?;
        Ok(Self { out, fields: 0, items: 0 })
    }

    pub(crate) fn field<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> io::Result<()> {
        self.name(name)?;
        write_at(&mut self.out, 1, value)
    }

    pub(crate) fn optional<T: Serialize>(&mut self, name: &str, value: Option<&T>) -> io::Result<()> {
        value.map_or(Ok(()), |value| self.field(name, value))
    }

    pub(crate) fn begin_list(&mut self, name: &str) -> io::Result<()> {
        self.name(name)?;
        self.items = 0;
        self.out.write_all(b"[")
    }

    pub(crate) fn item<T: Serialize + ?Sized>(&mut self, value: &T) -> io::Result<()> {
        if self.items > 0 {
            self.out.write_all(b",")?;
        }
        self.items += 1;
        line(&mut self.out, 2)?;
        write_at(&mut self.out, 2, value)
    }

    pub(crate) fn end_list(&mut self) -> io::Result<()> {
        if self.items > 0 {
            line(&mut self.out, 1)?;
        }
        self.out.write_all(b"]")
    }

    pub(crate) fn end(mut self) -> io::Result<W> {
        self.out.write_all(b"\n}\n")?;
        Ok(self.out)
    }

    fn name(&mut self, name: &str) -> io::Result<()> {
        if self.fields > 0 {
            self.out.write_all(b",")?;
        }
        self.fields += 1;
        line(&mut self.out, 1)?;
        write!(self.out, "\"{name}\": ")
    }
}

/// Writes a value whose first line is indented by `level`.
fn write_at<W: Write, T: Serialize + ?Sized>(out: &mut W, level: usize, value: &T) -> io::Result<()> {
    let formatter = Indented { level, filled: false };
    value.serialize(&mut Serializer::with_formatter(out, formatter)).map_err(io::Error::from)
}

fn line<W: Write + ?Sized>(out: &mut W, level: usize) -> io::Result<()> {
    out.write_all(b"\n")?;
    let mut left = level * 2;
    while left > 0 {
        let some = left.min(SPACES.len());
        out.write_all(&SPACES[..some])?;
        left -= some;
    }
    Ok(())
}

struct Indented {
    level: usize,
    /// Whether the current container has a value.
    filled: bool,
}

impl Indented {
    fn open<W: Write + ?Sized>(&mut self, out: &mut W, bracket: u8) -> io::Result<()> {
        self.level += 1;
        self.filled = false;
        out.write_all(&[bracket])
    }

    fn close<W: Write + ?Sized>(&mut self, out: &mut W, bracket: u8) -> io::Result<()> {
        self.level -= 1;
        if self.filled {
            line(out, self.level)?;
        }
        self.filled = true;
        out.write_all(&[bracket])
    }

    fn element<W: Write + ?Sized>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        if !first {
            out.write_all(b",")?;
        }
        line(out, self.level)
    }
}

impl Formatter for Indented {
    fn begin_array<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.open(out, b'[')
    }

    fn end_array<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.close(out, b']')
    }

    fn begin_array_value<W: Write + ?Sized>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.element(out, first)
    }

    fn end_array_value<W: Write + ?Sized>(&mut self, _: &mut W) -> io::Result<()> {
        self.filled = true;
        Ok(())
    }

    fn begin_object<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.open(out, b'{')
    }

    fn end_object<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.close(out, b'}')
    }

    fn begin_object_key<W: Write + ?Sized>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.element(out, first)
    }

    fn begin_object_value<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }

    fn end_object_value<W: Write + ?Sized>(&mut self, _: &mut W) -> io::Result<()> {
        self.filled = true;
        Ok(())
    }

    /// Raw objects keep their tokens but are indented like the rest.
    fn write_raw_fragment<W: Write + ?Sized>(&mut self, out: &mut W, fragment: &str) -> io::Result<()> {
        indent(out, fragment.as_bytes(), self.level)
    }
}

/// Writes valid JSON text with new white space between its tokens.
fn indent<W: Write + ?Sized>(out: &mut W, text: &[u8], mut level: usize) -> io::Result<()> {
    let mut at = 0;
    // Whether the last token was an opening bracket, so the container may still be empty.
    let mut opened = false;
    while let Some(&byte) = text.get(at) {
        let closing = matches!(byte, b'}' | b']');
        if opened && !byte.is_ascii_whitespace() {
            if !closing {
                line(out, level)?;
            }
        } else if closing {
            line(out, level.saturating_sub(1))?;
        }
        let end = token_end(text, at);
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' => {
                at += 1;
                continue;
            }
            b'{' | b'[' => level += 1,
            b'}' | b']' => level = level.saturating_sub(1),
            _ => {}
        }
        out.write_all(&text[at..end])?;
        match byte {
            b':' => out.write_all(b" ")?,
            b',' => line(out, level)?,
            _ => {}
        }
        opened = matches!(byte, b'{' | b'[');
        at = end;
    }
    Ok(())
}

/// The end of the token at `start`: a string, a punctuation mark, or a word.
fn token_end(text: &[u8], start: usize) -> usize {
    let rest = text.get(start + 1..).unwrap_or_default();
    match text[start] {
        b'"' => {
            let mut escaped = false;
            let end = rest.iter().position(|&byte| {
                let quote = byte == b'"' && !escaped;
                escaped = byte == b'\\' && !escaped;
                quote
            });
            end.map_or(text.len(), |end| start + end + 2)
        }
        b'{' | b'}' | b'[' | b']' | b',' | b':' => start + 1,
        _ => {
            let word = rest
                .iter()
                .position(|byte| !byte.is_ascii_alphanumeric() && !matches!(byte, b'+' | b'-' | b'.'));
            word.map_or(text.len(), |end| start + end + 1)
        }
    }
}
