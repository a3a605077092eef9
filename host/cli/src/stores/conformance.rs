//! The conformance suite of `pugmark-log` on a real store, through the clients that commands use.
//! `tests/stores` starts the stores and runs this.

use pugmark_log::conformance::run;
use url::Url;

#[test]
#[ignore = "needs a store: PUGMARK_CONFORMANCE_URL=s3://bucket/folder?endpoint=http://127.0.0.1:8333"]
fn conforms() {
    let url = std::env::var("PUGMARK_CONFORMANCE_URL").unwrap();
    let bucket = super::open(&Url::parse(&url).unwrap()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(run(&bucket)).unwrap();
}
