//! Labels and answers GitHub issues, and asks a human where it is unsure.
//!
//! Push webhook payloads of `issues` and `issue_comment` to a session, as GitHub sends them. Each
//! step answers one of them with an event:
//!
//! ```json
//! {"kind":"triage","issue":1,"labels":["bug","needs-human"],"reply":"…"}
//! ```
//!
//! With `needs-human` among the labels it is a draft, and the handler pauses once nothing else is
//! left to do. A human then pushes one of these; `issue` may be left out while one draft waits:
//!
//! ```json
//! {"kind":"approve","issue":1}
//! {"kind":"reject","issue":1}
//! {"kind":"reply","issue":1,"text":"…"}
//! ```
//!
//! What it must not do: talk to GitHub. Another program applies what stands in the log.

mod message;
mod rules;

use std::collections::BTreeMap;

use message::{Message, Note, Payload, Triaged};
use pugmark_guest::{Decision, Event, Handler, Output};
use rules::NEEDS_HUMAN;

/// The handler.
pub struct Triage;

/// What the log comes to.
#[derive(Default)]
pub struct State {
    /// Payloads without an answer, oldest first; one an issue, since a newer one supersedes.
    unanswered: Vec<Payload>,
    /// Answers that wait for a human, by issue.
    drafts: BTreeMap<u64, Triaged>,
    /// Replies that a human settled and that are not answered with yet, by issue.
    settled: BTreeMap<u64, Option<String>>,
}

impl Handler for Triage {
    type State = State;

    fn fold(state: &mut State, event: &Event) {
        // What is none of ours is skipped: a session may hold other things as well.
        match event.json() {
            Ok(Message::Payload(payload)) => state.received(payload),
            Ok(Message::Note(Note::Triage(answer))) => state.answered(answer),
            Ok(Message::Note(Note::Approve { issue })) => state.settle(issue, |draft| draft.reply),
            Ok(Message::Note(Note::Reject { issue })) => state.settle(issue, |_| None),
            Ok(Message::Note(Note::Reply { issue, text })) => state.settle(issue, |_| Some(text)),
            Err(_) => {}
        }
    }

    fn decide(state: &State) -> Decision {
        if let Some((&issue, reply)) = state.settled.first_key_value() {
            let mut labels = state.drafts[&issue].labels.clone();
            labels.remove(NEEDS_HUMAN);
            return append(Triaged { issue, labels, reply: reply.clone() });
        }
        if let Some(payload) = state.unanswered.last() {
            return append(rules::triage(payload));
        }
        match state.drafts.keys().map(|issue| format!("#{issue}")).collect::<Vec<_>>() {
            issues if issues.is_empty() => Decision::pause("nothing to triage"),
            issues => Decision::pause(format!("a human is needed for {}", issues.join(", "))),
        }
    }
}

fn append(answer: Triaged) -> Decision {
    let name = format!("issue-{}", answer.issue);
    Decision::append(Output::json(&Note::Triage(answer)).name(name))
}

impl State {
    /// What needs no answer leaves an older payload its turn.
    fn received(&mut self, payload: Payload) {
        let number = payload.issue.number;
        if payload.is_over() {
            self.unanswered.retain(|other| other.issue.number != number);
            self.drafts.remove(&number);
            self.settled.remove(&number);
        } else if payload.wants_an_answer() {
            self.unanswered.retain(|other| other.issue.number != number);
            self.unanswered.push(payload);
        }
    }

    /// All payloads of the issue that came before the answer were seen by the step that gave it.
    fn answered(&mut self, answer: Triaged) {
        self.unanswered.retain(|payload| payload.issue.number != answer.issue);
        self.settled.remove(&answer.issue);
        if answer.labels.contains(NEEDS_HUMAN) {
            self.drafts.insert(answer.issue, answer);
        } else {
            self.drafts.remove(&answer.issue);
        }
    }

