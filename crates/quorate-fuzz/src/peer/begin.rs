//! Who the victim is, and how it starts.

use super::disk::Disk;
use super::words::{own_key, GROUP, GROUP_NAME, VICTIM};
use crate::source::Source;
use quorate_consensus::placement::Pace;
use quorate_consensus::{
    Charter, Config, Entry, EntryKind, HardState, KeyId, MemberId, MemberInfo, MemberRole,
    Primaries, Rules, LEVEL,
};
use quorate_group::{prepare, Member, Options, Output};

pub fn options(source: &mut Source<'_>) -> Options {
    let rules = Rules {
        primaries: source.one_of(&[Primaries::Multi, Primaries::Single]),
        ..Rules::default()
    };
    let mut options = Options {
        group_name: GROUP_NAME.into(),
        name: "n1".into(),
        advertise: "node1".into(),
        incoming: String::new(),
        key: KeyId::default(),
        seeds: vec!["node2".into(), "node3".into()],
        bootstrap: false,
        objection: None,
        charter: Charter::default(),
        rules,
        role: MemberRole::Voter,
        priority: 50,
        zone: String::new(),
        blank: source.flag(),
        election_timeout_ms: 200,
        disk_stall_ms: 1_000,
        expel_ms: source.one_of(&[None, Some(2_000)]),
        primary_ms: 500,
        suspect_ms: 600,
        pace: Pace { writes_min: 2, settled_ms: 300, ..Pace::default() },
        lease_reads: source.flag(),
        segment_bytes: source.one_of(&[1 << 20, 512]),
        level: LEVEL,
        dir: "dir".into(),
        seed: source.byte().into(),
    };
    // In every other story members show keys: whoever is let in is believed to be who its key says, and no other.
    if options.seed % 2 == 1 {
        options.key = own_key(VICTIM);
    }
    options
}

/// The directory of a member of a group of three, none of whom has led yet.
pub fn of_three(disk: &mut Disk, options: &Options) {
    let info = |id| {
        let key = if options.key.is_known() { own_key(MemberId(id)) } else { KeyId::default() };
        let info = MemberInfo::new(MemberRole::Voter, format!("node{id}"), format!("n{id}"));
        (MemberId(id), MemberInfo { key, ..info })
    };
    let members = (1..=3).map(info).collect();
    let config = Config { members, rules: options.rules, level: LEVEL, ..Config::default() };
    disk.entries.push(Entry::new(1, 1, EntryKind::Config, config.encode()));
    disk.synced = 1;
    disk.hard_state = HardState { term: 1, voted_for: None };
    disk.group = (GROUP, Charter::default());
}

/// From its directory; `None`: it refuses, and says why.
pub fn started(options: &Options, disk: &mut Disk, now_ms: u64) -> Option<(Member, Output)> {
    let opened = prepare(options, disk.directory(), GROUP, disk).ok()?;
    let mut out = Output::default();
    let started =
        Member::new(options.clone(), opened.directory, opened.newest, now_ms, &mut out).ok()?;
    Some((started, out))
}
