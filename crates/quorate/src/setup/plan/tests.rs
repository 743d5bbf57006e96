//! What is decided from what is said, and from what is there.

use super::*;
use clap::Parser;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;

#[derive(Parser)]
struct Told {
    #[command(flatten)]
    setup: Setup,
}

fn told(words: &[&str]) -> Setup {
    Told::try_parse_from([&["setup"], words].concat()).unwrap_or_else(|e| panic!("{e}")).setup
}

/// A provider that is there, and whatever else is said.
fn decided(words: &[&str], former: &str) -> Result<Decided> {
    let provider = std::env::current_exe().unwrap().display().to_string();
    let all = [&["--provider", &provider], words].concat();
    Decided::of(&told(&all), &Installed::of(""), former)
}

fn written(words: &[&str], former: &str) -> String {
    decided(words, former).unwrap_or_else(|error| panic!("{error}")).render(former).1
}

const THIS: [&str; 2] = ["--members", "127.0.0.1,192.0.2.7"];

#[test]
fn the_options_are_those_of_the_readme() {
    let mut all = decided(
        &[
            "--members",
            "10.0.0.1,10.0.0.2,10.0.0.3",
            "--address",
            "10.0.0.1",
            "--cluster-name",
            "mine",
        ],
        "",
    )
    .unwrap();
    all.provider = "/usr/lib/quorate/libquorate.so".into();
    // Of each group.
    let settings = |text: &str| {
        let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
        let mut group = "[mariadbd]";
        let mut settings = BTreeSet::new();
        for line in lines {
            match line.split_once('=') {
                Some((name, value)) => {
                    settings.insert([group, name.trim(), value.trim()].map(str::to_owned));
                }
                None if line.starts_with('[') => group = line,
                None => {}
            }
        }
        settings
    };
    let readme = include_str!("../../../../../README.md");
    let (_, block) = readme.split_once("```ini\n[mariadbd]\n").expect("a my.cnf");
    let (block, _) = block.split_once("```").expect("its end");
    let (text, whole) = all.render("");
    assert_eq!(settings(&text), settings(block));
    assert_eq!(text, whole);
}

#[test]
fn what_is_not_said_again_stays() {
    let first = written(
        &[
            &THIS[..],
            &["--cluster-name", "shop", "--log-dir", "/srv/log", "--secret-file", "/etc/q.secret"],
            &[
                "--zone",
                "eu",
                "--option",
                "quorate.log_retain=2G",
                "--option",
                "quorate.priority=70",
            ],
        ]
        .concat(),
        "",
    );
    let options = "\"quorate.dir=/srv/log;quorate.secret_file=/etc/q.secret;quorate.log_retain=2G;\
                   quorate.priority=70;quorate.zone=eu\"";
    assert!(first.contains(options), "{first}");
    assert_eq!(written(&THIS, &first), first);

    let grown = written(
        &["--members", "127.0.0.1,192.0.2.7,192.0.2.8", "--option", "quorate.priority="],
        &first,
    );
    let told: Vec<_> = changes(&first, &grown).into_iter().map(|c| (c.option, c.to)).collect();
    let members = "gcomm://127.0.0.1,192.0.2.7,192.0.2.8".to_owned();
    assert_eq!(
        told,
        [
            ("quorate.priority".to_owned(), None),
            ("wsrep_cluster_address".to_owned(), Some(members))
        ]
    );
}

#[test]
fn what_somebody_chose_for_the_server_stays_if_a_member_works_with_it() {
    let line = |name: &str, value: &str| format!("{name:<30} = {value}\n");
    let first = written(&THIS, "");
    let mut chosen = first.clone();
    for (name, ours, theirs) in [
        ("bind-address", "0.0.0.0", "127.0.0.1"),
        ("sync_binlog", "0", "1"),
        ("binlog_format", "ROW", "MIXED"),
    ] {
        assert!(chosen.contains(&line(name, ours)), "{chosen}");
        chosen =
            chosen.replace(&line(name, ours), &format!("{}={theirs}\n", name.replace('-', "_")));
    }
    let again = written(&THIS, &chosen);
    for (name, value) in
        [("bind-address", "127.0.0.1"), ("sync_binlog", "1"), ("binlog_format", "ROW")]
    {
        assert!(again.contains(&line(name, value)), "{again}");
    }
    let moved = written(&["--members", "2001:db8::1", "--address", "2001:db8::1"], &first);
    assert!(moved.contains(&line("bind-address", "::")), "{moved}");
}

