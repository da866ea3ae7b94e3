//! Importer for chats of Mistral's Le Chat: one file for each chat, its files in a folder next to it.

mod detect;
mod layout;
mod map;
mod order;
mod raw;
mod run;

use satchel_importer::{Bundle, Detection, ImportError, Importer, Info, Sink, Summary, export_importer};

/// Reads exports of Le Chat.
#[derive(Clone, Copy, Debug)]
pub struct Mistral;

impl Importer for Mistral {
    fn describe() -> Info {
        Info {
            name: "mistral",
            version: env!("CARGO_PKG_VERSION"),
            platform: "mistral",
            importer_version: detect::CHATS,
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

export_importer!(Mistral);
