//! Steps of a handler of the typed world: `fold` for every entry, then `decide`.

use std::collections::BTreeMap;
use std::time::Duration;

use pugmark_log::{Attributes, PAUSE_CONTENT_TYPE, SessionId, Target};
use wasmtime::Store;
use wasmtime::component::InstancePre;

use super::failure::{Failure, StepError};
pub(super) use super::imports::bindings::Handler as TypedHandler;
use super::imports::bindings::HandlerPre;
use super::imports::bindings::pugmark::handler::types;
use super::limits::{Exceeded, Limits};
use super::state::{GuestState, Phase, bound};
use crate::handler::{LogLine, LogSource, Output};
use crate::protocol::duration;

/// A component of the typed world, ready to be instantiated.
pub struct TypedPre(HandlerPre<GuestState>);

impl TypedPre {
    /// Looks up the exports of a linked component.
    ///
    /// # Errors
    /// If `pugmark:handler/step` is not among them, or of other types.
    pub fn new(pre: InstancePre<GuestState>) -> wasmtime::Result<Self> {
        HandlerPre::new(pre).map(Self)
    }

    /// One step in a store that is fresh: what the handler wants appended.
    ///
    /// # Errors
    /// How the handler failed, or what failed on the host's side.
    pub fn run(
        &self,
        store: &mut Store<GuestState>,
        lines: &mut dyn LogSource,
    ) -> Result<Vec<Output>, StepError> {
        let handler = self.instantiate(store)?;
        step(&handler, store, lines)
    }

    /// Instantiates the component in a store that is fresh.
    ///
    /// # Errors
    /// How the handler failed.
    pub(super) fn instantiate(
        &self,
        store: &mut Store<GuestState>,
    ) -> Result<TypedHandler, StepError> {
        bound(store);
        store.data_mut().begin(Phase::Instantiate);
        let handler = self.0.instantiate(&mut *store);
        store.data_mut().log_lines.finish();
        handler.map_err(|error| ended_by(store, error))
    }
}

/// Has an instance take `lines` into its state and decide: what the handler wants appended.
///
/// # Errors
/// How the handler failed, or what failed on the host's side. Its state is undefined then.
pub(super) fn step(
    handler: &TypedHandler,
    store: &mut Store<GuestState>,
    lines: &mut dyn LogSource,
) -> Result<Vec<Output>, StepError> {
    let decided = decide(handler, store, lines);
    store.data_mut().log_lines.finish();
    let state = store.data();
    outputs(decided?, state.frame.session, &state.limits)
}

fn decide(
    handler: &TypedHandler,
    store: &mut Store<GuestState>,
    lines: &mut dyn LogSource,
) -> Result<types::Decision, StepError> {
    let step = handler.pugmark_handler_step();
    while let Some(line) = lines.next_line()? {
        store.data_mut().begin(Phase::Fold { position: line.position });
        let folded = step.call_fold(&mut *store, &entry(&line));
        folded.map_err(|error| ended_by(store, error))?.map_err(refused)?;
    }
    store.data_mut().begin(Phase::Decide);
    let decided = step.call_decide(&mut *store).map_err(|error| ended_by(store, error))?;
    decided.map_err(refused)
}

fn ended_by(store: &mut Store<GuestState>, error: wasmtime::Error) -> StepError {
    store.data_mut().ended_by(error)
}

fn refused(message: String) -> StepError {
    Failure::Refused { message }.into()
}

fn entry(line: &LogLine) -> types::Entry {
    let attributes = line.entry.attributes().clone();
    types::Entry {
        position: line.position,
        event: line.event.to_owned(),
        hash: line.entry.hash().to_string(),
        size: line.entry.size(),
        name: attributes.name,
        content_type: attributes.content_type,
        content_encoding: attributes.content_encoding,
        schema_url: attributes.schema_url,
        metadata: attributes.metadata.into_iter().collect(),
        data: line.entry.data().map(|data| data.to_vec()),
        extra: Vec::new(),
    }
}

