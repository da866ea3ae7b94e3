//! Accessors of operations, for clients.

use prost::Message;
use tonic::{Code, Status};

use crate::v1::{Import, Operation, OperationState, operation};

impl Operation {
    /// Returns whether it has succeeded, failed or was cancelled.
    #[must_use]
    pub fn ended(&self) -> bool {
        match self.state() {
            OperationState::Unspecified | OperationState::Queued | OperationState::Running => false,
            OperationState::Succeeded | OperationState::Failed | OperationState::Cancelled => true,
        }
    }

    /// Returns the imports of an import operation that have begun so far.
    #[must_use]
    pub fn imports(&self) -> &[Import] {
        match &self.result {
            Some(operation::Result::Imports(result)) => &result.imports,
            _ => &[],
        }
    }

    /// Returns the path of an import operation.
    #[must_use]
    pub fn path(&self) -> &str {
        match &self.result {
            Some(operation::Result::Imports(result)) => &result.path,
            _ => "",
        }
    }

    /// Returns the result of an operation that has succeeded.
    ///
    /// # Errors
    /// The status of a call that failed for the same reason; [`Code::Cancelled`] if it was cancelled.
    pub fn into_result(self) -> Result<operation::Result, Status> {
        match (self.state(), self.error, self.result) {
            (OperationState::Succeeded, _, Some(result)) => Ok(result),
            (OperationState::Cancelled, ..) => Err(Status::cancelled("the operation was cancelled")),
            (_, Some(error), _) => {
                let details = error.encode_to_vec().into();
                Err(Status::with_details(Code::from(error.code), error.message, details))
            }
            _ => Err(Status::unknown("the operation has no result")),
        }
    }
}

#[cfg(test)]
mod tests {
    use tonic_types::{ErrorDetails, StatusExt};

    use super::*;
    use crate::v1::{Export, StoreCheck};

    #[test]
    fn the_error_of_an_operation_becomes_a_status() {
        let details = ErrorDetails::with_error_info("DISK_FULL", "satchel.local", []);
        let status = Status::with_error_details(Code::ResourceExhausted, "no space left", details);
        let error = tonic_types::pb::Status::decode(status.details()).ok();
        let failed = Operation { state: OperationState::Failed.into(), error, ..Operation::default() };
        let refused = failed.into_result().err();
        assert_eq!(refused.as_ref().map(Status::code), Some(Code::ResourceExhausted));
        assert_eq!(refused.as_ref().map(Status::message), Some("no space left"));
        let reason = refused.and_then(|status| status.get_details_error_info()).map(|info| info.reason);
        assert_eq!(reason.as_deref(), Some("DISK_FULL"));
    }

    #[test]
    fn only_a_succeeded_operation_has_a_result() {
        let operation = |state: OperationState| Operation {
            state: state.into(),
            result: Some(operation::Result::Export(Export::default())),
            ..Operation::default()
        };
        assert!(operation(OperationState::Succeeded).into_result().is_ok());
        let cancelled = operation(OperationState::Cancelled).into_result();
        assert_eq!(cancelled.err().map(|status| status.code()), Some(Code::Cancelled));
        assert!(operation(OperationState::Running).into_result().is_err());
        assert!(!operation(OperationState::Queued).ended() && operation(OperationState::Failed).ended());
        let check = operation::Result::StoreCheck(StoreCheck::default());
        let empty = Operation { result: Some(check), ..Operation::default() };
        assert!(empty.imports().is_empty() && empty.path().is_empty());
    }
}
