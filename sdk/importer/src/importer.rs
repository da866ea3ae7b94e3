//! What a plugin implements.

use crate::{Bundle, ErrorKind, ImportError, Sink};

/// An importer for one provider. It is called without state: each call may run in a fresh sandbox.
pub trait Importer {
    /// Who the importer is; the same at every call.
    fn describe() -> Info;

    /// Names the exports among the files, by structure and not by file name.
    ///
    /// The host gives one second of work and 16 MiB of reading for each file: look at names and heads
    /// ([`crate::JsonArray::sample`]). An empty list means "not mine"; an error means that something is broken.
    fn detect(bundle: &Bundle) -> Result<Vec<Detection>, ImportError>;

    /// Reads one export that [`Importer::detect`] found; `bundle` shows only the files that it claimed.
    ///
    /// One bad record must not sink the run: give it to [`Sink::skip`] and go on.
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
    /// The newest format that it reads, such as `chatgpt-importer/2026.07`.
    pub importer_version: &'static str,
    /// Every format that `detect` may name.
    pub formats: &'static [&'static str],
}

impl Info {
    /// The version part of `format`: `2026.07` of `chatgpt-importer/2026.07`.
    ///
    /// # Errors
    /// [`ErrorKind::UnsupportedVersion`] if it is none of [`Info::formats`].
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
    /// 0 to 100; where two plugins claim a file, the higher wins.
    pub confidence: u8,
    /// The files that belong to this export, attachments too.
    pub files: Vec<String>,
    /// Whose export it is, if the files say.
    pub account: Option<String>,
}

/// What a run says at its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Bytes read; [`Bundle::summary`] knows them.
    pub bytes: u64,
}
