//! What a checkpoint records of the step that made it: all that the handler could see.

use std::collections::BTreeMap;

use pugmark_log::{Digest, Snapshot, Timestamp};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::effects::Effect;
use crate::error::Error;
use crate::handler::Frame;
use crate::kept::Keeper;
use crate::sandbox;
use crate::step::{Context, Handler};

/// The persisted form; the field order is the persisted order, and `docs/storage-layout.md`
/// specifies it. Of what is not in the sandbox neither arguments nor addresses are stored: secrets
/// live there.
#[derive(Serialize)]
struct Record<'a> {
    kind: &'static str,
    handler: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    component: Option<Digest>,
    /// How many entries the handler saw, and the digest of that log.
    n: u64,
    log: Digest,
    clock: Timestamp,
    /// The version that the step began on.
    snapshot: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    args: Option<&'a [String]>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    metadata: &'a BTreeMap<String, String>,
    /// Whether lines told it where its session comes from.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    lifecycle: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    abi: Option<u32>,
    /// The version that the handler's instance was created at.
    #[serde(skip_serializing_if = "Option::is_none")]
    born: Option<u64>,
    /// What it got from outside; left out where it could ask nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    effects: Option<Vec<Effect>>,
    host: &'static str,
}

/// The record of a step on `tip`.
pub(crate) fn record(
    context: &Context,
    frame: &Frame,
    tip: &Snapshot,
    effects: Option<Vec<Effect>>,
) -> Result<Box<RawValue>, Error> {
    let component = match &context.handler {
        Handler::Component { component, .. } => Some(component.digest()),
        Handler::Process(_) | Handler::Rpc(_) | Handler::Remote(_) => None,
    };
    let born = context.keeper.as_ref().and_then(Keeper::born);
    let record = Record {
        kind: context.handler.kind(),
        handler: &frame.agent,
        component,
        n: tip.log.count(),
        log: tip.log.root(),
        clock: frame.clock,
        snapshot: frame.snapshot,
        args: component.map(|_| frame.args.as_slice()),
        metadata: &frame.metadata,
        lifecycle: context.lifecycle.is_some(),
        abi: component.map(|_| sandbox::ABI),
        born: component.map(|_| born.unwrap_or(frame.snapshot)),
        effects,
        host: env!("CARGO_PKG_VERSION"),
    };
    serde_json::value::to_raw_value(&record)
        .map_err(|source| pugmark_log::Error::Encode { source }.into())
}
