//! The decoder of thumbnails, which takes the place of this process once that has dropped its rights.

use crate::process;
use landlock::{ABI, Access, AccessFs, AccessNet, Ruleset, RulesetAttr, RulesetCreatedAttr, path_beneath_rules};
use rustix::process::{Resource, Rlimit, nice, setrlimit};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

/// What this program is called with to become the decoder. It is no command for people.
pub(crate) const COMMAND: &str = "decode-thumbnail";

/// The decoder's program.
const PROGRAM: &str = "ffmpeg";
/// What it may read: programs, libraries, and the list of where these are.
const LIBRARIES: [&str; 7] = ["/usr", "/bin", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache", "/dev/null"];

/// Bytes of memory: a image of 8192 × 4320 pixels needs 53 MB, and decoders keep up to 16.
const MOST_MEMORY: u64 = 2 << 30;
/// Open files: pipes, libraries while they are loaded.
const MOST_FILES: u64 = 64;
/// It comes after the stream itself.
const NICENESS: i32 = 10;

/// Where the decoder is.
pub(super) fn decoder() -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(PROGRAM)).find(|path| path.is_file())
}

/// Becomes the decoder: MPEG-TS comes on stdin, and a JPEG a second goes to stdout. Comes back only
/// with the reason why it did not.
pub(crate) fn become_decoder() -> io::Error {
    let Some(program) = decoder() else { return io::ErrorKind::NotFound.into() };
    if let Err(error) = confine(&program) {
        return error;
    }
    let words = "-hide_banner -loglevel quiet -protocol_whitelist pipe -probesize 500000 -analyzeduration 1000000 \
                 -threads 1 -f mpegts -i pipe:0 -an -sn -dn -threads 1 -filter_threads 1 \
                 -vf fps=1,scale=480:-2:flags=fast_bilinear -c:v mjpeg -q:v 7 -flush_packets 1 -f image2pipe pipe:1";
    Command::new(program).args(words.split_whitespace()).env_clear().exec()
}

/// Drops all that a decoder does not need: capabilities, files but its libraries, networks,
/// writing, memory without end. Where the kernel has no Landlock (5.13; networks: 6.7), what is left
/// are the limits, no capabilities, and ffmpeg's own refusal to open anything but its pipes.
fn confine(program: &std::path::Path) -> io::Result<()> {
    process::drop_privileges().map_err(|failure| io::Error::other(failure.to_string()))?;
    let limit = |most| Rlimit { current: Some(most), maximum: Some(most) };
    for (what, most) in
        [(Resource::As, MOST_MEMORY), (Resource::Fsize, 0), (Resource::Core, 0), (Resource::Nofile, MOST_FILES)]
    {
        setrlimit(what, limit(most))?;
    }
    // One that may not be nicer is as nice as it was.
    let _nice = nice(NICENESS);
    let readable = LIBRARIES.iter().map(PathBuf::from).chain([program.to_owned()]);
    let abi = ABI::V5;
    let restricted = Ruleset::default()
        .handle_access(AccessFs::from_all(abi))
        .and_then(|it| it.handle_access(AccessNet::from_all(abi)))
        .and_then(Ruleset::create)
        .and_then(|it| it.add_rules(path_beneath_rules(readable, AccessFs::from_read(abi))))
        .and_then(|it| it.restrict_self());
    restricted.map(|_| ()).map_err(io::Error::other)
}
