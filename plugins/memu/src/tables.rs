//! The names of a root object's members, in the order of the file, without reading what they hold.

use std::io::BufRead;

use satchel_importer::{Arena, Bundle, ImportError, Parser};

/// Names beyond this many are not told; a dump has three.
const MAX_NAMES: usize = 64;
/// Bytes of a name; a longer one is none of ours.
const MAX_NAME_BYTES: usize = 256;

/// The members of a root object.
pub(crate) struct Tables {
    pub(crate) names: Vec<String>,
    /// The object ends before the file does.
    pub(crate) whole: bool,
}

/// The members of the object that is the root of the file, up to where it breaks off.
pub(crate) fn of(bundle: &Bundle, path: &str) -> Result<Tables, ImportError> {
    let mut reader = bundle.open(path)?;
    let mut scan = Scan::default();
    loop {
        let bytes = reader.fill_buf()?;
        if bytes.is_empty() {
            return Ok(Tables { names: scan.names, whole: scan.whole });
        }
        for byte in bytes {
            scan.pass(*byte);
        }
        let length = bytes.len();
        reader.consume(length);
    }
}

/// Follows strings and braces; a string of the root object that stands where a name is expected is one.
#[derive(Default)]
struct Scan {
    depth: usize,
    place: Place,
    /// The next string at depth 1 is a name.
    expecting: bool,
    /// The string that may be a name, without its first quote.
    text: Vec<u8>,
    names: Vec<String>,
    /// The root has ended.
    whole: bool,
}

/// Where the next byte stands.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Outside,
    /// In a string.
    Inside,
    /// In a string, behind a backslash.
    Escaped,
}

impl Scan {
    fn pass(&mut self, byte: u8) {
        if self.place != Place::Outside {
            self.pass_inside(byte);
            return;
        }
        match byte {
            b'"' => {
                self.place = Place::Inside;
                self.text.clear();
            }
            b'{' | b'[' => {
                self.depth += 1;
                self.expecting = self.depth == 1 && byte == b'{';
            }
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                self.whole |= self.depth == 0;
            }
            b',' if self.depth == 1 => self.expecting = true,
            b':' if self.depth == 1 => self.expecting = false,
            _ => {}
        }
    }

    fn pass_inside(&mut self, byte: u8) {
        let ends = byte == b'"' && self.place == Place::Inside;
        self.place = match (self.place, byte) {
            (Place::Inside, b'\\') => Place::Escaped,
            (Place::Inside, b'"') => Place::Outside,
            _ => Place::Inside,
        };
        if self.expecting && self.depth == 1 && self.text.len() <= MAX_NAME_BYTES {
            self.text.push(byte);
        }
        if ends {
            self.end_string();
        }
    }

    fn end_string(&mut self) {
        if !self.expecting || self.depth != 1 || self.names.len() >= MAX_NAMES {
            return;
        }
        let quoted = format!("\"{}", String::from_utf8_lossy(&self.text));
        let arena = Arena::new();
        if let Ok(name) = Parser::new(&quoted, &arena).string()
            && !self.names.iter().any(|known| known == name)
        {
            self.names.push(name.to_owned());
        }
        self.expecting = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names_of(text: &str) -> Vec<String> {
        tables(text).names
    }

    fn tables(text: &str) -> Tables {
        let bundle = Bundle::from_files([("a.json", text.as_bytes().to_vec())]);
        of(&bundle, "a.json").expect("the file can be read")
    }

    #[test]
    fn members_of_the_root_are_named_in_order() {
        let text = r#"{"b\u0061":[{"x":"y, \"z\": {"}],"c":"d","e" : {"f":[1,2]},"ba":null}"#;
        assert_eq!(names_of(text), ["ba", "c", "e"]);
        assert!(tables(text).whole);
    }

    #[test]
    fn a_cut_file_names_what_stands_before_the_cut() {
        assert_eq!(names_of(r#"{"memories":[{"a":1},{"b"#), ["memories"]);
        assert_eq!(names_of(r#"{"memories":[],"conv"#), ["memories"]);
        assert!(!tables(r#"{"memories":[],"conv"#).whole);
        assert!(names_of("").is_empty());
        assert!(names_of("[[\"a\"]]").is_empty());
    }
}
