use crate::Instant;
use core::hash::Hash;
use core::time::Duration;
use std::collections::HashMap;

/// Returns which of `members`, each with its holder and when it was heard last, goes where there is
/// one too many: of the holder with most places the idlest, if the `newcomer`'s has fewer or it was
/// silent for `patience`; else the newcomer.
pub fn crowded_out<I: Copy + Ord, H: Copy + Eq + Hash>(
    now: Instant,
    members: &[(I, H, Instant)],
    newcomer: I,
    patience: Duration,
) -> I {
    let mut counts = HashMap::new();
    members.iter().for_each(|(_, holder, _)| *counts.entry(*holder).or_insert(0_usize) += 1);
    let count = |holder: &H| counts.get(holder).copied().unwrap_or_default();
    let own = members.iter().find(|(id, ..)| *id == newcomer).map_or(0, |(_, holder, _)| count(holder));
    let most = counts.values().copied().max().unwrap_or_default();
    let crowd = members.iter().filter(|(id, holder, _)| *id != newcomer && count(holder) == most);
    let idlest = crowd.min_by_key(|(id, _, heard)| (*heard, *id));
    let may_go = |heard: Instant| most > own || now.since(heard) >= patience;
    idlest.filter(|(.., heard)| may_go(*heard)).map_or(newcomer, |(id, ..)| *id)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(10);

    #[test]
    fn a_holder_with_many_places_loses_one_to_another_and_none_to_itself() {
        let at = |secs: u64| Instant::from_millis(secs * 1000);
        let mut members =
            vec![(1, 'm', at(60)), (2, 'm', at(59)), (3, 'm', at(61)), (4, 'a', at(40)), (9, 'b', at(62))];
        assert_eq!(crowded_out(at(62), &members, 9, PATIENCE), 2, "the idlest of the one with most");
        members[4].1 = 'm';
        assert_eq!(crowded_out(at(62), &members, 9, PATIENCE), 9, "it has as many as anybody");
        assert_eq!(crowded_out(at(70), &members, 9, PATIENCE), 2, "one that crashed gives way to its successor");
    }
}
