//! Fifty times one of two ends is killed: what both say became of the frames adds up in each line, and
//! the stream goes on with whoever is left.

use crate::common::{Running, free_ports, transport_stream, until};
use crate::random::wanted;
use braidcast_core::Rng;
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

const KILLS: usize = 50;
/// Of the recording, which has to last: each kill takes some two seconds.
const SECONDS: u32 = 400;

/// An end of the stream, which is started anew under another number.
struct End {
    dir: std::path::PathBuf,
    args: String,
    name: &'static str,
    lives: usize,
    running: Option<Running>,
}

impl End {
    fn start(&mut self) {
        self.lives += 1;
        let args = format!("{} --stats 200ms,{}-{}.json", self.args, self.name, self.lives);
        self.running = Some(Running::start(&self.dir, &args));
    }

    fn kill(&mut self) {
        self.running.take().unwrap().kill();
    }

    /// Its whole lines of this life.
    fn lines(&self) -> Vec<Value> {
        lines(&self.dir.join(format!("{}-{}.json", self.name, self.lives)))
    }

    /// Frames on time in this life.
    fn on_time(&self) -> u64 {
        self.lines().last().map_or(0, |line| each_kind(line).map(|kind| count(kind, "on_time")).sum())
    }
}

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    // Whoever is killed may leave half of one.
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn each_kind(line: &Value) -> impl Iterator<Item = &Value> {
    line["streams"].as_array().into_iter().flatten().flat_map(|stream| stream["kinds"].as_array().into_iter().flatten())
}

fn count(kind: &Value, what: &str) -> u64 {
    kind[what].as_u64().unwrap_or_else(|| panic!("no {what} in {kind}"))
}

#[test]
#[ignore = "takes some three minutes: make chaos"]
fn the_columns_add_up_and_the_stream_goes_on_whoever_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    transport_stream(dir.path(), SECONDS);
    let (seed, _) = wanted();
    eprintln!("again: BRAIDCAST_SEED={seed} cargo test -p braidcast-cli --test chaos -- --ignored --nocapture sums");
    let mut rng = Rng::from_seed(seed);
    let [first, second] = free_ports();
    let end = |name, args: String| End { dir: dir.path().into(), args, name, lives: 0, running: None };
    let mut ends = [
        end("receive", format!("receive 127.0.0.1:{first},127.0.0.1:{second} out.ts --overwrite --keep")),
        end("send", format!("send clip.ts --to 127.0.0.1:{first},127.0.0.1:{second}")),
    ];
    ends.iter_mut().for_each(End::start);
    for kill in 0..=KILLS {
        let before = ends.each_ref().map(End::on_time);
        until(&format!("the stream after {kill} kills of seed {seed}"), || {
            ends.iter().zip(before).all(|(end, before)| end.on_time() > before + 10)
        });
        for end in &mut ends {
            assert!(end.running.as_mut().unwrap().is_running(), "{} ended by itself after {kill} kills", end.name);
        }
        if kill == KILLS {
            break;
        }
        let end = &mut ends[rng.below(2) as usize];
        end.kill();
        std::thread::sleep(Duration::from_secs_f64(1.5 * rng.f64()));
        end.start();
    }
    let mut looked_at = 0;
    for end in &ends {
        for life in 1..=end.lives {
            for line in lines(&dir.path().join(format!("{}-{life}.json", end.name))) {
                for kind in each_kind(&line) {
                    let parts = ["on_time", "late", "missing", "not_known_yet"];
                    let dropped = ["expired", "crowded_out", "refused", "on_the_way"].map(|it| format!("dropped_{it}"));
                    let parts = parts.into_iter().map(str::to_owned).chain(dropped);
                    let sum: u64 = parts.map(|part| count(kind, &part)).sum();
                    assert_eq!(count(kind, "captured"), sum, "{} {life}: {kind}", end.name);
                    looked_at += 1;
                }
            }
        }
    }
    println!("{KILLS} kills of seed {seed}: {looked_at} sums add up");
    assert!(looked_at > 1000);
}
