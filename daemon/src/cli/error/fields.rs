//! Maps the fields of a request to the options of the command line, because people know options, not the names on
//! the wire.

/// Beginnings of field names and their replacements; the first match wins.
const NAMES: &[(&str, &str)] = &[
    ("addresses", "--address"),
    ("age_recipients", "--encrypt-to"),
    ("as_of_revision", "--revision"),
    ("attachments", "--attachments"),
    ("base_export_id", "--base"),
    ("base_path", "--base"),
    ("device_name", "--name"),
    ("expected_count", "--expect"),
    ("expire_time", "--for"),
    ("filter.accounts", "--account"),
    ("filter.content_hash", "the hash"),
    ("filter.conversation_id", "--conversation"),
    ("filter.created", "--created-since and --created-until"),
    ("filter.platforms", "--platform"),
    ("filter.statuses", "--status"),
    ("filter.tags_", "--tag"),
    ("filter.title_contains", "--title"),
    ("filter.types", "--type"),
    ("filter.updated", "--since and --until"),
    ("filter", "the filter"),
    ("leaf_id", "--branch"),
    ("memory.access.exportable", "--exportable"),
    ("memory.access.shared_with", "the grants"),
    ("memory.access.visibility", "--visibility"),
    ("memory.confidence.decay_model", "--decay"),
    ("memory.content", "the text"),
    ("memory.custom_type", "--custom-type"),
    ("memory.metadata_json", "--meta"),
    ("memory.summary", "--summary"),
    ("memory.tags", "--tag"),
    ("memory.temporal.valid_from", "--valid-from"),
    ("memory.temporal.valid_until", "--valid-until"),
    ("memory.type", "--type"),
    ("output", "--output"),
    ("passphrase", "the passphrase"),
    ("path", "the path"),
    ("platform", "--provider"),
    ("plugin", "--plugin"),
    ("policy.role", "--role"),
    ("policy.scopes", "--scope"),
    ("policy.selection.created", "--created-since and --created-until"),
    ("policy.selection.denied_tags", "--deny-tag"),
    ("policy.selection.platforms", "--platform"),
    ("policy.selection.tags", "--tag"),
    ("policy.selection.types", "--type"),
    ("public_key", "the key"),
    ("reason", "--reason"),
    ("relation.confidence", "--confidence"),
    ("relation.from_id", "the first memory"),
    ("relation.to_id", "the second memory"),
    ("relation.type", "the type"),
    ("selection.created", "--created-since and --created-until"),
    ("selection.denied_tags", "--deny-tag"),
    ("selection.platforms", "--platform"),
    ("selection.tags", "--tag"),
    ("selection.types", "--type"),
    ("strip_identifiers", "--strip-identifiers"),
    ("type", "--type"),
    ("undo_token", "--change"),
    ("unlock", "the identity or passphrase (--identity, --passphrase)"),
    ("valid_for", "--for"),
];

/// Returns the name that people use for the field.
pub(super) fn name(field: &str) -> String {
    let known = NAMES.iter().find(|(start, _)| {
        field
            .strip_prefix(start)
            .is_some_and(|rest| rest.is_empty() || start.ends_with('_') || rest.starts_with('.'))
    });
    known.map_or_else(|| format!("the {}", words(field)), |(_, name)| (*name).to_owned())
}

/// Returns the last part of a name, as words.
fn words(field: &str) -> String {
    let last = field.rsplit('.').next().unwrap_or(field);
    last.trim_end_matches("_id").replace('_', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_named_after_their_options() {
        for (field, called) in [
            ("age_recipients", "--encrypt-to"),
            ("filter.updated.start", "--since and --until"),
            ("filter.tags_all", "--tag"),
            ("filter", "the filter"),
            ("memory.temporal.valid_from", "--valid-from"),
            ("memory.access.shared_with.permissions", "the grants"),
            ("page_size", "the page size"),
            ("relation.from_id", "the first memory"),
            ("id", "the id"),
            ("pathless", "the pathless"),
        ] {
            assert_eq!(name(field), called, "{field}");
        }
    }
}
