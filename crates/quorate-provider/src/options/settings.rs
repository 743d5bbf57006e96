//! Options as the node's settings.

use super::values::{parse_codec, parse_exit_action};
use super::Options;
use quorate_certify::Packing;
use quorate_node::settings::{ExitPlan, PartSizes, Settings};

/// What an empty write set of Galera's (184 bytes) has more than ours: a limit that was chosen for
/// Galera means the same transactions here.
const GALERA_OVERHEAD: u64 = 104;

impl Options {
    pub fn settings(&self) -> Settings {
        Settings {
            log_dir: self.text("quorate.dir").to_string(),
            queue_bytes: self.bytes("quorate.queue_bytes") as usize,
            parts: PartSizes::default(),
            packing: self.packing(),
            write_set_bytes_max: self.bytes("repl.max_ws_size").saturating_sub(GALERA_OVERHEAD),
            log_conflicts: self.flag("cert.log_conflicts"),
            debug: self.flag("debug"),
            read_timeout: self.period("repl.causal_read_timeout"),
            vote_policy: self.integer("gcs.vote_policy").clamp(0, 255) as u8,
            transfer_holds_isolated: self.flag("quorate.transfer_holds_ddl"),
            exit: self.exit_plan(),
        }
    }

    fn packing(&self) -> Option<Packing> {
        let codec = parse_codec(self.text("quorate.compress")).flatten()?;
        Some(Packing { codec, from: self.bytes("quorate.compress_from") as usize })
    }

    fn exit_plan(&self) -> Option<ExitPlan> {
        let timeout = self.period("quorate.unreachable_majority_timeout");
        let tries = self.integer("quorate.autorejoin_tries").max(0);
        Some(ExitPlan {
            // The contact was lost for so long already when it is reported.
            timeout: timeout.saturating_sub(self.period("quorate.primary_timeout")),
            tries: u32::try_from(tries).unwrap_or(u32::MAX),
            interval: self.period("quorate.autorejoin_interval"),
            action: parse_exit_action(self.text("quorate.exit_action"))?,
        })
        .filter(|_| !timeout.is_zero())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_node::settings::ExitAction;
    use std::time::Duration;

    fn plan(text: &str) -> Option<ExitPlan> {
        let mut options = Options::default();
        options.set(text, true).unwrap();
        options.settings().exit
    }

    #[test]
    fn a_limit_for_galeras_write_sets_is_less_for_ours() {
        let limit = |text: &str| {
            let mut options = Options::default();
            options.set(text, true).unwrap();
            options.settings().write_set_bytes_max
        };
        assert_eq!((limit("repl.max_ws_size=1000"), limit("repl.max_ws_size=100")), (896, 0));
    }

    #[test]
    fn nothing_is_planned_by_default_and_the_time_lost_already_counts() {
        assert_eq!(plan(""), None);
        let planned = plan(
            "quorate.unreachable_majority_timeout=PT8S; quorate.exit_action=abort; \
             quorate.autorejoin_tries=0",
        );
        let planned = planned.unwrap();
        assert_eq!((planned.timeout, planned.tries), (Duration::from_secs(3), 0));
        assert_eq!(planned.action, ExitAction::Abort);
        let soon = plan("quorate.unreachable_majority_timeout=1").unwrap();
        assert_eq!((soon.timeout, soon.action), (Duration::ZERO, ExitAction::ReadOnly));
    }
}
