//! (c) A fork at 10 events and at 100,000.

use crate::support::{Row, Setup, bucket, event, median, runtime, session_of, timed};

const FORKS: usize = 200;

pub fn measure(setup: &Setup) -> Vec<Row> {
    let folder = tempfile::tempdir_in(&setup.folder).expect("a folder can be made");
    let runtime = runtime();
    let filling = bucket(folder.path(), false);
    let short = runtime.block_on(session_of(&filling, 10));
    let long = runtime.block_on(session_of(&filling, 100_000));
    let bucket = bucket(folder.path(), true);
    let (mut at_short, mut at_long) = (Vec::new(), Vec::new());
    for number in 0..FORKS {
        let seed = [event(number as u64)];
        for (parent, times) in [(&short, &mut at_short), (&long, &mut at_long)] {
            let fork = async {
                let tip = bucket.tip(&parent.session, Some(parent.version)).await.expect("there");
                bucket.fork(&tip, &seed).await.expect("forked")
            };
            times.push(timed(|| runtime.block_on(fork)).0);
        }
    }
    let what = format!("fork at 100,000 events, against at 10 (median of {FORKS})");
    vec![Row::times(what, median(at_long), median(at_short), "≤ 1.5")]
}
