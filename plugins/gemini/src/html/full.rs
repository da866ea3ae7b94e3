//! Reads any HTML as browsers do.

use std::borrow::Cow;

use html5gum::emitters::callback::CallbackEvent;

use super::{
    tag::{Attributes, Event},
    text::{Text, tokenize, utf8_lossy},
};

/// Calls `each` with every tag and text of `html`, in order.
pub(super) fn walk(html: &str, mut each: impl FnMut(Event<'_>)) {
    let mut tag = StartTag::default();
    tokenize(html, |event| tag.take(event, &mut each));
}

/// The start tag that is being read.
#[derive(Default)]
struct StartTag {
    name: String,
    attributes: Attributes<'static>,
    /// The text that follows is a script or a style sheet.
    raw_text: bool,
}

impl StartTag {
    fn take(&mut self, event: &CallbackEvent<'_>, each: &mut impl FnMut(Event<'_>)) {
        match event {
            CallbackEvent::OpenStartTag { name } => {
                utf8_lossy(name).as_ref().clone_into(&mut self.name);
                self.attributes.clear();
            }
            CallbackEvent::AttributeName { name } => {
                self.attributes.push(Cow::Owned(utf8_lossy(name).into_owned()), Cow::Borrowed(""));
            }
            CallbackEvent::AttributeValue { value } => {
                self.attributes.set_last(Cow::Owned(utf8_lossy(value).into_owned()));
            }
            CallbackEvent::CloseStartTag { .. } => {
                self.raw_text = matches!(self.name.as_str(), "script" | "style");
                each(Event::Open(&self.name, &self.attributes));
            }
            CallbackEvent::EndTag { name } => {
                self.raw_text = false;
                each(Event::Close(&utf8_lossy(name)));
            }
            CallbackEvent::String { value } if !self.raw_text => {
                each(Event::Text(Text::decoded(&utf8_lossy(value))));
            }
            CallbackEvent::String { .. }
            | CallbackEvent::Comment { .. }
            | CallbackEvent::Doctype { .. }
            | CallbackEvent::Error(_) => {}
        }
    }
}
