//! The splitter against whole-file parsing, at every chunk size.

use std::{
    io::{Cursor, Read},
    sync::Arc,
};

use super::*;
use crate::files::{Entry, Files};

struct Whole(Vec<Entry>, Vec<u8>);

impl Files for Whole {
    fn list(&self) -> &[Entry] {
        &self.0
    }

    fn open(&self, _: &str, _: u64) -> std::io::Result<Box<dyn Read + Send>> {
        Ok(Box::new(Cursor::new(self.1.clone())))
    }
}

struct Chunked<'a>(&'a [u8], usize);

impl Source for Chunked<'_> {
    fn chunk(&mut self, _: usize) -> Result<Vec<u8>, Failure> {
        let (head, tail) = self.0.split_at(self.1.min(self.0.len()));
        self.0 = tail;
        Ok(head.to_vec())
    }
}

fn all(json: &str, pointer: &str, max_bytes: usize) -> Result<Vec<String>, Failure> {
    let entry = Entry { path: "a.json".to_owned(), size: json.len() as u64 };
    let mut library = Library::new(Arc::new(Whole(vec![entry], json.as_bytes().to_vec())), u64::MAX);
    let reader = library.open("a.json")?;
    let mut elements = Elements::open(reader, pointer, &mut library)?;
    let mut out = Vec::new();
    loop {
        let batch = elements.next(max_bytes, &mut library)?;
        if batch.is_empty() {
            return Ok(out);
        }
        let at = usize::try_from(elements.offset()).unwrap_or_default();
        assert!(json.as_bytes()[at..].starts_with(&batch[0]));
        out.extend(batch.iter().map(|element| String::from_utf8_lossy(element).into_owned()));
    }
}

#[test]
fn an_array_is_cut_into_its_elements() -> Result<(), Failure> {
    let json = "\u{feff} [ {\"a\":\"]\\\"}\"} ,\n[1,[2]], \"x\\\\\" , -1.5e3,null ] ";
    let wanted = ["{\"a\":\"]\\\"}\"}", "[1,[2]]", "\"x\\\\\"", "-1.5e3", "null"];
    assert_eq!(all(json, "", 1)?, wanted);
    assert_eq!(all(json, "", 1_000)?, wanted);
    assert_eq!(all("[]", "", 1)?, Vec::<String>::new());
    Ok(())
}

#[test]
fn lines_are_elements_too() -> Result<(), Failure> {
    assert_eq!(all("{\"a\":1}\n{\"a\":2}\r\n\n3", "", 4)?, ["{\"a\":1}", "{\"a\":2}", "3"]);
    assert_eq!(all("", "", 4)?, Vec::<String>::new());
    Ok(())
}

#[test]
fn a_pointer_leads_to_the_array() -> Result<(), Failure> {
    let json = r#"{"x":[0],"a/b":{"~":[{"skip":"]"},["no",{"deep":[1, 2]}]]}}"#;
    assert_eq!(all(json, "/a~1b/~0/1/1/deep", 9)?, ["1", "2"]);
    assert_eq!(all(json, "/x", 9)?, ["0"]);
    for absent in ["/y", "/x/1", "/x/00", "/a~1b/~0/0/skip", "/x/0/z"] {
        assert_eq!(
            all(json, absent, 9).map_err(|failure| failure.kind),
            Err(ErrorKind::Malformed),
            "{absent}"
        );
    }
    assert!(all(json, "x", 9).is_err());
    Ok(())
}

#[test]
fn what_is_whole_comes_before_what_is_cut() {
    let json = "[1,{\"a\":2},{\"a\":";
    let entry = Entry { path: "a.json".to_owned(), size: 0 };
    let mut library = Library::new(Arc::new(Whole(vec![entry], json.as_bytes().to_vec())), u64::MAX);
    let opened = library.open("a.json").and_then(|reader| Elements::open(reader, "", &mut library));
    assert!(opened.is_ok());
    let Ok(mut elements) = opened else { return };
    assert_eq!(elements.next(1_000, &mut library).map(|batch| batch.len()), Ok(2));
    let cut = elements.next(1_000, &mut library);
    assert!(cut.is_err_and(
        |failure| failure.kind == ErrorKind::Malformed && failure.locator.as_deref() == Some("a.json@16")
    ));
}

#[test]
fn broken_arrays_are_told() {
    for json in ["[1 2]", "[1,,2]", "[1,]", "[,1]", "[1", "[\"a", "[}"] {
        assert_eq!(all(json, "", 9).map_err(|failure| failure.kind), Err(ErrorKind::Malformed), "{json}");
    }
}

#[test]
fn values_end_at_the_same_place_at_every_chunk_size() -> Result<(), Failure> {
    let json = br#"{"k":"a\\\"]}","n":[{},[[]],"\u005d"]} tail"#;
    for chunk in 1..json.len() {
        let mut input = Input::new();
        let mut out = Vec::new();
        input.value(&mut Chunked(json, chunk), Some((&mut out, 1_000)))?;
        assert_eq!(out, json[..json.len() - 5], "{chunk}");
        assert_eq!(input.offset(), json.len() as u64 - 5);
    }
    Ok(())
}

#[test]
fn deep_nesting_costs_no_stack_and_long_elements_are_refused() -> Result<(), Failure> {
    let deep = format!("{}{}", "[".repeat(1_000_000), "]".repeat(1_000_000));
    assert_eq!(all(&deep, "", 1)?.len(), 1);
    let mut input = Input::new();
    let long = input.value(&mut Chunked(b"\"0123456789\"", 4), Some((&mut Vec::new(), 8)));
    assert_eq!(long.map_err(|failure| failure.kind), Err(ErrorKind::Limit));
    Ok(())
}
