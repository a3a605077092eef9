//! (a) A sandboxed step in a loop, against the put-if-absent of the same bytes.

use std::time::Duration;

use bytes::Bytes;
use pugmark_log::layout;
use pugmark_log::object_store::path::Path;
use pugmark_log::object_store::{ObjectStoreExt as _, PutMode};
use pugmark_runtime::{Options, run};

use crate::support::{Quiet, Row, Setup, bucket, counter, runtime, timed};

/// Steps of a batch; then the puts of the same bytes.
const BATCH: u64 = 64;
const BATCHES: u64 = 16;

pub fn measure(setup: &Setup) -> Vec<Row> {
    let folder = tempfile::tempdir_in(&setup.folder).expect("a folder can be made");
    let bucket = bucket(folder.path(), true);
    let runtime = runtime();
    let (mut steps, mut puts) = (Duration::ZERO, Duration::ZERO);
    for batch in 0..=BATCHES {
        // A session of its own for each batch: the fold that grows with the log is part (b).
        let tip = runtime.block_on(bucket.start(None, [].into())).expect("started");
        let session = tip.session;
        let context = runtime.block_on(counter(setup, bucket.clone(), &tip));
        let options = Options { once: false, max_steps: Some(BATCH) };
        let (took, finished) = timed(|| runtime.block_on(run(&context, tip, options, &mut Quiet)));
        let newest = finished.expect("the counter counts").tip.version;
        let written: Vec<Bytes> = runtime.block_on(async {
            let mut written = Vec::new();
            for version in 1..=newest {
                let key = layout::snapshot(&session, version);
                let body = bucket.store().get(&key).await.expect("written").bytes().await;
                written.push(body.expect("readable"));
            }
            written
        });
        let (put, ()) = timed(|| {
            runtime.block_on(async {
                for (bytes, number) in written.into_iter().zip(1..) {
                    let key = Path::from(format!("raw/{batch}/snapshots/{number:016x}.json"));
                    let put = bucket.store().put_opts(&key, bytes.into(), PutMode::Create.into());
                    put.await.expect("put");
                }
            });
        });
        // The first batch warms both up.
        if batch > 0 {
            steps += took;
            puts += put;
        }
    }
    let count = u32::try_from(BATCH * BATCHES).expect("few");
    let what = format!("sandboxed step in a loop, against put-if-absent with fsync ({count} each)");
    vec![Row::times(what, steps / count, puts / count, "≤ 2.0")]
}
