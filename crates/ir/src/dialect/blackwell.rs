//! `ttng` of NVIDIA's Blackwell: tensor memory, the matrix products that accumulate in it, and TMA copies of single rows. They are
//! read, verified and printed; no target lowers them yet.
//!
//! **Tensor memory** is a buffer `!ttg.memdesc<..., #ttng.tensor_memory>` of 128 rows (lanes), as many as the threads of a
//! warp group, and columns of 32 bits. `#ttng.tensor_memory_encoding` says in which blocks a matrix lies there, and
//! `#ttng.tensor_memory_scales_encoding` is what the scales of a scaled product need. Registers get at it by
//! `tmem_load` and `tmem_store` alone, shared memory by `tmem_copy`.
//!
//! A **token** puts the accesses to one buffer in order: each takes that of the access before it in brackets and has one itself.
//!
//! ```text
//! %d, %t0 = ttng.tmem_alloc : () -> (!ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>, !ttg.async.token)
//! %t1 = ttng.tc_gen5_mma %a, %b, %d[%t0], %useD, %pred, %bar[%pred] {is_async} : ...
//! ttng.wait_barrier %bar, %phase : ...
//! %r, %t2 = ttng.tmem_load %d[%t1] : ... -> tensor<128x64xf32, #blocked>
//! ```

use crate::attrs::{AttrKind, AttrValue};
use crate::dialect::tt::ScaleDotElemType;
use crate::entity::{Op, Type};
use crate::module::Module;
use crate::opdef::{Access, Completion, Effect, Resource};
use crate::text::print_type;
use crate::types::TypeKind;
use crate::{Encoding, SharedKind};

const ORDER: Effect = Effect::new(Access::Write, Resource::Other, None);
const READ_MAP: Effect = Effect::new(Access::Read, Resource::Global, Some("desc"));
const READ_A: Effect =
    Effect::new(Access::Read, Resource::Shared, Some("a")).asynchronous(Completion::Mbarrier);
const READ_B: Effect =
    Effect::new(Access::Read, Resource::Shared, Some("b")).asynchronous(Completion::Mbarrier);
const ADD_TO_D: Effect =
    Effect::new(Access::Write, Resource::Tensor, Some("d")).asynchronous(Completion::Mbarrier);
const WRITE_DST: Effect = Effect::new(Access::Write, Resource::Tensor, Some("dst"));
const READ_SRC: Effect = Effect::new(Access::Read, Resource::Shared, Some("src"));

