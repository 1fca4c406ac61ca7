//! Copies of blocks by the tensor memory accelerator (PTX ISA, "cp.async.bulk.tensor"), and tensor maps.
//!
//! A descriptor is the generic address of a tensor map: of a kernel parameter that the launch passes by value, or of global
//! memory where the kernel has written one. [`TmaBlock`] says which boxes make a block; one thread issues them all.

use std::fmt::Write as _;

use tilewright_ir as ir;
use tilewright_ir::TypeKind;
use tilewright_ir::dialect::tt::{DescriptorReduceKind, EvictionPolicy};
use tilewright_ir::dialect::{ttg, ttng};
use tilewright_ir::marks;
use tilewright_layout::TmaBlock;
use tilewright_llvm::{BinOp, CastOp, Effect, IntPred, Scalar, Space, Ty, Value};

use super::access::{Asm, L2_HINT};
use super::{Lower, Result};

/// A tensor map: bytes and alignment (CUDA driver API, `CUtensorMap`).
pub(crate) const TENSOR_MAP: (u32, u32) = (128, 64);

/// What one instruction copies.
struct CopiedBox {
    map: Value,
    /// Where the box begins in the tensor, innermost first.
    at: Vec<Value>,
    shared: Value,
}

impl CopiedBox {
    /// The operands of the instruction for the tensor and for shared memory.
    fn operands(&self, asm: &mut Asm) -> (String, String) {
        let map = asm.arg(self.map, 'l');
        let at: Vec<String> = self.at.iter().map(|&c| asm.arg(c, 'r')).collect();
        (format!("[{map}, {{{}}}]", at.join(", ")), format!("[{}]", asm.arg(self.shared, 'r')))
    }
}

impl Lower<'_, '_> {
    /// The copies of a descriptor's block to or from a buffer.
    fn tma_block(&mut self, desc: ir::Value) -> Result<TmaBlock> {
        let m = self.m;
        let TypeKind::TensorDesc { block } = m.type_kind(self.value_ty(desc)) else {
            return Err(self.error("expected a tensor descriptor"));
        };
        let shape = m.shape(*block).unwrap_or(&[]);
        let (encoding, bits) = (self.encoding(*block)?, m.bits(*block).max(8));
        TmaBlock::in_parts(encoding, shape, bits, ir::launch::cluster_size(m)).ok_or_else(|| {
            self.unsupported(format!("TMA copies of blocks of shape {shape:?} in this layout"))
        })
    }

    /// Where the boxes of a block lie in a buffer that is a part of a larger one.
    fn in_buffer(&mut self, block: TmaBlock, buffer: ir::Value) -> Result<TmaBlock> {
        let ty = self.value_ty(buffer);
        let shared = self.shared_layout(ty)?;
        let offsets = self.buffer(buffer)?.offsets;
        let shape = self.m.shape(ty).unwrap_or(&[]);
        if offsets.iter().all(|&o| o == 0) && shared.shape() == shape {
            return Ok(block);
        }
        let part = block.in_part(&shared, shape, &offsets, self.m.bits(ty) / 8);
        part.ok_or_else(|| {
            self.unsupported("a TMA copy of a slice of a buffer that is not whole rows of a swizzle")
        })
    }

    /// The boxes that a copy is made of. With `part`, the index of this CTA among so many that share the copies, those of its part.
    fn boxes(
        &mut self,
        desc: ir::Value,
        coord: &[ir::Value],
        buffer: ir::Value,
        part: Option<(Value, u32)>,
    ) -> Result<Vec<CopiedBox>> {
        let block = self.tma_block(desc)?;
        let block = self.in_buffer(block, buffer)?;
        let map = self.scalar(desc)?;
        let mut coord: Vec<Value> = coord.iter().map(|&c| self.scalar(c)).collect::<Result<_>>()?;
        let buffer = self.buffer(buffer)?;
        let (mut base, mut count) = (buffer.base, block.copies.len());
        if let Some((part, parts)) = part {
            let (step, bytes) =
                block.shared_by(parts).ok_or_else(|| {
                    self.unsupported(format!(
                        "a copy of this block that {parts} programs share: it has no equal parts of whole swizzles"
                    ))
                })?;
            for (c, &step) in coord.iter_mut().zip(&step) {
                let moved = self.b.mul_const(part, i64::from(step));
                *c = self.b.add(*c, moved);
            }
            let moved = self.b.mul_const(part, i64::from(bytes));
            base = self.b.ptr_add(base, moved);
            count /= parts as usize;
        }
        let boxes = block.copies[..count].iter().map(|copy| {
            let at = coord.iter().zip(&copy.at).rev();
            let at = at.map(|(&c, &offset)| self.b.add_const(c, i64::from(offset))).collect();
            CopiedBox { map, at, shared: self.b.ptr_add_const(base, i64::from(copy.offset)) }
        });
        Ok(boxes.collect())
    }

