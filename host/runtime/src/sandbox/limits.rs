//! The bounds of one step of a sandboxed handler.
//!
//! Every bound has a default, a name on the command line and an error that names both. None of
//! them is a value that a guest can read: whoever meets one ends its step.

use super::http_limits;
pub use super::http_limits::{HttpExceeded, HttpLimits};
pub use super::meter::Meter;
use crate::protocol::duration;
use crate::protocol::output::OutputLimits;

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;
const GIB: u64 = 1024 * MIB;

/// Names that [`Limits::set`] takes.
/// and those of [`super::http_limits::NAMES`].
const NAMES: [&str; 9] = [
    "memory",
    "table",
    "output",
    "object-reads",
    "read",
    "log-lines",
    "stderr",
    "handles",
    "outputs",
];

/// What one step may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of all linear memories together. Default: 256 MiB.
    pub memory_bytes: usize,
    /// Elements of all tables together. Default: 1,000,000.
    pub table_elements: usize,
    /// Bytes of all outputs together. Default: 64 MiB.
    pub output_bytes: u64,
    /// Bytes of all object reads together. Default: 256 MiB.
    pub object_read_bytes: u64,
    /// Bytes of one read, or of one request for random bytes. Default: 16 MiB.
    pub read_bytes: u64,
    /// Lines of diagnostics. Default: 1,000.
    pub log_lines: u32,
    /// Bytes of one line of diagnostics; what is longer is cut. Default: 8 KiB.
    pub log_line_bytes: usize,
    /// Bytes written to standard error. Default: 1 MiB.
    pub stderr_bytes: u64,
    /// Resources that are open at one time. Default: 10,000.
    pub handles: usize,
    /// Outputs. Default: 10,000.
    pub outputs: usize,
    /// Wall-clock time in milliseconds, instantiation included. Default: 60,000.
    pub time_ms: u64,
    /// What it may ask by HTTP.
    pub http: HttpLimits,
}

impl Limits {
    /// The bounds of outputs, for a handler that writes them as lines.
    #[must_use]
    pub fn of_lines(&self) -> OutputLimits {
        let total_bytes = usize::try_from(self.output_bytes).unwrap_or(usize::MAX);
        OutputLimits { outputs: self.outputs, ..OutputLimits::with_total(total_bytes) }
    }

    /// Bytes that one call may carry: the outputs of a step, and with them names, metadata and the
    /// records themselves.
    #[must_use]
    pub fn call_bytes(&self) -> u64 {
        self.output_bytes.saturating_add(64 * MIB)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory_bytes: 256 << 20,
            table_elements: 1_000_000,
            output_bytes: 64 * MIB,
            object_read_bytes: 256 * MIB,
            read_bytes: 16 * MIB,
            log_lines: 1_000,
            log_line_bytes: 8 << 10,
            stderr_bytes: MIB,
            handles: 10_000,
            outputs: 10_000,
            time_ms: 60_000,
            http: HttpLimits::default(),
        }
    }
}

impl Limits {
    /// Sets one limit from its name and value on the command line: `memory` and `512MiB`,
    /// `outputs` and `1000`. Sizes take `KiB`, `MiB` and `GiB`, and are bytes without.
    ///
    /// # Errors
    /// Says which names there are, or how a value is written.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "memory" => self.memory_bytes = parse_size(value)?,
            "table" => self.table_elements = parse_count(value)?,
            "output" => self.output_bytes = parse_size(value)?,
            "object-reads" => self.object_read_bytes = parse_size(value)?,
            "read" => self.read_bytes = parse_size(value)?,
            "log-lines" => self.log_lines = parse_count(value)?,
            "stderr" => self.stderr_bytes = parse_size(value)?,
            "handles" => self.handles = parse_count(value)?,
            "outputs" => self.outputs = parse_count(value)?,
            "http-requests" => self.http.requests = parse_count(value)?,
            "http-request" => self.http.request_bytes = parse_size(value)?,
            "http-response" => self.http.response_bytes = parse_size(value)?,
            "http-head" => self.http.head_bytes = parse_size(value)?,
            "http-held" => self.http.held_bytes = parse_size(value)?,
            "http-time" => self.http.time_ms = parse_time(value)?,
            "http-connect" => self.http.connect_ms = parse_time(value)?,
            _ => {
                let names = [&NAMES[..], &http_limits::NAMES[..]].concat().join(", ");
                return Err(format!("no limit is named `{name}`; there are {names}"));
            }
        }
        Ok(())
    }
}

