//! Importer for Gemini: activity of Google Takeout in JSON and HTML and in many languages, conversations of Gemini in
//! Workspace, prompts of AI Studio, and Gems.

mod activity;
mod conversation_file;
mod detect;
mod files;
mod gems;
mod html;
mod layout;
mod markdown;
mod page_time;
mod redact;
mod run;
mod studio;
mod whitespace;
mod workspace;

use satchel_importer::{Bundle, Detection, ImportError, Importer, Info, Sink, Summary, export_importer};

/// Reads Gemini exports.
#[derive(Clone, Copy, Debug)]
pub struct Gemini;

impl Importer for Gemini {
    fn describe() -> Info {
        Info {
            name: "gemini",
            version: env!("CARGO_PKG_VERSION"),
            platform: "gemini",
            importer_version: detect::WORKSPACE,
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

export_importer!(Gemini);
