//! From a directory to a running member.

use crate::core::{mark, Answers, Asks, Core, Gate, Hands, Notices, Snapshots, StartSender};
use crate::error::GroupError;
use crate::host::Observer;
use crate::live::Live;
use crate::net::dial::{dial, Caller, DialError};
use crate::net::listener::Acceptor;
use crate::net::peer::Peer;
use crate::net::tls::Tls;
use crate::options::{GroupOptions, OpenInfo};
use crate::spawn::Threads;
use crate::syncs::Syncs;
use crate::threads::{acceptor, asker, clock, sender, snapshots};
use parking_lot::{Condvar, Mutex, RwLock};
use quorate_consensus::{MemberId, SnapshotMeta};
use quorate_group::{
    check_starts, fit, founding, judge_seed, superseded, Content, Directory, Fit, Founding,
    LogLevel, Member, Options, Output, SeedAnswer, StartError, View,
};
use quorate_wal::{Recovered, Wal, WalOptions};
use quorate_wire::{PeerIdentity, Want};
use std::fs::File;
use std::io::{self, Read};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Weak};
use std::time::Instant;

pub(crate) fn open(
    options: GroupOptions,
    observer: Arc<dyn Observer>,
) -> Result<(Arc<Live>, OpenInfo), GroupError> {
    // First, so that a mistake in the options or a port in use leaves the directory as it was.
    let tls = options.tls.as_ref().map(Tls::load).transpose()?.map(Arc::new);
    let acceptor = Acceptor::bind(&options.listen)?;
    mark::check(&options.dir)?;
    let syncs = Arc::new(Syncs::default());
    let wal_options = WalOptions {
        segment_bytes: options.segment_bytes,
        retain_bytes: options.retain_bytes,
        ..WalOptions::new(&options.dir)
    };
    let (wal, recovered) = Wal::open(wal_options, true, syncs.receiver())?;
    report_recovery(&options, &recovered, &*observer);
    let fresh = recovered.last.index == 0;
    let settings = options.machine(random() as u64);
    let mut directory = directory(recovered);
    let founding = founding(&settings, &directory, random())?;
    let before = Before {
        options: &options,
        settings: &settings,
        acceptor: &acceptor,
        tls: &tls,
        wal: &wal,
        syncs: &syncs,
        observer: &*observer,
    };
    before.found(&founding, &mut directory)?;
    let snapshots = Snapshots::new(&options.dir);
    let newest = before.newest_snapshot(&snapshots, &mut directory)?;
    let info = OpenInfo {
        member: directory.member,
        incarnation: directory.incarnation,
        group: directory.group,
        fresh,
        founded: founding.group.is_some(),
    };
    let tick_ms = (settings.heartbeat_interval_ms() / 4).max(1);
    let (id, mut out) = (directory.member, Output::default());
    let machine = Member::new(settings, directory, newest, 0, &mut out)?;
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
            snapshots,
            gate: Gate::default(),
            notices: Notices::default(),
            answers: Answers::default(),
            asks: Asks::default(),
            acceptor,
            start_sender: sender_starter(this.clone()),
            failed: AtomicBool::new(false),
        });
        Live {
            options,
            id,
            tick_ms,
            core: Core::new(hands.clone(), machine, out),
            hands,
            tls: RwLock::new(tls),
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
struct Before<'a> {
    options: &'a GroupOptions,
    settings: &'a Options,
    acceptor: &'a Acceptor,
    tls: &'a Option<Arc<Tls>>,
    wal: &'a Wal,
    syncs: &'a Syncs,
    observer: &'a dyn Observer,
}

impl Before<'_> {
    /// Carries out what the founding of a group takes.
    fn found(&self, founding: &Founding, directory: &mut Directory) -> Result<(), GroupError> {
        for addr in &founding.ask {
            let answer = self.ask_seed(directory.member, addr);
            judge_seed(self.settings, directory.member, addr, answer)?;
        }
        if let Some((state, entry)) = &founding.write {
            self.wal.save_hard_state(*state)?;
            self.wal.append(std::slice::from_ref(entry));
            self.syncs.wait(entry.position())?;
        }
        if let Some((group, charter)) = founding.group {
            self.wal.save_group(group, charter)?;
        }
        if let Some(line) = founding.line.clone() {
            self.observer.log(LogLevel::Info, line);
        }
        founding.apply(directory);
        Ok(())
    }

    fn ask_seed(&self, own: MemberId, addr: &str) -> SeedAnswer {
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
            tls: self.tls.clone(),
        };
        match dial(caller, addr, Want::Status, None) {
            Ok(dialled) => SeedAnswer::Found(dialled.welcome.from),
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

    /// The newest snapshot. Where it was received and the log was not replaced by it yet, the log is,
    /// durably.
    fn newest_snapshot(
        &self,
        snapshots: &Snapshots,
        directory: &mut Directory,
    ) -> Result<Option<(SnapshotMeta, View)>, GroupError> {
        let skipped = |damaged| self.observer.log(LogLevel::Warn, damaged);
        let mut newest = snapshots.newest(&skipped)?;
        while let Some((stored, _)) = &newest {
            if !superseded(directory, stored) {
                break;
            }
            let index = stored.meta.last.index;
            let line = format!(
                "log {}: the snapshot of index {index} is of a majority that was given up for lost, and is \
                 deleted",
                self.settings.dir
            );
            self.observer.log(LogLevel::Warn, line);
            snapshots.remove(index)?;
            newest = snapshots.newest(&skipped)?;
        }
        let view = newest.as_ref().and_then(|(_, content)| Content::decode(content.clone()).ok());
        let view = view.map(|content| content.view);
        let dir = &self.settings.dir;
        if let Err(error) = check_starts(directory, view.as_ref(), dir) {
            if let StartError::RolledBack { reason, .. } = &error {
                mark::leave(&self.options.dir, reason)?;
            }
            return Err(error.into());
        }
        let Some((stored, _)) = newest else { return Ok(None) };
        if fit(directory, &stored, dir)? == Fit::Unfinished {
            let snapshot = stored.meta.last;
            let line = format!(
                "log {dir}: the snapshot of index {} came from the leader, and the log, which ends at \
                 {}, is replaced by it now",
                snapshot.index, directory.last.index
            );
            self.observer.log(LogLevel::Info, line);
            self.wal.reset(snapshot);
            self.syncs.wait(snapshot)?;
            directory.replace_log(snapshot);
        }
        Ok(Some((stored.meta, view.unwrap_or_default())))
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