#[test]
fn options_that_another_file_has_are_not_hidden() {
    let args = told(&THIS);
    let installed = Installed::of("--wsrep_provider_options=quorate.zone=eu\n");
    let provider = Some(std::env::current_exe().unwrap());
    let all = Decided::of(&Setup { provider, ..args }, &installed, "").unwrap();
    assert_eq!(all.options.get(ZONE), Some("eu"));
}

#[test]
fn certificates_stand_in_place_of_the_secret() {
    let folder = std::env::temp_dir().join(format!("quorate-setup-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let option = |name: &str, file: &str| {
        let path = folder.join(file);
        fs::write(&path, "").unwrap();
        format!("{name}={}", path.display())
    };
    let [cert, key] = [option("socket.ssl_cert", "c"), option("socket.ssl_key", "k")];
    let certified = [&THIS[..], &["--option", &cert, "--option", &key]].concat();
    let text = written(&certified, &written(&THIS, ""));
    assert!(!text.contains(SECRET_FILE), "{text}");
    assert!(
        text.contains(&format!("tcert                          = {}/c", folder.display())),
        "{text}"
    );

    let refused = |words: &[&str]| {
        decided(&[&THIS[..], words].concat(), "").err().expect("refused").to_string()
    };
    let both = refused(&["--option", &cert, "--option", &key, "--secret-file", "/s"]);
    assert!(both.contains("Nothing was changed"), "{both}");
    let half = refused(&["--option", &cert]);
    assert!(half.contains("socket.ssl_key"), "{half}");
    let ca = option("socket.ssl_ca", "a");
    let by_ca = ["--option", &cert, "--option", &key, "--option", &ca];
    let reached = ["--members", "192.0.2.6,192.0.2.7", "--address", "192.0.2.6"];
    let unnamed = decided(&[&reached[..], &by_ca].concat(), "").err().expect("refused");
    assert!(unnamed.to_string().contains("quorate.ssl_names"), "{unnamed}");
    let named = [&reached[..], &by_ca, &["--option", "quorate.ssl_names=db1,db2"]].concat();
    assert!(written(&named, "").contains("quorate.ssl_names=db1,db2"));
    fs::remove_dir_all(&folder).unwrap();
    let gone = refused(&["--option", &cert, "--option", &key]);
    assert!(gone.contains("there is no such file"), "{gone}");
}

#[test]
fn a_server_with_an_ipv6_address_listens_there() {
    let text =
        written(&["--members", "2001:db8::1,[2001:db8::2]:4000", "--address", "2001:db8::1"], "");
    for line in [
        "wsrep_cluster_address          = gcomm://[2001:db8::1],[2001:db8::2]:4000",
        "wsrep_node_address             = [2001:db8::1]",
        "bind-address                   = ::",
        ";gmcast.listen_addr=tcp://[::]:4567\"",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let own = ["--members", "2001:db8::1,[2001:db8::2]:4000", "--address", "[2001:db8::2]:4000"];
    assert!(written(&own, "").contains("tcp://[::]:4000"));
}

#[test]
fn a_log_inside_the_data_is_refused_and_galera_is_left_alone() {
    let members = ["--members", "127.0.0.1", "--first", "--log-dir", "/var/lib/mysql/log"];
    let server = Access::of_user(0);
    let plan = |defaults: &str| Plan::make(&told(&members), &Installed::of(defaults), &server);
    let refused = plan("").err().expect("an error").to_string();
    assert!(refused.contains("inside the data directory"), "{refused}");
    let refused = plan("--wsrep_provider=/usr/lib/galera/libgalera_smm.so\n");
    let refused = refused.err().expect("an error").to_string();
    assert!(refused.contains("from-galera.md"), "{refused}");
    assert_eq!(beside(Path::new("/srv/data/")), Path::new("/srv/data-quorate"));
}

/// Of one test, open to everybody.
fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("quorate-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    set_mode(&folder, 0o755);
    folder
}

/// A file in it.
fn put(folder: &Path, name: &str, mode: u32) -> String {
    let path = folder.join(name);
    fs::write(&path, "").unwrap();
    set_mode(&path, mode);
    path.display().to_string()
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Whose the tests' files are, and whose they are not.
fn servers() -> [Access; 2] {
    let own = rustix::process::geteuid().as_raw();
    [own, own + 1].map(Access::of_user)
}

#[test]
fn what_the_server_could_not_read_is_refused() {
    let folder = folder("plan-unread");
    let (library, key) = (put(&folder, "libquorate.so", 0o644), put(&folder, "key", 0o600));
    let option = format!("quorate.encrypt_key_file={key}");
    let decide = |words: &[&str]| {
        let words = [&THIS[..], &["--provider", &library], words].concat();
        Decided::of(&told(&words), &Installed::of(""), "").unwrap()
    };
    let [owner, other] = servers();
    decide(&[]).check_read(&other).unwrap();
    let encrypted = decide(&["--option", &option]);
    encrypted.check_read(&owner).unwrap();
    let refused = encrypted.check_read(&other).unwrap_err().to_string();
    assert!(refused.contains(&option) && refused.contains("chown mysql"), "{refused}");
    set_mode(&folder, 0o700);
    let refused = decide(&[]).check_read(&other).unwrap_err().to_string();
    assert!(refused.starts_with("the library") && refused.contains("may not enter"), "{refused}");
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_server_is_a_member_by_its_log_and_by_the_file_that_it_could_read() {
    let folder = folder("plan-member");
    let library = put(&folder, "libquorate.so", 0o644);
    let [config, secret, log] = ["q.cnf", "secret", "log"].map(|name| folder.join(name));
    let [config_said, secret_said, log_said] =
        [&config, &secret, &log].map(|path| path.display().to_string());
    let args = told(
        &[
            &THIS[..],
            &["--first", "--provider", &library, "--log-dir", &log_said],
            &["--config", &config_said, "--secret-file", &secret_said],
        ]
        .concat(),
    );
    let [owner, other] = servers();
    let plan = |server: &Access| Plan::make(&args, &Installed::of(""), server).unwrap();
    let written = |plan: &Plan| {
        plan.steps.iter().find_map(|step| match step {
            Step::WriteConfig { text, .. } => Some(text.clone()),
            _ => None,
        })
    };
    let first = plan(&owner);
    assert!(!first.is_member);
    let made = [Step::MakeSecret(secret.clone()), Step::MakeLogDir(log.clone())];
    assert!(made.iter().all(|step| first.steps.contains(step)));
    quorate_live::Secret::new().unwrap().write(&secret).unwrap();
    fs::create_dir(&log).unwrap();
    set_mode(&log, 0o700);
    fs::write(&config, written(&first).expect("a file to be written")).unwrap();
    set_mode(&config, 0o644);
    // Not started yet: its data is still to be the group's, or to be replaced.
    let again = plan(&owner);
    assert!(!again.is_member && again.steps.iter().all(|step| *step == Step::FreePort));
    put(&log, "meta", 0o644);
    assert!(plan(&owner).is_member);

    // Another account is given what is there; what it cannot read is written again, and made it no member.
    let given = plan(&other);
    assert!(given.is_member && written(&given).is_none());
    assert!(matches!(given.steps[..2], [Step::GiveSecret(_), Step::GiveLogDir(_)]));
    set_mode(&config, 0o600);
    let unread = plan(&other);
    assert!(!unread.is_member && written(&unread) == unread.former);
    fs::remove_dir_all(&folder).unwrap();
}
