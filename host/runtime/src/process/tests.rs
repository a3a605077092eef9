use std::path::Path;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use futures::stream;
use pugmark_log::{Attributes, Digest, Draft, Timestamp};
use tokio::net::TcpStream;

use super::*;
use crate::endpoint::{Body, ServedObjects};
use crate::protocol::output::OutputErrorKind;

const SESSION: &str = "01923456-789a-7fff-bfff-ffffffffffff";
const OUTPUT: &str = r#"{"data":"eA=="}"#;

/// A store that always fails.
struct Broken;

impl ServedObjects for Broken {
    fn open<'a>(&'a self, _: &'a Digest) -> BoxFuture<'a, Result<Option<Body>, Error>> {
        std::future::ready(Err(lost())).boxed()
    }
}

fn lost() -> Error {
    pugmark_log::Error::ObjectNotFound { hash: Digest::of(b"lost") }.into()
}

fn endpoint() -> Endpoint {
    Endpoint::start(Arc::new(Broken), [7; 16]).unwrap()
}

fn frame() -> Frame {
    Frame {
        session: SESSION.parse().unwrap(),
        agent: "clerk".into(),
        metadata: [("user".into(), "\"u\"".into())].into(),
        snapshot: 4,
        clock: Timestamp::from_millis(0),
        args: Vec::new(),
    }
}

fn shell(script: &str) -> ProcessSpec {
    let argv = ["/bin/sh", "-c", script].map(OsString::from).into();
    ProcessSpec { argv, timeout_ms: 20_000, environment: Vec::new() }
}

fn line(position: u64) -> LogLine {
    let entry = Draft::push(position.to_string(), Attributes::default()).build().unwrap();
    LogLine { position, event: "push", entry }
}

async fn run(spec: &ProcessSpec, lines: u64) -> Result<Vec<Output>, ProcessStepError> {
    let lines = stream::iter((0..lines).map(|position| Ok(line(position))));
    let limits = OutputLimits::default();
    run_step(spec, &frame(), "key", None, lines, &endpoint(), &limits).await
}

async fn failure(spec: &ProcessSpec, lines: u64) -> ProcessFailure {
    match run(spec, lines).await {
        Err(ProcessStepError::Failure(failure)) => failure,
        other => panic!("{other:?}"),
    }
}

fn bodies(outputs: &[Output]) -> Vec<&[u8]> {
    outputs.iter().map(|output| &output.body[..]).collect()
}

#[tokio::test]
async fn gives_the_log_and_takes_the_outputs() {
    let script = r#"sed -n 's/.*"data":"\([^"]*\)".*/{"data":"\1"}/p'"#;
    let outputs = run(&shell(script), 3).await.unwrap();
    assert_eq!(bodies(&outputs), [b"0", b"1", b"2"]);
}

#[tokio::test]
async fn sets_the_environment() {
    let script = r#"
        test "$PUGMARK_SESSION_METADATA" = '{"user":"\"u\""}' || exit 1
        printf '{"data":"","name":"%s","metadata":{"trace":"%s"}}' \
            "$PUGMARK_SESSION_ID $PUGMARK_AGENT_ID $PUGMARK_SNAPSHOT $PUGMARK_STEP_KEY $ADDED" \
            "$TRACEPARENT,$TRACESTATE"
    "#;
    let mut spec = shell(script);
    spec.environment = vec![("ADDED".into(), "x".into()), ("PUGMARK_SNAPSHOT".into(), "9".into())];
    let trace = Some(("00-a".into(), Some("b=c".into())));
    let limits = OutputLimits::default();
    let lines = stream::empty();
    let outputs = run_step(&spec, &frame(), "k:3", trace, lines, &endpoint(), &limits).await;
    let attributes = outputs.unwrap().remove(0).attributes;
    assert_eq!(attributes.name.as_deref(), Some(&*format!("{SESSION} clerk 4 k:3 x")));
    assert_eq!(attributes.metadata["trace"], "00-a,b=c");
}

#[tokio::test]
async fn reads_while_it_writes() {
    let script = r#"
        printf '{"data":"'
        head -c 300000 /dev/zero | base64 | tr -d '\n'
        printf '"}\n'
        printf '{"data":"","name":"%s"}\n' $(wc -l)
    "#;
    let outputs = run(&shell(script), 20_000).await.unwrap();
    assert_eq!(outputs[0].body.len(), 300_000);
    assert_eq!(outputs[1].attributes.name.as_deref(), Some("20000"));
}

#[tokio::test]
async fn a_handler_need_not_read() {
    for script in [format!("exec <&-; sleep 0.2; echo '{OUTPUT}'"), format!("echo '{OUTPUT}'")] {
        assert_eq!(bodies(&run(&shell(&script), 20_000).await.unwrap()), [b"x"]);
    }
    assert!(run(&shell("exec >&-; cat >/dev/null"), 10).await.unwrap().is_empty());
}

