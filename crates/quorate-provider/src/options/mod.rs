//! Provider options: one table makes the parser, `options_get` and `docs/options.md`.
//!
//! Galera's names are kept where they mean something here, accepted and listed as ignored where
//! they do not, so that a Galera command line works unchanged. A name that is in neither list is
//! refused.

mod at_rest;
mod begun;
mod check;
mod settings;
mod table;
pub mod values;

pub use at_rest::ServerEncryption;
pub use table::{Effect, Kind, Spec, SPECS};

use self::check::check;
use self::values::{parse_bool, parse_period, parse_size};
use quorate_live::{page, Operators, Security, SecurityError};
use std::collections::BTreeMap;
use std::time::Duration;
use Effect::{Command, Ignored, Live, Start};
use Kind::Bool;

/// An option string that cannot be used; nothing was changed.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum OptionError {
    #[error(
        "Unknown parameter '{name}' in wsrep_provider_options: neither Quorate's nor Galera's{hint}"
    )]
    Unknown { name: String, hint: String },
    #[error("wsrep_provider_options: '{name} = {value}' is not {expected}")]
    BadValue { name: String, value: String, expected: &'static str },
    #[error(
        "wsrep_provider_options: 'evs.suspect_timeout = {value}' is less than {least:?}, two heartbeats (two fifths of \
         quorate.election_timeout): members would leave the view and return all the time"
    )]
    Silence { value: String, least: Duration },
    #[error("wsrep_provider_options: '{text}' is not of the form name=value")]
    NotAPair { text: String },
    #[error(transparent)]
    Security(#[from] SecurityError),
    #[error("wsrep_provider_options: quorate.operators is NAME[:read],NAME[:read],... or none: {reason}")]
    BadOperators { reason: String },
    #[error("wsrep_provider_options: '{name}' cannot be changed while the server runs: set it in the configuration file and restart the node")]
    NotLive { name: String },
    #[error(
        "wsrep_cluster_address: '{name}' is '{present}' and cannot be changed while the server runs. Nothing was \
         changed, no data is affected, and this node is not connected to its group. Take the option out of the \
         address to connect it; or set it in the configuration file, and restart the node"
    )]
    Begun { name: String, present: String },
    #[error("wsrep_provider_options: '{name}' is a command for a running node: SET GLOBAL wsrep_provider_options = '{name}=...'; take it out of the configuration file")]
    OnlyLive { name: String },
}

/// A command and its argument.
pub type GivenCommand = (&'static str, String);

/// The options of one node.
#[derive(Clone, Debug)]
pub struct Options {
    values: BTreeMap<&'static str, String>,
    /// Accepted Galera options without an effect, in the order given.
    pub ignored: Vec<&'static str>,
    /// Those that were given, as they were: of some the node has learnt another value since.
    given: BTreeMap<&'static str, String>,
    /// What is read at the start has been read.
    begun: bool,
}

impl Default for Options {
    fn default() -> Self {
        let values = SPECS.iter().map(|s| (s.name, s.default.to_string())).collect();
        Self { values, ignored: Vec::new(), given: BTreeMap::new(), begun: false }
    }
}

impl Options {
    /// Parses `name=value; name=value`; all or nothing. With `running`, or once the node has begun, only live
    /// ones may change. Gives back the commands among them, to be carried out now; there are none unless
    /// `running`.
    pub fn set(&mut self, text: &str, running: bool) -> Result<Vec<GivenCommand>, OptionError> {
        let mut next = self.clone();
        let mut commands = Vec::new();
        for part in text.split(';').map(str::trim).filter(|p| !p.is_empty()) {
            let Some((name, value)) = part.split_once('=') else {
                return Err(OptionError::NotAPair { text: part.to_string() });
            };
            let (name, value) = (name.trim(), value.trim());
            match find(name).filter(|spec| spec.effect == Command) {
                None => next.set_one(name, value, running)?,
                // As options_get shows it: whoever sets all that it shows commands nothing.
                Some(_) if value.is_empty() => {}
                Some(spec) if spec.kind == Bool && parse_bool(value) == Some(false) => {}
                Some(_) if !running => return Err(OptionError::OnlyLive { name: name.into() }),
                Some(spec) => {
                    check(spec, value)?;
                    commands.push((spec.name, value.to_string()));
                }
            }
        }
        next.settle_silence()?;
        next.security()?;
        next.operators()?;
        *self = next;
        Ok(commands)
    }

    fn set_one(&mut self, name: &str, value: &str, running: bool) -> Result<(), OptionError> {
        let spec = find(name).ok_or_else(|| unknown(name))?;
        check(spec, value)?;
        if spec.effect == Start && (running || self.begun) {
            return self.check_same(spec.name, value, running);
        }
        if spec.effect == Ignored && !self.ignored.contains(&spec.name) {
            self.ignored.push(spec.name);
        }
        self.given.insert(spec.name, value.to_string());
        self.values.insert(spec.name, value.to_string());
        Ok(())
    }

    /// Of the options in this text, those that would change nothing though their values differ from what is shown.
    pub fn without_effect(&self, text: &str) -> Vec<&'static Spec> {
        let pairs = text.split(';').filter_map(|part| part.split_once('='));
        let changes = pairs.filter(|(name, value)| self.text(name.trim()) != value.trim());
        let specs = changes.filter_map(|(name, _)| find(name.trim()));
        specs.filter(|spec| spec.effect == Ignored).collect()
    }

    /// Whom this node believes.
    pub fn security(&self) -> Result<Security, OptionError> {
        Ok(Security::named(|name| Some(self.text(name)).filter(|_| self.was_given(name)))?)
    }

    /// Which operators are let in.
    pub fn operators(&self) -> Result<Operators, OptionError> {
        let text = self.text("quorate.operators");
        text.parse().map_err(|reason| OptionError::BadOperators { reason })
    }

    /// Whatever its value.
    pub fn was_given(&self, name: &str) -> bool {
        self.given.contains_key(name)
    }

    /// A value as the server set it or as the node learnt it (base_host and the like).
    pub fn learn(&mut self, name: &'static str, value: String) {
        debug_assert!(find(name).is_some());
        self.values.insert(name, value);
    }

    pub fn text(&self, name: &str) -> &str {
        self.values.get(name).map_or("", String::as_str)
    }

    pub fn flag(&self, name: &str) -> bool {
        parse_bool(self.text(name)).unwrap_or(false)
    }

    pub fn bytes(&self, name: &str) -> u64 {
        parse_size(self.text(name)).unwrap_or(0)
    }

    pub fn integer(&self, name: &str) -> i64 {
        self.text(name).parse().unwrap_or(0)
    }

    pub fn period(&self, name: &str) -> Duration {
        parse_period(self.text(name)).unwrap_or_default()
    }

    /// `key = value; key = value`, the form that tools parse.
    pub fn render(&self) -> String {
        let pairs: Vec<String> = self.values.iter().map(|(k, v)| format!("{k} = {v}")).collect();
        pairs.join("; ") + ";"
    }
}

