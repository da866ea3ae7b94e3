//! Gemini: the activity from Takeout, newest row first, as a list and as a page.

use std::{
    fs::{self, File},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

use serde_json::json;

use super::{GeneratedCounts, answer, question, rfc3339, rng::Rng, write_array};

/// Time of the newest row, in seconds since the Unix epoch; the other rows are older.
const NEWEST: u64 = 1_780_000_000;
/// Pause between two conversations, in seconds; the importer ends a conversation after half an hour without a row.
const CONVERSATION_GAP_SECONDS: u64 = 7_200;

/// Writes Gemini's activity from Takeout as a list of about `bytes` bytes into `folder`.
///
/// # Errors
/// If the folder cannot be written.
pub fn gemini(folder: &Path, bytes: u64, seed: u64) -> io::Result<GeneratedCounts> {
    let (mut rows, mut rng) = (ActivityTimes::default(), Rng::new(seed ^ 0x6e31));
    let path = activity(folder)?.join("MyActivity.json");
    write_array(&path, bytes, &mut rng, |rng, _| {
        let second = rows.next(rng);
        json!({"header": "Gemini Apps", "title": format!("Prompted {}", question(rng)),
            "titleUrl": "https://gemini.google.com/app", "time": rfc3339(second).replace(".000000Z", ".123Z"),
            "products": ["Gemini Apps"], "activityControls": ["Gemini Apps Activity"],
            "safeHtmlItem": [{"html": html(&answer(rng))}]})
    })?;
    Ok(rows.counts)
}

/// Writes Gemini's activity from Takeout as a page of about `bytes` bytes into `folder`.
///
/// # Errors
/// If the folder cannot be written.
pub fn gemini_pages(folder: &Path, bytes: u64, seed: u64) -> io::Result<GeneratedCounts> {
    let (mut rows, mut rng) = (ActivityTimes::default(), Rng::new(seed ^ 0x6e32));
    let mut out = BufWriter::new(File::create(activity(folder)?.join("MyActivity.html"))?);
    out.write_all(HEAD.as_bytes())?;
    let mut written = HEAD.len() as u64;
    while written < bytes {
        let second = rows.next(&mut rng);
        let asked = escape(&question(&mut rng)).replace('\n', "<br>");
        let card = format!(
            "{CARD}Prompted&nbsp;{asked}<br>{}<br>{}{SIDE}{CAPTION}\n",
            page_time(second),
            html(&answer(&mut rng))
        );
        out.write_all(card.as_bytes())?;
        written += card.len() as u64;
    }
    out.write_all(b"</div></body></html>")?;
    out.flush()?;
    Ok(rows.counts)
}

/// Descending times, in groups that the importer recognises as conversations.
struct ActivityTimes {
    second: u64,
    left: u64,
    counts: GeneratedCounts,
}

impl Default for ActivityTimes {
    fn default() -> Self {
        Self { second: NEWEST, left: 0, counts: GeneratedCounts::default() }
    }
}

impl ActivityTimes {
    /// Returns the time of the next row, which is a question with its answer.
    fn next(&mut self, rng: &mut Rng) -> u64 {
        if self.left == 0 {
            self.left = rng.log_normal(4.0, 0.9, 1, 40);
            self.second -= CONVERSATION_GAP_SECONDS;
            self.counts.conversations += 1;
        }
        self.left -= 1;
        self.second -= 1 + rng.below(600);
        self.counts.messages += 2;
        self.second
    }
}

fn activity(folder: &Path) -> io::Result<PathBuf> {
    let folder = folder.join("Takeout/My Activity/Gemini Apps");
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// Returns a text with the markup of the site.
fn html(text: &str) -> String {
    let paragraphs = text.split("\n\n").filter(|paragraph| !paragraph.trim().is_empty());
    paragraphs.fold(String::new(), |page, paragraph| page + "<p>" + &escape(paragraph) + "</p>")
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Formats a time as the page does: `2026-05-28T20:26:40` becomes `May 28, 2026, 8:26:40 PM UTC`.
fn page_time(second: u64) -> String {
    let iso = rfc3339(second);
    let part =
        |from: usize, to: usize| iso.get(from..to).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    let month = MONTHS[usize::try_from(part(5, 7)).unwrap_or(1).clamp(1, 12) - 1];
    let hour = part(11, 13);
    let (half, twelfth) = (if hour < 12 { "AM" } else { "PM" }, (hour + 11) % 12 + 1);
    let (minute, second) = (part(14, 16), part(17, 19));
    format!("{month} {}, {}, {twelfth}:{minute:02}:{second:02}\u{202f}{half} UTC", part(8, 10), part(0, 4))
}

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const HEAD: &str =
    "<html><head><meta charset=\"UTF-8\"><title>My Activity</title></head><body><div class=\"mdl-grid\">\n";
const CARD: &str = "<div class=\"outer-cell mdl-cell mdl-cell--12-col mdl-shadow--2dp\"><div class=\"mdl-grid\"><div class=\"header-cell mdl-cell mdl-cell--12-col\"><p class=\"mdl-typography--title\">Gemini Apps<br></p></div><div class=\"content-cell mdl-cell mdl-cell--6-col mdl-typography--body-1\">";
const SIDE: &str = "</div><div class=\"content-cell mdl-cell mdl-cell--6-col mdl-typography--body-1 mdl-typography--text-right\"></div>";
const CAPTION: &str = "<div class=\"content-cell mdl-cell mdl-cell--12-col mdl-typography--caption\"><b>Products:</b><br>&emsp;Gemini Apps<br><b>Why is this here?</b><br>&emsp;This activity was saved to your account.</div></div></div>";
