//! Whether a value is one of those that an option takes.
//!
//! Invariant: what passes here is used as it was given. Nothing is bent to a limit later without a word.

use super::table::{Kind, Spec};
use super::values::{
    parse_bool, parse_codec, parse_consistency, parse_exit_action, parse_failover, parse_period,
    parse_primaries, parse_retention, parse_role, parse_size,
};
use super::{OptionError, Options};
use quorate_consensus::PRIORITY_MAX;
use std::time::Duration;
use Kind::{Bool, Integer, Period, Retention, Size, Text};

/// Of one option.
pub(super) fn check(spec: &Spec, value: &str) -> Result<(), OptionError> {
    match expected(spec, value) {
        None => Ok(()),
        Some(expected) => {
            let (name, value) = (spec.name.into(), value.into());
            Err(OptionError::BadValue { name, value, expected })
        }
    }
}

impl Options {
    /// A member is taken for silent only when it has missed two heartbeats. Where nothing was said of it, the least of
    /// that is in force, and shown.
    pub(super) fn settle_silence(&mut self) -> Result<(), OptionError> {
        const NAME: &str = "evs.suspect_timeout";
        let least = self.period("quorate.election_timeout") * 2 / 5;
        if self.period(NAME) >= least {
            return Ok(());
        }
        if self.was_given(NAME) {
            return Err(OptionError::Silence { value: self.text(NAME).to_owned(), least });
        }
        self.learn(NAME, format!("PT{}S", least.as_secs_f64()));
        Ok(())
    }
}

/// What the option takes, if that is not this value.
fn expected(spec: &Spec, value: &str) -> Option<&'static str> {
    let (good, expected) = match spec.kind {
        Text => (true, ""),
        Bool => (parse_bool(value).is_some(), "a yes or no"),
        Integer => (value.parse::<i64>().is_ok(), "a whole number"),
        Size => (parse_size(value).is_some(), "a size (a whole number, perhaps with K, M, G or T)"),
        Period => {
            (parse_period(value).is_some(), "a period (ISO 8601 like PT5S or PT0.5S, or seconds)")
        }
        Retention => (
            parse_retention(value).is_some(),
            "a size (like 1G), a period (like PT6H), or both (1G,PT6H)",
        ),
    };
    if !good {
        return Some(expected);
    }
    word_instead(spec.name, value).or_else(|| limit_instead(spec.name, value))
}

/// Of an option that takes certain words.
fn word_instead(name: &str, value: &str) -> Option<&'static str> {
    let (good, expected) = match name {
        "gmcast.isolate" => (matches!(value, "0" | "1" | "2"), "0, 1 or 2"),
        "quorate.encrypt" => (
            ["auto", "only"].contains(&value) || parse_bool(value).is_some(),
            "yes, no, auto or only",
        ),
        "quorate.compress" => (parse_codec(value).is_some(), "lz4, zstd or none"),
        "quorate.consistency" => {
            (parse_consistency(value).is_some(), "eventual, after, or after:N with N from 1 to 255")
        }
        "quorate.exit_action" => {
            (parse_exit_action(value).is_some(), "read-only, offline or abort")
        }
        "quorate.primary_failover" => (parse_failover(value).is_some(), "serve or wait"),
        "quorate.primary_mode" => (parse_primaries(value).is_some(), "multi or single"),
        "quorate.role" => (parse_role(value).is_some(), "voter or learner"),
        _ => return None,
    };
    (!good).then_some(expected)
}

/// Of an option that takes numbers, sizes or times within limits.
fn limit_instead(name: &str, value: &str) -> Option<&'static str> {
    let number = |least: i64, most: i64| {
        value.parse().is_ok_and(|number: i64| (least..=most).contains(&number))
    };
    let size = |least: u64, most: u64| {
        parse_size(value).is_some_and(|size| (least..=most).contains(&size))
    };
    let lasts = |least_ms| parse_period(value) >= Some(Duration::from_millis(least_ms));
    let (good, expected) = match name {
        "base_port" => (number(1, u16::MAX.into()), "a port, 1 to 65535"),
        "gcs.fc_limit" | "quorate.flow_control_applied" | "quorate.flow_control_certified" => {
            (number(0, i64::MAX), "a number of write sets")
        }
        "gcs.vote_policy" => (number(0, u8::MAX.into()), "a number from 0 to 255"),
        "gmcast.segment" => (number(0, u8::MAX.into()), "a number from 0 to 255"),
        "pc.weight" => (number(0, u8::MAX.into()), "a number from 0 to 255"),
        "quorate.autorejoin_tries" => (number(0, u32::MAX.into()), "a number, 0 or more"),
        "quorate.cert_window" => (number(16, 1 << 20), "a number from 16 to 1048576"),
        "quorate.disk_stall_timeout" => (lasts(100), "a period of at least PT0.1S"),
        "quorate.election_timeout" => (lasts(100), "a period of at least PT0.1S"),
        "quorate.priority" => (number(0, PRIORITY_MAX.into()), "a number from 0 to 100"),
        "quorate.segment_size" => (size(64 << 10, 32 << 30), "a size from 64K to 32G"),
        "repl.max_ws_size" => {
            (size(0, i32::MAX as u64), "a size up to 2147483647 (a byte less than 2 GiB)")
        }
        _ => return None,
    };
    (!good).then_some(expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_beyond_a_limit_is_refused_and_not_bent() {
        let refused = |text: &str| Options::default().set(text, false).is_err();
        for bad in [
            "base_port=70000",
            "base_port=0",
            "base_port=-1",
            "gcs.vote_policy=256",
            "gcs.vote_policy=-1",
            "gmcast.segment=-1",
            "quorate.autorejoin_tries=-1",
            "quorate.cert_window=15",
            "repl.max_ws_size=2G",
            "quorate.disk_stall_timeout=0",
            "quorate.election_timeout=PT0S",
            "quorate.flow_control_applied=-1",
            "quorate.priority=101",
            "quorate.segment_size=64",
            "quorate.segment_size=8E",
            "pc.weight=256",
        ] {
            assert!(refused(bad), "{bad}");
        }
        let good = "base_port=1;gcs.vote_policy=255;gmcast.segment=255;quorate.cert_window=16;\
                    quorate.segment_size=64K;quorate.election_timeout=0.1;pc.weight=0";
        Options::default().set(good, false).unwrap();
    }

    #[test]
    fn a_member_is_not_silent_before_it_has_missed_heartbeats() {
        let mut options = Options::default();
        for bad in ["0", "PT0.3S"] {
            let error = options.set(&format!("evs.suspect_timeout={bad}"), true).unwrap_err();
            assert!(error.to_string().contains("two heartbeats"), "{error}");
        }
        options.set("evs.suspect_timeout=PT0.4S", true).unwrap();
        let longer = "quorate.election_timeout=PT10S";
        assert!(Options::default()
            .set(&format!("{longer};evs.suspect_timeout=PT3S"), false)
            .is_err());
        Options::default().set(&format!("evs.suspect_timeout=PT4S;{longer}"), false).unwrap();
        let mut options = Options::default();
        options.set("quorate.election_timeout=PT20S", false).unwrap();
        assert_eq!(options.text("evs.suspect_timeout"), "PT8S");
        options.set(&options.render(), true).unwrap();
    }
}