/// A limit that a step met. It ends the step; nothing is committed.
#[derive(thiserror::Error, Clone, Debug, PartialEq, Eq)]
pub enum Exceeded {
    /// All linear memories together.
    #[error("over the memory limit of {}; `--limit memory={}` raises it", size(.limit), twice(.limit))]
    Memory {
        /// The limit in bytes.
        limit: usize,
    },
    /// All tables together.
    #[error("over the table limit of {limit} elements; `--limit table=N` raises it")]
    Table {
        /// The limit in elements.
        limit: usize,
    },
    /// All outputs together.
    #[error("over the output limit of {} a step; `--limit output={}` raises it", size(.limit), twice(.limit))]
    Output {
        /// The limit in bytes.
        limit: u64,
    },
    /// All object reads together.
    #[error("over the object-reads limit of {} a step; `--limit object-reads={}` raises it", size(.limit), twice(.limit))]
    ObjectReads {
        /// The limit in bytes.
        limit: u64,
    },
    /// One read, or one request for random bytes.
    #[error("asked for {asked} bytes at once, over the read limit of {}; `--limit read={}` raises it", size(.limit), twice(.limit))]
    Read {
        /// The limit in bytes.
        limit: u64,
        /// Bytes that were asked for.
        asked: u64,
    },
    /// Lines of diagnostics.
    #[error("over the log-lines limit of {limit} a step; `--limit log-lines=N` raises it")]
    LogLines {
        /// The limit.
        limit: u32,
    },
    /// Standard error.
    #[error("over the stderr limit of {} a step; `--limit stderr={}` raises it", size(.limit), twice(.limit))]
    Stderr {
        /// The limit in bytes.
        limit: u64,
    },
    /// What one call carries between the guest and the host: as much as the outputs of a step, and
    /// 64 MiB.
    #[error("one call carries more than {}; `--limit output=…` raises that limit", size(.limit))]
    Call {
        /// The limit in bytes.
        limit: u64,
    },
    /// Open resources.
    #[error("over the handles limit of {limit} open at a time; `--limit handles=N` raises it")]
    Handles {
        /// The limit.
        limit: usize,
    },
    /// Number of outputs.
    #[error("over the outputs limit of {limit} a step; `--limit outputs=N` raises it")]
    Outputs {
        /// The limit.
        limit: usize,
    },
    /// Wall-clock time.
    #[error("over the time limit of {limit_ms} ms; `--timeout` raises it")]
    Time {
        /// The limit in milliseconds.
        limit_ms: u64,
    },
    /// What it asks by HTTP.
    #[error(transparent)]
    Http(#[from] HttpExceeded),
    /// The call stack.
    #[error("over the call stack limit of {}, which is fixed", size(&super::engine::WASM_STACK_BYTES))]
    Stack,
    /// Memory that the limits allow and the system does not have.
    #[error("the system has no more memory for the handler: {reason}")]
    SystemMemory {
        /// What the system said.
        reason: String,
    },
}

impl Exceeded {
    /// Whether the limit is on what an instance holds, and not on what one step does: an instance
    /// that was kept may meet it where a fresh one does not.
    #[must_use]
    pub fn is_on_instance(&self) -> bool {
        matches!(
            self,
            Self::Memory { .. }
                | Self::Table { .. }
                | Self::Handles { .. }
                | Self::Http(HttpExceeded::Held { .. })
        )
    }
}

/// A number of bytes in the largest unit that divides it.
pub(super) fn size<N: Copy + TryInto<u64>>(bytes: &N) -> String {
    let bytes: u64 = (*bytes).try_into().unwrap_or(u64::MAX);
    for (unit, name) in [(GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")] {
        if bytes >= unit && bytes.is_multiple_of(unit) {
            return format!("{}{name}", bytes / unit);
        }
    }
    bytes.to_string()
}

/// A value to try instead of `limit`.
pub(super) fn twice<N: Copy + TryInto<u64>>(limit: &N) -> String {
    let limit: u64 = (*limit).try_into().unwrap_or(u64::MAX);
    size(&limit.saturating_mul(2))
}

fn parse_size<N: TryFrom<u64>>(text: &str) -> Result<N, String> {
    let invalid = || format!("`{text}` is not a size; write 65536, 64KiB, 512MiB or 2GiB");
    let (digits, unit) = [("KiB", KIB), ("MiB", MIB), ("GiB", GIB)]
        .into_iter()
        .find_map(|(name, unit)| Some((text.strip_suffix(name)?, unit)))
        .unwrap_or((text, 1));
    let bytes = parse_number(digits).and_then(|n| n.checked_mul(unit)).ok_or_else(invalid)?;
    N::try_from(bytes).map_err(|_| invalid())
}

fn parse_count<N: TryFrom<u64>>(text: &str) -> Result<N, String> {
    parse_number(text)
        .and_then(|n| N::try_from(n).ok())
        .ok_or_else(|| format!("`{text}` is not a number this can be set to; write 1000"))
}

fn parse_time(text: &str) -> Result<u64, String> {
    match duration::parse(text) {
        Ok(time) if time.is_zero() => Err("a request needs some time".to_owned()),
        Ok(time) => Ok(u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
        Err(error) => Err(error.to_string()),
    }
}

/// Digits only: `u64::from_str` also takes a sign.
fn parse_number(digits: &str) -> Option<u64> {
    if digits.bytes().all(|b| b.is_ascii_digit()) { digits.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_each_limit_by_its_name() {
        let mut limits = Limits::default();
        for name in NAMES {
            limits.set(name, "7").unwrap();
        }
        let expected = Limits {
            memory_bytes: 7,
            table_elements: 7,
            output_bytes: 7,
            object_read_bytes: 7,
            read_bytes: 7,
            log_lines: 7,
            log_line_bytes: 8192,
            stderr_bytes: 7,
            handles: 7,
            outputs: 7,
            time_ms: 60_000,
            http: HttpLimits::default(),
        };
        assert_eq!(limits, expected);
    }

    #[test]
    fn takes_units_for_sizes_only() {
        let mut limits = Limits::default();
        limits.set("memory", "512MiB").unwrap();
        assert_eq!(limits.memory_bytes, 536_870_912);
        limits.set("output", "2GiB").unwrap();
        assert_eq!(limits.output_bytes, 2_147_483_648);
        for (name, value) in [
            ("outputs", "1KiB"),
            ("memory", "1MB"),
            ("memory", "+1"),
            ("memory", ""),
            ("memory", "99999999999GiB"),
            ("log-lines", "4294967296"),
            ("time", "1"),
        ] {
            assert!(limits.set(name, value).is_err(), "{name}={value}");
        }
    }

    #[test]
    fn sets_what_requests_may_use() {
        let mut limits = Limits::default();
        for name in http_limits::NAMES {
            let is_time = matches!(name, "http-time" | "http-connect");
            limits.set(name, if is_time { "1m30s" } else { "7" }).unwrap();
        }
        let expected = HttpLimits {
            requests: 7,
            request_bytes: 7,
            response_bytes: 7,
            head_bytes: 7,
            held_bytes: 7,
            time_ms: 90_000,
            connect_ms: 90_000,
        };
        assert_eq!(limits.http, expected);
        for (name, value) in [("http-time", "0s"), ("http-time", "9"), ("http-requests", "1KiB")] {
            assert!(limits.set(name, value).is_err(), "{name}={value}");
        }
    }

    #[test]
    fn messages_name_the_limit_and_its_flag() {
        let text = Exceeded::Memory { limit: 256 << 20 }.to_string();
        assert_eq!(text, "over the memory limit of 256MiB; `--limit memory=512MiB` raises it");
        let text = Exceeded::Read { limit: 1000, asked: 5000 }.to_string();
        assert_eq!(
            text,
            "asked for 5000 bytes at once, over the read limit of 1000; `--limit read=2000` raises it"
        );
        let text = Exceeded::Stack.to_string();
        assert_eq!(text, "over the call stack limit of 1MiB, which is fixed");
    }
}
