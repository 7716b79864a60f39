//! Answers to requests, without packets.

use super::*;
use crate::assoc::testing::{Pair, route};

/// The answer to what the peer asks for over the first path, a name and what came of it for each that is named.
fn answer(pair: &mut Pair, wanted: &[Parameter<'_>]) -> Vec<(u32, bool)> {
    let mut bytes = Vec::new();
    wanted.iter().for_each(|parameter| parameter.emit(&mut Writer::new(&mut bytes)));
    let now = pair.now;
    let answer = pair.open().reconfigure_all(now, route(0, 0), Parameters::new(&bytes));
    let parameters = Parameters::new(&answer);
    let named = parameters.iter().map(|raw| match Parameter::parse(raw.unwrap()).unwrap() {
        Parameter::ErrorCauseIndication { correlation, .. } => (correlation, false),
        Parameter::SuccessIndication { correlation } => (correlation, true),
        other => panic!("{other:?}"),
    });
    named.collect()
}

fn delete(correlation: u32, address: IpAddr) -> Parameter<'static> {
    Parameter::DeleteIp { correlation, address }
}

#[test]
fn only_what_follows_a_refusal_is_said_to_have_succeeded() {
    let mut pair = Pair::over(2);
    let (source, other) = (route(0, 0).remote.ip(), route(0, 1).remote.ip());
    assert_eq!(answer(&mut pair, &[delete(1, other)]), [], "no answer is a yes (RFC 5061 §5.1 A8)");
    assert_eq!(pair.open().paths.len(), 1);
    let add = Parameter::AddIp { correlation: 3, address: other };
    assert_eq!(answer(&mut pair, &[delete(1, other), delete(2, source), add]), [(2, false), (3, true)]);
    assert_eq!(pair.open().paths.len(), 2);
}

#[test]
fn a_request_for_thousands_of_changes_costs_no_more_than_a_few() {
    let mut pair = Pair::over(2);
    let source = route(0, 0).remote.ip();
    let most = Reconfiguration::MAX_CHANGES as u32;
    let refused = answer(&mut pair, &(0..4000).map(|n| delete(n, source)).collect::<Vec<_>>());
    assert_eq!(refused, (0..=most).map(|n| (n, false)).collect::<Vec<_>>());
    let add = |correlation: u32| {
        let [.., c, d] = correlation.to_be_bytes();
        Parameter::AddIp { correlation, address: IpAddr::from([10, 9, c, d]) }
    };
    let refused = answer(&mut pair, &(0..4000).map(add).collect::<Vec<_>>());
    assert_eq!(refused, [(most, false)]);
    assert!(pair.open().paths.len() <= pair.open().options.paths.max_paths);
}
