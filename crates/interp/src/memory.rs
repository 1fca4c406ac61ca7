//! Memory that kernels may touch: registered allocations, and the checks and copies of loads and stores.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

/// A piece of memory that a kernel may access: the whole storage that an argument's view belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allocation {
    /// The address of its first byte.
    pub base: u64,
    /// Its length in bytes.
    pub len: u64,
    /// What to call it in messages: the argument's name.
    pub name: String,
    /// Whether it may be written.
    pub writable: bool,
}

/// The allocations of one run, by address.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    /// Sorted by base.
    allocations: Vec<Allocation>,
    /// The largest end of any allocation up to each, as they may overlap.
    reach: Vec<u64>,
}

/// Why an access is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Violation {
    /// Not a multiple of the element size.
    Misaligned,
    /// Outside every allocation.
    OutOfBounds,
    /// A store to read-only memory.
    ReadOnly,
}

/// The last allocation hit, to try first.
#[derive(Debug, Clone, Copy, Default)]
pub struct Hit {
    base: u64,
    end: u64,
    writable: bool,
}

impl Memory {
    /// No memory at all.
    pub fn new() -> Self {
        Self::default()
    }

    /// Allows kernels to access `len` bytes from `base`.
    ///
    /// # Safety
    /// For as long as a run uses this registry, the bytes must be initialized memory that is valid for reads, and for
    /// writes if `writable`, with no Rust reference to them that such an access would violate. Programs run on several
    /// threads: what a kernel's own data races do to the values is unspecified, as on a GPU.
    pub unsafe fn register(&mut self, base: u64, len: u64, name: impl Into<String>, writable: bool) {
        let at = self.allocations.partition_point(|a| a.base <= base);
        self.allocations.insert(at, Allocation { base, len, name: name.into(), writable });
        let mut reach = 0;
        self.reach.clear();
        for a in &self.allocations {
            reach = reach.max(a.base.saturating_add(a.len));
            self.reach.push(reach);
        }
    }

    /// The registered allocations, by address.
    pub fn allocations(&self) -> &[Allocation] {
        &self.allocations
    }

    /// An allocation that holds `[addr, addr + size)`, a writable one if there is one.
    fn find(&self, addr: u64, size: u64) -> Option<&Allocation> {
        let end = addr.checked_add(size)?;
        let mut found: Option<&Allocation> = None;
        let mut at = self.allocations.partition_point(|a| a.base <= addr);
        while at > 0 && self.reach[at - 1] >= end {
            at -= 1;
            let a = &self.allocations[at];
            if end <= a.base.saturating_add(a.len) && found.is_none_or(|f| !f.writable) {
                found = Some(a);
            }
        }
        found
    }

    /// Checks that a range lies in one allocation.
    #[inline(always)]
    pub fn check(&self, hit: &mut Hit, addr: u64, size: u64, write: bool) -> Result<(), Violation> {
        if addr >= hit.base && addr.wrapping_add(size) <= hit.end && addr.wrapping_add(size) >= addr {
            // Another allocation that overlaps this read-only one may be writable.
            if !write || hit.writable {
                return Ok(());
            }
        }
        self.check_slow(hit, addr, size, write)
    }

    #[cold]
    fn check_slow(&self, hit: &mut Hit, addr: u64, size: u64, write: bool) -> Result<(), Violation> {
        let a = self.find(addr, size).ok_or(Violation::OutOfBounds)?;
        *hit = Hit { base: a.base, end: a.base + a.len, writable: a.writable };
        if write && !a.writable { Err(Violation::ReadOnly) } else { Ok(()) }
    }

    /// Checks an element: alignment, then bounds.
    #[inline(always)]
    pub fn check_element(&self, hit: &mut Hit, addr: u64, size: u64, write: bool) -> Result<(), Violation> {
        if addr & (size - 1) != 0 {
            return Err(Violation::Misaligned);
        }
        self.check(hit, addr, size, write)
    }

    /// Whether a range lies in memory that may be written.
    pub fn is_shared(&self, addr: u64, size: u64) -> bool {
        self.find(addr, size).is_some_and(|a| a.writable)
    }

    /// The allocation nearest to an address, and a sentence that says where the address is relative to it.
    pub fn nearest(&self, addr: u64, size: u64) -> Option<(&Allocation, String)> {
        let distance = |a: &Allocation| {
            let end = a.base.saturating_add(a.len);
            if addr < a.base { a.base - addr } else { addr.saturating_sub(end.saturating_sub(1)) }
        };
        let a = self.allocations.iter().min_by_key(|a| distance(a))?;
        let end = a.base.saturating_add(a.len);
        let elements = |bytes: u64| {
            if bytes.is_multiple_of(size) && size > 0 {
                let n = bytes / size;
                format!("{n} element{}", if n == 1 { "" } else { "s" })
            } else {
                format!("{bytes} bytes")
            }
        };
        let place = if addr < a.base {
            format!("{} before the start of", elements(a.base - addr))
        } else if addr == end {
            "directly past the end of".to_string()
        } else if addr > end {
            format!("{} past the end of", elements(addr - end))
        } else if addr.saturating_add(size) > end {
            format!("{} bytes past the end (the element straddles it) of", addr + size - end)
        } else {
            format!("at byte {} of", addr - a.base)
        };
        Some((a, format!("the address is {place} `{}` ({} bytes)", a.name, a.len)))
    }
}

