//! What a program needs with Debian's wasi-libc: functions of threads, which it lacks and which
//! start none, as with the libc that rustup's target brings; and room for the adapter.

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

/// The adapter's page, from the allocator. That libc takes all memory that there is at its first
/// allocation for its own, and the adapter would have put the page there before.
#[unsafe(no_mangle)]
unsafe extern "C" fn cabi_realloc(
    old: *mut u8,
    old_bytes: usize,
    align: usize,
    bytes: usize,
) -> *mut u8 {
    use std::alloc::{Layout, alloc, realloc};
    let layout = |bytes| Layout::from_size_align(bytes, align).expect("the ABI's alignments");
    if old_bytes == 0 {
        unsafe { alloc(layout(bytes)) }
    } else {
        unsafe { realloc(old, layout(old_bytes), bytes) }
    }
}
