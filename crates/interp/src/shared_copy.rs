//! Copies of whole runs between memory that programs share and a program's own.
//!
//! Kernels may race: one program stores what another loads at the same time. In Rust a plain copy would then be undefined, so
//! that shared memory is only read and written atomically, relaxed. Element by element that is several times slower than a
//! plain copy, which the compiler makes vectors of; so what is aligned goes eight bytes at a time, and long runs by the
//! processor's own string move where there is one: to the compiler a black box, to the memory a sequence of whole words, and
//! as fast as `memcpy`, which does the same.

use crate::memory::Word;

/// Runs of so many words and more are moved by one instruction; below, starting it costs more than it gains.
#[cfg(target_arch = "x86_64")]
const LONG: usize = 128;

/// Copies `count` elements out of shared memory to `out`, of any alignment.
///
/// # Safety
/// The run is checked: aligned to its elements and inside an allocation; `out` has room, and nobody else uses it.
pub unsafe fn read_run<T: Word>(addr: u64, out: *mut u8, count: usize) {
    let size = size_of::<T>();
    let (head, words) = split::<T>(addr, count);
    let tail = head + words * 8 / size;
    // SAFETY: the caller's promise; head, words and tail make up the run, and the words are aligned in shared memory.
    unsafe {
        for i in (0..head).chain(tail..count) {
            out.cast::<T>().add(i).write_unaligned(T::read(addr + (i * size) as u64));
        }
        let (from, to) = (addr + (head * size) as u64, out.add(head * size).cast::<u64>());
        #[cfg(target_arch = "x86_64")]
        if words >= LONG {
            return move_words(from as *const u64, to, words);
        }
        for i in 0..words {
            to.add(i).write_unaligned(u64::read(from + 8 * i as u64));
        }
    }
}

/// Copies `count` elements from `from`, of any alignment, to shared memory.
///
/// # Safety
/// As for [`read_run`]; the run is writable, and `from` holds the elements.
pub unsafe fn write_run<T: Word>(from: *const u8, addr: u64, count: usize) {
    let size = size_of::<T>();
    let (head, words) = split::<T>(addr, count);
    let tail = head + words * 8 / size;
    // SAFETY: as in `read_run`.
    unsafe {
        for i in (0..head).chain(tail..count) {
            T::write(addr + (i * size) as u64, from.cast::<T>().add(i).read_unaligned());
        }
        let (source, to) = (from.add(head * size).cast::<u64>(), addr + (head * size) as u64);
        #[cfg(target_arch = "x86_64")]
        if words >= LONG {
            return move_words(source, to as *mut u64, words);
        }
        for i in 0..words {
            u64::write(to + 8 * i as u64, source.add(i).read_unaligned());
        }
    }
}

/// A run's elements before the first multiple of eight bytes, and the whole words from there.
fn split<T: Word>(addr: u64, count: usize) -> (usize, usize) {
    let size = size_of::<T>();
    let head = (addr.wrapping_neg() as usize % 8 / size).min(count);
    (head, (count - head) * size / 8)
}

/// `rep movsq`: words upwards, one after the other.
///
/// # Safety
/// `from` and `to` are good for so many words, which do not overlap, and one of the two is the caller's alone.
#[cfg(target_arch = "x86_64")]
unsafe fn move_words(from: *const u64, to: *mut u64, words: usize) {
    // SAFETY: the caller's promise. The direction flag is clear on entry to assembly, as the calling convention says.
    unsafe {
        std::arch::asm!(
            "rep movsq",
            inout("rsi") from => _,
            inout("rdi") to => _,
            inout("rcx") words => _,
            options(nostack, preserves_flags)
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_every_alignment_are_copied() {
        /// More than what goes word by word.
        const LENGTH: usize = 2048;
        fn check<T: Word>() {
            let size = size_of::<T>();
            let shared: Vec<u64> =
                (0..LENGTH as u64 / 8).map(|i| (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
            let bytes: Vec<u8> = shared.iter().flat_map(|w| w.to_ne_bytes()).collect();
            for first in 0..8 / size {
                for count in (0..64 / size).chain([LENGTH / size - 8 / size]) {
                    let range = first * size..(first + count) * size;
                    let mut memory = shared.clone();
                    let addr = memory.as_mut_ptr() as u64 + range.start as u64;
                    let mut out = vec![0u8; LENGTH + 1];
                    // SAFETY: the run lies in `memory`, which nobody else uses; `out` has room for it behind its first byte.
                    unsafe { read_run::<T>(addr, out.as_mut_ptr().add(1), count) };
                    assert_eq!(out[1..1 + range.len()], bytes[range.clone()]);
                    assert!(out[1 + range.len()..].iter().all(|&b| b == 0));
                    let fresh: Vec<u8> = (0..=LENGTH).map(|i| (i * 7) as u8).collect();
                    // SAFETY: as above.
                    unsafe { write_run::<T>(fresh.as_ptr().add(1), addr, count) };
                    let after: Vec<u8> = memory.iter().flat_map(|w| w.to_ne_bytes()).collect();
                    assert_eq!(after[range.clone()], fresh[1..1 + range.len()]);
                    assert_eq!(after[..range.start], bytes[..range.start]);
                    assert_eq!(after[range.end..], bytes[range.end..]);
                }
            }
        }
        check::<u8>();
        check::<u16>();
        check::<u32>();
        check::<u64>();
    }
}
