//! Probes that misbehave: never end, end badly, flood their streams or write what is not allowed.

use std::hint::black_box;
use std::io::{self, Read, Write};
use std::process;

use serde_json::json;

use crate::{Input, line, print_line, raw, tell};

/// Terminal escapes, a bell, a carriage return, bidirectional overrides, a zero, a line break.
const ESCAPES: &str = "\u{1b}[31mred\u{1b}[0m \u{1b}]0;title\u{7} \u{7}\rback \u{202e}desrever\u{202c} \
                       \u{2066}isolated\u{2069} \u{9b}31m nul\0 one\ntwo\n";

/// Does the probe's work and says so, if it is one of these; many never come back.
pub fn ran(probe: &str, input: &Input) -> bool {
    match probe {
        "exit" => exit(input),
        "panic" => panic!("the probe panics"),
        "trap" => core::arch::wasm32::unreachable(),
        "spin" => spin(),
        "silent" => {}
        "raw-stdout" => write_raw(input.text("text").as_bytes()),
        "raw-lines" => {
            let line = format!("{}\n", input.text("text"));
            for _ in 0..input.number("count", 1) {
                write_raw(line.as_bytes());
            }
        }
        "raw-base64" => write_base64(input.text("text")),
        "stdout-flood" => loop {
            print_line(&line(b"1", "application/json"));
        },
        "stdout-endless-line" => loop {
            write_raw(&[b'x'; 4_096]);
        },
        "stdout-huge" => {
            let bytes = usize::try_from(input.number("bytes", 256 << 20)).unwrap_or(usize::MAX);
            print_line(&line(&vec![b'x'; bytes], "application/octet-stream"));
        }
        "stderr-flood" => loop {
            eprintln!("{}", "y".repeat(4_096));
        },
        "stderr-escapes" => {
            eprint!("{ESCAPES}");
            tell(probe, &json!(null));
        }
        "no-read" => tell(probe, &json!(null)),
        "partial-read" => {
            let len = io::stdin().lock().read(&mut [0; 8]).unwrap_or(0);
            tell(probe, &json!(len));
        }
        "close-streams" => close_streams(probe),
        _ => return false,
    }
    true
}

/// Writes one output, then exits in the way that was asked for.
fn exit(input: &Input) {
    tell("exit", &json!(null));
    let code = i32::try_from(input.number("code", 0)).unwrap_or(1);
    process::exit(code);
}

fn write_raw(bytes: &[u8]) {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes).and_then(|()| stdout.flush()).expect("standard output can be written");
}

/// Writes bytes that no JSON text can name.
fn write_base64(text: &str) {
    use base64::Engine as _;
    let bytes = base64::engine::general_purpose::STANDARD.decode(text);
    write_raw(&bytes.expect("the argument is base64"));
}

/// Reads and writes after closing, and tells what that gave.
fn close_streams(probe: &str) {
    // SAFETY: takes no pointers, and nothing of std's holds what is closed.
    let closed = unsafe { (raw::fd_close(0), raw::fd_close(2), raw::fd_close(77)) };
    let read = raw::read(0, &mut [0; 8]);
    let written = raw::write(2, b"after");
    tell(probe, &json!({"closed": closed, "read": read, "written": written}));
}

fn spin() -> ! {
    let mut turns = 0_u64;
    loop {
        turns = black_box(turns.wrapping_add(1));
    }
}
