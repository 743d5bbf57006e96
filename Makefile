# `make up` and you have a cluster; `make help` for the rest.

RUN_PACKAGES  = mariadb-server mariadb-client mariadb-backup socat openssl rsync iproute2 lsof procps
# chromium opens the reports; with what it needs, it takes 700 MB.
TEST_PACKAGES = sysbench galera-4 e2fsprogs mariadb-test libfaketime stunnel4 haproxy prometheus-mysqld-exporter \
                chromium fonts-dejavu-core
QUORATE       = target/release/quorate

.PHONY: monitoring-test upgrade-test help up down clean-cluster build packages test-packages test mtr mtr-quick bench bench-tests bench-galera go-tpc crash-rounds power-rounds chaos chaos-galera failover sim-million fuzz smoke-11.8 deb deb-test hosts-test readme-test

help: ## Show this
	@awk -F ':.*## ' '/^[a-z0-9.-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' Makefile

up: packages build ## Install what is missing, build, start three servers (or those that are stopped)
	@$(QUORATE) up $(UP)

down: ## Stop the servers, keep the data
	@$(QUORATE) down

clean-cluster: ## Stop the servers and delete their data
	@$(QUORATE) down --force --wipe --yes

build:
	@command -v cargo >/dev/null || { echo "cargo is missing: install Rust, https://rustup.rs"; exit 69; }
	@cargo build --release -p quorate -p quorate-provider

packages:
	@scripts/install-packages $(RUN_PACKAGES) $$(command -v cc >/dev/null || echo gcc libc6-dev)

test-packages: packages
	@scripts/install-packages $(TEST_PACKAGES)

test: test-packages ## All that CI checks: format, lints, licences, unit tests, simulator, real servers
	@scripts/test $(STEPS)

mtr: test-packages build ## MariaDB's suites here and with Galera: SUITES=a,b TESTS=suite.x,... PROVIDERS=quorate PARALLEL=3
	@cargo run -p quorate-tests --bin mtr -- $(if $(SUITES),--suites $(SUITES)) \
		$(if $(TESTS),--tests '$(TESTS)') $(if $(PROVIDERS),--providers $(PROVIDERS)) \
		$(if $(PARALLEL),--parallel $(PARALLEL))

mtr-quick: test-packages build ## The chosen tests of those suites (tests/mtr-quick.txt)
	@scripts/test mtr

crash-rounds: test-packages build ## Kill all, one or two servers under load, again and again; count lost rows. OPTIONS=quorate.encrypt_key_file=FILE: with encrypted logs
	cargo run --release -p quorate-tests --bin crash-rounds -- --all 20 --some 50 $(if $(OPTIONS),--options "$(OPTIONS)")

failover: test-packages build ## How long writes stop when a node fails: 20 rounds of each fault, lan and two-regions (two hours; as root)
	cargo run --release -p quorate-tests --bin failover -- $(FAILOVER)

power-rounds: test-packages build ## Cut the power of all servers under load, again and again; then the same with Galera
	cargo run --release -p quorate-tests --bin power-rounds -- --rounds 50
	-cargo run --release -p quorate-tests --bin power-rounds -- --rounds 5 --system galera

chaos: test-packages build ## Let everything fail for an hour, and check that nothing promised was broken
	@scripts/chaos hour

chaos-galera: test-packages build ## The same checkers on Galera at its usual settings: they must notice
	@$(QUORATE) chaos --system galera --schedule all --workload set,bank,append,causal --minutes 2 \
		--set innodb_flush_log_at_trx_commit=0 --out target/chaos/galera; test $$? = 2

bench-galera: test-packages build ## Throughput and commit latency beside Galera on this machine
	cargo run --release -p quorate-tests --bin beside-galera

bench: test-packages build go-tpc ## The published comparisons beside Debian's peers, a quarter of an hour: BENCH='oltp --networks lan', see quorate bench --help; a new build needs OUT=DIR, or the old folder removed
	$(QUORATE) bench $(or $(BENCH),--quick) --out $(or $(OUT),target/bench$(if $(filter --quick,$(or $(BENCH),--quick)),-quick))

go-tpc: target/go-tpc ## Build the TPC-C program that quorate bench tpcc drives (a minute; Debian's Go, unless there is one)

target/go-tpc: scripts/build-go-tpc
	@scripts/build-go-tpc

bench-tests: test-packages build go-tpc ## What the bench stands on, as root: the lab's network, each system, each test beside the servers' own counts; IGNORED=1 with MySQL in $$QUORATE_MYSQL_ROOT
	cargo bench -p quorate-lab
	cargo test -p quorate-bench --features servers --no-fail-fast -- --test-threads=1 $(if $(IGNORED),--include-ignored)

smoke-11.8: packages build ## The same library in MariaDB 11.8: a Debian 13 in target/, three servers, as root
	@scripts/smoke-11.8

upgrade-test: test-packages ## Three servers and a logger from release 0.1.0 to this one, one after the other, under load, and back (as root)
	@scripts/upgrade-test

# Prometheus takes 300 MB with what Debian's package depends on: no test of CI.
monitoring-test: test-packages build ## The alert rules: promtool plays to them, then a real Prometheus watches a group in trouble (ten minutes, as root)
	@scripts/install-packages prometheus
	promtool check rules monitoring/quorate.rules.yml
	promtool test rules monitoring/quorate.rules.test.yml
	cargo test -p quorate-tests --features servers --test prometheus -- --ignored --nocapture

deb: packages ## Debian packages of the library and the command, in target/deb
	@scripts/install-packages debhelper fakeroot
	@rm -rf target/deb && mkdir -p target/deb
	fakeroot debian/rules binary
	@fakeroot debian/rules clean >/dev/null
	@ls target/deb/*.deb

deb-test: deb ## Install, upgrade, remove and purge them in a Debian 12 and a Debian 13 in target/, beside a server that runs (as root)
	@scripts/deb-test bookworm trixie

hosts-test: deb ## The packages on five hosts that share nothing but a network: servers, a logger, and one that operates them (as root)
	@scripts/hosts-test

readme-test: ## README's commands, as printed, in a Debian 12 with Rust, then with new packages on three hosts with systemd (as root, with the network)
	@scripts/readme-test

fuzz: ## Fuzz each decoder, and a member among hostile peers, FUZZ_SECONDS (60) or FUZZ_RUNS each, with a table; or FUZZ='wire_packet peer'
	@scripts/fuzz $(FUZZ)

sim-million: ## Simulate a million histories of groups, and a quarter of that of nodes (two hours or so)
	cargo run --profile million -p quorate-sim -- run --seeds 0..1000000
	cargo run --profile million -p quorate-node-sim -- run --seeds 0..250000
