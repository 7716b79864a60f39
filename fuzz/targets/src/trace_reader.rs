//! Any bytes as a trace, a trace of ns-2 or a capture: what can be read of it becomes a page.

use braidcast_trace::{CaptureReader, Ns2Reader, QlogReader};
use braidcast_viz::{Exchange, Listener};
use std::io::Cursor;

/// Takes one input.
pub fn fuzz(bytes: &[u8]) {
    let mut exchange = Exchange::default();
    if CaptureReader::recognises(bytes) {
        let Ok(mut reader) = CaptureReader::new(Cursor::new(bytes.to_vec())) else { return };
        let end = exchange.add_end("capture");
        let mut listener = Listener::default();
        while let Ok(Some(packet)) = reader.next_packet() {
            listener.hear(&packet, &mut |record| exchange.take(end, record));
        }
    } else if Ns2Reader::<&[u8]>::recognises(bytes) {
        let ends = ["near", "far"].map(|end| exchange.add_end(end));
        let mut reader = Ns2Reader::new(bytes);
        while let Ok(Some(passage)) = reader.next_passage() {
            exchange.take_passage(ends, &passage);
        }
    } else if let Ok(mut reader) = QlogReader::new(bytes) {
        let end = exchange.add_end(reader.vantage());
        while let Ok(Some(record)) = reader.next_record() {
            exchange.take(end, &record);
        }
    }
    let mut page = Vec::new();
    exchange.page("fuzz", &mut page).expect("a buffer in memory takes everything");
    let page = String::from_utf8(page).expect("text");
    // Nothing ends the script elements but the page itself.
    assert_eq!(page.matches("</script>").count(), 3);
}
