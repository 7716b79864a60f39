use super::*;
use braidcast_core::NotJoined;

fn link(via: &str, remote: &str) -> Link {
    Link { via: via.parse().unwrap(), to: remote.parse().unwrap(), name: via.to_owned() }
}

fn open(links: Vec<Link>) -> Result<Links, String> {
    let mut driver = Driver::new().unwrap();
    Links::open_now(links, Carrier::Udp, &mut driver).map(|(links, _)| links).map_err(|e| e.to_string())
}

#[test]
fn what_is_not_there_is_waited_for_as_long_as_there_is_another() {
    let links = open(vec![link("nothere0", "127.0.0.1:9"), link("127.0.0.1", "127.0.0.1:9")]).unwrap();
    assert_eq!(links.missing().collect::<Vec<_>>(), [&Via::Device("nothere0".into())]);
    assert_eq!(links.routes().len(), 1);
    assert_eq!(links.name(links.routes()[0].socket), Some("127.0.0.1"));
    let error = open(vec![link("nothere0", "127.0.0.1:9"), link("nothere1", "127.0.0.1:9")]).unwrap_err();
    assert!(error.starts_with("there is no nothere0 and no nothere1; this machine has "), "{error}");
}

#[test]
fn an_address_does_not_reach_the_other_family() {
    let error = open(vec![link("127.0.0.1", "[::1]:9")]).unwrap_err();
    assert_eq!(error, "127.0.0.1 cannot reach [::1]:9: one is IPv4, the other IPv6");
}

#[test]
fn paths_are_added_and_removed_by_name() {
    let mut driver = Driver::new().unwrap();
    let (mut links, _) = Links::open(vec![link("lo", "127.0.0.1:9")], Carrier::Udp, &mut driver).unwrap();
    let added = links.add(link("127.0.0.1", "127.0.0.1:10"), &mut driver).unwrap();
    let Some(LinkChange::Joined { name, route, .. }) = added else { panic!("{added:?}") };
    assert_eq!((name.as_str(), links.routes().len()), ("127.0.0.1", 2));
    assert_eq!(links.add(link("nothere0", "127.0.0.1:9"), &mut driver).unwrap(), None);
    assert_eq!(links.missing().count(), 1);
    assert_eq!(links.remove("127.0.0.1"), Some(vec![route]));
    let gone = (links.remove("127.0.0.1"), links.remove("nothere0"), links.routes().len());
    assert_eq!(gone, (None, Some(Vec::new()), 1));
}

#[test]
fn nothing_changes_while_the_interfaces_stay() {
    let mut driver = Driver::new().unwrap();
    let (mut links, _) =
        Links::open(vec![link("127.0.0.1", "127.0.0.1:9"), link("lo", "127.0.0.1:9")], Carrier::Udp, &mut driver)
            .unwrap();
    assert_eq!(links.refresh(&mut driver).unwrap(), []);
}

#[test]
fn paths_over_one_interface_have_names_of_their_own() {
    let mut driver = Driver::new().unwrap();
    let two = vec![link("lo", "127.0.0.1:9"), link("lo", "127.0.0.2:9")];
    let (mut links, _) = Links::open(two, Carrier::Udp, &mut driver).unwrap();
    links.add(link("lo", "127.0.0.3:9"), &mut driver).unwrap();
    let names: Vec<_> = links.all.iter().map(|slot| slot.link.name.as_str()).collect();
    assert_eq!(names, ["lo", "lo 2", "lo 3"]);
    let left = links.remove("lo 2").unwrap();
    assert_eq!(left[0].remote, "127.0.0.2:9".parse().unwrap());
    links.add(link("lo", "127.0.0.4:9"), &mut driver).unwrap();
    assert_eq!(links.all.last().unwrap().link.name, "lo 2");
}

#[test]
fn what_cannot_be_opened_leaves_no_socket_behind() {
    let mut driver = Driver::new().unwrap();
    // The right to open raw sockets is not there, or the address of the second path is not: the
    // first one was opened by then.
    let native = Carrier::Ip(253);
    let far = vec![link("127.0.0.1", "127.0.0.1:9"), Link { via: Via::Any, ..link("", "[2001:db8::1]:9") }];
    _ = Links::open(far, native, &mut driver).map(|(links, _)| {
        links.routes().iter().for_each(|route| driver.unbind(route.socket));
    });
    assert_eq!(driver.sockets().count(), 0);
}

