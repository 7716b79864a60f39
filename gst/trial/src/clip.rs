//! Frames of a YUV4MPEG2 file, 4:2:0 with 8 bits, over and over.

use std::fs;
use std::path::Path;

/// A clip in memory.
pub(crate) struct Clip {
    pub(crate) width: usize,
    pub(crate) height: usize,
    bytes: Vec<u8>,
    /// Offset of each frame.
    pictures: Vec<usize>,
}

impl Clip {
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let name = path.display();
        let hint = "hint: `ffmpeg -i FILE -pix_fmt yuv420p -f yuv4mpegpipe CLIP.y4m` makes one";
        let bytes = fs::read(path).map_err(|e| format!("cannot read {name}: {e}\n{hint}"))?;
        Self::parse(bytes).map_err(|why| format!("{name}: {why}\n{hint}"))
    }

    pub(crate) fn parse(bytes: Vec<u8>) -> Result<Self, String> {
        let line = |from: usize| bytes[from.min(bytes.len())..].iter().take(256).position(|byte| *byte == b'\n');
        let end = line(0).ok_or("it has no first line")?;
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let mut words = head.split(' ');
        if words.next() != Some("YUV4MPEG2") {
            return Err("it is not a YUV4MPEG2 file".into());
        }
        let (mut width, mut height) = (0, 0);
        for word in words {
            match (word.as_bytes().first(), word.get(1..)) {
                (Some(b'W'), Some(rest)) => width = rest.parse().unwrap_or(0),
                (Some(b'H'), Some(rest)) => height = rest.parse().unwrap_or(0),
                (Some(b'C'), Some(rest)) if !rest.starts_with("420") || rest.contains("p1") => {
                    return Err(format!("its frames are {rest}, not 4:2:0 with 8 bits"));
                }
                _ => {}
            }
        }
        if !(16..=8192).contains(&width) || !(16..=8192).contains(&height) || width % 2 + height % 2 > 0 {
            return Err(format!("its frames are {width}x{height}"));
        }
        let (mut at, mut pictures) = (end + 1, Vec::new());
        let size = width * height * 3 / 2;
        while let Some(length) = line(at) {
            if !bytes[at..].starts_with(b"FRAME") || at + length + 1 + size > bytes.len() {
                break;
            }
            pictures.push(at + length + 1);
            at += length + 1 + size;
        }
        if pictures.is_empty() {
            Err("it has no whole frame".into())
        } else {
            Ok(Self { width, height, bytes, pictures })
        }
    }

    /// Returns frame `n`; behind the last one comes the first again.
    pub(crate) fn picture(&self, n: usize) -> &[u8] {
        let at = self.pictures[n % self.pictures.len()];
        &self.bytes[at..at + self.width * self.height * 3 / 2]
    }

    /// Its luma.
    pub(crate) fn luma(&self, n: usize) -> &[u8] {
        &self.picture(n)[..self.width * self.height]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_found_and_repeat() {
        let mut file = b"YUV4MPEG2 W16 H16 F30:1 Ip C420jpeg\n".to_vec();
        for n in 1..=2 {
            file.extend(b"FRAME\n");
            file.extend([n; 384]);
        }
        let clip = Clip::parse(file.clone()).unwrap();
        assert_eq!((clip.width, clip.height), (16, 16));
        assert_eq!([0, 1, 2].map(|n| clip.picture(n)[383]), [1, 2, 1]);
        assert!(Clip::parse(file[..300].to_vec()).is_err());
        assert!(Clip::parse(b"YUV4MPEG2 W16 H16 C444\n".to_vec()).is_err());
    }
}
