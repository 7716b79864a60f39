//! Pipes that this process has from others, without waiting for them.

use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};

/// The end of a pipe that is read.
pub(crate) fn reader(pipe: &File) -> Option<File> {
    reopened(pipe, OpenOptions::new().read(true))
}

/// The end that is written to.
pub(crate) fn writer(pipe: &File) -> Option<File> {
    reopened(pipe, OpenOptions::new().write(true))
}

/// The same end, which says that it would have to wait in place of waiting. Other programs may share
/// `pipe`, whose own flags therefore stay as they are (O_NONBLOCK belongs to the open file, open(2)).
/// `None`: it is no pipe, it is another user's, there is no /proc, or nobody has its other end.
fn reopened(pipe: &File, how: &mut OpenOptions) -> Option<File> {
    pipe.metadata().ok().filter(|it| it.file_type().is_fifo())?;
    how.custom_flags(OFlags::NONBLOCK.bits() as i32).open(format!("/proc/self/fd/{}", pipe.as_raw_fd())).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{self, Read, Write};
    use std::os::fd::OwnedFd;

    #[test]
    fn a_pipe_that_is_shared_waits_for_others_and_not_for_us() {
        let (reader, writer) = io::pipe().unwrap();
        let [from, to] = [OwnedFd::from(reader), OwnedFd::from(writer)].map(File::from);
        let (mut ours_in, mut ours_out) = (super::reader(&from).unwrap(), super::writer(&to).unwrap());
        let mut buf = [0; 8192];
        assert_eq!(ours_in.read(&mut buf).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        let written = std::iter::from_fn(|| ours_out.write(&[7; 4096]).ok()).sum::<usize>();
        assert!(written >= 4096, "it takes some before it is full: {written}");
        for file in [&from, &to] {
            assert!(!rustix::fs::fcntl_getfl(file).unwrap().contains(OFlags::NONBLOCK));
        }
        // The end of the writers is seen, and that of the readers.
        drop((to, ours_out));
        let read = std::iter::from_fn(|| Some(ours_in.read(&mut buf).unwrap()).filter(|len| *len > 0)).sum::<usize>();
        assert_eq!(read, written);
    }

    #[test]
    fn what_is_no_pipe_stays_as_it_is() {
        let file = tempfile::tempfile().unwrap();
        assert!(reader(&file).is_none() && writer(&file).is_none());
    }
}
