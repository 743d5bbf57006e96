//! `quorate logger`: a member of the group with a log and a vote, and no database.
//!
//! Two servers and a logger lose nothing when any one of the three is lost, with two copies of the
//! data instead of three. A logger acknowledges what is on its disk like every voter; it leads only
//! for the moment that it takes to hand over to a server, and no client sees it.

mod machine;

use crate::args::Logger;
use crate::failure::{readable, FAILED, OK};
use anyhow::{Context, Result};
use bytes::Bytes;
use machine::LogMachine;
use quorate_certify::{may_propose, Constants};
use quorate_consensus::{MemberId, MemberRole};
use quorate_live::{
    everywhere, printable, AtRest, Group, GroupError, GroupOptions, LogLevel, Observer, OrderError,
    SecretOptions, Security, TlsOptions,
};
use rustix::process::{getrlimit, setrlimit, Resource, Rlimit};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{channel, Sender};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, SystemTime};

const LEAVE_TIMEOUT: Duration = Duration::from_secs(5);
/// Between two lines that say why the group was not joined yet.
const PATIENCE: Duration = Duration::from_secs(10);

/// What this process waits for, all of it at once: a signal is not to wait until the group is joined.
enum Happening {
    /// The group has taken this member in, or never will.
    Joined(Result<(), GroupError>),
    /// Asked to stop, by signal.
    Asked,
    /// The log failed.
    Failed,
}

/// Runs until a signal ends it.
pub fn run(args: &Logger) -> Result<u8> {
    let options = group_options(args)?;
    allow_files();
    let (happened, happenings) = channel();
    watch_signals(happened.clone())?;
    let observer = Arc::new(Stderr { happened: happened.clone(), leads_in: AtomicU64::new(0) });
    if options.security == Security::Insecure {
        say(LogLevel::Warn, &format!(
            "--insecure: nothing protects the group port {}; whoever reaches it can read and change all \
             data",
            options.listen
        ));
    }
    if let Security::Certificates(tls) = &options.security {
        tls.cautions().iter().for_each(|caution| say(LogLevel::Warn, caution));
    }
    let (group, _info) = Group::open(options, observer)?;
    let group = Arc::new(group);
    watch_joining(group.clone(), args.name.clone(), happened);
    let code = loop {
        match happenings.recv().context("nobody is left who could end this process")? {
            Happening::Joined(joined) => {
                joined?;
                keep_log(&group, args)?;
            }
            Happening::Failed => break FAILED,
            Happening::Asked => {
                if let Err(error) = group.leave(LEAVE_TIMEOUT) {
                    say(LogLevel::Warn, &format!("stopped without taking leave: {error}"));
                }
                break OK;
            }
        }
    };
    group.close();
    Ok(code)
}

/// From the moment at which the group has taken this member in.
fn keep_log(group: &Group, args: &Logger) -> Result<()> {
    let constants = Constants::from_words(group.charter().0);
    group.start(Box::new(LogMachine::new(constants)), &mut |_, _| true)?;
    say(LogLevel::Info, &format!("{} keeps the log of group {}", args.name, args.cluster_name));
    Ok(())
}

/// Says now and then why this member is not in the group yet, until it is, or never will be.
fn watch_joining(group: Arc<Group>, name: String, happened: Sender<Happening>) {
    thread::spawn(move || {
        let joined = loop {
            match group.wait_joined(PATIENCE) {
                Err(GroupError::Order(OrderError::NotJoined { reason, .. })) => {
                    say(LogLevel::Warn, &format!("{name} is not in the group yet: {reason}"));
                }
                joined => break joined,
            }
        };
        // Before that is told: it is for the main thread alone to close the group.
        drop(group);
        // Nobody listens any more if the end has come already.
        let _joined = happened.send(Happening::Joined(joined));
    });
}

/// One is open for each segment of the log, of which a logger may keep many: as many as the system allows.
fn allow_files() {
    let allowed = getrlimit(Resource::Nofile);
    let most = Rlimit { current: allowed.maximum, ..allowed };
    if let Err(error) = setrlimit(Resource::Nofile, most) {
        say(
            LogLevel::Warn,
            &format!("the limit of open files stays at {:?}: {error}", allowed.current),
        );
    }
}

fn group_options(args: &Logger) -> Result<GroupOptions> {
    let shown = &args.certificate;
    let identity = [&args.secret_file, &shown.ssl_cert, &shown.ssl_key, &shown.ssl_ca];
    let files = identity.into_iter().chain([&args.ssl_crl, &args.encrypt_key_file]);
    files.flatten().try_for_each(|file| readable(file))?;
    prepare(&args.log_dir)?;
    let listen = args.listen.clone().unwrap_or_else(|| everywhere(&args.address));
    Ok(GroupOptions {
        listen,
        seeds: args.join.iter().filter(|seed| **seed != args.address).cloned().collect(),
        name: args.name.clone(),
        role: MemberRole::Logger,
        zone: args.zone.clone(),
        security: security(args),
        operators: args.operators.clone(),
        at_rest: AtRest {
            encrypts: args.encrypt_key_file.is_some(),
            refuses_plain: args.encrypt_only,
            key_file: args.encrypt_key_file.clone(),
            given: Vec::new(),
        },
        proposal_bytes_max: 1 << 31,
        blank: true,
        ..GroupOptions::new(&args.log_dir, &args.cluster_name, &args.address)
    })
}

