//! Cells of every test, as a run of the default grid could leave them.

use quorate_bench::record::figure::{COMMIT_PARTS, FIGURES};
use quorate_bench::record::{
    Cell, Invocation, Machine, Measured, Place, Results, Run, Settings, Setup,
};
use quorate_bench::report::CHAPTERS;

/// Name, title, how fast it is.
const SYSTEMS: [(&str, &str, f64); 9] = [
    ("quorate", "Quorate", 1.0),
    ("galera", "Galera", 0.62),
    ("galera-relaxed", "Galera, flush=0", 0.97),
    ("async", "Asynchronous", 0.9),
    ("semisync", "Semi-synchronous", 0.7),
    ("standalone", "Standalone, double-1", 0.95),
    ("standalone-relaxed", "Standalone, relaxed", 1.6),
    ("gr-eventual", "Group Replication, EVENTUAL", 0.66),
    ("gr-after", "Group Replication, AFTER", 0.2),
];

pub fn results() -> Results {
    let mut cells = Vec::new();
    for network in ["lan", "two-regions"] {
        for load in ["write_only", "read_write"] {
            for clients in [1, 16, 64, 256] {
                add(&mut cells, ("oltp", network, load, clients), plain);
            }
        }
        for load in ["read_write", "read_write, all members"] {
            add(&mut cells, ("jitter", network, load, 256), curve);
        }
    }
    for load in ["kill idle", "kill under load", "SIGSTOP", "cut"] {
        add(&mut cells, ("failover", "lan", load, 0), plain);
    }
    for load in ["kill", "restart", "stop", "join"] {
        add(&mut cells, ("secondary", "lan", load, 16), events);
    }
    add(&mut cells, ("rpo", "lan", "primary lost", 0), row);
    add(&mut cells, ("replay", "lan", "applying", 100), plain);
    add(&mut cells, ("replay", "lan", "applying held back", 100), plain);
    for load in ["read_write durable", "update_index relaxed"] {
        for members in [3, 5, 7, 9] {
            let from = cells.len();
            add(&mut cells, ("scale", "lan", load, 0), plain);
            cells[from..].iter_mut().for_each(|cell| cell.place.members = members);
        }
    }
    add(&mut cells, ("tpcc", "lan", "tpcc", 32), plain);
    for load in ["leader", "near member", "far member"] {
        add(&mut cells, ("latency", "lan", load, 1), parts);
        add(&mut cells, ("latency", "two-regions", load, 1), parts);
    }
    for load in ["10 MB", "100 MB", "1 GB"] {
        add(&mut cells, ("large", "lan", load, 4), plain);
    }
    for load in ["log synced", "log unsynced"] {
        for clients in [50, 100, 200] {
            add(&mut cells, ("persistence", "lan", load, clients), plain);
        }
    }
    add(&mut cells, ("conflicts", "lan", "hot rows", 48), row);
    for load in ["threshold 100", "threshold 1000", "threshold 10000"] {
        add(&mut cells, ("flow", "lan", load, 32), plain);
    }
    for cell in cells.iter_mut().filter(|cell| cell.system == "gr-after" && cell.round == 2) {
        cell.figures.clear();
        cell.curves.clear();
        let reason =
            "mysqld of node2 ended: [ERROR] [MY-011735] Plugin group_replication reported: \
                      '[GCS] Error on opening a connection to peer node 10.77.0.3:33061'";
        cell.failed = Some(reason.to_owned());
    }
    cells.sort_by_key(Cell::key);
    let warnings = vec!["galera ran with other settings in the second folder".to_owned()];
    Results { run: run(), cells, warnings }
}

type Filling = fn(&mut Cell, f64);

fn add(cells: &mut Vec<Cell>, at: (&str, &str, &str, u32), fill: Filling) {
    let (test, network, load, clients) = at;
    for (system, _, speed) in SYSTEMS {
        for round in 1..=3 {
            let place = Place {
                test: test.to_owned(),
                network: network.to_owned(),
                members: 3,
                load: load.to_owned(),
                clients,
            };
            let mut cell = Cell {
                place,
                system: system.to_owned(),
                round,
                primary: Some("node1".to_owned()),
                ..Cell::default()
            };
            let far = match (network, system) {
                ("lan", _) | (_, "standalone" | "standalone-relaxed" | "async") => 1.0,
                (_, "quorate") => 0.8,
                _ => 0.1 + f64::from(clients) / 512.0,
            };
            let noise = 1.0 + f64::from(round) * 0.03;
            fill(&mut cell, speed * far * noise);
            cells.push(cell);
        }
    }
}

