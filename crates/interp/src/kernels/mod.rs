//! Elementwise loops: one small function per operation and register type, chosen once when a kernel is compiled.
//!
//! Each loop is compiled twice, for the baseline CPU and for AVX2 with FMA, and picks at run time. Nothing is
//! reassociated or contracted, so both give the same bits.

pub mod cast;
pub mod float;
pub mod int;
pub mod math;

use crate::buffer::Plain;

/// A loop over up to three operands.
///
/// # Safety
/// The sources (as many as the operation has) and the destination hold `n` elements of the operation's types, aligned,
/// and the destination overlaps no source.
pub type Kernel = unsafe fn([*const u8; 3], *mut u8, usize);

/// Whether the AVX2 versions may run.
#[inline(always)]
fn wide() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma")
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        false
    }
}

macro_rules! map_fn {
    ($name:ident, $body:ident, $wide:ident, ($($s:ident : $S:ident = $i:literal),*)) => {
        #[inline(always)]
        fn $body<$($S: Plain,)* R: Plain, F: Fn($($S),*) -> R>($($s: &[$S],)* out: &mut [R], f: F) {
            let n = out.len();
            $(let $s = &$s[..n];)*
            for i in 0..n {
                out[i] = f($($s[i]),*);
            }
        }

        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma")]
        fn $wide<$($S: Plain,)* R: Plain, F: Fn($($S),*) -> R>($($s: &[$S],)* out: &mut [R], f: F) {
            $body($($s,)* out, f)
        }

        /// Applies a function to each element.
        ///
        /// # Safety
        /// See [`Kernel`].
        #[inline]
        pub unsafe fn $name<$($S: Plain,)* R: Plain, F: Fn($($S),*) -> R>(
            src: [*const u8; 3], dst: *mut u8, n: usize, f: F,
        ) {
            // SAFETY: the caller's promise (see `Kernel`).
            let ($($s,)* out) = unsafe {
                ($(std::slice::from_raw_parts(src[$i].cast::<$S>(), n),)*
                 std::slice::from_raw_parts_mut(dst.cast::<R>(), n))
            };
            #[cfg(target_arch = "x86_64")]
            if n >= 8 && wide() {
                // SAFETY: the CPU has these features.
                return unsafe { $wide($($s,)* out, f) };
            }
            $body($($s,)* out, f)
        }
    };
}
map_fn!(map1, body1, wide1, (a: A = 0));
map_fn!(map2, body2, wide2, (a: A = 0, b: B = 1));
map_fn!(map3, body3, wide3, (a: A = 0, b: B = 1, c: C = 2));

/// Names a kernel: `kernel!(i32, i32 => u8, |a, b| ...)`.
macro_rules! kernel {
    ($A:ty => $R:ty, $f:expr) => {{
        unsafe fn k(s: [*const u8; 3], d: *mut u8, n: usize) {
            // SAFETY: the caller's promise (see `Kernel`).
            unsafe { $crate::kernels::map1::<$A, $R, _>(s, d, n, $f) }
        }
        k as $crate::kernels::Kernel
    }};
    ($A:ty, $B:ty => $R:ty, $f:expr) => {{
        unsafe fn k(s: [*const u8; 3], d: *mut u8, n: usize) {
            // SAFETY: the caller's promise (see `Kernel`).
            unsafe { $crate::kernels::map2::<$A, $B, $R, _>(s, d, n, $f) }
        }
        k as $crate::kernels::Kernel
    }};
    ($A:ty, $B:ty, $C:ty => $R:ty, $f:expr) => {{
        unsafe fn k(s: [*const u8; 3], d: *mut u8, n: usize) {
            // SAFETY: the caller's promise (see `Kernel`).
            unsafe { $crate::kernels::map3::<$A, $B, $C, $R, _>(s, d, n, $f) }
        }
        k as $crate::kernels::Kernel
    }};
}
pub(crate) use kernel;

/// Copies elements of 1, 2, 4 or 8 bytes.
pub fn copy(size: usize) -> Kernel {
    match size {
        1 => kernel!(u8 => u8, |a| a),
        2 => kernel!(u16 => u16, |a| a),
        4 => kernel!(u32 => u32, |a| a),
        _ => kernel!(u64 => u64, |a| a),
    }
}

/// `condition ? a : b` for elements of 1, 2, 4 or 8 bytes.
pub fn select(size: usize) -> Kernel {
    match size {
        1 => kernel!(u8, u8, u8 => u8, |c, a, b| if c != 0 { a } else { b }),
        2 => kernel!(u8, u16, u16 => u16, |c, a, b| if c != 0 { a } else { b }),
        4 => kernel!(u8, u32, u32 => u32, |c, a, b| if c != 0 { a } else { b }),
        _ => kernel!(u8, u64, u64 => u64, |c, a, b| if c != 0 { a } else { b }),
    }
}
