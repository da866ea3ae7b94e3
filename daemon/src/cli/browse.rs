//! `browse`: searches and reads on the whole terminal.
//!
//! [`update`] decides what an event changes and what has to be done, [`view`] draws the state, both without terminal
//! and daemon. The loop here connects them with keys, signals and requests.

mod areas;
mod export;
mod find;
mod hits;
mod line_editor;
mod page;
mod painted;
mod record;
mod requests;
mod state;
mod terminal;
mod update;
mod view;

use std::{future, io, pin::Pin};

use crossterm::event::{Event as TerminalEvent, EventStream};
use ratatui::layout::Size;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_stream::StreamExt as _;

use self::{
    state::{Effect, Event, State},
    terminal::Screen,
    update::update,
};
use super::{Context, args::BrowseArgs, client::DaemonClient, error::CliError, exit::Exit};

/// Checks that the command can be used here.
///
/// # Errors
/// Fails with `--json`, and without a terminal.
pub(super) fn check(context: &Context) -> Result<(), CliError> {
    if context.out.json {
        let problem = "`satchel browse` draws on the terminal and has no --json; use `satchel search --json`";
        return Err(CliError::Usage(problem.to_owned()));
    }
    terminal::require_terminal()
}

/// Runs the command until the person quits.
///
/// # Errors
/// Fails if the terminal cannot be used, and with [`CliError::Cancelled`] if the program is told to end. Errors of the
/// daemon are shown on the screen.
pub(super) async fn run(
    context: &mut Context,
    client: &DaemonClient,
    args: &BrowseArgs,
) -> Result<Exit, CliError> {
    let context = &*context;
    let color = context.out.style.color;
    let mut screen = Screen::open()?;
    let query = args.query.join(" ");
    let (state, first) = State::new(&query, context.calendar.clone(), color, screen.size()?);
    let mut requests = Requests::new(client, context);
    requests.start(first);
    show(&mut screen, state, requests).await
}

/// Draws, waits for what happens, and applies it, in turns.
async fn show(screen: &mut Screen, mut state: State, mut requests: Requests<'_>) -> Result<Exit, CliError> {
    let mut keys = EventStream::new();
    let mut terminate = listen(SignalKind::terminate())?;
    let mut hangup = listen(SignalKind::hangup())?;
    loop {
        screen.draw(|frame| view::draw(frame, &state))?;
        let event = tokio::select! {
            key = keys.next() => match key {
                Some(key) => from_terminal(key)?,
                None => return Ok(Exit::Done),
            },
            event = requests.next() => Some(event),
            _ = terminate.recv() => return Err(CliError::Cancelled),
            _ = hangup.recv() => return Err(CliError::Cancelled),
        };
        let Some(event) = event else { continue };
        if !requests.start(update(&mut state, event)) {
            return Ok(Exit::Done);
        }
    }
}

fn listen(kind: SignalKind) -> Result<Signal, CliError> {
    signal(kind).map_err(|error| CliError::step("cannot listen for signals", error))
}

/// Returns what happened in the terminal; `None` for what does not matter.
fn from_terminal(event: io::Result<TerminalEvent>) -> Result<Option<Event>, CliError> {
    let event = event.map_err(|error| CliError::step("cannot read from the terminal", error))?;
    Ok(match event {
        TerminalEvent::Key(key) => Some(Event::Key(key)),
        TerminalEvent::Paste(text) => Some(Event::Paste(text)),
        TerminalEvent::Resize(width, height) => Some(Event::Resize(Size::new(width, height))),
        TerminalEvent::FocusGained | TerminalEvent::FocusLost | TerminalEvent::Mouse(_) => None,
    })
}

/// A request that ends with an event. Dropping it cancels it.
type Request<'a> = Option<Pin<Box<dyn Future<Output = Event> + 'a>>>;

/// The requests that have not been answered, one of each kind: a new one replaces the one before.
struct Requests<'a> {
    client: &'a DaemonClient,
    context: &'a Context,
    search: Request<'a>,
    load: Request<'a>,
    platforms: Request<'a>,
    export: Request<'a>,
}

impl<'a> Requests<'a> {
    fn new(client: &'a DaemonClient, context: &'a Context) -> Self {
        Self { client, context, search: None, load: None, platforms: None, export: None }
    }

    /// Starts what has to be done. Returns false if this is to quit.
    fn start(&mut self, effects: Vec<Effect>) -> bool {
        let (client, context) = (self.client, self.context);
        let calendar = &context.calendar;
        for effect in effects {
            match effect {
                Effect::Search(job) => {
                    self.search = Some(Box::pin(requests::search(client, calendar, job)));
                }
                Effect::Load { serial, target, delayed } => {
                    self.load = Some(Box::pin(requests::load(client, serial, target, delayed)));
                }
                Effect::CountPlatforms { query, filters } => {
                    let count = requests::count_platforms(client, calendar, query, filters);
                    self.platforms = Some(Box::pin(count));
                }
                Effect::Export { file, targets, hidden } => {
                    let location = &context.location;
                    self.export = Some(Box::pin(export::run(client, location, file, targets, hidden)));
                }
                Effect::Quit => return false,
            }
        }
        true
    }

    /// Returns the next response. Nothing is lost if the caller stops waiting.
    async fn next(&mut self) -> Event {
        tokio::select! {
            event = answer(&mut self.search) => event,
            event = answer(&mut self.load) => event,
            event = answer(&mut self.platforms) => event,
            event = answer(&mut self.export) => event,
        }
    }
}

async fn answer(request: &mut Request<'_>) -> Event {
    let Some(waiting) = request else { return future::pending().await };
    let event = waiting.await;
    *request = None;
    event
}

#[cfg(test)]
mod tests {
    //! Records that the tests of several modules show.

    use satchel_proto::v1::Conversation;

    use super::record::ConversationRecord;
    use crate::cli::conversations::branches;

    /// Returns a conversation that forks twice.
    pub(super) fn forked(message: Option<&str>) -> ConversationRecord {
        let conversation = Conversation { id: "c".to_owned(), ..Conversation::default() };
        ConversationRecord::new(conversation, branches::tests::forked(), message)
    }
}