#[test]
fn names_of_sockets_are_forgotten_some_time_after_the_sockets() {
    let mut driver = Driver::new().unwrap();
    let (mut links, _) = Links::open(vec![link("lo", "127.0.0.1:9")], Carrier::Udp, &mut driver).unwrap();
    let first = links.routes()[0].socket;
    for n in 0..500 {
        let added = links.add(link("127.0.0.1", "127.0.0.1:10"), &mut driver).unwrap();
        let Some(LinkChange::Joined { route, .. }) = added else { panic!("{added:?}") };
        if n % 2 == 0 {
            links.forget(route)
        } else {
            assert_eq!(links.remove("127.0.0.1"), Some(vec![route]))
        }
        driver.unbind(route.socket);
        assert_eq!(links.name(route.socket), Some("127.0.0.1"), "it is told that it left");
    }
    assert!(links.names.len() <= Links::MOST_NAMES + 2, "{}", links.names.len());
    assert_eq!(links.name(first), Some("lo"));
}

#[test]
fn a_name_is_not_waited_for_by_who_has_an_event_loop() {
    let mut driver = Driver::new().unwrap();
    let named = Link { via: Via::Any, to: "localhost:9".parse().unwrap(), name: "home".into() };
    let (mut links, _) = Links::begin(vec![named], Carrier::Udp, &mut driver).unwrap();
    assert!(links.routes().is_empty() && links.next().is_some(), "it is asked for");
    let mut joined = Vec::new();
    while joined.is_empty() {
        std::thread::yield_now();
        joined = links.tend(&mut driver);
    }
    let [LinkChange::Joined { name, route, .. }] = &joined[..] else { panic!("{joined:?}") };
    assert!(name == "home" && route.remote.ip().is_loopback() && route.remote.port() == 9);
    let nowhere = vec![link("nothere0", "127.0.0.1:9")];
    assert!(Links::begin(nowhere, Carrier::Udp, &mut driver).is_err());
}

/// Takes so many paths, and keeps the others or not.
struct Machine {
    room: usize,
    keeps: bool,
    routes: Vec<Route>,
}

impl Dials for Machine {
    fn join(&mut self, _now: Instant, route: Route) -> Result<(), NotJoined> {
        if self.routes.len() == self.room {
            return Err(NotJoined { why: "full".into(), is_kept: self.keeps });
        }
        self.routes.push(route);
        Ok(())
    }

    fn leave(&mut self, _now: Instant, route: Route) {
        self.routes.retain(|it| *it != route);
    }
}

#[test]
fn what_is_refused_leaves_no_socket_unless_it_is_kept() {
    for keeps in [false, true] {
        let mut driver = Driver::new().unwrap();
        let (mut links, _) = Links::open(vec![link("lo", "127.0.0.1:9")], Carrier::Udp, &mut driver).unwrap();
        let mut machine = Machine { room: 1, keeps, routes: links.routes() };
        let added = links.add(link("127.0.0.1", "127.0.0.1:10"), &mut driver).unwrap();
        let told = links.carry_out(added.into_iter().collect(), &mut driver, &mut machine);
        let [refused @ LinkChange::Refused { .. }] = &told[..] else { panic!("{told:?}") };
        assert_eq!(refused.warning().unwrap(), "127.0.0.1 cannot join: full");
        let left = 1 + usize::from(keeps);
        assert_eq!((driver.sockets().count(), links.routes().len(), machine.routes.len()), (left, left, 1));
    }
}

/// A path with two ways, of which the second is refused, goes on by the first.
#[test]
fn a_way_that_is_refused_leaves_the_others_of_its_path() {
    let mut driver = Driver::new().unwrap();
    let (mut links, _) = Links::open(vec![link("lo", "127.0.0.1:9")], Carrier::Udp, &mut driver).unwrap();
    let first = links.routes();
    let mut machine = Machine { room: 1, keeps: false, routes: first.clone() };
    let beside = links.open_one(0, &mut driver, "127.0.0.2:9".parse().unwrap(), Local::Open, true).unwrap();
    let told = links.carry_out(beside.into_iter().collect(), &mut driver, &mut machine);
    assert!(matches!(told[..], [LinkChange::Refused { .. }]), "{told:?}");
    assert_eq!((links.routes(), driver.sockets().count()), (first, 1));
    let gone = links.remove("lo").unwrap();
    let gone = gone.into_iter().map(|route| LinkChange::Left { name: "lo".into(), route, beside: false }).collect();
    assert_eq!(links.carry_out(gone, &mut driver, &mut machine)[0].note().unwrap(), "lo is gone");
    assert_eq!((machine.routes.len(), driver.sockets().count()), (0, 0));
}