crate::dialect! {
    dialect "ttng" Blackwell;

    /// A buffer in tensor memory, with the elements of `src` if that is given.
    op TmemAlloc = "tmem_alloc" {
        operands(src: opt)
        results(result)
        token(token)
        index(Aligned)
        types(Each("src", Tensor), Each("result", Buffer), Is("src", Like("result")))
        effects(Effect::new(Access::Allocate, Resource::Tensor, None))
        format "($src^)? attr-dict `:` functional-type(operands, results)"
        verify verify_tmem_alloc
    }

    /// Reads a buffer in tensor memory into registers.
    op TmemLoad = "tmem_load" {
        operands(src: one, dep: opt)
        results(result)
        token(token)
        index(Aligned)
        types(Each("src", Buffer), Each("result", Tensor), Is("result", Like("src")), Is("dep", Fixed(Type::ASYNC_TOKEN)))
        effects(Effect::new(Access::Read, Resource::Tensor, Some("src")))
        format "$src `` token($dep) attr-dict `:` type($src) `->` type($result)"
        verify verify_tmem_load
    }

    /// Writes registers to a buffer in tensor memory, where `pred` holds.
    op TmemStore = "tmem_store" {
        operands(dst: one, dep: opt, src: one, pred: one)
        token(token)
        index(Aligned)
        types(Each("src", Tensor), Each("dst", Mutable), Is("src", Like("dst")), Is("dep", Fixed(Type::ASYNC_TOKEN)), Is("pred", Fixed(Type::I1)))
        effects(WRITE_DST)
        format "$src `,` $dst `` token($dep) `,` $pred attr-dict `:` type($src) `->` type($dst)"
        verify verify_tmem_store
    }

    /// The columns of a buffer in tensor memory from `N` on, as many as the result has.
    op TmemSubslice = "tmem_subslice" {
        operands(src: one)
        attrs(offset: i32 = "N")
        results(result)
        traits(Pure)
        index(Unrelated)
        types(Each("src", Buffer), Each("result", Buffer), Is("result", Like("src")))
        effects()
        format "$src attr-dict `:` type($src) `->` type($result)"
        verify verify_tmem_subslice
    }

    /// Starts copying a buffer from shared to tensor memory, as it is or, for scales, in their order there. `barrier` completes with
    /// it; a product that is issued later finds it done without.
    op TmemCopy = "tmem_copy" {
        operands(src: one, dst: one, barrier: opt)
        index(Unrelated)
        types(Each("src", Buffer), Each("dst", Mutable), Each("barrier", Mbarrier))
        effects(READ_SRC.asynchronous(Completion::Mbarrier), WRITE_DST.asynchronous(Completion::Mbarrier), ORDER)
        format "$src `,` $dst (`,` $barrier^)? attr-dict `:` type(operands)"
        verify verify_tmem_copy
    }

    /// `d = a · b`, plus `d` where `useD` holds, all of it where `pred` does. `b` is in shared memory, `a` there or in tensor memory, `d` in
    /// tensor memory. With `is_async` each of `barriers` whose predicate holds completes with it; with `two_ctas` it is a product of two CTAs.
    op TcGen5Mma = "tc_gen5_mma" {
        operands(a: one, b: one, d: one, acc_dep: opt, use_d: one, pred: one, barriers: var, barrier_preds: var)
        attrs(is_async: bool = "is_async", two_ctas: bool = "two_ctas")
        token(token)
        index(Unrelated)
        types(
            Each("a", Buffer), Each("b", Buffer), Each("d", Buffer), Is("acc_dep", Fixed(Type::ASYNC_TOKEN)), Is("use_d", Fixed(Type::I1)),
            Is("pred", Fixed(Type::I1)), Each("barriers", Mbarrier), Is("barrier_preds", Fixed(Type::I1)),
        )
        effects(READ_A, READ_B, ADD_TO_D, ORDER)
        format "$a `,` $b `,` $d `` token($acc_dep) `,` $use_d `,` $pred `` pairs($barriers, $barrier_preds) attr-dict `:` type($a) `,` type($b) `,` type($d) (`,` type($barriers)^)?"
        verify verify_mma
    }

    /// The same of operands that are multiplied by a scale for each 32 (16) elements along k. The scales are in tensor memory.
    op TcGen5MmaScaled = "tc_gen5_mma_scaled" {
        operands(
            a: one, b: one, d: one, acc_dep: opt, a_scale: one, b_scale: one, use_d: one, pred: one, barriers: var, barrier_preds: var,
        )
        attrs(a_type: ScaleDotElemType = "a_type", b_type: ScaleDotElemType = "b_type", is_async: bool = "is_async")
        token(token)
        index(Unrelated)
        types(
            Each("a", Buffer), Each("b", Buffer), Each("d", Buffer), Is("acc_dep", Fixed(Type::ASYNC_TOKEN)),
            Each("a_scale", Buffer), Each("b_scale", Buffer), Is("use_d", Fixed(Type::I1)), Is("pred", Fixed(Type::I1)),
            Each("barriers", Mbarrier), Is("barrier_preds", Fixed(Type::I1)),
        )
        effects(READ_A, READ_B, ADD_TO_D, ORDER)
        format "$a `,` $b `,` $d `` token($acc_dep) `,` $a_scale `,` $b_scale `,` $use_d `,` $pred `lhs` `=` $a_type `rhs` `=` $b_type `` pairs($barriers, $barrier_preds) attr-dict `:` type($a) `,` type($b) `,` type($d) `,` type($a_scale) `,` type($b_scale) (`,` type($barriers)^)?"
        verify verify_mma_scaled
    }

    /// One arrival at `barrier` once all products and copies that were issued before it are done.
    op TcGen5Commit = "tc_gen5_commit" {
        operands(barrier: one, pred: opt)
        attrs(two_ctas: bool = "two_ctas")
        index(Unrelated)
        types(Each("barrier", Mbarrier), Is("pred", Fixed(Type::I1)))
        effects(Effect::new(Access::Read, Resource::Shared, Some("barrier")), ORDER)
        format "$barrier (`,` $pred^)? attr-dict `:` type($barrier)"
    }

    /// Starts copying the rows `x_offsets` from column `y_offset` on into a buffer, where `pred` holds. Its bytes count for `barrier`.
    op AsyncTmaGather = "async_tma_gather" {
        operands(desc: one, x_offsets: one, y_offset: one, barrier: one, result: one, pred: one)
        index(Rows("desc", "x_offsets", "result"))
        types(
            Each("x_offsets", Tensor), Is("y_offset", Fixed(Type::I32)), Each("barrier", Mbarrier), Each("result", Mutable),
            Is("result", Like("desc")), Is("pred", Fixed(Type::I1)),
        )
        effects(
            READ_MAP, Effect::new(Access::Read, Resource::Shared, Some("barrier")),
            Effect::new(Access::Write, Resource::Shared, Some("result")).asynchronous(Completion::Mbarrier),
        )
        format "$desc `[` $x_offsets `,` $y_offset `]` $result `,` $barrier `,` $pred attr-dict `:` type(operands)"
    }

    /// Starts copying a buffer to the rows `x_offsets` from column `y_offset` on. It is in use until an `async_tma_store_wait`.
    op AsyncTmaScatter = "async_tma_scatter" {
        operands(desc: one, x_offsets: one, y_offset: one, src: one)
        index(Rows("desc", "x_offsets", "src"))
        types(Each("x_offsets", Tensor), Is("y_offset", Fixed(Type::I32)), Each("src", Buffer), Is("src", Like("desc")))
        effects(READ_MAP, Effect::new(Access::Write, Resource::Global, Some("desc")), READ_SRC.asynchronous(Completion::Stores))
        format "$desc `[` $x_offsets `,` $y_offset `]` $src attr-dict `:` type(operands)"
    }
}

