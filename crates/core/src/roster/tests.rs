use super::*;
use crate::SocketId;

/// Sends its packets, reports its events, and sets its timer when it likes.
#[derive(Debug, Default)]
struct Player {
    name: u8,
    packets: usize,
    events: Vec<u32>,
    due: Option<Instant>,
    timeouts: usize,
    late: Vec<Duration>,
}

impl Member for Player {
    type Id = Key;
    type Event = u32;

    fn handle_timeout(&mut self, _now: Instant) {
        self.timeouts += 1;
    }

    fn handle_late_wake(&mut self, _now: Instant, late: Duration) {
        self.late.push(late);
    }

    fn poll_transmit(&mut self, _now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        self.packets = self.packets.checked_sub(1)?;
        buf.push(self.name);
        Some(Transmit { route: route(), ecn: Ecn::Ect0, segment_size: None })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.due
    }

    fn poll_event(&mut self) -> Option<u32> {
        self.events.pop()
    }
}

fn route() -> Route {
    Route::new(SocketId(0), ([127, 0, 0, 1], 9).into())
}

const fn ms(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

fn player(name: u8, packets: usize) -> Player {
    Player { name, packets, ..Player::default() }
}

/// All that leaves, as an endpoint polls it.
fn sent(roster: &mut Roster<Player>) -> Vec<Vec<u8>> {
    let (mut sent, mut buf) = (Vec::new(), Vec::new());
    loop {
        match roster.poll_transmit(ms(0), &mut buf) {
            Turn::Packet(_) => sent.push(buf.clone()),
            Turn::Dry(id) => roster.set_timer(id),
            Turn::Over => return sent,
        }
    }
}

#[test]
fn members_take_turns_behind_the_answers_of_nobody() {
    let mut roster = Roster::default();
    roster.insert(player(1, 3));
    roster.insert(player(2, 1));
    roster.reply(route(), vec![9, 9]);
    assert_eq!(sent(&mut roster), [vec![9, 9], vec![1], vec![2], vec![1], vec![1]]);
    assert_eq!(sent(&mut roster), Vec::<Vec<u8>>::new());
}

#[test]
fn who_was_polled_dry_sends_again_once_it_is_awake() {
    let mut roster = Roster::default();
    let id = roster.insert(player(1, 0));
    assert!(sent(&mut roster).is_empty());
    roster.get_mut(id).unwrap().packets = 1;
    assert!(sent(&mut roster).is_empty());
    roster.wake(id);
    roster.wake(id);
    assert_eq!(sent(&mut roster), [[1]]);
}

#[test]
fn answers_that_wait_are_bounded() {
    let mut roster = Roster::<Player>::default();
    (0..1000).for_each(|_| roster.reply(route(), vec![0]));
    assert!(!roster.takes_replies());
    assert_eq!(sent(&mut roster).len(), Roster::<Player>::MAX_REPLIES);
    assert!(roster.takes_replies());
}

#[test]
fn a_name_is_not_used_again() {
    let mut roster = Roster::default();
    let old = roster.insert(player(1, 7));
    assert_eq!(roster.remove(old).map(|it| it.name), Some(1));
    let new = roster.insert(player(2, 1));
    assert_ne!(old, new);
    assert!(roster.get(old).is_none() && roster.get_mut(old).is_none() && roster.wake(old).is_none());
    assert!(roster.remove(old).is_none());
    assert_eq!((roster.len(), roster.ids().collect::<Vec<_>>()), (1, vec![new]));
    assert_eq!(sent(&mut roster), [[2]], "and what the old one had is gone");
}

#[test]
fn timers_go_off_in_order_and_once_until_they_are_set_anew() {
    let mut roster = Roster::default();
    let ids = [30, 10, 20].map(|at| roster.insert(Player { due: Some(ms(at)), ..Player::default() }));
    assert_eq!(roster.poll_timeout(), None, "before they were polled dry");
    sent(&mut roster);
    assert_eq!(roster.poll_timeout(), Some(ms(10)));
    // Their timers stay in the past, which must not go on for ever.
    roster.handle_timeout(ms(20));
    let timeouts = |roster: &Roster<Player>| ids.map(|id| roster.get(id).unwrap().timeouts);
    assert_eq!((timeouts(&roster), roster.poll_timeout()), ([0, 1, 1], Some(ms(30))));
    sent(&mut roster);
    assert_eq!(roster.poll_timeout(), Some(ms(10)));
    roster.get_mut(ids[1]).unwrap().due = Some(ms(40));
    roster.set_timer(ids[1]);
    roster.clear_timer(ids[2]);
    assert_eq!(roster.poll_timeout(), Some(ms(30)));
    roster.remove(ids[0]);
    assert_eq!(roster.poll_timeout(), Some(ms(40)));
}

#[test]
fn events_are_those_of_who_is_awake_and_outlive_it() {
    let mut roster = Roster::default();
    let one = roster.insert(Player { events: vec![2, 1], ..Player::default() });
    let two = roster.insert(Player { events: vec![3], ..player(2, 0) });
    assert_eq!(roster.poll_event(), Some((one, 1)), "before anything is sent");
    sent(&mut roster);
    roster.remove(two);
    assert_eq!([(); 3].map(|()| roster.poll_event()), [Some((one, 2)), Some((two, 3)), None]);
    roster.get_mut(one).unwrap().events.push(4);
    assert_eq!(roster.poll_event(), None);
    roster.wake(one);
    assert_eq!(roster.poll_event(), Some((one, 4)));
}

#[test]
fn only_a_timer_heard_late_says_that_the_machine_stood_still() {
    let mut roster = Roster::default();
    let id = roster.insert(Player { due: Some(ms(1000)), ..player(1, 0) });
    sent(&mut roster);
    for now in [10, 900, 1050, 1100] {
        roster.notice_late_wake(ms(now));
    }
    assert_eq!(
        roster.get(id).unwrap().late,
        [],
        "a timer that nobody works off does not make those late who ran meanwhile"
    );
    roster.notice_late_wake(ms(1500));
    assert_eq!(roster.get(id).unwrap().late, [Duration::from_millis(400)], "since we ran last");
    roster.get_mut(id).unwrap().due = None;
    roster.set_timer(id);
    roster.notice_late_wake(ms(9000));
    assert_eq!(roster.get(id).unwrap().late.len(), 1, "nothing was due");
}
