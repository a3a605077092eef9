//! Probes of what is there but denies: files, sockets, threads, processes.

use std::fs::{self, File};
use std::net::{TcpListener, TcpStream, ToSocketAddrs, UdpSocket};
use std::{env, io, thread};

use serde_json::{Value, json};

use crate::raw;

/// What the probe saw, if it is one of these.
pub fn saw(probe: &str) -> Option<Value> {
    Some(match probe {
        "denied" => json!({"files": files(), "network": network(), "others": others()}),
        "denied-raw" => errnos(),
        _ => return None,
    })
}

fn shown<T>(result: io::Result<T>) -> Value {
    match result {
        Ok(_) => json!("allowed"),
        Err(error) => json!({
            "kind": format!("{:?}", error.kind()),
            "errno": error.raw_os_error(),
            "text": error.to_string(),
        }),
    }
}

fn files() -> Value {
    json!({
        "open /etc/passwd": shown(File::open("/etc/passwd")),
        "open .": shown(File::open(".")),
        "create x": shown(File::create("x")),
        "read_dir /": shown(fs::read_dir("/")),
        "read_dir .": shown(fs::read_dir(".")),
        "create_dir d": shown(fs::create_dir("d")),
        "remove_file x": shown(fs::remove_file("x")),
        "metadata .": shown(fs::metadata(".")),
        "rename a b": shown(fs::rename("a", "b")),
        "current_dir": shown(env::current_dir()),
        "set_current_dir /": shown(env::set_current_dir("/")),
    })
}

fn network() -> Value {
    json!({
        "tcp connect": shown(TcpStream::connect("127.0.0.1:80")),
        "tcp listen": shown(TcpListener::bind("127.0.0.1:0")),
        "udp": shown(UdpSocket::bind("127.0.0.1:0")),
        "resolve": shown("localhost:80".to_socket_addrs()),
    })
}

fn others() -> Value {
    json!({
        "thread": shown(thread::Builder::new().spawn(|| ())),
        "process": shown(std::process::Command::new("true").status()),
        "current_exe": shown(env::current_exe()),
        "available_parallelism": shown(thread::available_parallelism()),
        "home": format!("{:?}", env::var_os("HOME")),
        "tz": format!("{:?}", env::var_os("TZ")),
    })
}

/// Error numbers of calls on descriptors that are there and that are not. `sock_accept` is left out:
/// the adapter to WASI 0.2 traps on it.
fn errnos() -> Value {
    let mut table = serde_json::Map::new();
    for fd in [0, 1, 2, 3, 4, 99, -1] {
        let mut position = 0;
        // SAFETY: the pointers are valid for the calls.
        let errnos = unsafe {
            [
                raw::fd_seek(fd, 0, 1, &mut position),
                raw::fd_tell(fd, &mut position),
                raw::fd_fdstat_get(fd, &mut [0; 3]),
                raw::fd_filestat_get(fd, &mut [0; 8]),
                raw::fd_prestat_get(fd, &mut [0; 2]),
                raw::sock_shutdown(fd, 3),
            ]
        };
        table.insert(fd.to_string(), json!(errnos));
    }
    table.into()
}
