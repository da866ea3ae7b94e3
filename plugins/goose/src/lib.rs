//! Importer for sessions and memories of Goose.

mod artifacts;
mod block;
mod bytes;
mod call;
mod credentials;
mod database;
mod detect;
mod export;
mod ids;
mod layout;
mod memory;
mod message;
mod piece;
mod private;
mod reports;
mod result;
mod run;
mod session;
mod transcript;

use satchel_importer::{Bundle, Detection, ImportError, Importer, Info, Sink, Summary, export_importer};

/// Reads the database and the session files of Goose, the sessions that it exports as JSON, and the files of its memory extension.
#[derive(Clone, Copy, Debug)]
pub struct Goose;

impl Importer for Goose {
    fn describe() -> Info {
        Info {
            name: "goose",
            version: env!("CARGO_PKG_VERSION"),
            platform: "goose",
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

export_importer!(Goose);
