//! Chats of Claude's design tool, read into the shapes of ordinary conversations.

use std::collections::BTreeSet;

use satchel_importer::{
    JsonError, Leftover, Parser,
    json::{Kind, Value},
};

use super::{Author, Block, Conversation, File, Message, check_length, json_text};

/// People of one chat; what is more cannot be real.
const MAX_AUTHORS: usize = 100;

impl<'a> Conversation<'a> {
    /// Reads one design chat; none if it is no object.
    pub(crate) fn read_design(json: &mut Parser<'a>) -> Result<Option<Self>, JsonError> {
        if !json.enter_object()? {
            return Ok(None);
        }
        let mut it = Self { list: "messages", ..Self::default() };
        while let Some(key) = json.key()? {
            match key {
                "messages" => it.read_messages(key, json, Message::read_design)?,
                _ => it.field(key, json)?,
            }
        }
        json.end()?;
        let authors = it.messages.iter().map(|message| message.author);
        let authors: BTreeSet<Author<'a>> = authors.filter(|author| *author != Author::default()).collect();
        it.authors = authors.into_iter().take(MAX_AUTHORS).collect();
        // A chat says only who wrote in it; where that was one person, it is that person's.
        if let ([only], None) = (it.authors.as_slice(), it.account) {
            it.account = only.uuid;
        }
        Ok(Some(it))
    }
}

impl<'a> Message<'a> {
    /// Reads one item of a design chat's `messages`; none if it is no object.
    fn read_design(index: usize, json: &mut Parser<'a>) -> Result<Option<Self>, JsonError> {
        if !json.enter_object()? {
            return Ok(None);
        }
        let mut it = Self { index, ..Self::default() };
        while let Some(key) = json.key()? {
            match key {
                "role" => it.sender = it.rest.text(key, json)?,
                "content" if json.kind()? == Kind::Object => it.read_design_content(json)?,
                _ => it.field(key, json)?,
            }
        }
        Ok(Some(it))
    }

    fn read_design_content(&mut self, json: &mut Parser<'a>) -> Result<(), JsonError> {
        let mut rest = Leftover::default();
        json.enter_object()?;
        while let Some(key) = json.key()? {
            match key {
                "content" if json.kind()? == Kind::String => {
                    let text = json.string()?;
                    self.blocks.extend((!text.is_empty()).then(|| Block::plain(text)));
                }
                "contentBlocks" if rest.array(key, json)? => self.read_design_blocks(json)?,
                "attachments" => self.attachments = File::read_list(key, json, &mut rest)?,
                "timestamp" => {
                    let time = rest.time(key, json)?;
                    self.created = self.created.or(time);
                }
                "authorAccountUuid" => self.author.uuid = rest.keep_and_read(key, json)?.words(),
                "authorName" => self.author.name = rest.keep_and_read(key, json)?.words(),
                // Said by the message already.
                "role" if self.sender.is_some() => json.skip_value()?,
                _ if json.pending() => rest.keep_unknown(key, json)?,
                _ => {}
            }
        }
        rest.unread().into_iter().for_each(|field| self.rest.mark_unread(field));
        if let Some(rest) = rest.into_json() {
            self.rest.add_json("content", &rest);
        }
        Ok(())
    }

    fn read_design_blocks(&mut self, json: &mut Parser<'a>) -> Result<(), JsonError> {
        while json.item()? {
            check_length(self.blocks.len(), json)?;
            if json.kind()? != Kind::Object {
                self.blocks.push(Block::read(json)?);
                continue;
            }
            let raw = json.raw_value()?;
            let json = Parser::new(raw, json.arena());
            self.blocks.extend(design_blocks(json)?);
        }
        Ok(())
    }
}

/// One block as it is; a call with its output becomes a call and a result.
fn design_blocks(mut json: Parser<'_>) -> Result<Vec<Block<'_>>, JsonError> {
    let mut block = Block::default();
    let (mut output, mut said) = (None, None);
    json.enter_object()?;
    while let Some(key) = json.key()? {
        match key {
            "type" => block.kind = block.rest.text(key, &mut json)?.unwrap_or_default(),
            "text" => block.text = block.rest.text(key, &mut json)?,
            "message" => said = read_words(&mut block, &mut json)?,
            "toolCall" if block.rest.object(key, &mut json)? => output = read_call(&mut block, &mut json)?,
            _ if json.pending() => block.rest.keep_unknown(key, &mut json)?,
            _ => {}
        }
    }
    if let Some(said) = said {
        match block.kind {
            // What the person said while the model was at work, and what the person was told of a failure.
            "user_interjection" | "error" => block.text = block.text.or(Some(said)),
            _ => {
                block.rest.note_unknown("message", Value::Text(said));
                block.rest.add_text("message", said);
            }
        }
    }
    if block.kind != "tool_call" {
        if let Some(output) = output {
            block.rest.add_json("output", output);
        }
        return Ok(vec![block]);
    }
    block.kind = "tool_use";
    let (id, name) = (block.id, block.name);
    let result = output.map(|output| Block {
        kind: "tool_result",
        tool_use_id: id,
        name,
        content: Some(output),
        ..Block::default()
    });
    Ok([Some(block), result].into_iter().flatten().collect())
}

/// Reads a `message`, a text or an object with one; what else it holds stays with the block.
fn read_words<'a>(block: &mut Block<'a>, json: &mut Parser<'a>) -> Result<Option<&'a str>, JsonError> {
    if json.kind()? != Kind::Object {
        return block.rest.text("message", json);
    }
    let (mut rest, mut said) = (Leftover::default(), None);
    json.enter_object()?;
    while let Some(key) = json.key()? {
        match key {
            "content" => said = rest.text(key, json)?,
            _ => rest.keep_unknown(key, json)?,
        }
    }
    rest.unread().into_iter().for_each(|field| block.rest.mark_unread(field));
    if let Some(rest) = rest.into_json() {
        block.rest.add_json("message", &rest);
    }
    Ok(said)
}

/// Reads a `toolCall` that was entered; gives its output.
fn read_call<'a>(block: &mut Block<'a>, json: &mut Parser<'a>) -> Result<Option<&'a str>, JsonError> {
    let mut output = None;
    while let Some(key) = json.key()? {
        match key {
            "id" => block.id = block.rest.words(key, json)?,
            "name" => block.name = block.rest.words(key, json)?,
            "input" => block.input = json_text(json)?,
            "output" => output = json_text(json)?,
            _ => block.rest.keep(key, json)?,
        }
    }
    Ok(output)
}
