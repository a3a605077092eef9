//! What the probes do.

use serde_json::{Value, json};

use crate::ask;
use crate::pugmark::handler::log::{Level, log};
use crate::wasi::clocks::monotonic_clock;
use crate::wasi::http::types::{Fields, HeaderError, Method, OutgoingBody, OutgoingRequest};
use crate::wasi::io::poll::poll;
use crate::wasi::random::random;

/// What the probe saw.
pub fn saw(name: &str, arguments: &Value, entries: u64) -> Result<Value, String> {
    Ok(match name {
        "get" => get(arguments),
        "twice" => json!([get(arguments), get(&json!({"url": arguments["then"]}))]),
        "entropy" => entropy(arguments, entries),
        "concurrent" => concurrent(arguments),
        "timers" => timers(arguments),
        "pieces" => pieces(arguments),
        "headers" => headers(arguments),
        "syntax" => syntax(),
        "misuse" => misuse(arguments),
        "wait" => wait(arguments),
        "many" => many(arguments),
        "hold" => hold(arguments),
        "follow" => follow(arguments),
        // More than a pipe that nobody reads takes.
        "told" => {
            let answer = get(arguments);
            log(Level::Info, &"x".repeat(8000));
            answer
        }
        "fail" => {
            get(arguments);
            return Err("told so".to_owned());
        }
        "spin" => {
            get(arguments);
            loop {
                std::hint::spin_loop();
            }
        }
        name => return Err(format!("no such probe: {name:?}")),
    })
}

fn url(arguments: &Value) -> &str {
    arguments["url"].as_str().unwrap_or_default()
}

/// A request with the arguments' `method`, `headers` and `body`.
pub fn get(arguments: &Value) -> Value {
    let method = arguments["method"].as_str().unwrap_or("GET");
    let headers: Vec<(String, Vec<u8>)> = arguments["headers"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().into()))
        .collect();
    let body = match arguments["size"].as_u64() {
        Some(size) => "x".repeat(size as usize),
        None => arguments["body"].as_str().unwrap_or_default().to_owned(),
    };
    let sent = ask::request(method, url(arguments), &headers)
        .and_then(|request| ask::send(request, body.as_bytes()));
    match sent {
        Ok(future) => ask::answer(&future),
        Err(error) => json!(error),
    }
}

/// A request that is made of all that could differ from one attempt to the next.
fn entropy(arguments: &Value, entries: u64) -> Value {
    let first = get(&json!({"url": url(arguments), "method": "POST", "body": "first"}));
    let body = format!("{} {} {entries}", monotonic_clock::now(), random::get_random_u64());
    let second = get(&json!({"url": url(arguments), "method": "POST", "body": body}));
    json!([first, second])
}

/// Two requests at once; which of them poll finds ready, and what they came to.
fn concurrent(arguments: &Value) -> Value {
    let send = |key: &str| {
        let request = ask::request("GET", arguments[key].as_str().unwrap_or_default(), &[]);
        ask::send(request.expect("a request"), b"").expect("it is sent")
    };
    let (slow, fast) = (send("url"), send("then"));
    let (first, second) = (slow.subscribe(), fast.subscribe());
    let ready = poll(&[&first, &second]);
    let again = poll(&[&second, &first]);
    let elapsed_ns = monotonic_clock::now();
    let again_ns = monotonic_clock::now();
    drop((first, second));
    json!([ready, again, again_ns - elapsed_ns, ask::answer(&fast), ask::answer(&slow)])
}

/// A slow request, and timers of one and five seconds: which of them poll finds ready.
fn timers(arguments: &Value) -> Value {
    let request = ask::request("GET", url(arguments), &[]).expect("a request");
    let before = monotonic_clock::now();
    let short = monotonic_clock::subscribe_duration(1_000_000_000);
    let long = monotonic_clock::subscribe_duration(5_000_000_000);
    let future = ask::send(request, b"").expect("it is sent");
    let answered = future.subscribe();
    let ready = poll(&[&short, &answered, &long]);
    let later = poll(&[&long, &short]);
    json!([ready, later, monotonic_clock::now() - before])
}

/// How often an answer was not ready, and in which pieces its body came.
fn pieces(arguments: &Value) -> Value {
    let request = ask::request("GET", url(arguments), &[]).expect("a request");
    let future = ask::send(request, b"").expect("it is sent");
    let mut not_ready = 0;
    let response = loop {
        match future.get() {
            Some(settled) => break settled.expect("it was not taken").expect("a response"),
            None => not_ready += 1,
        }
    };
    let (body, pieces) = ask::body(&response);
    json!([not_ready, pieces, body.len(), future.get().is_some_and(|taken| taken.is_err())])
}

