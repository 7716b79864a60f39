use super::{Disagreement, Offer, Roles};
use crate::Role;

const CLIENT: Roles = Roles::Only(Role::Client);
const SERVER: Roles = Roles::Only(Role::Server);

#[test]
fn one_role_is_taken_and_leaves_the_other() {
    let (either, client) = (Offer::new(1, Roles::Both, 192), Offer::new(9, CLIENT, 192));
    assert_eq!(either.agree(&client), Ok((Role::Server, 192)));
    assert_eq!(client.agree(&either), Ok((Role::Client, 192)));
}

#[test]
fn the_larger_tie_breaker_is_the_server() {
    let (small, large) = (Offer::new(1, Roles::Both, 192), Offer::new(2, Roles::Both, 192));
    assert_eq!(small.agree(&large), Ok((Role::Client, 192)));
    assert_eq!(large.agree(&small), Ok((Role::Server, 192)));
    assert_eq!(small.agree(&small), Err(Disagreement::Tie));
}

#[test]
fn what_does_not_go_together_says_why() {
    assert_eq!(Offer::new(1, SERVER, 192).agree(&Offer::new(2, SERVER, 192)), Err(Disagreement::Roles));
    assert_eq!(Offer::new(1, SERVER, 192).agree(&Offer::new(2, CLIENT, 0)), Err(Disagreement::NoCommonMethod));
}

#[test]
fn the_server_s_first_method_that_both_have_is_chosen() -> Result<(), super::OfferError> {
    let server = Offer::parse(&[0, 0, 0, 1, 2, 7, 192, 0])?;
    let client = Offer::parse(&[0, 0, 0, 2, 1, 0, 192])?;
    assert_eq!(server.agree(&client), Ok((Role::Server, 192)));
    assert_eq!(client.agree(&server), Ok((Role::Client, 192)));
    Ok(())
}

#[test]
fn an_offer_is_kept_as_it_came() -> Result<(), super::OfferError> {
    let value = [1, 2, 3, 4, 0xF9, 192, 0]; // Reserved bits set.
    let offer = Offer::parse(&value)?;
    assert_eq!(offer.value(), value);
    assert_eq!(offer.parameter().collect::<Vec<_>>(), [&[0x80, 6, 0, 11][..], &value].concat());
    assert!(Offer::parse(&value[..5]).is_err(), "no method");
    assert!(Offer::parse(&[0; 14]).is_err(), "too many methods");
    Ok(())
}

#[test]
fn ends_that_cannot_let_each_other_in_are_told_so_each_as_it_sees_it() {
    const SHARED: u8 = 248;
    const OWN: u8 = 249;
    const EPHEMERAL: u8 = 250;
    const WANTS_KNOWN: u8 = 251;
    const CERTIFIED: u8 = 252;
    let offer = |tie: u8, says: &[u8]| Offer::parse(&[&[0, 0, 0, tie, 3, 192], says].concat()).ok();
    for (ours, theirs, why) in [
        (&[SHARED][..], &[SHARED][..], None),
        (&[EPHEMERAL], &[EPHEMERAL], None),
        (&[EPHEMERAL], &[OWN], None),
        (&[OWN, WANTS_KNOWN], &[OWN], None),
        (&[EPHEMERAL, WANTS_KNOWN], &[OWN], None),
        (&[], &[SHARED], None), // Says nothing of itself: the handshake will tell.
        (&[SHARED], &[EPHEMERAL], Some(Disagreement::NoKeyThere)),
        (&[SHARED], &[OWN], Some(Disagreement::NoKeyThere)),
        (&[OWN, WANTS_KNOWN], &[EPHEMERAL], Some(Disagreement::UnknownThere)),
        (&[CERTIFIED], &[CERTIFIED], None),
        (&[CERTIFIED], &[EPHEMERAL], Some(Disagreement::NoCertificateThere)),
        (&[CERTIFIED], &[SHARED], Some(Disagreement::NoCertificateThere)),
    ] {
        let (Some(a), Some(b)) = (offer(1, ours), offer(2, theirs)) else { panic!("offers") };
        assert_eq!(a.agree(&b).err(), why, "{ours:?} {theirs:?}");
        assert_eq!(b.agree(&a).err(), why.map(Disagreement::mirrored), "{theirs:?} {ours:?}");
    }
    // What only says something is no method.
    let nothing = |tie| Offer::parse(&[0, 0, 0, tie, 3, SHARED]).ok();
    assert_eq!(nothing(1).zip(nothing(2)).map(|(a, b)| a.agree(&b)), Some(Err(Disagreement::NoCommonMethod)));
}
