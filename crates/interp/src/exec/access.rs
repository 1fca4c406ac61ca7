//! Loads and stores.
//!
//! Addresses that are affine in the index, under a mask that is a box, are moved row by row: one bounds check and one
//! copy each. Everything else goes element by element, each with its own check.

use tilewright_ir::FloatKind;

use super::local::is_nowhere;
use super::{Context, Fault, FaultBox, Frame};
use crate::buffer::{Buffer, Plain};
use crate::elem::Elem;
use crate::kernels::{Kernel, cast};
use crate::meeting::Signal;
use crate::memory::{Hit, Memory, Violation, Word};
use crate::program::{Program, V};
use crate::shape::by_size;
use crate::shared_copy::{read_run, write_run};
use crate::tile::{Affine, BoxMask, MAX_COMPACT_RANK, Repr, TileType, for_each_row};

/// An element whose access is refused.
pub(super) struct Refused {
    element: usize,
    addr: u64,
    violation: Violation,
}

fn fault(memory: &Memory, refused: &Refused, elem: Elem, ty: &TileType, verb: &str) -> FaultBox {
    let size = elem.mem_size() as u64;
    let (addr, name) = (refused.addr, elem.name());
    let nowhere = is_nowhere(addr);
    let mut fault = Fault::new(match refused.violation {
        _ if nowhere => {
            format!("out-of-bounds {verb}: {name} at an index that its buffer in shared memory has not")
        }
        Violation::Misaligned => {
            format!("misaligned {verb}: {name} at {addr:#x}, which is not a multiple of {size}")
        }
        Violation::OutOfBounds => {
            format!("out-of-bounds {verb}: {name} at {addr:#x}, which is in no argument's memory")
        }
        Violation::ReadOnly => format!("{verb} to read-only memory: {name} at {addr:#x}"),
    });
    fault.address = (refused.violation == Violation::OutOfBounds && !nowhere).then_some(addr);
    if !ty.shape.is_empty() {
        fault.element = Some((refused.element, ty.shape.clone()));
    }
    match memory.nearest(addr, size) {
        _ if nowhere => {}
        Some((_, text)) => fault.notes.push(format!("closest argument: {text}")),
        None => fault.notes.push("no argument is a pointer to memory".to_string()),
    }
    Box::new(fault)
}

/// The fault of one element.
pub(super) fn refused_element(
    memory: &Memory,
    element: usize,
    addr: u64,
    violation: Violation,
    elem: Elem,
    ty: &TileType,
    verb: &str,
) -> FaultBox {
    fault(memory, &Refused { element, addr, violation }, elem, ty, verb)
}

/// How a masked access goes.
pub(super) enum Plan {
    /// No element.
    Nothing,
    /// Rows of an affine tile inside a box.
    Rows(Affine, BoxMask),
    /// One by one; with a mask or without.
    Elements(bool),
}

impl Frame {
    pub(super) fn plan(&mut self, program: &Program, ptr: V, mask: Option<V>) -> Plan {
        let ty = Self::ty(program, ptr);
        let n = self.len(ty);
        let mut mask_repr = match mask {
            None => Repr::Uniform(1),
            Some(m) => self.regs[m.slot as usize].repr,
        };
        if let (Repr::Dense, Some(m)) = (mask_repr, mask) {
            // A dense mask is often full.
            if self.regs[m.slot as usize].buf.slice::<u8>(n).iter().all(|&b| b != 0) {
                mask_repr = Repr::Uniform(1);
            }
        }
        if mask_repr == Repr::Uniform(0) {
            return Plan::Nothing;
        }
        let affine = match self.regs[ptr.slot as usize].repr {
            _ if ty.shape.len() > MAX_COMPACT_RANK || self.lanes != 1 => None,
            repr => Affine::from_repr(repr),
        };
        match (affine, BoxMask::from_repr(mask_repr, &ty.shape[..ty.shape.len().min(MAX_COMPACT_RANK)])) {
            (Some(a), Some(m)) => Plan::Rows(a, m),
            _ => Plan::Elements(mask_repr != Repr::Uniform(1)),
        }
    }

