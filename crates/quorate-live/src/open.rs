//! From a directory to a running member.

use crate::core::{
    mark, Alone, Answers, Arriving, Asks, Core, Gate, Hands, Notices, Snapshots, StartSender,
};
use crate::error::GroupError;
use crate::feeding::Feeding;
use crate::host::Observer;
use crate::live::Live;
use crate::net::dial::{dial, plain_line, Caller, DialError};
use crate::net::listener::Acceptor;
use crate::net::peer::Peer;
use crate::net::trust::{Credentials, Trust};
use crate::options::{GroupOptions, OpenInfo, LOG_SEGMENTS_MIN};
use crate::spawn::Threads;
use crate::syncs::Syncs;
use crate::threads::{acceptor, asker, clock, sender, snapshots};
use bytes::Bytes;
use parking_lot::{Condvar, Mutex, RwLock};
use quorate_consensus::{Charter, Entry, HardState, Index, LogPosition, MemberId};
use quorate_group::{prepare, Directory, LogLevel, Member, Opening, Output, SeedAnswer, Stored};
use quorate_wal::{DiskKeys, Recovered, Wal, WalOptions};
use quorate_wire::{PeerIdentity, Want};
use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Weak};
use std::time::Instant;

pub(crate) fn open(
    options: GroupOptions,
    observer: Arc<dyn Observer>,
) -> Result<(Arc<Live>, OpenInfo), GroupError> {
    // First, so that a mistake in the options or a port in use leaves the directory as it was.
    options.check_names()?;
    options.security.check_reach(&options.listen, &options.advertise)?;
    let credentials = Credentials::read(&options.security, &options.operators)?;
    let keys = options.at_rest.load()?;
    let acceptor = Acceptor::bind(&options.listen)?;
    mark::check(&options.dir)?;
    let syncs = Arc::new(Syncs::default());
    let log_max = options.log_max.unwrap_or_else(|| default_log_max(&options));
    let wal_options = WalOptions {
        segment_bytes: options.segment_bytes,
        retain_bytes: options.retain_bytes,
        retain_age: options.retain_age,
        retain_max: Some(log_max),
        keys: keys.clone(),
        ..WalOptions::new(&options.dir)
    };
    let (wal, recovered) = Wal::open(wal_options, true, syncs.receiver())?;
    keep_private(&options, &*observer);
    let trust = Arc::new(credentials.of_member(&options.dir)?);
    if options.has_data() {
        credentials.write_transfer_files(&options.dir)?;
    }
    report_recovery(&options, &recovered, &*observer);
    report_encryption(&options, &recovered, &keys, &*observer);
    let fresh = recovered.last.index == 0;
    let settings = options.machine(random() as u64, trust.key);
    let snapshots = Snapshots::new(&options.dir, keys);
    let mut folder = Folder {
        options: &options,
        acceptor: &acceptor,
        trust: &trust,
        wal: &wal,
        syncs: &syncs,
        snapshots: &snapshots,
        observer: &*observer,
    };
    let opened = prepare(&settings, directory(recovered), random(), &mut folder)?;
    let info = OpenInfo {
        member: opened.directory.member,
        incarnation: opened.directory.incarnation,
        group: opened.directory.group,
        fresh,
        founded: opened.founded,
    };
    let tick_ms = (settings.heartbeat_interval_ms() / 4).max(1);
    let (id, mut out) = (info.member, Output::default());
    let machine = Member::new(settings, opened.directory, opened.newest, 0, &mut out)?;
    let live = Arc::new_cyclic(|this: &Weak<Live>| {
        let failed = this.clone();
        let on_panic = move |what: &str| {
            if let Some(live) = failed.upgrade() {
                live.broken(what);
            }
        };
        let hands = Arc::new(Hands {
            node: options.name.clone(),
            dir: options.dir.clone(),
            suspect_timeout: options.suspect_timeout,
            opened: Instant::now(),
            wal,
            log_max,
            snapshots,
            arriving: Arriving::default(),
            at_length: Alone::default(),
            gate: Gate::default(),
            notes: Mutex::default(),
            notices: Notices::default(),
            answers: Answers::default(),
            asks: Asks::default(),
            acceptor,
            start_sender: sender_starter(this.clone()),
            failed: AtomicBool::new(false),
        });
        Live {
            operators: RwLock::new(options.operators.clone()),
            reloading: Mutex::new(()),
            options,
            id,
            tick_ms,
            core: Core::new(hands.clone(), machine, out),
            hands,
            feeding: Feeding::default(),
            trust: RwLock::new(trust),
            observer,
            threads: Threads::new(Box::new(on_panic)),
            stopping: Mutex::new(false),
            stopped: Condvar::new(),
            closing: Mutex::new(false),
        }
    });
    syncs.connect(&live);
    start_threads(&live)?;
    Ok((live, info))
}

