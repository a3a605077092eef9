//! What a handler is, and how a crate exports one.

use crate::{Decision, Event};

/// A handler: a fold over the log, and a decision on what the fold came to.
pub trait Handler {
    /// All that the handler knows. A step starts from its default, so it holds nothing that the
    /// log does not.
    type State: Default;

    /// Takes one event into the state. Called once for each event, in the order of the log.
    ///
    /// An event that the handler does not understand is to be skipped: others may write to the
    /// session, too.
    fn fold(state: &mut Self::State, event: &Event);

    /// Decides what comes next.
    fn decide(state: &Self::State) -> Decision;
}

/// Does nothing; compiles only for a handler.
#[doc(hidden)]
pub const fn assert_handler<H: Handler>() {}

/// Exports a [`Handler`] as a component, when the crate is built for wasm. Once a crate, at the
/// level of items.
///
/// In a native build it only checks that the type is a handler: [`run`](crate::run) is the way in
/// there.
#[macro_export]
macro_rules! export {
    ($handler:ty) => {
        #[cfg(not(target_family = "wasm"))]
        const _: () = $crate::assert_handler::<$handler>();

        #[cfg(target_family = "wasm")]
        const _: () = {
            struct Component;

            ::std::thread_local! {
                static STATE: ::std::cell::RefCell<<$handler as $crate::Handler>::State> =
                    $crate::component::start::<$handler>();
            }

            impl $crate::component::Guest for Component {
                fn fold(entry: $crate::component::Entry) -> Result<(), String> {
                    STATE.with_borrow_mut(|state| $crate::component::fold::<$handler>(state, entry))
                }

                fn decide() -> Result<$crate::component::Decided, String> {
                    STATE.with_borrow(|state| $crate::component::decide::<$handler>(state))
                }
            }

            $crate::component::bindings::export_component!(
                Component with_types_in $crate::component::bindings
            );
        };
    };
}
