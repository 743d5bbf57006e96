//! Provider options: one table makes the parser, `options_get` and `docs/options.md`.
//!
//! Galera's names are kept where they mean something here, accepted and listed as ignored where
//! they do not, so that a Galera command line works unchanged. A name that is in neither list is
//! refused.

use crate::exit::parse_exit_action;
use crate::operator::{parse_failover, parse_primaries, parse_role};
use quorate_consensus::WEIGHT_MAX;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// What becomes of an option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// Read at connect (or at init).
    Start,
    /// May be changed at any time.
    Live,
    /// Carried out when it is set on a running node (command.rs); keeps no value.
    Command,
    /// A Galera option without a meaning here: accepted, shown, ignored.
    Ignored,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Text,
    Bool,
    Integer,
    /// Bytes, with K, M, G or T.
    Size,
    /// ISO 8601 (`PT5S`) or plain seconds.
    Period,
}

pub struct Spec {
    pub name: &'static str,
    pub kind: Kind,
    pub default: &'static str,
    pub effect: Effect,
    pub doc: &'static str,
}

use Effect::{Command, Ignored, Live, Start};
use Kind::{Bool, Integer, Period, Size, Text};

const fn spec(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    effect: Effect,
    doc: &'static str,
) -> Spec {
    Spec { name, kind, default, effect, doc }
}

