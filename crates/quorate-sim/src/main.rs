//! `quorate-sim`: whole groups of members in virtual time, on the real log.

/// What `--help` begins with.
const ABOUT: &str = "Deterministic simulation of Quorate groups: seeds in, violations out.

Each seed is one history of a whole group with faults, checked at every step. A seed replays exactly, on \
any machine, as long as the code is the same.";

fn main() -> std::process::ExitCode {
    quorate_seeds::main::<quorate_sim::Groups>("quorate-sim", ABOUT)
}