/// How a buffer lies in tensor memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TensorMemory {
    /// `#ttng.tensor_memory_encoding`: blocks of rows and columns; `unpacked` elements take 32 bits each.
    Blocks {
        /// Rows of a block, 64 or 128.
        rows: u32,
        /// Columns of a block, in elements.
        columns: u32,
        /// Whether an element takes 32 bits whatever its width.
        unpacked: bool,
        /// CTAs that share the matrix, by rows and columns.
        ctas: [u32; 2],
    },
    /// `#ttng.tensor_memory_scales_encoding`, split over CTAs by rows and columns.
    Scales([u32; 2]),
}

impl TensorMemory {
    /// What an attribute's text says; `None` for another attribute.
    ///
    /// # Errors
    /// What is wrong with a parameter.
    pub fn parse(text: &str) -> Option<Result<TensorMemory, String>> {
        let (name, parameters) = text.strip_suffix('>')?.split_once('<')?;
        let scales = match name {
            "#ttng.tensor_memory_encoding" => false,
            "#ttng.tensor_memory_scales_encoding" => true,
            _ => return None,
        };
        Some(Self::parameters(parameters, scales))
    }

    fn parameters(text: &str, scales: bool) -> Result<TensorMemory, String> {
        let (mut rows, mut columns, mut unpacked, mut ctas) = (None, None, None, [1, 1]);
        for item in text.split(',').map(str::trim).filter(|item| !item.is_empty()) {
            let wrong = || format!("`{item}` says nothing of tensor memory");
            let (name, value) = item.split_once('=').map(|(n, v)| (n.trim(), v.trim())).ok_or_else(wrong)?;
            let number = || value.parse::<u32>().map_err(|_| wrong());
            match name {
                "blockM" if !scales => rows = Some(number()?),
                "blockN" if !scales => columns = Some(number()?),
                "unpacked" if !scales => unpacked = Some(value.parse::<bool>().map_err(|_| wrong())?),
                "CTASplitM" => ctas[0] = number()?,
                "CTASplitN" => ctas[1] = number()?,
                _ => return Err(wrong()),
            }
        }
        if ctas.contains(&0) {
            return Err("`CTASplitM` and `CTASplitN` must be 1 at least".into());
        }
        if scales {
            return Ok(TensorMemory::Scales(ctas));
        }
        let (Some(rows), Some(columns), Some(unpacked)) = (rows, columns, unpacked) else {
            return Err("tensor memory needs `blockM`, `blockN` and `unpacked`".into());
        };
        if rows != 64 && rows != 128 {
            return Err(format!("`blockM` must be 64 or 128, not {rows}"));
        }
        if !columns.is_power_of_two() || columns < 2 && !unpacked {
            return Err(format!(
                "`blockN` must be a power of two, and 2 at least where elements are packed, not {columns}"
            ));
        }
        Ok(TensorMemory::Blocks { rows, columns, unpacked, ctas })
    }

