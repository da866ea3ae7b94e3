//! How messages with secrets in them are shown: without these.

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
            // Whoever mixes the two up gives an identity, which is secret.
            .field("age_recipients", &age_recipients.len())
            .field("passphrase", &!passphrase.is_empty())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use crate::v1::{CreateExportRequest, CreateImportRequest, Unlock};

    #[test]
    fn no_secret_is_shown() {
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
        let shown = format!("{export:?} {import:?}");
        assert!(shown.contains("/a.zip.age") && shown.contains("Unlock"), "{shown}");
        assert!(!shown.contains("CANARY") && !shown.contains("horse"), "{shown}");
    }
}
