//! Options as the node's settings.

use super::values::{parse_codec, parse_consistency, parse_exit_action};
use super::Options;
use quorate_certify::Packing;
use quorate_node::flow::Limits;
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
            lag_max: Some(self.period("quorate.max_lag")).filter(|lag| !lag.is_zero()),
            consistency: parse_consistency(self.text("quorate.consistency")).unwrap_or_default(),
            consistency_timeout: self.period("quorate.consistency_timeout"),
            flow: self.flow_limits(),
            vote_policy: self.integer("gcs.vote_policy") as u8,
            transfer_holds_isolated: self.flag("quorate.transfer_holds_ddl"),
            exit: self.exit_plan(),
        }
    }

    fn packing(&self) -> Option<Packing> {
        let codec = parse_codec(self.text("quorate.compress")).flatten()?;
        Some(Packing { codec, from: self.bytes("quorate.compress_from") as usize })
    }

    fn flow_limits(&self) -> Option<Limits> {
        let is_galeras =
            self.was_given("gcs.fc_limit") && !self.was_given("quorate.flow_control_applied");
        let applied = if is_galeras { "gcs.fc_limit" } else { "quorate.flow_control_applied" };
        let limit = |name| self.integer(name) as u64;
        let limits =
            Limits { applied: limit(applied), certified: limit("quorate.flow_control_certified") };
        self.flag("quorate.flow_control").then_some(limits)
    }

    fn exit_plan(&self) -> Option<ExitPlan> {
        let timeout = self.period("quorate.unreachable_majority_timeout");
        Some(ExitPlan {
            // The contact was lost for so long already when it is reported.
            timeout: timeout.saturating_sub(self.period("quorate.primary_timeout")),
            tries: self.integer("quorate.autorejoin_tries") as u32,
            interval: self.period("quorate.autorejoin_interval"),
            action: parse_exit_action(self.text("quorate.exit_action"))?,
        })
        .filter(|_| !timeout.is_zero())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_node::settings::{Consistency, ExitAction};
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
    fn flow_control_is_off_by_default_and_knows_galeras_limit() {
        let limits = |text: &str| {
            let mut options = Options::default();
            options.set(text, true).unwrap();
            options.settings().flow.map(|limits| (limits.applied, limits.certified))
        };
        assert_eq!(limits("gcs.fc_limit=64"), None);
        assert_eq!(limits("quorate.flow_control=yes"), Some((25_000, 25_000)));
        assert_eq!(limits("quorate.flow_control=yes; gcs.fc_limit=64"), Some((64, 25_000)));
        let both = "quorate.flow_control=yes; gcs.fc_limit=64; quorate.flow_control_applied=9";
        assert_eq!(limits(both), Some((9, 25_000)));
    }

    #[test]
    fn commits_wait_for_all_or_for_so_many() {
        let consistency = |text: &str| {
            let mut options = Options::default();
            let set = options.set(&format!("quorate.consistency={text}"), true);
            set.ok().map(|_| options.settings().consistency)
        };
        assert_eq!(consistency("eventual"), Some(Consistency::Eventual));
        assert_eq!(consistency("after"), Some(Consistency::After { at_least: None }));
        assert_eq!(consistency("after:2"), Some(Consistency::After { at_least: Some(2) }));
        for bad in ["before", "after:", "after:0", "after:256", "after:x"] {
            assert_eq!(consistency(bad), None, "{bad}");
        }
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
