use pugmark_log::Target;

use super::OutputErrorKind as Kind;
use super::*;
use crate::protocol::duration::DurationError;

const OWN: &str = "01923456-789a-7fff-bfff-ffffffffffff";
const OTHER: &str = "01923456-789a-7fff-bfff-fffffffffffe";

fn read(text: &str) -> Result<Vec<Output>, OutputError> {
    parse(text.as_bytes(), OutputLimits::default(), OWN.parse().unwrap())
}

fn kind(text: &str) -> Kind {
    read(text).unwrap_err().kind
}

#[test]
fn reads_what_the_sdk_writes() {
    let text = concat!(
        "\n",
        r#"{"data":"eyJhIjoxfQ==","name":"reply","content-type":"application/json","#,
        r#""schema-url":"s","content-encoding":"gzip","metadata":{"b":"2","a":"\u00e9"}}"#,
        "\r\n  \n",
        r#"{"data":"","content-type":"application/vnd.pugmark.pause+text","#,
        r#""metadata":{"duration":"60.00s"}}"#,
    );
    let outputs = read(text).unwrap();
    assert_eq!(outputs.len(), 2);
    assert_eq!(outputs[0].body, &b"{\"a\":1}"[..]);
    let attributes = &outputs[0].attributes;
    assert_eq!(attributes.name.as_deref(), Some("reply"));
    assert_eq!(attributes.content_type.as_deref(), Some("application/json"));
    assert_eq!(attributes.content_encoding.as_deref(), Some("gzip"));
    assert_eq!(attributes.schema_url.as_deref(), Some("s"));
    assert_eq!(attributes.metadata, [("a".into(), "é".into()), ("b".into(), "2".into())].into());
    assert!(outputs[1].body.is_empty());
    assert_eq!(outputs[1].attributes.metadata["duration"], "60.00s");
}

#[test]
fn tolerates_unknown_and_empty_fields() {
    let outputs = read(&format!(
        r#"{{"later":[{{"data":1}}],"data":"eA==","uri":"","name":"","metadata":null,"fork":false,"session":"{OWN}"}}"#
    ))
    .unwrap();
    assert_eq!(outputs[0].body, &b"x"[..]);
    assert_eq!(outputs[0].attributes, pugmark_log::Attributes::default());
}

#[test]
fn the_same_in_pieces_of_any_size() {
    let text = "{\"data\":\"eA==\"}\n\n{\"data\":\"eQ==\"}";
    let whole = read(text).unwrap();
    for size in 1..text.len() {
        let mut parser = Parser::new(OutputLimits::default(), OWN.parse().unwrap());
        for piece in text.as_bytes().chunks(size) {
            parser.push(piece).unwrap();
        }
        assert_eq!(parser.finish().unwrap(), whole, "{size}");
    }
}

#[test]
fn names_the_line() {
    let error = read("{\"data\":\"\"}\n\nLoading \u{1b}[1mmodel\n").unwrap_err();
    assert_eq!(error.line, 3);
    assert_eq!(
        error.to_string(),
        "line 3 of the handler's output is not JSON: expected value at byte 1, in \
         `Loading \\u{1b}[1mmodel`; diagnostics belong on standard error"
    );
}

