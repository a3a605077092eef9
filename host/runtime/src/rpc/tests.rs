use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use futures::stream;
use pugmark_log::{Attributes, Digest, Draft, Timestamp};

use super::*;
use crate::endpoint::{Body, ServedObjects};
use crate::protocol::output::OutputLimits;

/// Serves on descriptor 3. Its second argument says what it does with a step; all its outputs have
/// its process id as their name.
const SERVER: &str = r#"
import json, os, socket, sys, time
from http.server import BaseHTTPRequestHandler, HTTPServer
assert os.environ["PUGMARK_RPC_URL"] == "fd://3" and "PUGMARK_STEP_KEY" not in os.environ
mode = sys.argv[1]
class Handler(BaseHTTPRequestHandler):
    calls = 0
    def answer(self, status, text):
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())
    def do_GET(self):
        self.answer(200, "OK")
    def do_POST(self):
        Handler.calls += 1
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if mode == "crash": os._exit(7)
        if mode == "hang": time.sleep(60)
        if mode == "refuse": return self.answer(500, "no model")
        said = json.dumps({"data": "", "name": str(os.getpid()), "metadata": {
            "lines": str(len(body.splitlines())), "calls": str(Handler.calls), "path": self.path}})
        if mode == "cut":
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(said.encode())
            self.wfile.flush()
            return
        self.answer(200, said)
        if mode == "once": os._exit(0)
    def log_message(self, *_): pass
if mode == "early": sys.exit(3)
if mode == "deaf": time.sleep(60)
server = HTTPServer(("127.0.0.1", 0), Handler, bind_and_activate=False)
server.socket = socket.socket(fileno=3)
print("noise on standard output")
server.serve_forever()
"#;

struct Empty;

impl ServedObjects for Empty {
    fn open<'a>(&'a self, _: &'a Digest) -> BoxFuture<'a, Result<Option<Body>, Error>> {
        std::future::ready(Ok(None)).boxed()
    }
}

fn handler(mode: &str) -> RpcHandler {
    let argv = ["python3", "-S", "-c", SERVER, mode].map(OsString::from).into();
    RpcHandler::new(ProcessSpec { argv, timeout_ms: 20_000, environment: Vec::new() }).unwrap()
}

async fn step(handler: &RpcHandler, lines: u64) -> Result<Vec<Output>, Failure> {
    let frame = Frame {
        session: "01923456-789a-7fff-bfff-ffffffffffff".parse().unwrap(),
        agent: "clerk".into(),
        metadata: BTreeMap::new(),
        snapshot: 4,
        clock: Timestamp::from_millis(0),
        args: Vec::new(),
    };
    let lines = stream::iter((0..lines).map(|position| {
        let entry = Draft::push(position.to_string(), Attributes::default()).build()?;
        Ok(LogLine { position, event: "push", entry })
    }));
    let endpoint = Endpoint::start(Arc::new(Empty), [7; 16]).unwrap();
    let limits = OutputLimits::default();
    let head = StepHead { frame: &frame, step_key: "k:3", span: None, limits: &limits };
    match handler.step(head, lines, &endpoint).await {
        Ok(outputs) => Ok(outputs),
        Err(InvokeError::Failure(failure)) => Err(failure),
        Err(InvokeError::Host(error)) => panic!("{error:?}"),
    }
}

async fn failure(mode: &str) -> String {
    step(&handler(mode), 1).await.unwrap_err().to_string()
}

fn process_of(outputs: &[Output]) -> String {
    outputs[0].attributes.name.clone().unwrap()
}

fn is_alive(process: &str) -> bool {
    let status = std::fs::read_to_string(Path::new("/proc").join(process).join("stat"));
    status.is_ok_and(|status| !status.contains(") Z "))
}

#[tokio::test]
async fn one_process_serves_all_steps() {
    let handler = handler("serve");
    let first = step(&handler, 3).await.unwrap();
    let second = step(&handler, 20_000).await.unwrap();
    let metadata = |outputs: &[Output]| outputs[0].attributes.metadata.clone();
    assert_eq!(process_of(&first), process_of(&second));
    assert_eq!(metadata(&first)["lines"], "3");
    assert_eq!(metadata(&second)["lines"], "20000");
    assert_eq!(metadata(&second)["calls"], "2");
    assert_eq!(
        metadata(&second)["path"],
        "/?agent=clerk&session=01923456-789a-7fff-bfff-ffffffffffff&snapshot=4"
    );
    assert!(is_alive(&process_of(&first)));
    handler.shut_down().await;
    assert!(!is_alive(&process_of(&first)));
}

#[tokio::test]
async fn a_process_that_ended_between_steps_is_started_again() {
    let handler = handler("once");
    let first = step(&handler, 1).await.unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    let second = step(&handler, 1).await.unwrap();
    assert_ne!(process_of(&first), process_of(&second));
}

#[tokio::test]
async fn tells_how_a_step_failed() {
    assert_eq!(failure("crash").await, "the handler `python3` exited with status 7");
    assert_eq!(failure("refuse").await, "the handler `python3` answered with status 500: no model");
    assert_eq!(failure("cut").await, "the handler `python3` broke off before its answer was whole");
    assert_eq!(failure("early").await, "the handler `python3` exited with status 3");
}

#[tokio::test]
async fn tells_why_it_cannot_start() {
    let argv = vec!["no-such-program-anywhere".into()];
    let spec = ProcessSpec { argv, timeout_ms: 1_000, environment: Vec::new() };
    let failure = step(&RpcHandler::new(spec).unwrap(), 1).await.unwrap_err();
    assert!(failure.is_unusable(), "{failure:?}");
}

#[tokio::test]
async fn a_process_that_does_not_serve_is_ended() {
    let mut deaf = handler("deaf");
    deaf.spec.timeout_ms = 300;
    let failure = step(&deaf, 1).await.unwrap_err();
    assert_eq!(
        failure.to_string(),
        "the handler `python3` did not answer `GET /` within 300ms of its start"
    );
    assert!(failure.is_limit());
}

#[tokio::test]
async fn a_time_out_ends_the_process_and_the_next_step_has_another() {
    let mut handler = handler("hang");
    handler.spec.timeout_ms = 2_000;
    for _ in 0..2 {
        let failure = step(&handler, 1).await.unwrap_err();
        assert_eq!(
            failure.to_string(),
            "the handler `python3` was still running after 2s, and was ended with all it started"
        );
        assert!(handler.server.lock().await.is_none());
    }
}

#[tokio::test]
async fn dropping_the_handler_ends_the_process() {
    let handler = handler("serve");
    let process = process_of(&step(&handler, 1).await.unwrap());
    drop(handler);
    for _ in 0..100 {
        if !is_alive(&process) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("it lives");
}
