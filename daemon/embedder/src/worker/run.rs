//! What the thread of a worker does: passes over all that is missing.

use std::{
    collections::HashMap,
    error::Error,
    mem,
    panic::{self, AssertUnwindSafe},
    slice,
    sync::Arc,
    time::Duration,
};

use super::{Shared, WorkerState, time_after};
use crate::{
    backoff::Backoff,
    client::StopSignal,
    endpoint::Endpoint,
    error::{EndpointError, with_causes},
    source::{EmbeddingSource, MissingText, TextVector},
};

/// Errors in a row of a batch after which one of its texts is suspected, although such errors mostly pass.
const SUSPICIOUS_ERRORS: u32 = 3;
/// A text that every model can embed. If it is refused too, the texts are not the reason.
const PROBE: &str = "Satchel";

pub(super) struct Run<S> {
    shared: Arc<Shared>,
    endpoint: Endpoint,
    source: S,
    backoff: Backoff,
    stop: StopSignal,
    /// Texts in a request; less than configured if the server does not take so many.
    batch_size: usize,
    /// The memories that are left out, each with the hash of its text.
    failed: HashMap<String, String>,
    /// Errors in a row.
    errors: u32,
    /// The pass that an error interrupted.
    pass: Option<Pass>,
}

/// A way through all memories without a vector.
struct Pass {
    /// The revision at which it began.
    revision: u64,
    /// The last memory that was dealt with.
    after: Option<String>,
    /// The memories that were met and left out. What is not met any more needs not be remembered.
    failed: HashMap<String, String>,
}

/// Why a pass does not go on.
enum Interruption {
    Stop,
    Error {
        /// How long the server asks to wait.
        retry_after: Option<Duration>,
        /// The error with its causes.
        reason: String,
    },
}

impl<S: EmbeddingSource> Run<S> {
    pub(super) fn new(
        shared: Arc<Shared>,
        endpoint: Endpoint,
        source: S,
        backoff: Backoff,
        stop: StopSignal,
    ) -> Self {
        let batch_size = endpoint.config().batch_size;
        let (failed, errors, pass) = (HashMap::new(), 0, None);
        Self { shared, endpoint, source, backoff, stop, batch_size, failed, errors, pass }
    }

    pub(super) fn run(mut self) {
        self.work();
        self.shared.update(|progress| progress.state = WorkerState::Stopped);
    }

    /// Works until a stop.
    fn work(&mut self) {
        let mut complete = None;
        while !self.shared.stops_before_wake() {
            // A wake without a new revision is nothing to do for.
            while complete != Some(self.source.revision()) {
                self.shared.update(|progress| progress.state = WorkerState::Working);
                let passed = panic::catch_unwind(AssertUnwindSafe(|| self.pass()));
                match passed.unwrap_or_else(|_| Err(Interruption::panicked())) {
                    Ok(revision) => complete = Some(revision),
                    Err(Interruption::Stop) => return,
                    Err(Interruption::Error { retry_after, reason }) => {
                        if self.stops_during_backoff(retry_after, reason) {
                            return;
                        }
                    }
                }
            }
            self.shared.update(|progress| progress.state = WorkerState::Idle);
        }
    }

    /// Waits after an error, and returns whether there was a stop.
    fn stops_during_backoff(&mut self, retry_after: Option<Duration>, reason: String) -> bool {
        self.errors = self.errors.saturating_add(1);
        let delay = self.backoff.delay(self.errors, retry_after);
        let until = time_after(delay);
        let mut repeated = false;
        self.shared.update(|progress| {
            repeated = progress.last_error.as_ref() == Some(&reason);
            progress.last_error = Some(reason.clone());
            progress.state = WorkerState::Waiting { until, reason: reason.clone() };
        });
        if repeated {
            tracing::debug!(reason, ?delay, "memories are still not embedded");
        } else {
            tracing::warn!(reason, ?delay, "memories are not embedded; it is tried again");
        }
        self.shared.stops_within(delay)
    }

    /// Embeds all that is missing, from where an error interrupted it, and returns the revision that is complete now.
    fn pass(&mut self) -> Result<u64, Interruption> {
        let mut pass = match self.pass.take() {
            Some(pass) => pass,
            None => self.begin_pass()?,
        };
        let ended = self.continue_pass(&mut pass);
        if let Err(interruption) = ended {
            self.pass = Some(pass);
            return Err(interruption);
        }
        self.failed = pass.failed;
        let failed = self.failed.len() as u64;
        self.shared.update(|progress| {
            progress.failed = failed;
            progress.remaining = progress.remaining.map(|_| 0);
        });
        Ok(pass.revision)
    }

    fn begin_pass(&self) -> Result<Pass, Interruption> {
        let revision = self.source.revision();
        let missing = self.source.count_missing(self.model()).map_err(Interruption::source)?;
        let remaining = missing.map(|missing| missing.saturating_sub(self.failed.len() as u64));
        self.shared.update(|progress| progress.remaining = remaining);
        Ok(Pass { revision, after: None, failed: HashMap::new() })
    }