/// By what it knows the other members.
fn security(args: &Logger) -> Security {
    let dynamic = args.dynamic;
    let shown = &args.certificate;
    match (&args.secret_file, &shown.ssl_cert, &shown.ssl_key) {
        (Some(file), ..) => Security::Secret(SecretOptions { file: file.clone(), dynamic }),
        (None, Some(cert), Some(key)) => {
            let (cert, key, ca) = (cert.clone(), key.clone(), shown.ssl_ca.clone());
            Security::Certificates(TlsOptions {
                cert,
                key,
                ca,
                names: shown.ssl_names.clone(),
                crl: args.ssl_crl.clone(),
                ciphers: args.ssl_cipher.clone().unwrap_or_default(),
                dynamic,
            })
        }
        _ if args.insecure => Security::Insecure,
        _ => Security::ThisHost,
    }
}

/// The log holds all rows ever written: for this user alone.
fn prepare(dir: &Path) -> Result<()> {
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir);
    made.with_context(|| format!("making the log directory {}", dir.display()))
}

fn watch_signals(happened: Sender<Happening>) -> Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGINT]).context("waiting for signals")?;
    thread::spawn(move || {
        for _signal in signals.forever() {
            if happened.send(Happening::Asked).is_err() {
                return;
            }
        }
    });
    Ok(())
}

/// Lines for a journal.
struct Stderr {
    happened: Sender<Happening>,
    /// The term that this member leads; 0: it does not.
    leads_in: AtomicU64,
}

impl Observer for Stderr {
    fn may_propose(&self, member: MemberId, proposal: &Bytes) -> bool {
        may_propose(member.0, || self.leads_in.load(Ordering::Relaxed), proposal)
    }

    /// The group's own line has the name of who leads, and why.
    fn leader(&self, term: u64, _leader: Option<MemberId>, leads: bool) {
        self.leads_in.store(if leads { term } else { 0 }, Ordering::Relaxed);
    }

    fn primary(&self, primary: bool) {
        match primary {
            true => say(LogLevel::Info, "connected to a majority"),
            false => say(
                LogLevel::Warn,
                "not connected to a majority: nothing is acknowledged until it is",
            ),
        }
    }

    fn fatal(&self, message: String) {
        let line = format!("this logger stops, its log stays as it is: {message}");
        say(LogLevel::Error, &line);
        // Nobody listens any more if the end has come already.
        let _failed = self.happened.send(Happening::Failed);
    }

    fn log(&self, level: LogLevel, message: String) {
        if level < LogLevel::Debug {
            say(level, &message);
        }
    }
}

/// Time, level and line.
fn say(level: LogLevel, line: &str) {
    let now = humantime::format_rfc3339_millis(SystemTime::now());
    eprintln!("{now} [{}] {}", word(level), printable(line));
}

/// As servers write it: their error logs are searched for these words.
fn word(level: LogLevel) -> &'static str {
    match level {
        LogLevel::Error => "ERROR",
        LogLevel::Warn => "Warning",
        LogLevel::Info | LogLevel::Debug => "Note",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use quorate_lab::server::{error_log, logger_arguments};
    use std::ffi::OsString;

    #[derive(Parser)]
    struct Told {
        #[command(flatten)]
        logger: Logger,
    }

    #[test]
    fn what_goes_wrong_is_found_in_its_log_as_in_that_of_a_server() {
        let file = std::env::temp_dir().join(format!("quorate-logger-{}", std::process::id()));
        let lines = [LogLevel::Info, LogLevel::Warn, LogLevel::Error, LogLevel::Debug];
        let lines = lines.map(|level| format!("1970-01-01T00:00:00.000Z [{}] x", word(level)));
        std::fs::write(&file, lines.join("\n")).unwrap();
        assert_eq!(error_log::errors_since(&file, 0), [lines[2].clone()]);
        std::fs::remove_file(file).unwrap();
    }

    const OTHERS: &str =
        "logger --name l --cluster-name c --address h:1 --join h:2 --log-dir /var/lib/l";

    #[test]
    fn a_logger_does_all_that_the_servers_are_told_of_security() {
        for options in [
            "socket.ssl=no;socket.ssl_cert=/c",
            "quorate.insecure=yes",
            "quorate.secret_file=/s;socket.dynamic=yes",
            "socket.ssl_cert=/c;socket.ssl_key=/k",
            "socket.ssl_cert=/c;socket.ssl_key=/k;quorate.ssl_names=a.x, b.x;\
             socket.ssl_cipher=TLS_AES_256_GCM_SHA384;socket.ssl_ca=/a;socket.ssl_crl=/l;socket.dynamic=yes",
        ] {
            let wanted = Security::in_options(options).unwrap().unwrap();
            let words = OTHERS.split(' ').map(OsString::from);
            let told = Told::try_parse_from(words.chain(logger_arguments(&wanted)));
            let told = told.unwrap_or_else(|error| panic!("{options}: {error}"));
            assert_eq!(security(&told.logger), wanted, "{options}");
        }
    }
}
