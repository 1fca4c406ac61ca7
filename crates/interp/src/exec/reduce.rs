//! Reductions and scans.
//!
//! A reduction halves: element `i` is combined with element `i + ceil(n/2)` until one is left. That vectorizes, loses
//! little precision in sums, and gives the same result whatever the number of threads. A scan goes one element after
//! the other. A combine function of one operation is applied as a loop; any other runs as a program whose scalars stand
//! for all pairs of a step at once.

use super::{Context, FaultBox, Frame, Status, read_bits};
use crate::buffer::Buffer;
use crate::elem::Elem;
use crate::float::{Rounding, round_slice};
use crate::program::{Combine, Program, V};
use crate::tile::{Reg, Repr};

/// A tensor seen along an axis.
#[derive(Clone, Copy)]
struct Axis {
    outer: usize,
    n: usize,
    inner: usize,
}

impl Axis {
    fn new(shape: &[u32], axis: usize) -> Self {
        let product = |s: &[u32]| s.iter().map(|&e| e as usize).product();
        Axis { outer: product(&shape[..axis]), n: shape[axis] as usize, inner: product(&shape[axis + 1..]) }
    }
}

impl Frame {
    pub(super) fn reduce(
        &mut self,
        program: &Program,
        context: &Context<'_>,
        srcs: &[V],
        dsts: &[V],
        axis: usize,
        combine: &Combine,
    ) -> Result<(), FaultBox> {
        let shape = &Self::ty(program, srcs[0]).shape;
        let Axis { outer, n, inner } = Axis::new(shape, axis);
        let elems: Vec<Elem> = srcs.iter().map(|&v| Self::ty(program, v).elem).collect();
        for &v in srcs {
            self.dense(program, v);
        }
        let mut current: Vec<Buffer> = Vec::with_capacity(srcs.len());
        for (&v, elem) in srcs.iter().zip(&elems) {
            let mut buf = self.pool.pop().unwrap_or_default();
            if n <= 1 || combine.single.is_none() {
                let bytes = outer * n * inner * elem.reg_size();
                buf.slice_mut::<u8>(bytes).copy_from_slice(self.regs[v.slot as usize].buf.slice(bytes));
            }
            current.push(buf);
        }
        let mut m = n;
        let mut result = Ok(());
        while m > 1 {
            let half = m / 2;
            let rest = m - half;
            if let Some((kernel, round)) = combine.single {
                let size = elems[0].reg_size();
                let mut next = self.pool.pop().unwrap_or_default();
                next.reserve(outer * rest * inner * size);
                // The first step reads the operand itself.
                let from = if m == n { self.regs[srcs[0].slot as usize].buf.ptr() } else { current[0].ptr() };
                let to = next.ptr_mut();
                for o in 0..outer {
                    let at = |row: usize| (o * m + row) * inner * size;
                    // SAFETY: all offsets lie inside buffers of outer·m·inner and outer·rest·inner elements of the
                    // kernel's type, and the two buffers differ.
                    unsafe {
                        let out = to.add(o * rest * inner * size);
                        kernel([from.add(at(0)), from.add(at(rest)), from], out, half * inner);
                        if rest > half {
                            let odd = half * inner * size;
                            std::ptr::copy_nonoverlapping(from.add(at(half)), out.add(odd), inner * size);
                        }
                    }
                }
                if let Some(kind) = round {
                    round_slice(next.slice_mut(outer * rest * inner), kind, Rounding::Nearest);
                }
                self.pool.push(std::mem::replace(&mut current[0], next));
            } else {
                result =
                    self.halve(program, context, &mut current, &elems, Axis { outer, n: m, inner }, combine);
                if result.is_err() {
                    break;
                }
            }
            m = rest;
        }
        for ((&dst, buf), elem) in dsts.iter().zip(current).zip(elems) {
            let reg = &mut self.regs[dst.slot as usize];
            self.pool.push(std::mem::replace(&mut reg.buf, buf));
            reg.repr = if Self::ty(program, dst).shape.is_empty() {
                Repr::Uniform(elem.canonical(read_bits(&reg.buf, elem.reg_size(), 0)))
            } else {
                Repr::Dense
            };
        }
        result
    }