/// All options, sorted by name.
pub const SPECS: &[Spec] = &[
    spec("base_dir", Text, "", Ignored, "Galera's working directory."),
    spec("base_host", Text, "", Start, "Address of this node for the group, if not given otherwise."),
    spec("base_port", Integer, "4567", Start, "Group port, if not given with an address."),
    spec("cert.length_check", Integer, "127", Ignored, "See quorate.cert_window."),
    spec("cert.log_conflicts", Bool, "no", Live, "Log each write set that fails certification."),
    spec("cert.max_length", Integer, "16384", Ignored, "See quorate.cert_window."),
    spec("cert.optimistic_pa", Bool, "yes", Ignored, "Galera's optimistic parallel applying."),
    spec("debug", Bool, "no", Live, "Log debug messages."),
    spec("evs.auto_evict", Integer, "0", Ignored, "Galera's automatic eviction."),
    spec("evs.causal_keepalive_period", Period, "PT1S", Ignored, "Galera group protocol internals."),
    spec("evs.debug_log_mask", Text, "0x1", Ignored, "Galera group protocol internals."),
    spec("evs.delay_margin", Period, "PT1S", Ignored, "Galera group protocol internals."),
    spec("evs.delayed_keep_period", Period, "PT30S", Ignored, "Galera group protocol internals."),
    spec("evs.inactive_check_period", Period, "PT0.5S", Ignored, "Galera group protocol internals."),
    spec("evs.inactive_timeout", Period, "PT15S", Ignored, "See evs.suspect_timeout: no agreement of the others is needed."),
    spec("evs.info_log_mask", Text, "0", Ignored, "Galera group protocol internals."),
    spec("evs.install_timeout", Period, "PT7.5S", Ignored, "Galera group protocol internals."),
    spec("evs.join_retrans_period", Period, "PT1S", Ignored, "Galera group protocol internals."),
    spec("evs.keepalive_period", Period, "PT1S", Ignored, "Heartbeats: a fifth of quorate.election_timeout."),
    spec("evs.max_install_timeouts", Integer, "3", Ignored, "Galera group protocol internals."),
    spec("evs.send_window", Integer, "4", Ignored, "Galera group protocol internals."),
    spec("evs.stats_report_period", Period, "PT1M", Ignored, "Galera group protocol internals."),
    spec("evs.suspect_timeout", Period, "PT5S", Live, "Silence after which a member leaves the view (it keeps its vote). A process that is gone leaves it at once."),
    spec("evs.use_aggregate", Bool, "true", Ignored, "Galera group protocol internals."),
    spec("evs.user_send_window", Integer, "2", Ignored, "Galera group protocol internals."),
    spec("evs.version", Integer, "1", Ignored, "Galera group protocol internals."),
    spec("evs.view_forget_timeout", Period, "P1D", Ignored, "Galera group protocol internals."),
    spec("gcache.dir", Text, "", Ignored, "Galera's write-set cache; see quorate.dir."),
    spec("gcache.freeze_purge_at_seqno", Integer, "-1", Ignored, "See quorate.log_retain."),
    spec("gcache.keep_pages_size", Size, "0", Ignored, "Galera's write-set cache."),
    spec("gcache.keep_plaintext_size", Size, "128M", Ignored, "Galera's write-set cache."),
    spec("gcache.mem_size", Size, "0", Ignored, "Galera's write-set cache."),
    spec("gcache.name", Text, "galera.cache", Ignored, "Galera's write-set cache."),
    spec("gcache.page_size", Size, "128M", Ignored, "Galera's write-set cache."),
    spec("gcache.recover", Bool, "yes", Ignored, "The log always recovers."),
    spec("gcache.size", Size, "128M", Ignored, "Galera's write-set cache; see quorate.log_retain."),
    spec("gcs.fc_debug", Integer, "0", Ignored, "No flow control: a slow member delays nobody."),
    spec("gcs.fc_factor", Text, "1.0", Ignored, "No flow control: a slow member delays nobody."),
    spec("gcs.fc_limit", Integer, "16", Ignored, "No flow control: a slow member delays nobody."),
    spec("gcs.fc_master_slave", Bool, "no", Ignored, "No flow control: a slow member delays nobody."),
    spec("gcs.fc_single_primary", Bool, "no", Ignored, "No flow control: a slow member delays nobody."),
    spec("gcs.max_packet_size", Integer, "64500", Ignored, "Galera transport internals."),
    spec("gcs.max_throttle", Text, "0.25", Ignored, "No flow control: a slow member delays nobody."),
    spec("gcs.recv_q_hard_limit", Size, "9223372036854775807", Ignored, "Memory is bounded, the rest waits in the log."),
    spec("gcs.recv_q_soft_limit", Text, "0.25", Ignored, "Memory is bounded, the rest waits in the log."),
    spec("gcs.stateless", Bool, "no", Ignored, "Galera's arbitrator mode."),
    spec("gcs.sync_donor", Bool, "no", Ignored, "No flow control: a donor delays nobody."),
    spec("gcs.vote_policy", Integer, "0", Start, "So many successes decide a vote on an error; 0: the majority decides."),
    spec("gmcast.group", Text, "", Ignored, "See wsrep_cluster_name."),
    spec("gmcast.isolate", Integer, "0", Live, "1: this node is cut off from the others, as by a broken network; 0: it may connect again; 2: cut off until a restart."),
    spec("gmcast.listen_addr", Text, "", Start, "Where to listen, tcp://host:port (default: the group port on all addresses)."),
    spec("gmcast.mcast_addr", Text, "", Ignored, "No multicast."),
    spec("gmcast.mcast_ttl", Integer, "1", Ignored, "No multicast."),
    spec("gmcast.peer_timeout", Period, "PT3S", Ignored, "Galera group protocol internals."),
    spec("gmcast.segment", Integer, "0", Start, "The zone (data centre) of a node that joins: 'segment-N', none for 0; see quorate.zone."),
    spec("gmcast.time_wait", Period, "PT5S", Ignored, "Galera group protocol internals."),
    spec("gmcast.version", Integer, "0", Ignored, "Galera group protocol internals."),
    spec("ist.recv_addr", Text, "", Ignored, "Catching up uses the group connections."),
    spec("ist.recv_bind", Text, "", Ignored, "Catching up uses the group connections."),
    spec("pc.announce_timeout", Period, "PT3S", Ignored, "Galera group protocol internals."),
    spec("pc.bootstrap", Bool, "", Command, "Go on without the other one of two nodes, whose server has ended. Refused where it could lose acknowledged commits; with a quorum it does nothing."),
    spec("pc.checksum", Bool, "false", Ignored, "Frames are always checksummed."),
    spec("pc.ignore_quorum", Bool, "false", Ignored, "Never: it would lose acknowledged commits. See pc.ignore_sb."),
    spec("pc.ignore_sb", Bool, "false", Live, "One of two nodes goes on alone when the other one's server has ended: its host refuses connections. Silence is not enough, for over a cut network both would go on. More nodes need no such thing."),
    spec("pc.linger", Period, "PT20S", Ignored, "Galera group protocol internals."),
    spec("pc.npvo", Bool, "false", Ignored, "Galera group protocol internals."),
    spec("pc.recovery", Bool, "true", Ignored, "The log always recovers."),
    spec("pc.version", Integer, "0", Ignored, "Galera group protocol internals."),
    spec("pc.wait_prim", Bool, "true", Ignored, "See pc.wait_prim_timeout."),
    spec("pc.wait_prim_timeout", Period, "PT30S", Start, "How long a new member looks for its group before it gives up."),
    spec("pc.weight", Integer, "1", Live, "Votes of this node, 0 to 255: a majority is one of votes. Waits until the group has taken it over."),
    spec("protonet.backend", Text, "asio", Ignored, "Galera transport internals."),
    spec("protonet.version", Integer, "0", Ignored, "Galera transport internals."),
    spec("quorate.autorejoin_interval", Period, "PT10S", Live, "See quorate.autorejoin_tries."),
    spec("quorate.autorejoin_tries", Integer, "3", Live, "How many times, quorate.autorejoin_interval apart, a node looks for its group after quorate.unreachable_majority_timeout, before quorate.exit_action."),
    spec("quorate.cert_window", Integer, "16384", Start, "Write sets in the certification window. The founder's value holds for the whole group."),
    spec("quorate.dir", Text, "", Start, "Directory of the group log; default: the data directory's name with '-quorate' appended, beside it. Never inside the data directory."),
    spec("quorate.disk_stall_timeout", Period, "PT1S", Start, "A leader whose log disk makes no progress for so long hands over."),
    spec("quorate.election_timeout", Period, "PT1S", Start, "Silence of the leader after which another is elected."),
    spec("quorate.exit_action", Text, "read-only", Live, "What a node does that found no majority: read-only (stays non-Primary, looks on, returns by itself), offline (gives its connection and its vote up), abort (shuts the server down)."),
    spec("quorate.expel_timeout", Period, "PT0S", Start, "A voter gone for so long is removed, if the others have a majority without it; it is admitted again when it returns. 0: never."),
    spec("quorate.force_plan", Text, "", Command, "What quorate.force_quorum would do with these members (`NAME,NAME`): see wsrep_quorate_last_answer. Changes nothing."),
    spec("quorate.force_quorum", Text, "", Command, "A majority is lost for good: these members go on (`NAME,NAME: REASON`). Refused while a majority may be alive."),
    spec("quorate.leader_follows_writes", Bool, "no", Start, "A founder's choice: leadership goes to the node that all writes come from; later: quorate.rules."),
    spec("quorate.log_retain", Size, "1G", Start, "Group log kept for members that come back."),
    spec("quorate.member_remove", Text, "", Command, "Removes the member of this name; set it on the leader."),
    spec("quorate.member_set", Text, "", Command, "Changes a member (`NAME role=voter|learner weight=0..100 zone=ZONE`); set it on the leader."),
    spec("quorate.primary_failover", Text, "serve", Start, "A founder's choice, with a single primary: a new one takes writes at once (serve), or when it has applied its backlog (wait); later: quorate.rules."),
    spec("quorate.primary_mode", Text, "multi", Start, "A founder's choice: every node takes writes (multi), or the leader alone (single), the others are read_only; later: quorate.rules."),
    spec("quorate.primary_timeout", Period, "PT5S", Start, "Without a leader for this long, the node reports non-Primary."),
    spec("quorate.queue_bytes", Size, "256M", Start, "Memory for write sets that wait for the appliers; the rest waits in the log."),
    spec("quorate.role", Text, "voter", Start, "What a server that joins for the first time becomes: voter, or learner (data, no vote)."),
    spec("quorate.rules", Text, "", Command, "What holds for the group (`zones=N weights=optimistic|forced primary_mode=multi|single primary_failover=serve|wait leader_follows_writes=yes|no`); set it on the leader."),
    spec("quorate.segment_size", Size, "64M", Start, "Size of one file of the group log."),
    spec("quorate.switchover", Text, "", Command, "Hands leadership to the node of this name (`any`: to whoever is furthest); set it on the leader."),
    spec("quorate.transfer_holds_ddl", Bool, "yes", Live, "While this node sends its state to another, DDL waits here until that is over. 'no' lets it run, at the risk that the other node cannot read the tables that it changed, and has to fetch the state again."),
    spec("quorate.unreachable_majority_timeout", Period, "PT0S", Live, "A node without a majority for so long becomes read_only, and does as quorate.exit_action says if that stays so. 0: it waits for as long as it takes."),
    spec("quorate.weight", Integer, "50", Start, "Who leads rather, 0 (never) to 100, for a server that joins for the first time; later: quorate.member_set."),
    spec("quorate.zone", Text, "", Start, "The data centre that a server stands in, when it joins for the first time; later: quorate.member_set."),
    spec("repl.causal_read_timeout", Period, "PT30S", Live, "How long wsrep_sync_wait waits."),
    spec("repl.commit_order", Integer, "3", Ignored, "Commit order is always strict."),
    spec("repl.key_format", Text, "FLAT8", Ignored, "Keys are hashed to 64 bits."),
    spec("repl.max_ws_size", Size, "2147483647", Live, "Largest write set."),
    spec("repl.proto_max", Integer, "11", Ignored, "Galera protocol versions."),
    spec("socket.checksum", Integer, "2", Ignored, "Frames always carry CRC32C."),
    spec("socket.dynamic", Bool, "no", Start, "With socket.ssl: plain connections are accepted and tried, too, while a group is switched over node by node."),
    spec("socket.recv_buf_size", Text, "auto", Ignored, "The kernel chooses."),
    spec("socket.send_buf_size", Text, "auto", Ignored, "The kernel chooses."),
    spec("socket.ssl", Bool, "no", Start, "Encrypts the group's connections (TLS 1.2 or 1.3); nodes know each other by certificate. On if a key or certificate is given."),
    spec("socket.ssl_ca", Text, "", Start, "Who signs the nodes' certificates (PEM); default: socket.ssl_cert, which all nodes then share."),
    spec("socket.ssl_cert", Text, "", Start, "This node's certificate (PEM, X.509 version 3)."),
    spec("socket.ssl_cipher", Text, "", Ignored, "The strongest that both sides know."),
    spec("socket.ssl_compression", Bool, "yes", Ignored, "No compression of TLS."),
    spec("socket.ssl_key", Text, "", Start, "The certificate's private key (PEM, not encrypted)."),
    spec("socket.ssl_password_file", Text, "", Start, "Keys must not be encrypted: refused."),
    spec("socket.ssl_reload", Bool, "no", Command, "Reads the certificates again, for new connections; FLUSH SSL does it."),
];