/// An unsigned integer of an element's size that can be read and written atomically.
pub trait Word: Copy + Eq + 'static {
    /// Reads, relaxed.
    ///
    /// # Safety
    /// The address is checked: aligned and inside an allocation.
    unsafe fn read(addr: u64) -> Self;
    /// Writes, relaxed.
    ///
    /// # Safety
    /// As for [`read`](Self::read), and writable.
    unsafe fn write(addr: u64, value: Self);
    /// Compare and exchange; gives the old value and whether it matched.
    ///
    /// # Safety
    /// As for [`write`](Self::write).
    unsafe fn compare_exchange(addr: u64, expected: Self, new: Self) -> Result<Self, Self>;
    /// The low bits.
    fn from_bits(bits: u64) -> Self;
    /// Zero-extended.
    fn to_bits(self) -> u64;
}

macro_rules! word {
    ($($t:ty => $a:ty),*) => {$(
        impl Word for $t {
            #[inline(always)]
            unsafe fn read(addr: u64) -> Self {
                // SAFETY: the caller's promise; atomic, so racing programs see some written value.
                unsafe { <$a>::from_ptr(addr as *mut $t) }.load(Ordering::Relaxed)
            }
            #[inline(always)]
            unsafe fn write(addr: u64, value: Self) {
                // SAFETY: as in `read`.
                unsafe { <$a>::from_ptr(addr as *mut $t) }.store(value, Ordering::Relaxed)
            }
            #[inline(always)]
            unsafe fn compare_exchange(addr: u64, expected: Self, new: Self) -> Result<Self, Self> {
                // SAFETY: as in `read`.
                let atomic = unsafe { <$a>::from_ptr(addr as *mut $t) };
                atomic.compare_exchange(expected, new, Ordering::SeqCst, Ordering::SeqCst)
            }
            fn from_bits(bits: u64) -> Self { bits as $t }
            fn to_bits(self) -> u64 { u64::from(self) }
        }
    )*};
}
word!(u8 => AtomicU8, u16 => AtomicU16, u32 => AtomicU32, u64 => AtomicU64);

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(list: &[(u64, u64, bool)]) -> Memory {
        let mut m = Memory::new();
        for &(base, len, writable) in list {
            // SAFETY: only checked, never accessed.
            unsafe { m.register(base, len, format!("x{base}"), writable) };
        }
        m
    }

    #[test]
    fn ranges() {
        let m = memory(&[(100, 50, true), (200, 8, false), (110, 4, false)]);
        let mut hit = Hit::default();
        assert_eq!(m.check(&mut hit, 100, 50, true), Ok(()));
        assert_eq!(m.check(&mut hit, 112, 4, true), Ok(()));
        assert_eq!(m.check(&mut hit, 100, 51, true), Err(Violation::OutOfBounds));
        assert_eq!(m.check(&mut hit, 99, 1, true), Err(Violation::OutOfBounds));
        assert_eq!(m.check(&mut hit, 200, 8, false), Ok(()));
        assert_eq!(m.check(&mut hit, 200, 8, true), Err(Violation::ReadOnly));
        assert_eq!(m.check(&mut hit, u64::MAX, 8, false), Err(Violation::OutOfBounds));
        assert_eq!(m.check_element(&mut hit, 102, 4, false), Err(Violation::Misaligned));
    }

    #[test]
    fn an_overlapping_read_only_view_does_not_hide_the_writable_one() {
        let m = memory(&[(110, 4, false), (100, 50, true)]);
        let mut hit = Hit::default();
        assert_eq!(m.check(&mut hit, 110, 4, true), Ok(()));
    }

    #[test]
    fn nearest_names_the_closest() {
        let m = memory(&[(100, 50, true), (200, 8, false)]);
        let (a, text) = m.nearest(158, 4).unwrap();
        assert_eq!(a.name, "x100");
        assert!(text.contains("2 elements past the end of `x100` (50 bytes)"), "{text}");
        assert!(m.nearest(196, 4).unwrap().1.contains("1 element before the start of `x200`"));
        assert!(m.nearest(0, 4).unwrap().1.contains("before the start of `x100`"));
    }
}
