//! Operations that arrange elements: ranges, broadcasts, reshapes, permutations, tiles, slices, gathers, histograms.
//!
//! Each is a [`TileOp`], an instruction that the rest of the executor knows nothing of: how it is made from the IR and what it does stand
//! together in the file of its kind. [`Builder::shape`] is the list of them.

mod gather;
mod rearrange;
mod slice;
mod tile;
mod view;

use std::fmt::Debug;

use tilewright_ir::Op;
use tilewright_ir::dialect::tt;

use crate::buffer::Buffer;
use crate::compile::{Builder, Res};
use crate::exec::{Fault, FaultBox, Frame};
use crate::program::{Program, V};
use crate::tile::{Affine, Reg, Repr};

/// An instruction on whole tiles that needs nothing but the registers of its program.
pub trait TileOp: Debug + Send + Sync {
    /// What it reads, and what it writes.
    fn registers(&mut self) -> (Vec<&mut V>, Vec<&mut V>);

    /// Told which registers nothing reads behind it, it may take their values instead of copying them.
    fn last_uses(&mut self, _dies: &dyn Fn(V) -> bool) {}

    /// Runs.
    fn run(&self, frame: &mut Frame, program: &Program) -> Result<(), FaultBox>;
}

/// Calls a generic function with the unsigned integer type of an element size.
macro_rules! by_size {
    ($size:expr, $f:ident ( $($arg:expr),* )) => {
        match $size {
            1 => $f::<u8>($($arg),*),
            2 => $f::<u16>($($arg),*),
            4 => $f::<u32>($($arg),*),
            _ => $f::<u64>($($arg),*),
        }
    };
}
pub(crate) use by_size;

impl Builder<'_, '_> {
    /// The instruction of an operation that arranges elements; `None` for another operation.
    pub(crate) fn shape(&mut self, op: Op, kind: tt::Kind) -> Res<Option<Box<dyn TileOp>>> {
        use tt::Kind as K;
        Ok(Some(match kind {
            K::MakeRange => self.range(op)?,
            K::Splat | K::Broadcast => self.broadcast(op)?,
            K::Unsplat | K::Reshape => self.reshape(op)?,
            K::ExpandDims => self.expand_dims(op)?,
            K::Trans => self.trans(op)?,
            K::Cat => self.cat(op)?,
            K::Histogram => self.histogram(op)?,
            K::Gather => self.gather(op)?,
            K::ExtractTile => self.extract_tile(op)?,
            K::InsertTile => self.insert_tile(op)?,
            K::ExtractSlice => self.extract_slice(op)?,
            K::InsertSlice => self.insert_slice(op)?,
            _ if self.m.def(op).is_some_and(|d| d.index.rearranges()) => self.rearrange(op)?,
            _ => return Ok(None),
        }))
    }

    fn range(&mut self, op: Op) -> Res<Box<dyn TileOp>> {
        let dst = self.define(self.m.result(op))?;
        Ok(Box::new(Range { dst, start: tt::MakeRange(op).start(self.m) }))
    }
}

/// Numbers one after the other.
#[derive(Debug)]
struct Range {
    dst: V,
    start: i32,
}

impl TileOp for Range {
    fn registers(&mut self) -> (Vec<&mut V>, Vec<&mut V>) {
        (vec![], vec![&mut self.dst])
    }

    fn run(&self, frame: &mut Frame, program: &Program) -> Result<(), FaultBox> {
        let mut a = Affine::constant(i64::from(self.start));
        a.strides[0] = 1;
        let ty = Frame::ty(program, self.dst);
        let repr = a.checked(ty).ok_or_else(|| Box::new(Fault::new("a range beyond 32 bits")))?;
        frame.set(self.dst, repr);
        Ok(())
    }
}

impl Frame {
    /// Fills the buffer of a register that is no operand, while reading others.
    fn with_out(&mut self, dst: V, f: impl FnOnce(&[Reg], &mut Buffer)) {
        let mut reg = std::mem::take(&mut self.regs[dst.slot as usize]);
        f(&self.regs, &mut reg.buf);
        reg.repr = Repr::Dense;
        self.regs[dst.slot as usize] = reg;
    }
}

/// The index of each row of `shape` in turn, as an offset with the given strides of the outer dimensions.
fn row_offsets(shape: &[u32], strides: &[usize], mut f: impl FnMut(usize, usize)) {
    let outer = shape.len().saturating_sub(1);
    let rows: usize = shape[..outer].iter().map(|&e| e as usize).product();
    let mut index = vec![0u32; outer];
    let mut offset = 0usize;
    for row in 0..rows {
        f(row, offset);
        for d in (0..outer).rev() {
            index[d] += 1;
            offset += strides[d];
            if index[d] < shape[d] {
                break;
            }
            offset -= strides[d] * shape[d] as usize;
            index[d] = 0;
        }
    }
}

/// Row-major strides.
fn strides_of(shape: &[u32]) -> Vec<usize> {
    let mut strides = vec![1usize; shape.len()];
    for d in (1..shape.len()).rev() {
        strides[d - 1] = strides[d] * shape[d] as usize;
    }
    strides
}
