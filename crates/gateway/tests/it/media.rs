//! What is sent comes out whole, in order and on time.

use crate::common::{Pair, ms, secret};
use braidcast_gateway::srt::{Direction, KeyLength, Options};
use braidcast_sim::link::{Jitter, LinkModel, Loss, Reorder, ReorderHow};
use core::time::Duration;

fn link() -> LinkModel {
    LinkModel::wire(100_000_000, ms(20))
}

/// Packets from the first that came: all of them, but for `missing`.
fn whole(pair: &Pair, missing: usize) {
    let numbers = pair.numbers();
    assert!(numbers.is_sorted_by(|a, b| a < b), "in order, once");
    let span = (numbers.last().unwrap() - numbers[0] + 1) as usize;
    assert!(span - numbers.len() <= missing, "{} of {span} came", numbers.len());
}

#[test]
fn a_clean_link_holds_the_latency_to_the_millisecond_in_both_directions() {
    for direction in [Direction::Receive, Direction::Send] {
        let mut pair = Pair::new(direction, Options::default(), Options::default(), link());
        // Long enough for a correction of the drift, which there is none of.
        pair.run(ms(30_000), 2);
        whole(&pair, 0);
        let (least, most) = pair.delays();
        // The latency, and the way there once.
        assert!(least >= ms(139) && most <= ms(143), "{least:?} to {most:?}");
        assert!(pair.got.iter().all(|(_, at, due)| *due <= *at && *at - *due <= ms(2)));
        let (sent, received) = (pair.sending(), pair.receiving());
        assert_eq!((sent.sent.repeated, received.received.missing, received.received.useless), (0, 0, 0));
        assert!((ms(39)..ms(45)).contains(&received.rtt), "{:?}", received.rtt);
    }
}

#[test]
fn two_percent_of_loss_are_repaired_with_each_length_of_keys() {
    for key_length in [KeyLength::Aes128, KeyLength::Aes192, KeyLength::Aes256] {
        let options =
            Options { latency: ms(240), passphrase: secret("correct horse"), key_length, ..Options::default() };
        let link = LinkModel { loss: Loss::Uniform(0.02), ..link() };
        let mut pair = Pair::new(Direction::Receive, options.clone(), options, link);
        pair.run(ms(10_000), 2);
        // Of 20,000 some 0.02^4 are lost four times; 240 ms are five round trips.
        whole(&pair, 3);
        let (sent, received) = (pair.sending().sent, pair.receiving().received);
        assert!(received.missing > 300 && received.undecrypted == 0, "{received:?}");
        assert!(sent.repeated < received.missing * 3 / 2, "{sent:?} {received:?}");
    }
}

#[test]
fn jitter_and_reordering_do_not_double_the_rate() {
    let reorder = Reorder { share: 0.3, how: ReorderHow::LateBy { mean: ms(30), spread: ms(10) } };
    let link = LinkModel { reorder, jitter: Jitter::Uniform(ms(2)), ..link() };
    let options = Options { latency: ms(200), ..Options::default() };
    let mut pair = Pair::new(Direction::Receive, options.clone(), options, link);
    pair.run(ms(10_000), 2);
    whole(&pair, 0);
    let sent = pair.sending().sent;
    assert!(sent.repeated * 50 < sent.packets, "{sent:?}");
    let patience = pair.receiving().reordering;
    assert!((ms(20)..=ms(67)).contains(&patience), "{patience:?}");
}

#[test]
fn keys_change_while_media_flows() {
    let options = Options {
        passphrase: secret("correct horse"),
        key_length: KeyLength::Aes256,
        key_refresh: 8000,
        ..Options::default()
    };
    for direction in [Direction::Receive, Direction::Send] {
        let link = LinkModel { loss: Loss::Uniform(0.01), ..link() };
        let mut pair = Pair::new(direction, options.clone(), options.clone(), link);
        pair.run(ms(10_000), 3);
        whole(&pair, 20);
        assert_eq!(pair.receiving().received.undecrypted, 0);
        assert!(pair.sending().sent.packets > 3 * 8000);
    }
}

#[test]
fn an_outage_that_is_shorter_than_the_latency_loses_nothing() {
    let options = Options { latency: Duration::from_secs(2), ..Options::default() };
    let mut pair = Pair::new(Direction::Receive, options.clone(), options, link());
    pair.run(ms(3000), 2);
    for down in [true, false] {
        let (there, back) = pair.links;
        pair.net.set_down(there, down);
        pair.net.set_down(back, down);
        pair.run(ms(if down { 1000 } else { 5000 }), 2);
    }
    whole(&pair, 0);
}

#[test]
fn packets_that_come_twice_come_out_once() {
    let link = LinkModel { duplicate: 0.02, ..link() };
    let mut pair = Pair::new(Direction::Receive, Options::default(), Options::default(), link);
    pair.run(ms(5000), 2);
    whole(&pair, 0);
    assert!(pair.receiving().received.useless > 50);
}

#[test]
fn who_sends_is_told_what_the_path_behind_the_receiver_carries() {
    let options = Options::default();
    let mut pair = Pair::new(Direction::Receive, options.clone(), options, link());
    pair.run(ms(3000), 1);
    // Without a word it is what comes: 1000 packets a second.
    let told = pair.sending().told_capacity.unwrap();
    assert!((11_500_000..12_100_000).contains(&told), "{told}");
    pair.net.with(pair.listener, |endpoint, _| endpoint.tell_capacity(3_000_000));
    pair.run(ms(100), 1);
    assert_eq!(pair.sending().told_capacity, Some(3_000_000));
    // libsrt takes one packet a second for "not known".
    pair.net.with(pair.listener, |endpoint, _| endpoint.tell_capacity(0));
    pair.run(ms(100), 1);
    assert_eq!(pair.sending().told_capacity, Some(24_000));
    assert_eq!(pair.receiving().told_capacity, None);
}
