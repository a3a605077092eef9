//! Listing pages below a folder, for buckets that begin inside of a store.

use std::sync::Arc;

use async_trait::async_trait;
use object_store::list::{PaginatedListOptions, PaginatedListResult, PaginatedListStore};
use object_store::path::Path;

/// Pages of a store as [`object_store::prefix::PrefixStore`] shows it: keys below `folder`, without
/// it.
pub struct PrefixedPages {
    inner: Arc<dyn PaginatedListStore>,
    folder: Path,
}

impl PrefixedPages {
    /// The pages of `inner` below `folder`.
    #[must_use]
    pub fn new(inner: Arc<dyn PaginatedListStore>, folder: Path) -> Self {
        Self { inner, folder }
    }

    fn full(&self, key: &str) -> String {
        if self.folder.is_root() { key.to_owned() } else { format!("{}/{key}", self.folder) }
    }

    fn below(&self, key: &Path) -> Path {
        key.prefix_match(&self.folder).map_or_else(|| key.clone(), Iterator::collect)
    }
}

#[async_trait]
impl PaginatedListStore for PrefixedPages {
    async fn list_paginated(
        &self,
        prefix: Option<&str>,
        options: PaginatedListOptions,
    ) -> object_store::Result<PaginatedListResult> {
        let prefix = self.full(prefix.unwrap_or_default());
        let offset = options.offset.as_deref().map(|offset| self.full(offset));
        let options = PaginatedListOptions { offset, ..options };
        let mut page = self.inner.list_paginated(Some(&prefix), options).await?;
        for meta in &mut page.result.objects {
            meta.location = self.below(&meta.location);
        }
        for folder in &mut page.result.common_prefixes {
            *folder = self.below(folder);
        }
        Ok(page)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use object_store::ListResult;

    use super::*;

    struct Fixed {
        keys: Vec<&'static str>,
        asked: Mutex<Vec<(String, Option<String>)>>,
    }

    #[async_trait]
    impl PaginatedListStore for Fixed {
        async fn list_paginated(
            &self,
            prefix: Option<&str>,
            options: PaginatedListOptions,
        ) -> object_store::Result<PaginatedListResult> {
            let asked = (prefix.unwrap_or_default().to_owned(), options.offset);
            self.asked.lock().unwrap().push(asked);
            let objects = self.keys.iter().map(|key| object_store::ObjectMeta {
                location: Path::from(*key),
                last_modified: std::time::UNIX_EPOCH.into(),
                size: 0,
                e_tag: None,
                version: None,
            });
            let result = ListResult {
                common_prefixes: Vec::new(),
                objects: objects.collect(),
                extensions: options.extensions,
            };
            Ok(PaginatedListResult { result, page_token: None })
        }
    }

    fn ask(folder: &str, keys: Vec<&'static str>) -> (Vec<(String, Option<String>)>, Vec<Path>) {
        let inner = Arc::new(Fixed { keys, asked: Mutex::default() });
        let pages = PrefixedPages::new(inner.clone(), Path::from(folder));
        let options =
            PaginatedListOptions { offset: Some("a/b".into()), ..PaginatedListOptions::default() };
        let page = futures::executor::block_on(pages.list_paginated(Some("a/"), options)).unwrap();
        let keys = page.result.objects.into_iter().map(|meta| meta.location).collect();
        let asked = inner.asked.lock().unwrap().clone();
        (asked, keys)
    }

    #[test]
    fn keys_are_asked_for_and_shown_below_the_folder() {
        let (asked, keys) = ask("team/agents", vec!["team/agents/a/c", "team/agents/a/d"]);
        assert_eq!(asked, [("team/agents/a/".to_owned(), Some("team/agents/a/b".to_owned()))]);
        assert_eq!(keys, [Path::from("a/c"), Path::from("a/d")]);
    }

    #[test]
    fn without_a_folder_nothing_changes() {
        let (asked, keys) = ask("", vec!["a/c"]);
        assert_eq!(asked, [("a/".to_owned(), Some("a/b".to_owned()))]);
        assert_eq!(keys, [Path::from("a/c")]);
    }
}
