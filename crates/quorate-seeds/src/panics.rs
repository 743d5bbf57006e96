//! A panic in a run is a result of it, to be told with its seed and not to be printed.

use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

thread_local! {
    static RUNNING: Cell<bool> = const { Cell::new(false) };
    static PANICS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// What `body` ended with, and where that was, if it panicked. Others that it caught by itself, or that came of it
/// while it unwound, are not told.
pub fn caught(body: impl FnOnce()) -> Option<String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| match RUNNING.get() {
            true => PANICS.with(|all| all.borrow_mut().push(info.to_string())),
            false => usual(info),
        }));
    });
    RUNNING.set(true);
    let outcome = panic::catch_unwind(AssertUnwindSafe(body));
    RUNNING.set(false);
    let all = PANICS.take();
    let panic = outcome.err()?;
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic");
    let with_place = all.into_iter().find(|message| message.contains(text));
    Some(with_place.unwrap_or_else(|| text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_told_once_and_with_its_place() {
        let told = caught(|| panic!("at sea")).unwrap();
        assert!(told.contains("at sea") && told.contains("panics.rs"), "{told}");
        assert_eq!(caught(|| {}), None);
        let within = caught(|| drop(panic::catch_unwind(|| panic!("ashore"))));
        assert_eq!(within, None, "it was caught before");
        assert!(!caught(|| panic!("again")).unwrap().contains("ashore"));
    }
}