    pub fn tma_load(&mut self, op: ttng::AsyncTmaCopyGlobalToLocal) -> Result<()> {
        let m = self.m;
        let barrier = self.mbarrier(op.barrier(m))?;
        let coord = op.coord(m).to_vec();
        let rank = coord.len();
        // What several CTAs of the cluster get, each brings a part of to all.
        let mask = self.int_attr(marks::MULTICAST).unwrap_or(0) as u32;
        let part = (mask != 0).then(|| (self.cluster_part(mask), 1 << mask.count_ones()));
        let ctas = (mask != 0).then(|| self.cluster_set(mask));
        let policy = self.l2_policy(op.evict(m));
        let boxes = self.boxes(op.desc(m), &coord, op.result(m), part)?;
        self.issue(op.0, op.pred(m), |asm, one| {
            for copied in boxes {
                let (tensor, shared) = copied.operands(asm);
                let barrier = asm.arg(barrier, 'r');
                let mut how = "shared::cluster.global.mbarrier::complete_tx::bytes".to_string();
                let mut operands = format!("{shared}, {tensor}, [{barrier}]");
                if let Some(ctas) = ctas {
                    how += ".multicast::cluster";
                    operands += &format!(", {}", asm.arg(ctas, 'h'));
                }
                if let Some(policy) = policy {
                    how += L2_HINT;
                    operands += &format!(", {}", asm.arg(policy, 'l'));
                }
                let _ = writeln!(asm.text, "@{one} cp.async.bulk.tensor.{rank}d.{how} {operands};");
            }
        })
    }

    /// What the L2 cache is to do with what is copied (PTX ISA, "createpolicy"), where that is anything special.
    pub(super) fn l2_policy(&mut self, evict: EvictionPolicy) -> Option<Value> {
        let name = match evict {
            EvictionPolicy::Normal => return None,
            EvictionPolicy::First => "evict_first",
            EvictionPolicy::Last => "evict_last",
        };
        let text = format!("createpolicy.fractional.L2::{name}.b64 $0, 1.0;");
        Some(self.b.asm1(&text, "=l", Effect::Pure, Ty::I64, &[]))
    }

    pub fn tma_store(&mut self, op: ttng::AsyncTmaCopyLocalToGlobal) -> Result<()> {
        let m = self.m;
        let coord = op.coord(m).to_vec();
        let rank = coord.len();
        let name = format!("cp.async.bulk.tensor.{rank}d.global.shared::cta.bulk_group");
        self.drain(op.desc(m), &coord, op.src(m), &name)
    }

    pub fn tma_reduce(&mut self, op: ttng::AsyncTmaReduce) -> Result<()> {
        let m = self.m;
        let coord = op.coord(m).to_vec();
        let rank = coord.len();
        let kind = match op.kind(m) {
            DescriptorReduceKind::Umin => "min",
            DescriptorReduceKind::Umax => "max",
            kind => kind.keyword(),
        };
        let name = format!("cp.reduce.async.bulk.tensor.{rank}d.global.shared::cta.{kind}.bulk_group");
        self.drain(op.desc(m), &coord, op.src(m), &name)
    }

    /// Copies to global memory: one bulk group.
    fn drain(&mut self, desc: ir::Value, coord: &[ir::Value], src: ir::Value, name: &str) -> Result<()> {
        let warp = self.uniform_warp();
        let elected = self.elected_lane();
        let num_warps = self.num_warps as usize;
        for (index, copied) in self.boxes(desc, coord, src, None)?.into_iter().enumerate() {
            // To hand a box over takes a while: each is handed over by another warp.
            let turn = self.b.i32((index % num_warps) as i64);
            let turn = self.b.icmp(IntPred::Eq, warp, turn);
            let pred = self.b.bin(BinOp::And, turn, elected);
            let mut asm = Asm::default();
            let pred = asm.arg(pred, 'b');
            let (tensor, shared) = copied.operands(&mut asm);
            let text = format!("@{pred} {name} {tensor}, {shared};");
            self.b.asm(&text, &asm.constraints, Effect::Write, &[], &asm.args);
        }
        // Threads that issued nothing close an empty group.
        self.b.asm("cp.async.bulk.commit_group;", "", Effect::Write, &[], &[]);
        Ok(())
    }

    pub fn tma_store_wait(&mut self, op: ttng::TmaStoreWait) {
        let text = format!("cp.async.bulk.wait_group.read {};", op.pendings(self.m).max(0));
        self.b.asm(&text, "", Effect::Write, &[], &[]);
    }

    pub fn fence_async_global(&mut self, op: ttng::FenceAsyncGlobal) {
        if op.complete(self.m) {
            self.b.asm("cp.async.bulk.wait_group 0;", "", Effect::Write, &[], &[]);
        }
        self.b.asm("fence.proxy.async.global;", "", Effect::Write, &[], &[]);
    }

    // ---- tensor maps -----------------------------------------------------------------------------------------------

    /// This CTA's part of the launch's scratch memory.
    pub fn global_scratch_alloc(&mut self, op: ttg::GlobalScratchAlloc) -> Result<()> {
        let offset = self.int_attr(marks::GLOBAL_SCRATCH_OFFSET).unwrap_or(0);
        let base = self.scratch_of_launch()?;
        let cta = self.number_in_grid("ctaid", "nctaid");
        let address = self.part_of_scratch(base, cta, offset);
        let result = op.result(self.m);
        self.set_regs(result, vec![address]);
        Ok(())
    }

