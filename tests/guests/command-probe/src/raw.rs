//! WASI preview 1 itself, under what std makes of it.

/// A buffer to write from.
#[repr(C)]
pub struct Slice {
    /// Its start.
    pub start: *const u8,
    /// Its length in bytes.
    pub len: usize,
}

/// A buffer to read into.
#[repr(C)]
pub struct SliceMut {
    /// Its start.
    pub start: *mut u8,
    /// Its length in bytes.
    pub len: usize,
}

#[link(wasm_import_module = "wasi_snapshot_preview1")]
unsafe extern "C" {
    pub fn fd_read(fd: i32, slices: *const SliceMut, count: usize, read: *mut usize) -> i32;
    pub fn fd_write(fd: i32, slices: *const Slice, count: usize, written: *mut usize) -> i32;
    pub fn fd_close(fd: i32) -> i32;
    pub fn fd_seek(fd: i32, offset: i64, whence: i32, position: *mut u64) -> i32;
    pub fn fd_tell(fd: i32, position: *mut u64) -> i32;
    pub fn fd_fdstat_get(fd: i32, stat: *mut [u64; 3]) -> i32;
    pub fn fd_filestat_get(fd: i32, stat: *mut [u64; 8]) -> i32;
    pub fn fd_prestat_get(fd: i32, stat: *mut [u32; 2]) -> i32;
    pub fn random_get(buffer: *mut u8, len: usize) -> i32;
    pub fn clock_time_get(id: i32, precision: u64, time: *mut u64) -> i32;
    pub fn clock_res_get(id: i32, resolution: *mut u64) -> i32;
    pub fn poll_oneoff(
        subscriptions: *const [u64; 6],
        events: *mut [u64; 4],
        count: usize,
        happened: *mut usize,
    ) -> i32;
    pub fn sched_yield() -> i32;
    pub fn sock_shutdown(fd: i32, how: i32) -> i32;
}

/// The first error number of one write, and how many bytes it took.
pub fn write(fd: i32, bytes: &[u8]) -> (i32, usize) {
    let slice = Slice { start: bytes.as_ptr(), len: bytes.len() };
    let mut written = 0;
    // SAFETY: the slice is as long as it says, and outlives the call.
    let errno = unsafe { fd_write(fd, &slice, 1, &mut written) };
    (errno, written)
}

/// The error number of one read, and how many bytes it gave.
pub fn read(fd: i32, buffer: &mut [u8]) -> (i32, usize) {
    let slice = SliceMut { start: buffer.as_mut_ptr(), len: buffer.len() };
    let mut read = 0;
    // SAFETY: the slice is as long as it says, and outlives the call.
    let errno = unsafe { fd_read(fd, &slice, 1, &mut read) };
    (errno, read)
}

/// Error number and time of a clock, in nanoseconds.
pub fn clock(id: i32) -> (i32, u64) {
    let mut time = 0;
    // SAFETY: the pointer is valid for the call.
    let errno = unsafe { clock_time_get(id, 1, &mut time) };
    (errno, time)
}

/// `len` random bytes.
pub fn random(len: usize) -> (i32, Vec<u8>) {
    let mut bytes = vec![0; len];
    // SAFETY: the buffer is as long as it says.
    let errno = unsafe { random_get(bytes.as_mut_ptr(), len) };
    (errno, bytes)
}