    fn continue_pass(&mut self, pass: &mut Pass) -> Result<(), Interruption> {
        loop {
            if self.shared.is_stopping() {
                return Err(Interruption::Stop);
            }
            let limit = self.batch_size;
            let missing = self.source.missing(self.model(), pass.after.as_deref(), limit);
            let missing = missing.map_err(Interruption::source)?;
            let ended = missing.len() < limit;
            let last = missing.last().map(|text| text.memory_id.clone());
            let (left_out, texts): (Vec<_>, Vec<_>) = missing
                .into_iter()
                .partition(|text| self.failed.get(&text.memory_id) == Some(&text.content_hash));
            pass.failed.extend(left_out.into_iter().map(|text| (text.memory_id, text.content_hash)));
            if !texts.is_empty() {
                self.embed(texts, pass)?;
            }
            pass.after = last.or(pass.after.take());
            if ended {
                return Ok(());
            }
        }
    }

    /// Embeds a batch. What cannot be embedded is left out.
    fn embed(&mut self, texts: Vec<MissingText>, pass: &mut Pass) -> Result<(), Interruption> {
        let error = match self.request(&texts) {
            Ok(vectors) => return self.store(texts, vectors),
            Err(error) => error,
        };
        let lasting = !error.is_transient() || self.errors + 1 >= SUSPICIOUS_ERRORS;
        if !(lasting && error.may_be_about_texts()) {
            return Err(error.into());
        }
        match self.endpoint.embed_unless_stopped(&[PROBE], &self.stop) {
            Ok(_) => {
                self.errors = 0;
                self.embed_each(texts, error, pass)
            }
            // The reason is not one of the texts. What the server asks for now counts.
            Err(now) if now.is_transient() || matches!(now, EndpointError::Stopped) => Err(now.into()),
            Err(_) => Err(error.into()),
        }
    }

    /// Sends the texts of a batch, which `error` stopped, one at a time.
    fn embed_each(
        &mut self,
        texts: Vec<MissingText>,
        error: EndpointError,
        pass: &mut Pass,
    ) -> Result<(), Interruption> {
        if let [text] = &texts[..] {
            self.leave_out(text, &error, pass);
            return Ok(());
        }
        let (count, mut all_taken) = (texts.len(), true);
        for text in texts {
            match self.request(slice::from_ref(&text)) {
                Ok(vectors) => self.store(vec![text], vectors)?,
                Err(error) if error.may_be_about_texts() => {
                    all_taken = false;
                    self.leave_out(&text, &error, pass);
                }
                Err(error) => return Err(error.into()),
            }
        }
        if all_taken {
            // Each text alone, but not all together.
            self.batch_size = (count / 2).max(1);
            self.shared.update(|progress| progress.last_error = None);
            tracing::info!(batch_size = self.batch_size, "the embeddings server takes smaller batches only");
        }
        Ok(())
    }

    fn leave_out(&mut self, text: &MissingText, error: &EndpointError, pass: &mut Pass) {
        let reason = with_causes(error);
        tracing::warn!(memory = text.memory_id, reason, "a memory is not embedded");
        self.failed.insert(text.memory_id.clone(), text.content_hash.clone());
        pass.failed.insert(text.memory_id.clone(), text.content_hash.clone());
        let failed = self.failed.len() as u64;
        self.shared.update(|progress| {
            progress.failed = failed;
            progress.remaining = progress.remaining.map(|remaining| remaining.saturating_sub(1));
            progress.last_error = Some(reason);
        });
    }

    fn request(&self, texts: &[MissingText]) -> Result<Vec<Vec<f32>>, EndpointError> {
        let texts: Vec<&str> = texts.iter().map(|text| text.text.as_str()).collect();
        self.endpoint.embed_unless_stopped(&texts, &self.stop)
    }

    fn store(&mut self, texts: Vec<MissingText>, vectors: Vec<Vec<f32>>) -> Result<(), Interruption> {
        let count = vectors.len() as u64;
        let vectors = texts.into_iter().zip(vectors).map(|(text, vector)| {
            let MissingText { memory_id, content_hash, text: _ } = text;
            TextVector { memory_id, content_hash, vector }
        });
        self.source.store(self.model(), vectors.collect()).map_err(Interruption::source)?;
        let recovered = mem::take(&mut self.errors) > 0;
        if recovered {
            tracing::info!("memories are embedded again");
        }
        self.shared.update(|progress| {
            progress.embedded += count;
            progress.remaining = progress.remaining.map(|remaining| remaining.saturating_sub(count));
            if recovered {
                progress.last_error = None;
            }
        });
        Ok(())
    }

    fn model(&self) -> &str {
        &self.endpoint.config().model
    }
}

impl Interruption {
    fn source(error: impl Error + 'static) -> Self {
        Self::Error { retry_after: None, reason: with_causes(&error) }
    }

    fn panicked() -> Self {
        let reason = "memories are not embedded because of a bug; please report this".to_owned();
        Self::Error { retry_after: None, reason }
    }
}

impl From<EndpointError> for Interruption {
    fn from(error: EndpointError) -> Self {
        if matches!(error, EndpointError::Stopped) {
            return Self::Stop;
        }
        Self::Error { retry_after: error.retry_after(), reason: with_causes(&error) }
    }
}
