//! Connecting to the group and leaving it.

use crate::address::{host_of, parse_url, with_port, BadUrl};
use crate::grastate::Grastate;
use crate::link::Link;
use crate::node::{LocalState, Node, Position};
use crate::queue::Event;
use crate::sequenced::Sequenced;
use crate::sequencer::Sequencer;
use quorate_certify::Certifier;
use quorate_consensus::MemberId;
use quorate_group::{Group, GroupError, GroupOptions, LogLevel, Observer, OpenInfo};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// How long a node tries to take leave before it just stops (and stays a voter).
pub const LEAVE_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error(transparent)]
    Url(#[from] BadUrl),
    #[error(transparent)]
    Option(#[from] crate::options::OptionError),
    #[error("this node is connected to a group already")]
    Connected,
    #[error("{0}")]
    Directory(String),
    #[error(transparent)]
    Group(#[from] GroupError),
}

/// The arguments of the interface's `connect`.
pub struct ConnectArgs<'a> {
    pub cluster: &'a str,
    pub url: &'a str,
    pub donor: &'a str,
    pub bootstrap: bool,
}

impl Node {
    /// Returns when this node belongs to a group (or may wait for its group's majority on a recv
    /// thread).
    pub fn connect(self: &Arc<Self>, args: &ConnectArgs<'_>) -> Result<(), ConnectError> {
        if self.link().is_some_and(|l| !l.closing()) {
            return Err(ConnectError::Connected);
        }
        let options = self.group_options(args)?;
        let wait = self.options.lock().period("pc.wait_prim_timeout");
        self.info(&format!(
            "Quorate {}: group '{}', log directory {}, group address {}",
            env!("CARGO_PKG_VERSION"),
            options.group_name,
            options.dir.display(),
            options.advertise
        ));
        let bootstrap = options.bootstrap;
        let observer = Arc::new(NodeObserver(Arc::downgrade(self)));
        let (group, info) = Group::open(options, observer)?;
        let group = Arc::new(group);
        self.tell_group(&group);
        if let Err(e) = self.join_and_start(&group, &info, bootstrap, wait, args.donor) {
            self.set_link(None);
            group.close();
            return Err(e);
        }
        Ok(())
    }

    fn join_and_start(
        self: &Arc<Self>,
        group: &Arc<Group>,
        info: &OpenInfo,
        bootstrap: bool,
        wait: Duration,
        donor: &str,
    ) -> Result<(), ConnectError> {
        if info.fresh && !bootstrap {
            group.wait_joined(wait)?;
        }
        let history = group.group_id();
        self.check_same_history(info, history)?;
        self.transfer.begin_connection(donor);
        if let Some(start) = self.start_position(info, history, bootstrap) {
            let mut covers = |_index: u64, snapshot: &bytes::Bytes| {
                snapshot_position(snapshot).is_some_and(|at| at <= start)
            };
            match self.start(group, info, history, Some(start), &mut covers) {
                Err(GroupError::NeedsStateTransfer { .. }) => {}
                done => return Ok(done?),
            }
        }
        // Nothing reaches back to this database: begin at the newest point, and fetch the state.
        Ok(self.start(group, info, history, None, &mut |_, _| true)?)
    }

    fn start(
        self: &Arc<Self>,
        group: &Arc<Group>,
        info: &OpenInfo,
        history: u128,
        start: Option<i64>,
        accept: &mut dyn FnMut(u64, &bytes::Bytes) -> bool,
    ) -> Result<(), GroupError> {
        let link =
            Arc::new(Link::new(group.clone(), history, info.member, info.incarnation, start));
        self.commit.set_position(start.unwrap_or(-1));
        self.apply.set_position(start.unwrap_or(-1));
        self.isolated.open(history, start);
        self.desk.begin_connection();
        if let Some(position) = start {
            self.errors_noted(self.failed.open(history, position));
        }
        self.queue.open();
        self.queue.push(Event::Connect);
        self.set_link(Some(link.clone()));
        let window = self.options.lock().integer("quorate.cert_window").clamp(16, 1 << 20) as u32;
        let sequencer = Sequencer::new(self.clone(), link, Certifier::new(window));
        group.start(Box::new(sequencer), accept).map(|_| ())
    }

    /// Refuses a log that is of another group than the database: one of the two was swapped.
    fn check_same_history(&self, info: &OpenInfo, history: u128) -> Result<(), ConnectError> {
        match self.config.start {
            Some(start) if !info.fresh && start.uuid != history => {
                Err(ConnectError::Directory(format!(
                    "the log directory {} belongs to group {}, but the database in {} to group {}: \
                     one of them is not this node's. Nothing was changed. Correct quorate.dir in \
                     wsrep_provider_options, or, to make this node a new member, move both aside",
                    self.options.lock().text("quorate.dir"),
                    MemberId(history),
                    self.config.data_dir.display(),
                    MemberId(start.uuid),
                )))
            }
            _ => Ok(()),
        }
    }

    /// Where this node's database stands in the group's history, if it is known to.
    fn start_position(&self, info: &OpenInfo, history: u128, bootstrap: bool) -> Option<i64> {
        if info.fresh && bootstrap {
            return Some(0);
        }
        let saved = Grastate::read(&self.config.data_dir).map(|g| g.position);
        if saved.is_some_and(|p| p.uuid == 0) {
            self.info("grastate.dat says that this node's data is not to be gone on with");
            return None;
        }
        let known = |p: &Position| p.uuid == history && p.seqno >= 0;
        let found = self.config.start.filter(known).or(saved.filter(known));
        match found {
            Some(p) => {
                self.info(&format!("This node's database is at seqno {}", p.seqno));
                Some(p.seqno)
            }
            None => {
                self.info("This node's position in the group's history is not known");
                None
            }
        }
    }

    fn group_options(&self, args: &ConnectArgs<'_>) -> Result<GroupOptions, ConnectError> {
        let mut options = self.options.lock();
        let url = parse_url(args.url, options.integer("base_port") as u16)?;
        options.set(&url.options, false)?;
        let port = options.integer("base_port") as u16;
        let own = [options.text("base_host"), &self.config.address]
            .into_iter()
            .find(|a| !a.is_empty())
            .unwrap_or("127.0.0.1")
            .to_string();
        let advertise = with_port(&own, port).ok_or_else(|| BadUrl::Form(own.clone()))?;
        let listen = match options.text("gmcast.listen_addr") {
            "" => format!("0.0.0.0:{}", advertise.rsplit_once(':').map_or("4567", |(_, p)| p)),
            given => with_port(given, port).ok_or_else(|| BadUrl::Form(given.to_string()))?,
        };
        options.learn("base_host", host_of(&advertise).to_string());
        let dir = match options.text("quorate.dir") {
            "" => default_dir(&self.config.data_dir),
            given => PathBuf::from(given),
        };
        prepare_dir(&dir, &self.config.data_dir)?;
        options.learn("quorate.dir", dir.display().to_string());
        let defaults = GroupOptions::new(dir, args.cluster, &advertise);
        Ok(GroupOptions {
            seeds: url.seeds.into_iter().filter(|s| *s != advertise).collect(),
            listen,
            bootstrap: args.bootstrap,
            name: self.config.name.clone(),
            incoming: self.config.incoming.clone(),
            election_timeout: options.period("quorate.election_timeout"),
            primary_timeout: options.period("quorate.primary_timeout"),
            suspect_timeout: options.period("evs.suspect_timeout"),
            segment_bytes: options.bytes("quorate.segment_size"),
            retain_bytes: options.bytes("quorate.log_retain"),
            // What is allowed now (repl.max_ws_size) is checked for each write set.
            proposal_bytes_max: 1 << 31,
            ..defaults
        })
    }

    /// Takes leave of the group; the recv threads see the final view and end.
    pub fn disconnect(&self) {
        let Some(link) = self.link() else { return };
        link.begin_closing();
        link.nudge_all();
        self.transfer.wake();
        self.desk.wake();
        if self.local_state() == LocalState::Error {
            // The final view is under way already.
            return;
        }
        if let Err(e) = link.group.leave(LEAVE_TIMEOUT) {
            self.warn(&format!(
                "Left without taking leave ({e}): this node stays a voter of the group until it returns or is removed"
            ));
        }
        self.queue.push(Event::Final);
    }

    /// Ends everything; idempotent.
    pub fn free(&self) {
        if let Some(link) = self.set_link(None) {
            link.begin_closing();
            link.nudge_all();
            self.transfer.wake();
            self.desk.wake();
            link.group.close();
            self.queue.close();
        }
    }
}

/// The seqno that a sequencer snapshot stands for; an empty one is the beginning.
fn snapshot_position(snapshot: &[u8]) -> Option<i64> {
    if snapshot.is_empty() {
        return Some(0);
    }
    Sequenced::restore(snapshot).ok().map(|s| s.certifier.seqno())
}

/// Beside the data directory: state transfer scripts wipe what is inside it.
fn default_dir(data_dir: &Path) -> PathBuf {
    let real = std::fs::canonicalize(data_dir).unwrap_or_else(|_| data_dir.to_path_buf());
    let mut name = real.file_name().map_or_else(|| "data".into(), |n| n.to_os_string());
    name.push("-quorate");
    real.with_file_name(name)
}

fn prepare_dir(dir: &Path, data_dir: &Path) -> Result<(), ConnectError> {
    let fail = |what: String| {
        ConnectError::Directory(format!(
            "the group log's directory {} {what}: set quorate.dir in wsrep_provider_options to a directory \
             outside the data directory that the server's user may write to",
            dir.display()
        ))
    };
    // The log holds all rows ever written: for the server's user alone.
    let mut builder = std::fs::DirBuilder::new();
    builder
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .map_err(|e| fail(format!("cannot be created ({e})")))?;
    let real = std::fs::canonicalize(dir).map_err(|e| fail(format!("cannot be read ({e})")))?;
    let data = std::fs::canonicalize(data_dir).unwrap_or_else(|_| data_dir.to_path_buf());
    if real.starts_with(&data) {
        return Err(fail(
            "is inside the server's data directory, which state transfers wipe".into(),
        ));
    }
    Ok(())
}

/// What the group tells a node outside of the log.
struct NodeObserver(Weak<Node>);

impl Observer for NodeObserver {
    fn leader(&self, _term: u64, _leader: Option<MemberId>) {}

    fn primary(&self, primary: bool) {
        let Some(node) = self.0.upgrade() else { return };
        let Some(link) = node.link() else { return };
        link.set_primary(primary);
        if !primary {
            node.queue.push(Event::NonPrimary);
        }
    }

    fn fatal(&self, message: String) {
        let Some(node) = self.0.upgrade() else { return };
        node.error(&message);
        if let Some(link) = node.link() {
            link.set_primary(false);
            node.queue.push(Event::NonPrimary);
        }
    }

    fn log(&self, level: LogLevel, message: String) {
        let Some(node) = self.0.upgrade() else { return };
        match level {
            LogLevel::Error => node.error(&message),
            LogLevel::Warn => node.warn(&message),
            LogLevel::Info => node.info(&message),
            LogLevel::Debug if node.options.lock().flag("debug") => node.info(&message),
            LogLevel::Debug => {}
        }
    }
}
