//! Connecting to the group and leaving it.

pub mod address;
mod galera_cache;
mod live;

pub(crate) use galera_cache::views_in;
pub use live::options_changed;

use self::address::{asks_for_tls, host_of, parse_url, with_port, BadUrl};
use crate::connect::galera_cache::trailing_views;
use crate::options::values::{parse_failover, parse_primaries, parse_retention, parse_role};
use crate::options::Options;
use crate::provider::Provider;
use quorate_certify::{Constants, Sequenced};
use quorate_consensus::{Charter, MemberRole, Rules};
use quorate_live::{
    everywhere, Group, GroupError, GroupOptions, OpenInfo, Security, StartingPoint,
    LOG_SEGMENTS_MIN,
};
use quorate_node::node::{LocalState, NodeObserver};
use quorate_node::start::genesis::Genesis;
use quorate_node::start::grastate::Grastate;
use quorate_node::start::resume::{resume, Beginning, Owner, Start};
use quorate_node::start::UnusableNote;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

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
    #[error("{0}")]
    NotOurs(String),
    #[error(
        "this server has left its group because of an error (see above in this log), and what it has applied is not \
         known to it any more: restart the server. It finds out, and joins again. No data was changed"
    )]
    Withdrawn,
    #[error(transparent)]
    Note(#[from] UnusableNote),
    #[error(
        "quorate.log_max is {max} bytes, which is less than {LOG_SEGMENTS_MIN} files of the log \
         (quorate.segment_size): it would be full at once. Nothing was started; set it to {least} or more, or \
         to 0 for four fifths of the disk"
    )]
    LogMax { max: u64, least: u64 },
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

/// Returns when this node belongs to a group (or may wait for its group's majority on a recv
/// thread).
pub fn connect(provider: &Provider, args: &ConnectArgs<'_>) -> Result<(), ConnectError> {
    if provider.link().is_some_and(|l| !l.closing()) {
        return Err(ConnectError::Connected);
    }
    if provider.local_state() == LocalState::Error {
        return Err(ConnectError::Withdrawn);
    }
    let options = group_options(provider, args)?;
    provider.configure(provider.options.lock().settings());
    let wait = provider.options.lock().period("pc.wait_prim_timeout");
    provider.info(&format!(
        "Quorate {}: group '{}', log directory {}, group address {}",
        env!("CARGO_PKG_VERSION"),
        options.group_name,
        options.dir.display(),
        options.advertise
    ));
    if options.security == Security::Insecure {
        provider.warn(&format!(
            "quorate.insecure=yes: nothing protects the group port {}. Whoever reaches it can read and \
             change all data; quorate.secret_file ends that",
            options.listen
        ));
    }
    if let Security::Certificates(tls) = &options.security {
        tls.cautions().iter().for_each(|caution| provider.warn(caution));
    }
    provider.settle_gtid_domain(args.bootstrap)?;
    provider.begin_connection();
    let observer = Arc::new(NodeObserver::new(&provider.node));
    let (group, info) = Group::open(options, observer.clone())?;
    let group = Arc::new(group);
    live::tell_group(provider, &group)?;
    provider.set_controls(Some(group.clone()));
    if let Err(e) = join_and_start(provider, &group, &info, wait, args.donor) {
        provider.abandon_connection();
        provider.set_controls(None);
        group.close();
        return Err(observer.not_ours.lock().take().map_or(e, ConnectError::NotOurs));
    }
    // A server that was started without an address gets its first one by SQL, perhaps after one that was wrong.
    provider.options.lock().begin();
    Ok(())
}

fn join_and_start(
    provider: &Provider,
    group: &Arc<Group>,
    info: &OpenInfo,
    wait: Duration,
    donor: &str,
) -> Result<(), ConnectError> {
    if info.fresh && !info.founded {
        group.wait_joined(wait)?;
    }
    let constants = Constants::from_words(group.charter().0);
    let genesis = Genesis::of_group(group.group_id(), &constants);
    learn_window(provider, &constants);
    let owner =
        Owner { group: group.group_id(), genesis, fresh: info.fresh, founded: info.founded };
    if info.founded {
        provider.info(&format!("The new group continues from {genesis}"));
    }
    provider.info(&provider.database()?.standing(&owner).describe());
    provider.prefer_donors(donor);
    loop {
        let decision = resume(&provider.database()?, &owner, &beginnings(group, &genesis)?);
        let (seqno, snapshot) = match decision {
            Start::Continue { seqno, snapshot } => (Some(seqno), snapshot),
            Start::Fetch { snapshot } => (None, snapshot),
            Start::Refuse(sentence) => return Err(ConnectError::NotOurs(sentence)),
        };
        match start(provider, group, info, genesis, seqno, &mut |index, _| index == snapshot) {
            // The leader has replaced the log meanwhile: what there is now decides.
            Err(ConnectError::Group(GroupError::NeedsStateTransfer { .. })) => {}
            done => return done,
        }
    }
}

