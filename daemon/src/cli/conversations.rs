//! `conversations …`
mod markdown;
