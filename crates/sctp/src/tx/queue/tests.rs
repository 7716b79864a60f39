use super::*;
use core::num::NonZeroU16;
use core::time::Duration;

impl SendQueue {
    /// The next piece, of `room` bytes at most.
    pub(crate) fn cut(&mut self, room: usize) -> Option<Piece> {
        self.cut_ahead(0, room)
    }
}

fn queue(interleaving: bool) -> SendQueue {
    ordered(interleaving, StreamOrder::Priority)
}

fn ordered(interleaving: bool, order: StreamOrder) -> SendQueue {
    let mut queue = SendQueue::new(order, Abandonment::Delayed);
    queue.settle(interleaving, true, false);
    queue
}

fn on(stream: u16) -> SendOptions {
    SendOptions { stream, ..SendOptions::default() }
}

/// The streams that the next pieces come from.
fn order(queue: &mut SendQueue, room: usize) -> Vec<u16> {
    core::iter::from_fn(|| queue.cut(room).map(|piece| queue.get(piece.message).stream)).collect()
}

#[test]
fn streams_of_one_priority_take_turns_by_chunk_or_by_message() {
    for (interleaving, expected) in [(true, [0, 1, 0, 1, 0]), (false, [0, 0, 0, 1, 1])] {
        let mut queue = queue(interleaving);
        queue.push(Instant::ZERO, &[0; 30], on(0));
        queue.push(Instant::ZERO, &[0; 20], on(1));
        assert_eq!(order(&mut queue, 10), expected);
        assert_eq!(queue.waiting_bytes(), 0);
    }
}

#[test]
fn a_higher_priority_overtakes_in_the_middle_of_a_message() {
    let mut queue = queue(true);
    queue.set_priority(5, Priority::new(0));
    queue.push(Instant::ZERO, &[0; 30], on(1));
    queue.cut(10);
    queue.push(Instant::ZERO, &[0; 5], on(5));
    assert_eq!(order(&mut queue, 10), [5, 1, 1]);
}

#[test]
fn first_come_first_served_knows_no_priority() {
    let mut queue = ordered(true, StreamOrder::Fcfs);
    queue.set_priority(5, Priority::new(0));
    for (stream, len) in [(1, 20), (5, 10), (1, 10), (5, 20)] {
        queue.push(Instant::ZERO, &vec![0; len], on(stream));
    }
    queue.set_priority(1, Priority::new(7));
    assert_eq!(order(&mut queue, 10), [1, 1, 5, 1, 5, 5]);
}

#[test]
fn with_immediate_abandonment_messages_expire_wherever_they_are() {
    let mut queue = SendQueue::new(StreamOrder::Priority, Abandonment::ImmediateCounted);
    queue.settle(true, true, false);
    for life in [30, 10, 20] {
        let reliability = Reliability::Lifetime(Duration::from_millis(life));
        queue.push(Instant::ZERO, &[0; 5], SendOptions { reliability, ..on(0) });
    }
    let out = queue.cut(10).unwrap().message;
    let expired = |queue: &mut SendQueue, at| {
        let found = queue.next_expired(Instant::from_millis(at));
        found.inspect(|&key| queue.drop_rest(key))
    };
    assert_eq!(expired(&mut queue, 9), None);
    let second = expired(&mut queue, 25).unwrap();
    let third = expired(&mut queue, 25).unwrap();
    assert!(second != out && third != out && second != third);
    assert_eq!((expired(&mut queue, 25), queue.next_expiry()), (None, Some(Instant::from_millis(30))));
    assert_eq!(expired(&mut queue, 30), Some(out));
    assert_eq!((expired(&mut queue, 99), queue.next_expiry()), (None, None));
}

#[test]
fn expired_messages_are_found_at_the_head_of_any_stream() {
    let mut queue = queue(true);
    let short = SendOptions { reliability: Reliability::Lifetime(Duration::from_millis(10)), ..on(3) };
    queue.push(Instant::ZERO, &[0; 30], on(0));
    queue.push(Instant::ZERO, &[0; 7], short);
    assert_eq!(queue.next_expired(Instant::from_millis(9)), None);
    let late = Instant::from_millis(10);
    let key = queue.next_expired(late).unwrap();
    assert!(!queue.get(key).may_send(late, 0));
    queue.drop_rest(key);
    queue.release(key);
    assert_eq!(queue.next_expired(late), None);
    assert_eq!((queue.held_bytes(), queue.waiting_bytes()), (30, 30));
    assert_eq!(order(&mut queue, 100), [0]);
}

