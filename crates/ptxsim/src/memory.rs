//! Host memory that a kernel may touch: registered allocations, in place.
//!
//! Every access to host memory in this crate goes through [`Memory::find`] first, so that a pointer outside every
//! allocation is a finding and never a fault. Elements of up to eight bytes are read and written with relaxed atomics:
//! CTAs run on several threads at once, and a kernel with a data race must not become undefined behaviour here.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};

/// One registered allocation.
#[derive(Clone, Debug)]
pub struct Allocation {
    /// First address.
    pub base: u64,
    /// Length in bytes.
    pub len: u64,
    /// The name used in findings: an argument's name, or a module variable's.
    pub name: String,
    /// Whether stores are allowed.
    pub writable: bool,
}

impl Allocation {
    fn end(&self) -> u64 {
        self.base.saturating_add(self.len)
    }
}

/// The allocations a launch may touch, sorted by address.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    allocs: Vec<Allocation>,
}

impl Memory {
    /// No allocation at all.
    pub fn new() -> Memory {
        Memory::default()
    }

    /// Registers `len` bytes at `ptr`. A range that overlaps one already registered (two views of one array) is merged
    /// with it under both names, and is writable if either is.
    ///
    /// # Safety
    /// The range must stay valid for reads, and for writes if `writable`, for as long as this `Memory` is used in
    /// launches, and nothing else may access it while one runs.
    pub unsafe fn register(&mut self, ptr: *mut u8, len: usize, name: &str, writable: bool) {
        if len == 0 {
            return;
        }
        let mut new = Allocation { base: ptr as u64, len: len as u64, name: name.to_string(), writable };
        let mut k = 0;
        while k < self.allocs.len() {
            let a = &self.allocs[k];
            if a.base < new.end() && new.base < a.end() {
                let a = self.allocs.remove(k);
                let end = a.end().max(new.end());
                new.base = new.base.min(a.base);
                new.len = end - new.base;
                new.writable |= a.writable;
                if a.name != new.name {
                    new.name = format!("{}/{}", a.name, new.name);
                }
            } else {
                k += 1;
            }
        }
        let at = self.allocs.partition_point(|a| a.base < new.base);
        self.allocs.insert(at, new);
    }

    /// Registers a slice for reading and writing. The borrow is not kept: see [`Memory::register`] for what the caller
    /// must hold to.
    ///
    /// # Safety
    /// As for [`Memory::register`].
    pub unsafe fn register_slice<T: Copy>(&mut self, s: &mut [T], name: &str) {
        // SAFETY: passed on to the caller.
        unsafe { self.register(s.as_mut_ptr().cast(), std::mem::size_of_val(s), name, true) }
    }

    /// The allocations, sorted by address.
    pub fn allocations(&self) -> &[Allocation] {
        &self.allocs
    }

    /// The index of the allocation that holds all of `[addr, addr + len)`.
    pub(crate) fn find(&self, addr: u64, len: u64) -> Option<usize> {
        let k = self.allocs.partition_point(|a| a.base <= addr).checked_sub(1)?;
        let a = &self.allocs[k];
        (addr.checked_add(len)? <= a.end()).then_some(k)
    }

    /// Says where `addr` lies, relative to the closest allocation.
    pub(crate) fn describe(&self, addr: u64) -> String {
        let dist = |a: &Allocation| {
            if addr < a.base { a.base - addr } else { addr.saturating_add(1).saturating_sub(a.end()) }
        };
        match self.allocs.iter().min_by_key(|a| dist(a)) {
            None => "no memory is registered".into(),
            Some(a) if addr < a.base => {
                format!("{} bytes before `{}` ({} bytes)", a.base - addr, a.name, a.len)
            }
            Some(a) if addr >= a.end() => {
                format!("{} bytes past the end of `{}` ({} bytes)", addr - a.end(), a.name, a.len)
            }
            Some(a) => format!("byte {} of `{}` ({} bytes)", addr - a.base, a.name, a.len),
        }
    }
}

/// Reads `size` (1, 2, 4 or 8) bytes.
///
/// # Safety
/// The range must lie in a live registered allocation and be aligned to `size`.
#[inline(always)]
pub(crate) unsafe fn read(addr: u64, size: u32) -> u64 {
    // SAFETY: the caller vouches for range and alignment; atomics allow concurrent access.
    unsafe {
        match size {
            1 => AtomicU8::from_ptr(addr as *mut u8).load(Relaxed).into(),
            2 => AtomicU16::from_ptr(addr as *mut u16).load(Relaxed).into(),
            4 => AtomicU32::from_ptr(addr as *mut u32).load(Relaxed).into(),
            _ => AtomicU64::from_ptr(addr as *mut u64).load(Relaxed),
        }
    }
}

/// Writes `size` (1, 2, 4 or 8) bytes.
///
/// # Safety
/// As for [`read`], in a writable allocation.
#[inline(always)]
pub(crate) unsafe fn write(addr: u64, size: u32, v: u64) {
    // SAFETY: the caller vouches for range and alignment; atomics allow concurrent access.
    unsafe {
        match size {
            1 => AtomicU8::from_ptr(addr as *mut u8).store(v as u8, Relaxed),
            2 => AtomicU16::from_ptr(addr as *mut u16).store(v as u16, Relaxed),
            4 => AtomicU32::from_ptr(addr as *mut u32).store(v as u32, Relaxed),
            _ => AtomicU64::from_ptr(addr as *mut u64).store(v, Relaxed),
        }
    }
}

/// Replaces the `size` bytes at `addr` by `f` of them, atomically, and returns what was there.
///
/// # Safety
/// As for [`write`].
pub(crate) unsafe fn update(addr: u64, size: u32, mut f: impl FnMut(u64) -> u64) -> u64 {
    use std::sync::atomic::Ordering::SeqCst;
    // SAFETY: the caller vouches for range and alignment; atomics allow concurrent access.
    unsafe {
        match size {
            2 => AtomicU16::from_ptr(addr as *mut u16)
                .fetch_update(SeqCst, SeqCst, |v| Some(f(v.into()) as u16))
                .unwrap_or_else(|v| v)
                .into(),
            4 => AtomicU32::from_ptr(addr as *mut u32)
                .fetch_update(SeqCst, SeqCst, |v| Some(f(v.into()) as u32))
                .unwrap_or_else(|v| v)
                .into(),
            _ => AtomicU64::from_ptr(addr as *mut u64)
                .fetch_update(SeqCst, SeqCst, |v| Some(f(v)))
                .unwrap_or_else(|v| v),
        }
    }
}
