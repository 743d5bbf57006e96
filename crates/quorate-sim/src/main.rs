//! `quorate-sim`: whole groups of cores in virtual time.

fn main() -> std::process::ExitCode {
    quorate_sim::main()
}
