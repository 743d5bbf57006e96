//! The command as an operator types it, on members that run in this process: real ports, real credentials.

#[path = "../../quorate-live/tests/common/mod.rs"]
mod common;

use common::Cluster;
use quorate_cli::cluster::{Account, Role, State};
use quorate_cli::server::ProcessId;
use quorate_live::{Secret, SecretOptions, Security, ServerReport};
use serde_json::Value;
use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// A group whose members have servers that are well, and a folder for an operator.
struct Office {
    cluster: Cluster,
    folder: PathBuf,
}

impl Office {
    fn open(name: &str) -> Office {
        let folder =
            std::env::temp_dir().join(format!("quorate-office-{name}-{}", std::process::id()));
        let _absent = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join("secret");
        Secret::new().unwrap().write(&file).unwrap();
        let options = SecretOptions { file, dynamic: false };
        let cluster = Cluster::secured(name, 3, |_| Security::Secret(options.clone()));
        for node in &cluster.nodes {
            *node.shared.server.lock() = Some(ServerReport {
                state: "Synced".into(),
                ready: true,
                seqno: 7,
                committed: 9,
                ..ServerReport::default()
            });
        }
        let office = Office { cluster, folder };
        for (name, more) in [("ann", &[][..]), ("eve", &["--read-only"])] {
            let new = ["operator", "new", name, "--secret-file", "secret"];
            assert_eq!(office.run(&[&new[..], more].concat()).status.code(), Some(0));
        }
        office
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_quorate"));
        command
            .args(arguments)
            .current_dir(&self.folder)
            .env("XDG_CONFIG_HOME", self.folder.join("config"))
            .env_remove("QUORATE_OPERATOR_FILE")
            .env_remove("QUORATE_DIR");
        command
    }

    fn seed(&self, node: usize) -> String {
        self.cluster.nodes[node].options.listen.clone()
    }

    /// By the name under which the group is kept.
    fn by(&self, operator: &str, arguments: &[&str]) -> Output {
        let file = format!("{operator}.operator");
        self.run(&[&["--cluster", "shop", "--operator-file", &file][..], arguments].concat())
    }

    fn keep(&self, seeds: &[usize]) {
        let seeds: Vec<String> = seeds.iter().map(|at| self.seed(*at)).collect();
        let add = self.run(&["cluster", "add", "shop", "--seed", &seeds.join(",")]);
        assert!(add.status.success(), "{add:?}");
    }

    /// As a cluster of this machine, whose nodes this process runs.
    fn describe(&self, runs: impl Fn(usize) -> bool) {
        let account = Account::choose().map_or("root".into(), |account| account.name);
        let mut state = State::new(3400, &account);
        state.provider = "/lib/libquorate.so".into();
        for (at, node) in self.cluster.nodes.iter().enumerate() {
            state.add_node(Role::Voter);
            let (_, port) = node.options.listen.rsplit_once(':').unwrap();
            let added = state.nodes.last_mut().unwrap();
            added.ports.group = port.parse().unwrap();
            added.process = runs(at).then(|| ProcessId::own().unwrap());
        }
        state.write(&self.folder).unwrap();
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let output = self.by("ann", arguments);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
    }
}

