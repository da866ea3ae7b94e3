//! A list of entries: of a JSON file, or of a page.

use satchel_importer::{Arena, Bundle, ErrorKind, ImportError, JsonArray, Parser, RecordKind, Sink};

/// Where the entries are.
#[derive(Clone, Copy)]
pub(crate) enum List<'l> {
    /// The elements of an array.
    Json(JsonArray<'l>),
    /// The rows of a table, as JSON.
    Rows(&'l [String]),
}

impl List<'_> {
    /// Calls `look` with the index and the text of each entry, and reports nothing.
    pub(crate) fn survey(
        &self,
        bundle: &Bundle,
        mut look: impl FnMut(u64, &str, &Arena),
    ) -> Result<(), ImportError> {
        match self {
            Self::Json(list) => list.survey(bundle, |element| {
                look(element.index(), element.text(), element.arena());
                Ok(true)
            }),
            Self::Rows(rows) => {
                let mut arena = Arena::new();
                for (index, row) in (0..).zip(rows.iter()) {
                    look(index, row, &arena);
                    arena.reset();
                }
                Ok(())
            }
        }
    }

    /// Calls `each` with the index of each entry and a parser, and reports entries that cannot be read at `locator`.
    pub(crate) fn each(
        &self,
        bundle: &Bundle,
        locator: &str,
        sink: &mut Sink,
        mut each: impl FnMut(u64, &mut Parser<'_>, &mut Sink) -> Result<(), ImportError>,
    ) -> Result<(), ImportError> {
        let place = |index: u64| format!("{locator}[{index}]");
        match self {
            Self::Json(list) => list
                .kind(RecordKind::Message)
                .each(bundle, sink, |element, sink| {
                    each(element.index(), &mut element.parser(), sink)
                        .map_err(|error| error.at(place(element.index())))
                })
                .map(|_| ()),
            Self::Rows(rows) => {
                let mut arena = Arena::new();
                for (index, row) in (0..).zip(rows.iter()) {
                    match each(index, &mut Parser::new(row, &arena), sink) {
                        Err(error) if error.kind == ErrorKind::Malformed => {
                            sink.skip(RecordKind::Message, &place(index), &error.message)?;
                        }
                        read => read?,
                    }
                    arena.reset();
                }
                Ok(())
            }
        }
    }
}
