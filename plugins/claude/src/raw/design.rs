//! Chats of Claude's design tool, read into the types of ordinary conversations.

use std::collections::BTreeSet;

use satchel_importer::{
    JsonError, Leftover, Parser,
    json::{Kind, Value},
};

use super::{Author, Block, Conversation, File, Message, add_object, check_length, json_text};

/// Authors of one chat; more cannot be real.
const MAX_AUTHORS: usize = 100;

impl<'a> Conversation<'a> {
    /// Takes the authors from the messages. If there is one, the chat is theirs: it names no account itself.
    pub(super) fn add_authors(&mut self) {
        let authors = self.messages.iter().map(|message| message.author);
        let authors: BTreeSet<Author<'a>> = authors.filter(|author| *author != Author::default()).collect();
        self.authors = authors.into_iter().take(MAX_AUTHORS).collect();
        if let ([only], None) = (self.authors.as_slice(), self.account) {
            self.account = only.uuid;
        }
    }
}

impl<'a> Message<'a> {
    pub(super) fn read_design_content(&mut self, json: &mut Parser<'a>) -> Result<(), JsonError> {
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
                "authorAccountUuid" => self.author.uuid = rest.keep_and_read(key, json)?.nonempty_text(),
                "authorName" => self.author.name = rest.keep_and_read(key, json)?.nonempty_text(),
                // The message has it already.
                "role" if self.sender.is_some() => json.skip_value()?,
                _ if json.pending() => rest.keep_unknown(key, json)?,
                _ => {}
            }
        }
        add_object(&mut self.rest, "content", rest);
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
            self.blocks.extend(read_block(json)?);
        }
        Ok(())
    }
}

/// Reads one block; a call with its output becomes a call and a result.
fn read_block(mut json: Parser<'_>) -> Result<Vec<Block<'_>>, JsonError> {
    let mut block = Block::default();
    let (mut output, mut message) = (None, None);
    json.enter_object()?;
    while let Some(key) = json.key()? {
        match key {
            "type" => block.kind = block.rest.text(key, &mut json)?.unwrap_or_default(),
            "text" => block.text = block.rest.text(key, &mut json)?,
            "message" => message = read_message(&mut block, &mut json)?,
            "toolCall" if block.rest.object(key, &mut json)? => {
                output = read_tool_call(&mut block, &mut json)?;
            }
            _ if json.pending() => block.rest.keep_unknown(key, &mut json)?,
            _ => {}
        }
    }
    if let Some(text) = message {
        match block.kind {
            // A message of the person while the model was working, or an error shown to the person.
            "user_interjection" | "error" => block.text = block.text.or(Some(text)),
            _ => {
                block.rest.note_unknown("message", Value::Text(text));
                block.rest.add_text("message", text);
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

/// Reads a `message`: a text, or an object with one, whose other fields stay with the block.
fn read_message<'a>(block: &mut Block<'a>, json: &mut Parser<'a>) -> Result<Option<&'a str>, JsonError> {
    if json.kind()? != Kind::Object {
        return block.rest.text("message", json);
    }
    let (mut rest, mut text) = (Leftover::default(), None);
    json.enter_object()?;
    while let Some(key) = json.key()? {
        match key {
            "content" => text = rest.text(key, json)?,
            _ => rest.keep_unknown(key, json)?,
        }
    }
    add_object(&mut block.rest, "message", rest);
    Ok(text)
}

/// Reads the fields of a `toolCall`; returns its output.
fn read_tool_call<'a>(block: &mut Block<'a>, json: &mut Parser<'a>) -> Result<Option<&'a str>, JsonError> {
    let mut output = None;
    while let Some(key) = json.key()? {
        match key {
            "id" => block.id = block.rest.nonempty_text(key, json)?,
            "name" => block.name = block.rest.nonempty_text(key, json)?,
            "input" => block.input = json_text(json)?,
            "output" => output = json_text(json)?,
            _ => block.rest.keep(key, json)?,
        }
    }
    Ok(output)
}
