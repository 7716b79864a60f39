//! Links that do not carry even the audio of a stream.

use crate::common::*;
use braidcast_media::Kind;
use braidcast_session::{ReceiverOptions, SenderOptions};
use braidcast_sim::LinkModel;
use braidcast_sim::link::QueueLimit;

/// Bytes that headers add to a frame of audio or a table, for each packet that it takes.
const HEADERS: usize = 80;

/// EDGE, or a satellite telephone. Audio in small frames comes to 188 kbit/s, gathered in large ones to 123; of those
/// one alone takes a third of a second at 100 kbit/s.
#[test]
fn of_audio_that_does_not_fit_most_of_what_would_is_heard() {
    for (name, units) in [("small", camera(40)), ("gathered", gathered_audio(40))] {
        let least = units.iter().filter(|(_, unit)| matches!(unit.kind, Kind::Audio | Kind::Tables));
        let bits: usize =
            least.map(|(_, unit)| 8 * (unit.bytes.len() + unit.bytes.len().div_ceil(1200) * HEADERS)).sum();
        for rate in [100_000, 150_000, 200_000] {
            let link = LinkModel { queue: QueueLimit::Time(ms(2_000)).into(), ..LinkModel::wire(rate, ms(60)) };
            let mut scene = Scene::new(SenderOptions::default(), ReceiverOptions::default(), units.clone(), &[link]);
            scene.run_to_end(ms(60_000));
            let audio = scene.sink().kind(Kind::Audio);
            let fits = (rate as f64 * 40.0 / bits as f64).min(1.0);
            let heard = audio.on_time as f64 / audio.captured as f64;
            assert!(heard > 0.55 * fits, "{name} frames, {rate} bit/s: {heard:.2} heard, {fits:.2} fit");
        }
    }
}