fn start_threads(live: &Arc<Live>) -> Result<(), GroupError> {
    let spawn = |name: &str, body: fn(&Arc<Live>)| {
        let served = live.clone();
        live.threads.spawn(name, move || body(&served))
    };
    let started = spawn("notices", |live| live.hands.notices.run(live.id, &*live.observer))
        && spawn("accept", acceptor::run)
        && spawn("tick", |live| clock::run(live))
        && spawn("join", |live| asker::run(live))
        && spawn("snapshot", |live| snapshots::run(live));
    if !started {
        live.close();
        return Err(GroupError::NoThreads);
    }
    // What the machine wants at its start.
    live.with_machine(|_, _, _| ());
    Ok(())
}

fn sender_starter(live: Weak<Live>) -> StartSender {
    Box::new(move |peer: Arc<Peer>| {
        let Some(live) = live.upgrade() else { return false };
        let served = live.clone();
        // The system shows six digits of it; the first of an id are those of its time.
        let name = format!("send-{:06x}", peer.id.0 & 0xff_ffff);
        live.threads.spawn(&name, move || sender::run(&served, &peer))
    })
}

fn directory(recovered: Recovered) -> Directory {
    Directory {
        member: recovered.identity.member,
        incarnation: recovered.identity.incarnation,
        group: recovered.identity.group,
        charter: recovered.identity.charter,
        hard_state: recovered.hard_state,
        base: recovered.base,
        last: recovered.last,
        term_runs: recovered.term_runs,
        special: recovered.special,
    }
}

/// What there is before there is a member.
struct Folder<'a> {
    options: &'a GroupOptions,
    acceptor: &'a Acceptor,
    trust: &'a Arc<Trust>,
    wal: &'a Wal,
    syncs: &'a Syncs,
    snapshots: &'a Snapshots,
    observer: &'a dyn Observer,
}

impl Opening for Folder<'_> {
    type Error = GroupError;

    fn ask_seed(&mut self, own: MemberId, addr: &str) -> SeedAnswer {
        match self.acceptor.is_at(addr) {
            Ok(true) => return SeedAnswer::Itself,
            Ok(false) => {}
            Err(error) => return SeedAnswer::Unclear { reason: error.to_string() },
        }
        let identity = PeerIdentity {
            member: own,
            group_name: self.options.group_name.clone(),
            name: self.options.name.clone(),
            addr: self.options.advertise.clone(),
            incoming: self.options.incoming.clone(),
            ..PeerIdentity::default()
        };
        let caller = Caller {
            identity,
            silence: self.options.suspect_timeout,
            connections: &self.acceptor.connections,
            trust: self.trust.clone(),
        };
        match dial(caller, addr, Want::Status, None) {
            Ok(dialled) => {
                if dialled.plain {
                    let line = plain_line(&format!("the connection to {addr}"));
                    self.observer.log(LogLevel::Warn, line);
                }
                SeedAnswer::Found(dialled.welcome.from)
            }
            // Nobody listens, or there is no such host (yet): the group is to be created.
            Err(DialError::Connect(error)) => {
                if error.kind() != io::ErrorKind::ConnectionRefused {
                    let line = format!("{addr} cannot be asked for a group of this name: {error}");
                    self.observer.log(LogLevel::Warn, line);
                }
                SeedAnswer::Nobody
            }
            Err(error) => SeedAnswer::Unclear { reason: error.to_string() },
        }
    }

    fn save_hard_state(&mut self, state: HardState) -> Result<(), GroupError> {
        Ok(self.wal.save_hard_state(state)?)
    }

    fn write_first(&mut self, entry: &Entry) -> Result<(), GroupError> {
        self.wal.append(std::slice::from_ref(entry));
        Ok(self.syncs.wait(entry.position())?)
    }

    fn save_group(&mut self, group: u128, charter: Charter) -> Result<(), GroupError> {
        Ok(self.wal.save_group(group, charter)?)
    }

    fn newest_snapshot(&mut self) -> Result<Option<(Stored, Bytes)>, GroupError> {
        let skipped = |damaged| self.observer.log(LogLevel::Warn, damaged);
        Ok(self.snapshots.newest(&skipped)?)
    }

    fn remove_snapshot(&mut self, index: Index) -> Result<(), GroupError> {
        Ok(self.snapshots.remove(index)?)
    }

    fn reset_log(&mut self, base: LogPosition) -> Result<(), GroupError> {
        self.wal.reset(base);
        Ok(self.syncs.wait(base)?)
    }

    fn mark_rolled_back(&mut self, reason: &str) -> Result<(), GroupError> {
        mark::leave(&self.options.dir, reason)
    }

    fn log(&mut self, level: LogLevel, line: String) {
        self.observer.log(level, line);
    }
}