fn start(
    provider: &Provider,
    group: &Arc<Group>,
    info: &OpenInfo,
    genesis: Genesis,
    start: Option<i64>,
    accept: &mut dyn FnMut(u64, &bytes::Bytes) -> bool,
) -> Result<(), ConnectError> {
    let limits = Constants::from_words(group.charter().0).limits();
    let identity = (info.member, info.incarnation);
    let sequencer = provider.attach(group.clone(), identity, genesis, start, limits)?;
    group.start(Box::new(sequencer), accept)?;
    provider.started();
    Ok(())
}

/// The window is the founder's: with another, this node would come to other verdicts.
fn learn_window(provider: &Provider, constants: &Constants) {
    let mut options = provider.options.lock();
    let window = i64::from(constants.limits().window);
    if options.integer("quorate.cert_window") != window {
        options.learn("quorate.cert_window", window.to_string());
        drop(options);
        provider.info(&format!(
            "The group was founded with quorate.cert_window = {window}, which holds for all its members"
        ));
    }
}

fn group_options(
    provider: &Provider,
    args: &ConnectArgs<'_>,
) -> Result<GroupOptions, ConnectError> {
    let mut options = provider.options.lock();
    let url = parse_url(args.url, options.integer("base_port") as u16)?;
    options.set(&url.options, false)?;
    let port = options.integer("base_port") as u16;
    let address = |option, value: &str| {
        let bad = || BadUrl::Address { option, value: value.to_owned() };
        with_port(value, port).ok_or_else(bad)
    };
    let own = [
        ("base_host", options.text("base_host")),
        ("wsrep_node_address", provider.config().address.as_str()),
    ];
    let (option, own) = own.into_iter().find(|(_, a)| !a.is_empty()).unwrap_or(("", "127.0.0.1"));
    let advertise = address(option, own)?;
    let listen = match options.text("gmcast.listen_addr") {
        "" => everywhere(&advertise),
        given => address("gmcast.listen_addr", given)?,
    };
    let security = options.security()?;
    let is_plain = [Security::ThisHost, Security::Insecure].contains(&security);
    let addresses = [
        ("gmcast.listen_addr", options.text("gmcast.listen_addr")),
        ("wsrep_cluster_address", args.url),
        (option, own),
    ];
    for (option, value) in addresses {
        if is_plain && asks_for_tls(value) {
            return Err(BadUrl::Unprotected { option, value: value.to_owned() }.into());
        }
    }
    options.learn("base_host", host_of(&advertise).to_string());
    let dir = match options.text("quorate.dir") {
        "" => default_dir(&provider.config().data_dir),
        given => PathBuf::from(given),
    };
    prepare_dir(&dir, &provider.config().data_dir)?;
    options.learn("quorate.dir", dir.display().to_string());
    let saved = Grastate::read(&provider.config().data_dir)?;
    let cache = galera_cache(&options, &provider.config().data_dir);
    let views = |at| trailing_views(&cache, at);
    let genesis = Genesis::of_founder(saved.as_ref(), provider.recovered(), views);
    let window = options.integer("quorate.cert_window") as u32;
    let begun = genesis.map(|g| g.constants()).unwrap_or_default();
    let constants = Constants { window, ..begun };
    if !constants.are_sound() {
        return Err(ConnectError::NotOurs(format!(
            "grastate.dat, or InnoDB, names the seqno {}, which no server has reached. Nothing was started, \
             the data is not affected: correct the seqno in {}",
            constants.seqno,
            provider.config().data_dir.join("grastate.dat").display()
        )));
    }
    let retention = parse_retention(options.text("quorate.log_retain")).unwrap_or_default();
    let log_max = options.bytes("quorate.log_max");
    let least = LOG_SEGMENTS_MIN * options.bytes("quorate.segment_size");
    if log_max > 0 && log_max < least {
        return Err(ConnectError::LogMax { max: log_max, least });
    }
    let defaults = GroupOptions::new(dir, args.cluster, &advertise);
    Ok(GroupOptions {
        seeds: url.seeds.into_iter().filter(|s| *s != advertise).collect(),
        listen,
        bootstrap: args.bootstrap,
        objection: objection(provider, saved.as_ref()),
        charter: Charter(constants.words()),
        name: provider.config().name.clone(),
        incoming: provider.config().incoming.clone(),
        blank: is_blank(provider, saved.as_ref()),
        election_timeout: options.period("quorate.election_timeout"),
        primary_timeout: options.period("quorate.primary_timeout"),
        suspect_timeout: options.period("evs.suspect_timeout"),
        segment_bytes: options.bytes("quorate.segment_size"),
        retain_bytes: retention.bytes,
        retain_age: retention.age,
        log_max: Some(log_max).filter(|max| *max > 0),
        security,
        operators: options.operators()?,
        at_rest: options.at_rest(&provider.encryption()),
        role: parse_role(options.text("quorate.role")).unwrap_or(MemberRole::Voter),
        priority: options.integer("quorate.priority") as u8,
        zone: zone_of(options.text("quorate.zone"), options.integer("gmcast.segment")),
        expel_timeout: Some(options.period("quorate.expel_timeout")).filter(|t| !t.is_zero()),
        rules: Rules {
            primaries: parse_primaries(options.text("quorate.primary_mode")).unwrap_or_default(),
            failover_waits: parse_failover(options.text("quorate.primary_failover"))
                .unwrap_or_default(),
            follows_writes: options.flag("quorate.leader_follows_writes"),
            ..Rules::default()
        },
        disk_stall_timeout: options.period("quorate.disk_stall_timeout"),
        // What is allowed now (repl.max_ws_size) is checked for each write set.
        proposal_bytes_max: 1 << 31,
        ..defaults
    })
}