/// An option string that cannot be used; nothing was changed.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum OptionError {
    #[error(
        "Unknown parameter '{name}' in wsrep_provider_options: neither Quorate's nor Galera's{hint}"
    )]
    Unknown { name: String, hint: String },
    #[error("wsrep_provider_options: '{name} = {value}' is not {expected}")]
    BadValue { name: String, value: String, expected: &'static str },
    #[error("wsrep_provider_options: '{text}' is not of the form name=value")]
    NotAPair { text: String },
    #[error(
        "wsrep_provider_options: socket.ssl needs both socket.ssl_cert and socket.ssl_key. Nothing was \
         started, so that nothing travels in the clear unexpectedly: add them, or set socket.ssl=no"
    )]
    NoCertificate,
    #[error(
        "wsrep_provider_options: socket.ssl_password_file is given, but encrypted private keys are not \
         read. Store the key in the clear (openssl pkey -in KEY -out NEW), readable for the server's \
         user alone, and remove the option; nothing was started"
    )]
    EncryptedKey,
    #[error("wsrep_provider_options: '{name}' cannot be changed while the server runs: set it in the configuration file and restart the node")]
    NotLive { name: String },
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
    /// Those that were given, whatever their value.
    given: BTreeSet<&'static str>,
}

impl Default for Options {
    fn default() -> Self {
        let values = SPECS.iter().map(|s| (s.name, s.default.to_string())).collect();
        Self { values, ignored: Vec::new(), given: BTreeSet::new() }
    }
}

