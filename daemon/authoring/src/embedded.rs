//! The files of a new project, inside the program. The build script gathers them.

use include_dir::{Dir, include_dir};

use crate::language::Language;

static FILES: Dir<'_> = include_dir!("$OUT_DIR/project-files");

/// A file of the program, and its path in the project.
pub(crate) struct EmbeddedFile {
    pub(crate) path: String,
    pub(crate) content: &'static [u8],
    /// Placeholders are replaced in its path and content.
    pub(crate) template: bool,
}

/// Returns all files of a project in `language`.
pub(crate) fn files(language: Language) -> Vec<EmbeddedFile> {
    let sdk = match language {
        // The crates find each other as siblings.
        Language::Rust => "sdk".to_owned(),
        Language::JavaScript | Language::Python => format!("sdk/{language}"),
    };
    let mut files = Vec::new();
    collect(&format!("templates/{language}"), "", true, &mut files);
    collect(&format!("sdk/{language}"), &sdk, false, &mut files);
    collect("wit", "sdk/wit", false, &mut files);
    files
}

/// Adds the files below the embedded folder `from`, with paths below `to`.
fn collect(from: &str, to: &str, template: bool, files: &mut Vec<EmbeddedFile>) {
    let mut open: Vec<&Dir<'_>> = FILES.get_dir(from).into_iter().collect();
    while let Some(folder) = open.pop() {
        open.extend(folder.dirs());
        files.extend(folder.files().filter_map(|file| {
            let path = file.path().strip_prefix(from).ok()?.to_str()?;
            let path = if to.is_empty() { path.to_owned() } else { format!("{to}/{path}") };
            Some(EmbeddedFile { path, content: file.contents(), template })
        }));
    }
}