impl Drop for Office {
    fn drop(&mut self) {
        let _left = fs::remove_dir_all(&self.folder);
    }
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

#[test]
fn any_member_tells_of_all_and_takes_orders_for_the_leader() {
    let office = Office::open("office-orders");
    let follower = office.cluster.follower();
    office.keep(&[follower]);
    let status = office.by("eve", &["status"]);
    assert_eq!(code(&status), 0, "{}", told(&status));
    assert!(told(&status).contains("Nothing is wrong."), "{}", told(&status));
    let before = office.json(&["status", "--json"]);
    assert_eq!(
        (&before["health"], before["nodes"].as_array().unwrap().len()),
        (&"synced".into(), 3)
    );
    assert_eq!((&before["nodes"][0]["seqno"], &before["nodes"][0]["lag"]), (&7.into(), &2.into()));

    // Less than the others: with more, leadership would go over to it meanwhile.
    let set = office.by("ann", &["member", "set", "n2", "--priority", "40", "--zone", "eu"]);
    assert!(
        code(&set) == 0 && told(&set).contains("40") && told(&set).contains("eu"),
        "{}",
        told(&set)
    );
    let rules = office.json(&["member", "rules", "--primary-failover", "wait", "--json"]);
    assert_eq!(rules["rules"]["primary_failover"], "wait");
    let name = format!("n{follower}");
    let handed = office.json(&["switchover", "--to", &name, "--json"]);
    assert_eq!(handed["leader"], name.as_str());
    assert_eq!(office.cluster.leader(), follower);

    // What the group does not do, and what is no order.
    for verb in [
        &["switchover", "--to"][..],
        &["member", "isolate"],
        &["reinit"],
        &["member", "remove"],
        &["member", "set", "--priority", "1"],
        &["member", "set-role", "--", "nobody", "learner"],
    ] {
        let name = if verb.contains(&"nobody") { &[][..] } else { &["nobody"] };
        let unknown = office.by("ann", &[verb, name].concat());
        let says = "knows no member nobody";
        assert!(code(&unknown) == 64 && told(&unknown).contains(says), "{}", told(&unknown));
    }
    // No order: none was sent.
    let history = office.json(&["history", "--kind", "order", "--json"]);
    assert!(!history.to_string().contains("nobody"), "{history}");
    // Nobody is there to be asked.
    for verb in [["member", "remove", "n1"], ["member", "reinit", "n1"]] {
        let unasked = office.by("ann", &verb);
        assert!(code(&unasked) == 64 && told(&unasked).contains("--yes"), "{}", told(&unasked));
    }
    let kept = office.by("ann", &["member", "reinit", &format!("n{follower}"), "--yes"]);
    assert!(code(&kept) == 1 && told(&kept).contains("keeps its data"), "{}", told(&kept));
    let alive = office.by("ann", &["member", "force-quorum", "--keep", "n0", "--reason", "no"]);
    assert!(code(&alive) == 1 && told(&alive).contains("a majority lives"), "{}", told(&alive));
    for wrong in [&["member", "set", "n1", "--role", "king"][..], &["member", "add"]] {
        assert_eq!(code(&office.by("ann", wrong)), 64, "{wrong:?}");
    }
}

#[test]
fn an_error_is_an_object_too_where_json_is_asked_for() {
    let office = Office::open("office-json");
    office.keep(&[0, 1, 2]);
    let reason = |arguments: &[&str], expected: i32| -> String {
        let output = office.by("eve", arguments);
        assert_eq!(code(&output), expected, "{}", told(&output));
        let printed: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {output:?}"));
        assert_eq!(printed["error"]["code"], expected);
        let reason = printed["error"]["reason"].as_str().unwrap().to_owned();
        assert!(String::from_utf8_lossy(&output.stderr).contains(&reason), "{output:?}");
        reason
    };
    assert!(reason(&["switchover", "--json"], 77).contains("only look"));
    assert!(reason(&["member", "set", "n9", "--priority", "1", "--json"], 64).contains("n9"));
    assert!(reason(&["member", "--json", "rules", "--primary-mode", "dual"], 64).contains("single"));
    let nobody = office.run(&["status", "--seed", "127.0.0.1:1", "--json"]);
    let printed: Value = serde_json::from_slice(&nobody.stdout).unwrap();
    assert_eq!((code(&nobody), &printed["error"]["code"]), (69, &69.into()));
    assert!(office.by("eve", &["switchover"]).stdout.is_empty(), "nobody asked for an object");
    // Nobody reads it: the exit code stays.
    for (wrong, expected) in [(&["status", "--seed", "127.0.0.1:1"][..], 69), (&["nothing"], 64)] {
        let mut unread = Command::new(env!("CARGO_BIN_EXE_quorate"))
            .args(wrong)
            .args(["--json"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop((unread.stdout.take(), unread.stderr.take()));
        assert_eq!(unread.wait().unwrap().code(), Some(expected), "{wrong:?}");
    }

    // What is made and kept for operators.
    let json = |arguments: &[&str]| -> Value {
        let output = office.run(arguments);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
    };
    let bob = json(&["operator", "new", "bob", "--secret-file", "secret", "--read-only", "--json"]);
    assert_eq!((&bob["operator"], &bob["privilege"]), (&"bob".into(), &"read".into()));
    assert!(bob["file"].as_str().unwrap().ends_with("bob.operator"));
    let kept = json(&["cluster", "add", "spare", "--json", "--seed", "h:1"]);
    assert_eq!(kept["clusters"]["spare"]["seeds"][0], "h:1");
    let left = json(&["cluster", "remove", "spare", "--json"]);
    assert!(left["clusters"]["spare"].is_null() && left["clusters"]["shop"].is_object());
}

/// As in a unit of systemd.
#[test]
fn where_nothing_says_whose_home_it_is_the_accounts_own_is_meant() {
    let output = Command::new(env!("CARGO_BIN_EXE_quorate"))
        .args(["cluster", "list", "--json"])
        .env_remove("HOME")
        .env_remove("XDG_CONFIG_HOME")
        .output()
        .unwrap();
    assert_eq!(code(&output), 0, "{}", told(&output));
}

#[test]
fn without_permission_nothing_is_done_and_the_exit_code_says_so() {
    let office = Office::open("office-permission");
    office.keep(&[0, 1, 2]);
    let leader = office.cluster.leader();
    for order in [&["switchover"][..], &["member", "set", "n1", "--priority", "1"]] {
        let refused = office.by("eve", order);
        assert!(code(&refused) == 77 && told(&refused).contains("only look"), "{}", told(&refused));
    }
    assert_eq!(office.cluster.leader(), leader);
    for node in &office.cluster.nodes {
        node.group().set_operators("ann".parse().unwrap()).unwrap();
    }
    assert_eq!(code(&office.by("eve", &["status"])), 77);
    assert_eq!(code(&office.by("ann", &["status"])), 0);
    // Another group's credential is no credential.
    Secret::new().unwrap().write(&office.folder.join("other")).unwrap();
    office.run(&["operator", "new", "bob", "--secret-file", "other"]);
    let stranger = office.by("bob", &["status"]);
    assert_eq!(code(&stranger), 77);
    assert!(
        told(&stranger).contains("does not take this operator's credential"),
        "{}",
        told(&stranger)
    );
    let nothing = office.run(&["status", "--seed", &office.seed(0)]);
    assert!(
        code(&nothing) == 77 && told(&nothing).contains("--operator-file"),
        "{}",
        told(&nothing)
    );
    assert_eq!(code(&office.run(&["status", "--seed", "127.0.0.1:1"])), 69);

    // What the environment names counts last, and is not kept.
    let exported = |file: &str, arguments: &[&str]| {
        let mut command = office.command(arguments);
        command.env("QUORATE_OPERATOR_FILE", file).output().unwrap()
    };
    let seed = office.seed(0);
    let add = ["cluster", "add", "mine", "--seed", &seed, "--operator-file", "ann.operator"];
    for (arguments, expected) in [
        (&add[..], 0),
        (&["status", "--cluster", "mine"], 0),
        (&["status", "--cluster", "shop"], 77),
        (&["cluster", "add", "shop", "--seed", &seed], 0),
        (&["status", "--cluster", "shop", "--operator-file", "ann.operator"], 0),
    ] {
        let output = exported("bob.operator", arguments);
        assert_eq!(code(&output), expected, "{arguments:?}: {}", told(&output));
    }
    assert_eq!(code(&exported("ann.operator", &["status", "--cluster", "shop"])), 0);
    let certificate = ["--ssl-cert", "c", "--ssl-key", "k", "--ssl-ca", "a"];
    let twice = office.by("ann", &[&["status"][..], &certificate].concat());
    assert!(code(&twice) == 64 && told(&twice).contains("both say who asks"), "{}", told(&twice));
}

#[test]
fn members_that_hang_or_are_gone_hold_nobody_up() {
    let mut office = Office::open("office-gone");
    // As a stopped process: the system takes connections, and nobody reads them.
    let hung = TcpListener::bind("127.0.0.1:0").unwrap();
    let seeds = format!("{},{}", hung.local_addr().unwrap(), office.seed(0));
    let began = Instant::now();
    let credential = ["--operator-file", "ann.operator"];
    let status = office.run(&[&["status", "--seed", &seeds][..], &credential].concat());
    assert_eq!(code(&status), 0, "{}", told(&status));
    let switched = office.run(&[&["switchover", "--seed", &seeds][..], &credential].concat());
    assert_eq!(code(&switched), 0, "{}", told(&switched));
    assert!(began.elapsed() < Duration::from_secs(12), "{:?}", began.elapsed());

    office.keep(&[0, 1, 2]);
    let leader = office.cluster.leader();
    office.cluster.nodes[leader].kill();
    let rest: Vec<usize> = (0..3).filter(|at| *at != leader).collect();
    office.cluster.nodes[rest[0]].wait("another leader", |node| {
        node.status().leader.is_some_and(|id| id != office.cluster.nodes[leader].id())
    });
    let degraded = office.by("ann", &["status"]);
    assert_eq!(code(&degraded), 1, "{}", told(&degraded));
    let gone = format!("n{leader} does not answer");
    assert!(told(&degraded).contains(&gone), "{}", told(&degraded));

    // No quorum: who is left says so, and is told to go on alone.
    office.cluster.nodes[rest[1]].kill();
    let last = &office.cluster.nodes[rest[0]];
    last.wait("to have no leader", |node| node.status().leader.is_none());
    if let Some(server) = &mut *last.shared.server.lock() {
        server.ready = false;
    }
    let lost = office.by("ann", &["status"]);
    assert!(code(&lost) == 2 && told(&lost).contains("1 of 3 votes"), "{}", told(&lost));
    let keep = format!("n{}", rest[0]);
    let plan = office.by("eve", &["member", "force-quorum", "--keep", &keep]);
    assert!(code(&plan) == 0 && told(&plan).contains("Nothing was changed"), "{}", told(&plan));
    let forced =
        office.by("ann", &["member", "force-quorum", "--keep", &keep, "--reason", "a test"]);
    assert!(code(&forced) == 0 && told(&forced).contains("done: keeps"), "{}", told(&forced));
    last.wait("to lead", |node| node.status().is_leader);
}

#[test]
fn a_cluster_of_this_machine_is_asked_as_any_other() {
    let office = Office::open("office-here");
    office.describe(|_| true);
    let here = |arguments: &[&str]| office.run(&[&["--dir", "."], arguments].concat());
    let json = |arguments: &[&str]| -> Value {
        let output = here(arguments);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
    };
    let status = here(&["status"]);
    assert_eq!(code(&status), 0, "{}", told(&status));
    assert!(told(&status).contains("Nothing is wrong."), "{}", told(&status));
    let nodes = json(&["status", "--json"])["nodes"].clone();
    for at in 0..3 {
        let node = &nodes[at];
        assert_eq!(node["name"], format!("n{at}"));
        assert_eq!((&node["state"], &node["lag"]), (&"Synced".into(), &2.into()));
        assert_eq!(node["pid"], std::process::id());
        assert!(node["socket"].as_str().unwrap().ends_with("mariadb.sock"), "{node}");
    }
    let line = json(&["watch", "--count", "1", "--json"]);
    assert_eq!(line["status"]["health"], "synced");

    // Orders, by whoever can read the secret.
    let follower = office.cluster.follower();
    let handed = json(&["switchover", "--to", &format!("n{follower}"), "--json"]);
    assert_eq!(handed["leader"], format!("n{follower}"));
    assert_eq!(code(&here(&["switchover", "--to", "nobody"])), 64);
    let rules = json(&["rules", "--primary-failover", "wait", "--json"]);
    assert_eq!(rules["rules"]["primary_failover"], "wait");
    let set = here(&["member", "set", "n2", "--priority", "40"]);
    assert!(code(&set) == 0 && told(&set).contains("40"), "{}", told(&set));
    // An order is noted a moment after it is answered.
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        let history = json(&["history", "--kind", "order", "--last", "1", "--json"]);
        if history["history"][0]["what"] == "member set n2 priority=40" {
            break;
        }
        assert!(Instant::now() < end, "{history}");
        thread::sleep(Duration::from_millis(50));
    }

    // A node that does not run is not asked, whatever listens at its port.
    let down = office.cluster.follower();
    office.describe(|at| at != down);
    let degraded = here(&["status"]);
    assert_eq!(code(&degraded), 1, "{}", told(&degraded));
    let says = format!("n{down} does not run; start it with");
    assert!(told(&degraded).contains(&says), "{}", told(&degraded));
    office.describe(|_| false);
    let nothing = here(&["status"]);
    assert_eq!(code(&nothing), 2, "{}", told(&nothing));
    let order = here(&["switchover"]);
    assert!(code(&order) == 69 && told(&order).contains("quorate up"), "{}", told(&order));
}

#[test]
fn a_group_is_checked_by_what_its_members_report() {
    let mut office = Office::open("office-check");
    office.keep(&[0, 1, 2]);
    let well = office.by("eve", &["check"]);
    assert_eq!(code(&well), 0, "{}", told(&well));
    assert!(told(&well).contains("0 to mend first"), "{}", told(&well));
    for at in 0..3 {
        let member = format!("n{at} ({}): Quorate ", office.seed(at));
        assert!(told(&well).contains(&member), "{}", told(&well));
    }
    if let Some(server) = &mut *office.cluster.nodes[1].shared.server.lock() {
        server.ready = false;
    }
    let bad = office.by("eve", &["check", "--json"]);
    assert_eq!(code(&bad), 1, "{}", told(&bad));
    let found: Value = serde_json::from_slice(&bad.stdout).unwrap();
    let members = found["members"].as_array().unwrap();
    let n1 = members.iter().find(|member| member["name"] == "n1").expect("n1");
    assert_eq!(n1["findings"][0]["what"], "it is Synced, but takes no writes");

    // With a server that nobody reaches, both are told of.
    let both = office.by("eve", &["check", "127.0.0.1:1"]);
    assert_eq!(code(&both), 69, "{}", told(&both));
    for part in ["takes no writes", "127.0.0.1:1: not checked: connecting to"] {
        assert!(told(&both).contains(part), "{}", told(&both));
    }
    let gone = office.cluster.follower();
    office.cluster.nodes[gone].kill();
    let parts = [format!("n{gone} ("), "not checked: ".into(), format!("missing: n{gone}. The")];
    // The others take a moment to notice.
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        let alone = office.by("eve", &["check"]);
        assert_eq!(code(&alone), 69, "{}", told(&alone));
        if parts.iter().all(|part| told(&alone).contains(part)) {
            break;
        }
        assert!(Instant::now() < end, "{}", told(&alone));
        thread::sleep(Duration::from_millis(50));
    }

    // Nobody is asked without a credential, and what else is named is checked all the same.
    let seed = office.seed((gone + 1) % 3);
    let nobody = office.run(&["check", "--seed", &seed, "--peers", &seed, "--json"]);
    assert_eq!(code(&nobody), 77, "{}", told(&nobody));
    let found: Value = serde_json::from_slice(&nobody.stdout).unwrap();
    let what = found["findings"][0]["what"].as_str().unwrap();
    assert!(what.starts_with("the group was not checked: "), "{found:#}");
    assert_eq!(found["peers"][0]["ports"][0]["answer"], "open");
    // Nothing is named, and there is no cluster in the directory.
    assert_eq!(code(&office.run(&["--dir", "none", "check"])), 66);
}
