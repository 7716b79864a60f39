//! Compiles C programs as a user would.

use std::path::{Path, PathBuf};
use std::process::Command;

/// What the shared library calls itself; see `build.rs`.
const SONAME: &str = "libbraidcast.so.0.1";

/// Compiles `source`, C or C++, against the shared library of this build. Returns the program.
pub(crate) fn build(source: &str, name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    // Tests stand in target/PROFILE/deps, and so does the library that was built for them.
    let deps = std::env::current_exe().unwrap().parent().unwrap().to_path_buf();
    let program: PathBuf = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    // A program looks for the library by its SONAME, as it is installed.
    let libraries = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.libraries"));
    std::fs::create_dir_all(&libraries).unwrap();
    let link = libraries.join(SONAME);
    _ = std::fs::remove_file(&link);
    std::os::unix::fs::symlink(deps.join("libbraidcast.so"), link).unwrap();
    // tools/sanitize.sh names one for these programs alone.
    let is_cpp = source.ends_with(".cpp");
    let variables = if is_cpp { ["BRAIDCAST_TEST_CXX", "CXX"] } else { ["BRAIDCAST_TEST_CC", "CC"] };
    let named = variables.iter().find_map(std::env::var_os);
    let compiler = named.unwrap_or_else(|| if is_cpp { "c++".into() } else { "cc".into() });
    let compiled = Command::new(compiler)
        .arg(if is_cpp { "-std=c++17" } else { "-std=c99" })
        .args(["-D_POSIX_C_SOURCE=200809L", "-Wall", "-Wextra", "-Werror", "-g", "-I"])
        .arg(root.join("include"))
        .arg(root.join(source))
        .arg("-pthread")
        .arg("-L")
        .arg(&deps)
        .arg(format!("-Wl,-rpath,{}", libraries.display()))
        .args(["-lbraidcast", "-o"])
        .arg(&program)
        .output()
        .expect("a compiler");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    program
}
