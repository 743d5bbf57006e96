//! `quorate-group-sim`: whole groups of members in virtual time, on the real log.

fn main() -> std::process::ExitCode {
    quorate_group_sim::main()
}
