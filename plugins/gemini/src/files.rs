//! Files beside a record: attachments by their names.

use std::borrow::Cow;

use satchel_importer::{
    Attachment, AttachmentKind, Bundle, Source,
    address::{is_uri, unsigned},
    names,
};

use crate::layout;

/// The folders in which files of the record in `path` may stand: its own, and the same folder in other parts of a
/// Takeout. Each with its final `/`.
pub(crate) fn folders(bundle: &Bundle, path: &str) -> Vec<String> {
    let (own, _) = names::split(path);
    let mut folders = vec![own.to_owned()];
    if let Some((_, inside)) = own.split_once("Takeout/") {
        let root = layout::root(path);
        let others = bundle.entries().iter().map(|entry| names::split(&entry.path).0);
        for other in
            others.filter(|other| other.split_once("Takeout/").is_some_and(|(_, folder)| folder == inside))
        {
            if folders.last().is_none_or(|last| last != other) && other != own && layout::root(other) == root
            {
                folders.push(other.to_owned());
            }
        }
    }
    folders
}

/// The attachment named `file`, with its bytes if the export holds them in one of `folders`.
pub(crate) fn attachment<'a>(
    bundle: &Bundle,
    folders: &[String],
    file: Cow<'a, str>,
    name: Option<Cow<'a, str>>,
    kind: Option<AttachmentKind>,
) -> Attachment<'a> {
    let shown = names::split(&file).1.to_owned();
    let kind = kind.unwrap_or_else(|| AttachmentKind::of(None, Some(&shown)));
    let mut attachment = Attachment { kind, ..Attachment::default() };
    if is_uri(&file) && file.contains("//") {
        attachment.name = name;
        let address = unsigned(&file).into_owned();
        attachment.reference = Some(Cow::Owned(address.clone()));
        attachment.source = Some(Source::Uri(Cow::Owned(address)));
        return attachment;
    }
    attachment.name = Some(name.unwrap_or(Cow::Owned(shown)));
    match folders.iter().find_map(|folder| find(bundle, folder, &file)) {
        Some(path) => attachment.source = Some(Source::Path(Cow::Owned(path))),
        None => attachment.reference = Some(file),
    }
    attachment
}

/// The path of `file` in the export. Names may be percent-encoded, and JPEG images may end otherwise than they say.
fn find(bundle: &Bundle, folder: &str, file: &str) -> Option<String> {
    let decoded = percent_decoded(file);
    let plain = [file, decoded.as_ref()];
    let ways = plain.into_iter().flat_map(|name| [Some(name.to_owned()), renamed(name)]).flatten();
    ways.map(|name| format!("{folder}{}", name.trim_start_matches("./")))
        .find(|path| bundle.entry(path).is_some())
}

/// The file of the export whose name without its ending is `stem`.
pub(crate) fn find_stem(bundle: &Bundle, folder: &str, stem: &str) -> Option<String> {
    let start = format!("{folder}{stem}");
    let entries = bundle.entries();
    let from = entries.partition_point(|entry| entry.path < start);
    let same =
        entries.get(from..).unwrap_or_default().iter().take_while(|entry| entry.path.starts_with(&start));
    let ends = |path: &str| {
        let rest = path.get(start.len()..).unwrap_or_default();
        rest.is_empty() || (rest.starts_with('.') && !rest.contains('/'))
    };
    same.map(|entry| &entry.path).find(|path| ends(path)).cloned()
}

fn renamed(name: &str) -> Option<String> {
    let (stem, ending) = name.rsplit_once('.')?;
    match ending {
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
    fn names_lead_to_files_of_the_export() {
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
