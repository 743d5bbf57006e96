//! Findings of servers that say this and that.

use super::*;
use quorate_lab::server::SERVER_OPTIONS;
use std::collections::HashMap;

fn good(address: &str, server_id: &str) -> Facts {
    let variables = SERVER_OPTIONS
        .iter()
        .map(|(name, value)| (name.to_string(), value.to_string()))
        .chain([("server_id".to_owned(), server_id.to_owned())]);
    Facts {
        address: address.into(),
        version: "10.11.14-MariaDB-0+deb12u2".into(),
        variables: variables.collect(),
        round_trip_ms: 0.3,
        ..Facts::default()
    }
}

/// Of a server that is well in its cluster.
fn synced(provider: &str) -> HashMap<String, String> {
    let status = [
        ("wsrep_provider_name", provider),
        ("wsrep_ready", "ON"),
        ("wsrep_local_state_comment", "Synced"),
    ];
    status.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
}

fn whats(found: &[Finding], weight: Weight) -> Vec<&str> {
    found.iter().filter(|f| f.weight == weight).map(|f| f.what.as_str()).collect()
}

#[test]
fn nothing_is_found_at_servers_with_the_options_that_setup_writes() {
    let all = [good("a:1", "1"), good("b:1", "2"), good("c:1", "3")];
    assert_eq!(all.iter().flat_map(of_server).collect::<Vec<_>>(), []);
    assert_eq!(across(&all), []);
}

#[test]
fn what_would_not_be_replicated_is_an_error_with_names() {
    let mut facts = good("a:1", "1");
    let table = |name: &str, engine: &str| Table { name: name.into(), engine: engine.into() };
    facts.other_engines = (vec![table("shop.log", "MyISAM"), table("shop.x", "Aria")], 7);
    facts.unreadable = (vec![table("shop.torn", "Incorrect information in file")], 1);
    facts.without_key = (vec![table("shop.events", "InnoDB")], 1);
    facts.variables.insert("binlog_format".into(), "MIXED".into());
    facts.variables.insert("wsrep_slave_threads".into(), "1".into());
    facts.variables.insert("wsrep_ignore_apply_errors".into(), "7".into());
    facts.status = synced("Quorate");
    let found = of_server(&facts);
    let errors = whats(&found, Weight::Error);
    assert!(errors[0].contains("shop.log (MyISAM), shop.x (Aria), ..."), "{errors:?}");
    assert!(errors[1].ends_with("(1): shop.torn (Incorrect information in file)"), "{errors:?}");
    assert!(errors[2].starts_with("binlog_format is MIXED"), "{errors:?}");
    let warnings = whats(&found, Weight::Warning);
    assert!(
        warnings[0].starts_with("tables without a primary key (1): shop.events"),
        "{warnings:?}"
    );
    assert!(warnings[1].starts_with("wsrep_slave_threads is 1"), "{warnings:?}");
    assert!(warnings[2].starts_with("wsrep_ignore_apply_errors is 7"), "{warnings:?}");
}

#[test]
fn what_setup_writes_is_nothing_to_mend_at_a_single_server() {
    // As MariaDB 10.11 is installed.
    let mut facts = good("a:1", "1");
    let defaults = [
        ("wsrep_on", "OFF"),
        ("binlog_format", "MIXED"),
        ("innodb_autoinc_lock_mode", "1"),
        ("wsrep_slave_threads", "1"),
        ("wsrep_ignore_apply_errors", "7"),
        ("innodb_snapshot_isolation", "OFF"),
        ("innodb_flush_log_at_trx_commit", "1"),
    ];
    let defaults = defaults.map(|(name, value)| (name.to_owned(), value.to_owned()));
    facts.variables.extend(defaults);
    for provider in ["", "none"] {
        facts.status.insert("wsrep_provider_name".into(), provider.into());
        let found = of_server(&facts);
        assert_eq!(whats(&found, Weight::Note).len(), found.len());
        assert_eq!(found.len(), 6, "{found:?}");
        assert_eq!(found[0].advice, "quorate setup writes binlog_format = ROW");
    }
    // Where there is more than one already, they are not.
    facts.status = synced("Galera");
    let found = of_server(&facts);
    assert_eq!(whats(&found, Weight::Error).len(), 2, "{found:?}");
    assert_eq!(found[0].advice, "set binlog_format = ROW");
}

