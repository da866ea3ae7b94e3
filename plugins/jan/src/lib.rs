//! Importer for the threads of Jan.

mod chat;
mod content;
mod detect;
mod fields;
mod file;
mod header;
mod layout;
mod message;
mod order;
mod part;
mod piece;
mod reports;
mod run;
mod tool;

use satchel_importer::{Bundle, Detection, ImportError, Importer, Info, Sink, Summary, export_importer};

/// Reads the files in which Jan keeps its threads, and those that it exports.
#[derive(Clone, Copy, Debug)]
pub struct Jan;

impl Importer for Jan {
    fn describe() -> Info {
        Info {
            name: "jan",
            version: env!("CARGO_PKG_VERSION"),
            platform: "jan",
            importer_version: detect::EXPORT,
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

export_importer!(Jan);
