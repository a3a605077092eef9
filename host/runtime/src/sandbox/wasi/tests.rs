//! What host functions answer, called as a guest would.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use pugmark_log::{Digest, SessionId, Timestamp};
use wasmtime::component::Resource;
use wasmtime_wasi::p2::StreamError;
use wasmtime_wasi::p2::bindings::cli::{environment, exit, stderr, stdin, stdout};
use wasmtime_wasi::p2::bindings::clocks::{monotonic_clock, wall_clock};
use wasmtime_wasi::p2::bindings::random::random;
use wasmtime_wasi::p2::bindings::sockets::{instance_network, network, tcp_create_socket};
use wasmtime_wasi::p2::bindings::sync::io::poll::{self, HostPollable as _};
use wasmtime_wasi::p2::bindings::sync::io::streams::{HostInputStream, HostOutputStream as _};

use crate::handler::{Frame, ObjectSource};
use crate::sandbox::failure::{Failure, StepError};
use crate::sandbox::imports::bindings::pugmark::handler::{objects, session};
use crate::sandbox::limits::{Exceeded, Limits};
use crate::sandbox::state::{GuestState, Phase, Setup};

const BODY: &[u8] = b"0123456789";

/// A store that has `BODY`, knows nothing of `absent` and fails for every other object.
struct Bodies;

impl ObjectSource for Bodies {
    fn size(&self, hash: &Digest) -> Result<Option<u64>, crate::Error> {
        Ok((*hash != Digest::of(b"absent")).then_some(BODY.len() as u64))
    }

    fn read(&self, hash: &Digest, at: u64, len: u64) -> Result<Option<Bytes>, crate::Error> {
        if *hash != Digest::of(BODY) {
            return Err(crate::Error::Internal { reason: "the store is down".to_owned() });
        }
        let start = usize::try_from(at).unwrap();
        Ok(Some(Bytes::from_static(&BODY[start..start + usize::try_from(len).unwrap()])))
    }
}

fn state_with(limits: Limits) -> (GuestState, Arc<Mutex<Vec<String>>>) {
    let clock = Timestamp::from_millis(1_764_515_782_007);
    let seen = Arc::<Mutex<Vec<String>>>::default();
    let sink = Arc::clone(&seen);
    let state = GuestState::new(Setup {
        outside: None,
        limits,
        frame: Frame {
            session: SessionId::new(clock, [7; 10]),
            agent: "agent".to_owned(),
            metadata: [("a".to_owned(), "1".to_owned())].into(),
            snapshot: 5,
            clock,
            args: vec!["--fast".to_owned()],
        },
        objects: Arc::new(Bodies),
        component: Digest::of(b"component"),
        secure_seed: [7; 32],
        diagnostics: Arc::new(move |_, line| sink.lock().unwrap().push(line.to_owned())),
    });
    (state, seen)
}

fn state() -> GuestState {
    let mut state = state_with(Limits::default()).0;
    state.begin(Phase::Command);
    state
}

/// Another borrow of what a guest owns.
fn again<T: 'static>(handle: &Resource<T>) -> Resource<T> {
    Resource::new_borrow(handle.rep())
}

fn failure(state: &mut GuestState, error: wasmtime::Error) -> Failure {
    match state.ended_by(error) {
        StepError::Failure(failure) => failure,
        StepError::Host(error) => panic!("{error}"),
    }
}

#[test]
fn poll_takes_what_is_ready_and_else_jumps() {
    use monotonic_clock::Host as _;
    use poll::Host as _;
    use stdin::Host as _;

    let mut state = state();
    let soon = state.subscribe_duration(1_000_000_000).unwrap();
    let late = state.subscribe_duration(5_000_000_000).unwrap();
    let input = state.get_stdin().unwrap();
    let ready = HostInputStream::subscribe(&mut state, again(&input)).unwrap();

    assert_eq!(state.poll(vec![again(&late), again(&ready), again(&soon)]).unwrap(), [1]);
    assert!(!state.ready(again(&soon)).unwrap());
    assert_eq!(state.poll(vec![again(&late), again(&soon)]).unwrap(), [1]);
    assert!(state.ready(again(&soon)).unwrap());
    state.block(again(&late)).unwrap();
    // Late was made at a microsecond, and `now` is the first look after the wait for it.
    assert_eq!(monotonic_clock::Host::now(&mut state).unwrap(), 5_000_001_000);
    assert_eq!(wall_clock::Host::now(&mut state).unwrap().seconds, 1_764_515_787);
    assert!(state.poll(Vec::new()).is_err());
}

