//! Random bytes and clocks, in instantiation, `fold` and `decide`. Only the `wasm32-wasip1` build
//! has any: the typed world itself has neither.

#[cfg(not(target_env = "p1"))]
pub use none::{at_start, look};
#[cfg(target_env = "p1")]
pub use wasi::{at_start, look};

#[cfg(not(target_env = "p1"))]
mod none {
    use serde_json::Value;

    /// There is nothing to look at.
    pub fn look() -> Value {
        Value::Null
    }

    /// There was nothing to look at.
    pub fn at_start() -> Value {
        Value::Null
    }
}

#[cfg(target_env = "p1")]
mod wasi {
    use std::sync::Mutex;

    use serde_json::{Value, json};

    #[link(wasm_import_module = "wasi_snapshot_preview1")]
    unsafe extern "C" {
        fn random_get(buffer: *mut u8, len: usize) -> i32;
        fn clock_time_get(id: i32, precision: u64, time: *mut u64) -> i32;
    }

    /// Random bytes, wall clock and monotonic clock.
    type Seen = ([u8; 16], u64, u64);

    static START: Mutex<Option<Seen>> = Mutex::new(None);

    /// The component calls this when it is instantiated.
    #[unsafe(no_mangle)]
    extern "C" fn _initialize() {
        let seen = raw();
        if let Ok(mut start) = START.lock() {
            *start = Some(seen);
        }
    }

    fn raw() -> Seen {
        let (mut random, mut wall, mut monotonic) = ([0; 16], 0, 0);
        // SAFETY: the buffers are as long as is said, and outlive the calls.
        unsafe {
            assert_eq!(random_get(random.as_mut_ptr(), random.len()), 0);
            assert_eq!(clock_time_get(0, 1, &mut wall), 0);
            assert_eq!(clock_time_get(1, 1, &mut monotonic), 0);
        }
        (random, wall, monotonic)
    }

    fn shown((random, wall, monotonic): Seen) -> Value {
        json!({"random": random, "wall": wall, "monotonic": monotonic})
    }

    /// What is to be seen now.
    pub fn look() -> Value {
        shown(raw())
    }

    /// What was seen during instantiation.
    pub fn at_start() -> Value {
        START.lock().ok().and_then(|start| *start).map_or(Value::Null, shown)
    }
}
