//! Buffers: the memory of a program, and addresses in it.

use std::cell::RefCell;
use std::sync::Arc;

use super::rings::RingState;
use super::{Context, Fault, FaultBox, Frame, read_bits};
use crate::buffer::Buffer;
use crate::cluster_memory::ClusterMemory;
use crate::memory::Memory;
use crate::program::{Instr, Program, V, View};
use crate::tile::{Affine, MAX_COMPACT_RANK, Repr};

/// An address that nothing lies at: that of an element outside its buffer, though perhaps inside of what lies behind it.
const NOWHERE: u64 = 1 << 62;

/// Whether an address is that of an element outside its buffer, moved by arithmetic at most.
pub(super) fn is_nowhere(address: u64) -> bool {
    (NOWHERE - (1 << 40)..NOWHERE + (1 << 40)).contains(&address)
}

/// The buffers of one program, and with them all memory that it may touch.
pub(super) struct Own {
    memory: Memory,
    /// Where each buffer begins.
    addresses: Vec<u64>,
    /// What keeps them, where nobody else reaches them.
    buffers: Vec<Buffer>,
    /// What keeps them where others do, and the program's rank.
    cluster: Option<(Arc<ClusterMemory>, u64)>,
    /// The rings that have been made.
    pub rings: RefCell<Vec<RingState>>,
}

impl Own {
    /// Buffers for a program, beside what all programs of a launch may touch.
    pub fn new(program: &Program, context: &Context<'_>, in_cluster: (u64, u64)) -> Own {
        let mut own = Own {
            memory: context.memory.clone(),
            addresses: Vec::new(),
            buffers: Vec::new(),
            cluster: None,
            rings: RefCell::default(),
        };
        if program.reaches_others {
            let (number, rank) = in_cluster;
            let programs = context.cluster.iter().map(|&n| u64::from(n)).product();
            let cluster = context.clusters.memory(number, programs, program);
            for of in 0..programs {
                let whose =
                    if of == rank { String::new() } else { format!(" of program {of} of the cluster") };
                for (&address, local) in cluster.addresses(program, of).iter().zip(&program.locals) {
                    let name = format!("{}{whose}", local.name);
                    // SAFETY: the bytes are initialized and stay where they are as long as the registry, which keeps the cluster's
                    // memory; no reference to them is made.
                    unsafe { own.memory.register(address, local.bytes as u64, name, true) };
                }
            }
            own.addresses = cluster.addresses(program, rank);
            own.cluster = Some((cluster, rank));
            return own;
        }
        for local in &program.locals {
            let mut buffer = Buffer::default();
            buffer.reserve(local.bytes);
            let address = buffer.ptr_mut() as u64;
            // SAFETY: the bytes are initialized and stay where they are as long as the registry: nobody reserves more, and no
            // reference to them is made.
            unsafe { own.memory.register(address, local.bytes as u64, local.name.clone(), true) };
            own.addresses.push(address);
            own.buffers.push(buffer);
        }
        own
    }

    /// What a program finds in its buffers is not what another left there. (Those of a cluster are new with it.)
    pub fn forget(&mut self, program: &Program) {
        for (buffer, local) in self.buffers.iter_mut().zip(&program.locals) {
            buffer.slice_mut::<u8>(local.bytes).fill(0xff);
        }
        self.rings.borrow_mut().clear();
    }

    /// The other programs of the cluster and the program's rank, where they reach each other.
    pub fn cluster(&self) -> Option<(&ClusterMemory, u64)> {
        self.cluster.as_ref().map(|(cluster, rank)| (&**cluster, *rank))
    }

    /// Bytes from a place in the program's own buffers to the same place in those of another of its cluster.
    pub fn distance(&self, rank: i64) -> Result<i64, FaultBox> {
        let programs = self.cluster.as_ref().map_or(0, |(cluster, _)| cluster.programs);
        match &self.cluster {
            Some((cluster, own)) if (0..programs as i64).contains(&rank) => {
                Ok((rank - *own as i64) * cluster.stride as i64)
            }
            _ => Err(Box::new(Fault::new(format!(
                "program {rank} of a cluster that has {programs}, numbered from 0"
            )))),
        }
    }
}

