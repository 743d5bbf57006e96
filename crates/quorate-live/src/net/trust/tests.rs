//! The secret's proof on real connections: whom it lets in, and who stands between two members.

use super::own_key::OwnKey;
use super::proof::Shown;
use super::secret::{Secret, Secrets};
use super::{Tls, Trust};
use crate::net::channel::{Channel, NoChannel};
use quorate_consensus::KeyId;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

fn trust(secrets: &[&Secret]) -> Trust {
    let secrets = Secrets::of(secrets.iter().map(|secret| (*secret).clone()).collect());
    let tls = OwnKey::passing().unwrap().tls(Shown::Member(secrets)).unwrap();
    Trust {
        tls: Some(tls),
        dynamic: false,
        expiry: None,
        key: KeyId::default(),
        this_host_only: None,
    }
}

/// A pair of sockets, the dialler's first.
fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let dialler = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let acceptor = listener.accept().unwrap().0;
    for socket in [&dialler, &acceptor] {
        socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    }
    (dialler, acceptor)
}

fn failed(error: NoChannel) -> io::Error {
    match error {
        NoChannel::Failed(error) => error,
        NoChannel::Mismatch(_, what) => io::Error::other(what),
    }
}

fn dial(socket: TcpStream, trust: &Trust) -> io::Result<Channel> {
    dial_until(Instant::now() + Duration::from_secs(10), socket, trust)
}

fn dial_until(deadline: Instant, socket: TcpStream, trust: &Trust) -> io::Result<Channel> {
    Channel::dial(socket, trust.tls.as_ref(), deadline).map_err(failed)
}

fn accept(socket: TcpStream, trust: &Trust) -> io::Result<Channel> {
    Channel::accept(socket, trust).map_err(failed)
}

/// What both sides come to.
fn meet(dialler: &Trust, acceptor: &Trust) -> (io::Result<Channel>, io::Result<Channel>) {
    let (here, there) = pair();
    thread::scope(|scope| {
        let accepted = scope.spawn(|| accept(there, acceptor));
        let dialled = dial(here, dialler);
        (dialled, accepted.join().unwrap())
    })
}

#[test]
fn who_has_the_secret_is_let_in_and_both_hear_each_other() {
    let secret = Secret::new().unwrap();
    let (dialled, accepted) = meet(&trust(&[&secret]), &trust(&[&secret]));
    let (mut dialled, mut accepted) = (dialled.unwrap(), accepted.unwrap());
    let mut heard = [0; 5];
    dialled.write_all(b"there").unwrap();
    accepted.read_exact(&mut heard).unwrap();
    assert_eq!(&heard, b"there");
    accepted.write_all(b"hello").unwrap();
    dialled.read_exact(&mut heard).unwrap();
    assert_eq!(&heard, b"hello");
}

/// Each byte comes long before a read would be given up, and others are to be asked meanwhile.
#[test]
fn who_answers_byte_by_byte_is_not_waited_for() {
    let (here, mut there) = pair();
    let trust = trust(&[&Secret::new().unwrap()]);
    thread::scope(|scope| {
        scope.spawn(move || {
            // The head of a long message of a handshake.
            let mut told = there.write_all(&[0x16, 3, 3, 0x40, 0]);
            while told.is_ok() {
                thread::sleep(Duration::from_millis(5));
                told = there.write_all(&[2]);
            }
        });
        let deadline = Instant::now() + Duration::from_millis(300);
        let error = dial_until(deadline, here, &trust).err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut, "{error}");
    });
}

#[test]
fn while_a_secret_is_changed_both_are_accepted() {
    let (old, new) = (Secret::new().unwrap(), Secret::new().unwrap());
    let stages = [vec![&old], vec![&old, &new], vec![&new, &old], vec![&new]];
    for at in 1..stages.len() {
        for (one, other) in [(at - 1, at), (at, at - 1)] {
            let (dialled, accepted) = meet(&trust(&stages[one]), &trust(&stages[other]));
            assert!(dialled.is_ok() && accepted.is_ok(), "stages {one} and {other}");
        }
    }
    let (dialled, accepted) = meet(&trust(&stages[0]), &trust(&stages[3]));
    assert!(dialled.is_err() && accepted.is_err());
}