    /// Looks whether signals are there; gives whether the program goes on, with what they are.
    pub(super) fn wait_signal(
        &mut self,
        program: &Program,
        context: &Context<'_>,
        (ptr, value): (V, V),
        dst: V,
        flagged: bool,
    ) -> Result<bool, FaultBox> {
        let ty = Self::ty(program, value);
        let (size, n) = (ty.elem.mem_size(), self.len(ty));
        self.dense(program, ptr);
        self.dense(program, value);
        for element in 0..n {
            let addr = self.regs[ptr.slot as usize].buf.slice::<u64>(n)[element];
            let wanted = self.wanted(program, value, element);
            let checked = context.memory.check_element(&mut self.hit, addr, size as u64, false);
            checked.map_err(|violation| {
                fault(context.memory, &Refused { element, addr, violation }, ty.elem, ty, "load")
            })?;
            // SAFETY: just checked; what the launch may touch stays until its end.
            let signal = unsafe { Signal::new(addr, size as u64, wanted, flagged, self.pc) };
            if !context.meetings.signaled((self.number(context), self.strand), signal) {
                return Ok(false);
            }
        }
        self.load(program, context, ptr, None, None, dst)?;
        Ok(true)
    }

    /// What an element of the signals' values is, each written out.
    pub(super) fn wanted(&self, program: &Program, value: V, element: usize) -> i64 {
        let ty = Self::ty(program, value);
        let (buf, n) = (&self.regs[value.slot as usize].buf, self.len(ty));
        match ty.elem.mem_size() {
            4 => i64::from(buf.slice::<i32>(n)[element]),
            _ => buf.slice::<i64>(n)[element],
        }
    }

    pub(super) fn load(
        &mut self,
        program: &Program,
        context: &Context<'_>,
        ptr: V,
        mask: Option<V>,
        other: Option<V>,
        dst: V,
    ) -> Result<(), FaultBox> {
        let ty = Self::ty(program, dst);
        let (elem, n) = (ty.elem, self.len(ty));
        let (size, reg_size) = (elem.mem_size(), elem.reg_size());
        let refuse = |r: Refused| fault(context.memory, &r, elem, ty, "load");
        let decode = cast::from_memory(elem);
        let plan = self.plan(program, ptr, mask);
        if ty.shape.is_empty() {
            self.touched_memory = Some(self.pc);
        }
        match plan {
            Plan::Nothing => match other {
                Some(o) => self.transfer(program, o, dst, false),
                None => self.set(dst, Repr::Uniform(context.left_out(elem))),
            },
            Plan::Rows(a, m) if a.strides == [0; MAX_COMPACT_RANK] && m == BoxMask::all(&ty.shape) => {
                // One address: one read.
                let addr = a.base as u64;
                let mut hit = self.hit;
                context
                    .memory
                    .check_element(&mut hit, addr, size as u64, false)
                    .map_err(|violation| refuse(Refused { element: 0, addr, violation }))?;
                self.hit = hit;
                let raw = by_size!(size, read_one(addr));
                let mut bits = raw;
                if let Some(decode) = decode {
                    bits = 0;
                    // SAFETY: one element each, in eight bytes.
                    unsafe { decode([(&raw const raw).cast(); 3], (&raw mut bits).cast(), 1) };
                }
                self.set(dst, Repr::Uniform(elem.canonical(bits)));
            }
            Plan::Rows(a, m) => {
                let full = m == BoxMask::all(&ty.shape);
                if let (Some(o), false) = (other, full) {
                    self.dense(program, o);
                }
                let mut out = std::mem::take(&mut self.regs[dst.slot as usize]);
                out.buf.reserve(n * reg_size);
                if !full {
                    self.leave_out_all(context, other, elem, out.buf.slice_mut(n * reg_size));
                }
                let result = self.load_rows(context.memory, &a, &m, ty, &mut out.buf, decode);
                out.repr = Repr::Dense;
                self.regs[dst.slot as usize] = out;
                result.map_err(refuse)?;
            }
            Plan::Elements(masked) => {
                self.dense(program, ptr);
                let mask = mask.filter(|_| masked);
                for v in mask.iter().chain(other.iter().filter(|_| masked)) {
                    self.dense(program, *v);
                }
                let mut out = std::mem::take(&mut self.regs[dst.slot as usize]);
                let mut scratch = std::mem::take(&mut self.scratch[0]);
                let addrs = self.regs[ptr.slot as usize].buf.slice::<u64>(n);
                let keep = mask.map(|m| self.regs[m.slot as usize].buf.slice::<u8>(n));
                let raw = if decode.is_some() { &mut scratch } else { &mut out.buf };
                raw.reserve(n * size);
                let result = by_size!(size, load_each(context.memory, &mut self.hit, addrs, keep, raw));
                if let (Some(decode), Ok(())) = (decode, &result) {
                    out.buf.reserve(n * reg_size);
                    // SAFETY: `n` elements in memory format, room for `n` in register format, in two buffers.
                    unsafe { decode([scratch.ptr(); 3], out.buf.ptr_mut(), n) };
                }
                match (keep, other) {
                    (Some(keep), Some(o)) => {
                        by_size!(reg_size, blend(keep, &self.regs[o.slot as usize].buf, &mut out.buf));
                    }
                    (Some(keep), None) if context.poison => {
                        leave_out(keep, &context.left_out(elem).to_le_bytes()[..reg_size], &mut out.buf);
                    }
                    _ => {}
                }
                out.repr = Repr::Dense;
                self.regs[dst.slot as usize] = out;
                self.scratch[0] = scratch;
                result.map_err(refuse)?;
            }
        }
        Ok(())
    }

