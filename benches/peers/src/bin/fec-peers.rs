//! Erasure codes of others, one core, 1400-byte symbols, as `fec_speed` of `crates/fec` measures
//! ours: lines of `RATE what value`, GB of source in a second.
//!
//! `fec-peers isa-l | reed-solomon-simd | cu-fec`. ISA-L is looked for where the system has its
//! libraries; without it: `NONE why`.

use cu_fec::{DensityThreshold, EncodingSymbolId, Field, RepairParameters, RlcConfig, RlcDecoder, RlcEncoder};
use reed_solomon_simd::{ReedSolomonDecoder, ReedSolomonEncoder};
use std::ffi::{CStr, c_char, c_int, c_uchar, c_void};
use std::hint::black_box;
use std::time::{Duration, Instant};

const LEN: usize = 1400;
/// Sources and repairs of a block.
const BLOCKS: [(usize, usize); 3] = [(9, 1), (20, 4), (100, 10)];
/// The window of the sliding code, and how many sources a repair comes after.
const WINDOW: usize = 200;
const SOURCES: usize = 9;

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("isa-l") => match Isal::load() {
            Some(isal) => isal.measure(),
            None => println!("NONE libisal.so.2 is not installed"),
        },
        Some("reed-solomon-simd") => reed_solomon_simd(),
        Some("cu-fec") => cu_fec(),
        _ => panic!("which one?"),
    }
}

/// Symbols that begin at multiples of 64, and what keeps them.
struct Symbols(Vec<[u8; LEN + 64]>);

impl Symbols {
    fn new(count: usize) -> Self {
        let mut state = 1u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        };
        Self((0..count).map(|_| std::array::from_fn(|_| next())).collect())
    }

    fn at(&self, n: usize) -> &[u8] {
        let start = self.0[n].as_ptr().align_offset(64);
        &self.0[n][start..start + LEN]
    }

    fn pointers(&mut self) -> Vec<*mut u8> {
        let aligned = |it: &mut [u8; LEN + 64]| {
            let start = it.as_ptr().align_offset(64);
            it[start..].as_mut_ptr()
        };
        self.0.iter_mut().map(aligned).collect()
    }
}

/// Bytes in a nanosecond: the best of many short rounds, as others disturb.
fn rate(what: &str, bytes: usize, mut work: impl FnMut()) {
    let times = (1_000_000 / bytes).max(1);
    let (mut best, end) = (f64::INFINITY, Instant::now() + Duration::from_millis(400));
    while Instant::now() < end {
        let start = Instant::now();
        (0..times).for_each(|_| black_box(&mut work)());
        best = best.min(start.elapsed().as_nanos() as f64 / times as f64);
    }
    println!("RATE {what} {:.4}", bytes as f64 / best);
}

