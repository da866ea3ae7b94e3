//! Which files belong to one export, by their names; the head of the main file confirms it.

use satchel_importer::names::{is_json, is_junk, split};

/// The usual name of the main file.
pub(crate) const MAIN: &str = "prod-grok-backend.json";
/// The folder with one folder for each uploaded or generated file.
const ASSETS: &str = "prod-mc-asset-server/";

/// The kind of a file, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FileKind {
    /// JSON under any name; its head decides.
    Json,
    /// The user's account; the sessions and keys in it are never read.
    Account,
    /// Private; never opened.
    Billing,
    /// Bytes of an attachment.
    Asset,
    /// Of the export, but of an unknown service.
    Unknown,
}

/// The folder of the export of the file `path`, with the final `/`, and the kind of the file; none if no export has such
/// a file.
pub(crate) fn classify(path: &str) -> Option<(&str, FileKind)> {
    if is_junk(path) {
        return None;
    }
    if let Some(at) = assets_offset(path) {
        return path.get(..at).map(|folder| (folder, FileKind::Asset));
    }
    let (folder, name) = split(path);
    let kind = match name {
        "prod-mc-auth-mgmt-api.json" => FileKind::Account,
        "prod-mc-billing.json" => FileKind::Billing,
        MAIN => FileKind::Json,
        _ if name.starts_with("prod-") && is_json(name) => FileKind::Unknown,
        _ if is_json(name) => FileKind::Json,
        _ => return None,
    };
    Some((folder, kind))
}

/// The id of the asset at `path`: the name of the folder below [`ASSETS`].
pub(crate) fn asset_id(path: &str) -> Option<&str> {
    let below = path.get(assets_offset(path)? + ASSETS.len()..)?;
    let (id, _) = below.split_once('/').unwrap_or((below, ""));
    (!id.is_empty()).then_some(id)
}

fn assets_offset(path: &str) -> Option<usize> {
    path.match_indices(ASSETS).map(|(at, _)| at).find(|at| *at == 0 || path[..*at].ends_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_one_export_have_one_folder() {
        let folder = "ttl/30d/export_data/u/";
        for (name, kind) in [
            ("prod-grok-backend.json", FileKind::Json),
            ("prod-mc-auth-mgmt-api.json", FileKind::Account),
            ("prod-mc-billing.json", FileKind::Billing),
            ("prod-mc-asset-server/a-1/content", FileKind::Asset),
            ("prod-new-service.json", FileKind::Unknown),
        ] {
            assert_eq!(classify(&format!("{folder}{name}")), Some((folder, kind)), "{name}");
        }
        assert_eq!(classify("holiday.json"), Some(("", FileKind::Json)));
        for path in ["photo.jpg", "__MACOSX/prod-grok-backend.json", "x/._prod-mc-billing.json"] {
            assert_eq!(classify(path), None, "{path}");
        }
    }

    #[test]
    fn an_asset_is_called_after_its_folder() {
        assert_eq!(asset_id("u/prod-mc-asset-server/a-1/content"), Some("a-1"));
        assert_eq!(asset_id("prod-mc-asset-server/a-1"), Some("a-1"));
        assert_eq!(asset_id("my-prod-mc-asset-server/a-1/content"), None);
    }
}