impl Frame {
    /// Checks that the programs that share a copy give it the same block.
    pub(super) fn same_block(
        &mut self,
        program: &Program,
        context: &Context<'_>,
        own: Option<&Own>,
        (coord, mask): (&[V], u64),
    ) -> Result<(), FaultBox> {
        let Some((cluster, rank)) = own.and_then(Own::cluster) else { return Ok(()) };
        self.changed = true;
        let coord: Vec<i32> = coord.iter().map(|&v| self.scalar(program, v) as i32).collect();
        let who = (cluster.number, rank);
        let Err(other) = context.clusters.share_block(who, self.pc, mask, &coord) else { return Ok(()) };
        let text = format!(
            "programs {} and {rank} of the cluster share this copy, and give it different offsets: {:?} and {coord:?}",
            other.rank, other.coord
        );
        Err(Box::new(Fault::new(text)))
    }

    /// The context with the program's own buffers in its memory.
    pub(super) fn local_op(
        &mut self,
        program: &Program,
        own: Option<&Own>,
        instr: &Instr,
    ) -> Result<(), FaultBox> {
        match instr {
            Instr::Local { dst, buffer } => {
                let address = own.map_or(NOWHERE, |own| own.addresses[*buffer]);
                self.set(*dst, Repr::Uniform(address));
            }
            Instr::RingCreate { ring, fields, dst } => {
                self.changed = true;
                let fields = fields.iter().map(|&v| self.scalar(program, v)).collect();
                let number = own.map_or(0, |own| {
                    let mut rings = own.rings.borrow_mut();
                    rings.push(RingState::new(*ring, &program.rings[*ring], fields));
                    rings.len() - 1
                });
                self.set(*dst, Repr::Uniform(number as u64));
            }
            Instr::Offset { base, bytes, dst } => {
                let base = self.scalar(program, *base);
                self.set(*dst, Repr::Uniform(base.wrapping_add_signed(*bytes)));
            }
            Instr::Remote { src, rank, dst } => self.remote_pointers(program, own, *src, *rank, *dst)?,
            Instr::Slot { base, view, index, dst } => {
                let index = self.scalar(program, *index) as i64;
                let count = i64::from(view.shape[0]);
                if !(0..count).contains(&index) {
                    return Err(Box::new(Fault::new(format!(
                        "slot {index} of a buffer that has {count}, numbered from 0"
                    ))));
                }
                let base = self.scalar(program, *base);
                self.set(*dst, Repr::Uniform(base.wrapping_add_signed(index * view.strides[0])));
            }
            Instr::Part { base, view, most, indices, dst } => {
                let mut at = self.scalar(program, *base);
                for (d, &index) in indices.iter().enumerate() {
                    let first = i64::from(self.scalar(program, index) as u32 as i32);
                    if !(0..=i64::from(most[d])).contains(&first) {
                        return Err(Box::new(Fault::new(format!(
                            "a part of a buffer that begins at {first} along dimension {d}, where 0 to {} is inside",
                            most[d]
                        ))));
                    }
                    at = at.wrapping_add_signed(first * view.strides[d]);
                }
                self.set(*dst, Repr::Uniform(at));
            }
            Instr::Pointers { base, view, dst } => {
                let mut all = Affine::constant(self.scalar(program, *base) as i64);
                let ty = Self::ty(program, *dst);
                if view.shape.len() <= MAX_COMPACT_RANK && ty.shape.len() == view.shape.len() {
                    all.strides[..view.strides.len()].copy_from_slice(&view.strides);
                    if let Some(repr) = all.checked(ty) {
                        self.set(*dst, repr);
                        return Ok(());
                    }
                }
                let (base, len) = (all.base as u64, self.len(ty));
                let out = &mut self.regs[dst.slot as usize];
                for (i, address) in out.buf.slice_mut::<u64>(len).iter_mut().enumerate() {
                    *address = base.wrapping_add_signed(flat(view, i));
                }
                out.repr = Repr::Dense;
            }
            Instr::LocalPtr { base, view, indices, dst } => {
                let base = self.scalar(program, *base);
                let ty = Self::ty(program, *dst);
                if let Some(repr) = self.compact_pointers(base, view, indices, ty) {
                    self.set(*dst, repr);
                    return Ok(());
                }
                let len = self.len(ty);
                let mut out = std::mem::take(&mut self.regs[dst.slot as usize]);
                let addresses = out.buf.slice_mut::<u64>(len);
                addresses.fill(base);
                for (d, &index) in indices.iter().enumerate() {
                    let ty = Self::ty(program, index);
                    let (elem, extent, stride) = (ty.elem, i64::from(view.shape[d]), view.strides[d]);
                    let reg = self.dense(program, index);
                    for (i, address) in addresses.iter_mut().enumerate() {
                        let at = elem.canonical(read_bits(&reg.buf, elem.reg_size(), i)) as i64;
                        *address = if (0..extent).contains(&at) {
                            address.wrapping_add_signed(at * stride)
                        } else {
                            NOWHERE
                        };
                    }
                }
                out.repr = Repr::Dense;
                self.regs[dst.slot as usize] = out;
            }
            _ => unreachable!("not an operation on buffers"),
        }
        Ok(())
    }

