//! The page: a skeleton, its style and script, and the data.

use crate::Exchange;
use crate::columns::Columns;
use crate::gaps;
use serde_json::json;
use std::io::{self, Write};

const SKELETON: &str = include_str!("../web/page.html");
const STYLE: &str = include_str!("../web/style.css");
/// In the order in which they use each other.
const SCRIPTS: [&str; 8] = [
    include_str!("../web/data.js"),
    include_str!("../web/draw.js"),
    include_str!("../web/detail.js"),
    include_str!("../web/exchange.js"),
    include_str!("../web/timeline.js"),
    include_str!("../web/frames.js"),
    include_str!("../web/sequence.js"),
    include_str!("../web/main.js"),
];

impl Exchange {
    /// Writes the page, under `title`. Nothing can be taken any more.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn page(mut self, title: &str, mut out: impl Write) -> io::Result<()> {
        self.join();
        let left = self.left();
        let columns = self.columns();
        let about = json!({
            "title": title,
            "ends": self.ends,
            "left": left,
            "has_arrivals": self.frames.has_arrivals,
            "columns": columns.places(),
        });
        // In a script element only `<` could end it (HTML §4.12.1.3).
        let about = about.to_string().replace('<', "\\u003c");
        // In a function of its own, so that no name stands in the way of the browser's.
        let script = format!("(() => {{\n{}}})();\n", SCRIPTS.concat());
        for part in SKELETON.split_inclusive("-->") {
            let (text, name) = part.strip_suffix("-->").and_then(|it| it.rsplit_once("<!--")).unwrap_or((part, ""));
            out.write_all(text.as_bytes())?;
            match name {
                "title" => out.write_all(escape(title).as_bytes())?,
                "style" => out.write_all(STYLE.as_bytes())?,
                "about" => out.write_all(about.as_bytes())?,
                "data" => out.write_all(columns.base64().as_bytes())?,
                "script" => out.write_all(script.as_bytes())?,
                _ => {}
            }
        }
        out.flush()
    }

    fn columns(&self) -> Columns {
        let mut it = Columns::default();
        let (sent, known, marks, frames) = (&self.sent, &self.known, &self.marks, &self.frames.rows);
        let end = |end: usize| u8::try_from(end).unwrap_or(u8::MAX);
        let path = |path: u32| u8::try_from(path).unwrap_or(u8::MAX);
        it.f64("sent.at", sent.iter().map(|row| row.sent));
        it.f64("sent.arrived", sent.iter().map(|row| row.arrived));
        it.f64("sent.number", sent.iter().map(|row| row.number));
        it.u32("sent.bytes", sent.iter().map(|row| row.bytes));
        it.u32("sent.frame", sent.iter().map(|row| row.frame));
        it.u32("sent.stream", sent.iter().map(|row| row.stream));
        it.u8("sent.path", sent.iter().map(|row| path(row.path)));
        it.u8("sent.end", sent.iter().map(|row| end(row.end)));
        it.u8("sent.what", sent.iter().map(|row| row.what as u8));
        it.u8("sent.outcome", sent.iter().map(|row| row.outcome as u8));
        it.u8("sent.reckoned", sent.iter().map(|row| u8::from(row.reckoned)));
        it.f64("known.at", known.iter().map(|row| row.at));
        it.f32("known.cwnd", known.iter().map(|row| row.cwnd as f32));
        it.f32("known.flight", known.iter().map(|row| row.in_flight as f32));
        it.f32("known.srtt", known.iter().map(|row| row.srtt as f32));
        it.f32("known.queued", known.iter().map(|row| row.queued as f32));
        it.u8("known.path", known.iter().map(|row| path(row.path)));
        it.u8("known.end", known.iter().map(|row| end(row.end)));
        it.f64("mark.at", marks.iter().map(|row| row.at));
        it.u8("mark.path", marks.iter().map(|row| path(row.path)));
        it.u8("mark.end", marks.iter().map(|row| end(row.end)));
        it.u8("mark.sign", marks.iter().map(|row| row.sign as u8));
        let gaps = gaps::waiting(sent, self.left());
        it.f64("gap.at", gaps.iter().map(|it| it.at));
        it.u32("gap.bytes", gaps.iter().map(|it| it.bytes));
        it.f64("frame.captured", frames.iter().map(|row| row.captured));
        it.f64("frame.deadline", frames.iter().map(|row| row.deadline));
        it.f64("frame.arrived", frames.iter().map(|row| row.arrived));
        it.f64("frame.given_up", frames.iter().map(|row| row.given_up));
        it.u32("frame.number", frames.iter().map(|row| row.number));
        it.u32("frame.bytes", frames.iter().map(|row| row.bytes));
        it.u8("frame.kind", frames.iter().map(|row| row.kind));
        it.u8("frame.reference", frames.iter().map(|row| u8::from(row.reference)));
        it.u8("frame.outcome", frames.iter().map(|row| row.outcome as u8));
        it.u8("frame.why", frames.iter().map(|row| row.why));
        it
    }
}

/// `text` as a text of HTML.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
