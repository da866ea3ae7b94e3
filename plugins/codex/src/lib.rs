//! Importer for sessions of the OpenAI Codex CLI: one file for each session.

mod detect;
mod fields;
mod injected;
mod layout;
mod line;
mod map;
mod message_tree;
mod run;
mod session;
mod survey;
mod turn;

use satchel_importer::{Bundle, Detection, ImportError, Importer, Info, Sink, Summary, export_importer};

/// Reads the session files of the Codex CLI.
#[derive(Clone, Copy, Debug)]
pub struct Codex;

impl Importer for Codex {
    fn describe() -> Info {
        Info {
            name: "codex",
            version: env!("CARGO_PKG_VERSION"),
            platform: "codex",
            importer_version: detect::WRAPPED,
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

export_importer!(Codex);