#[test]
fn refuses_what_is_no_object() {
    for text in ["[\"eA==\"]", "1", "\"x\"", "null", "true"] {
        assert_eq!(kind(text), Kind::NotAnObject { text: excerpt(text) });
    }
    for text in ["{", "{\"data\":\"eA==\"", "{\"data\":\"eA==\"} x", "nul"] {
        assert!(matches!(kind(text), Kind::NotJson { .. }), "{text}");
    }
    assert!(matches!(kind(r#"{"data":"","data":""}"#), Kind::Malformed { .. }));
}

fn excerpt(text: &str) -> String {
    super::error::excerpt(text.as_bytes())
}

#[test]
fn exactly_one_body() {
    assert_eq!(kind("{}"), Kind::NoBody);
    assert_eq!(kind(r#"{"data":null,"uri":""}"#), Kind::NoBody);
    assert_eq!(kind(r#"{"data":"","uri":"s3://b/k"}"#), Kind::TwoBodies);
    for data in ["eA", "e===", "****", "eA==\\n"] {
        let text = format!(r#"{{"data":"{data}"}}"#);
        assert!(matches!(kind(&text), Kind::BadBase64 { .. }), "{data}");
    }
}

#[test]
fn names_the_field_of_a_wrong_type() {
    for (text, field) in [
        (r#"{"data":1}"#, "data"),
        (r#"{"uri":{}}"#, "uri"),
        (r#"{"data":"","name":7}"#, "name"),
        (r#"{"data":"","content-type":[]}"#, "content-type"),
        (r#"{"data":"","content-encoding":true}"#, "content-encoding"),
        (r#"{"data":"","schema-url":1.5}"#, "schema-url"),
        (r#"{"data":"","metadata":{"a":1}}"#, "metadata"),
        (r#"{"data":"","metadata":[]}"#, "metadata"),
        (r#"{"data":"","fork":"true"}"#, "fork"),
        (r#"{"data":"","session":1}"#, "session"),
    ] {
        assert!(matches!(kind(text), Kind::WrongType { field: f, .. } if f == field), "{text}");
    }
}

#[test]
fn a_body_to_be_fetched() {
    let outputs = read(r#"{"uri":"s3://b/k","name":"n"}"#).unwrap();
    assert_eq!(outputs[0].uri.as_deref(), Some("s3://b/k"));
    assert!(outputs[0].body.is_empty());
    let session = OWN.parse().unwrap();
    let mut sandboxed = Parser::new(OutputLimits::default(), session).without_uris();
    sandboxed.push(b"{\"data\":\"\",\"uri\":\"\"}\n").unwrap();
    let error = sandboxed.push(b"{\"uri\":\"s3://b/k\"}\n").unwrap_err();
    assert_eq!(error, OutputError { line: 2, kind: Kind::UriInSandbox });
}

#[test]
fn an_output_goes_to_one_place() {
    let target = |text: &str| read(text).unwrap().remove(0).target;
    assert_eq!(target(r#"{"data":"","fork":true}"#), Some(Target::Fork));
    let other = Some(Target::Session(OTHER.parse().unwrap()));
    assert_eq!(target(&format!(r#"{{"data":"","session":"{OTHER}"}}"#)), other);
    let own_fork = format!(r#"{{"data":"","fork":true,"session":"{OWN}"}}"#);
    assert_eq!(target(&own_fork), Some(Target::Fork));
    let both = format!(r#"{{"data":"","fork":true,"session":"{OTHER}"}}"#);
    assert_eq!(kind(&both), Kind::TwoTargets);
    assert_eq!(kind(r#"{"data":"","session":"x"}"#), Kind::BadSession { text: "x".into() });
    for target in [r#""fork":true"#.to_owned(), format!(r#""session":"{OTHER}""#)] {
        let pause = format!(
            r#"{{"data":"","content-type":"application/vnd.pugmark.pause+text",{target}}}"#
        );
        assert_eq!(kind(&pause), Kind::PauseElsewhere);
    }
}

#[test]
fn a_sleep_needs_a_duration() {
    let pause = |duration: &str| {
        format!(
            r#"{{"data":"","content-type":"application/vnd.pugmark.pause+text","metadata":{{"duration":"{duration}"}}}}"#
        )
    };
    assert_eq!(read(&pause("1h2m3.5s")).unwrap().len(), 1);
    for (text, reason) in [
        ("infs", DurationError::Syntax),
        ("", DurationError::Syntax),
        ("-1.00s", DurationError::Negative),
        ("1000000000000.00s", DurationError::TooLong),
    ] {
        assert_eq!(kind(&pause(text)), Kind::BadDuration { text: text.into(), reason });
    }
    assert!(read(r#"{"data":"","metadata":{"duration":"soon"}}"#).is_ok());
}

#[test]
fn stops_before_memory_grows() {
    let limits = OutputLimits { line_bytes: 100, total_bytes: 10, outputs: 3 };
    let session = OWN.parse().unwrap();
    let failure = |text: &str| parse(text.as_bytes(), limits, session).unwrap_err();

    let mut parser = Parser::new(limits, session);
    parser.push(&[b'x'; 100]).unwrap();
    let error = parser.push(b"x").unwrap_err();
    assert_eq!(error, OutputError { line: 1, kind: Kind::LineTooLong { limit: 100 } });
    assert_eq!(parser.partial.len(), 100);
    let long = format!("{{\"data\":\"\"}}\n{}\n", "x".repeat(101));
    assert_eq!(failure(&long), OutputError { line: 2, kind: Kind::LineTooLong { limit: 100 } });

    let ten = "{\"data\":\"MDEyMzQ1Njc4OQ==\"}\n";
    assert_eq!(parse(ten.as_bytes(), limits, session).unwrap().len(), 1);
    let error = failure(&format!("{ten}{{\"data\":\"eA==\"}}"));
    assert_eq!(error, OutputError { line: 2, kind: Kind::TotalTooLong { limit: 10 } });
    let error = failure("{\"data\":\"\",\"metadata\":{\"abcdef\":\"ghijk\"}}");
    assert_eq!(error.kind, Kind::TotalTooLong { limit: 10 });
    let error = failure("{\"data\":\"MDEyMzQ1Njc4OUE=\"}");
    assert_eq!(error.kind, Kind::TotalTooLong { limit: 10 });

    let error = failure(&"{\"data\":\"\"}\n".repeat(4));
    assert_eq!(error, OutputError { line: 4, kind: Kind::TooMany { limit: 3 } });
}

#[test]
fn default_limits() {
    let limits = OutputLimits::default();
    assert_eq!(limits.total_bytes, 67_108_864);
    assert_eq!(limits.line_bytes, 89_544_024);
    assert_eq!(limits.outputs, 10_000);
}
