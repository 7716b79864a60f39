//! Names the shared library by the version of its ABI, so that programs find the one that they were
//! linked with.

fn main() {
    let version = std::env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let mut parts = version.split('.');
    let (major, minor) = (parts.next().unwrap_or("0"), parts.next().unwrap_or("0"));
    // Before 1.0 a minor version may change anything.
    let abi = if major == "0" { format!("0.{minor}") } else { major.to_owned() };
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libbraidcast.so.{abi}");
    }
    println!("cargo:rerun-if-changed=build.rs");
}
