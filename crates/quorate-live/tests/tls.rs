//! Encrypted groups: who is let in, who is not, and how a running group is switched over.

mod common;

use common::authority::{text, Authority};
use common::{Cluster, Node};
use quorate_live::port::{Answer, Operating, Request, Unanswered};
use quorate_live::{OperatorIdentity, Operators, Security, TlsOptions, ANY_NAME};
use std::fs;
use std::process::Command;

fn started(name: &str, tls: impl Fn(usize) -> Option<TlsOptions>) -> Cluster {
    Cluster::secured(name, 3, |at| tls(at).map_or(Security::ThisHost, Security::Certificates))
}

/// Of a CA that signs for the group alone.
fn any_name() -> Vec<String> {
    vec![ANY_NAME.to_owned()]
}

#[test]
fn an_encrypted_group_works_and_returns() {
    let authority = Authority::new("works");
    started("tls", |at| Some(authority.issue(&format!("n{at}")))).works_and_returns();
}

#[test]
fn one_self_signed_certificate_for_all_is_enough() {
    let authority = Authority::new("self");
    let shared = authority.self_signed();
    let cluster = started("tls-self", |_| Some(shared.clone()));
    let proposals: Vec<_> = cluster.nodes.iter().map(Node::propose).collect();
    cluster.await_applied(&proposals);
}

#[test]
fn without_a_ca_whoever_a_certificate_of_the_chain_signed_is_a_stranger() {
    let authority = Authority::new("chain");
    let with_chain = |name: &str| {
        let tls = authority.issue(name);
        let chain = [fs::read(&tls.cert).unwrap(), fs::read(authority.dir.join("ca.pem")).unwrap()];
        fs::write(&tls.cert, chain.concat()).unwrap();
        TlsOptions { ca: None, ..tls }
    };
    let (shared, other) = (with_chain("shared"), with_chain("other"));
    let mut cluster = started("tls-chain", |_| Some(shared.clone()));
    let proposals: Vec<_> = cluster.nodes.iter().map(Node::propose).collect();
    cluster.await_applied(&proposals);
    cluster.nodes[2].restart_in(Security::Certificates(other));
    cluster.nodes[0].wait("the refusal", |node| node.has_line("UnknownIssuer"));
    assert!(!cluster.nodes[2].status().primary);
}

#[test]
fn strangers_stay_outside_and_the_log_says_why() {
    let (authority, other) = (Authority::new("own"), Authority::new("foreign"));
    let mut cluster = Cluster::new("tls-strangers", 3);
    cluster.nodes[0].options.security = Security::Certificates(authority.issue("n0"));
    cluster.nodes[1].options.security = Security::Certificates(other.issue("n1"));
    cluster.nodes[0].start().unwrap();
    cluster.nodes[0].joined();
    for at in [1, 2] {
        cluster.nodes[at].start().unwrap();
        cluster.nodes[at].cannot_join();
        cluster.nodes[at].kill();
    }
    let proposal = cluster.nodes[0].propose();
    cluster.nodes[0].await_applied(&[proposal]);
    cluster.nodes[0].wait("the complaint", |node| node.has_line("TLS"));
}

#[test]
fn a_running_group_is_switched_over_node_by_node() {
    let authority = Authority::new("dynamic");
    let mut cluster = started("tls-dynamic", |_| None);
    let mut proposals = Vec::new();
    for (round, dynamic) in [true, false].into_iter().enumerate() {
        for at in 0..3 {
            let tls = TlsOptions {
                dynamic,
                ..authority.issue_to(&format!("n{at}-{round}"), &format!("DNS:n{at}"))
            };
            cluster.nodes[at].kill();
            cluster.nodes[at].options.security = Security::Certificates(tls);
            cluster.nodes[at].start().unwrap();
            cluster.await_members(&[0, 1, 2]);
            proposals.push(cluster.nodes[at].propose());
            cluster.await_applied(&proposals);
        }
    }
}

