//! Pages of skips: the receipt lists the first ones, and all others are stored in pages of the ledger.

use satchel_pam::record::Skip;

use super::{
    error::IngestError,
    ledger::{self, ISSUES_PER_PAGE},
    receipt::ImportRecord,
    session::Session,
};

/// The skips that do not fit into the receipt.
#[derive(Default)]
pub(super) struct SkipPages {
    /// The current page.
    page: Vec<Skip>,
    /// The number of these that are stored already, as the beginning of the page.
    stored: usize,
    /// The number of full pages.
    pages: u32,
}

impl SkipPages {
    /// Counts a skip, and lists it in the receipt or in a page.
    pub(super) fn add(
        &mut self,
        skip: Skip,
        session: &Session<'_>,
        record: &mut ImportRecord,
    ) -> Result<(), IngestError> {
        let Some(skip) = record.skip(skip) else { return Ok(()) };
        self.page.push(skip);
        if self.page.len() >= ISSUES_PER_PAGE { self.flush(session, record) } else { Ok(()) }
    }

    /// Stores the current page and begins the next one.
    pub(super) fn flush(
        &mut self,
        session: &Session<'_>,
        record: &mut ImportRecord,
    ) -> Result<(), IngestError> {
        let page = std::mem::take(&mut self.page);
        if !page.is_empty() && !session.dry_run {
            ledger::put_issues(session.store, session.origin.import, self.pages, &page)?;
            self.pages += 1;
            record.issue_pages = self.pages;
        }
        self.stored = 0;
        Ok(())
    }

    /// Stores the current page although it is not full; it is stored again when it is.
    pub(super) fn flush_partial(
        &mut self,
        session: &Session<'_>,
        record: &mut ImportRecord,
    ) -> Result<(), IngestError> {
        if self.page.len() > self.stored && !session.dry_run {
            ledger::put_issues(session.store, session.origin.import, self.pages, &self.page)?;
            self.stored = self.page.len();
            record.issue_pages = self.pages + 1;
        }
        Ok(())
    }
}