/// Which header fields can be set, and what becomes of fields.
fn headers(arguments: &Value) -> Value {
    let fields = Fields::new();
    let names = [
        "host",
        "Connection",
        "Transfer-Encoding",
        "Keep-Alive",
        "Upgrade",
        "TE",
        "Expect",
        "Trailer",
        "Proxy-Authorization",
        "a b",
        "",
        "x\r\ny",
        "X-Ok",
        "Authorization",
    ];
    let set: Vec<String> = names.iter().map(|name| told(fields.append(name, b"v"))).collect();
    let value = told(fields.append("x", b"a\r\nb: c"));
    let request = OutgoingRequest::new(fields.clone());
    let fixed = told(request.headers().append("x", b"y"));
    json!([set, value, fields.has("x-ok"), fields.get("X-OK").len(), fixed, get(arguments)])
}

fn told(changed: Result<(), HeaderError>) -> String {
    changed.map_or_else(|error| format!("{error:?}"), |()| "ok".to_owned())
}

/// What can be a place, a path and a method.
fn syntax() -> Value {
    let request = OutgoingRequest::new(Fields::new());
    let authorities = ["a.example", "u@a.example", "a.example/x", "127.1", "[::1]:80", "a b", ""];
    let paths = ["/", "http://b.example/", "//b.example/", "/a\r\nHost: b", "*"];
    let authority = |text: &&str| request.set_authority(Some(text)).is_ok();
    let path = |text: &&str| request.set_path_with_query(Some(text)).is_ok();
    let method = |name: &&str| request.set_method(&Method::Other((*name).to_owned())).is_ok();
    let authorities: Vec<bool> = authorities.iter().map(authority).collect();
    let paths: Vec<bool> = paths.iter().map(path).collect();
    let methods: Vec<bool> = ["PROPFIND", "CONNECT", "A B"].iter().map(method).collect();
    json!([authorities, paths, methods])
}

/// Bodies that are dropped, taken twice, or of another length than is said.
fn misuse(arguments: &Value) -> Value {
    let request = || ask::request("POST", url(arguments), &[]).expect("a request");
    let abandoned = request();
    let body = abandoned.body().expect("a body");
    let future = crate::wasi::http::outgoing_handler::handle(abandoned, None).expect("it is taken");
    let early = future.get().is_none();
    drop(body);
    let dropped = ask::answer(&future);
    let twice = request();
    let body = twice.body().expect("a body");
    let second = twice.body().is_err();
    let stream = body.write().expect("a stream");
    let again = body.write().is_err();
    drop(OutgoingBody::finish(body, None));
    let late = format!("{:?}", stream.write(b"late").map_err(|_| "closed"));
    let says = [("content-length".to_owned(), b"7".to_vec())];
    let lies = ask::request("POST", url(arguments), &says).expect("a request");
    let lied = ask::answer(&ask::send(lies, b"four").expect("it is sent"));
    json!([early, dropped, second, again, late, lied])
}

/// Waits for an answer without finishing the request.
fn wait(arguments: &Value) -> Value {
    let request = ask::request("POST", url(arguments), &[]).expect("a request");
    let body = request.body().expect("a body");
    let future = crate::wasi::http::outgoing_handler::handle(request, None).expect("it is taken");
    future.subscribe().block();
    drop(body);
    json!("it came")
}

/// Many requests.
fn many(arguments: &Value) -> Value {
    let count = arguments["count"].as_u64().unwrap_or(0);
    for _ in 0..count {
        get(arguments);
    }
    json!(count)
}

/// Fields and bodies that are never given back.
fn hold(arguments: &Value) -> Value {
    let mut held = Vec::new();
    loop {
        match arguments["what"].as_str() {
            Some("fields") => {
                let fields = Fields::new();
                for _ in 0..7 {
                    fields.append("x", &vec![b'x'; 8192]).expect("it is taken");
                }
                held.push((Some(fields), None));
            }
            Some("head") => {
                let fields = Fields::new();
                loop {
                    fields.append("x", &vec![b'x'; 8192]).expect("it is taken");
                }
            }
            _ => {
                let request = OutgoingRequest::new(Fields::new());
                let body = request.body().expect("a body");
                ask::write(&body, &vec![b'x'; 1 << 20]).expect("it is taken");
                held.push((None, Some((request, body))));
            }
        }
    }
}

/// Asks, and asks again where it is sent.
fn follow(arguments: &Value) -> Value {
    let first = get(arguments);
    let headers = first["headers"].as_array().cloned().unwrap_or_default();
    let to = headers.iter().find(|field| field[0] == "location").map(|field| field[1].clone());
    let second = to.map(|to| get(&json!({"url": to})));
    json!([first["status"], second])
}