/// `docs/options.md`, from the table.
pub fn render_docs() -> String {
    let mut out = String::from(
        "# Provider options\n\nSet them in `wsrep_provider_options`, as `name=value;name=value`. A time is `PT5S`, or `5` \
         for seconds. A size is a number of bytes, `64M` or `1G`.\n\nSome may be changed while the server runs: \
         `SET GLOBAL wsrep_provider_options = 'quorate.max_lag=5'`. That holds until the server is restarted. To keep the \
         value, put it into the configuration file, too (`quorate setup --option NAME=VALUE`).\n\nThis page is made from the table in `crates/quorate-provider/src/options/table.rs`.\n\n",
    );
    let section = |out: &mut String, title: &str, effect: Effect| {
        out.push_str(&format!("## {title}\n\n| option | default | meaning |\n|---|---|---|\n"));
        for s in SPECS.iter().filter(|s| s.effect == effect) {
            let default = if s.default.is_empty() { "–" } else { s.default };
            out.push_str(&format!("| `{}` | {} | {} |\n", s.name, default, s.doc));
        }
        out.push('\n');
    };
    section(&mut out, "Read when the node starts", Start);
    section(&mut out, "May be changed while it runs", Live);
    section(&mut out, "Commands, carried out when they are set on a running node", Command);
    section(&mut out, "Galera's, accepted and ignored", Ignored);
    out
}

fn find(name: &str) -> Option<&'static Spec> {
    SPECS.iter().find(|s| s.name == name)
}

fn unknown(name: &str) -> OptionError {
    const NEAR: usize = 3;
    // The difference of lengths is part of the distance, and told at once.
    let length = name.chars().count();
    let alike = SPECS.iter().filter(|s| s.name.len().abs_diff(length) <= NEAR);
    let near = alike.map(|s| (distance(s.name, name), s.name)).min();
    let hint = match near {
        Some((d, best)) if d <= NEAR => format!(" (did you mean '{best}'?)"),
        _ => concat!("; they are listed in ", page!("docs/options.md")).to_string(),
    };
    OptionError::Unknown { name: name.to_string(), hint }
}

