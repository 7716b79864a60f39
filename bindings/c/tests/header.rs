//! `include/braidcast.h` is what the code says.

use std::path::Path;

#[test]
fn the_header_is_that_of_the_code() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut made = Vec::new();
    cbindgen::generate(root).unwrap().write(&mut made);
    let made = String::from_utf8(made).unwrap();
    let file = root.join("include/braidcast.h");
    if std::env::var_os("UPDATE_HEADER").is_some() {
        std::fs::write(&file, &made).unwrap();
    }
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(kept == made, "include/braidcast.h is old: UPDATE_HEADER=1 cargo test -p braidcast-c --test header");
}
