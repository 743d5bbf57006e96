//! `quorate-sim`: whole groups of members in virtual time, on the real log.

fn main() -> std::process::ExitCode {
    quorate_sim::main()
}
