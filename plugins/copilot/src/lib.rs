//! Importer for the tables of Microsoft Copilot's activity history.

mod detect;
mod group;
mod layout;
mod map;
mod record;
mod rows;
mod run;
mod time;

use satchel_importer::{Bundle, Detection, ImportError, Importer, Info, Sink, Summary, export_importer};

/// Reads the Copilot tables that Microsoft's privacy dashboard exports.
#[derive(Clone, Copy, Debug)]
pub struct Copilot;

impl Importer for Copilot {
    fn describe() -> Info {
        Info {
            name: "copilot",
            version: env!("CARGO_PKG_VERSION"),
            platform: "copilot",
            importer_version: layout::HISTORY,
            formats: &layout::FORMATS,
        }
    }

    fn detect(bundle: &Bundle) -> Result<Vec<Detection>, ImportError> {
        detect::detect(bundle)
    }

    fn run(format: &str, bundle: &Bundle, sink: &mut Sink) -> Result<Summary, ImportError> {
        run::run(format, bundle, sink)
    }
}

export_importer!(Copilot);
