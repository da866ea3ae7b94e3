//! Finds the files that a record names, in the export.

use std::borrow::Cow;

use satchel_importer::{
    Attachment, AttachmentKind, Bundle, Source,
    address::{is_uri, unsigned},
    names,
};

use crate::layout;

/// The folders, each with its final `/`, that may hold the files of a record in `path`: its own folder, and the same
/// folder in other parts of the Takeout.
pub(crate) fn folders(bundle: &Bundle, path: &str) -> Vec<String> {
    let (own, _) = names::split(path);
    let mut folders = vec![own.to_owned()];
    if let Some((_, inside)) = own.split_once("Takeout/") {
        let root = layout::export_root(path);
        for other in bundle.entries().iter().map(|entry| names::split(&entry.path).0) {
            let same_inside = other.split_once("Takeout/").is_some_and(|(_, folder)| folder == inside);
            let added = other == own || folders.last().is_some_and(|last| last == other);
            if same_inside && !added && layout::export_root(other) == root {
                folders.push(other.to_owned());
            }
        }
    }
    folders
}

/// The attachment named `file`. Its source is an address, or the file of that name in one of `folders`.
pub(crate) fn attachment<'a>(
    bundle: &Bundle,
    folders: &[String],
    file: Cow<'a, str>,
    name: Option<Cow<'a, str>>,
    kind: Option<AttachmentKind>,
) -> Attachment<'a> {
    let file_name = names::split(&file).1.to_owned();
    let kind = kind.unwrap_or_else(|| AttachmentKind::of(None, Some(&file_name)));
    let mut attachment = Attachment { kind, ..Attachment::default() };
    if is_uri(&file) && file.contains("//") {
        attachment.name = name;
        let address = unsigned(&file).into_owned();
        attachment.reference = Some(Cow::Owned(address.clone()));
        attachment.source = Some(Source::Uri(Cow::Owned(address)));
        return attachment;
    }
    attachment.name = Some(name.unwrap_or(Cow::Owned(file_name)));
    match folders.iter().find_map(|folder| find(bundle, folder, &file)) {
        Some(path) => attachment.source = Some(Source::Path(Cow::Owned(path))),
        None => attachment.reference = Some(file),
    }
    attachment
}

/// The path of `file` in the export. Names may be percent-encoded, and `.jpg` and `.jpeg` may be exchanged.
fn find(bundle: &Bundle, folder: &str, file: &str) -> Option<String> {
    let decoded = percent_decoded(file);
    let variants = [file, decoded.as_ref()].into_iter();
    let variants =
        variants.flat_map(|name| [Some(name.to_owned()), with_other_jpeg_extension(name)]).flatten();
    variants
        .map(|name| format!("{folder}{}", name.trim_start_matches("./")))
        .find(|path| bundle.entry(path).is_some())
}

/// The file of the export whose name without its extension is `stem`.
pub(crate) fn find_stem(bundle: &Bundle, folder: &str, stem: &str) -> Option<String> {
    let start = format!("{folder}{stem}");
    let entries = bundle.entries();
    let from = entries.partition_point(|entry| entry.path < start);
    let mut candidates = entries.iter().skip(from).map_while(|entry| entry.path.strip_prefix(&start));
    candidates
        .find(|rest| rest.is_empty() || (rest.starts_with('.') && !rest.contains('/')))
        .map(|rest| start.clone() + rest)
}

fn with_other_jpeg_extension(name: &str) -> Option<String> {
    let (stem, extension) = name.rsplit_once('.')?;
    match extension {
        "jpeg" => Some(format!("{stem}.jpg")),
        "jpg" => Some(format!("{stem}.jpeg")),
        _ => None,
    }
}

fn percent_decoded(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return Cow::Borrowed(text);
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let code = tail.get(..2).and_then(|pair| std::str::from_utf8(pair).ok());
        let code = code.filter(|_| *first == b'%').and_then(|pair| u8::from_str_radix(pair, 16).ok());
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { tail.get(2..).unwrap_or_default() } else { tail };
    }
    String::from_utf8(bytes).map_or(Cow::Borrowed(text), Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_by_their_names() {
        let bundle = Bundle::from_files([
            ("g/my note.txt", "x"),
            ("g/a.jpg", "x"),
            ("g/i_0.png", "x"),
            ("g/i_01.png", "x"),
        ]);
        let found = |name| find(&bundle, "g/", name);
        assert_eq!(found("my%20note.txt").as_deref(), Some("g/my note.txt"));
        assert_eq!(found("./a.jpeg").as_deref(), Some("g/a.jpg"));
        assert_eq!(found("%zz%"), None);
        assert_eq!(find_stem(&bundle, "g/", "i_0").as_deref(), Some("g/i_0.png"));
        assert_eq!(find_stem(&bundle, "g/", "i_"), None);
    }
}