#[tokio::test]
async fn tells_how_it_ended() {
    let failed = failure(&shell(&format!("echo '{OUTPUT}'; exit 3")), 1).await;
    assert_eq!(failed.to_string(), "the handler `/bin/sh` exited with status 3");
    let killed = failure(&shell("kill -9 $$"), 1).await;
    assert!(matches!(killed, ProcessFailure::Signalled { signal: 9, .. }));
    let malformed = failure(&shell("echo; echo hello; sleep 60"), 1).await;
    let ProcessFailure::Output { source, .. } = malformed else { panic!("{malformed:?}") };
    assert_eq!(source.line, 2);
    assert!(matches!(source.kind, OutputErrorKind::NotJson { .. }));
    let cut = failure(&shell("printf '{\"data\":'"), 1).await;
    assert!(matches!(cut, ProcessFailure::Output { .. }));
}

#[tokio::test]
async fn tells_why_it_cannot_start() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("handler");
    std::fs::write(&file, "#!/bin/sh\n").unwrap();
    let missing = directory.path().join("missing");
    for (program, hint) in [
        (file.as_os_str(), "make the file executable"),
        (missing.as_os_str(), "check the path"),
        ("no-such-program-anywhere".as_ref(), "no program of this name is in PATH"),
    ] {
        let spec = ProcessSpec { argv: vec![program.to_owned()], ..shell("") };
        let failure = failure(&spec, 1).await;
        assert!(matches!(failure, ProcessFailure::CannotStart { .. }));
        assert!(failure.hint().unwrap().starts_with(hint), "{failure:?}");
    }
    let none = ProcessSpec { argv: Vec::new(), ..shell("") };
    assert!(matches!(failure(&none, 1).await, ProcessFailure::CannotStart { .. }));
}

#[tokio::test]
async fn an_endless_line_ends_the_step() {
    let limits = OutputLimits { line_bytes: 1_000_000, ..OutputLimits::default() };
    let spec = shell("tr '\\0' x </dev/zero");
    let lines = stream::empty();
    let result = run_step(&spec, &frame(), "key", None, lines, &endpoint(), &limits).await;
    let Err(ProcessStepError::Failure(ProcessFailure::Output { source, .. })) = result else {
        panic!("{result:?}")
    };
    assert_eq!(source.kind, OutputErrorKind::LineTooLong { limit: 1_000_000 });
}

#[tokio::test]
async fn the_step_ends_with_the_handler() {
    let script = format!("sleep 30 & echo '{OUTPUT}'");
    let spec = shell(&script);
    let outputs = tokio::time::timeout(Duration::from_secs(10), run(&spec, 1)).await.unwrap();
    assert_eq!(bodies(&outputs.unwrap()), [b"x"]);
    let script = format!("echo '{OUTPUT}'; (while :; do echo; sleep 0.01; done) & exit 0");
    let spec = shell(&script);
    let outputs = tokio::time::timeout(Duration::from_secs(10), run(&spec, 1)).await.unwrap();
    assert_eq!(bodies(&outputs.unwrap()), [b"x"]);
}

/// Something that the handler starts, which leaves a file behind unless it is killed within 4 s.
fn survivor(file: &Path) -> String {
    format!("trap '' TERM; (sleep 4; touch '{}') & wait", file.display())
}

#[tokio::test]
async fn a_time_out_ends_the_whole_group() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("alive");
    let mut spec = shell(&survivor(&file));
    spec.timeout_ms = 100;
    let failure = failure(&spec, 1).await;
    assert_eq!(
        failure.to_string(),
        "the handler `/bin/sh` was still running after 100ms, and was ended with all it started"
    );
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert!(!file.exists());
}

#[tokio::test]
async fn dropping_the_step_ends_the_whole_group() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("alive");
    let spec = shell(&survivor(&file));
    assert!(tokio::time::timeout(Duration::from_millis(200), run(&spec, 1)).await.is_err());
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(!file.exists());
}

#[tokio::test]
async fn a_log_that_cannot_be_read_ends_the_step() {
    let lines = stream::iter([Ok(line(0)), Err(lost())]);
    let spec = shell("cat >/dev/null; sleep 60");
    let limits = OutputLimits::default();
    let result = run_step(&spec, &frame(), "key", None, lines, &endpoint(), &limits).await;
    assert!(matches!(result, Err(ProcessStepError::Host(Error::Log(_)))), "{result:?}");
}

#[tokio::test]
async fn a_failed_store_explains_a_failed_handler() {
    let endpoint = endpoint();
    let url = endpoint.url(&Digest::of(b"x"));
    let (authority, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let fetch = async {
        let mut stream = TcpStream::connect(authority).await.unwrap();
        let request =
            format!("GET /{path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 502"));
        Ok(line(0))
    };
    let spec = shell("cat >/dev/null; exit 1");
    let limits = OutputLimits::default();
    let lines = Box::pin(stream::once(fetch));
    let result = run_step(&spec, &frame(), "key", None, lines, &endpoint, &limits).await;
    assert!(matches!(result, Err(ProcessStepError::Host(Error::Log(_)))), "{result:?}");
}