#[test]
fn streams_have_constant_permits_and_end() {
    use stderr::Host as _;
    use stdin::Host as _;

    let (mut state, seen) = state_with(Limits::default());
    let input = state.get_stdin().unwrap();
    assert!(matches!(state.blocking_read(again(&input), 1), Err(StreamError::Closed)));

    let output = state.get_stderr().unwrap();
    assert_eq!(state.check_write(again(&output)).unwrap(), 65_536);
    state.write(again(&output), vec![b'x'; 65_536]).unwrap();
    assert_eq!(state.check_write(again(&output)).unwrap(), 65_536);
    assert!(state.write(again(&output), vec![b'x'; 65_537]).is_err());
    assert!(state.write_zeroes(again(&output), u64::MAX).is_err());
    assert!(state.blocking_write_and_flush(again(&output), vec![b'x'; 4097]).is_err());
    state.blocking_write_and_flush(again(&output), b"\nnext\n".to_vec()).unwrap();
    let lengths: Vec<usize> = seen.lock().unwrap().iter().map(String::len).collect();
    assert_eq!(lengths, [8192 + " … (65536 bytes in all)".len(), 4]);
}

#[test]
fn a_typed_handlers_standard_output_is_a_diagnostic() {
    use stdout::Host as _;

    let (mut state, seen) = state_with(Limits::default());
    let output = state.get_stdout().unwrap();
    state.write(output, b"not an output\n".to_vec()).unwrap();
    assert_eq!(*seen.lock().unwrap(), ["not an output"]);
}

#[test]
fn the_frame_is_all_there_is() {
    use environment::Host as _;
    use session::Host as _;

    let mut state = state();
    assert_eq!(state.get_arguments().unwrap(), ["agent", "--fast"]);
    assert_eq!(state.get_environment().unwrap(), []);
    assert_eq!(state.initial_cwd().unwrap(), None);
    let info = state.get().unwrap();
    assert_eq!((info.agent.as_str(), info.snapshot), ("agent", 5));
    assert_eq!(info.metadata, [("a".to_owned(), "1".to_owned())]);
    state.begin(Phase::Fold { position: 9 });
    assert_eq!(state.get().unwrap().snapshot, 0);
}

#[test]
fn an_exit_is_an_outcome() {
    use exit::Host as _;

    let mut state = state();
    let error = state.exit_with_code(7).unwrap_err();
    assert_eq!(failure(&mut state, error), Failure::Exit { code: 7 });
    let error = state.exit(Ok(())).unwrap_err();
    assert_eq!(failure(&mut state, error), Failure::Exit { code: 0 });
    let error = state.exit(Err(())).unwrap_err();
    assert_eq!(failure(&mut state, error), Failure::Exit { code: 1 });
}

#[test]
fn objects_are_read_within_their_bounds() {
    let hash = Digest::of(BODY).to_string();
    let mut state = state();
    assert_eq!(objects::Host::size(&mut state, hash.clone()).unwrap(), Ok(10));
    assert_eq!(objects::Host::read(&mut state, hash.clone(), 8, u32::MAX).unwrap().unwrap(), b"89");
    assert_eq!(objects::Host::read(&mut state, hash.clone(), 10, 1).unwrap().unwrap(), b"");
    assert_eq!(objects::Host::read(&mut state, hash.clone(), u64::MAX, 1).unwrap().unwrap(), b"");
    let absent = Err("not in this session's log".to_owned());
    assert_eq!(objects::Host::size(&mut state, Digest::of(b"absent").to_string()).unwrap(), absent);
    assert_eq!(objects::Host::size(&mut state, "no digest".to_owned()).unwrap(), absent);
    let failed =
        objects::Host::read(&mut state, Digest::of(b"other").to_string(), 0, 1).unwrap_err();
    assert!(matches!(state.ended_by(failed), StepError::Host(_)));
}

#[test]
fn limits_end_the_step() {
    use instance_network::Host as _;
    use random::Host as _;

    let limits = Limits { read_bytes: 8, object_read_bytes: 12, handles: 2, ..Limits::default() };
    let (mut state, _) = state_with(limits);
    let hash = Digest::of(BODY).to_string();
    let error = objects::Host::read(&mut state, hash.clone(), 0, 10).unwrap_err();
    let asked = |asked| Failure::Exceeded(Exceeded::Read { limit: 8, asked });
    assert_eq!(failure(&mut state, error), asked(10));
    objects::Host::read(&mut state, hash.clone(), 0, 8).unwrap().unwrap();
    let error = objects::Host::read(&mut state, hash, 0, 8).unwrap_err();
    assert_eq!(failure(&mut state, error), Exceeded::ObjectReads { limit: 12 }.into());
    let error = state.get_random_bytes(u64::MAX).unwrap_err();
    assert_eq!(failure(&mut state, error), asked(u64::MAX));

    let first = state.instance_network().unwrap();
    state.instance_network().unwrap();
    let error = state.instance_network().unwrap_err();
    assert_eq!(failure(&mut state, error), Exceeded::Handles { limit: 2 }.into());
    network::HostNetwork::drop(&mut state, first).unwrap();
    state.instance_network().unwrap();
}

#[test]
fn sockets_are_denied() {
    use tcp_create_socket::Host as _;

    let mut state = state();
    let denied = state.create_tcp_socket(network::IpAddressFamily::Ipv4).err().unwrap();
    assert_eq!(denied.downcast().unwrap(), network::ErrorCode::AccessDenied);
}
