use crate::number::Tsn;
use crate::wire::chunk::Ecne;
use braidcast_core::{PathId, Writer};

/// The marks that the peer has not confirmed yet, one entry for each path (draft-stewart-tsvwg-sctpecn-05): each SACK
/// repeats them until CWR comes.
#[derive(Debug, Default)]
pub(crate) struct Echoes {
    list: Vec<Echo>,
}

#[derive(Debug)]
struct Echo {
    path: PathId,
    /// The lowest TSN of the packet that was marked last.
    tsn: Tsn,
    /// Packets marked since the last CWR.
    marked: u32,
    /// How often it was told since the last mark.
    told: u8,
}

impl Echoes {
    /// An echo that was told so often without a new mark is dropped: the peer has heard it, but its
    /// CWR cannot be told to belong here, as when Linux, which does not answer by path, has failed
    /// over.
    const MAX_TOLD: u8 = 64;
    /// Paths that are remembered; a further one waits.
    const MAX_PATHS: usize = 16;

    /// A packet whose lowest TSN is `tsn` came marked over `path`. Whether this is news: no echo
    /// for the path was in flight.
    pub(crate) fn on_marked(&mut self, path: PathId, tsn: Tsn) -> bool {
        if let Some(echo) = self.list.iter_mut().find(|echo| echo.path == path) {
            echo.tsn = echo.tsn.max(tsn);
            echo.marked = echo.marked.saturating_add(1);
            echo.told = 0;
            return false;
        }
        let room = self.list.len() < Self::MAX_PATHS;
        if room {
            self.list.push(Echo { path, tsn, marked: 1, told: 0 });
        }
        room
    }

    /// The peer answers what it was told about `tsn`, over `path`. TSNs of several paths are mixed,
    /// so that a CWR for one path says nothing about another's marks, unless it names the very TSN
    /// or is about `all_paths`.
    pub(crate) fn on_cwr(&mut self, path: PathId, tsn: Tsn, all_paths: bool) {
        self.list.retain(|echo| echo.tsn > tsn || !(all_paths || echo.path == path || echo.tsn == tsn));
    }

    /// Appends what must be told, as far as it fits in front of `end`.
    pub(crate) fn emit(&mut self, end: usize, buf: &mut Vec<u8>) {
        self.list.retain_mut(|echo| {
            if buf.len() + Ecne::LEN > end {
                return true;
            }
            let chunk = Ecne { lowest_tsn: echo.tsn.wire(), marked: Some(echo.marked) };
            chunk.emit(&mut Writer::new(buf));
            echo.told += 1;
            echo.told < Self::MAX_TOLD
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: PathId = PathId(0);
    const B: PathId = PathId(1);

    fn told(echoes: &mut Echoes, room: usize) -> Vec<[u32; 2]> {
        let mut buf = Vec::new();
        echoes.emit(room, &mut buf);
        let number = |bytes: &[u8]| u32::from_be_bytes(bytes.try_into().unwrap());
        buf.chunks(12).map(|chunk| [number(&chunk[4..8]), number(&chunk[8..])]).collect()
    }

    #[test]
    fn a_mark_is_told_until_cwr_reaches_it() {
        let mut echoes = Echoes::default();
        assert!(echoes.on_marked(A, Tsn::new(10)));
        assert!(!echoes.on_marked(A, Tsn::new(14)), "in flight already");
        for _ in 0..3 {
            assert_eq!(told(&mut echoes, 1000), [[14, 2]]);
        }
        echoes.on_cwr(A, Tsn::new(10), false);
        assert_eq!(told(&mut echoes, 1000), [[14, 2]], "the CWR is about the mark before");
        echoes.on_cwr(A, Tsn::new(14), false);
        assert!(told(&mut echoes, 1000).is_empty());
        assert!(echoes.on_marked(A, Tsn::new(20)));
        assert_eq!(told(&mut echoes, 1000), [[20, 1]]);
    }

    #[test]
    fn each_path_is_confirmed_on_its_own() {
        let mut echoes = Echoes::default();
        echoes.on_marked(A, Tsn::new(10));
        echoes.on_marked(B, Tsn::new(8));
        assert_eq!(told(&mut echoes, 12), [[10, 1]], "only one fits");
        echoes.on_cwr(A, Tsn::new(10), false);
        assert_eq!(told(&mut echoes, 1000), [[8, 1]], "a lower TSN, but of the other path");
        echoes.on_cwr(A, Tsn::new(8), false);
        assert!(told(&mut echoes, 1000).is_empty(), "the very TSN");
        echoes.on_marked(A, Tsn::new(12));
        echoes.on_marked(B, Tsn::new(11));
        echoes.on_cwr(B, Tsn::new(12), true);
        assert!(told(&mut echoes, 1000).is_empty(), "all paths");
    }

    #[test]
    fn nobody_is_told_for_ever() {
        let mut echoes = Echoes::default();
        echoes.on_marked(A, Tsn::new(10));
        assert_eq!((0..1000).filter(|_| !told(&mut echoes, 1000).is_empty()).count(), usize::from(Echoes::MAX_TOLD));
        for path in 0..100 {
            echoes.on_marked(PathId(path), Tsn::new(1));
        }
        assert_eq!(told(&mut echoes, 9999).len(), Echoes::MAX_PATHS);
    }
}
