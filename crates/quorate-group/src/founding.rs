//! Founding a group: only where nobody says that there is one already, and where everybody who
//! listens was asked.

use crate::error::GroupError;
use crate::machine::{LogLevel, Observer};
use crate::member::identity;
use crate::net::acceptor::Acceptor;
use crate::net::dial::{dial, Caller, DialError};
use crate::net::tls::Tls;
use crate::open::{random, Syncs};
use crate::options::GroupOptions;
use quorate_consensus::{
    Config, Entry, EntryKind, HardState, LogPosition, MemberId, MemberInfo, MemberRole,
};
use quorate_wal::{Recovered, Wal};
use quorate_wire::Want;
use std::io;
use std::sync::Arc;

/// A node that lost its disk and is started like the first time must not found a second group
/// beside its own: where a seed belongs to one of this name, or does not say, nothing is created.
pub(crate) fn look_for_group(
    options: &GroupOptions,
    own: MemberId,
    acceptor: &Acceptor,
    tls: &Option<Arc<Tls>>,
    observer: &dyn Observer,
) -> Result<(), GroupError> {
    for addr in options.seeds.iter().filter(|addr| **addr != options.advertise) {
        let unclear = |reason: String| {
            let (node, addr) = (options.name.clone(), addr.clone());
            GroupError::SeedUnclear { node, addr, reason }
        };
        if acceptor.is_at(addr).map_err(|error| unclear(error.to_string()))? {
            continue;
        }
        let caller = Caller {
            identity: identity(options, own, 0, Default::default()),
            silence: options.suspect_timeout,
            connections: &acceptor.connections,
            tls: tls.clone(),
        };
        let found = match dial(caller, addr, Want::Status, None) {
            Ok(dialled) => dialled.welcome.from,
            // Nobody listens, or there is no such host (yet): the group is to be created.
            Err(DialError::Connect(error)) => {
                if error.kind() != io::ErrorKind::ConnectionRefused {
                    let line = format!("{addr} cannot be asked for a group of this name: {error}");
                    observer.log(LogLevel::Warn, line);
                }
                continue;
            }
            Err(error) => return Err(unclear(error.to_string())),
        };
        if found.member != own && found.group != 0 && found.group_name == options.group_name {
            return Err(GroupError::GroupExists {
                node: options.name.clone(),
                addr: addr.clone(),
                group_name: found.group_name,
                group: found.group,
            });
        }
    }
    Ok(())
}

/// A new group of one: its configuration is the log's first entry, its id is saved when that is
/// on disk. An existing log is never touched.
pub(crate) fn bootstrap(
    options: &GroupOptions,
    wal: &Wal,
    recovered: &mut Recovered,
    syncs: &Syncs,
    observer: &dyn Observer,
) -> Result<(), GroupError> {
    let identity = recovered.identity;
    if identity.group != 0 || (recovered.last.index > 0 && !is_half_bootstrapped(recovered)) {
        let line = format!(
            "log {} belongs to group {:032x}: no other is created, the node returns to its group \
             (a bootstrap is not needed after an outage)",
            options.dir.display(),
            identity.group
        );
        observer.log(LogLevel::Info, line);
        return Ok(());
    }
    if recovered.last.index == 0 {
        let info = MemberInfo {
            weight: options.weight,
            zone: options.zone.clone(),
            ..MemberInfo::new(MemberRole::Voter, &options.advertise, &options.name)
        };
        let members = [(identity.member, info)].into_iter().collect();
        let config = Config { members, rules: options.rules, ..Config::default() };
        let entry = Entry::new(1, 1, EntryKind::Config, config.encode());
        let state = HardState { term: 1, voted_for: Some(identity.member) };
        wal.save_hard_state(state)?;
        wal.append(std::slice::from_ref(&entry));
        syncs.wait(entry.position())?;
        recovered.hard_state = state;
        recovered.last = entry.position();
        recovered.term_runs = vec![(1, 1)];
        recovered.special = vec![entry];
    }
    finish_bootstrap(options, wal, recovered, observer)
}

/// A crash between the two steps of `bootstrap`: nobody else can have heard of this group.
pub(crate) fn is_half_bootstrapped(recovered: &Recovered) -> bool {
    let first = recovered.special.first();
    let config = first.and_then(|entry| Config::decode(&entry.data).ok());
    recovered.identity.group == 0
        && recovered.last == LogPosition { term: 1, index: 1 }
        && config.is_some_and(|config| config.is_voter(recovered.identity.member))
}

pub(crate) fn finish_bootstrap(
    options: &GroupOptions,
    wal: &Wal,
    recovered: &mut Recovered,
    observer: &dyn Observer,
) -> Result<(), GroupError> {
    let group = random().max(1);
    wal.save_group(group, options.charter)?;
    recovered.identity.group = group;
    recovered.identity.charter = options.charter;
    observer.log(LogLevel::Info, format!("created group {group:032x}"));
    Ok(())
}
