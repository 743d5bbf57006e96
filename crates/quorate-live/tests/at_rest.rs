//! A group whose members encrypt what they keep, from one start to the next.

mod common;

use common::Cluster;
use quorate_live::{AtRest, DiskKey};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// Whether any file in there has this text in it.
fn shows(dir: &Path, text: &str) -> bool {
    'listing: loop {
        for file in fs::read_dir(dir).unwrap() {
            let bytes = match fs::read(file.unwrap().path()) {
                // It got another name since it was listed.
                Err(error) if error.kind() == ErrorKind::NotFound => continue 'listing,
                read => read.unwrap(),
            };
            if bytes.windows(text.len()).any(|part| part == text.as_bytes()) {
                return true;
            }
        }
        return false;
    }
}

fn at_rest(keys: &[&DiskKey]) -> AtRest {
    let given = keys.iter().map(|key| (*key).clone()).collect();
    AtRest { encrypts: true, given, ..AtRest::default() }
}

#[test]
fn members_encrypt_change_keys_and_refuse_without_them() {
    let mut cluster = Cluster::started("at-rest", 3);
    let in_the_clear = cluster.nodes[0].propose();
    cluster.await_applied(std::slice::from_ref(&in_the_clear));
    let mut proposals = vec![in_the_clear.clone()];
    let (old, new) = (DiskKey::new().unwrap(), DiskKey::new().unwrap());
    let mut encrypted = Vec::new();
    for keys in [&[&old][..], &[&new, &old]] {
        for at in 0..3 {
            cluster.nodes[at].kill();
            cluster.nodes[at].options.at_rest = at_rest(keys);
            cluster.nodes[at].start().unwrap();
            cluster.await_members(&[0, 1, 2]);
        }
        let proposal = cluster.nodes[1].propose();
        proposals.push(proposal.clone());
        encrypted.push(proposal);
        cluster.await_applied(&proposals);
    }
    for node in &cluster.nodes {
        let dir = &node.options.dir;
        assert!(shows(dir, &in_the_clear), "what was in the clear is still there");
        assert!(encrypted.iter().all(|proposal| !shows(dir, proposal)));
        let line = format!("encrypted with the key {}", old.id());
        node.wait("what needs the old key", |node| node.has_line(&line));
    }
    let node = &mut cluster.nodes[2];
    node.kill();
    // The file of term and vote comes first, then the segments.
    for (keys, lacks) in [(AtRest::default(), &new), (at_rest(&[&new]), &old)] {
        node.options.at_rest = keys;
        let error = node.start().unwrap_err().to_string();
        assert!(error.contains(&lacks.id().to_string()), "{error}");
        assert!(error.contains("quorate.encrypt_key_file"), "{error}");
    }
    node.options.at_rest = at_rest(&[&new, &old]);
    node.start().unwrap();
    cluster.await_members(&[0, 1, 2]);
    cluster.await_applied(&proposals);
}
