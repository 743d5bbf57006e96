//! Founding a group: not while somebody listens who does not say which group is his.

mod common;

use common::Cluster;
use quorate_live::{GroupError, StartError};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

/// Listens, serves one connection with `serve`, and ends.
fn stranger(serve: fn(TcpStream)) -> (String, thread::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap().to_string();
    let serving = thread::spawn(move || {
        // The first one only looks whether this is the founder itself.
        drop(listener.accept().unwrap());
        serve(listener.accept().unwrap().0);
    });
    (addr, serving)
}

/// Reads until the other side gives up.
fn mute(mut stream: TcpStream) {
    let mut heard = Vec::new();
    let _reset_or_closed = stream.read_to_end(&mut heard);
    assert!(!heard.is_empty());
}

fn hangs_up(stream: TcpStream) {
    drop(stream);
}

fn speaks_another_language(mut stream: TcpStream) {
    stream.write_all(&[b'x'; 4096]).unwrap();
    let _reset_or_closed = stream.read_to_end(&mut Vec::new());
}

#[test]
fn who_listens_and_does_not_say_its_group_forbids_founding_one() {
    let mut cluster = Cluster::new("unclear", 1);
    let node = &mut cluster.nodes[0];
    let own_seeds = node.options.seeds.clone();
    for serve in [mute, hangs_up, speaks_another_language] {
        let (addr, serving) = stranger(serve);
        node.options.seeds.push(addr.clone());
        let refused = node.start();
        let Err(error @ GroupError::Start(StartError::SeedUnclear { .. })) = refused else {
            panic!("{refused:?}")
        };
        assert!(error.to_string().contains(&addr), "{error}");
        serving.join().unwrap();
        node.options.seeds = own_seeds.clone();
    }
    // Nobody listens there any more, and nothing was changed.
    let (gone, serving) = stranger(hangs_up);
    for _ in 0..2 {
        drop(TcpStream::connect(&gone).unwrap());
    }
    serving.join().unwrap();
    node.options.seeds.push(gone);
    node.start().unwrap();
    node.joined();
    assert!(node.info.as_ref().unwrap().founded);
}

#[test]
fn a_founder_knows_itself_under_another_name() {
    let mut cluster = Cluster::new("itself", 1);
    let node = &mut cluster.nodes[0];
    node.options.seeds = vec![node.options.listen.replace("127.0.0.1", "localhost")];
    // Its own answer would not come: then it would not start.
    node.start().unwrap();
    node.joined();
    assert!(node.info.as_ref().unwrap().founded);
}
