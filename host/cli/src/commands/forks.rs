//! Which forks of a session are drawn, where there are more than anyone reads.

use std::collections::HashSet;

use pugmark_log::SessionId;

/// So many are all drawn.
const ALL_UP_TO: usize = 24;
/// Of more, this many of the newest.
const NEWEST: usize = 12;
/// And this many of the newest that have a name.
const NAMED: usize = 12;

/// The forks that are drawn, in the order given, and how many are left out. `forks` are oldest
/// first; those in `needed` are always drawn.
pub fn choose(
    forks: Vec<SessionId>,
    needed: &HashSet<SessionId>,
    is_named: impl Fn(&SessionId) -> bool,
) -> (Vec<SessionId>, usize) {
    if forks.len() <= ALL_UP_TO {
        return (forks, 0);
    }
    let count = forks.len();
    let newest = forks.iter().rev().take(NEWEST);
    let named = forks.iter().rev().filter(|id| is_named(id)).take(NAMED);
    let drawn: HashSet<SessionId> = newest.chain(named).copied().collect();
    let kept: Vec<SessionId> =
        forks.into_iter().filter(|id| drawn.contains(id) || needed.contains(id)).collect();
    let hidden = count - kept.len();
    (kept, hidden)
}

#[cfg(test)]
mod tests {
    use pugmark_log::Timestamp;

    use super::*;

    fn ids(count: u64) -> Vec<SessionId> {
        (0..count).map(|ms| SessionId::new(Timestamp::from_millis(ms), [0; 10])).collect()
    }

    #[test]
    fn draws_all_of_a_few() {
        assert_eq!(choose(ids(24), &HashSet::new(), |_| false), (ids(24), 0));
    }

    #[test]
    fn draws_the_newest_the_named_and_the_needed_of_many() {
        let forks = ids(1000);
        let needed = HashSet::from([forks[3]]);
        let (drawn, hidden) = choose(forks.clone(), &needed, |id| *id == forks[7]);
        let mut expected = vec![forks[3], forks[7]];
        expected.extend(&forks[988..]);
        assert_eq!((drawn, hidden), (expected, 986));
    }
}