    /// One step of a reduction by a program: the first half of the rows with the second.
    fn halve(
        &mut self,
        program: &Program,
        context: &Context<'_>,
        current: &mut [Buffer],
        elems: &[Elem],
        Axis { outer, n: m, inner }: Axis,
        combine: &Combine,
    ) -> Result<(), FaultBox> {
        let half = m / 2;
        let rest = m - half;
        let lanes = outer * half * inner;
        let mut inner_frame = self.inner_frame(combine);
        for (k, (buf, elem)) in current.iter().zip(elems).enumerate() {
            let row = inner * elem.reg_size();
            let source = buf.slice::<u8>(outer * m * row);
            for (input, first) in [(k, 0), (elems.len() + k, rest)] {
                let reg = &mut inner_frame.regs[combine.program.inputs[input].slot as usize];
                reg.repr = Repr::Dense;
                let target = reg.buf.slice_mut::<u8>(outer * half * row);
                for o in 0..outer {
                    target[o * half * row..][..half * row]
                        .copy_from_slice(&source[(o * m + first) * row..][..half * row]);
                }
            }
        }
        let result =
            self.run_combine(program, context, &mut inner_frame, combine, lanes, [&elems.repeat(2), elems]);
        if result.is_ok() {
            for (k, (buf, elem)) in current.iter_mut().zip(elems).enumerate() {
                let row = inner * elem.reg_size();
                let mut next = self.pool.pop().unwrap_or_default();
                {
                    let target = next.slice_mut::<u8>(outer * rest * row);
                    let combined = inner_frame.regs[combine.program.outputs[k].slot as usize]
                        .buf
                        .slice::<u8>(outer * half * row);
                    let source = buf.slice::<u8>(outer * m * row);
                    for o in 0..outer {
                        target[o * rest * row..][..half * row]
                            .copy_from_slice(&combined[o * half * row..][..half * row]);
                        if rest > half {
                            target[(o * rest + half) * row..][..row]
                                .copy_from_slice(&source[(o * m + half) * row..][..row]);
                        }
                    }
                }
                self.pool.push(std::mem::replace(buf, next));
            }
        }
        self.inner = Some(inner_frame);
        result
    }

    /// The frame for a combine function, with enough registers.
    fn inner_frame(&mut self, combine: &Combine) -> Box<Frame> {
        let mut frame = self.inner.take().unwrap_or_else(|| Box::new(Frame::new(&combine.program)));
        if frame.regs.len() < combine.program.slots {
            frame.regs.resize_with(combine.program.slots, Reg::default);
        }
        frame
    }

