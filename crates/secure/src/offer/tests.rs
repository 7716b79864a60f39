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
