//! Importer for sessions of `OpenCode`.

mod changes;
mod database;
mod database_index;
mod database_messages;
mod database_session;
mod database_text;
mod detect;
mod export;
mod fields;
mod file;
mod layout;
mod message;
mod order;
mod part;
mod piece;
mod projection;
mod reading;
mod run;
mod session;
mod session_messages;
mod storage;
mod storage_index;
mod tool;

use satchel_importer::{Bundle, Detection, ImportError, Importer, Info, Sink, Summary, export_importer};

/// Reads the database of `OpenCode`, the files that earlier versions keep for each session, and what `opencode export` prints.
#[derive(Clone, Copy, Debug)]
pub struct OpenCode;

impl Importer for OpenCode {
    fn describe() -> Info {
        Info {
            name: "opencode",
            version: env!("CARGO_PKG_VERSION"),
            platform: "opencode",
            importer_version: detect::DATABASE,
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

export_importer!(OpenCode);
