//! `quorate logger`: a member of the group with a log and a vote, and no database.
//!
//! Two servers and a logger lose nothing when any one of the three is lost, with two copies of the
//! data instead of three. A logger acknowledges what is on its disk like every voter; it leads only
//! for the moment that it takes to hand over to a server, and no client sees it.

mod machine;

use crate::args::Logger;
use crate::failure::{FAILED, OK};
use anyhow::{Context, Result};
use bytes::Bytes;
use machine::LogMachine;
use quorate_certify::{may_propose, Constants};
use quorate_consensus::{MemberId, MemberRole};
use quorate_live::{
    printable, AtRest, Group, GroupError, GroupOptions, LogLevel, Observer, OrderError,
    SecretOptions, Security, TlsOptions,
};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, SystemTime};

const LEAVE_TIMEOUT: Duration = Duration::from_secs(5);
/// Between two lines that say why the group was not joined yet.
const PATIENCE: Duration = Duration::from_secs(10);

enum Ending {
    /// Asked to stop, by signal.
    Asked,
    /// The log failed.
    Failed,
}

/// Runs until a signal ends it.
pub fn run(args: &Logger) -> Result<u8> {
    let options = group_options(args)?;
    let (ending, endings) = channel();
    watch_signals(ending.clone())?;
    let observer = Arc::new(Stderr { ending, leads_in: AtomicU64::new(0) });
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
    let ended = match joined(&group, args, &endings)? {
        Some(ended) => ended,
        None => {
            let constants = Constants::from_words(group.charter().0);
            group.start(Box::new(LogMachine::new(constants)), &mut |_, _| true)?;
            say(
                LogLevel::Info,
                &format!("{} keeps the log of group {}", args.name, args.cluster_name),
            );
            endings.recv().context("nobody is left who could end this process")?
        }
    };
    let code = match ended {
        Ending::Failed => FAILED,
        Ending::Asked => {
            if let Err(error) = group.leave(LEAVE_TIMEOUT) {
                say(LogLevel::Warn, &format!("stopped without taking leave: {error}"));
            }
            OK
        }
    };
    group.close();
    Ok(code)
}

/// Waits until the group has taken this member in; or the end.
fn joined(group: &Group, args: &Logger, endings: &Receiver<Ending>) -> Result<Option<Ending>> {
    loop {
        match group.wait_joined(PATIENCE) {
            Ok(()) => return Ok(None),
            Err(GroupError::Order(OrderError::NotJoined { reason, .. })) => {
                say(LogLevel::Warn, &format!("{} is not in the group yet: {reason}", args.name));
            }
            Err(error) => return Err(error.into()),
        }
        if let Ok(ended) = endings.try_recv() {
            return Ok(Some(ended));
        }
    }
}

fn group_options(args: &Logger) -> Result<GroupOptions> {
    prepare(&args.log_dir)?;
    let port = args.address.rsplit_once(':').map_or("", |(_, port)| port);
    let listen = args.listen.clone().unwrap_or_else(|| format!("0.0.0.0:{port}"));
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

fn watch_signals(ending: Sender<Ending>) -> Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGINT]).context("waiting for signals")?;
    thread::spawn(move || {
        for _signal in signals.forever() {
            if ending.send(Ending::Asked).is_err() {
                return;
            }
        }
    });
    Ok(())
}

/// Lines for a journal.
struct Stderr {
    ending: Sender<Ending>,
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
        let _ending = self.ending.send(Ending::Failed);
    }

    fn log(&self, level: LogLevel, message: String) {
        if level < LogLevel::Debug {
            say(level, &message);
        }
    }
}

/// Time, level and line, in the words that servers have for levels.
fn say(level: LogLevel, line: &str) {
    let level = match level {
        LogLevel::Error => "Error",
        LogLevel::Warn => "Warning",
        LogLevel::Info | LogLevel::Debug => "Note",
    };
    let now = humantime::format_rfc3339_millis(SystemTime::now());
    eprintln!("{now} [{level}] {}", printable(line));
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use quorate_lab::server::logger_arguments;
    use std::ffi::OsString;

    #[derive(Parser)]
    struct Told {
        #[command(flatten)]
        logger: Logger,
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