/// Edit distance, for "did you mean".
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let cost = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = cost.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::values::{parse_retention, Retention};
    use super::*;

    #[test]
    fn the_table_is_sorted_and_its_defaults_are_valid() {
        assert!(SPECS.windows(2).all(|w| w[0].name < w[1].name));
        for s in SPECS.iter().filter(|s| !s.default.is_empty()) {
            assert_eq!(check(s, s.default), Ok(()), "{}", s.name);
        }
    }

    #[test]
    fn a_galera_command_line_is_accepted() {
        let mut o = Options::default();
        o.set(
            "base_port=4030; gcache.size=10M;evs.suspect_timeout=PT10S;;pc.ignore_sb = true",
            false,
        )
        .unwrap();
        assert_eq!(o.integer("base_port"), 4030);
        assert_eq!(o.period("evs.suspect_timeout"), Duration::from_secs(10));
        assert_eq!(o.ignored, ["gcache.size"]);
        assert!(o.flag("pc.ignore_sb"));
        assert!(o.render().contains("base_port = 4030; "));
        assert!(o.render().contains("gcache.size = 10M;"));
    }

    #[test]
    fn unknown_and_bad_options_change_nothing() {
        let mut o = Options::default();
        let e = o.set("base_port=1; quorate.dirr=/x", false).unwrap_err();
        assert!(e.to_string().contains("did you mean 'quorate.dir'"), "{e}");
        assert_eq!(o.integer("base_port"), 4567);
        assert!(o.set("base_port=abc", false).is_err());
        assert!(o.set("nonsense", false).is_err());
        assert!(matches!(o.set("quorate.dir=/y", true), Err(OptionError::NotLive { .. })));
        o.set("repl.max_ws_size=1M", true).unwrap();
        assert_eq!(o.bytes("repl.max_ws_size"), 1 << 20);
    }

    #[test]
    fn commands_are_for_running_nodes_and_keep_no_value() {
        let mut o = Options::default();
        let e = o.set("quorate.switchover=node2", false).unwrap_err();
        assert!(e.to_string().contains("SET GLOBAL"), "{e}");
        let given = o.set("quorate.switchover=node2; debug=yes", true).unwrap();
        assert_eq!(given, [("quorate.switchover", "node2".to_string())]);
        assert!(o.flag("debug"));
        let everything = o.render();
        assert_eq!(o.set(&everything, true).unwrap(), []);
        assert_eq!(o.security(), Ok(Security::ThisHost));
    }

    #[test]
    fn who_sets_what_has_no_effect_can_be_told() {
        let options = Options::default();
        let idle = |text| options.without_effect(text).iter().map(|s| s.name).collect::<Vec<_>>();
        assert_eq!(idle("pc.ignore_quorum = true; debug=yes; nonsense"), ["pc.ignore_quorum"]);
        assert!(idle(&options.render()).is_empty(), "what is shown and set again");
    }

    #[test]
    fn a_command_that_is_a_yes_or_no_takes_nothing_else() {
        let mut options = Options::default();
        for bad in ["pc.bootstrap=nope", "socket.ssl_reload=maybe"] {
            assert!(matches!(options.set(bad, true), Err(OptionError::BadValue { .. })), "{bad}");
        }
        assert_eq!(options.set("pc.bootstrap=1", true).unwrap().len(), 1);
        assert_eq!(options.set("pc.bootstrap=0", true), Ok(vec![]));
    }

    #[test]
    fn a_list_of_operators_is_read_or_refused_when_it_is_set() {
        let mut options = Options::default();
        options.set("quorate.operators=ann,bob:read", false).unwrap();
        assert_eq!(options.operators().unwrap().to_string(), "ann,bob:read");
        let error = options.set("quorate.operators=a b", true).unwrap_err().to_string();
        assert!(error.contains("quorate.operators") && error.contains("a b"), "{error}");
        assert_eq!(options.operators().unwrap().to_string(), "ann,bob:read");
    }

    #[test]
    fn isolation_has_three_degrees() {
        let mut o = Options::default();
        assert!(o.set("gmcast.isolate=3", true).is_err());
        o.set("gmcast.isolate = 1", true).unwrap();
    }

    #[test]
    fn the_log_is_kept_by_size_by_age_or_by_both() {
        let kept = |bytes, hours: Option<u64>| {
            Some(Retention { bytes, age: hours.map(|hours| Duration::from_secs(3600 * hours)) })
        };
        assert_eq!(parse_retention("2G"), kept(2 << 30, None));
        assert_eq!(parse_retention("PT6H"), kept(0, Some(6)));
        assert_eq!(parse_retention("1M,PT6H"), kept(1 << 20, Some(6)));
        assert_eq!(parse_retention("PT6H, 1M"), kept(1 << 20, Some(6)));
        for bad in ["", "1G,2G", "PT6H,PT6H", "1G PT6H", "six hours", "1G,"] {
            assert_eq!(parse_retention(bad), None, "{bad}");
        }
    }

    #[test]
    fn periods_are_iso_8601_or_seconds() {
        assert_eq!(parse_period("PT0.1S"), Some(Duration::from_millis(100)));
        assert_eq!(parse_period("P1DT1M"), Some(Duration::from_secs(86_460)));
        assert_eq!(parse_period("3"), Some(Duration::from_secs(3)));
        assert_eq!(parse_period("P"), None);
        assert_eq!(parse_period("PT5"), None);
        assert_eq!(parse_period("-1"), None);
    }

    #[test]
    fn no_period_goes_beyond_what_clocks_count() {
        for endless in ["9999999999999999999", "PT9999999999999999999S", "P1e9D", "P99999999D"] {
            assert_eq!(parse_period(endless), None, "{endless}");
        }
        let century = parse_period("P36525D").unwrap();
        assert!(std::time::Instant::now().checked_add(century).is_some());
    }

    #[test]
    fn the_options_page_is_current() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/options.md");
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(page, render_docs()).unwrap();
        }
        let text = std::fs::read_to_string(page).unwrap_or_default();
        assert!(text == render_docs(), "run UPDATE_DOCS=1 cargo test -p quorate-provider options");
    }
}
