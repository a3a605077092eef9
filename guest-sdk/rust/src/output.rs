//! Events to be: a body and what describes it.

use std::collections::BTreeMap;

use serde::Serialize;

/// One event that the handler appends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    pub(crate) body: Vec<u8>,
    pub(crate) name: Option<String>,
    pub(crate) content_type: Option<String>,
    pub(crate) content_encoding: Option<String>,
    pub(crate) schema_url: Option<String>,
    pub(crate) metadata: BTreeMap<String, String>,
    /// Why there is no body: fails the step when the output is committed.
    pub(crate) failure: Option<String>,
}

impl Output {
    /// A JSON body. A value that has no JSON form (a map with keys that are no strings, for
    /// example) fails the step that appends it.
    #[must_use]
    pub fn json<T: Serialize + ?Sized>(value: &T) -> Self {
        match serde_json::to_vec(value) {
            Ok(body) => Self::new(body, "application/json"),
            Err(error) => {
                let failure = Some(format!("an output has no JSON form: {error}"));
                Self { failure, ..Self::new(Vec::new(), "application/json") }
            }
        }
    }

    /// A plain text body.
    #[must_use]
    pub fn text(body: impl Into<String>) -> Self {
        Self::new(body.into().into_bytes(), "text/plain")
    }

    /// A body of any bytes.
    #[must_use]
    pub fn bytes(body: impl Into<Vec<u8>>) -> Self {
        Self::new(body.into(), "application/octet-stream")
    }

    fn new(body: Vec<u8>, content_type: &str) -> Self {
        Self {
            body,
            name: None,
            content_type: Some(content_type.to_owned()),
            content_encoding: None,
            schema_url: None,
            metadata: BTreeMap::new(),
            failure: None,
        }
    }

    /// Gives it a name. Several events may share one.
    #[must_use]
    pub fn name(self, name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), ..self }
    }

    /// Says what media type the body is, in place of the one that its constructor chose.
    #[must_use]
    pub fn content_type(self, content_type: impl Into<String>) -> Self {
        Self { content_type: Some(content_type.into()), ..self }
    }

    /// Says how the body *is* encoded; encodes nothing.
    #[must_use]
    pub fn content_encoding(self, content_encoding: impl Into<String>) -> Self {
        Self { content_encoding: Some(content_encoding.into()), ..self }
    }

    /// Says where the body's schema is described.
    #[must_use]
    pub fn schema_url(self, schema_url: impl Into<String>) -> Self {
        Self { schema_url: Some(schema_url.into()), ..self }
    }

    /// Adds a name and a value of your own, or replaces the value.
    #[must_use]
    pub fn metadata(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.metadata.insert(name.into(), value.into());
        self
    }

    /// The body.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        &self.body
    }
}
