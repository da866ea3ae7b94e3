//! Importer for the chats of LM Studio.

mod budget;
mod chat;
mod detect;
mod fields;
mod files;
mod header;
mod ids;
mod layout;
mod message;
mod part;
mod piece;
mod reports;
mod run;
mod step;

use satchel_importer::{Bundle, Detection, ImportError, Importer, Info, Sink, Summary, export_importer};

/// Reads the files in which LM Studio keeps its chats.
#[derive(Clone, Copy, Debug)]
pub struct LmStudio;

impl Importer for LmStudio {
    fn describe() -> Info {
        Info {
            name: "lm-studio",
            version: env!("CARGO_PKG_VERSION"),
            platform: "lm-studio",
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

export_importer!(LmStudio);
