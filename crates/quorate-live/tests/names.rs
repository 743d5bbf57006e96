//! Members that are known by the names in their certificates: who can pass for one, renewal, revocation, and
//! how a group goes over to a secret and back.

mod common;

use common::authority::Authority;
use common::{Cluster, Node};
use quorate_consensus::{level::NAMED_KEYS, KeyId};
use quorate_live::{Secret, SecretOptions, Security, TlsOptions};
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const ELECTION: Duration = Duration::from_secs(5);

fn started(name: &str, authority: &Authority) -> Cluster {
    Cluster::secured(name, 3, |at| Security::Certificates(authority.issue(&format!("n{at}"))))
}

/// What each member is known by in the configuration.
fn keys(cluster: &Cluster) -> Vec<KeyId> {
    let config = cluster.nodes[0].status().config;
    cluster.nodes.iter().map(|node| config.members[&node.id()].key).collect()
}

fn all_work(cluster: &Cluster) {
    cluster.await_members(&[0, 1, 2]);
    let proposals: Vec<_> = cluster.nodes.iter().map(|node| node.propose()).collect();
    cluster.await_applied(&proposals);
}

#[test]
fn a_certificate_of_the_same_ca_for_another_name_is_none_of_a_member() {
    let authority = Authority::new("other-name");
    let mut cluster = started("names-other", &authority);
    let known = keys(&cluster);
    assert!(known.iter().all(|key| key.is_name()) && known[0] != known[1], "{known:?}");
    // Who has taken a member's log, and has a certificate of its own.
    let other = authority.issue_to("other", "DNS:mail.example,DNS:n1.example");
    cluster.nodes[1].restart_in(Security::Certificates(other));
    cluster.nodes[0].wait("the refusal", |node| node.has_line("is for another name"));
    let proposal = cluster.nodes[0].propose();
    cluster.nodes[2].await_applied(&[proposal]);
    assert!(!cluster.nodes[1].status().primary, "nobody talks to it");
    assert_eq!(keys(&cluster), known);
    // Renewed: another key, another number, the same name.
    cluster.nodes[1].restart_in(Security::Certificates(authority.issue("n1")));
    all_work(&cluster);
    assert_eq!(keys(&cluster), known);
}

#[test]
fn a_running_member_takes_a_renewed_certificate_and_none_for_another_name() {
    let authority = Authority::new("renewed");
    let cluster = started("names-renewed", &authority);
    authority.issue("n1");
    cluster.nodes[1].group().reload_security().unwrap();
    all_work(&cluster);
    authority.issue_to("n1", "DNS:mail.example");
    let error = cluster.nodes[1].group().reload_security().unwrap_err().to_string();
    assert!(error.contains("another name") && error.contains("stays in use"), "{error}");
    all_work(&cluster);
}

/// What a member proposes, again and again; the longest time that one took.
fn load(node: &Node, ended: &AtomicBool) -> Duration {
    let mut longest = Duration::ZERO;
    while !ended.load(Ordering::SeqCst) {
        let begun = Instant::now();
        let proposal = node.propose();
        node.await_applied(&[proposal]);
        longest = longest.max(begun.elapsed());
    }
    longest
}

#[test]
fn the_ca_and_all_certificates_are_changed_under_load() {
    let (former, new) = (Authority::new("former-ca"), Authority::new("new-ca"));
    let mut cluster = Cluster::new("names-changed", 3);
    for (at, node) in cluster.nodes.iter_mut().enumerate() {
        // Long, so that no busy machine causes one; then heartbeats are rare, too.
        (node.options.election_timeout, node.options.suspect_timeout) = (ELECTION, ELECTION);
        node.options.security = Security::Certificates(former.issue(&format!("n{at}")));
        node.start().unwrap();
        node.joined();
    }
    all_work(&cluster);
    let (leader, term) = (cluster.leader(), cluster.nodes[0].status().term);
    let file = |authority: &Authority, name: &str| fs::read(authority.dir.join(name)).unwrap();
    let put = |name: &str, text: &[u8]| fs::write(former.dir.join(name), text).unwrap();
    let reload_all = || {
        for node in &cluster.nodes {
            node.group().reload_security().unwrap();
            all_work(&cluster);
        }
    };
    let ended = AtomicBool::new(false);
    let longest = thread::scope(|scope| {
        let load = |node| load(node, &ended);
        let loads: Vec<_> =
            cluster.nodes.iter().map(|node| scope.spawn(move || load(node))).collect();
        let (old_ca, new_ca) = (file(&former, "ca.pem"), file(&new, "ca.pem"));
        put("ca.pem", &[old_ca, new_ca.clone()].concat());
        reload_all();
        for at in 0..3 {
            new.issue(&format!("n{at}"));
            for name in [format!("n{at}-cert.pem"), format!("n{at}-key.pem")] {
                put(&name, &file(&new, &name));
            }
        }
        reload_all();
        put("ca.pem", &new_ca);
        reload_all();
        ended.store(true, Ordering::SeqCst);
        loads.into_iter().map(|load| load.join().unwrap()).max().unwrap()
    });
    println!("the longest commit: {longest:?}");
    assert!(longest < ELECTION, "{longest:?}");
    assert_eq!((cluster.leader(), cluster.nodes[0].status().term), (leader, term), "an election");
}

