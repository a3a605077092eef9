//! What stands in the log. Tolerant: of a webhook payload only the fields that the rules look at
//! have to be there.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// Anything in the log that the handler understands.
#[derive(Deserialize)]
#[serde(untagged)]
pub enum Message {
    /// An event of this handler's session.
    Note(Note),
    /// A payload of GitHub's.
    Payload(Payload),
}

/// What the handler and a human write.
#[derive(Deserialize, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Note {
    /// The handler's answer; with the label `needs-human` a draft.
    Triage(Triaged),
    /// A human takes the draft as it is.
    Approve {
        /// The issue's number.
        issue: Option<u64>,
    },
    /// A human keeps the draft's labels, but says nothing.
    Reject {
        /// The issue's number.
        issue: Option<u64>,
    },
    /// A human says this instead.
    Reply {
        /// The issue's number.
        issue: Option<u64>,
        /// The comment, in Markdown.
        text: String,
    },
}

/// What is decided on an issue.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Triaged {
    /// The issue's number.
    pub issue: u64,
    /// All labels that the issue is to have.
    pub labels: BTreeSet<String>,
    /// A comment to write, in Markdown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply: Option<String>,
}

/// A payload of the webhooks `issues` and `issue_comment`.
#[derive(Deserialize)]
pub struct Payload {
    /// What happened.
    pub action: String,
    /// The issue as it stands then.
    pub issue: Issue,
    /// The comment, for `issue_comment`.
    pub comment: Option<Comment>,
}

impl Payload {
    /// Whether a rule applies: issues that are new or changed, and new comments, unless they are a
    /// pull request's or a bot's.
    pub fn wants_an_answer(&self) -> bool {
        let actor = self.comment.as_ref().map_or(&self.issue.user, |comment| &comment.user);
        let action = self.action.as_str();
        let applies = match self.comment {
            Some(_) => action == "created",
            None => matches!(action, "opened" | "edited" | "reopened"),
        };
        applies && !self.issue.is_pull_request() && actor.kind != "Bot"
    }

    /// Whether there is no use in answering the issue any more.
    pub fn is_over(&self) -> bool {
        let action = self.action.as_str();
        self.comment.is_none() && matches!(action, "closed" | "deleted" | "transferred")
    }
}

/// An issue.
#[derive(Deserialize)]
pub struct Issue {
    /// Its number in the repository.
    pub number: u64,
    /// Its title.
    pub title: String,
    /// Its text, in Markdown.
    pub body: Option<String>,
    /// The labels that it has.
    #[serde(default)]
    pub labels: Vec<Label>,
    /// Who opened it.
    pub user: User,
    /// There if it is a pull request.
    pub pull_request: Option<PullRequest>,
}

impl Issue {
    fn is_pull_request(&self) -> bool {
        self.pull_request.is_some()
    }
}

/// What makes an issue a pull request: that it is there.
#[derive(Deserialize)]
pub struct PullRequest {}

/// A label.
#[derive(Deserialize)]
pub struct Label {
    /// Its name.
    pub name: String,
}

/// A comment on an issue.
#[derive(Deserialize)]
pub struct Comment {
    /// Its text, in Markdown.
    pub body: String,
    /// Who wrote it.
    pub user: User,
    /// What its author is to the repository, `OWNER` for example.
    #[serde(default)]
    pub author_association: String,
}

/// Somebody on GitHub.
#[derive(Deserialize)]
pub struct User {
    /// The name after the `@`.
    pub login: String,
    /// `User`, `Bot` and so on.
    #[serde(rename = "type", default)]
    pub kind: String,
}
