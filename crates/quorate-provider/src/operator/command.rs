//! Options that are commands: carried out when they are set on a running node.
//!
//! `SET GLOBAL wsrep_provider_options = 'quorate.switchover=node2'` is how an operator (or the
//! command `quorate`) speaks to a node: whoever may set global variables may command it, and no
//! other port or password is needed.

use crate::provider::Provider;
use std::time::Duration;

/// Two elections; the group gives up sooner by itself.
const SWITCHOVER_TIMEOUT: Duration = Duration::from_secs(10);
/// For `quorate.switchover`: whichever voter is furthest.
const ANY: &str = "any";

impl Provider {
    /// `SET GLOBAL wsrep_provider_options`: takes over the values, then carries out the commands
    /// until one fails. The error says why.
    pub fn change_options(&self, text: &str) -> Result<(), String> {
        #[cfg(feature = "sync-points")]
        let text = &quorate_node::sync::take_commands(text);
        let mut options = self.options.lock();
        let commands = options.set(text, true).map_err(|error| error.to_string())?;
        let settings = options.settings();
        drop(options);
        self.configure(settings);
        self.options_changed();
        commands.iter().try_for_each(|(name, value)| self.command(name, value))
    }

    fn command(&self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "quorate.switchover" => self.switchover(value),
            "pc.bootstrap" => self.bootstrap(),
            "socket.ssl_reload" => self.reload_certificates(),
            order => {
                let answer = self.order(order, value)?;
                self.info(&format!("{order} = {value}: {answer}"));
                *self.counters().answer.lock() = answer;
                Ok(())
            }
        }
    }

    fn bootstrap(&self) -> Result<(), String> {
        let group = self.controls().ok_or("this node is not connected to its group")?;
        group.bootstrap().map_err(|error| error.to_string())
    }

    /// A node that is not connected reads them when it connects.
    fn reload_certificates(&self) -> Result<(), String> {
        let Some(group) = self.controls() else { return Ok(()) };
        group.reload_tls().map_err(|error| error.to_string())
    }

    fn switchover(&self, to: &str) -> Result<(), String> {
        let group = self.controls().ok_or("this node is not connected to its group")?;
        let to = (to != ANY).then_some(to);
        let leader = group.switchover(to, SWITCHOVER_TIMEOUT).map_err(|error| error.to_string())?;
        self.info(&format!("leadership went to {leader}, as commanded"));
        Ok(())
    }
}
