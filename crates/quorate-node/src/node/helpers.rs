//! Threads of a node's own, which wait for something in the server's place. They are joined before the
//! node is freed: the server may unload the library after that.

use crate::blocking::{self, JoinHandle, Mutex};

#[derive(Default)]
pub struct Helpers(Mutex<Vec<JoinHandle<()>>>);

impl Helpers {
    pub fn spawn(&self, name: &str, body: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
        let mut running = self.0.lock();
        running.retain(|helper| !helper.is_finished());
        running.push(blocking::spawn(format!("qrt-{name}"), body)?);
        Ok(())
    }

    /// Waits for all of them; they were told to end.
    pub fn join(&self) {
        let running = std::mem::take(&mut *self.0.lock());
        for helper in running {
            // A panic has withdrawn the node by then.
            let _ended = helper.join();
        }
    }
}