    /// One warp makes it in shared memory, where changing a field is fast: zeros, then each field by one thread with
    /// `tensormap.replace`. A copy to global memory with a fence makes it a tensor map for this GPU (PTX ISA,
    /// "tensormap.cp_fenceproxy").
    pub fn tensormap_create(&mut self, op: ttng::TensormapCreate) -> Result<()> {
        let m = self.m;
        let maker = self.int_attr(marks::MAKER).unwrap_or(0);
        let warp = self.uniform_warp();
        let maker = self.b.i32(maker);
        let this_warp = self.b.icmp(IntPred::Eq, warp, maker);
        let elected = self.elected_lane();
        let pred = self.b.bin(BinOp::And, this_warp, elected);
        let map = self.scalar(op.desc_ptr(m))?;
        let base = self.scalar(op.global_address(m))?;
        let scratch = self.scratch()?;
        let lane = self.lane();
        let at = self.b.mul_const(lane, 4);
        let own = self.b.ptr_add(scratch, at);
        let mut asm = Asm::default();
        let this_warp = asm.arg(this_warp, 'b');
        let pred = asm.arg(pred, 'b');
        let map = asm.arg(map, 'l');
        let scratch = asm.arg(scratch, 'r');
        let own = asm.arg(own, 'r');
        let mut text = format!("{{\n@{this_warp} st.shared.b32 [{own}], 0;\nbar.warp.sync 0xffffffff;\n");
        let mut replace = |field: &str, bits: u32, index: Option<usize>, value: String| {
            let index = index.map_or(String::new(), |i| format!(" {i},"));
            let _ = writeln!(
                text,
                "@{pred} tensormap.replace.tile.{field}.shared::cta.b1024.b{bits} [{scratch}],{index} {value};"
            );
        };
        replace("global_address", 64, None, asm.arg(base, 'l'));
        let rank = op.box_dim(m).len();
        replace("rank", 32, None, (rank - 1).to_string());
        let (boxes, extents) = (op.box_dim(m).to_vec(), op.global_dim(m).to_vec());
        let (strides, steps) = (op.global_stride(m).to_vec(), op.element_stride(m).to_vec());
        for (i, &v) in boxes.iter().enumerate() {
            let v = self.scalar(v)?;
            replace("box_dim", 32, Some(i), asm.arg(v, 'r'));
        }
        for (i, &v) in extents.iter().enumerate() {
            let v = self.scalar(v)?;
            replace("global_dim", 32, Some(i), asm.arg(v, 'r'));
        }
        for (i, &v) in strides.iter().enumerate() {
            let v = self.scalar(v)?;
            replace("global_stride", 64, Some(i), asm.arg(v, 'l'));
        }
        for (i, &v) in steps.iter().enumerate() {
            let v = self.scalar(v)?;
            replace("element_stride", 32, Some(i), asm.arg(v, 'r'));
        }
        replace("elemtype", 32, None, op.elem_type(m).to_string());
        replace("interleave_layout", 32, None, op.interleave_layout(m).to_string());
        replace("swizzle_mode", 32, None, op.swizzle_mode(m).to_string());
        replace("fill_mode", 32, None, op.fill_mode(m).to_string());
        let _ = write!(
            text,
            "bar.warp.sync 0xffffffff;\n\
             @{this_warp} tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned \
             [{map}], [{scratch}], {};\n}}",
            TENSOR_MAP.0
        );
        self.b.asm(&text, &asm.constraints, Effect::Write, &[], &asm.args);
        Ok(())
    }

    pub fn tensormap_acquire(&mut self, op: ttng::TensormapFenceproxyAcquire) -> Result<()> {
        let map = self.scalar(op.desc_ptr(self.m))?;
        // Only the threads that issue copies need it: of loads one, of stores one of each warp. The empty group and its
        // wait keep `ptxas` from moving copies before the fence.
        let stores = self.int_attr(marks::STORES).is_some();
        let pred = if stores { self.elected_lane() } else { self.elected_thread() };
        let text = format!(
            "@$0 fence.proxy.tensormap::generic.acquire.gpu [$1], {};\n\
             cp.async.bulk.commit_group;\n\
             cp.async.bulk.wait_group.read 0;",
            TENSOR_MAP.0
        );
        self.b.asm(&text, "b,l", Effect::Write, &[], &[pred, map]);
        Ok(())
    }

    pub fn reinterpret_descriptor(&mut self, op: ttng::ReinterpretTensorDescriptor) -> Result<()> {
        let map = self.scalar(op.desc_ptr(self.m))?;
        let map = self.b.cast(CastOp::AddrSpaceCast, map, Ty::scalar(Scalar::Ptr(Space::Generic)));
        let result = op.result(self.m);
        self.set_regs(result, vec![map]);
        Ok(())
    }
}