#[test]
fn only_the_suites_that_are_named_are_spoken() {
    let authority = Authority::new("suites");
    let with = |at: usize, ciphers: &str| TlsOptions {
        ciphers: ciphers.into(),
        ..authority.issue(&format!("n{at}"))
    };
    let mut cluster = Cluster::new("tls-suites", 3);
    for (at, ciphers) in
        [(0, "TLS_AES_256_GCM_SHA384"), (1, "TLS_AES_128_GCM_SHA256"), (2, "")].into_iter()
    {
        cluster.nodes[at].options.security = Security::Certificates(with(at, ciphers));
        cluster.nodes[at].start().unwrap();
        match at {
            1 => cluster.nodes[at].cannot_join(),
            _ => cluster.nodes[at].joined(),
        }
    }
    cluster.nodes[1].kill();
    for misspelt in ["TLS_AES_256_GCM_SHA348:AES256-SHA", "tls13_aes_256_gcm_sha384"] {
        cluster.nodes[1].options.security = Security::Certificates(with(1, misspelt));
        let error = cluster.nodes[1].start().unwrap_err().to_string();
        assert!(error.contains("TLS_AES_256_GCM_SHA384") && error.contains(misspelt), "{error}");
    }
    // As Galera's users may have it: of TLS 1.3 it says nothing.
    let old = with(1, "ECDHE-RSA-AES256-SHA:AES256-SHA");
    assert!(old.cautions().iter().any(|caution| caution.contains("has no effect")));
    cluster.nodes[1].options.security = Security::Certificates(old);
    cluster.nodes[1].start().unwrap();
    cluster.nodes[1].joined();
}

#[test]
fn a_companys_ca_is_not_enough_where_members_are_named() {
    let authority = Authority::new("names");
    let issued = |at: usize, name: &str| {
        let names = vec!["db1.example".to_owned(), "db2.example".to_owned()];
        TlsOptions { names, ..authority.issue_to(&format!("n{at}"), &format!("DNS:{name}")) }
    };
    let mut cluster = Cluster::new("tls-names", 4);
    let names = ["db1.example", "db2.example", "mail.example", ""];
    for (at, name) in names.into_iter().enumerate() {
        let tls = match name.is_empty() {
            true => TlsOptions { names: any_name(), ..authority.issue("unnamed") },
            false => issued(at, name),
        };
        let node = &mut cluster.nodes[at];
        if name == "mail.example" {
            node.options.security = Security::Certificates(tls.clone());
            let error = node.start().unwrap_err().to_string();
            assert!(error.contains("quorate.ssl_names"), "the others would refuse it: {error}");
        }
        let names = if at < 2 { tls.names.clone() } else { any_name() };
        node.options.security = Security::Certificates(TlsOptions { names, ..tls });
        node.start().unwrap();
        match at {
            0 | 1 => node.joined(),
            _ => node.cannot_join(),
        }
    }
    cluster.nodes[0].wait("the reason", |node| node.has_line("quorate.ssl_names"));
    // Nor is it where nobody says a name, and other hosts can come.
    let unbound = TlsOptions { names: Vec::new(), ..issued(2, "db2.example") };
    let node = &mut cluster.nodes[2];
    node.kill();
    let loopback = std::mem::replace(&mut node.options.advertise, "192.0.2.1:4567".into());
    node.options.security = Security::Certificates(unbound);
    let error = node.start().unwrap_err().to_string();
    assert!(error.contains("quorate.ssl_names=NAME,NAME") && error.contains("ca.pem"), "{error}");
    node.options.advertise = loopback;
    let bad = TlsOptions { names: vec!["no name!".into()], ..issued(2, "db1.example") };
    cluster.nodes[2].options.security = Security::Certificates(bad);
    let error = cluster.nodes[2].start().unwrap_err().to_string();
    assert!(error.contains("no name!"), "{error}");
}

