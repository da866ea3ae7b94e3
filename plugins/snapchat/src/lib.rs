//! Importer for what an export of Snapchat has of its chatbot My AI: the chat, the photos in it, and the memory.

mod chats;
mod detect;
mod list;
mod map;
mod memory;
mod order;
mod page;
mod raw;
mod run;
mod turns;

use satchel_importer::{Bundle, Detection, ImportError, Importer, Info, Sink, Summary, export_importer};

/// Reads the part of an export of Snapchat that concerns My AI.
#[derive(Clone, Copy, Debug)]
pub struct Snapchat;

impl Importer for Snapchat {
    fn describe() -> Info {
        Info {
            name: "snapchat",
            version: env!("CARGO_PKG_VERSION"),
            platform: "snapchat",
            importer_version: detect::FORMAT,
            formats: &[detect::FORMAT],
        }
    }

    fn detect(bundle: &Bundle) -> Result<Vec<Detection>, ImportError> {
        detect::detect(bundle)
    }

    fn run(format: &str, bundle: &Bundle, sink: &mut Sink) -> Result<Summary, ImportError> {
        run::run(format, bundle, sink)
    }
}

export_importer!(Snapchat);
