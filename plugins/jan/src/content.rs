//! Takes the content of a message apart into its pieces.

use std::{
    borrow::Cow,
    collections::{BTreeMap, VecDeque},
};

use satchel_importer::{
    Attachment, AttachmentKind, Fields, ImportError, Role, Source,
    json::{EMPTY_OBJECT, Value, array_of},
};

use crate::{
    fields::FIELD_READER,
    file::{self, Files},
    part::{self, ReadPart},
    piece::Piece,
    reports::Findings,
    tool::{self, Tool},
};

/// The marks around reasoning in the texts of early versions.
const THINK: (&str, &str) = ("<think>", "</think>");

/// Builds the pieces of a message.
pub(crate) struct Builder<'a, 'f> {
    pieces: Vec<Piece<'a>>,
    role: Role,
    /// Whether the last piece takes further texts and files.
    open: bool,
    files: Option<&'f Files<'f>>,
    findings: Findings,
    /// What is left of parts that show nothing, before the first piece.
    notes: Vec<String>,
    /// A field of theirs that is not known and holds natural language.
    unread: Option<&'a str>,
}

impl<'a, 'f> Builder<'a, 'f> {
    pub(crate) fn new(role: Role, files: Option<&'f Files<'f>>, findings: Findings) -> Self {
        let (pieces, notes) = (Vec::new(), Vec::new());
        Self { pieces, role, open: false, files, findings, notes, unread: None }
    }

    /// The pieces of the message, at least one.
    pub(crate) fn finish(mut self) -> (Vec<Piece<'a>>, Findings) {
        if self.pieces.is_empty() {
            self.pieces.push(Piece::new(None, self.role));
        }
        if let Some(first) = self.pieces.first_mut() {
            first.parts.splice(0..0, self.notes);
            if let Some(field) = self.unread {
                first.rest.mark_unread(field);
            }
        }
        (self.pieces, self.findings)
    }

    pub(crate) fn content(&mut self, fields: &mut Fields<'a>) -> Result<(), ImportError> {
        if let Some(text) = fields.take_text("content") {
            self.words(text, "0", false);
            return Ok(());
        }
        let Some(list) = fields.take_array_fields("content")? else { return Ok(()) };
        for (at, item) in list.into_iter().enumerate() {
            let read = match (item.value, item.fields) {
                (Value::Text(text), _) => {
                    Ok(ReadPart { text: Some(text), rest: "{}".to_owned(), ..ReadPart::default() })
                }
                (_, Ok(Some(part))) => part::read(part, self.files).map_err(|error| error.to_string()),
                (_, Ok(None)) => Err("it is not an object".to_owned()),
                (_, Err(error)) => Err(error.to_string()),
            };
            match read {
                Ok(part) => self.part(part, at),
                Err(reason) => self.findings.skip(format!("content[{at}]"), reason),
            }
        }
        Ok(())
    }

    fn part(&mut self, part: ReadPart<'a>, at: usize) {
        if part.unknown {
            self.findings.warn_of_type("a part", part.kind);
        }
        let suffix = at.to_string();
        if let Some(tool) = part.tool {
            self.tool(tool, &suffix, part.rest);
        } else {
            let says = part.text.is_some() || !part.files.is_empty();
            if let Some(text) = part.text {
                self.words(text, &suffix, part.thought);
            }
            if !part.files.is_empty() {
                self.shown(&suffix).files.extend(part.files);
            }
            if !says && self.pieces.is_empty() {
                // Its fields need a place, and the id of the message is that of the first piece.
                self.shown(&suffix);
            }
            match self.pieces.last_mut() {
                Some(piece) => piece.parts.push(part.rest),
                // An empty thought begins no piece, so that the next part has the id of the message.
                None => self.notes.extend(Some(part.rest).filter(|rest| rest != EMPTY_OBJECT)),
            }
        }
        match (part.unread, self.pieces.last_mut()) {
            (Some(field), Some(piece)) => piece.rest.mark_unread(field),
            (field, _) => self.unread = self.unread.or(field),
        }
    }

    /// Adds a text. Early versions wrote the reasoning of a model in front of its answer.
    fn words(&mut self, text: &'a str, suffix: &str, thought: bool) {
        let inside =
            text.trim_start().strip_prefix(THINK.0).filter(|_| self.role == Role::Assistant && !thought);
        let (reasoning, answer, behind) = match inside.map(|inside| inside.split_once(THINK.1)) {
            Some(Some((reasoning, answer))) => (reasoning, answer.trim_start(), format!("{suffix}:text")),
            // The model was stopped while it was reasoning.
            Some(None) => (inside.unwrap_or_default(), "", suffix.to_owned()),
            None if thought => (text, "", suffix.to_owned()),
            None => ("", text, suffix.to_owned()),
        };
        if !reasoning.trim().is_empty() {
            let mut piece = self.begin(suffix, Role::Assistant);
            piece.thought = true;
            piece.texts.push(reasoning.into());
            self.pieces.push(piece);
            self.open = false;
        }
        if !answer.is_empty() {
            let piece = self.shown(&behind);
            piece.texts.push(answer.into());
            let listed = file::listed(answer);
            piece.files.extend(listed);
        }
    }

