//! The tools: what each is for, its arguments, and its call.

mod changes;
mod definitions;
mod read;
mod write;

use std::error::Error;

use rmcp::{
    ErrorData,
    model::{CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, JsonObject},
};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tonic::{Code, Status};

pub(crate) use self::{
    definitions::all,
    read::{read_conversation, read_memory},
};
use super::clients::Clients;

/// The longest arguments of a call, in bytes of their JSON.
pub(crate) const MAX_ARGUMENTS: usize = 1 << 20;

/// Why a tool has no result. The model reads it and may correct its call.
#[derive(Debug)]
enum ToolError {
    /// The arguments are not those of the tool.
    Arguments(String),
    /// The daemon refused the call.
    Refused(Box<Status>),
}

impl From<Status> for ToolError {
    fn from(status: Status) -> Self {
        Self::Refused(Box::new(status))
    }
}

impl ToolError {
    fn text(&self) -> String {
        match self {
            Self::Arguments(problem) => format!("the arguments are not valid: {problem}"),
            Self::Refused(status) => refusal(status),
        }
    }
}

/// What a refusal of the daemon says.
pub(crate) fn refusal(status: &Status) -> String {
    let mut cause = status.source();
    while let Some(error) = cause.filter(|error| !error.is::<tonic::transport::Error>()) {
        cause = error.source();
    }
    let ended = cause.is_some();
    match status.message() {
        _ if ended => "the daemon does not answer; try again, or start one with `satchel serve`".to_owned(),
        "" => format!("the daemon refused the call: {}", status.code()),
        message => message.to_owned(),
    }
}

/// The error for a request that has no place for an error that the model reads.
pub(crate) fn protocol_error(status: &Status) -> ErrorData {
    match status.code() {
        Code::InvalidArgument => ErrorData::invalid_params(refusal(status), None),
        _ => ErrorData::internal_error(refusal(status), None),
    }
}

/// Calls a tool.
///
/// # Errors
/// Fails if there is no tool of that name. Everything else that goes wrong is a result, which the model reads.
pub(crate) async fn call(
    clients: &Clients,
    request: CallToolRequestParams,
) -> Result<CallToolResponse, ErrorData> {
    let arguments = request.arguments.unwrap_or_default();
    let result = match request.name.as_ref() {
        definitions::SEARCH => read::search(clients, parse(arguments)).await,
        definitions::READ_CONVERSATION => read::conversation(clients, parse(arguments)).await,
        definitions::READ_MEMORY => read::memory(clients, parse(arguments)).await,
        definitions::BUILD_CONTEXT => read::context(clients, parse(arguments)).await,
        definitions::ADD_MEMORY => write::add(clients, parse(arguments)).await,
        definitions::UPDATE_MEMORY => write::update(clients, parse(arguments)).await,
        definitions::LIST_CHANGES => changes::list(clients, parse(arguments)).await,
        name => return Err(ErrorData::invalid_params(format!("there is no tool {name:?}"), None)),
    };
    Ok(match result {
        Ok(value) => CallToolResult::structured(value).into(),
        Err(error) => CallToolResult::error(vec![ContentBlock::text(error.text())]).into(),
    })
}

/// Reads the arguments of a tool.
fn parse<T: DeserializeOwned>(arguments: JsonObject) -> Result<T, ToolError> {
    let arguments = Value::Object(arguments);
    // Only the length of texts matters: rmcp has parsed everything else already.
    if text_bytes(&arguments) > MAX_ARGUMENTS {
        return Err(ToolError::Arguments(format!("they have more than {MAX_ARGUMENTS} bytes")));
    }
    serde_json::from_value(arguments).map_err(|error| ToolError::Arguments(error.to_string()))
}

fn text_bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(text_bytes).sum(),
        Value::Object(members) => members.iter().map(|(key, value)| key.len() + text_bytes(value)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 1,
    }
}
