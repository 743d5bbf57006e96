//! Groups whose members know each other by a secret.

mod common;

use common::Cluster;
use quorate_live::{GroupError, Secret, SecretOptions, Security, StartError};
use std::fs;
use std::path::{Path, PathBuf};

/// A folder of secrets' files.
struct Safe(PathBuf);

impl Safe {
    fn new(name: &str) -> Safe {
        let dir = std::env::temp_dir().join(format!("quorate-safe-{name}-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        Safe(dir)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn make(&self, name: &str) -> Security {
        Secret::new().unwrap().write(&self.path(name)).unwrap();
        self.security(name, false)
    }

    fn security(&self, name: &str, dynamic: bool) -> Security {
        Security::Secret(SecretOptions { file: self.path(name), dynamic })
    }
}

impl Drop for Safe {
    fn drop(&mut self) {
        let _left = fs::remove_dir_all(&self.0);
    }
}

fn started(name: &str, security: &Security) -> Cluster {
    Cluster::secured(name, 3, |_| security.clone())
}

#[test]
fn a_group_with_a_secret_works_and_returns() {
    let safe = Safe::new("works");
    started("secret", &safe.make("secret")).works_and_returns();
}

#[test]
fn who_does_not_have_it_stays_outside_and_both_logs_say_why() {
    let safe = Safe::new("strangers");
    let mut cluster = Cluster::new("secret-strangers", 3);
    cluster.nodes[0].options.security = safe.make("ours");
    cluster.nodes[1].options.security = safe.make("theirs");
    cluster.nodes[0].start().unwrap();
    cluster.nodes[0].joined();
    for at in [1, 2] {
        cluster.nodes[at].start().unwrap();
        cluster.nodes[at].cannot_join();
        cluster.nodes[at].kill();
    }
    let proposal = cluster.nodes[0].propose();
    cluster.nodes[0].await_applied(&[proposal]);
    cluster.nodes[0].wait("the reason", |node| node.has_line("does not have the group's secret"));
}

/// Though both would speak in the clear with somebody who cannot encrypt, and one is to found a group.
#[test]
fn a_wrong_secret_founds_no_group_and_is_no_reason_to_speak_in_the_clear() {
    let safe = Safe::new("no-fallback");
    let mut cluster = Cluster::new("secret-no-fallback", 2);
    for (at, name) in ["ours", "theirs"].into_iter().enumerate() {
        safe.make(name);
        cluster.nodes[at].options.security = safe.security(name, true);
    }
    cluster.nodes[0].start().unwrap();
    cluster.nodes[0].joined();
    cluster.nodes[1].options.bootstrap = true;
    let refused = cluster.nodes[1].start();
    let Err(GroupError::Start(StartError::SeedUnclear { .. })) = refused else {
        panic!("{refused:?}")
    };
    cluster.nodes[1].options.bootstrap = false;
    cluster.nodes[1].start().unwrap();
    cluster.nodes[1].cannot_join();
    for node in &cluster.nodes {
        let lines = node.shared.lines.lock();
        let plain = lines.iter().find(|(_, line)| line.contains("NOT encrypted"));
        assert!(plain.is_none(), "{plain:?}");
    }
}

#[test]
fn the_secret_is_changed_without_a_stop() {
    let safe = Safe::new("change");
    let security = safe.make("secret");
    let path = safe.path("secret");
    let mut cluster = started("secret-change", &security);
    let mut proposals = vec![cluster.nodes[0].propose()];
    Secret::new().unwrap().append(&path).unwrap();
    let both = fs::read_to_string(&path).unwrap();
    let secrets: Vec<&str> = both.lines().filter(|line| !line.starts_with('#')).collect();
    let (old, new) = (secrets[0], secrets[1]);
    // What is on all members already, then what it becomes; in between some have the one, some the other.
    for text in [both.clone(), format!("{new}\n{old}\n"), format!("{new}\n")] {
        fs::write(&path, text).unwrap();
        for at in 0..3 {
            cluster.nodes[at].group().reload_security().unwrap();
            let other = (at + 1) % 3;
            cluster.nodes[other].kill();
            cluster.nodes[other].start().unwrap();
            cluster.await_members(&[0, 1, 2]);
            proposals.push(cluster.nodes[other].propose());
            cluster.await_applied(&proposals);
        }
    }
    fs::write(&path, "no secret").unwrap();
    let error = cluster.nodes[0].group().reload_security().unwrap_err();
    assert!(error.to_string().contains("line 1"), "{error}");
    proposals.push(cluster.nodes[0].propose());
    cluster.await_applied(&proposals);
}

#[test]
fn who_shows_a_members_id_and_another_key_is_refused() {
    let safe = Safe::new("key");
    let mut cluster = started("secret-key", &safe.make("secret"));
    let key = cluster.nodes[1].options.dir.join("member.key");
    let own = fs::read(&key).unwrap();
    cluster.nodes[1].kill();
    fs::remove_file(&key).unwrap();
    cluster.nodes[1].start().unwrap();
    let proposal = cluster.nodes[0].propose();
    cluster.nodes[0].await_applied(std::slice::from_ref(&proposal));
    cluster.nodes[2].await_applied(&[proposal]);
    cluster.nodes[0].wait("the refusal", |node| node.has_line("does not have that member's key"));
    assert!(!cluster.nodes[1].status().primary, "nobody talks to it");
    cluster.nodes[1].kill();
    fs::write(&key, own).unwrap();
    cluster.nodes[1].start().unwrap();
    cluster.await_members(&[0, 1, 2]);
}

#[test]
fn a_running_group_gets_a_secret_node_by_node() {
    let safe = Safe::new("dynamic");
    safe.make("secret");
    let mut cluster = started("secret-dynamic", &Security::ThisHost);
    let mut proposals = Vec::new();
    for dynamic in [true, false] {
        for at in 0..3 {
            cluster.nodes[at].kill();
            cluster.nodes[at].options.security = safe.security("secret", dynamic);
            cluster.nodes[at].start().unwrap();
            cluster.await_members(&[0, 1, 2]);
            proposals.push(cluster.nodes[at].propose());
            cluster.await_applied(&proposals);
            if (at, dynamic) == (0, true) {
                // Both those that it makes and those that it accepts.
                for connection in ["the connection to member", "a connection from"] {
                    cluster.nodes[0].wait("plain connections", |node| {
                        let lines = node.shared.lines.lock();
                        let told = |line: &str| {
                            line.contains(connection) && line.contains("NOT encrypted")
                        };
                        lines.iter().any(|(_, line)| told(line))
                    });
                }
            }
        }
    }
}

#[test]
fn a_log_directory_that_others_could_look_into_is_closed() {
    use std::os::unix::fs::PermissionsExt;
    let mut cluster = Cluster::new("secret-modes", 1);
    let dir = cluster.nodes[0].options.dir.clone();
    cluster.nodes[0].start().unwrap();
    cluster.nodes[0].joined();
    cluster.nodes[0].kill();
    let files = || fs::read_dir(&dir).unwrap().map(|file| file.unwrap().path());
    for path in files() {
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    }
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o755)).unwrap();
    cluster.nodes[0].start().unwrap();
    let mode = |path: &Path| fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&dir), 0o700);
    for path in files() {
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
    cluster.nodes[0].wait("its line", |node| node.has_line("others could look into it"));
}

#[test]
fn who_can_be_reached_and_is_not_protected_does_not_start() {
    let mut cluster = Cluster::new("secret-none", 1);
    cluster.nodes[0].options.advertise = "192.0.2.1:4567".into();
    let error = cluster.nodes[0].start().unwrap_err().to_string();
    assert!(error.contains("quorate.secret_file") && error.contains("192.0.2.1:4567"), "{error}");
    assert!(!cluster.nodes[0].options.dir.exists(), "nothing was begun");
    cluster.nodes[0].options.security = Security::Insecure;
    cluster.nodes[0].start().unwrap();
    cluster.nodes[0].joined();
}

#[test]
fn who_says_more_of_itself_than_the_others_take_does_not_start() {
    let mut cluster = Cluster::new("secret-long", 1);
    let node = &mut cluster.nodes[0];
    node.options.incoming = "x".repeat(256);
    let error = node.start().unwrap_err().to_string();
    assert!(
        error.contains("wsrep_node_incoming_address") && error.contains("256 bytes"),
        "{error}"
    );
    assert!(!node.options.dir.exists(), "nothing was begun");
    node.options.incoming.pop();
    node.start().unwrap();
    node.joined();
}
