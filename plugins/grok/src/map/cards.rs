//! Cards that the client renders inside the text, each a JSON object in a string.

use std::{borrow::Cow, collections::BTreeMap};

use satchel_importer::{
    Arena, Parser,
    json::{Kind, Object, Value},
};

use super::files::Files;
use crate::raw::visit;

/// One card, as its last frame has it.
#[derive(Debug, Default)]
pub(super) struct Card<'a> {
    pub(super) id: Option<&'a str>,
    /// The page that it cites.
    pub(super) url: Option<&'a str>,
    pub(super) title: Option<&'a str>,
    /// The address of its image.
    image: Option<&'a str>,
    /// The id of that image.
    image_id: Option<&'a str>,
    /// The last frame as JSON text.
    frame: Cow<'a, str>,
}

/// The cards of one response.
#[derive(Debug, Default)]
pub(super) struct Cards<'a> {
    pub(super) all: Vec<Card<'a>>,
}

impl<'a> Cards<'a> {
    pub(super) fn read(list: Value<'a>, arena: &'a Arena) -> Self {
        let mut cards = Self::default();
        let mut by_id: BTreeMap<&str, usize> = BTreeMap::new();
        visit(list, arena, |item| {
            let card = Card { frame: item.json(), ..Card::read(item, arena) };
            let known = card.id.and_then(|id| by_id.get(id).copied());
            if let Some(old) = known.and_then(|at| cards.all.get_mut(at)) {
                *old = card.or(old);
                return;
            }
            if let Some(id) = card.id {
                by_id.insert(id, cards.all.len());
            }
            cards.all.push(card);
        });
        cards
    }

    /// The list with the last frame of each card, as JSON text; none if there is no card.
    pub(super) fn to_json(&self) -> Option<String> {
        let frames: Vec<&str> = self.all.iter().map(|card| card.frame.as_ref()).collect();
        (!frames.is_empty()).then(|| format!("[{}]", frames.join(",")))
    }

    pub(super) fn attach_images(&self, files: &mut Files<'a>) {
        for card in &self.all {
            if let Some(image) = card.image {
                files.add_image(image, card.image_id, card.title);
            }
        }
    }
}

impl<'a> Card<'a> {
    /// Reads an object, or a string with one; anything else is an empty card.
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
        let renders_image = kind.is_some_and(|kind| kind.contains("image"));
        let url = ["url", "link"].into_iter().find_map(|key| card.text(key));
        let nested = [image.text("original"), image.text("url"), chunk.text("imageUrl")];
        let own = ["imageUrl", "image_url"].into_iter().find_map(|key| card.text(key));
        Self {
            id: card.text("id"),
            url: url.filter(|_| !renders_image),
            title: card.text("title").or(image.text("title")),
            image: nested.into_iter().flatten().next().or(own).or(url.filter(|_| renders_image)),
            image_id: chunk.text("imageUuid"),
            ..Self::default()
        }
    }

    /// This frame; the earlier one fills in what it lacks.
    fn or(self, old: &Self) -> Self {
        Self {
            url: self.url.or(old.url),
            title: self.title.or(old.title),
            image: self.image.or(old.image),
            image_id: self.image_id.or(old.image_id),
            ..self
        }
    }
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
        let json = cards.to_json().expect("there are cards");
        assert!(json.contains(r#"\"progress\":100"#) && !json.contains("part-0"), "{json}");
        assert!(json.ends_with(r#",7,null,"no card"]"#), "{json}");
    }

    #[test]
    fn the_url_of_a_card_that_renders_an_image_is_the_image() {
        let arena = Arena::new();
        let list = r#"[{"id":"a","type":"render_generated_image","url":"users/x/image.jpg"}]"#;
        let cards = Cards::read(Value::Raw(list), &arena);
        assert_eq!((cards.all[0].image, cards.all[0].url), (Some("users/x/image.jpg"), None));
    }
}
