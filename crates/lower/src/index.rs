//! Thread indices and the coordinates of a thread's elements.
//!
//! A coordinate is `rep + (unit ^ T)`: `rep` and `unit` are constants of the register and `T` depends on the thread
//! alone. `T` is linear over F2 in the bits of the thread index, so it is computed once per (layout, axis) from a few
//! masks and shifts, and the builder turns the XOR with a constant into an addition where the bits are disjoint.

use tilewright_layout::{Bounds, TileLayout};

use tilewright_llvm::{IntPred, Value};

use crate::{Hooks, Lower};

impl<H: Hooks> Lower<'_, H> {
    /// The thread's index among those that run this: in the CTA, or in its partition.
    pub fn tid(&mut self) -> Value {
        let tid = self.launched_tid();
        let (warps, scope) = (self.num_warps, self.scope);
        if warps == scope.launched {
            return tid;
        }
        let threads = warps * self.target.warp_size;
        if warps.is_power_of_two() && scope.first_warp % warps == 0 {
            return self.b.and_const(tid, u64::from(threads - 1));
        }
        let relative = self.b.add_const(tid, -i64::from(scope.first_warp * self.target.warp_size));
        self.b.assume_zeros(relative, !u64::from(threads.next_power_of_two() - 1) & 0xffff_ffff);
        relative
    }

    /// The thread's index in the CTA.
    pub fn launched_tid(&mut self) -> Value {
        let tid = H::thread_id(self);
        let threads = (self.scope.launched * self.target.warp_size).next_power_of_two();
        self.b.assume_zeros(tid, !u64::from(threads - 1) & 0xffff_ffff);
        tid
    }

    /// Bits of a lane's number.
    pub fn lane_bits(&self) -> u32 {
        self.target.warp_size.trailing_zeros()
    }

    /// The thread's index in its warp.
    pub fn lane(&mut self) -> Value {
        let tid = self.tid();
        self.b.and_const(tid, u64::from(self.target.warp_size - 1))
    }

    /// The warp's index among those that run this.
    pub fn warp(&mut self) -> Value {
        let tid = self.tid();
        self.b.lshr(tid, self.lane_bits())
    }

    /// The F2-linear function of the thread whose value for lane bit i is `lanes[i]` and for warp bit i `warps[i]`.
    pub(crate) fn linear(&mut self, lanes: &[u32], warps: &[u32]) -> Value {
        let tid = self.tid();
        let lanes = lanes.iter().copied().chain(std::iter::repeat(0)).take(self.lane_bits() as usize);
        self.linear_of(tid, lanes.chain(warps.iter().copied()))
    }

    /// The F2-linear function of an index with the given images of its bits.
    pub(crate) fn linear_of(&mut self, of: Value, bases: impl Iterator<Item = u32>) -> Value {
        // One mask per distance between a bit's place in the input and in the output.
        let mut masks: Vec<(i32, u32)> = Vec::new();
        let mut any = 0u32;
        for (bit, basis) in bases.enumerate() {
            any |= basis;
            for out in (0..32).filter(|o| basis >> o & 1 == 1) {
                let distance = out - bit as i32;
                match masks.iter_mut().find(|(d, _)| *d == distance) {
                    Some((_, mask)) => *mask |= 1 << bit,
                    None => masks.push((distance, 1 << bit)),
                }
            }
        }
        let mut sum = self.b.i32(0);
        let mut used = 0u32;
        for (distance, mask) in masks {
            let part = self.b.and_const(of, u64::from(mask));
            let (part, bits) = if distance >= 0 {
                (self.b.shl(part, distance as u32), mask << distance)
            } else {
                (self.b.lshr(part, -distance as u32), mask >> -distance)
            };
            sum = if used & bits == 0 { self.b.add(sum, part) } else { self.b.xor(sum, part) };
            used |= bits;
        }
        self.b.assume_zeros(sum, u64::from(!any));
        sum
    }

    /// `rep + (unit ^ thread)`, the constant bits that the thread part cannot have added outside.
    pub(crate) fn with_constant(&mut self, thread: Value, unit: u32, rep: u32) -> Value {
        let free = self.b.known_zeros(thread) as u32;
        let overlap = self.b.i32(i64::from(unit & !free));
        let x = self.b.xor(thread, overlap);
        self.b.add_const(x, i64::from((unit & free) + rep))
    }

    /// The coordinate of a register along an axis.
    pub fn coord(&mut self, layout: &TileLayout, register: u32, axis: usize) -> Value {
        let thread = self.linear(&layout.lane_bases(axis), &layout.warp_bases(axis));
        let rep = layout.rep_coord(register / layout.unit_registers())[axis];
        let unit = layout.register_coord(register)[axis] - rep;
        self.with_constant(thread, unit, rep)
    }

    /// The coordinates of all registers along an axis.
    pub fn coords(&mut self, layout: &TileLayout, axis: usize) -> Vec<Value> {
        let thread = self.linear(&layout.lane_bases(axis), &layout.warp_bases(axis));
        (0..layout.num_registers())
            .map(|r| {
                let rep = layout.rep_coord(r / layout.unit_registers())[axis];
                let unit = layout.register_coord(r)[axis] - rep;
                self.with_constant(thread, unit, rep)
            })
            .collect()
    }

    /// The row-major index of a register's element.
    pub(crate) fn flat_index(&mut self, layout: &TileLayout, register: u32) -> Value {
        let mut flat = self.b.i32(0);
        for axis in 0..layout.rank() {
            let c = self.coord(layout, register, axis);
            flat = self.b.mul_const(flat, i64::from(layout.shape()[axis]));
            flat = self.b.add(flat, c);
        }
        flat
    }

    /// Whether a register's element lies in the tensor's logical shape; `None` where it always does.
    pub fn in_bounds(&mut self, layout: &TileLayout, register: u32) -> Option<Value> {
        match layout.register_bounds(register) {
            Bounds::Inside => None,
            Bounds::Outside => Some(self.b.bool(false)),
            Bounds::Depends { axes } => {
                let mut all = self.b.bool(true);
                for axis in (0..layout.rank()).filter(|a| axes >> a & 1 == 1) {
                    let c = self.coord(layout, register, axis);
                    let size = self.b.i32(i64::from(layout.shape()[axis]));
                    let ok = self.b.icmp(IntPred::Ult, c, size);
                    all = self.b.and(all, ok);
                }
                Some(all)
            }
        }
    }

    /// Whether this thread is the one that stores elements of which several threads hold copies; `None` where there
    /// are no copies.
    pub fn is_owner(&mut self, layout: &TileLayout) -> Option<Value> {
        let mask = self.copies(layout);
        self.threads_without(mask)
    }

    /// The bits of the thread index under which copies are found.
    pub fn copies(&self, layout: &TileLayout) -> u32 {
        let free = layout.free_variable_masks();
        let mut mask = free.lane | free.warp << self.lane_bits();
        let mut warps = layout.num_warps();
        while warps < self.num_warps {
            mask |= warps << self.lane_bits();
            warps *= 2;
        }
        mask
    }

    /// Whether the thread index has none of these bits; `None` where that is sure.
    pub fn threads_without(&mut self, mask: u32) -> Option<Value> {
        if mask == 0 {
            return None;
        }
        let tid = self.tid();
        let bits = self.b.and_const(tid, u64::from(mask));
        let zero = self.b.i32(0);
        Some(self.b.icmp(IntPred::Eq, bits, zero))
    }

    /// Whether this is thread 0 of those that run this.
    pub fn is_first_thread(&mut self) -> Value {
        let tid = self.tid();
        let zero = self.b.i32(0);
        self.b.icmp(IntPred::Eq, tid, zero)
    }

    /// The conjunction of conditions, of which `None` is always true.
    pub fn all(&mut self, conditions: &[Option<Value>]) -> Option<Value> {
        let mut all: Option<Value> = None;
        for c in conditions.iter().flatten() {
            all = Some(match all {
                Some(a) => self.b.and(a, *c),
                None => *c,
            });
        }
        all.filter(|&a| !self.b.is_true(a))
    }

    /// Waits for all threads that run this; their writes to shared memory are visible after it.
    pub fn barrier(&mut self) {
        H::barrier(self);
    }
}
