//! The listening socket that a process gets as file descriptor 3.

use std::fs::File;
use std::io;
use std::mem::ManuallyDrop;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};

use tokio::process::Command;
use url::Url;

/// The descriptor that the process finds the socket at, as the protocol has it.
const CHILD_DESCRIPTOR: RawFd = 3;

/// Tells the process where its socket is.
const VARIABLE: (&str, &str) = ("PUGMARK_RPC_URL", "fd://3");

/// Files that take up low descriptors until a process is started.
pub(super) struct Reserved(#[expect(dead_code, reason = "held, not used")] Vec<File>);

/// A socket that listens on a free port of 127.0.0.1, and its address.
pub(super) fn listen() -> io::Result<(TcpListener, Url)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    let url = Url::parse(&format!("http://{address}/")).map_err(io::Error::other)?;
    Ok((listener, url))
}

/// Has the command's process start with the socket at the protocol's descriptor. What is returned
/// must be held until it is started.
pub(super) fn hand_over(command: &mut Command, listener: TcpListener) -> io::Result<Reserved> {
    let reserved = Reserved(reserve()?);
    // Not at the protocol's descriptor itself: copying a descriptor onto itself would leave it to be
    // closed at the start of the program.
    let socket = rustix::io::fcntl_dupfd_cloexec(&listener, CHILD_DESCRIPTOR + 1)?;
    drop(listener);
    let before_exec = move || {
        // SAFETY: whatever this descriptor is in the new process, nothing there uses it any more
        // but the standard library for what it reports, which `reserve` keeps off it. It is not
        // closed here.
        let target = unsafe { OwnedFd::from_raw_fd(CHILD_DESCRIPTOR) };
        let mut target = ManuallyDrop::new(target);
        rustix::io::dup2(&socket, &mut target)?;
        Ok(())
    };
    // SAFETY: between fork and exec, only what is async-signal-safe may run. `dup2` is a plain
    // system call, and nothing here allocates.
    unsafe { command.pre_exec(before_exec) };
    command.env(VARIABLE.0, VARIABLE.1);
    Ok(reserved)
}

/// Takes up all free descriptors up to the protocol's. The standard library opens one in each new
/// process to report a program that cannot be started, and that one must not be overwritten.
fn reserve() -> io::Result<Vec<File>> {
    let mut held = Vec::new();
    loop {
        let file = File::open("/dev/null")?;
        if file.as_raw_fd() > CHILD_DESCRIPTOR {
            return Ok(held);
        }
        held.push(file);
    }
}
