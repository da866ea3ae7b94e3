//! Divides the screen.

use ratatui::layout::Rect;

use super::state::{Focus, State};

/// From this width on, the record is shown beside the list.
const WIDE: u16 = 100;
/// From this height on, there is a line between the query and the list.
const INFO_HEIGHT: u16 = 5;
/// From this height on, each row of the list has a second line.
const TALL_LIST: u16 = 4;

/// The parts of the screen; a part that is not shown is empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Areas {
    pub(super) query: Rect,
    /// How many hits there are, the filters, or what is wrong with the query.
    pub(super) info: Rect,
    pub(super) list: Rect,
    pub(super) reader: Rect,
    pub(super) status: Rect,
}

impl Areas {
    /// Divides `area` for a state.
    pub(super) fn of(state: &State, area: Rect) -> Self {
        let row = |y: u16, height: u16| Rect { y: area.y + y, height: height.min(area.height), ..area };
        let status_height = u16::from(area.height >= 2);
        let status = row(area.height - status_height, status_height);
        let wide = area.width >= WIDE;
        if state.focus == Focus::Reader && !wide {
            return Self { reader: row(0, area.height - status_height), status, ..Self::default() };
        }
        let info_height = u16::from(area.height >= INFO_HEIGHT);
        let (query, info) = (row(0, 1), row(1, info_height));
        let body = row(1 + info_height, area.height.saturating_sub(1 + info_height + status_height));
        let list_width = if wide { area.width / 5 * 2 } else { area.width };
        let list = Rect { width: list_width, ..body };
        // One column for the line between them, and one on each side of the text.
        let reader =
            Rect { x: body.x + list_width + 2, width: area.width - list_width.min(area.width), ..body };
        let reader = Rect { width: reader.width.saturating_sub(3), ..reader };
        Self { query, info, list, reader: if wide { reader } else { Rect::default() }, status }
    }

    /// Returns whether the record is shown beside the list.
    pub(super) fn has_preview(&self) -> bool {
        self.list.width > 0 && self.reader.width > 0
    }

    /// Returns the lines of each row of the list.
    pub(super) fn lines_per_hit(&self) -> usize {
        if self.list.height >= TALL_LIST { 2 } else { 1 }
    }

    /// Returns how many rows of the list are shown.
    pub(super) fn list_rows(&self) -> usize {
        (usize::from(self.list.height) / self.lines_per_hit()).max(1)
    }
}
