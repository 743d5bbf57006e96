//! The node's sources are compiled here with simulated locks, threads and clock.

fn main() {
    println!("cargo::rustc-cfg=simulated");
    println!("cargo::rerun-if-changed=build.rs");
}
