//! Importer for chats of Open WebUI, from its exports and its database: every branch, the models' thoughts, tool calls, files, sources and
//! the person's memories.

mod base64;
mod database;
mod detect;
mod map;
mod raw;
mod run;
mod text;

use satchel_importer::{Bundle, Detection, ImportError, Importer, Info, Sink, Summary, export_importer};

/// Reads exports and databases of Open WebUI.
#[derive(Clone, Copy, Debug)]
pub struct OpenWebUi;

impl Importer for OpenWebUi {
    fn describe() -> Info {
        Info {
            name: "open-webui",
            version: env!("CARGO_PKG_VERSION"),
            platform: "open-webui",
            importer_version: detect::OUTPUT,
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

export_importer!(OpenWebUi);
