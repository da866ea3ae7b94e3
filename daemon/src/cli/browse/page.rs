//! The lines of a record for a certain width, and where its forks and matches are.

use ratatui::text::Line;

use super::{
    find::{LineMatch, Terms},
    painted,
    record::{ConversationRecord, MemoryRecord, Record},
};
use crate::cli::{
    conversations::{
        branches::{Branches, Fork},
        render::{BranchRenderer, ConversationView},
    },
    memories,
    style::{Paint, TerminalStyle},
    time::Calendar,
};

/// A record, laid out.
#[derive(Debug, Default)]
pub(super) struct Page {
    /// The columns that it was laid out for; 0 if this has to be done anew.
    pub(super) columns: usize,
    pub(super) lines: Vec<Line<'static>>,
    pub(super) forks: Vec<PageFork>,
    /// In order.
    pub(super) matches: Vec<LineMatch>,
    /// The lines of the message that was found, from its heading.
    pub(super) hit: Option<std::ops::Range<usize>>,
}

/// A line that says which branch of a fork is shown.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PageFork {
    pub(super) line: usize,
    /// The id of the message with which the branch begins.
    pub(super) branch: String,
}

/// How a record is laid out.
#[derive(Clone, Copy, Debug)]
pub(super) struct PageOptions<'a> {
    pub(super) columns: usize,
    pub(super) color: bool,
    pub(super) calendar: &'a Calendar,
    /// True if messages that the platform hides are shown.
    pub(super) hidden: bool,
    /// The message that was found.
    pub(super) message: Option<&'a str>,
}

impl Page {
    /// Lays out a record.
    pub(super) fn new(record: &Record, options: &PageOptions<'_>, terms: &Terms) -> Self {
        let mut page = Self { columns: options.columns, ..Self::default() };
        match record {
            Record::Conversation(record) => page.conversation(record, options),
            Record::Memory(record) => page.memory(record, options),
        }
        page.find(terms);
        page
    }

    /// Looks for other words.
    pub(super) fn find(&mut self, terms: &Terms) {
        self.matches.clear();
        for (number, line) in self.lines.iter().enumerate() {
            let text: String = line.spans.iter().map(|span| span.content.as_ref()).collect();
            terms.find(number, &text, &mut self.matches);
        }
    }

    /// Returns the number of the first match in the message that was found.
    pub(super) fn first_match(&self) -> Option<usize> {
        let hit = self.hit.as_ref()?;
        let at = self.matches.partition_point(|found| found.line < hit.start);
        self.matches.get(at).filter(|found| found.line < hit.end).map(|_| at)
    }

    fn conversation(&mut self, record: &ConversationRecord, options: &PageOptions<'_>) {
        let found = record.branch().find(|message| Some(message.id.as_str()) == options.message);
        let view = ConversationView {
            calendar: options.calendar,
            style: style(options),
            full: true,
            hidden: options.hidden || found.is_some_and(|found| found.hidden),
        };
        // The forks are drawn here: the commands that other output names are keys on this screen.
        let none = Branches::default();
        let mut renderer = BranchRenderer::new(&view, &record.conversation, &none);
        self.append(&view.head(&record.conversation));
        let mut forks = Vec::new();
        for message in record.branch() {
            forks.extend(record.branches.fork(&message.id).map(|fork| (message.id.clone(), fork)));
            let marked = Some(message.id.as_str()) == options.message;
            let text = renderer.marked_message(message, marked);
            if text.trim().is_empty() {
                continue;
            }
            for (branch, fork) in forks.drain(..) {
                self.fork(branch, &fork, view.style);
            }
            let start = self.lines.len();
            self.append(&text);
            if marked {
                self.hit = Some(start..self.lines.len());
            }
        }
    }

