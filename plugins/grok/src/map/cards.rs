//! Cards: what the client draws at a place in the text, each a JSON object in a string.

use std::{borrow::Cow, collections::BTreeMap};

use satchel_importer::{
    Arena, Parser,
    json::{Kind, Object, Value},
};

use super::files::Files;
use crate::raw::visit;

/// One card, as it was last drawn.
#[derive(Debug, Default)]
pub(super) struct Card<'a> {
    pub(super) id: Option<&'a str>,
    /// The address that it cites.
    pub(super) url: Option<&'a str>,
    pub(super) title: Option<&'a str>,
    /// The address of the image that it shows.
    image: Option<&'a str>,
    /// The id of that image.
    image_id: Option<&'a str>,
}

/// The cards of one response.
#[derive(Debug, Default)]
pub(super) struct Cards<'a> {
    pub(super) all: Vec<Card<'a>>,
    /// The items of the list that are kept, as JSON text: frames that a later one of the same card replaces are not.
    kept: Vec<Cow<'a, str>>,
}

impl<'a> Cards<'a> {
    pub(super) fn read(list: Value<'a>, arena: &'a Arena) -> Self {
        let mut cards = Self::default();
        let mut by_id: BTreeMap<&str, usize> = BTreeMap::new();
        visit(list, arena, |item| {
            let (card, kept) = (Card::read(item, arena), written(item));
            let known = card.id.and_then(|id| by_id.get(id).copied());
            if let Some(at) = known
                && let (Some(old), Some(old_kept)) = (cards.all.get_mut(at), cards.kept.get_mut(at))
            {
                *old = card.after(old);
                *old_kept = kept;
                return;
            }
            if let Some(id) = card.id {
                by_id.insert(id, cards.all.len());
            }
            cards.all.push(card);
            cards.kept.push(kept);
        });
        cards
    }

    /// The list with the last frame of each card, as JSON text; none if there is no card.
    pub(super) fn kept(&self) -> Option<String> {
        (!self.kept.is_empty()).then(|| format!("[{}]", self.kept.join(",")))
    }

    /// Attaches the images.
    pub(super) fn show(&self, files: &mut Files<'a>) {
        for card in &self.all {
            if let Some(image) = card.image {
                files.image(image, card.image_id, card.title);
            }
        }
    }
}

impl<'a> Card<'a> {
    /// Reads an object, or a string that holds one; anything else is a card of which nothing is known.
    fn read(item: Value<'a>, arena: &'a Arena) -> Self {
        let raw = match item {
            Value::Text(text) => text,
            Value::Raw(raw) => raw,
            Value::Null => return Self::default(),
        };
        if Parser::new(raw, arena).kind() != Ok(Kind::Object) {
            return Self::default();
        }
        let card = Object::parse(raw, arena);
        let (image, chunk) = (card.object("image", arena), card.object("image_chunk", arena));
        let kind = ["type", "card_type", "cardType"].into_iter().find_map(|key| card.text(key));
        let drawn = kind.is_some_and(|kind| kind.contains("image"));
        let url = ["url", "link"].into_iter().find_map(|key| card.text(key));
        let shown = [image.text("original"), image.text("url"), chunk.text("imageUrl")];
        let own = ["imageUrl", "image_url"].into_iter().find_map(|key| card.text(key));
        Self {
            id: card.text("id"),
            url: url.filter(|_| !drawn),
            title: card.text("title").or(image.text("title")),
            image: shown.into_iter().flatten().next().or(own).or(url.filter(|_| drawn)),
            image_id: chunk.text("imageUuid"),
        }
    }

    /// This frame, with what only the one before knows.
    fn after(self, old: &Self) -> Self {
        Self {
            id: self.id,
            url: self.url.or(old.url),
            title: self.title.or(old.title),
            image: self.image.or(old.image),
            image_id: self.image_id.or(old.image_id),
        }
    }
}

/// The item as JSON text.
pub(super) fn written(item: Value<'_>) -> Cow<'_, str> {
    match item {
        Value::Null => "null".into(),
        Value::Raw(raw) => raw.into(),
        Value::Text(text) => quoted(text).into(),
    }
}

fn quoted(text: &str) -> String {
    let mut list = satchel_importer::Leftover::default();
    list.add_text("", text);
    let object = list.into_json().unwrap_or_default();
    object.strip_prefix("{\"\":").and_then(|text| text.strip_suffix('}')).unwrap_or("null").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_frame_of_a_card_counts() {
        let arena = Arena::new();
        let list = r#"["{\"id\":\"a\",\"image_chunk\":{\"imageUrl\":\"users/x/1-part-0/image.jpg\",\"progress\":50}}",
            "{\"id\":\"b\",\"url\":\"https://example.com\"}", 7, null, "no card",
            "{\"id\":\"a\",\"image_chunk\":{\"imageUuid\":\"u\",\"imageUrl\":\"users/x/1/image.jpg\",\"progress\":100}}"]"#;
        let cards = Cards::read(Value::Raw(list), &arena);
        assert_eq!(cards.all.len(), 5);
        assert_eq!((cards.all[0].image, cards.all[0].image_id), (Some("users/x/1/image.jpg"), Some("u")));
        assert_eq!(cards.all[1].url, Some("https://example.com"));
        let kept = cards.kept().expect("there are cards");
        assert!(kept.contains(r#"\"progress\":100"#) && !kept.contains("part-0"), "{kept}");
        assert!(kept.ends_with(r#",7,null,"no card"]"#), "{kept}");
    }

    #[test]
    fn the_address_of_a_card_that_draws_is_an_image() {
        let arena = Arena::new();
        let list = r#"[{"id":"a","type":"render_generated_image","url":"users/x/image.jpg"}]"#;
        let cards = Cards::read(Value::Raw(list), &arena);
        assert_eq!((cards.all[0].image, cards.all[0].url), (Some("users/x/image.jpg"), None));
    }
}