    /// Runs a function over lanes whose inputs are in place, and makes its outputs dense. `arguments` and `results` are their types.
    fn run_combine(
        &mut self,
        program: &Program,
        context: &Context<'_>,
        frame: &mut Frame,
        combine: &Combine,
        lanes: usize,
        [arguments, results]: [&[Elem]; 2],
    ) -> Result<(), FaultBox> {
        let p = &combine.program;
        let (arguments_at, captures) = p.inputs.split_at(arguments.len());
        let captured: Vec<u64> = combine.captures.iter().map(|&v| self.scalar(program, v)).collect();
        if !p.branches || lanes == 1 {
            for (v, &bits) in captures.iter().zip(&captured) {
                frame.set(*v, Repr::Uniform(bits));
            }
            frame.lanes = lanes;
            frame.restart(self.program_id, self.rank);
            while frame.run(p, context)? == Status::Paused {}
            for &out in &p.outputs {
                frame.dense(p, out);
            }
            return Ok(());
        }
        // Lanes may branch differently: one at a time.
        let inputs: Vec<Buffer> =
            arguments_at.iter().map(|v| std::mem::take(&mut frame.regs[v.slot as usize].buf)).collect();
        let mut outputs: Vec<Buffer> = Vec::new();
        for elem in results {
            let mut buf = self.pool.pop().unwrap_or_default();
            buf.reserve(lanes * elem.reg_size());
            outputs.push(buf);
        }
        frame.lanes = 1;
        for lane in 0..lanes {
            for ((v, buf), elem) in arguments_at.iter().zip(&inputs).zip(arguments) {
                frame.set(*v, Repr::Uniform(elem.canonical(read_bits(buf, elem.reg_size(), lane))));
            }
            for (v, &bits) in captures.iter().zip(&captured) {
                frame.set(*v, Repr::Uniform(bits));
            }
            frame.restart(self.program_id, self.rank);
            while frame.run(p, context)? == Status::Paused {}
            for ((&v, buf), elem) in p.outputs.iter().zip(&mut outputs).zip(results) {
                let bits = frame.scalar(p, v);
                let size = elem.reg_size();
                let bytes = buf.slice_mut::<u8>(lanes * size);
                bytes[lane * size..][..size].copy_from_slice(&bits.to_le_bytes()[..size]);
            }
        }
        for (&v, buf) in p.outputs.iter().zip(outputs) {
            let reg = &mut frame.regs[v.slot as usize];
            reg.repr = Repr::Dense;
            self.pool.push(std::mem::replace(&mut reg.buf, buf));
        }
        Ok(())
    }

    /// Applies a function to elements, `pack` that follow each other at a time; where they don't come out even, the last stands in
    /// for those that are missing.
    pub(super) fn map_elementwise(
        &mut self,
        program: &Program,
        context: &Context<'_>,
        srcs: &[V],
        dsts: &[V],
        pack: usize,
        function: &Combine,
    ) -> Result<(), FaultBox> {
        let types = |vs: &[V]| -> Vec<Elem> {
            vs.iter().flat_map(|&v| std::iter::repeat_n(Self::ty(program, v).elem, pack)).collect()
        };
        let (arguments, results) = (types(srcs), types(dsts));
        let shape = &Self::ty(program, dsts[0]).shape;
        let n: usize = shape.iter().map(|&e| e as usize).product();
        let lanes = n.div_ceil(pack);
        let mut frame = self.inner_frame(function);
        for (k, &v) in srcs.iter().enumerate() {
            self.dense(program, v);
            let size = Self::ty(program, v).elem.reg_size();
            let source = self.regs[v.slot as usize].buf.slice::<u8>(n * size);
            for j in 0..pack {
                let reg = &mut frame.regs[function.program.inputs[k * pack + j].slot as usize];
                reg.repr = Repr::Dense;
                let target = reg.buf.slice_mut::<u8>(lanes * size);
                for (lane, element) in target.chunks_exact_mut(size).enumerate() {
                    let at = (lane * pack + j).min(n - 1);
                    element.copy_from_slice(&source[at * size..][..size]);
                }
            }
        }
        let run = self.run_combine(program, context, &mut frame, function, lanes, [&arguments, &results]);
        if run.is_ok() {
            for (k, &v) in dsts.iter().enumerate() {
                let size = Self::ty(program, v).elem.reg_size();
                let reg = &mut self.regs[v.slot as usize];
                let target = reg.buf.slice_mut::<u8>(n * size);
                for j in 0..pack {
                    let output = function.program.outputs[k * pack + j];
                    let source = frame.regs[output.slot as usize].buf.slice::<u8>(lanes * size);
                    for (lane, element) in source.chunks_exact(size).enumerate() {
                        if let Some(place) =
                            target.get_mut((lane * pack + j) * size..).and_then(|t| t.get_mut(..size))
                        {
                            place.copy_from_slice(element);
                        }
                    }
                }
                reg.repr = Repr::Dense;
            }
        }
        self.inner = Some(frame);
        run
    }

