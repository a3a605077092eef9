//! Spans of steps, exported to where OpenTelemetry's variables say: OTLP over HTTP.
//!
//! An exporter that is slow or not there costs spans, never a step.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use opentelemetry::trace::{
    SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState,
};
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanExporter as _, SpanLinks};
use pugmark_log::Timestamp;
use pugmark_runtime::{Span, StepSpan};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::error::Error;
use crate::output::note;

/// Spans that wait to be exported; further ones are dropped.
const WAITING: usize = 1024;

/// Spans that are exported together.
const BATCH: usize = 256;

/// How long the end of a run waits for the last ones.
const FINISH_LIMIT: Duration = Duration::from_secs(10);

/// Exports spans while the run goes on.
pub struct Exporter {
    spans: mpsc::Sender<SpanData>,
    task: JoinHandle<()>,
}

impl Exporter {
    /// An exporter, if the environment says where to: `OTEL_EXPORTER_OTLP_ENDPOINT` or
    /// `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`, and the other variables of the specification.
    ///
    /// # Errors
    /// If what it says cannot be understood.
    pub fn from_environment() -> Result<Option<Self>, Error> {
        let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        let disabled = variable("OTEL_SDK_DISABLED")
            .is_some_and(|text| text.eq_ignore_ascii_case("true"))
            || variable("OTEL_TRACES_EXPORTER").as_deref() == Some("none");
        let endpoints = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];
        if disabled || endpoints.iter().all(|name| variable(name).is_none()) {
            return Ok(None);
        }
        // Fails only if there is one already: then that one serves.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let built = SpanExporter::builder().with_http().with_protocol(Protocol::HttpBinary).build();
        let exporter = built.map_err(|error| {
            let message = format!("spans cannot be exported: {error}");
            Error::invalid(message, "check the variables that begin with OTEL_EXPORTER_OTLP")
        })?;
        let mut resource = Resource::builder();
        if variable("OTEL_SERVICE_NAME").is_none() && variable("OTEL_RESOURCE_ATTRIBUTES").is_none()
        {
            resource = resource.with_service_name("pugmark");
        }
        Ok(Some(Self::start(exporter, &resource.build())))
    }

    fn start(mut exporter: SpanExporter, resource: &Resource) -> Self {
        exporter.set_resource(resource);
        let (spans, waiting) = mpsc::channel(WAITING);
        Self { spans, task: tokio::spawn(export(exporter, waiting)) }
    }

    /// Has a step's span exported, if its trace is recorded at all.
    pub fn send(&self, step: StepSpan) {
        if TraceFlags::new(step.span.flags).is_sampled() {
            // Where they wait in such numbers, their receiver does not answer.
            let _ = self.spans.try_send(data_of(step));
        }
    }

    /// Exports what waits, for a while.
    pub async fn finish(self) {
        drop(self.spans);
        let _ = tokio::time::timeout(FINISH_LIMIT, self.task).await;
    }
}

async fn export(exporter: SpanExporter, mut waiting: mpsc::Receiver<SpanData>) {
    let mut told = false;
    loop {
        let mut batch = Vec::new();
        if waiting.recv_many(&mut batch, BATCH).await == 0 {
            return;
        }
        if let Err(error) = exporter.export(batch).await
            && !told
        {
            told = true;
            note(&format!("spans were not exported: {error}"));
        }
    }
}

