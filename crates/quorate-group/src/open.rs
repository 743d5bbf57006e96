//! From a directory to a running member.

use crate::ballots::Ballots;
use crate::driver::Driver;
use crate::error::GroupError;
use crate::founding;
use crate::join;
use crate::keeper::{Desk, Keeper};
use crate::lineage::{self, Lineage, Starts};
use crate::machine::{LogLevel, Observer};
use crate::member::Member;
use crate::membership::Membership;
use crate::net::acceptor::Acceptor;
use crate::net::tls::Tls;
use crate::notices::Notices;
use crate::options::{GroupOptions, OpenInfo};
use crate::pending::Pending;
use crate::progress::Progress;
use crate::reads::Reads;
use crate::restore::{self, Fit};
use crate::snapshot::{Snapshots, Stored};
use crate::survive::Survival;
use crate::threads::Threads;
use parking_lot::{Condvar, Mutex, RwLock};
use quorate_consensus::{
    Config, Consensus, Event, Index, LogPosition, MemberId, Options, Restored, SnapshotMeta,
};
use quorate_wal::{OnSync, Recovered, Wal, WalError, WalOptions};
use std::fs::File;
use std::io::Read;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Weak};
use std::time::Instant;

pub(crate) fn open(
    options: GroupOptions,
    observer: Arc<dyn Observer>,
) -> Result<(Arc<Member>, OpenInfo), GroupError> {
    // First, so that a mistake in the options or a port in use leaves the directory as it was.
    let tls = options.tls.as_ref().map(Tls::load).transpose()?.map(Arc::new);
    let acceptor = Acceptor::bind(&options.listen)?;
    lineage::check_mark(&options.dir)?;
    let syncs = Arc::new(Syncs::default());
    let wal_options = WalOptions {
        segment_bytes: options.segment_bytes,
        retain_bytes: options.retain_bytes,
        ..WalOptions::new(&options.dir)
    };
    let (wal, mut recovered) = Wal::open(wal_options, true, syncs.receiver())?;
    report_recovery(&options, &recovered, &*observer);
    let fresh = recovered.last.index == 0;
    let group_before = recovered.identity.group;
    if options.bootstrap {
        if fresh && recovered.identity.group == 0 {
            let own = recovered.identity.member;
            if let Some(reason) = options.objection.clone() {
                return Err(GroupError::MustNotFound { reason });
            }
            founding::look_for_group(&options, own, &acceptor, &tls, &*observer)?;
        }
        founding::bootstrap(&options, &wal, &mut recovered, &syncs, &*observer)?;
    } else if recovered.identity.group == 0 && founding::is_half_bootstrapped(&recovered) {
        founding::finish_bootstrap(&options, &wal, &mut recovered, &*observer)?;
    }

    let lineage = Lineage::default();
    let starts = Starts { own: recovered.identity, dir: &options.dir, lineage: &lineage };
    starts.of_log(&recovered.special)?;
    let snapshots = Snapshots::new(&options.dir);
    let newest = snapshots.newest(&|damaged| observer.log(LogLevel::Warn, damaged))?;
    if let Some((_, content)) = &newest {
        starts.of_snapshot(content)?;
    }
    let newest = newest.map(|(stored, _)| stored);
    let newest = finish_install(&options, newest, &wal, &mut recovered, &syncs, &*observer)?;
    let restored = restore::restored(&options, &recovered, newest)?;
    let own = recovered.identity;
    let info = OpenInfo {
        member: own.member,
        incarnation: own.incarnation,
        group: own.group,
        fresh,
        founded: own.group != group_before,
    };
    let member = Arc::new_cyclic(|this: &Weak<Member>| {
        let config = latest_config(&restored);
        let commit = restored.commit;
        let core_options = core_options(&options, own.member);
        let consensus = Consensus::new(core_options, restored, 0);
        let failed = this.clone();
        let on_panic = move |what: &str| {
            if let Some(member) = failed.upgrade() {
                member.broken(what);
            }
        };
        let membership = Membership::default();
        membership.changed(config.members.contains_key(&own.member));
        Member {
            this: this.clone(),
            suspect_ms: AtomicU64::new(options.suspect_timeout.as_millis() as u64),
            options,
            id: own.member,
            incarnation: own.incarnation,
            core: Mutex::new(Driver::new(consensus, config, recovered.last.index, commit)),
            wal,
            snapshots,
            pending: Pending::default(),
            reads: Reads::default(),
            progress: Progress::default(),
            notices: Notices::default(),
            membership,
            desk: Desk::default(),
            acceptor,
            tls: RwLock::new(tls),
            observer,
            threads: Threads::new(Box::new(on_panic)),
            group: Mutex::new((own.group, own.charter)),
            opened: Instant::now(),
            stopping: AtomicBool::new(false),
            failed: AtomicBool::new(false),
            leaving: AtomicBool::new(false),
            primary: AtomicBool::new(false),
            survival: Survival::default(),
            ballots: Ballots::default(),
            lineage,
            closing: Mutex::new(false),
        }
    });
    syncs.connect(&member);
    start_threads(&member)?;
    Ok((member, info))
}