    fn fork(&mut self, branch: String, fork: &Fork, style: TerminalStyle) {
        let mark = format!("⑂ branch {} of {}", fork.number, fork.of);
        let others = fork.others.iter().map(|other| format!("other: {}", other.preview));
        let others: Vec<String> =
            others.map(|line| format!("  {}\n", style.paint(Paint::Dim, &line))).collect();
        self.forks.push(PageFork { line: self.lines.len() + 1, branch });
        self.append(&format!("\n{}\n{}", style.paint(Paint::Warn, &mark), others.concat()));
    }

    fn memory(&mut self, record: &MemoryRecord, options: &PageOptions<'_>) {
        let MemoryRecord { memory, untrusted } = record;
        let details = memories::render::details(memory, untrusted, options.calendar, style(options));
        self.append(&details);
        self.hit = Some(0..self.lines.len());
    }

    fn append(&mut self, painted: &str) {
        painted::append_lines(painted, self.columns, &mut self.lines);
    }
}

fn style(options: &PageOptions<'_>) -> TerminalStyle {
    TerminalStyle { columns: Some(options.columns), rows: None, color: options.color }
}

#[cfg(test)]
mod tests {
    use satchel_proto::v1::{Content, Conversation, Memory, Message};

    use super::*;
    use crate::cli::{browse::tests::forked, time};

    fn options(calendar: &Calendar) -> PageOptions<'_> {
        PageOptions { columns: 40, color: false, calendar, hidden: false, message: None }
    }

    fn text(page: &Page) -> String {
        let lines: Vec<String> = page.lines.iter().map(ToString::to_string).collect();
        format!("{}\n", lines.join("\n"))
    }

    #[test]
    fn a_hit_is_marked_and_its_words_are_found() {
        let calendar = time::fixed();
        let options = PageOptions { message: Some("a-two"), ..options(&calendar) };
        let record = Record::Conversation(Box::new(forked(Some("a-two"))));
        let page = Page::new(&record, &options, &Terms::of_matches(["small"].into_iter()));
        let shown = text(&page);
        assert!(shown.contains("⑂ branch 2 of 2\n  other: Two.\n"), "{shown}");
        assert!(shown.contains("▼"), "{shown}");
        assert!(!shown.contains("satchel conversations"), "{shown}");
        assert!(page.forks.iter().all(|fork| page.lines[fork.line].to_string().starts_with('⑂')));
        let found = page.matches[page.first_match().unwrap_or_default()];
        assert!(page.hit.is_some_and(|hit| hit.contains(&found.line)));
        assert_eq!(page.lines[found.line].to_string().get(found.start..found.end), Some("small"));
    }

    #[test]
    fn another_branch_is_shown() {
        let calendar = time::fixed();
        let mut record = forked(None);
        let old = record.branches.sibling("q-new", false).unwrap_or_default().to_owned();
        record.show_branch(&old);
        let page = Page::new(&Record::Conversation(Box::new(record)), &options(&calendar), &Terms::default());
        let shown = text(&page);
        assert!(shown.contains("It depends.") && !shown.contains("Two small ones"), "{shown}");
    }

    #[test]
    fn hostile_text_cannot_control_the_terminal() {
        let calendar = time::fixed();
        let hostile = "\u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}31m\u{202e}x";
        let message = Message {
            id: "m".to_owned(),
            content: Some(Content { text: Some(hostile.to_owned()), ..Content::default() }),
            ..Message::default()
        };
        let conversation = Conversation { title: Some(hostile.to_owned()), ..Conversation::default() };
        let record = ConversationRecord::new(conversation, vec![message], None);
        let memory =
            Memory { content: hostile.to_owned(), tags: vec![hostile.to_owned()], ..Memory::default() };
        for record in [
            Record::Conversation(Box::new(record)),
            Record::Memory(Box::new(MemoryRecord { memory, untrusted: hostile.to_owned() })),
        ] {
            let page =
                Page::new(&record, &PageOptions { color: true, ..options(&calendar) }, &Terms::default());
            let shown = text(&page);
            assert!(!shown.chars().any(|c| c != '\n' && crate::cli::text::is_unsafe(c)), "{shown:?}");
            assert!(shown.contains("u{1b}"), "{shown:?}");
        }
    }
}
