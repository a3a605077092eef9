//! An agent that talks to a model over the chat completions protocol, which many servers speak.
//!
//! The log begins with where the model is, and goes on with the conversation:
//!
//! ```text
//! {"kind":"model","url":"https://api.example.com","model":"small","system":"Answer briefly."}
//! {"kind":"user","text":"Hello"}
//! {"kind":"assistant","text":"Hello! How can I help?"}
//! ```
//!
//! The key is none of the handler's business, nor of the log's: the runtime adds it.
//!
//! ```text
//! pugmark run --allow-http api.example.com --secret api.example.com=API_KEY -- ./chat.wasm
//! ```

use pugmark_guest::http::Request;
use pugmark_guest::{Decision, Event, Handler, Output, log};
use serde::{Deserialize, Serialize};

/// The handler.
pub struct Chat;

/// An event of the log.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Message {
    /// Where the model is. The last one counts.
    Model {
        /// The server, such as `https://api.example.com`.
        url: String,
        /// Which of its models.
        model: String,
        /// What the model is told before the conversation.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        system: Option<String>,
    },
    /// What a person says.
    User {
        /// The words.
        text: String,
    },
    /// What the model says.
    Assistant {
        /// The words.
        text: String,
    },
}

/// What the log comes to.
#[derive(Default)]
pub struct State {
    model: Option<Model>,
    conversation: Vec<Turn>,
}

struct Model {
    url: String,
    name: String,
    system: Option<String>,
}

/// A message as the server takes and gives it.
#[derive(Clone, Serialize, Deserialize)]
struct Turn {
    role: String,
    content: String,
}

impl Turn {
    fn new(role: &str, content: &str) -> Self {
        Self { role: role.to_owned(), content: content.to_owned() }
    }
}

#[derive(Serialize)]
struct Question<'a> {
    model: &'a str,
    messages: Vec<Turn>,
}

#[derive(Deserialize)]
struct Completion {
    choices: Vec<Choice>,
}

#[derive(Deserialize)]
struct Choice {
    message: Turn,
}

impl Handler for Chat {
    type State = State;

    fn fold(state: &mut State, event: &Event) {
        match event.json() {
            Ok(Message::Model { url, model, system }) => {
                state.model = Some(Model { url, name: model, system });
            }
            Ok(Message::User { text }) => state.conversation.push(Turn::new("user", &text)),
            Ok(Message::Assistant { text }) => {
                state.conversation.push(Turn::new("assistant", &text));
            }
            Err(_) => {} // not for this handler
        }
    }

    fn decide(state: &State) -> Decision {
        let Some(model) = &state.model else { return Decision::pause("no model is set") };
        match state.conversation.last() {
            Some(turn) if turn.role == "user" => match ask(model, &state.conversation) {
                Ok(text) => Decision::append(Output::json(&Message::Assistant { text }))
                    .then_pause("waiting for the next message"),
                // Nothing of this step is kept, and the next run asks again.
                Err(reason) => Decision::fail(reason),
            },
            _ => Decision::pause("waiting for a message"),
        }
    }
}

/// What the model says to the conversation.
fn ask(model: &Model, conversation: &[Turn]) -> Result<String, String> {
    let system = model.system.iter().map(|text| Turn::new("system", text));
    let messages = system.chain(conversation.iter().cloned()).collect();
    let url = format!("{}/v1/chat/completions", model.url.trim_end_matches('/'));
    let question = Question { model: &model.name, messages };
    let response = Request::post(url).json(&question).send().map_err(|e| e.to_string())?;
    if !response.is_success() {
        return Err(format!("the model answered {}: {}", response.status(), response.text()));
    }
    log::info(format_args!("the model answered with {} bytes", response.body().len()));
    let completion: Completion = response.json().map_err(|error| error.to_string())?;
    let choice = completion.choices.into_iter().next().ok_or("the model gave no answer")?;
    Ok(choice.message.content)
}

pugmark_guest::export!(Chat);

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    use std::net::TcpListener;
    use std::thread;

    use pugmark_guest::testing::decide;

    use super::*;

    fn event(message: &Message) -> Output {
        Output::json(message)
    }

    /// A server that gives one answer, and what it was asked.
    fn model(status: &str, body: &'static str) -> (String, thread::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n", body.len());
        let server = thread::spawn(move || {
            let mut stream = BufReader::new(listener.accept().unwrap().0);
            let (mut line, mut length) = (String::new(), 0);
            while line != "\r\n" {
                line.clear();
                stream.read_line(&mut line).unwrap();
                if let Some(value) = line.strip_prefix("content-length: ") {
                    length = value.trim().parse().unwrap();
                }
            }
            let mut asked = vec![0; length];
            stream.read_exact(&mut asked).unwrap();
            stream.get_mut().write_all((head + body).as_bytes()).unwrap();
            String::from_utf8(asked).unwrap()
        });
        (url, server)
    }

    fn log(url: String) -> [Output; 2] {
        let system = Some("Be brief.".to_owned());
        [
            event(&Message::Model { url, model: "small".into(), system }),
            event(&Message::User { text: "Hello".into() }),
        ]
    }

    #[test]
    fn says_what_the_model_says() {
        let answer = r#"{"choices":[{"message":{"role":"assistant","content":"Hi"}}]}"#;
        let (url, server) = model("200 OK", answer);
        let decision = decide::<Chat>(log(url));
        assert_eq!(decision.outputs()[0].body(), br#"{"kind":"assistant","text":"Hi"}"#);
        assert_eq!(
            server.join().unwrap(),
            r#"{"model":"small","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Hello"}]}"#
        );
    }

    #[test]
    fn waits_for_somebody_to_answer() {
        let [model, _] = log("http://127.0.0.1:9".into());
        assert!(decide::<Chat>([model]).outputs().is_empty());
        assert!(
            decide::<Chat>([event(&Message::User { text: "Hello".into() })]).outputs().is_empty()
        );
    }
}