/// Every figure that there is.
fn plain(cell: &mut Cell, speed: f64) {
    let clients = f64::from(cell.place.clients.max(1));
    for figure in FIGURES {
        let value = match figure.name {
            "tps" | "best_tps" | "goodput_tps" => 400.0 * clients.powf(0.55) * speed,
            name if name.ends_with("_ms") => 2.0 * clients.powf(0.45) / speed,
            name if name.ends_with("_us") => 900.0 / speed,
            name if name.ends_with("_s") => 3.0 / speed,
            _ => 42.0 / speed,
        };
        cell.figures.insert(figure.name.to_owned(), value);
    }
}

fn curve(cell: &mut Cell, speed: f64) {
    plain(cell, speed);
    let point = |second: u32| {
        let wave = 1.0 + 0.1 * (f64::from(second) * (1.0 + speed)).sin();
        (f64::from(second), 6400.0 * speed * wave)
    };
    cell.curves.insert("tps".to_owned(), (0..60).map(point).collect());
}

fn events(cell: &mut Cell, speed: f64) {
    curve(cell, speed);
    let labels = ["node3 killed", "noticed by the others", "node3 started", "node3 in step again"];
    let seconds = [10.0, 11.0, 40.0, 58.5];
    cell.events = seconds.into_iter().zip(labels.map(str::to_owned)).collect();
}

fn row(cell: &mut Cell, speed: f64) {
    if cell.place.test == "conflicts" {
        plain(cell, speed);
        cell.facts.insert("nodes".to_owned(), "equal".to_owned());
        return;
    }
    let loses = ["async", "gr-eventual", "galera-relaxed"].contains(&cell.system.as_str());
    cell.facts.insert("row".to_owned(), if loses { "lost" } else { "kept" }.to_owned());
}

fn parts(cell: &mut Cell, speed: f64) {
    plain(cell, speed);
    for (part, name) in COMMIT_PARTS.iter().enumerate() {
        if cell.system == "quorate" {
            cell.figures.insert((*name).to_owned(), 20.0 + 15.0 * part as f64);
        } else {
            cell.figures.remove(*name);
        }
    }
}

fn invocation(command: &str) -> Invocation {
    let (command, began) = (command.to_owned(), "2026-01-02T03:04:05Z".to_owned());
    Invocation { command, began, took_s: 5400.0 }
}

fn settings() -> Settings {
    Settings {
        grid: "default".to_owned(),
        seconds: 10,
        tables: "4x50000".to_owned(),
        build: "0123456789abcdef".to_owned(),
        differs: Some("10 s between two losses; published with 60 s".to_owned()),
    }
}

fn run() -> Run {
    let pairs = |pairs: &[(&str, &str)]| {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    };
    let setup = |(name, title, _): (&str, &str, f64)| {
        Setup {
        name: name.to_owned(),
        title: title.to_owned(),
        version: "10.11.14-MariaDB-0+deb12u2, provider 26.4.23".to_owned(),
        options: pairs(&[
            ("innodb_buffer_pool_size", "2G"),
            ("wsrep_provider_options", "gcache.size=512M;gcs.fc_limit=256;evs.keepalive_period=PT1S;evs.suspect_timeout=PT5S"),
        ]),
        read_back: pairs(&[("innodb_flush_log_at_trx_commit", "1"), ("sync_binlog", "1")]),
        told: pairs(&[("innodb_buffer_pool_size", "134217728"), ("wsrep_slave_threads", "4")]),
        encrypted: name == "quorate",
    }
    };
    let network = |name: &str, round_trips_ms: [f64; 3]| Measured {
        name: name.to_owned(),
        round_trips_ms,
        measured_ms: round_trips_ms.map(|time| time + 0.04),
        packet_cost_us: 3.4,
    };
    Run {
        invocations: ["quorate bench oltp jitter failover secondary rpo replay scale tpcc latency \
                       large persistence conflicts flow --mysql-root /srv/mysql";
            2]
            .map(invocation)
            .to_vec(),
        settings: CHAPTERS.iter().map(|chapter| (chapter.test.to_owned(), settings())).collect(),
        machine: Machine {
            processor: "AMD EPYC 7763 64-Core Processor".to_owned(),
            processors: 2,
            memory_bytes: 16 << 30,
            kernel: "6.1.0-28-cloud-amd64".to_owned(),
            disk: "ext4".to_owned(),
            sync_us: 812.0,
            tools: pairs(&[("sysbench", "1.0.20")]).into_iter().collect(),
        },
        systems: SYSTEMS.map(setup).to_vec(),
        networks: vec![
            network("lan", [0.1, 0.1, 0.1]),
            network("region", [1.0, 1.0, 1.0]),
            network("two-regions", [1.0, 30.0, 30.0]),
            network("three-regions", [5.0, 30.0, 30.0]),
        ],
        notes: vec!["galera ran with other options in the second folder".to_owned()],
    }
}
