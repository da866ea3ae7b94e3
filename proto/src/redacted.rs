//! `Debug` output of messages that contain secrets: the secrets are left out.

use std::fmt;

use crate::v1::{CreateExportRequest, Unlock};

impl fmt::Debug for Unlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { identities, passphrase } = self;
        f.debug_struct("Unlock")
            .field("identities", &identities.len())
            .field("passphrase", &!passphrase.is_empty())
            .finish()
    }
}

impl fmt::Debug for CreateExportRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            r#type,
            output,
            filter,
            without_conversations,
            attachments,
            strip_identifiers,
            format,
            base_export_id,
            age_recipients,
            passphrase,
        } = self;
        f.debug_struct("CreateExportRequest")
            .field("type", r#type)
            .field("output", output)
            .field("filter", filter)
            .field("without_conversations", without_conversations)
            .field("attachments", attachments)
            .field("strip_identifiers", strip_identifiers)
            .field("format", format)
            .field("base_export_id", base_export_id)
            // A user may enter an identity here by mistake, and an identity is secret.
            .field("age_recipients", &age_recipients.len())
            .field("passphrase", &!passphrase.is_empty())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use crate::v1::{CreateExportRequest, CreateImportRequest, Unlock};

    #[test]
    fn debug_output_contains_no_secret() {
        let export = CreateExportRequest {
            output: "/a.zip.age".to_owned(),
            age_recipients: vec!["AGE-SECRET-KEY-1CANARY".to_owned()],
            passphrase: "correct horse battery".to_owned(),
            ..CreateExportRequest::default()
        };
        let unlock = Unlock {
            identities: vec!["AGE-SECRET-KEY-1CANARY".to_owned()],
            passphrase: "correct horse battery".to_owned(),
        };
        let import = CreateImportRequest { unlock: Some(unlock), ..CreateImportRequest::default() };
        let debug = format!("{export:?} {import:?}");
        assert!(debug.contains("/a.zip.age") && debug.contains("Unlock"), "{debug}");
        assert!(!debug.contains("CANARY") && !debug.contains("horse"), "{debug}");
    }
}
