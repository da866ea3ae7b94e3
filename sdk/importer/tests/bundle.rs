//! Native bundles: folders, files in memory, seeking, limits.

use std::io::{BufRead, Read};

use satchel_importer::{Bundle, ErrorKind, ImportError};

#[test]
fn files_of_a_folder_are_sorted_by_path() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    std::fs::create_dir(folder.path().join("b"))?;
    std::fs::write(folder.path().join("b/x.json"), "12345")?;
    std::fs::write(folder.path().join("a.json"), "")?;
    let bundle = Bundle::from_folder(folder.path())?;
    let entries: Vec<(&str, u64)> =
        bundle.entries().iter().map(|entry| (entry.path.as_str(), entry.size)).collect();
    assert_eq!(entries, [("a.json", 0), ("b/x.json", 5)]);
    assert_eq!(bundle.read("b/x.json", 5)?, b"12345");
    assert_eq!(bundle.read("b/x.json", 4).map_err(|error| error.kind), Err(ErrorKind::Limit));
    let only = bundle.only(&["a.json".to_owned(), "gone".to_owned()]);
    assert_eq!(only.entries().len(), 1);
    assert!(only.entry("b/x.json").is_none());
    Ok(())
}

#[test]
fn a_small_file_is_the_same_each_time_it_is_opened() -> Result<(), ImportError> {
    let bundle = Bundle::from_files([("a", "first"), ("b", "second"), ("c", "")]);
    for path in ["a", "a", "b", "a", "c", "c", "b", "b"] {
        let mut text = String::new();
        let mut reader = bundle.open(path)?;
        reader.read_to_string(&mut text)?;
        let expected =
            [("a", "first"), ("b", "second"), ("c", "")].into_iter().find(|(name, _)| *name == path);
        assert_eq!(expected, Some((path, text.as_str())));
        assert_eq!((reader.size(), reader.position()), (text.len() as u64, text.len() as u64));
        for (offset, rest) in [(2, text.get(2..)), (900, None), (1, text.get(1..))] {
            reader.seek(offset)?;
            assert_eq!(reader.fill_buf()?, rest.unwrap_or_default().as_bytes(), "{path} from {offset}");
        }
    }
    assert!(bundle.open("d").is_err());
    Ok(())
}

#[test]
fn a_reader_streams_and_seeks() -> Result<(), ImportError> {
    let bytes: Vec<u8> = (0..700_000u32).map(|index| (index % 251) as u8).collect();
    let bundle = Bundle::from_files([("f", bytes.clone())]);
    let mut reader = bundle.open("f")?;
    assert_eq!(reader.size(), 700_000);
    let mut read = Vec::new();
    reader.read_to_end(&mut read)?;
    assert_eq!(read, bytes);
    assert_eq!((reader.position(), bundle.bytes_read(), bundle.summary().bytes), (700_000, 700_000, 700_000));
    reader.seek(300_000)?;
    assert_eq!(reader.fill_buf()?.first(), bytes.get(300_000));
    reader.consume(10);
    assert_eq!(reader.position(), 300_010);
    let so_far = bundle.bytes_read();
    for offset in [300_000, 300_700, 300_001] {
        reader.seek(offset)?;
        let next = bytes.get(usize::try_from(offset).expect("it is small"));
        assert_eq!((reader.position(), reader.fill_buf()?.first()), (offset, next));
    }
    assert_eq!(bundle.bytes_read(), so_far, "it is in memory");
    for offset in [299_999, 700_000, 0] {
        reader.seek(offset)?;
        let next = bytes.get(usize::try_from(offset).expect("it is small"));
        assert_eq!((reader.position(), reader.fill_buf()?.first()), (offset, next));
    }
    Ok(())
}

#[test]
fn the_error_for_a_missing_file_has_its_name() {
    let bundle = Bundle::from_files([("f", "")]);
    let error = bundle.open("g").err();
    assert_eq!(error.map(|error| (error.kind, error.locator)), Some((ErrorKind::Io, Some("g".to_owned()))));
}

#[test]
fn a_text_in_memory_is_read_like_a_file() {
    let path = "state.db#chats[rowid 1]";
    let text = format!("[{}]", vec![r#"{"id":"a"}"#; 40_000].join(","));
    let bundle = Bundle::in_memory(path, text.clone().into_bytes());
    assert_eq!(bundle.entry(path).map(|entry| entry.size), Some(text.len() as u64));
    for _ in 0..2 {
        assert_eq!(bundle.read(path, u64::MAX).expect("it is in memory"), text.as_bytes());
    }
    let mut reader = bundle.open(path).expect("it is in memory");
    reader.seek(300_000).expect("it is in memory");
    let mut rest = String::new();
    reader.read_to_string(&mut rest).expect("it is in memory");
    assert_eq!(rest, text[300_000..]);
    assert!(bundle.open("another").is_err());
}
