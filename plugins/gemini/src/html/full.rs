//! Reads any HTML as browsers do.

use std::borrow::Cow;

use html5gum::{
    Span, Tokenizer,
    emitters::callback::{CallbackEmitter, CallbackEvent},
};

use super::{Attributes, Event, Text, text};

/// Hands every tag and text of `html` to `each`, in order.
pub(super) fn walk(html: &str, each: &mut impl FnMut(Event<'_>)) {
    let mut tag = Tag::default();
    let take = |event: CallbackEvent<'_>, _: Span<()>| -> Option<()> {
        tag.take(&event, each);
        None
    };
    let mut emitter = CallbackEmitter::new(take);
    emitter.naively_switch_states(true);
    for step in Tokenizer::new_with_emitter(html, emitter) {
        match step {
            Ok(()) => {}
            Err(never) => match never {},
        }
    }
}

/// The start tag that is being read.
#[derive(Default)]
struct Tag {
    name: String,
    attributes: Attributes<'static>,
    /// Inside a script or a style sheet.
    silent: bool,
}

impl Tag {
    fn take(&mut self, event: &CallbackEvent<'_>, each: &mut impl FnMut(Event<'_>)) {
        match event {
            CallbackEvent::OpenStartTag { name } => {
                text(name).as_ref().clone_into(&mut self.name);
                self.attributes.clear();
            }
            CallbackEvent::AttributeName { name } => {
                self.attributes.push(Cow::Owned(text(name).into_owned()), Cow::Borrowed(""));
            }
            CallbackEvent::AttributeValue { value } => {
                self.attributes.set_last(Cow::Owned(text(value).into_owned()));
            }
            CallbackEvent::CloseStartTag { .. } => {
                self.silent = matches!(self.name.as_str(), "script" | "style");
                each(Event::Open(&self.name, &self.attributes));
            }
            CallbackEvent::EndTag { name } => {
                self.silent = false;
                each(Event::Close(&text(name)));
            }
            CallbackEvent::String { value } if !self.silent => each(Event::Text(Text::plain(&text(value)))),
            CallbackEvent::String { .. }
            | CallbackEvent::Comment { .. }
            | CallbackEvent::Doctype { .. }
            | CallbackEvent::Error(_) => {}
        }
    }
}
