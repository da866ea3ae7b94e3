//! Events as lines for the system journal: with the journal's priority prefix, without time and colour.

use std::fmt;

use tracing::{Event, Level, Subscriber};
use tracing_subscriber::{
    fmt::{
        FmtContext, FormatEvent, FormatFields,
        format::{self, Format, Full, Writer},
    },
    registry::LookupSpan,
};

/// A format that writes the logging prefix of sd-daemon(3) before each line.
pub(super) struct JournalFormat(Format<Full, ()>);

impl JournalFormat {
    pub(super) fn new() -> Self {
        // The priority shows the level.
        Self(format::format().without_time().with_level(false))
    }
}

impl<S, N> FormatEvent<S, N> for JournalFormat
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut text = String::new();
        self.0.format_event(context, Writer::new(&mut text), event)?;
        let priority = priority(*event.metadata().level());
        // A line without a prefix would count as a separate message with another priority.
        text.lines().try_for_each(|line| writeln!(writer, "<{priority}>{line}"))
    }
}

/// Returns the priority as in syslog(3).
fn priority(level: Level) -> u8 {
    match level {
        Level::ERROR => 3,
        Level::WARN => 4,
        Level::INFO => 6,
        _ => 7,
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::{
        io,
        sync::{Arc, Mutex},
    };

    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    #[derive(Clone, Default)]
    struct SharedBuffer(Arc<Mutex<Vec<u8>>>);

    impl io::Write for SharedBuffer {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn every_line_has_its_priority_and_no_time() {
        let buffer = SharedBuffer::default();
        let writer = buffer.clone();
        let layer = tracing_subscriber::fmt::layer()
            .with_ansi(false)
            .event_format(JournalFormat::new())
            .with_writer(move || writer.clone());
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            tracing::error!(target: "t", import = 7, "lost");
            tracing::info!(target: "t", "two\nlines");
            tracing::debug!(target: "t", "detail");
        });
        let text = String::from_utf8(buffer.0.lock().unwrap().clone()).unwrap();
        assert_eq!(text, "<3>t: lost import=7\n<6>t: two\n<6>lines\n<7>t: detail\n");
    }
}