/// Four fifths of the disk that the log is on, or is to be made on; without an end if that cannot be said.
fn default_log_max(options: &GroupOptions) -> u64 {
    let found = options.dir.ancestors().find_map(|folder| rustix::fs::statvfs(folder).ok());
    let bytes = found.map(|disk| disk.f_blocks.saturating_mul(disk.f_frsize));
    let share = bytes.filter(|bytes| *bytes > 0).map_or(u64::MAX, |bytes| bytes / 5 * 4);
    share.max(LOG_SEGMENTS_MIN * options.segment_bytes)
}

/// All rows ever written are in the directory, and the member's key: for its owner alone, however it was made, and
/// so is each file, wherever it may be moved or copied to.
fn keep_private(options: &GroupOptions, observer: &dyn Observer) {
    // It may be a link to another disk; links in it are somebody's own.
    let Ok(dir) = options.dir.canonicalize() else { return };
    let files = fs::read_dir(&dir).into_iter().flatten().flatten();
    let mut closed = (Vec::new(), Vec::new());
    for path in [dir.clone()].into_iter().chain(files.map(|file| file.path())) {
        let shown = |metadata: &Metadata| metadata.mode() & 0o077 != 0 && !metadata.is_symlink();
        let found = fs::symlink_metadata(&path).ok().filter(shown);
        let Some(mode) = found.map(|found| if found.is_dir() { 0o700 } else { 0o600 }) else {
            continue;
        };
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        match fs::set_permissions(&path, Permissions::from_mode(mode)) {
            Ok(()) => closed.0.push(name),
            Err(error) => closed.1.push(format!("{name}: {error}")),
        }
    }
    let dir = dir.display();
    let lines = [
        (LogLevel::Info, "; this is its owner's alone now", closed.0),
        (LogLevel::Warn, ", and this cannot be closed to them", closed.1),
    ];
    for (level, done, names) in lines.into_iter().filter(|(.., names)| !names.is_empty()) {
        let names = names.join(", ");
        observer.log(level, format!("log {dir}: others could look into it{done}: {names}"));
    }
}

fn report_recovery(options: &GroupOptions, recovered: &Recovered, observer: &dyn Observer) {
    let (base, last) = (recovered.base.index, recovered.last.index);
    let dir = options.dir.display();
    observer.log(
        LogLevel::Info,
        format!(
            "log {dir}: member {}, start {}, entries {} to {last}",
            recovered.identity.member,
            recovered.identity.incarnation,
            base + 1
        ),
    );
    if recovered.torn_bytes > 0 {
        let torn = recovered.torn_bytes;
        let line = format!(
            "log {dir}: its last {torn} bytes are not whole and were cut off. As a rule that is a \
             write that a crash interrupted, and nothing of it was acknowledged; but should the \
             disk have damaged the last write after it was synced, this node may have acknowledged \
             it. What a majority has is not lost by that: the node takes it from the others. If \
             disks of a majority were damaged at once, look for the last commits of the \
             applications, and see what the kernel says of this disk"
        );
        observer.log(LogLevel::Warn, line);
    }
}

/// Who changes keys, or begins to encrypt, is told what still needs the old ones.
fn report_encryption(
    options: &GroupOptions,
    recovered: &Recovered,
    keys: &DiskKeys,
    observer: &dyn Observer,
) {
    let own = keys.encrypts_with();
    let dir = options.dir.display();
    if let Some(own) = own {
        let line = format!("log {dir}: new files are encrypted, with the key {own}");
        observer.log(LogLevel::Info, line);
    }
    for (key, files) in recovered.encryption.iter().filter(|(key, _)| **key != own) {
        let how = match key {
            Some(key) => {
                format!("are encrypted with the key {key}, which is needed until they are gone")
            }
            None => "are in the clear".to_owned(),
        };
        let line = format!(
            "log {dir}: {files} of its files {how}; they go with the part of the log that they hold"
        );
        observer.log(LogLevel::Info, line);
    }
}

/// Random bits for ids and seeds. Where the system has no entropy device, time and address space
/// layout have to do.
fn random() -> u128 {
    use std::hash::{BuildHasher, RandomState};
    let mut bytes = [0; 16];
    match File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes)) {
        Ok(()) => u128::from_le_bytes(bytes),
        Err(_) => {
            let draw = || u128::from(RandomState::new().hash_one(Instant::now()));
            draw() << 64 | draw()
        }
    }
}