    /// What a human says of no draft is dropped.
    fn settle(&mut self, issue: Option<u64>, reply: impl FnOnce(Triaged) -> Option<String>) {
        let only = if self.drafts.len() == 1 { self.drafts.keys().next().copied() } else { None };
        let draft = issue.or(only).and_then(|issue| self.drafts.get(&issue));
        if let Some(draft) = draft {
            self.settled.insert(draft.issue, reply(draft.clone()));
        }
    }
}

pugmark_guest::export!(Triage);

#[cfg(test)]
mod tests {
    use pugmark_guest::testing::Session;
    use serde_json::{Value, json};

    use super::*;

    fn opened(number: u64, title: &str, body: &str) -> Value {
        json!({
            "action": "opened",
            "issue": {"number": number, "title": title, "body": body, "labels": [],
                      "user": {"login": "ada", "type": "User"}, "author_association": "NONE"},
            "sender": {"login": "ada", "type": "User"},
        })
    }

    fn session(events: impl IntoIterator<Item = Value>) -> Session<Triage> {
        Session::of(events.into_iter().map(|event| Output::json(&event)))
    }

    /// What was appended until the handler paused, one event a step; and why it paused.
    fn run(session: &mut Session<Triage>) -> (Vec<Value>, String) {
        let turn = session.run();
        let (pause, steps) = turn.decisions().split_last().unwrap();
        assert!(pause.outputs().is_empty());
        assert!(steps.iter().all(|decision| decision.outputs().len() == 1));
        (turn.json(), turn.reason().unwrap().to_owned())
    }

    #[test]
    fn labels_and_answers() {
        let mut log = session([opened(7, "Typo in the README", "It says teh.")]);
        let (appended, reason) = run(&mut log);
        assert_eq!(
            appended,
            [json!({"kind": "triage", "issue": 7, "labels": ["documentation"],
                    "reply": "Thanks, @ada! Corrections to the documentation are welcome as a \
                              pull request."})]
        );
        assert_eq!(reason, "nothing to triage");
    }

    #[test]
    fn the_newest_first_and_each_issue_once() {
        let mut log = session([
            opened(1, "Crash on start", "Panics."),
            opened(2, "Typo", "Here."),
            opened(1, "Crash on start", "It panics at line 3."),
        ]);
        let (appended, _) = run(&mut log);
        let issues: Vec<&Value> = appended.iter().map(|answer| &answer["issue"]).collect();
        assert_eq!(issues, [1, 2]);
    }

    #[test]
    fn a_payload_that_needs_no_answer_hides_none() {
        let mut labeled = opened(5, "Crash", "Boom");
        labeled["action"] = json!("labeled");
        let (appended, _) = run(&mut session([opened(5, "Crash", "Boom"), labeled]));
        assert_eq!(appended[0]["labels"], json!(["bug"]));
    }

    #[test]
    fn a_human_has_the_last_word() {
        for (verdict, reply) in [
            (json!({"kind": "approve"}), json!("Thanks, @ada. A maintainer will look at this.")),
            (json!({"kind": "reject", "issue": 3}), Value::Null),
            (json!({"kind": "reply", "issue": 3, "text": "Hi!"}), json!("Hi!")),
        ] {
            let mut log = session([opened(3, "Hmm", "Something about colours.")]);
            let (drafts, reason) = run(&mut log);
            assert_eq!(drafts[0]["labels"], json!(["needs-human"]));
            assert_eq!(reason, "a human is needed for #3");
            log.push(Output::json(&verdict));
            let (answers, reason) = run(&mut log);
            assert_eq!(answers.len(), 1);
            assert_eq!(answers[0]["labels"], json!([]));
            assert_eq!(answers[0].get("reply").cloned().unwrap_or_default(), reply);
            assert_eq!(reason, "nothing to triage");
        }
    }

    #[test]
    fn skips_what_it_does_not_know() {
        let mut closed = opened(4, "Crash", "Boom");
        closed["action"] = json!("closed");
        let mut log = session([
            opened(4, "Crash", "Boom"),
            closed,
            json!({"kind": "approve", "issue": 99}),
            json!({"zen": "Keep it logically awesome.", "hook_id": 1}),
            json!(null),
        ]);
        assert_eq!(run(&mut log), (Vec::new(), "nothing to triage".to_owned()));
    }
}