#[test]
fn a_server_of_another_kind_or_state_is_told() {
    let mut facts = good("a:1", "1");
    facts.version = "8.0.40".into();
    facts.clock_ahead_ms = -7200.0;
    let status = [
        ("wsrep_provider_name", "Galera"),
        ("wsrep_ready", "ON"),
        ("wsrep_local_state_comment", "Joined"),
    ];
    facts.status = status.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let found = of_server(&facts);
    assert_eq!(
        whats(&found, Weight::Error),
        ["it is 8.0.40, not MariaDB", "it is Joined, its view "]
    );
    assert_eq!(whats(&found, Weight::Warning), ["its clock is 7.2 s behind this host's"]);
    assert!(whats(&found, Weight::Note)[0].starts_with("it runs Galera"), "{found:?}");
}

#[test]
fn what_differs_between_servers_names_them() {
    let (mut one, two) = (good("a:1", "1"), good("b:1", "1"));
    one.version = "11.8.3-MariaDB".into();
    one.variables.insert("sql_mode".into(), "ANSI".into());
    one.clock_ahead_ms = 900.0;
    let found = across(&[one, two]);
    let errors = whats(&found, Weight::Error);
    assert_eq!(errors, ["releases of MariaDB differ: \"10.11\" at b:1; \"11.8\" at a:1"]);
    let warnings = whats(&found, Weight::Warning);
    assert_eq!(
        warnings,
        ["sql_mode differ: \"\" at b:1; \"ANSI\" at a:1", "their clocks are 0.9 s apart"]
    );
    let notes = whats(&found, Weight::Note);
    assert_eq!(notes, ["server_id is the same at a:1 and b:1"]);
    assert_eq!(even(2, "servers").unwrap().what, "2 servers survive the loss of as many as 1 do");
    assert_eq!(even(3, "servers").or(even(0, "servers")), None);
}

#[test]
fn a_slow_disk_is_a_warning() {
    assert_eq!(of_disk(Duration::from_micros(300)).weight, Weight::Note);
    assert_eq!(of_disk(Duration::from_millis(12)).weight, Weight::Warning);
}

#[test]
fn a_log_in_the_clear_beside_encrypted_data_is_told() {
    let mut facts = good("a:1", "1");
    let mut set = |name: &str, value: &str| {
        facts.variables.insert(name.into(), value.into());
        whats(&of_server(&facts), Weight::Warning).join("\n")
    };
    assert_eq!(set("innodb_encrypt_tables", "OFF"), "");
    let told = set("encrypt_binlog", "ON");
    assert!(
        told.contains("log has in the clear") && told.ends_with("encrypt_binlog is ON"),
        "{told}"
    );
    let options =
        "base_port = 4567; quorate.encrypt = auto; quorate.encrypt_key_file = ; gmcast.segment = 0";
    assert_ne!(set("wsrep_provider_options", options), "");
    let options = options.replace("key_file = ;", "key_file = /etc/mysql/quorate.key;");
    assert_eq!(set("wsrep_provider_options", &options), "");
    assert_ne!(set("wsrep_provider_options", &options.replace("= auto", "= no")), "");

    let mut facts = good("a:1", "1");
    let table = Table { name: "shop.cards".into(), engine: "InnoDB".into() };
    facts.encrypted = (vec![table], 1);
    let found = of_server(&facts);
    assert!(whats(&found, Weight::Warning)[0].ends_with("encrypted tables (1): shop.cards"));
}

#[test]
fn flow_control_is_told_of_as_the_provider_has_it() {
    for (provider, word) in [("Galera", "stopped it"), ("Quorate", "held its clients back")] {
        let mut facts = good("a:1", "1");
        facts.status = synced(provider);
        facts.status.insert("wsrep_flow_control_paused".into(), "0.25".into());
        let found = of_server(&facts);
        let notes = whats(&found, Weight::Note).join("\n");
        assert!(notes.contains(word) && notes.contains("share of 0.25"), "{notes}");
    }
}
