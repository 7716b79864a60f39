use crate::gf::mul;

/// All products.
static PRODUCTS: [[u8; 256]; 256] = products();

const fn products() -> [[u8; 256]; 256] {
    let mut table = [[0; 256]; 256];
    let mut a = 0;
    while a < 256 {
        let mut b = 0;
        while b < 256 {
            table[a][b] = mul(a as u8, b as u8);
            b += 1;
        }
        a += 1;
    }
    table
}

/// See [`Kernel::accumulate`](super::Kernel).
pub(super) fn accumulate(sums: &mut [&mut [u8]], sources: &[&[u8]], coefficients: &[u8], len: usize) {
    for (sum, row) in sums.iter_mut().zip(coefficients.chunks_exact(sources.len())) {
        for (source, &coefficient) in sources.iter().zip(row) {
            let products = &PRODUCTS[usize::from(coefficient)];
            for (sum, &byte) in sum[..len].iter_mut().zip(&source[..len]) {
                *sum ^= products[usize::from(byte)];
            }
        }
    }
}
