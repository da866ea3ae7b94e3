//! Importer for sessions and memories of Gemini CLI.

mod detect;
mod digest;
mod fields;
mod injected;
mod layout;
mod line;
mod memory;
mod parts;
mod record;
mod run;
mod session;
mod survey;
mod tree;

use satchel_importer::{Bundle, Detection, ImportError, Importer, Info, Sink, Summary, export_importer};

/// Reads what Gemini CLI keeps below `~/.gemini`.
#[derive(Clone, Copy, Debug)]
pub struct GeminiCli;

impl Importer for GeminiCli {
    fn describe() -> Info {
        Info {
            name: "gemini-cli",
            version: env!("CARGO_PKG_VERSION"),
            platform: "gemini-cli",
            importer_version: detect::LINES,
            formats: &detect::FORMATS,
        }
    }

    fn detect(bundle: &Bundle) -> Result<Vec<Detection>, ImportError> {
        detect::detect(bundle)
    }

    fn run(format: &str, bundle: &Bundle, sink: &mut Sink) -> Result<Summary, ImportError> {
        run::run(format, bundle, sink)
    }
}

export_importer!(GeminiCli);
