//! The trait that an importer implements, and its types.

use crate::{Bundle, ErrorKind, ImportError, Sink};

/// An importer for one provider. It keeps no state: each call may run in a new sandbox.
pub trait Importer {
    /// Describes the importer; the result is the same for every call.
    fn describe() -> Info;

    /// Finds the exports among the files. It should recognise them by structure, not by file name.
    ///
    /// The host allows one second of work, and 16 MiB of reads for each file. So look only at names and at the heads of
    /// files ([`crate::JsonArray::sample`]). If no file belongs to this importer, return an empty list.
    ///
    /// # Errors
    /// Only if something is broken, such as a file that cannot be read.
    fn detect(bundle: &Bundle) -> Result<Vec<Detection>, ImportError>;

    /// Reads one export that [`Importer::detect`] found; `bundle` contains only the files that it claimed.
    ///
    /// A bad record must not end the run: report it with [`Sink::skip`] and continue.
    ///
    /// # Errors
    /// [`ErrorKind::NotThisFormat`] if the files are not in `format`, [`ErrorKind::Cancelled`] if a call of `sink`
    /// returns it, and any error after which nothing more can be read.
    fn run(format: &str, bundle: &Bundle, sink: &mut Sink) -> Result<Summary, ImportError>;
}

/// An importer's description of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Info {
    /// `[a-z0-9][a-z0-9-]{1,40}`, such as `chatgpt`.
    pub name: &'static str,
    /// `x.y.z`; usually `env!("CARGO_PKG_VERSION")`.
    pub version: &'static str,
    /// PAM `provenance.platform`, such as `openai`.
    pub platform: &'static str,
    /// PAM `import_metadata.importer_version`: the newest format that it reads, such as `chatgpt-importer/2026.07`.
    pub importer_version: &'static str,
    /// Every format that `detect` may return.
    pub formats: &'static [&'static str],
}

impl Info {
    /// The version part of `format`: `2026.07` of `chatgpt-importer/2026.07`.
    ///
    /// # Errors
    /// [`ErrorKind::UnsupportedVersion`] if it is not one of [`Info::formats`].
    pub fn version_of(&self, format: &str) -> Result<&'static str, ImportError> {
        let known = self.formats.iter().find(|known| **known == format);
        let version = known.and_then(|known| known.split_once('/')).map(|(_, version)| version);
        version.ok_or_else(|| {
            ImportError::new(ErrorKind::UnsupportedVersion, format!("no format {format:?} is known"))
        })
    }
}

/// One export found among the files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Detection {
    /// One of [`Info::formats`].
    pub format: String,
    /// 0 to 100. If two plugins claim the same file, the higher value wins.
    pub confidence: u8,
    /// The files that belong to this export, including attachments.
    pub files: Vec<String>,
    /// The account that the export belongs to, if the files state it.
    pub account: Option<String>,
}

/// The result of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The number of bytes read; [`Bundle::summary`] sets it.
    pub bytes: u64,
}
