//! The shared object stays mapped until the process ends: Rust's thread-local destructors may run
//! after the server has called dlclose.
fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libquorate.so");
}
