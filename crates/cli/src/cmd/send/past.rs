//! Compares the bytes that the receiver already has with those of the file.

use crate::failure::{Failure, Outcome};
use braidcast_session::{Content, Digest};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Bytes that are read at once.
const PIECE: u64 = 4 << 20;

/// A comparison, a piece at a time, so that the network does not wait for it.
pub(super) struct Past {
    file: File,
    name: String,
    content: Content,
    left: u64,
    offset: u64,
    digest: Digest,
}

impl Past {
    /// Compares the first `offset` bytes of the file at `path` with `digest`.
    pub(super) fn begin(path: &Path, offset: u64, digest: Digest) -> Outcome<Self> {
        let name = path.display().to_string();
        let open = || {
            let file = File::open(path)?;
            // A file that is shorter holds something else.
            let left = if file.metadata()?.len() < offset { 0 } else { offset };
            Ok((file, left))
        };
        let (file, left) = open().map_err(|e| broken(&name, &e))?;
        Ok(Self { file, name, content: Content::default(), left, offset, digest })
    }

    /// Bytes that the receiver has.
    pub(super) const fn offset(&self) -> u64 {
        self.offset
    }

    /// Reads on. At the end, returns the part that can be continued: the bytes that are the same,
    /// or none.
    pub(super) fn step(&mut self) -> Outcome<Option<Content>> {
        if self.left > 0 {
            let mut piece = vec![0; PIECE.min(self.left) as usize];
            self.file.read_exact(&mut piece).map_err(|e| broken(&self.name, &e))?;
            self.content.update(&piece);
            self.left -= piece.len() as u64;
        }
        let done = self.left == 0;
        Ok(done.then(|| {
            let content = core::mem::take(&mut self.content);
            if content.digest() == self.digest { content } else { Content::default() }
        }))
    }
}

fn broken(name: &str, error: &io::Error) -> Failure {
    Failure::new(format!("reading {name} again failed: {error}"), "leave the file as it is while it is sent")
}