#[link(name = "dl")]
unsafe extern "C" {
    fn dlopen(file: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// Intel's library, as `erasure_code.h` declares it.
struct Isal {
    cauchy: unsafe extern "C" fn(*mut c_uchar, c_int, c_int),
    invert: unsafe extern "C" fn(*mut c_uchar, *mut c_uchar, c_int) -> c_int,
    mul: unsafe extern "C" fn(c_uchar, c_uchar) -> c_uchar,
    tables: unsafe extern "C" fn(c_int, c_int, *const c_uchar, *mut c_uchar),
    encode: unsafe extern "C" fn(c_int, c_int, c_int, *const c_uchar, *const *mut c_uchar, *const *mut c_uchar),
    mad: unsafe extern "C" fn(c_int, c_int, c_int, *const c_uchar, *const c_uchar, *mut c_uchar),
}

impl Isal {
    fn load() -> Option<Self> {
        const NOW: c_int = 2;
        // SAFETY: the names are those of the header, whose types the fields have.
        unsafe {
            let library = dlopen(c"libisal.so.2".as_ptr(), NOW);
            let find = |name: &CStr| {
                let found = dlsym(library, name.as_ptr());
                (!library.is_null() && !found.is_null()).then_some(found)
            };
            Some(Self {
                cauchy: std::mem::transmute(find(c"gf_gen_cauchy1_matrix")?),
                invert: std::mem::transmute(find(c"gf_invert_matrix")?),
                mul: std::mem::transmute(find(c"gf_mul")?),
                tables: std::mem::transmute(find(c"ec_init_tables")?),
                encode: std::mem::transmute(find(c"ec_encode_data")?),
                mad: std::mem::transmute(find(c"gf_vect_mad")?),
            })
        }
    }

    fn measure(&self) {
        let mut symbols = Symbols::new(2);
        let mut table = [0; 32];
        let pointers = symbols.pointers();
        // SAFETY: the table has 32 bytes, each symbol LEN.
        unsafe {
            (self.tables)(1, 1, &0x1d, table.as_mut_ptr());
            rate("multiply-add,1400", LEN, || (self.mad)(LEN as c_int, 1, 0, table.as_ptr(), pointers[1], pointers[0]));
        }
        BLOCKS.iter().for_each(|&(k, r)| self.block(k, r));
    }

    /// Decoding of the first `r` sources: the inverse of the r × r matrix, the tables, the data.
    fn block(&self, k: usize, r: usize) {
        let (mut symbols, mut repairs, mut found) = (Symbols::new(k), Symbols::new(r), Symbols::new(r));
        let (data, coded, out) = (symbols.pointers(), repairs.pointers(), found.pointers());
        let there: Vec<*mut u8> = data[r..].iter().chain(&coded).copied().collect();
        let (mut all, mut tables) = (vec![0; (k + r) * k], vec![0; 32 * k * r]);
        let (mut lost, mut inverse, mut matrix) = (vec![0; r * r], vec![0; r * r], vec![0; r * k]);
        let (n, sources, rows) = (LEN as c_int, k as c_int, r as c_int);
        // SAFETY: matrices and tables are as large as the header asks for, pointers lead to LEN bytes each.
        unsafe {
            (self.cauchy)(all.as_mut_ptr(), sources + rows, sources);
            let rest = &all[k * k..];
            (self.tables)(sources, rows, rest.as_ptr(), tables.as_mut_ptr());
            let encode = || (self.encode)(n, sources, rows, tables.as_ptr(), data.as_ptr(), coded.as_ptr());
            rate(&format!("encode,k={k},r={r}"), k * LEN, encode);
            rate(&format!("decode,k={k},r={r}"), k * LEN, || {
                (0..r * r).for_each(|at| lost[at] = rest[at / r * k + at % r]);
                (self.invert)(lost.as_mut_ptr(), inverse.as_mut_ptr(), rows);
                for (at, entry) in matrix.iter_mut().enumerate() {
                    let (row, column) = (at / k * r, at % k);
                    *entry = match column.checked_sub(k - r) {
                        Some(repair) => inverse[row + repair],
                        None => (0..r).fold(0, |sum, i| sum ^ (self.mul)(inverse[row + i], rest[i * k + r + column])),
                    };
                }
                (self.tables)(sources, rows, matrix.as_ptr(), tables.as_mut_ptr());
                (self.encode)(n, sources, rows, tables.as_ptr(), there.as_ptr(), out.as_ptr());
            });
        }
        assert!((0..r).all(|n| found.at(n) == symbols.at(n)), "ISA-L decoded something else");
    }
}

fn reed_solomon_simd() {
    for (k, r) in BLOCKS {
        let symbols = Symbols::new(k);
        let mut encoder = ReedSolomonEncoder::new(k, r, LEN).expect("a size that it has");
        let mut repairs: Vec<Vec<u8>> = Vec::new();
        let mut encode = |keep: bool| {
            (0..k).for_each(|n| encoder.add_original_shard(symbols.at(n)).expect("there is room"));
            let encoded = encoder.encode().expect("all are there");
            if keep {
                repairs = encoded.recovery_iter().map(<[u8]>::to_vec).collect();
            }
        };
        encode(true);
        rate(&format!("encode,k={k},r={r}"), k * LEN, || encode(false));
        let mut decoder = ReedSolomonDecoder::new(k, r, LEN).expect("a size that it has");
        rate(&format!("decode,k={k},r={r}"), k * LEN, || {
            (r..k).for_each(|n| decoder.add_original_shard(n, symbols.at(n)).expect("there is room"));
            (0..r).for_each(|n| decoder.add_recovery_shard(n, &repairs[n]).expect("there is room"));
            let decoded = decoder.decode().expect("enough are there");
            assert!(decoded.restored_original(0) == Some(symbols.at(0)));
        });
    }
}

/// Random linear coding with a sliding window (RFC 8681), 10 % redundancy over it, 5 % of all packets lost.
fn cu_fec() {
    let symbols = Symbols::new(400);
    let config = RlcConfig::new(LEN, WINDOW, Field::Gf256).expect("a size that it has");
    let start = EncodingSymbolId::new(0);
    let mut encoder = Box::new(RlcEncoder::<LEN, WINDOW>::new(config, start).expect("a size that it has"));
    let mut decoder = Box::new(RlcDecoder::<LEN, WINDOW, 64>::new(config, 64).expect("a size that it has"));
    let (mut state, mut repair) = (1u64, vec![0; LEN]);
    let mut is_lost = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        state >> 32 < (1 << 32) / 20
    };
    let (mut n, mut lost, mut back) = (0usize, 0, 0);
    rate(&format!("sliding window encode and decode,m={WINDOW}"), LEN, || {
        let symbol = symbols.at(n % 400);
        let id = encoder.push_source(symbol).expect("it has the right size");
        n += 1;
        if is_lost() {
            lost += 1;
        } else {
            back += decoder.receive_source(id, symbol).map_or(0, |report| report.recovered());
        }
        if n.is_multiple_of(SOURCES) {
            let key = RepairParameters::new((n % 65_535) as u16 + 1, DensityThreshold::FULL);
            let id = encoder.encode_repair(key, &mut repair).expect("there are sources");
            if !is_lost() {
                back += decoder.receive_repair(id, &repair).map_or(0, |report| report.recovered());
            }
        }
    });
    assert!(back * 100 > lost * 98, "{back} of {lost} came back");
}