impl Options {
    /// Parses `name=value; name=value`; all or nothing. With `running`, only live ones may change.
    /// Gives back the commands among them, to be carried out now.
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
                Some(spec) => commands.push((spec.name, value.to_string())),
            }
        }
        next.tls()?;
        *self = next;
        Ok(commands)
    }

    fn set_one(&mut self, name: &str, value: &str, running: bool) -> Result<(), OptionError> {
        let spec = find(name).ok_or_else(|| unknown(name))?;
        check_value(spec, value)?;
        if let Some(expected) = words_instead(spec.name, value) {
            let (name, value) = (name.into(), value.into());
            return Err(OptionError::BadValue { name, value, expected });
        }
        if spec.name == "quorate.weight" && !value.parse().is_ok_and(|w: u8| w <= WEIGHT_MAX) {
            let (name, value) = (name.into(), value.into());
            return Err(OptionError::BadValue { name, value, expected: "a number from 0 to 100" });
        }
        if spec.name == "pc.weight" && value.parse::<u8>().is_err() {
            let (name, value) = (name.into(), value.into());
            return Err(OptionError::BadValue { name, value, expected: "a number from 0 to 255" });
        }
        if running && spec.effect == Start && self.text(spec.name) != value {
            return Err(OptionError::NotLive { name: name.to_string() });
        }
        if spec.effect == Ignored && !self.ignored.contains(&spec.name) {
            self.ignored.push(spec.name);
        }
        self.given.insert(spec.name);
        self.values.insert(spec.name, value.to_string());
        Ok(())
    }

    /// Whatever its value.
    pub fn was_given(&self, name: &str) -> bool {
        self.given.contains(name)
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
        "# Provider options\n\nGiven in `wsrep_provider_options` as `name=value;name=value`. \
         This page is made from the table in `crates/quorate-provider/src/options.rs`.\n\n",
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
    let near = SPECS.iter().map(|s| (distance(s.name, name), s.name)).min();
    let hint = match near {
        Some((d, best)) if d <= 3 => format!(" (did you mean '{best}'?)"),
        _ => " (docs/options.md lists them)".to_string(),
    };
    OptionError::Unknown { name: name.to_string(), hint }
}