    /// Each element as it is where a mask is off.
    fn leave_out_all(&self, context: &Context<'_>, other: Option<V>, elem: Elem, out: &mut [u8]) {
        match other {
            Some(o) => out.copy_from_slice(self.regs[o.slot as usize].buf.slice(out.len())),
            None if context.poison => {
                let size = elem.reg_size();
                let left_out = context.left_out(elem).to_le_bytes();
                out.chunks_exact_mut(size).for_each(|x| x.copy_from_slice(&left_out[..size]));
            }
            None => out.fill(0),
        }
    }

    fn load_rows(
        &mut self,
        memory: &Memory,
        a: &Affine,
        mask: &BoxMask,
        ty: &TileType,
        out: &mut Buffer,
        decode: Option<Kernel>,
    ) -> Result<(), Refused> {
        let (size, reg_size) = (ty.elem.mem_size(), ty.elem.reg_size());
        let mut hit = self.hit;
        let scratch = &mut self.scratch[0];
        let dst = out.ptr_mut();
        let result = each_run(a, mask, ty, size, |run| {
            run.check(memory, &mut hit, size as u64, false)?;
            // Without a conversion, memory goes straight to the register.
            let target = match decode {
                // SAFETY: the run lies inside the tile.
                None => unsafe { dst.add(run.element * reg_size) },
                Some(_) => {
                    scratch.reserve(run.count * size);
                    scratch.ptr_mut()
                }
            };
            if run.step == size as i64 {
                // SAFETY: the source is checked; the target has room for the run.
                unsafe { by_size!(size, read_run(run.addr, target, run.count)) };
            } else {
                // SAFETY: as above.
                unsafe { by_size!(size, gather_run(run.addr, run.step, target, run.count)) };
            }
            if let Some(decode) = decode {
                // SAFETY: `count` elements each, in two buffers.
                unsafe { decode([scratch.ptr(); 3], dst.add(run.element * reg_size), run.count) };
            }
            Ok(())
        });
        self.hit = hit;
        result
    }