#[test]
fn ordered_and_unordered_messages_count_apart_with_i_data() {
    let mut queue = queue(true);
    let unordered = SendOptions { unordered: true, ..on(0) };
    for how in [on(0), unordered, on(0), unordered] {
        queue.push(Instant::ZERO, &[1], how);
    }
    let numbers: Vec<_> = core::iter::from_fn(|| queue.cut(10).map(|piece| queue.get(piece.message).number)).collect();
    assert_eq!(numbers, [0, 0, 1, 1]);
}

/// Numbers and first bytes of the pieces that `leads` give, of messages of 10 bytes.
fn ahead(queue: &mut SendQueue, leads: &[usize]) -> Vec<Option<(u32, u8)>> {
    let mut cut = |&lead: &usize| {
        let piece = queue.cut_ahead(lead, 10)?;
        let message = queue.get(piece.message);
        Some((message.number, message.payload[piece.offset as usize]))
    };
    leads.iter().map(&mut cut).collect()
}

#[test]
fn what_goes_ahead_has_the_number_of_its_place() {
    for interleaving in [true, false] {
        let mut queue = queue(interleaving);
        (0..9).for_each(|n| queue.push(Instant::ZERO, &[n; 10], on(3)));
        let pieces = ahead(&mut queue, &[0, 40, 40, 0, 30, 0, 1000, 0, 0, 0, 0, 0]);
        let expected = [0, 5, 6, 1, 7, 2];
        let mut expected: Vec<_> = expected.iter().map(|&n| Some((n, n as u8))).collect();
        expected.push(None);
        expected.extend([3, 4, 8].map(|n| Some((n, n as u8))));
        expected.extend([None, None]);
        assert_eq!(pieces, expected);
        assert_eq!(queue.waiting_bytes(), 0);
    }
}

#[test]
fn nothing_overtakes_a_numbered_message_that_may_be_given_up() {
    let mut queue = queue(true);
    let brief = SendOptions { reliability: Reliability::Lifetime(Duration::from_secs(1)), ..on(3) };
    queue.push(Instant::ZERO, &[0; 10], on(3));
    queue.push(Instant::ZERO, &[1; 10], brief);
    queue.push(Instant::ZERO, &[2; 10], on(3));
    assert_eq!(ahead(&mut queue, &[10, 5, 0, 0, 0]), [None, None, Some((0, 0)), Some((1, 1)), Some((2, 2))]);
    let brief = SendOptions { unordered: true, ..brief };
    (0..3).for_each(|n| queue.push(Instant::ZERO, &[n; 10], brief));
    assert_eq!(ahead(&mut queue, &[20, 0, 0, 0]), [None, Some((0, 0)), Some((1, 1)), Some((2, 2))]);
    // Unordered DATA has no numbers, so that nothing is skipped with it.
    let mut queue = ordered(false, StreamOrder::Priority);
    (0..3).for_each(|n| queue.push(Instant::ZERO, &[n; 10], brief));
    let bytes = |piece: &Option<(u32, u8)>| piece.map(|(_, byte)| byte);
    assert_eq!(ahead(&mut queue, &[20, 0, 0]).iter().map(bytes).collect::<Vec<_>>(), [Some(2), Some(0), Some(1)]);
}

#[test]
fn a_message_of_several_pieces_goes_on_where_it_was_cut() {
    let mut queue = queue(true);
    [30, 30, 30].iter().enumerate().for_each(|(n, &len)| queue.push(Instant::ZERO, &vec![n as u8; len], on(3)));
    // The second message goes ahead, and the first is not even begun.
    assert_eq!(ahead(&mut queue, &[30, 30, 0, 30]), [Some((1, 1)), Some((1, 1)), Some((0, 0)), Some((2, 2))]);
    assert_eq!(ahead(&mut queue, &[0, 0, 0, 0, 0, 0]).iter().flatten().count(), 5);
    let mut whole = ordered(false, StreamOrder::Priority);
    (0..3).for_each(|n| whole.push(Instant::ZERO, &[n; 20], on(3)));
    // TSNs of a message are consecutive without interleaving: it is sent to its end.
    assert_eq!(ahead(&mut whole, &[20, 0, 0, 0]), [Some((1, 1)), Some((1, 1)), Some((0, 0)), Some((0, 0))]);
}