    pub(super) fn scan(
        &mut self,
        program: &Program,
        context: &Context<'_>,
        srcs: &[V],
        dsts: &[V],
        axis: usize,
        reverse: bool,
        combine: &Combine,
    ) -> Result<(), FaultBox> {
        let shape = &Self::ty(program, srcs[0]).shape;
        let Axis { outer, n, inner } = Axis::new(shape, axis);
        let elems: Vec<Elem> = srcs.iter().map(|&v| Self::ty(program, v).elem).collect();
        let mut outs: Vec<Buffer> = Vec::with_capacity(srcs.len());
        for (&v, elem) in srcs.iter().zip(&elems) {
            self.dense(program, v);
            let mut buf = self.pool.pop().unwrap_or_default();
            let bytes = outer * n * inner * elem.reg_size();
            buf.slice_mut::<u8>(bytes).copy_from_slice(self.regs[v.slot as usize].buf.slice(bytes));
            outs.push(buf);
        }
        let at = |step: usize| if reverse { n - 1 - step } else { step };
        let mut result = Ok(());
        if let Some((kernel, round)) = combine.single {
            let size = elems[0].reg_size();
            let source = self.regs[srcs[0].slot as usize].buf.ptr();
            let out = outs[0].ptr_mut();
            for o in 0..outer {
                for step in 1..n {
                    let offset = |row: usize| (o * n + row) * inner * size;
                    // SAFETY: rows of `inner` elements inside buffers of outer·n·inner; the row written differs from
                    // the row read in the same buffer.
                    unsafe {
                        let row = out.add(offset(at(step)));
                        kernel(
                            [out.add(offset(at(step - 1))), source.add(offset(at(step))), source],
                            row,
                            inner,
                        );
                        if let Some(kind) = round {
                            let row = std::slice::from_raw_parts_mut(row.cast::<f32>(), inner);
                            round_slice(row, kind, Rounding::Nearest);
                        }
                    }
                }
            }
        } else {
            let mut frame = self.inner_frame(combine);
            for step in 1..n {
                for (k, elem) in elems.iter().enumerate() {
                    let row = inner * elem.reg_size();
                    // The accumulator is the row before; the element is still in place in the copy.
                    for (input, from) in [(k, at(step - 1)), (elems.len() + k, at(step))] {
                        let reg = &mut frame.regs[combine.program.inputs[input].slot as usize];
                        reg.repr = Repr::Dense;
                        let target = reg.buf.slice_mut::<u8>(outer * row);
                        let source = outs[k].slice::<u8>(outer * n * row);
                        for o in 0..outer {
                            target[o * row..][..row].copy_from_slice(&source[(o * n + from) * row..][..row]);
                        }
                    }
                }
                let types = [elems.repeat(2), elems.clone()];
                let [arguments, results] = &types;
                result = self.run_combine(
                    program,
                    context,
                    &mut frame,
                    combine,
                    outer * inner,
                    [arguments, results],
                );
                if result.is_err() {
                    break;
                }
                for (k, elem) in elems.iter().enumerate() {
                    let row = inner * elem.reg_size();
                    let combined =
                        frame.regs[combine.program.outputs[k].slot as usize].buf.slice::<u8>(outer * row);
                    let target = outs[k].slice_mut::<u8>(outer * n * row);
                    for o in 0..outer {
                        target[(o * n + at(step)) * row..][..row]
                            .copy_from_slice(&combined[o * row..][..row]);
                    }
                }
            }
            self.inner = Some(frame);
        }
        for (&dst, buf) in dsts.iter().zip(outs) {
            let reg = &mut self.regs[dst.slot as usize];
            self.pool.push(std::mem::replace(&mut reg.buf, buf));
            reg.repr = Repr::Dense;
        }
        result
    }
}