/// Whether this database is part of no history: its state will come from a member.
fn is_blank(provider: &Provider, saved: Option<&Grastate>) -> bool {
    let positions = saved.map(|s| s.position).into_iter().chain(provider.recovered());
    positions.into_iter().all(|position| position.uuid == 0)
}

/// Why no group is to be founded on this node's database, as Galera sees it.
fn objection(provider: &Provider, saved: Option<&Grastate>) -> Option<String> {
    saved.filter(|s| !s.safe_to_bootstrap).map(|_| {
        format!(
            "It may not be safe to bootstrap the cluster from this node. It was not the last \
             one to leave the cluster and may not contain all the updates. Nothing was \
             changed. Begin the group on the node whose grastate.dat says \
             'safe_to_bootstrap: 1', and start this one without --wsrep-new-cluster. If there \
             is none (all crashed), compare what 'mariadbd --wsrep-recover' prints on each \
             node; on the one with the highest seqno, set safe_to_bootstrap to 1 in {}",
            provider.config().data_dir.join("grastate.dat").display()
        )
    })
}

fn beginnings(group: &Group, genesis: &Genesis) -> Result<Vec<Beginning>, GroupError> {
    let points = group.starting_points()?.into_iter();
    let beginning = |point: StartingPoint| Beginning {
        last: point.last,
        log_term: point.log_term,
        seqno: snapshot_position(&point.machine, genesis),
    };
    Ok(points.map(beginning).collect())
}

/// The seqno that a sequencer snapshot stands for; an empty one is the beginning.
fn snapshot_position(snapshot: &[u8], genesis: &Genesis) -> Option<i64> {
    if snapshot.is_empty() {
        return Some(genesis.seqno);
    }
    Sequenced::restore(snapshot).ok().map(|s| s.certifier.seqno())
}

/// Where Galera, had it run here, left its cache.
fn galera_cache(options: &Options, data_dir: &Path) -> PathBuf {
    let name = match options.text("gcache.name") {
        "" => "galera.cache",
        given => given,
    };
    data_dir.join(options.text("gcache.dir")).join(name)
}

/// A segment is Galera's word for a place of its own; the default one has no name.
fn zone_of(zone: &str, segment: i64) -> String {
    match segment {
        _ if !zone.is_empty() => zone.to_owned(),
        0 => String::new(),
        place => format!("segment-{place}"),
    }
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
