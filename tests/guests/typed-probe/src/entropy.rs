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

    use bindings::wasi::random::{insecure, insecure_seed, random};

    /// The interfaces that the preview 1 build has no other way to.
    mod bindings {
        wit_bindgen::generate!({
            inline: "
                package probe:entropy;
                world entropy {
                    import wasi:random/random@0.2.0;
                    import wasi:random/insecure@0.2.0;
                    import wasi:random/insecure-seed@0.2.0;
                }
                package wasi:random@0.2.0 {
                    interface random {
                        get-random-bytes: func(len: u64) -> list<u8>;
                        get-random-u64: func() -> u64;
                    }
                    interface insecure {
                        get-insecure-random-bytes: func(len: u64) -> list<u8>;
                        get-insecure-random-u64: func() -> u64;
                    }
                    interface insecure-seed {
                        insecure-seed: func() -> tuple<u64, u64>;
                    }
                }
            ",
            generate_all,
        });
    }

    #[link(wasm_import_module = "wasi_snapshot_preview1")]
    unsafe extern "C" {
        fn random_get(buffer: *mut u8, len: usize) -> i32;
        fn clock_time_get(id: i32, precision: u64, time: *mut u64) -> i32;
    }

    /// Random bytes, wall clock, monotonic clock, and what the random interfaces give.
    type Seen = ([u8; 16], u64, u64, Drawn);

    /// What each function of each random interface gives.
    #[derive(Clone, Copy)]
    struct Drawn {
        random: u64,
        random_bytes: [u8; 5],
        insecure: u64,
        insecure_bytes: [u8; 5],
        seed: (u64, u64),
    }

    fn drawn() -> Drawn {
        let five = |bytes: Vec<u8>| bytes.try_into().unwrap_or_default();
        Drawn {
            random: random::get_random_u64(),
            random_bytes: five(random::get_random_bytes(5)),
            insecure: insecure::get_insecure_random_u64(),
            insecure_bytes: five(insecure::get_insecure_random_bytes(5)),
            seed: insecure_seed::insecure_seed(),
        }
    }

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
        (random, wall, monotonic, drawn())
    }

    fn shown((random, wall, monotonic, drawn): Seen) -> Value {
        json!({
            "random": random,
            "wall": wall,
            "monotonic": monotonic,
            "secure": [drawn.random, drawn.random_bytes],
            "insecure": [drawn.insecure, drawn.insecure_bytes],
            "seed": drawn.seed,
        })
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