    /// The piece that takes texts and files.
    fn shown(&mut self, suffix: &str) -> &mut Piece<'a> {
        if !self.open || self.pieces.is_empty() {
            let piece = self.begin(suffix, self.role);
            self.pieces.push(piece);
            self.open = true;
        }
        let last = self.pieces.len() - 1;
        &mut self.pieces[last]
    }

    /// A piece; the first one has the id of the message.
    fn begin(&self, suffix: &str, role: Role) -> Piece<'a> {
        Piece::new((!self.pieces.is_empty()).then(|| suffix.to_owned()), role)
    }

    fn tool(&mut self, tool: Tool<'a>, suffix: &str, rest: String) {
        let mut piece = self.begin(suffix, Role::Assistant);
        piece.calls.push(tool.call);
        piece.parts.push(rest);
        self.pieces.push(piece);
        if let Some(answer) = tool.answer {
            let mut piece = Piece::new(Some(format!("{suffix}:result")), Role::Tool);
            piece.texts.push(answer);
            self.pieces.push(piece);
        }
        self.open = false;
    }

    /// The calls that early versions kept in the metadata; the program shows them behind the text.
    pub(crate) fn tool_calls(&mut self, metadata: &mut Fields<'a>) -> Result<(), ImportError> {
        let Some(list) = metadata.take_array("tool_calls")? else { return Ok(()) };
        for (at, value) in list.into_iter().enumerate() {
            let place = format!("metadata.tool_calls[{at}]");
            match FIELD_READER.of(value, metadata.arena()) {
                Ok(Some(mut entry)) => match tool::of_metadata(&mut entry) {
                    Ok(tool) => self.tool(tool, &format!("call:{at}"), entry.into_json()),
                    Err(error) => self.findings.skip(place, error),
                },
                Ok(None) => self.findings.skip(place, "it is not an object"),
                Err(error) => self.findings.skip(place, error),
            }
        }
        Ok(())
    }

    /// The documents whose text the program gave to the model with a prompt.
    pub(crate) fn documents(&mut self, metadata: &mut Fields<'a>) -> Result<(), ImportError> {
        let Some(list) = metadata.take_array("inline_file_contents")? else { return Ok(()) };
        let mut left = Vec::new();
        let mut without_text = self.files_without_text();
        for value in list {
            let entry = FIELD_READER.of(value, metadata.arena())?;
            let Some((mut entry, name)) = entry.and_then(|mut entry| {
                let name = entry.take_text("name")?;
                Some((entry, name))
            }) else {
                left.push(value.json().into_owned());
                continue;
            };
            let text = entry.take_text("content");
            let source = text.map(|text| Source::Bytes(Cow::Borrowed(text.as_bytes())));
            self.document(name, source, without_text.entry(name.to_owned()).or_default());
            left.push(entry.into_json());
        }
        if left.iter().any(|entry| entry != "{}") {
            metadata.push_json("inline_file_contents", &array_of(&left));
        }
        Ok(())
    }

    /// The places of the files without a text, by their names: there may be many files, and many texts.
    fn files_without_text(&mut self) -> BTreeMap<String, VecDeque<usize>> {
        let mut places: BTreeMap<String, VecDeque<usize>> = BTreeMap::new();
        for (at, file) in self.first().files.iter().enumerate().filter(|(_, file)| file.source.is_none()) {
            if let Some(name) = &file.name {
                places.entry(name.clone().into_owned()).or_default().push_back(at);
            }
        }
        places
    }

    /// Adds the text of a document to the first file of its name that has none, or as a file. `places` are those of such files.
    fn document(&mut self, name: &'a str, source: Option<Source<'a>>, places: &mut VecDeque<usize>) {
        let files = &mut self.first().files;
        let has_text = source.is_some();
        if let Some(file) = places.front().and_then(|at| files.get_mut(*at)) {
            file.source = source;
        } else {
            places.push_back(files.len());
            let kind = AttachmentKind::of(None, Some(name));
            files.push(Attachment { kind, name: Some(name.into()), source, ..Attachment::default() });
        }
        if has_text {
            places.pop_front();
        }
    }

    fn first(&mut self) -> &mut Piece<'a> {
        if self.pieces.is_empty() {
            self.shown("0");
        }
        &mut self.pieces[0]
    }
}
