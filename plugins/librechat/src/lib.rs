//! Importer for conversations exported from LibreChat: branches, reasoning, tool calls, files and sources.

mod base64;
mod detect;
mod map;
mod raw;
mod run;
mod split;
mod text;

use satchel_importer::{Bundle, Detection, ImportError, Importer, Info, Sink, Summary, export_importer};

/// Reads exports of LibreChat.
#[derive(Clone, Copy, Debug)]
pub struct LibreChat;

impl Importer for LibreChat {
    fn describe() -> Info {
        Info {
            name: "librechat",
            version: env!("CARGO_PKG_VERSION"),
            platform: "librechat",
            importer_version: detect::PARTS,
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

export_importer!(LibreChat);
