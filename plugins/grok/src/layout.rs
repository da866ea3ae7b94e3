//! Which files make one export, judged by their names: a hint, which the head of the main file confirms.

use satchel_importer::names::{is_json, is_junk, split};

/// The name of the main file, unless somebody changed it.
pub(crate) const MAIN: &str = "prod-grok-backend.json";
/// The folder with one folder for each uploaded or generated file.
const ASSETS: &str = "prod-mc-asset-server/";

/// What a file's name promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// JSON under any name; its head must tell.
    Json,
    /// Whose export it is; holds sessions and keys beside, which are never looked at.
    Account,
    /// Private, never opened.
    Billing,
    /// Bytes of an attachment.
    Asset,
    /// Belongs to the export and is not known.
    NotRead,
}

/// What the file `path` is, and the folder of its export with the final `/`; none if no export holds such a file.
pub(crate) fn place(path: &str) -> Option<(&str, Kind)> {
    if is_junk(path) {
        return None;
    }
    if let Some(at) = assets_at(path) {
        return path.get(..at).map(|folder| (folder, Kind::Asset));
    }
    let (folder, name) = split(path);
    let kind = match name {
        "prod-mc-auth-mgmt-api.json" => Kind::Account,
        "prod-mc-billing.json" => Kind::Billing,
        MAIN => Kind::Json,
        _ if name.starts_with("prod-") && is_json(name) => Kind::NotRead,
        _ if is_json(name) => Kind::Json,
        _ => return None,
    };
    Some((folder, kind))
}

/// The id of the file whose bytes are at `path`: the folder below [`ASSETS`].
pub(crate) fn asset_id(path: &str) -> Option<&str> {
    let below = path.get(assets_at(path)? + ASSETS.len()..)?;
    let (id, _) = below.split_once('/').unwrap_or((below, ""));
    (!id.is_empty()).then_some(id)
}

fn assets_at(path: &str) -> Option<usize> {
    path.match_indices(ASSETS).map(|(at, _)| at).find(|at| *at == 0 || path[..*at].ends_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_one_export_have_one_folder() {
        let folder = "ttl/30d/export_data/u/";
        for (name, kind) in [
            ("prod-grok-backend.json", Kind::Json),
            ("prod-mc-auth-mgmt-api.json", Kind::Account),
            ("prod-mc-billing.json", Kind::Billing),
            ("prod-mc-asset-server/a-1/content", Kind::Asset),
            ("prod-new-service.json", Kind::NotRead),
        ] {
            assert_eq!(place(&format!("{folder}{name}")), Some((folder, kind)), "{name}");
        }
        assert_eq!(place("holiday.json"), Some(("", Kind::Json)));
        for path in ["photo.jpg", "__MACOSX/prod-grok-backend.json", "x/._prod-mc-billing.json"] {
            assert_eq!(place(path), None, "{path}");
        }
    }

    #[test]
    fn an_asset_is_called_after_its_folder() {
        assert_eq!(asset_id("u/prod-mc-asset-server/a-1/content"), Some("a-1"));
        assert_eq!(asset_id("prod-mc-asset-server/a-1"), Some("a-1"));
        assert_eq!(asset_id("my-prod-mc-asset-server/a-1/content"), None);
    }
}
