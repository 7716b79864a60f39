#![allow(
    unsafe_code,
    reason = "a global allocator is an unsafe trait; this one only counts, and hands each call on to the system's unchanged"
)]

use core::cell::Cell;
use std::alloc::{GlobalAlloc, Layout, System};

/// A global allocator that counts, for each thread, what is asked of it, and hands each call on to
/// the system's unchanged:
///
/// ```
/// # use braidcast_testing::Counting;
/// #[global_allocator]
/// static ALLOCATOR: Counting = Counting;
///
/// let (calls, bytes) = (Counting::calls(), Counting::bytes());
/// let vec = vec![0_u8; 100];
/// assert_eq!((Counting::calls() - calls, Counting::bytes() - bytes), (1, 100));
/// drop(vec);
/// assert_eq!((Counting::calls() - calls, Counting::bytes() - bytes), (1, 0));
/// ```
#[derive(Debug)]
pub struct Counting;

thread_local! {
    static CALLS: Cell<u64> = const { Cell::new(0) };
    static BYTES: Cell<isize> = const { Cell::new(0) };
}

impl Counting {
    /// Calls to allocate and to reallocate, by this thread so far.
    pub fn calls() -> u64 {
        CALLS.get()
    }

    /// Bytes that this thread allocated so far, less those that it freed.
    pub fn bytes() -> isize {
        BYTES.get()
    }
}

fn count(calls: u64, bytes: isize) {
    // Constant initialisers and no destructors: access neither allocates nor fails.
    CALLS.set(CALLS.get() + calls);
    BYTES.set(BYTES.get() + bytes);
}

// SAFETY: every method calls the same method of `System` with the arguments that it was given, so what the caller
// promises is what `System` needs and what `System` promises is what the caller gets. Counting touches no heap.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(1, layout.size() as isize);
        // SAFETY: as above.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(0, -(layout.size() as isize));
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count(1, new_size as isize - layout.size() as isize);
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}