/// Bytes cut off each of the streams 1 to 3, of `pieces` of `room` bytes at most; each stream has
/// more messages than that.
fn shares(queue: &mut SendQueue, lengths: [usize; 3], room: usize, pieces: usize) -> [usize; 3] {
    for (stream, len) in (1..).zip(lengths) {
        for _ in 0..200 {
            queue.push(Instant::ZERO, &vec![0; len], on(stream));
        }
    }
    let mut bytes = [0; 3];
    for _ in 0..pieces {
        let piece = queue.cut(room).unwrap();
        bytes[usize::from(queue.get(piece.message).stream) - 1] += usize::from(piece.len);
    }
    bytes
}

#[test]
fn streams_in_turn_get_as_many_messages_or_chunks_whatever_their_priority() {
    for (interleaving, expected) in [(false, [1000, 10_000, 5000]), (true, [1000, 5000, 5000])] {
        let mut queue = ordered(interleaving, StreamOrder::RoundRobin);
        queue.set_priority(2, Priority::new(0));
        // Without I-DATA a message of 1000 bytes is two pieces.
        let pieces = if interleaving { 30 } else { 40 };
        assert_eq!(shares(&mut queue, [100, 1000, 500], 500, pieces), expected);
    }
}

#[test]
fn fair_streams_get_as_many_bytes_and_weighted_ones_by_their_weight() {
    for interleaving in [false, true] {
        let mut fair = ordered(interleaving, StreamOrder::FairCapacity);
        let bytes = shares(&mut fair, [100, 1000, 700], 500, 200);
        let (least, most) = (bytes.iter().min().unwrap(), bytes.iter().max().unwrap());
        assert!(most - least <= 1000, "{bytes:?}");
        let mut weighted = ordered(interleaving, StreamOrder::WeightedFair);
        weighted.set_weight(2, NonZeroU16::new(3).unwrap());
        weighted.set_weight(3, NonZeroU16::new(6).unwrap());
        let bytes = shares(&mut weighted, [100, 1000, 700], 500, 160);
        let one = bytes.iter().sum::<usize>() / 10;
        for (got, weight) in bytes.into_iter().zip([1, 3, 6]) {
            assert!(got.abs_diff(weight * one) <= 1000, "{bytes:?}");
        }
    }
}

#[test]
fn a_stream_that_had_nothing_to_send_has_saved_up_nothing() {
    let mut queue = ordered(true, StreamOrder::FairCapacity);
    for _ in 0..100 {
        queue.push(Instant::ZERO, &[0; 100], on(1));
    }
    for _ in 0..50 {
        queue.cut(100).unwrap();
    }
    for _ in 0..50 {
        queue.push(Instant::ZERO, &[0; 100], on(2));
    }
    let next: Vec<u16> = order(&mut queue, 100).into_iter().take(10).collect();
    assert_eq!(next.iter().filter(|&&stream| stream == 2).count(), 5, "{next:?}");
}

#[test]
fn a_packet_has_one_stream_where_turns_go_by_packet() {
    for interleaving in [false, true] {
        let mut queue = ordered(interleaving, StreamOrder::RoundRobinPacket);
        for stream in [1, 2, 3] {
            for _ in 0..4 {
                queue.push(Instant::ZERO, &[0; 10], on(stream));
            }
        }
        let mut packets = Vec::new();
        while queue.peek().is_some() {
            // Room for three pieces.
            let packet: Vec<_> = (0..3).map_while(|_| queue.cut(10).map(|it| queue.get(it.message).stream)).collect();
            packets.push(packet);
            queue.end_packet();
        }
        let whole = [1, 2, 3].map(|stream| vec![stream; 3]);
        let rest = [1, 2, 3].map(|stream| vec![stream; 1]);
        assert_eq!(packets, [whole, rest].concat());
    }
}

#[test]
fn short_messages_take_room_too() {
    let mut queue = queue(true);
    for _ in 0..100 {
        queue.push(Instant::ZERO, &[1], on(0));
    }
    assert_eq!((queue.held_bytes(), queue.room(10_000), queue.room(5000)), (100, 3600, 0));
    queue.push(Instant::ZERO, &[0; 7000], on(0));
    assert_eq!(queue.room(10_000), 2900, "long ones make up for it");
}