    pub(super) fn store(
        &mut self,
        program: &Program,
        context: &Context<'_>,
        ptr: V,
        value: V,
        mask: Option<V>,
    ) -> Result<(), FaultBox> {
        let ty = Self::ty(program, value);
        let (elem, n) = (ty.elem, self.len(ty));
        let size = elem.mem_size();
        let refuse = |r: Refused| fault(context.memory, &r, elem, ty, "store");
        let plan = self.plan(program, ptr, mask);
        if matches!(plan, Plan::Nothing) {
            return Ok(());
        }
        self.changed = true;
        self.dense(program, value);
        let mut mask = mask;
        if let Plan::Elements(masked) = plan {
            mask = mask.filter(|_| masked);
            for v in [ptr].iter().chain(&mask) {
                self.dense(program, *v);
            }
        }
        let mut scratch = std::mem::take(&mut self.scratch[0]);
        let encoded: &Buffer = match cast::to_memory(elem) {
            None => &self.regs[value.slot as usize].buf,
            Some(encode) => {
                scratch.reserve(n * size);
                let source = self.regs[value.slot as usize].buf.ptr();
                // SAFETY: `n` elements each, in two buffers.
                unsafe { encode([source; 3], scratch.ptr_mut(), n) };
                &scratch
            }
        };
        let result = match plan {
            Plan::Nothing => Ok(()),
            Plan::Rows(a, m) => {
                let mut hit = self.hit;
                let source = encoded.ptr();
                let result = each_run(&a, &m, ty, size, |run| {
                    run.check(context.memory, &mut hit, size as u64, true)?;
                    // SAFETY: the run lies inside the tile.
                    let from = unsafe { source.add(run.element * size) };
                    if run.step == size as i64 && run.count > 1 {
                        // SAFETY: the destination is checked.
                        unsafe { by_size!(size, write_run(from, run.addr, run.count)) };
                    } else {
                        // SAFETY: as above.
                        unsafe { by_size!(size, scatter_run(from, run.addr, run.step, run.count)) };
                    }
                    Ok(())
                });
                self.hit = hit;
                result
            }
            Plan::Elements(_) => {
                let addrs = self.regs[ptr.slot as usize].buf.slice::<u64>(n);
                let keep = mask.map(|m| self.regs[m.slot as usize].buf.slice::<u8>(n));
                let mut hit = self.hit;
                let result = by_size!(size, store_each(context.memory, &mut hit, addrs, keep, encoded));
                self.hit = hit;
                result
            }
        };
        self.scratch[0] = scratch;
        result.map_err(refuse)
    }
}

/// Consecutive elements of a row, at addresses `step` bytes apart.
pub(super) struct Run {
    element: usize,
    pub(super) addr: u64,
    pub(super) step: i64,
    pub(super) count: usize,
}

impl Run {
    /// Checks the whole run at once, and only where that fails element by element.
    fn check(&self, memory: &Memory, hit: &mut Hit, size: u64, write: bool) -> Result<(), Refused> {
        let last = self.addr.wrapping_add((self.step * (self.count as i64 - 1)) as u64);
        let (low, high) = if self.step < 0 { (last, self.addr) } else { (self.addr, last) };
        let aligned = self.addr.is_multiple_of(size) && (self.step as u64).is_multiple_of(size);
        if aligned && high >= low && memory.check(hit, low, (high - low).saturating_add(size), write).is_ok()
        {
            return Ok(());
        }
        for i in 0..self.count {
            let addr = self.addr.wrapping_add((self.step * i as i64) as u64);
            memory.check_element(hit, addr, size, write).map_err(|violation| Refused {
                element: self.element + i,
                addr,
                violation,
            })?;
        }
        Ok(())
    }
}

/// Calls `f` on the runs of a tile inside a box: rows, or the whole tile where it is contiguous.
pub(super) fn each_run(
    a: &Affine,
    mask: &BoxMask,
    ty: &TileType,
    size: usize,
    mut f: impl FnMut(Run) -> Result<(), Refused>,
) -> Result<(), Refused> {
    let Some(inner) = ty.shape.len().checked_sub(1) else {
        return f(Run { element: 0, addr: a.base as u64, step: size as i64, count: 1 });
    };
    if *mask == BoxMask::all(&ty.shape) {
        let mut expected = size as i64;
        let contiguous = (0..=inner).rev().all(|d| {
            let fits = ty.shape[d] == 1 || a.strides[d] == expected;
            expected *= i64::from(ty.shape[d]);
            fits
        });
        if contiguous {
            return f(Run { element: 0, addr: a.base as u64, step: size as i64, count: ty.len });
        }
    }
    let (lo, hi) = (mask.lo[inner], mask.hi[inner]);
    if lo >= hi {
        return Ok(());
    }
    let step = if ty.shape[inner] == 1 { size as i64 } else { a.strides[inner] };
    for_each_row(&ty.shape, |start, index| {
        let mut addr = a.base.wrapping_add(a.strides[inner].wrapping_mul(i64::from(lo)));
        for (d, &i) in index.iter().enumerate().take(inner) {
            if !(mask.lo[d]..mask.hi[d]).contains(&i) {
                return Ok(());
            }
            addr = addr.wrapping_add(a.strides[d].wrapping_mul(i64::from(i)));
        }
        f(Run { element: start + lo as usize, addr: addr as u64, step, count: (hi - lo) as usize })
    })
}