    /// Of a buffer's type.
    pub fn of(module: &Module, ty: Type) -> Option<TensorMemory> {
        match module.attr_kind(module.encoding(ty)?) {
            AttrKind::Opaque(text) => TensorMemory::parse(text)?.ok(),
            _ => None,
        }
    }
}

fn space(module: &Module, ty: Type) -> &str {
    let TypeKind::MemDesc { memory_space, .. } = module.type_kind(ty) else { return "" };
    match module.attr_kind(*memory_space) {
        AttrKind::Opaque(text) => text,
        _ => "",
    }
}

/// A buffer in tensor memory, with how it lies there.
fn in_tensor_memory(module: &Module, name: &str, ty: Type) -> Result<TensorMemory, String> {
    let layout = TensorMemory::of(module, ty).filter(|_| space(module, ty) == "#ttng.tensor_memory");
    layout.ok_or_else(|| {
        format!(
            "`{name}` must be a buffer in tensor memory with a layout of it, not {}",
            print_type(module, ty)
        )
    })
}

fn in_shared_memory(module: &Module, name: &str, ty: Type) -> Result<(), String> {
    match space(module, ty) {
        "#ttg.shared_memory" => Ok(()),
        _ => Err(format!("`{name}` must be a buffer in shared memory, not {}", print_type(module, ty))),
    }
}

/// Registers reach a matrix in tensor memory.
fn verify_registers(module: &Module, ty: Type) -> Result<(), String> {
    match module.shape(ty).map(<[u32]>::len) {
        Some(2) => Ok(()),
        _ => Err(format!("tensor memory is read and written by matrices, not {}", print_type(module, ty))),
    }
}

fn verify_tmem_alloc(module: &Module, op: Op) -> Result<(), String> {
    let alloc = TmemAlloc(op);
    let ty = module.value_type(alloc.result(module));
    in_tensor_memory(module, "result", ty)?;
    match alloc.src(module) {
        Some(src) => verify_registers(module, module.value_type(src)),
        None if matches!(module.type_kind(ty), TypeKind::MemDesc { mutable: false, .. }) => {
            Err("a buffer without a source must be mutable".into())
        }
        None => Ok(()),
    }
}

fn verify_tmem_load(module: &Module, op: Op) -> Result<(), String> {
    let load = TmemLoad(op);
    let ty = module.value_type(load.src(module));
    if matches!(in_tensor_memory(module, "src", ty)?, TensorMemory::Scales(_)) {
        return Err("scales are not read back".into());
    }
    verify_registers(module, module.value_type(load.result(module)))
}

fn verify_tmem_store(module: &Module, op: Op) -> Result<(), String> {
    let store = TmemStore(op);
    in_tensor_memory(module, "dst", module.value_type(store.dst(module)))?;
    verify_registers(module, module.value_type(store.src(module)))
}

fn verify_tmem_subslice(module: &Module, op: Op) -> Result<(), String> {
    let slice = TmemSubslice(op);
    let (from, to) = (module.value_type(slice.src(module)), module.value_type(slice.result(module)));
    let (
        TensorMemory::Blocks { rows, unpacked, ctas, .. },
        TensorMemory::Blocks { rows: r, unpacked: u, ctas: c, .. },
    ) = (in_tensor_memory(module, "src", from)?, in_tensor_memory(module, "result", to)?)
    else {
        return Err("scales cannot be cut".into());
    };
    if (rows, unpacked, ctas) != (r, u, c) {
        return Err("the part must lie in blocks of as many rows as the whole, packed and split alike".into());
    }
    let (Some(whole), Some(part)) = (module.shape(from), module.shape(to)) else { return Ok(()) };
    let offset = u32::try_from(slice.offset(module)).map_err(|_| "`N` must not be negative")?;
    let fits = match (whole, part) {
        (&[m, n], &[part_m, part_n]) => m == part_m && offset.checked_add(part_n).is_some_and(|end| end <= n),
        _ => false,
    };
    if fits {
        Ok(())
    } else {
        Err(format!("{} does not lie in {}", print_type(module, to), print_type(module, from)))
    }
}

