//! Operators and members that want to be heard as the other.

use super::common::{Cluster, Node};
use super::fail_log;
use crate::net::connections::Connections;
use crate::net::dial::{dial, Caller, DialError, Dialled};
use crate::net::trust::{Credentials, Operators, Trust};
use crate::port::{Answer, Operating, Request};

use quorate_consensus::MemberId;
use quorate_live::{Credential, OperatorIdentity, Privilege, Secret, SecretOptions, Security};
use quorate_wire::{Packet, PeerIdentity, RefusalCode, Want};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// One member with a secret, and where that is.
fn secured(name: &str) -> (Cluster, PathBuf) {
    let file = std::env::temp_dir().join(format!("quorate-{name}-{}", std::process::id()));
    let _absent = std::fs::remove_file(&file);
    Secret::new().unwrap().write(&file).unwrap();
    let options = SecretOptions { file: file.clone(), dynamic: false };
    (Cluster::secured(name, 1, |_| Security::Secret(options.clone())), file)
}

fn operator(secret: &std::path::Path) -> OperatorIdentity {
    OperatorIdentity::Credential(Credential::derive("ann", Privilege::All, secret).unwrap())
}

fn dialled(node: &Node, trust: Trust, want: Want) -> Result<Dialled, DialError> {
    let connections = Connections::default();
    // As a member that is there says it.
    let identity = PeerIdentity { key: Default::default(), ..node.group().live.caller().identity };
    let identity = PeerIdentity { member: MemberId(77), incarnation: 1, ..identity };
    let trust = Arc::new(trust);
    let silence = Duration::from_secs(5);
    let caller = Caller { identity, silence, connections: &connections, trust };
    dial(caller, &node.options.listen, want, None)
}

fn forbidden(dialled: Result<Dialled, DialError>) -> String {
    match dialled {
        Err(DialError::Refused { refusal, .. }) if refusal.code == RefusalCode::Forbidden => {
            refusal.text
        }
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("let in"),
    }
}

#[test]
fn an_operator_is_heard_as_no_member_whatever_it_wants() {
    let (cluster, secret) = secured("operator-as-member");
    let node = &cluster.nodes[0];
    let by_credential = || Trust::of_operator(&operator(&secret)).unwrap();
    for want in [Want::Peer, Want::Join, Want::Status] {
        let text = forbidden(dialled(node, by_credential(), want));
        assert!(text.contains("operator"), "{want:?}: {text}");
    }
    // Let in as an operator, it says what members say: the connection ends, and nobody has heard it.
    let mut let_in = dialled(node, by_credential(), Want::Operator).unwrap();
    for packet in [Packet::StatusRequest, Packet::LeaveRequest] {
        let answered = let_in.ask(MemberId(77), &packet);
        assert!(answered.is_err(), "{packet:?}: {answered:?}");
    }
    assert_eq!(node.status().voters, [node.id()]);
    std::fs::remove_file(secret).unwrap();
}

#[test]
fn the_secret_itself_makes_no_operator() {
    let (cluster, secret) = secured("member-as-operator");
    let node = &cluster.nodes[0];
    let options = SecretOptions { file: secret.clone(), dynamic: false };
    let security = Security::Secret(options);
    let read = |security| Credentials::read(security, &Operators::default());
    let trust = read(&security).and_then(|read| read.of_process()).unwrap();
    let text = forbidden(dialled(node, trust, Want::Operator));
    assert!(text.contains("quorate operator new"), "{text}");
    // Nor does a credential make a member: it is no secret's file.
    let file = secret.with_extension("operator");
    Credential::derive("ann", Privilege::All, &secret).unwrap().write(&file).unwrap();
    let as_secret = Security::Secret(SecretOptions { file: file.clone(), dynamic: false });
    assert!(read(&as_secret).is_err());
    let read = Credential::read(&file).unwrap();
    let asks = Operating::new(&OperatorIdentity::Credential(read)).unwrap();
    assert!(asks.ask(&node.options.listen, &Request::Status).is_ok());
    for file in [file, secret] {
        std::fs::remove_file(file).unwrap();
    }
}

#[test]
fn a_member_that_is_out_of_service_says_so_and_why() {
    let cluster = Cluster::started("operator-fault", 1);
    let node = &cluster.nodes[0];
    fail_log(node);
    node.wait("the news", |node| !node.shared.fatal.lock().is_empty());
    let who = Operating::new(&OperatorIdentity::Anonymous).unwrap();
    let asked = who.ask(&node.options.listen, &Request::Status).unwrap();
    let Answer::Status(report) = asked.answer else { panic!("{asked:?}") };
    assert!(report.own.failed && report.leader.is_none());
    let fault = report.own.last_fault.unwrap();
    assert!(fault.message.contains("log") && fault.seconds_ago < 60, "{fault:?}");
}
