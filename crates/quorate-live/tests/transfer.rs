//! State transfers between members that have the same secret, and with strangers: by socat, as the server's
//! scripts call it.

mod common;

use common::Cluster;
use quorate_live::{Secret, SecretOptions, Security, TransferFiles};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};

const SENT: &str = "all rows\n";

/// What arrives at the joiner, which listens.
fn transfer(donor: &TransferFiles, joiner: &TransferFiles) -> String {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let identity = |files: &TransferFiles| {
        let TransferFiles { cert, key, ca } = files;
        let [cert, key, ca] = [cert, key, ca].map(|path| path.display());
        format!("cert={cert},key={key},cafile={ca},commonname=")
    };
    let listen = format!("openssl-listen:{port},bind=127.0.0.1,{}", identity(joiner));
    let mut joins = Command::new("socat")
        .args(["-d", "-d", "-u", &listen, "stdio"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(joins.stderr.take().unwrap()).lines();
    assert!(said.any(|line| line.unwrap().contains("listening on")), "it does not listen");
    let dial = format!("openssl-connect:127.0.0.1:{port},no-sni=1,{}", identity(donor));
    let mut gives = Command::new("socat")
        .args(["-u", "stdio", &dial])
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // A donor that refuses, or is refused, reads nothing.
    let _refused = gives.stdin.take().unwrap().write_all(SENT.as_bytes());
    gives.wait().unwrap();
    let arrived = joins.wait_with_output().unwrap().stdout;
    String::from_utf8(arrived).unwrap()
}

fn files(cluster: &Cluster, at: usize) -> TransferFiles {
    TransferFiles::of(&cluster.nodes[at].options.dir)
}

fn by(file: &Path) -> Security {
    Security::Secret(SecretOptions { file: file.to_owned(), dynamic: false })
}

#[test]
fn who_has_another_secret_neither_gives_nor_gets_a_state() {
    let folder = std::env::temp_dir().join(format!("quorate-sst-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let [ours, theirs] = ["ours", "theirs"].map(|name| folder.join(name));
    [&ours, &theirs].into_iter().for_each(|path| Secret::new().unwrap().write(path).unwrap());
    let cluster = Cluster::secured("transfer", 2, |_| by(&ours));
    let stranger = Cluster::secured("transfer-stranger", 1, |_| by(&theirs));
    let (one, two, other) = (files(&cluster, 0), files(&cluster, 1), files(&stranger, 0));
    assert_eq!(transfer(&one, &two), SENT);
    assert_eq!(transfer(&two, &one), SENT);
    assert_eq!(transfer(&one, &other), "", "a stranger gets the state");
    assert_eq!(transfer(&other, &one), "", "a stranger gives a state");
    // Not even a stranger that has the certificate, which is no secret.
    let posing = TransferFiles { ca: one.ca.clone(), ..other.clone() };
    assert_eq!(transfer(&posing, &one), "");

    // The secret is changed: at no step there are two members that do not take each other.
    Secret::new().unwrap().append(&ours).unwrap();
    let both = fs::read_to_string(&ours).unwrap();
    let secrets: Vec<&str> = both.lines().filter(|line| !line.starts_with('#')).collect();
    let (old, new) = (secrets[0], secrets[1]);
    for text in [both.clone(), format!("{new}\n{old}\n"), format!("{new}\n")] {
        fs::write(&ours, text).unwrap();
        for at in 0..2 {
            cluster.nodes[at].group().reload_security().unwrap();
            assert_eq!(transfer(&one, &two), SENT, "node {at}");
            assert_eq!(transfer(&two, &one), SENT, "node {at}");
        }
    }
    fs::remove_dir_all(&folder).unwrap();
}