fn verify_tmem_copy(module: &Module, op: Op) -> Result<(), String> {
    let copy = TmemCopy(op);
    let (src, dst) = (module.value_type(copy.src(module)), module.value_type(copy.dst(module)));
    in_shared_memory(module, "src", src)?;
    let to = in_tensor_memory(module, "dst", dst)?;
    let source = module.encoding(src).and_then(|e| module.encoding_of(e));
    let Some(Encoding::Shared(SharedKind::NvmmaShared { swizzle_bytes, transposed: false, .. })) = source
    else {
        return Err("`src` must lie as an operand of a product that is not transposed (nvmma_shared)".into());
    };
    match to {
        TensorMemory::Scales(_) if *swizzle_bytes != 0 => Err("scales must not be swizzled".into()),
        TensorMemory::Scales(_) => Ok(()),
        TensorMemory::Blocks { .. } if module.shape(src) != module.shape(dst) => {
            Err("`src` and `dst` must have one shape".into())
        }
        TensorMemory::Blocks { rows, .. } if rows != 128 => {
            Err("`dst` must lie in blocks of 128 rows".into())
        }
        TensorMemory::Blocks { .. } if *swizzle_bytes == 0 => Err("`src` must be swizzled".into()),
        TensorMemory::Blocks { .. } if module.bits(src) != 32 => Err("elements must have 32 bits".into()),
        TensorMemory::Blocks { .. } => Ok(()),
    }
}

/// Barriers go with a product that is asynchronous, and each with a predicate.
fn verify_completion(module: &Module, op: Op, barriers: usize, predicates: usize) -> Result<(), String> {
    if barriers != predicates {
        return Err(format!("{barriers} barriers need as many predicates, not {predicates}"));
    }
    let is_async = bool::read(module, module.op_attr(op, "is_async")).unwrap_or(false);
    if barriers > 0 && !is_async {
        Err("a product that is not asynchronous has no barriers".into())
    } else {
        Ok(())
    }
}

/// The extents of a matrix, with those that elements of 4 bits in pairs stand for, along the second dimension or the first.
fn extents(module: &Module, ty: Type, pairs: bool, along_rows: bool) -> Option<[u32; 2]> {
    let [.., rows, columns] = *module.shape(ty)? else { return None };
    let twice = |n: u32, is: bool| if is { n.checked_mul(2) } else { Some(n) };
    Some([twice(rows, pairs && along_rows)?, twice(columns, pairs && !along_rows)?])
}

fn verify_extents(
    module: &Module,
    types: [Type; 3],
    a: Option<[u32; 2]>,
    b: Option<[u32; 2]>,
) -> Result<(), String> {
    let fits = match (a, b, extents(module, types[2], false, false)) {
        (Some([_, k]), Some([depth, n]), Some([_, columns])) => k == depth && n == columns,
        _ => false,
    };
    if fits {
        return Ok(());
    }
    let [a, b, d] = types.map(|ty| print_type(module, ty));
    Err(format!("{a} times {b} does not fit {d}"))
}

fn verify_mma(module: &Module, op: Op) -> Result<(), String> {
    let mma = TcGen5Mma(op);
    let types @ [a, b, d] = [mma.a(module), mma.b(module), mma.d(module)].map(|v| module.value_type(v));
    in_shared_memory(module, "b", b)?;
    in_tensor_memory(module, "d", d)?;
    verify_extents(module, types, extents(module, a, false, false), extents(module, b, false, false))?;
    verify_completion(module, op, mma.barriers(module).len(), mma.barrier_preds(module).len())
}

fn verify_mma_scaled(module: &Module, op: Op) -> Result<(), String> {
    let mma = TcGen5MmaScaled(op);
    let types @ [a, b, d] = [mma.a(module), mma.b(module), mma.d(module)].map(|v| module.value_type(v));
    in_shared_memory(module, "b", b)?;
    in_tensor_memory(module, "d", d)?;
    let transposed = |ty| {
        module.encoding(ty).is_some_and(|e| match module.attr_kind(e) {
            AttrKind::Encoding(Encoding::Shared(SharedKind::NvmmaShared { transposed, .. })) => *transposed,
            // With `fp4Padded` it is kept as text.
            AttrKind::Opaque(text) => text.contains("transposed = true"),
            _ => false,
        })
    };
    let pairs = |format| format == ScaleDotElemType::E2M1;
    let of_a = extents(module, a, pairs(mma.a_type(module)), transposed(a));
    let of_b = extents(module, b, pairs(mma.b_type(module)), transposed(b));
    verify_extents(module, types, of_a, of_b)?;
    verify_completion(module, op, mma.barriers(module).len(), mma.barrier_preds(module).len())
}