fn data_of(step: StepSpan) -> SpanData {
    let StepSpan { span, session, snapshot, agent, kind, began, ended, outcome } = step;
    let mut attributes = vec![
        KeyValue::new("pugmark.session", session.to_string()),
        KeyValue::new("pugmark.agent", agent),
        KeyValue::new("pugmark.snapshot", number(snapshot)),
        KeyValue::new("pugmark.handler.kind", kind),
    ];
    let status = match outcome {
        Ok(version) => {
            attributes.push(KeyValue::new("pugmark.version", number(version)));
            Status::Ok
        }
        Err(message) => Status::error(message),
    };
    let scope = InstrumentationScope::builder("pugmark").with_version(env!("CARGO_PKG_VERSION"));
    SpanData {
        span_context: context_of(&span),
        parent_span_id: span.parent.map_or(SpanId::INVALID, SpanId::from_bytes),
        parent_span_is_remote: span.parent.is_some(),
        span_kind: if kind == "component" { SpanKind::Internal } else { SpanKind::Client },
        name: "pugmark.step".into(),
        start_time: time_of(began),
        end_time: time_of(ended),
        attributes,
        dropped_attributes_count: 0,
        events: SpanEvents::default(),
        links: SpanLinks::default(),
        status,
        instrumentation_scope: scope.build(),
    }
}

fn context_of(span: &Span) -> SpanContext {
    let state = span.state.as_deref().and_then(|state| state.parse::<TraceState>().ok());
    SpanContext::new(
        TraceId::from_bytes(span.trace),
        SpanId::from_bytes(span.id),
        TraceFlags::new(span.flags),
        false,
        state.unwrap_or_default(),
    )
}

fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn time_of(timestamp: Timestamp) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(timestamp.as_millis())
}

#[cfg(test)]
mod tests {
    use pugmark_runtime::Trace;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    fn step(outcome: Result<u64, String>) -> StepSpan {
        let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        StepSpan {
            span: Trace::parse(parent, Some("a=b")).unwrap().span([0xab; 8]),
            session: "01923456-789a-7fff-bfff-ffffffffffff".parse().unwrap(),
            snapshot: 4,
            agent: "clerk".into(),
            kind: "process",
            began: Timestamp::from_millis(1_000),
            ended: Timestamp::from_millis(1_250),
            outcome,
        }
    }

    #[test]
    fn a_step_is_a_span() {
        let data = data_of(step(Ok(5)));
        let context = &data.span_context;
        assert_eq!(context.trace_id().to_string(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(context.span_id().to_string(), "abababababababab");
        assert_eq!(context.trace_state().header(), "a=b");
        assert_eq!(data.parent_span_id.to_string(), "00f067aa0ba902b7");
        let lasted = data.end_time.duration_since(data.start_time).unwrap();
        assert_eq!(lasted, Duration::from_millis(250));
        assert_eq!(data.status, Status::Ok);
        assert!(data.attributes.contains(&KeyValue::new("pugmark.version", 5)));
    }

    #[test]
    fn a_failure_says_why() {
        assert_eq!(data_of(step(Err("no".into()))).status, Status::error("no"));
    }

    #[tokio::test]
    async fn spans_arrive() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}/v1/traces", listener.local_addr().unwrap());
        let received = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            // The body ends with the scope's span, whose name is in it.
            while !contains(&request, b"pugmark.version") {
                stream.read_buf(&mut request).await.unwrap();
            }
            let answer = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
            stream.write_all(answer).await.unwrap();
            request
        });
        let _ = rustls::crypto::ring::default_provider().install_default();
        let built = SpanExporter::builder().with_http().with_endpoint(address).build().unwrap();
        let resource = Resource::builder_empty().with_service_name("pugmark").build();
        let exporter = Exporter::start(built, &resource);
        let mut unsampled = step(Ok(5));
        unsampled.span.flags = 0;
        unsampled.agent = "unseen".into();
        exporter.send(unsampled);
        exporter.send(step(Ok(5)));
        exporter.finish().await;
        let request = received.await.unwrap();
        assert!(request.starts_with(b"POST /v1/traces HTTP/1.1"));
        for part in [&[0xab; 8][..], b"pugmark.step", b"clerk", b"service.name"] {
            assert!(contains(&request, part), "{part:?}");
        }
        assert!(!contains(&request, b"unseen"));
    }

    fn contains(bytes: &[u8], part: &[u8]) -> bool {
        bytes.windows(part.len()).any(|window| window == part)
    }
}
