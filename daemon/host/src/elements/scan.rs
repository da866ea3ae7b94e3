//! Finds the end of a JSON value: strings and brackets are all that it must know.

use memchr::memchr2;

/// How far a value has been read. Depth is a count, so no nesting can exhaust a stack.
#[derive(Default)]
pub(super) struct Scan {
    depth: u64,
    state: At,
    /// The last byte was a backslash inside a string.
    escaped: bool,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum At {
    #[default]
    Start,
    /// In a number or a word at the top: it ends where something else begins.
    Scalar,
    /// Between the strings of an array or object.
    Inside,
    Text,
}

impl Scan {
    /// Whether the end of the file may be the end of the value.
    pub(super) fn may_end(&self) -> bool {
        self.state == At::Scalar
    }

    pub(super) fn began(&self) -> bool {
        self.state != At::Start
    }

    /// Reads on; the place in `bytes` where the value ends, if it does.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            let (taken, ended) = match self.state {
                At::Start => self.start(rest),
                At::Scalar => scalar(rest),
                At::Inside => self.inside(rest),
                At::Text => self.text(rest),
            };
            at += taken;
            if ended {
                return Some(at);
            }
        }
        None
    }

    fn start(&mut self, rest: &[u8]) -> (usize, bool) {
        match rest.first() {
            Some(b'{' | b'[') => {
                self.depth = 1;
                self.state = At::Inside;
                (1, false)
            }
            Some(b'"') => {
                self.state = At::Text;
                (1, false)
            }
            Some(b',' | b':' | b']' | b'}') | None => (0, true),
            Some(_) => {
                self.state = At::Scalar;
                (1, false)
            }
        }
    }

    fn inside(&mut self, rest: &[u8]) -> (usize, bool) {
        for (at, byte) in rest.iter().enumerate() {
            match byte {
                b'"' => {
                    self.state = At::Text;
                    return (at + 1, false);
                }
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        return (at + 1, true);
                    }
                }
                _ => {}
            }
        }
        (rest.len(), false)
    }

    fn text(&mut self, rest: &[u8]) -> (usize, bool) {
        if self.escaped {
            self.escaped = false;
            return (1, false);
        }
        match memchr2(b'"', b'\\', rest) {
            None => (rest.len(), false),
            Some(at) if rest.get(at) == Some(&b'\\') => {
                self.escaped = true;
                (at + 1, false)
            }
            Some(at) => {
                self.state = At::Inside;
                (at + 1, self.depth == 0)
            }
        }
    }
}

fn scalar(rest: &[u8]) -> (usize, bool) {
    let ends = |byte: &u8| {
        matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b',' | b':' | b']' | b'}' | b'[' | b'{' | b'"')
    };
    match rest.iter().position(ends) {
        Some(at) => (at, true),
        None => (rest.len(), false),
    }
}
