//! Inputs of a target: those of `fuzz/seeds`, and what is done with one.

use flate2::read::GzDecoder;
use std::io::Read;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// An input, with the name of its file.
pub(crate) type Input = (String, Vec<u8>);

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Returns what earlier fuzzing of `target` kept: `fuzz/seeds/TARGET.tar.gz`, and single files in `fuzz/seeds/TARGET`.
pub(crate) fn kept(target: &str) -> Vec<Input> {
    let seeds = folder().join("seeds");
    let mut all = Vec::new();
    let archive = seeds.join(format!("{target}.tar.gz"));
    if archive.exists() {
        let opened = fs::File::open(&archive).expect("an archive that can be read");
        for entry in tar::Archive::new(GzDecoder::new(opened)).entries().expect("a tar archive") {
            let mut entry = entry.expect("a whole archive");
            let Some(name) = entry.path().expect("a name").file_name().map(|it| it.to_string_lossy().into_owned())
            else {
                continue;
            };
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).expect("a whole archive");
            all.push((name, bytes));
        }
    }
    let single = match fs::read_dir(seeds.join(target)) {
        Ok(files) => files.map(|it| it.expect("a folder that can be read").path()).collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => panic!("{target}: {error}"),
    };
    for path in single {
        let name = path.file_name().expect("a file").to_string_lossy().into_owned();
        all.push((name, fs::read(&path).expect("an input")));
    }
    all.sort_unstable();
    all
}

/// Runs `fuzz`, which is that of `target`, with `input`.
///
/// # Errors
/// If the target is broken by it: the command that runs the input again, which is kept in `fuzz/artifacts`.
pub(crate) fn run(target: &str, fuzz: fn(&[u8]), (name, bytes): &Input) -> Result<(), String> {
    catch_unwind(|| fuzz(bytes)).map_err(|_| {
        let artifacts = folder().join("artifacts").join(target);
        fs::create_dir_all(&artifacts).expect("a place for what broke");
        fs::write(artifacts.join(name), bytes).expect("a place for what broke");
        format!("{target} is broken; run it again with: tools/fuzz.sh replay {target} fuzz/artifacts/{target}/{name}")
    })
}
