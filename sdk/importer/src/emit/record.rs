//! .
use satchel_pam::record::{ConversationRecord, MessageRecord};

use super::{Conversation, Message};

pub(crate) fn conversation_to_record(_conversation: &Conversation, _messages: &[Message]) -> ConversationRecord {
    ConversationRecord::default()
}

pub(crate) fn message_to_record(_message: &Message) -> MessageRecord {
    todo!()
}