/// A decision as outputs: a pause or a sleep is the last of them.
fn outputs(
    decision: types::Decision,
    own: SessionId,
    limits: &Limits,
) -> Result<Vec<Output>, StepError> {
    let count = decision.outputs.len();
    let unusable = |line: usize, message: String| Failure::Output { line, message };
    if let Some((name, _)) = decision.extra.first() {
        return Err(unusable(count, unknown(name)).into());
    }
    let mut outputs = Vec::with_capacity(count + 1);
    for (output, line) in decision.outputs.into_iter().zip(1..) {
        outputs.push(self::output(output, own).map_err(|message| unusable(line, message))?);
    }
    let pause = match decision.next {
        types::Next::Continue => None,
        types::Next::Pause(reason) => Some(pause(reason, None)),
        types::Next::Sleep(nap) => {
            let wait = Duration::from_millis(nap.duration_ms);
            if wait > duration::MAX {
                let message = duration::DurationError::TooLong.to_string();
                return Err(unusable(count + 1, message).into());
            }
            Some(pause(nap.reason, Some(wait)))
        }
    };
    outputs.extend(pause);
    check(&outputs, limits)?;
    Ok(outputs)
}

fn output(output: types::Output, own: SessionId) -> Result<Output, String> {
    let target = target(&output.extra, own)?;
    if output.content_type.as_deref() == Some(PAUSE_CONTENT_TYPE) {
        return Err("a typed handler pauses by what its decision says comes next".to_owned());
    }
    let mut metadata = BTreeMap::new();
    for (name, value) in output.metadata {
        if metadata.contains_key(&name) {
            return Err(format!("its metadata has `{name}` twice"));
        }
        metadata.insert(name, value);
    }
    let attributes = Attributes {
        name: output.name,
        content_type: output.content_type,
        content_encoding: output.content_encoding,
        schema_url: output.schema_url,
        metadata,
    };
    Ok(Output { body: output.data.into(), attributes, target, ..Output::default() })
}

fn pause(reason: String, wait: Option<Duration>) -> Output {
    let wait = wait.map(|wait| ("duration".to_owned(), duration::format(wait)));
    let attributes = Attributes {
        content_type: Some(PAUSE_CONTENT_TYPE.to_owned()),
        metadata: wait.into_iter().collect(),
        ..Attributes::default()
    };
    Output { body: reason.into(), attributes, ..Output::default() }
}

/// Where an output goes, if not into the handler's own session.
fn target(extra: &[(String, String)], own: SessionId) -> Result<Option<Target>, String> {
    let mut target = None;
    for (name, value) in extra {
        let said = match (name.as_str(), value.as_str()) {
            ("fork", "true") => Target::Fork,
            ("fork", _) => return Err("`fork` is not `true`".to_owned()),
            ("session", id) => match id.parse() {
                Ok(session) if session == own => continue,
                Ok(session) => Target::Session(session),
                Err(_) => return Err("`session` is not the id of a session".to_owned()),
            },
            _ => return Err(unknown(name)),
        };
        if target.replace(said).is_some() {
            return Err("it goes to more than one place".to_owned());
        }
    }
    Ok(target)
}

fn unknown(name: &str) -> String {
    format!("`{name}` is not known to this version of pugmark")
}

fn check(outputs: &[Output], limits: &Limits) -> Result<(), Exceeded> {
    if outputs.len() > limits.outputs {
        return Err(Exceeded::Outputs { limit: limits.outputs });
    }
    let bytes: usize = outputs.iter().map(len).sum();
    let limit = limits.output_bytes;
    if bytes as u64 > limit { Err(Exceeded::Output { limit }) } else { Ok(()) }
}