#[test]
fn both_sides_are_told_that_their_secrets_differ() {
    let (one, other) = (Secret::new().unwrap(), Secret::new().unwrap());
    let (dialled, accepted) = meet(&trust(&[&one]), &trust(&[&other]));
    for told in [dialled.err().unwrap(), accepted.err().unwrap()] {
        assert_eq!(told.kind(), io::ErrorKind::PermissionDenied);
        assert!(told.to_string().contains("quorate.secret_file"), "{told}");
    }
}

/// One that has TLS and no secret, and hands on what it hears.
fn without_proof() -> Trust {
    let mut trust = trust(&[&Secret::new().unwrap()]);
    trust.tls = trust.tls.map(|tls| Tls { proving: None, ..tls });
    trust
}

#[test]
fn who_stands_between_two_members_is_believed_by_neither() {
    let secret = Secret::new().unwrap();
    let (member, other) = (trust(&[&secret]), trust(&[&secret]));
    let between = without_proof();
    let (dialler, from_dialler) = pair();
    let (to_acceptor, acceptor) = pair();
    thread::scope(|scope| {
        let dialled = scope.spawn(|| dial(dialler, &member));
        let accepted = scope.spawn(|| accept(acceptor, &other));
        let mut from_dialler = accept(from_dialler, &between).unwrap();
        let mut to_acceptor = dial(to_acceptor, &between).unwrap();
        let mut proof = [0; 33];
        from_dialler.read_exact(&mut proof).unwrap();
        to_acceptor.write_all(&proof).unwrap();
        let mut answer = Vec::new();
        let _ended = to_acceptor.read_to_end(&mut answer);
        assert_eq!(answer, [0], "the proof was made for another session");
        // It lets the dialler in by itself, and has no proof to show.
        from_dialler.write_all(&[1; 33]).unwrap();
        assert!(accepted.join().unwrap().is_err());
        let told = dialled.join().unwrap().err().unwrap();
        assert!(told.to_string().contains("impostor"), "{told}");
    });
}

#[test]
fn a_proof_said_back_is_none() {
    let secret = Secret::new().unwrap();
    let member = trust(&[&secret]);
    let mirror = without_proof();
    let (dialler, acceptor) = pair();
    thread::scope(|scope| {
        let dialled = scope.spawn(|| dial(dialler, &member));
        let mut accepted = accept(acceptor, &mirror).unwrap();
        let mut proof = [0; 33];
        accepted.read_exact(&mut proof).unwrap();
        accepted.write_all(&proof).unwrap();
        assert!(dialled.join().unwrap().is_err());
    });
}

#[test]
fn a_stranger_hears_one_byte() {
    let secret = Secret::new().unwrap();
    for said in [vec![1; 33], vec![0; 33], vec![7; 33], vec![1; 3]] {
        let (dialler, acceptor) = pair();
        let member = trust(&[&secret]);
        thread::scope(|scope| {
            let accepted = scope.spawn(|| accept(acceptor, &member));
            let mut stranger = dial(dialler, &without_proof()).unwrap();
            stranger.write_all(&said).unwrap();
            stranger.socket().shutdown(std::net::Shutdown::Write).unwrap();
            assert!(accepted.join().unwrap().is_err());
            let mut heard = Vec::new();
            let _ended = stranger.read_to_end(&mut heard);
            assert!(heard.is_empty() || heard == [0], "{heard:?}");
        });
    }
}

#[test]
fn a_key_in_a_directory_stays_the_same_and_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let dir = std::env::temp_dir().join(format!("quorate-own-key-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let secrets = || Secrets::of(vec![Secret::new().unwrap()]);
    let public =
        |key: OwnKey| key.tls(Shown::Member(secrets())).unwrap().proving.unwrap().public_key;
    let first = public(OwnKey::of_directory(&dir).unwrap());
    assert_eq!(public(OwnKey::of_directory(&dir).unwrap()), first);
    assert_ne!(public(OwnKey::passing().unwrap()), first);
    let path = dir.join("member.key");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    std::fs::write(&path, "no key").unwrap();
    let error = OwnKey::of_directory(&dir).err().unwrap().to_string();
    assert!(error.contains("member.key"), "{error}");
    std::fs::remove_dir_all(&dir).unwrap();
}
