//! The storage of a register: untyped, aligned, grown on demand and reused.

/// One cache line.
#[repr(C, align(64))]
#[derive(Clone, Copy)]
struct Line([u8; 64]);

/// An aligned byte buffer. Every bit pattern is initialized memory, so reading any part as any integer or float type is
/// sound.
#[derive(Default)]
pub struct Buffer {
    lines: Vec<Line>,
}

/// Types that a register may hold: any bit pattern is a value, and no alignment above 64.
///
/// # Safety
/// Implementors are plain integers and floats.
pub unsafe trait Plain: Copy + 'static {}
macro_rules! plain { ($($t:ty),*) => {$(
    // SAFETY: a plain number.
    unsafe impl Plain for $t {}
)*}; }
plain!(u8, i8, u16, i16, u32, i32, u64, i64, f32, f64);

impl Buffer {
    /// Makes room for `bytes`; the contents are unspecified afterwards.
    pub fn reserve(&mut self, bytes: usize) {
        let lines = bytes.div_ceil(64).max(1);
        if self.lines.len() < lines {
            self.lines = vec![Line([0; 64]); lines];
        }
    }

    /// The start, for reading.
    pub fn ptr(&self) -> *const u8 {
        self.lines.as_ptr().cast()
    }

    /// The start, for writing.
    pub fn ptr_mut(&mut self) -> *mut u8 {
        self.lines.as_mut_ptr().cast()
    }

    /// All that it has room for.
    pub fn bytes(&self) -> &[u8] {
        self.slice(self.lines.len() * 64)
    }

    /// The first `n` elements.
    pub fn slice<T: Plain>(&self, n: usize) -> &[T] {
        assert!(n * size_of::<T>() <= self.lines.len() * 64, "a register shorter than its value");
        // SAFETY: in bounds by the assertion; initialized, aligned, and any bits are a `T`.
        unsafe { std::slice::from_raw_parts(self.ptr().cast(), n) }
    }

    /// The first `n` elements, for writing; makes room.
    pub fn slice_mut<T: Plain>(&mut self, n: usize) -> &mut [T] {
        self.reserve(n * size_of::<T>());
        // SAFETY: as in `slice`, and `self` is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.ptr_mut().cast(), n) }
    }
}
