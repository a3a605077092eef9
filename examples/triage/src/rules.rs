//! The rules: from one payload to labels and a reply. Pure functions.

use std::collections::BTreeSet;

use crate::message::{Comment, Issue, Payload, Triaged};

/// The label of a draft: a human looks at it before anything is done.
pub const NEEDS_HUMAN: &str = "needs-human";

/// The label of an issue that lacks what is needed to work on it.
const NEEDS_INFO: &str = "needs-info";

/// Labels, and the beginnings of words that speak for them.
const TOPICS: [(&str, &[&str]); 5] = [
    ("bug", &["bug", "crash", "panic", "broken", "exception", "regression", "does not work"]),
    ("documentation", &["docs", "documentation", "readme", "typo", "spelling", "spelled"]),
    ("enhancement", &["feature", "support for", "it would be nice", "add an option", "proposal"]),
    ("question", &["how do i", "how can i", "how to", "is there a way", "question"]),
    ("security", &["security", "vulnerab", "cve", "exploit", "xss", "injection"]),
];

/// What is to be done about a payload.
pub fn triage(payload: &Payload) -> Triaged {
    match &payload.comment {
        Some(comment) => on_comment(&payload.issue, comment),
        None => on_issue(&payload.issue),
    }
}

fn on_issue(issue: &Issue) -> Triaged {
    let body = issue.body.as_deref().unwrap_or_default();
    let topics = topics(&format!("{}\n{body}", issue.title));
    let login = &issue.user.login;
    let mut labels = kept(issue);
    labels.extend(topics.iter().map(|&topic| topic.to_owned()));
    let has = |topic: &str| labels.contains(topic);
    let (extra, reply) = if has("security") {
        (Some(NEEDS_HUMAN), format!("Thanks, @{login}. Please report details in private."))
    } else if has("bug") && body.trim().is_empty() {
        let wanted = "the version you use, what you did, and what you saw";
        (Some(NEEDS_INFO), format!("Thanks, @{login}! Please tell us {wanted}."))
    } else if has("documentation") {
        let wish = "Corrections to the documentation are welcome as a pull request.";
        (None, format!("Thanks, @{login}! {wish}"))
    } else if has("bug") {
        (None, format!("Thanks, @{login}! We will try to reproduce this."))
    } else if has("enhancement") {
        (None, format!("Thanks, @{login}! Others can vote for this with a thumbs up."))
    } else if has("question") {
        (Some(NEEDS_HUMAN), format!("@{login}, have you seen the discussions?"))
    } else {
        (Some(NEEDS_HUMAN), format!("Thanks, @{login}. A maintainer will look at this."))
    };
    labels.extend(extra.map(str::to_owned));
    Triaged { issue: issue.number, labels, reply: Some(reply) }
}

fn on_comment(issue: &Issue, comment: &Comment) -> Triaged {
    let mut labels = kept(issue);
    let mut reply = None;
    if matches!(comment.author_association.as_str(), "OWNER" | "MEMBER" | "COLLABORATOR") {
        labels.insert("accepted".to_owned());
    } else if topics(&comment.body).contains("security") {
        labels.extend(["security", NEEDS_HUMAN].map(str::to_owned));
        let login = &comment.user.login;
        reply = Some(format!("Thanks, @{login}. Please report details in private."));
    } else if comment.user.login == issue.user.login {
        labels.remove(NEEDS_INFO);
    } else if comment.body.contains('?') {
        labels.insert(NEEDS_HUMAN.to_owned());
    }
    Triaged { issue: issue.number, labels, reply }
}

/// The labels that the issue has; whether a human is needed is decided anew.
fn kept(issue: &Issue) -> BTreeSet<String> {
    let names = issue.labels.iter().map(|label| label.name.clone());
    names.filter(|name| name != NEEDS_HUMAN).collect()
}

fn topics(text: &str) -> BTreeSet<&'static str> {
    let words = words(text);
    let speaks =
        |beginnings: &&[&str]| beginnings.iter().any(|word| words.contains(&format!(" {word}")));
    TOPICS.iter().filter(|(_, beginnings)| speaks(beginnings)).map(|(topic, _)| *topic).collect()
}

/// The text's words in lower case, each with one space before it.
fn words(text: &str) -> String {
    let lower = text.to_lowercase();
    let words =
        lower.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
    words.flat_map(|word| [" ", word]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Label, User};

    fn issue(title: &str, body: Option<&str>, labels: &[&str]) -> Issue {
        let label = |name: &&str| Label { name: (*name).to_owned() };
        Issue {
            number: 1,
            title: title.to_owned(),
            body: body.map(str::to_owned),
            labels: labels.iter().map(label).collect(),
            user: User { login: "ada".to_owned(), kind: "User".to_owned() },
            pull_request: None,
        }
    }

    fn labels(answer: &Triaged) -> Vec<&str> {
        answer.labels.iter().map(String::as_str).collect()
    }

    #[test]
    fn words_are_matched_at_their_beginning() {
        assert_eq!(words("It's  BROKEN!"), " it s broken");
        assert_eq!(topics("Crashes; see the README"), BTreeSet::from(["bug", "documentation"]));
        assert_eq!(topics("debug"), BTreeSet::new());
        assert_eq!(topics("How-to: CVE-2025-1"), BTreeSet::from(["question", "security"]));
    }

    #[test]
    fn issues() {
        let answer = on_issue(&issue("Spelling error in the README file", None, &["bug"]));
        assert_eq!(labels(&answer), ["bug", "documentation", "needs-info"]);
        let answer = on_issue(&issue("Spelling error", Some("two t's"), &["bug", "needs-human"]));
        assert_eq!(labels(&answer), ["bug", "documentation"]);
        let answer = on_issue(&issue("XSS", Some("in the form"), &[]));
        assert_eq!(labels(&answer), ["needs-human", "security"]);
    }

    #[test]
    fn comments() {
        let comment = |login: &str, body: &str, association: &str| Comment {
            body: body.to_owned(),
            user: User { login: login.to_owned(), kind: "User".to_owned() },
            author_association: association.to_owned(),
        };
        let issue = issue("Crash", None, &["bug", "needs-info"]);
        let by = |comment: Comment| on_comment(&issue, &comment);
        assert_eq!(
            labels(&by(comment("bob", "Right!", "OWNER"))),
            ["accepted", "bug", "needs-info"]
        );
        assert_eq!(labels(&by(comment("ada", "It is 1.2.", "NONE"))), ["bug"]);
        let asked = by(comment("eve", "Any news?", "NONE"));
        assert_eq!(labels(&asked), ["bug", "needs-human", "needs-info"]);
        assert_eq!(asked.reply, None);
    }
}