    /// Pointers into another program's buffers: as far from the own ones as its memory is.
    fn remote_pointers(
        &mut self,
        program: &Program,
        own: Option<&Own>,
        src: V,
        rank: V,
        dst: V,
    ) -> Result<(), FaultBox> {
        let rank = self.scalar(program, rank) as u32 as i32;
        let distance = own.map_or(Ok(0), |own| own.distance(i64::from(rank)))?;
        let ty = Self::ty(program, src);
        let repr = self.regs[src.slot as usize].repr;
        if let Some(moved) = Affine::from_repr(repr)
            .and_then(|a| a.add(&Affine::constant(distance)))
            .and_then(|a| a.checked(ty))
        {
            self.set(dst, moved);
            return Ok(());
        }
        let len = self.len(ty);
        self.dense(program, src);
        let (from, to) = self.pair(src, dst);
        let moved = to.buf.slice_mut::<u64>(len).iter_mut().zip(from.buf.slice::<u64>(len));
        moved.for_each(|(to, &from)| *to = from.wrapping_add_signed(distance));
        to.repr = Repr::Dense;
        Ok(())
    }

    /// Addresses that are affine in the index, as they are where the indices are and lie in the buffer.
    fn compact_pointers(
        &self,
        base: u64,
        view: &View,
        indices: &[crate::program::V],
        ty: &crate::tile::TileType,
    ) -> Option<Repr> {
        if ty.shape.len() > MAX_COMPACT_RANK || self.lanes != 1 {
            return None;
        }
        let mut sum = Affine::constant(base as i64);
        for (d, index) in indices.iter().enumerate() {
            let index = Affine::from_repr(self.regs[index.slot as usize].repr)?;
            let (least, most) = index.range(&ty.shape);
            if least < 0 || most >= i128::from(view.shape[d]) {
                return None;
            }
            sum = sum.add(&index.scale(view.strides[d])?)?;
        }
        sum.checked(ty)
    }
}

/// Bytes to the element of this number in row-major order.
fn flat(view: &View, mut number: usize) -> i64 {
    let mut bytes = 0;
    for (&extent, &stride) in view.shape.iter().zip(&view.strides).rev() {
        bytes += (number % extent as usize) as i64 * stride;
        number /= extent as usize;
    }
    bytes
}

/// The context of a program that has memory of its own.
pub(super) fn with_own<'a>(context: &'a Context<'a>, own: &'a Own) -> Context<'a> {
    Context { memory: &own.memory, ..*context }
}
