//! What [`session`](crate::session()) answers while a test runs a handler.

use std::cell::RefCell;

use crate::Session;

thread_local! {
    static CURRENT: RefCell<Option<Session>> = const { RefCell::new(None) };
}

/// The session of the handler that a test runs on this thread.
#[cfg(not(target_family = "wasm"))]
pub(crate) fn current() -> Option<Session> {
    CURRENT.with_borrow(Clone::clone)
}

/// Has `action` see this session. What was seen before is seen again afterwards, also when `action`
/// panics.
pub(super) fn seeing<T>(session: &Session, action: impl FnOnce() -> T) -> T {
    struct Back(Option<Session>);
    impl Drop for Back {
        fn drop(&mut self) {
            CURRENT.set(self.0.take());
        }
    }
    let _back = Back(CURRENT.replace(Some(session.clone())));
    action()
}