/// What an option of certain words takes, if that is not this value.
fn words_instead(name: &str, value: &str) -> Option<&'static str> {
    let (good, expected) = match name {
        "gmcast.isolate" => (matches!(value, "0" | "1" | "2"), "0, 1 or 2"),
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

fn check_value(spec: &Spec, value: &str) -> Result<(), OptionError> {
    let expected = match spec.kind {
        Text => return Ok(()),
        Bool if parse_bool(value).is_some() => return Ok(()),
        Bool => "a yes or no",
        Integer if value.parse::<i64>().is_ok() => return Ok(()),
        Integer => "a whole number",
        Size if parse_size(value).is_some() => return Ok(()),
        Size => "a size (a whole number, perhaps with K, M, G or T)",
        Period if parse_period(value).is_some() => return Ok(()),
        Period => "a period (ISO 8601 like PT5S or PT0.5S, or seconds)",
    };
    Err(OptionError::BadValue { name: spec.name.into(), value: value.into(), expected })
}

pub fn parse_bool(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "yes" | "true" | "on" | "1" | "y" => Some(true),
        "no" | "false" | "off" | "0" | "n" => Some(false),
        _ => None,
    }
}

fn parse_size(text: &str) -> Option<u64> {
    let (digits, shift) = match text.chars().last()?.to_ascii_uppercase() {
        'K' => (&text[..text.len() - 1], 10),
        'M' => (&text[..text.len() - 1], 20),
        'G' => (&text[..text.len() - 1], 30),
        'T' => (&text[..text.len() - 1], 40),
        'P' => (&text[..text.len() - 1], 50),
        'E' => (&text[..text.len() - 1], 60),
        _ => (text, 0),
    };
    let value: u64 = digits.parse().ok()?;
    Some(value.checked_shl(shift).filter(|v| v >> shift == value).unwrap_or(u64::MAX))
}

/// `P[nD][T[nH][nM][n.nS]]`, or plain seconds.
fn parse_period(text: &str) -> Option<Duration> {
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let mut rest = text.strip_prefix('P')?;
    let mut seconds = 0.0;
    let mut in_time = false;
    let mut any = false;
    while !rest.is_empty() {
        if let Some(r) = rest.strip_prefix('T') {
            in_time = true;
            rest = r;
            continue;
        }
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let value: f64 = rest[..end].parse().ok()?;
        let unit = match (rest.as_bytes()[end], in_time) {
            (b'D', false) => 86_400.0,
            (b'H', true) => 3_600.0,
            (b'M', true) => 60.0,
            (b'S', true) => 1.0,
            _ => return None,
        };
        seconds += value * unit;
        any = true;
        rest = &rest[end + 1..];
    }
    Duration::try_from_secs_f64(seconds).ok().filter(|_| any)
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
    use super::*;

    #[test]
    fn the_table_is_sorted_and_its_defaults_are_valid() {
        assert!(SPECS.windows(2).all(|w| w[0].name < w[1].name));
        for s in SPECS.iter().filter(|s| !s.default.is_empty()) {
            assert_eq!(check_value(s, s.default), Ok(()), "{}", s.name);
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
    }

    #[test]
    fn isolation_has_three_degrees() {
        let mut o = Options::default();
        assert!(o.set("gmcast.isolate=3", true).is_err());
        o.set("gmcast.isolate = 1", true).unwrap();
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
    fn the_options_page_is_current() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/options.md");
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(page, render_docs()).unwrap();
        }
        let text = std::fs::read_to_string(page).unwrap_or_default();
        assert!(text == render_docs(), "run UPDATE_DOCS=1 cargo test -p quorate-provider options");
    }
}
