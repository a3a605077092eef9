//! Trace context, as W3C Trace Context has it: each step is a span, which its handler continues.
//!
//! Nothing here exports spans; whoever watches the loop is told of them.

use std::fmt;

use pugmark_log::{SessionId, Timestamp};

/// The only version of `traceparent` that is written.
const VERSION: u8 = 0;

/// Of the flags, the bit that has a trace recorded.
const SAMPLED: u8 = 1;

/// The trace that all steps of a run belong to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trace {
    id: [u8; 16],
    parent: Option<[u8; 8]>,
    flags: u8,
    state: Option<String>,
}

/// The span of one step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Span {
    /// The trace.
    pub trace: [u8; 16],
    /// The step's own span.
    pub id: [u8; 8],
    /// The caller's span; `None` at the root of a trace.
    pub parent: Option<[u8; 8]>,
    /// The trace flags of the specification.
    pub flags: u8,
    /// `tracestate`, as the caller had it.
    pub state: Option<String>,
}

/// A step that is over, for whoever exports spans.
#[derive(Clone, Debug)]
pub struct StepSpan {
    /// Where it stands in its trace.
    pub span: Span,
    /// The session.
    pub session: SessionId,
    /// The version that it began on.
    pub snapshot: u64,
    /// The handler's name.
    pub agent: String,
    /// The kind of handler, as step records name it.
    pub kind: &'static str,
    /// When it began, to the millisecond.
    pub began: Timestamp,
    /// When it ended, to the millisecond.
    pub ended: Timestamp,
    /// The version that it made, or why it made none.
    pub outcome: Result<u64, String>,
}

impl Trace {
    /// The caller's trace; `None` if `traceparent` is not of the form that the specification has.
    /// `tracestate` is handed on as it is.
    #[must_use]
    pub fn parse(traceparent: &str, tracestate: Option<&str>) -> Option<Self> {
        let mut fields = traceparent.trim().split('-');
        let [version] = bytes(fields.next()?)?;
        let id = bytes(fields.next()?)?;
        let parent = bytes(fields.next()?)?;
        let [flags] = bytes(fields.next()?)?;
        // A later version may have more fields behind these.
        let ends = version != VERSION || fields.next().is_none();
        let valid = version != 0xff && id != [0; 16] && parent != [0; 8] && ends;
        let state = tracestate.map(str::trim).filter(|state| !state.is_empty()).map(str::to_owned);
        valid.then_some(Self { id, parent: Some(parent), flags, state })
    }

    /// A new trace, from random bytes.
    #[must_use]
    pub fn begin(random: [u8; 16]) -> Self {
        Self { id: nonzero(random), parent: None, flags: SAMPLED, state: None }
    }

    /// A step's span, from random bytes.
    #[must_use]
    pub fn span(&self, random: [u8; 8]) -> Span {
        Span {
            trace: self.id,
            id: nonzero(random),
            parent: self.parent,
            flags: self.flags,
            state: self.state.clone(),
        }
    }
}

impl Span {
    /// What a handler is given as `traceparent`.
    #[must_use]
    pub fn traceparent(&self) -> String {
        self.to_string()
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (trace, id) = (hex::encode(self.trace), hex::encode(self.id));
        write!(f, "{VERSION:02x}-{trace}-{id}-{:02x}", self.flags)
    }
}

/// Lower-case hexadecimal digits, exactly as many as `N` bytes have.
fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return None;
    }
    let mut bytes = [0; N];
    hex::decode_to_slice(text, &mut bytes).ok()?;
    Some(bytes)
}

/// All zeros is no id.
fn nonzero<const N: usize>(mut random: [u8; N]) -> [u8; N] {
    if random == [0; N] {
        random[N - 1] = 1;
    }
    random
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_step_is_a_child_of_the_caller() {
        let trace = Trace::parse(PARENT, Some("a=b")).unwrap();
        let span = trace.span([0xab; 8]);
        assert_eq!(span.traceparent(), "00-4bf92f3577b34da6a3ce929d0e0e4736-abababababababab-01");
        assert_eq!(span.parent, Some([0x00, 0xf0, 0x67, 0xaa, 0x0b, 0xa9, 0x02, 0xb7]));
        assert_eq!(span.state.as_deref(), Some("a=b"));
    }

    #[test]
    fn a_new_trace_has_no_parent() {
        let span = Trace::begin([0; 16]).span([0; 8]);
        assert_eq!(span.traceparent(), "00-00000000000000000000000000000001-0000000000000001-01");
        assert_eq!((span.parent, span.state), (None, None));
    }

    #[test]
    fn refuses_what_the_specification_refuses() {
        for text in [
            "",
            "00",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x",
            "00-4bf92f3577b34da6a3ce929d0e0e47-00f067aa0ba902b7-01",
        ] {
            assert_eq!(Trace::parse(text, None), None, "{text}");
        }
        assert!(Trace::parse(&format!("cc{}-later", &PARENT[2..]), None).is_some());
        assert_eq!(Trace::parse(PARENT, Some(" ")).unwrap().span([1; 8]).state, None);
    }
}