/// Companies have one for all their servers of a domain, whoever runs them.
#[test]
fn a_wildcard_is_nobodys_name() {
    let authority = Authority::new("wildcard");
    let listed = ["db1.example.com", "DB2.example.com.", "127.0.0.3"].map(str::to_owned);
    let operators: Operators = "ops.example.com".parse().unwrap();
    let issued = |at: usize, names: &str| authority.issue_to(&format!("n{at}"), names);
    let wildcard = "DNS:*.example.com";
    let shown =
        ["DNS:Db1.Example.COM", "DNS:*.example.com,DNS:db2.example.com", "IP:127.0.0.3", wildcard];
    let mut cluster = Cluster::new("tls-wildcard", 4);
    for (at, names) in shown.into_iter().enumerate() {
        let known = TlsOptions { names: listed.to_vec(), ..issued(at, names) };
        let node = &mut cluster.nodes[at];
        node.options.security = Security::Certificates(known.clone());
        node.options.operators = operators.clone();
        if names != wildcard {
            node.start().unwrap();
            node.joined();
            continue;
        }
        let error = node.start().unwrap_err().to_string();
        assert!(error.contains("n3-cert.pem") && error.contains("a wildcard"), "{error}");
        // It says nothing of names itself, and is refused all the same.
        node.options.security = Security::Certificates(TlsOptions { names: any_name(), ..known });
        node.start().unwrap();
        node.cannot_join();
    }
    cluster.nodes[0].wait("the reason", |node| node.has_line("a wildcard"));
    let address = cluster.nodes[0].options.listen.clone();
    let ask = |names: &str| {
        let tls = authority.issue_to("operator", names);
        Operating::new(&OperatorIdentity::Certificate(tls)).unwrap().ask(&address, &Request::Status)
    };
    let answered = ask(wildcard);
    assert!(answered.is_err(), "{answered:?}");
    let answered = ask("DNS:OPS.example.com").unwrap().answer;
    assert!(matches!(answered, Answer::Status(_)), "{answered:?}");
}

#[test]
fn the_end_of_a_certificate_is_told_in_time() {
    let authority = Authority::new("expiry");
    let mut cluster = Cluster::new("tls-expiry", 2);
    let lasting = authority.issue("n0");
    let ending = authority.files("n1", Some("ca.pem"));
    let expired = ending.clone();
    authority.request(&ending);
    authority.issue_for(&ending, &["-days", "10"], &["-extfile", "extensions"]);
    for (at, (tls, days)) in [(lasting, 3649), (ending, 9)].into_iter().enumerate() {
        cluster.nodes[at].options.security = Security::Certificates(tls);
        cluster.nodes[at].start().unwrap();
        cluster.nodes[at].joined();
        assert_eq!(cluster.nodes[at].group().certificate_days(), Some(days));
    }
    cluster.nodes[1].wait("the warning", |node| node.has_line("expires in 9 days"));
    assert!(!cluster.nodes[0].has_line("expires in"));
    // It was not renewed: its connections end, and no new one is made.
    authority.issue_ended(&expired);
    cluster.nodes[1].restart_in(Security::Certificates(expired));
    cluster.nodes[0].wait("what to do", |node| {
        node.has_line("renew the other node's certificate") && node.has_line("FLUSH SSL")
    });
    cluster.nodes[1].wait("that it has ended", |node| node.has_line("has expired"));
}

#[test]
fn the_end_of_a_ca_is_told_too() {
    let authority = Authority::new("ca-expiry");
    let issued = authority.issue("n0");
    let mut cluster = Cluster::new("tls-ca-expiry", 1);
    // Its certificate would last for ten years.
    authority.renew_ca("5");
    cluster.nodes[0].options.security = Security::Certificates(issued);
    cluster.nodes[0].start().unwrap();
    assert_eq!(cluster.nodes[0].group().certificate_days(), Some(4));
    cluster.nodes[0]
        .wait("the warning", |node| node.has_line("ca.pem") && node.has_line("expires in"));
}

#[test]
fn a_key_that_others_can_read_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let authority = Authority::new("modes");
    let mut cluster = Cluster::new("tls-modes", 1);
    let tls = authority.issue("n0");
    std::fs::set_permissions(&tls.key, std::fs::Permissions::from_mode(0o644)).unwrap();
    cluster.nodes[0].options.security = Security::Certificates(tls);
    let error = cluster.nodes[0].start().unwrap_err().to_string();
    assert!(error.contains("n0-key.pem") && error.contains("chmod 600"), "{error}");
}