/// The bytes of a body and all that describes it.
fn len(output: &Output) -> usize {
    let Attributes { name, content_type, content_encoding, schema_url, metadata } =
        &output.attributes;
    let texts = [name, content_type, content_encoding, schema_url];
    let described: usize = texts.into_iter().flatten().map(String::len).sum();
    let metadata: usize = metadata.iter().map(|(name, value)| name.len() + value.len()).sum();
    output.body.len() + described + metadata
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(data: &[u8]) -> types::Output {
        types::Output {
            data: data.to_vec(),
            name: Some("reply".into()),
            content_type: None,
            content_encoding: None,
            schema_url: None,
            metadata: vec![("b".into(), "2".into()), ("a".into(), "1".into())],
            extra: Vec::new(),
        }
    }

    const OWN: &str = "01923456-789a-7fff-bfff-ffffffffffff";

    fn decided(said: Vec<types::Output>, next: types::Next) -> Result<Vec<Output>, Failure> {
        let decision = types::Decision { outputs: said, next, extra: Vec::new() };
        let limits = Limits { outputs: 2, output_bytes: 64, ..Limits::default() };
        outputs(decision, OWN.parse().unwrap(), &limits).map_err(|error| match error {
            StepError::Failure(failure) => failure,
            StepError::Host(error) => panic!("{error}"),
        })
    }

    #[test]
    fn a_pause_comes_last() {
        let made = decided(vec![said(b"hi")], types::Next::Pause("done".into())).unwrap();
        assert_eq!(made.len(), 2);
        assert_eq!(made[0].body, "hi");
        assert_eq!(made[0].attributes.name.as_deref(), Some("reply"));
        assert_eq!(made[0].attributes.metadata["a"], "1");
        assert_eq!(made[1].body, "done");
        assert_eq!(made[1].attributes.content_type.as_deref(), Some(PAUSE_CONTENT_TYPE));
        assert_eq!(made[1].attributes.metadata, BTreeMap::new());
    }

    #[test]
    fn an_output_is_no_pause() {
        let pause = types::Output { content_type: Some(PAUSE_CONTENT_TYPE.into()), ..said(b"") };
        let failure = decided(vec![said(b""), pause], types::Next::Continue).unwrap_err();
        assert!(matches!(failure, Failure::Output { line: 2, .. }));
    }

    #[test]
    fn a_sleep_says_how_long() {
        let nap = |duration_ms| types::Next::Sleep(types::Nap { duration_ms, reason: "z".into() });
        let made = decided(Vec::new(), nap(90_500)).unwrap();
        assert_eq!(made[0].attributes.metadata["duration"], "1m30.5s");
        let failure = decided(vec![said(b"")], nap(u64::MAX)).unwrap_err();
        assert!(matches!(failure, Failure::Output { line: 2, .. }));
    }

    #[test]
    fn what_is_not_understood_fails_the_step() {
        let twice = types::Output {
            metadata: vec![("a".into(), "1".into()), ("a".into(), "1".into())],
            ..said(b"")
        };
        let message = "its metadata has `a` twice".to_owned();
        let failure = decided(vec![said(b""), twice], types::Next::Continue).unwrap_err();
        assert_eq!(failure, Failure::Output { line: 2, message });
        let extra = types::Output { extra: vec![("later".into(), "1".into())], ..said(b"") };
        let message = "`later` is not known to this version of pugmark".to_owned();
        let failure = decided(vec![extra], types::Next::Continue).unwrap_err();
        assert_eq!(failure, Failure::Output { line: 1, message });
    }

    #[test]
    fn outputs_go_elsewhere() {
        let other = OWN.replace("fff-b", "ffe-b");
        let to = |extra: &[(&str, &str)]| {
            let extra = extra.iter().map(|(name, value)| ((*name).into(), (*value).into()));
            let output = types::Output { extra: extra.collect(), ..said(b"") };
            decided(vec![output], types::Next::Continue).map(|outputs| outputs[0].target)
        };
        assert_eq!(to(&[("fork", "true")]), Ok(Some(Target::Fork)));
        let session = Target::Session(other.parse().unwrap());
        assert_eq!(to(&[("session", &other)]), Ok(Some(session)));
        assert_eq!(to(&[("session", OWN)]), Ok(None));
        for refused in
            [&[("fork", "1")][..], &[("session", "x")], &[("fork", "true"), ("session", &other)]]
        {
            assert!(matches!(to(refused), Err(Failure::Output { line: 1, .. })));
        }
    }

    #[test]
    fn a_step_has_bounds() {
        let failure = decided(vec![said(b""), said(b"")], types::Next::Pause(String::new()));
        assert_eq!(failure, Err(Exceeded::Outputs { limit: 2 }.into()));
        let failure = decided(vec![said(&[0; 56])], types::Next::Continue);
        assert_eq!(failure, Err(Exceeded::Output { limit: 64 }.into()));
        assert!(decided(vec![said(&[0; 55])], types::Next::Continue).is_ok());
    }
}