fn read_one<T: Word>(addr: u64) -> u64 {
    // SAFETY: the only caller has checked the address.
    unsafe { T::read(addr) }.to_bits()
}

/// # Safety
/// The run's addresses are checked, and `out` has room for `count` elements.
unsafe fn gather_run<T: Word>(addr: u64, step: i64, out: *mut u8, count: usize) {
    for i in 0..count {
        // SAFETY: the caller's promise.
        unsafe { *out.cast::<T>().add(i) = T::read(addr.wrapping_add((step * i as i64) as u64)) };
    }
}

/// # Safety
/// The run's addresses are checked for writing, and `from` holds `count` elements.
unsafe fn scatter_run<T: Word>(from: *const u8, addr: u64, step: i64, count: usize) {
    for i in 0..count {
        // SAFETY: the caller's promise.
        unsafe { T::write(addr.wrapping_add((step * i as i64) as u64), *from.cast::<T>().add(i)) };
    }
}

fn load_each<T: Word + Plain + Default>(
    memory: &Memory,
    hit: &mut Hit,
    addrs: &[u64],
    keep: Option<&[u8]>,
    out: &mut Buffer,
) -> Result<(), Refused> {
    let size = size_of::<T>() as u64;
    let out = out.slice_mut::<T>(addrs.len());
    for (i, (&addr, x)) in addrs.iter().zip(out).enumerate() {
        if keep.is_some_and(|k| k[i] == 0) {
            *x = T::default();
            continue;
        }
        memory.check_element(hit, addr, size, false).map_err(|violation| Refused {
            element: i,
            addr,
            violation,
        })?;
        // SAFETY: just checked.
        *x = unsafe { T::read(addr) };
    }
    Ok(())
}

fn store_each<T: Word + Plain>(
    memory: &Memory,
    hit: &mut Hit,
    addrs: &[u64],
    keep: Option<&[u8]>,
    values: &Buffer,
) -> Result<(), Refused> {
    let size = size_of::<T>() as u64;
    for (i, (&addr, &x)) in addrs.iter().zip(values.slice::<T>(addrs.len())).enumerate() {
        if keep.is_some_and(|k| k[i] == 0) {
            continue;
        }
        memory.check_element(hit, addr, size, true).map_err(|violation| Refused {
            element: i,
            addr,
            violation,
        })?;
        // SAFETY: just checked.
        unsafe { T::write(addr, x) };
    }
    Ok(())
}

impl Context<'_> {
    /// A register's bits for an element that a load or an atomic operation leaves out, where nothing says what it is instead.
    pub(super) fn left_out(&self, elem: Elem) -> u64 {
        match elem {
            _ if !self.poison => 0,
            Elem::Float(FloatKind::F64) => f64::NAN.to_bits(),
            Elem::Float(_) => f32::NAN.to_bits().into(),
            elem => elem.canonical(0xa5a5_a5a5_a5a5_a5a5),
        }
    }
}

/// Where the mask is off, takes what stands for nothing.
fn leave_out(keep: &[u8], nothing: &[u8], out: &mut Buffer) {
    let each = out.slice_mut::<u8>(keep.len() * nothing.len()).chunks_exact_mut(nothing.len());
    for (x, _) in each.zip(keep).filter(|&(_, &k)| k == 0) {
        x.copy_from_slice(nothing);
    }
}

/// Where the mask is off, takes the other value.
fn blend<T: Plain>(keep: &[u8], other: &Buffer, out: &mut Buffer) {
    let n = keep.len();
    for ((x, &o), &k) in out.slice_mut::<T>(n).iter_mut().zip(other.slice::<T>(n)).zip(keep) {
        if k == 0 {
            *x = o;
        }
    }
}