#[test]
fn certificates_are_read_again_on_demand_and_bad_files_are_named() {
    let authority = Authority::new("reload");
    let cluster = started("tls-reload", |at| Some(authority.issue(&format!("n{at}"))));
    let group = cluster.nodes[0].group();
    authority.issue("n0");
    group.reload_security().unwrap();
    std::fs::write(authority.dir.join("n0-cert.pem"), "no certificate").unwrap();
    let error = group.reload_security().unwrap_err();
    assert!(error.to_string().contains("n0-cert.pem"), "{error}");
    let proposal = cluster.nodes[0].propose();
    cluster.await_applied(&[proposal]);
}

#[test]
fn a_certificate_of_the_first_version_is_refused_with_the_remedy() {
    let authority = Authority::new("v1");
    let mut cluster = Cluster::new("tls-v1", 1);
    let tls = authority.sign("old", &[]);
    let version = Command::new("openssl")
        .args(["x509", "-noout", "-text", "-in", text(&tls.cert)])
        .output()
        .unwrap();
    let shown = String::from_utf8_lossy(&version.stdout);
    if shown.contains("Version: 3 ") {
        // As of 3.2 it makes no others.
        eprintln!("not tested: this openssl makes no certificate of the first version");
        return;
    }
    assert!(shown.contains("Version: 1 "), "{shown}");
    cluster.nodes[0].options.security = Security::Certificates(tls);
    let error = cluster.nodes[0].start().unwrap_err();
    assert!(error.to_string().contains("-extfile"), "{error}");
}

#[test]
fn an_operators_certificate_makes_no_member_and_a_members_no_operator() {
    let authority = Authority::new("operators");
    let named = |name: &str| {
        let extension = format!("basicConstraints=CA:FALSE\nsubjectAltName=DNS:{name}\n");
        std::fs::write(authority.dir.join("named"), extension).unwrap();
        authority.sign(name, &["-extfile", "named"])
    };
    let operators: Operators = "ops.example,look.example:read".parse().unwrap();
    let mut cluster = Cluster::new("tls-operators", 2);
    for (node, name) in cluster.nodes.iter_mut().zip(["db1.example", "ops.example"]) {
        node.options.security = Security::Certificates(named(name));
        node.options.operators = operators.clone();
    }
    let (member, address) = (named("db1.example"), cluster.nodes[0].options.listen.clone());
    cluster.nodes[0].start().unwrap();
    cluster.nodes[0].joined();
    let ask = |tls: &TlsOptions| {
        let who = Operating::new(&OperatorIdentity::Certificate(tls.clone())).unwrap();
        who.ask(&address, &Request::Status)
    };
    for (name, may) in [("ops.example", "all"), ("look.example", "read")] {
        match ask(&named(name)).unwrap().answer {
            Answer::Status(report) => {
                assert_eq!((&*report.operator, &*report.privilege), (name, may));
            }
            other => panic!("{other:?}"),
        }
    }
    let answered = ask(&member);
    assert!(matches!(answered, Err(Unanswered::Forbidden(_))), "{answered:?}");
    let error = cluster.nodes[1].start().unwrap_err().to_string();
    assert!(error.contains("of operator ops.example"), "{error}");
    cluster.nodes[1].options.operators = Operators::default();
    cluster.nodes[1].start().unwrap();
    cluster.nodes[1].cannot_join();
    cluster.nodes[0].wait("the reason", |node| node.has_line("heard by nobody as a member"));
    cluster.nodes[1].kill();

    // Who is both is neither, and a list that makes somebody both is not taken.
    let both = TlsOptions { names: vec!["OPS.example".into()], ..member };
    cluster.nodes[1].options.security = Security::Certificates(both);
    cluster.nodes[1].options.operators = operators;
    let error = cluster.nodes[1].start().unwrap_err().to_string();
    assert!(error.contains("ops.example") && error.contains("nobody is both"), "{error}");
    // Taken off the list, it would be a member's certificate like all others of this CA.
    let taken_off = cluster.nodes[0].group().set_operators("look.example".parse().unwrap());
    let error = taken_off.unwrap_err().to_string();
    assert!(error.contains("no longer list ops.example"), "{error}");
    let answered = ask(&named("ops.example")).unwrap().answer;
    assert!(matches!(answered, Answer::Status(_)), "{answered:?}");
    let less =
        cluster.nodes[0].group().set_operators("ops.example:read,look.example".parse().unwrap());
    less.unwrap();
}
