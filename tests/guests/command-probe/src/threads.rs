//! What Debian's wasi-libc lacks of threads, so that a program that tries to start one can be
//! linked: none can be started, as with the libc that rustup's target brings.

use std::ffi::{c_int, c_void};

/// "Try again": what that libc answers.
const EAGAIN: c_int = 6;

#[unsafe(no_mangle)]
extern "C" fn pthread_create(
    _thread: *mut c_void,
    _attributes: *const c_void,
    _start: *const c_void,
    _argument: *mut c_void,
) -> c_int {
    EAGAIN
}

#[unsafe(no_mangle)]
extern "C" fn pthread_detach(_thread: *mut c_void) -> c_int {
    0
}

#[unsafe(no_mangle)]
extern "C" fn pthread_attr_init(_attributes: *mut c_void) -> c_int {
    0
}

#[unsafe(no_mangle)]
extern "C" fn pthread_attr_setstacksize(_attributes: *mut c_void, _bytes: usize) -> c_int {
    0
}

#[unsafe(no_mangle)]
extern "C" fn pthread_attr_destroy(_attributes: *mut c_void) -> c_int {
    0
}