#[test]
fn a_revoked_certificate_ends_the_connections_that_exist() {
    let authority = Authority::new("revoked");
    let list = authority.revocation_list();
    let certificate = |at: usize| {
        let crl = Some(list.clone());
        TlsOptions { crl, ..authority.issue(&format!("n{at}")) }
    };
    let of = |at: usize| Security::Certificates(certificate(at));
    let mut cluster = Cluster::secured("names-revoked", 3, of);
    all_work(&cluster);
    let stolen = authority.files("n2", Some("ca.pem"));
    authority.revoke(&stolen);
    for at in [0, 1] {
        cluster.nodes[at].group().reload_security().unwrap();
    }
    cluster.nodes[2].wait("the end of its connections", |node| !node.status().primary);
    let proposal = cluster.nodes[0].propose();
    cluster.nodes[1].await_applied(&[proposal]);
    assert!(cluster.nodes[0].has_line("Revoked") || cluster.nodes[1].has_line("Revoked"));
    // It is told so itself, and comes back with another one for its name.
    let error = cluster.nodes[2].group().reload_security().unwrap_err().to_string();
    assert!(error.contains("socket.ssl_crl") && error.contains("n2-cert.pem"), "{error}");
    cluster.nodes[2].restart_in(of(2));
    all_work(&cluster);
}

#[test]
fn a_revocation_list_that_is_none_or_of_another_ca_is_refused() {
    let (authority, other) = (Authority::new("lists"), Authority::new("foreign-lists"));
    let mut cluster = Cluster::new("names-lists", 1);
    let no_list = authority.dir.join("ca.pem");
    for (crl, told) in [(no_list, "no revocation list"), (other.revocation_list(), "another CA's")]
    {
        let tls = TlsOptions { crl: Some(crl), ..authority.issue("n0") };
        cluster.nodes[0].options.security = Security::Certificates(tls);
        let error = cluster.nodes[0].start().unwrap_err().to_string();
        assert!(error.contains(told), "{error}");
    }
}

#[test]
fn members_that_are_there_get_their_names_when_the_group_knows_names() {
    let authority = Authority::new("levels");
    let mut cluster = Cluster::new("names-levels", 3);
    for (at, node) in cluster.nodes.iter_mut().enumerate() {
        let names = ["DNS:db.example", "IP:127.0.0.1", ""];
        let tls = authority.issue_to(&format!("n{at}"), names[at]);
        node.options.security = Security::Certificates(tls);
        node.options.level = NAMED_KEYS - 1;
        node.start().unwrap();
        node.joined();
    }
    all_work(&cluster);
    assert_eq!(keys(&cluster), [KeyId::default(); 3], "an older release could not go on with them");
    for at in 0..3 {
        cluster.nodes[at].kill();
        cluster.nodes[at].options.level = NAMED_KEYS;
        cluster.nodes[at].start().unwrap();
        all_work(&cluster);
    }
    cluster.nodes[0].wait("names", |_| keys(&cluster).iter().all(|key| key.is_name()));
}

#[test]
fn a_group_goes_over_from_certificates_to_a_secret_and_back_node_by_node() {
    let authority = Authority::new("over");
    let mut cluster = started("names-over", &authority);
    let file = authority.dir.join("secret");
    Secret::new().unwrap().write(&file).unwrap();
    let secret = |dynamic| Security::Secret(SecretOptions { file: file.clone(), dynamic });
    let certificate = |at: usize, dynamic| {
        let tls = authority.files(&format!("n{at}"), Some("ca.pem"));
        Security::Certificates(TlsOptions { dynamic, ..tls })
    };
    let named = keys(&cluster);
    let go_through = |cluster: &mut Cluster, steps: &[&dyn Fn(usize) -> Security]| {
        for step in steps {
            for at in 0..3 {
                cluster.nodes[at].restart_in(step(at));
                all_work(cluster);
            }
        }
    };
    let by_name = (|at| certificate(at, true), |at| certificate(at, false));
    let by_secret = (|_| secret(true), |_| secret(false));
    let plain = |_| Security::ThisHost;
    go_through(&mut cluster, &[&by_name.0, &plain, &by_secret.0, &by_secret.1]);
    cluster.nodes[0]
        .wait("keys", |_| keys(&cluster).iter().all(|key| key.is_known() && !key.is_name()));
    go_through(&mut cluster, &[&by_secret.0, &plain, &by_name.0, &by_name.1]);
    cluster.nodes[0].wait("names", |_| keys(&cluster) == named);
}