fn start_threads(member: &Arc<Member>) -> Result<(), GroupError> {
    let spawn = |name: &str, body: fn(&Arc<Member>)| {
        let served = member.clone();
        member.threads.spawn(name, move || body(&served))
    };
    let started = spawn("accept", |member| member.acceptor.run(member))
        && spawn("tick", |member| tick(member))
        && spawn("keeper", |member| Keeper::new(member).run())
        && spawn("join", |member| join::run(member))
        && spawn("snapshot", |member| member.snapshots.run(member));
    if !started {
        member.close();
        return Err(GroupError::NoThreads);
    }
    member.with_core(|driver| {
        let config = driver.config.clone();
        driver.config_changed(member, config);
    });
    Ok(())
}

/// The thread that is the core's clock.
fn tick(member: &Member) {
    let interval = member.options.heartbeat_interval() / 4;
    while member.membership.pause(Instant::now() + interval) {
        member.with_core(|driver| driver.ignore_refusal(member, Event::Tick));
    }
}

fn core_options(options: &GroupOptions, id: MemberId) -> Options {
    let election_timeout_ms = options.election_timeout.as_millis().max(10) as u64;
    Options {
        election_timeout_ms,
        heartbeat_interval_ms: (options.heartbeat_interval().as_millis() as u64).max(1),
        clock_drift_ms: election_timeout_ms / 10,
        disk_stall_ms: options.disk_stall_timeout.as_millis() as u64,
        ..Options::new(id, random() as u64)
    }
}

/// The newest snapshot. Where it was received and the log was not replaced by it yet, the log is,
/// durably.
fn finish_install(
    options: &GroupOptions,
    newest: Option<Stored>,
    wal: &Wal,
    recovered: &mut Recovered,
    syncs: &Syncs,
    observer: &dyn Observer,
) -> Result<Option<SnapshotMeta>, GroupError> {
    let Some(stored) = newest else { return Ok(None) };
    let (dir, snapshot) = (&options.dir, stored.meta.last);
    match restore::fit(recovered, &stored) {
        Fit::Continued => {}
        Fit::LogLost => {
            let (last, snapshot) = (recovered.last.index, snapshot.index);
            return Err(GroupError::LogLost { dir: dir.clone(), last, snapshot });
        }
        Fit::Unfinished => {
            let line = format!(
                "log {}: the snapshot of index {} came from the leader, and the log, which ends at \
                 {}, is replaced by it now",
                dir.display(),
                snapshot.index,
                recovered.last.index
            );
            observer.log(LogLevel::Info, line);
            wal.reset(snapshot);
            syncs.wait(snapshot)?;
            restore::replaced(recovered, snapshot);
        }
    }
    Ok(Some(stored.meta))
}

fn latest_config(restored: &Restored) -> Config {
    let latest = restored.configs.last().map(|(_, config)| config);
    latest.unwrap_or(&restored.snapshot.config).clone()
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
pub(crate) fn random() -> u128 {
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

/// Between the log, which is opened first, and the member that wants to hear of its syncs.
#[derive(Default)]
pub(crate) struct Syncs {
    state: Mutex<SyncState>,
    synced: Condvar,
}

#[derive(Default)]
struct SyncState {
    member: Option<Weak<Member>>,
    done: Index,
    failed: Option<Arc<WalError>>,
}

impl Syncs {
    fn receiver(self: &Arc<Self>) -> OnSync {
        let syncs = self.clone();
        Box::new(move |synced| {
            let mut state = syncs.state.lock();
            if let Some(member) = &state.member {
                let member = member.upgrade();
                drop(state);
                if let Some(member) = member {
                    member.on_sync(synced);
                }
                return;
            }
            match synced {
                Ok(position) => state.done = position.index,
                Err(error) => state.failed = Some(error),
            }
            syncs.synced.notify_all();
        })
    }

    /// Before there is a member: waits for the log to be on disk up to `position`.
    pub fn wait(&self, position: LogPosition) -> Result<(), Arc<WalError>> {
        let mut state = self.state.lock();
        loop {
            if let Some(error) = &state.failed {
                return Err(error.clone());
            }
            if state.done >= position.index {
                return Ok(());
            }
            self.synced.wait(&mut state);
        }
    }

    fn connect(&self, member: &Arc<Member>) {
        let mut state = self.state.lock();
        state.member = Some(Arc::downgrade(member));
        let failed = state.failed.take();
        drop(state);
        if let Some(error) = failed {
            member.on_sync(Err(error));
        }
    }
}
