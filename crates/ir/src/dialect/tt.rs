//! `tt`: block-level operations of the Triton language. Tensors have no encoding until `ttg`.

use crate::attr_enum;
use crate::attrs::{AttrKind, DefaultTrue, SymbolRef};
use crate::entity::{Attr, Op, Type, Value};
use crate::module::Module;
use crate::opdef::{Access, Effect, Resource, Scope};
use crate::text::print_type;
use crate::types::TypeKind;
use crate::typing::same_type_lists;

attr_enum! {
    /// Cache modifiers of loads and stores (PTX ISA, "Cache Operators").
    #[allow(missing_docs)]
    CacheModifier { None = "none", Ca = "ca", Cg = "cg", Wb = "wb", Cs = "cs", Wt = "wt", Cv = "cv" } default None
}

attr_enum! {
    /// Eviction priority hints.
    #[allow(missing_docs)]
    EvictionPolicy { Normal = "evict_normal", First = "evict_first", Last = "evict_last" } default Normal
}

attr_enum! {
    /// What a padded out-of-bounds element reads as.
    #[allow(missing_docs)]
    PaddingOption { Zero = "pad_zero", Nan = "pad_nan" }
}

attr_enum! {
    /// Read-modify-write operations.
    #[allow(missing_docs)]
    RmwOp {
        And = "and", Or = "or", Xor = "xor", Add = "add", Fadd = "fadd", Max = "max", Min = "min", Umax = "umax",
        Umin = "umin", Exch = "exch",
    }
}

attr_enum! {
    /// What a descriptor's reduction does with what lies in memory and the block (`umin` and `umax` are ours: our IR's
    /// integers have no sign, which Triton says in the descriptor's element type).
    #[allow(missing_docs)]
    DescriptorReduceKind {
        Add = "add", Min = "min", Max = "max", Umin = "umin", Umax = "umax", Inc = "inc", Dec = "dec", And = "and",
        Or = "or", Xor = "xor",
    }
}

attr_enum! {
    /// Memory orderings.
    #[allow(missing_docs)]
    MemSemantic { Relaxed = "relaxed", Acquire = "acquire", Release = "release", AcquireRelease = "acq_rel" }
}

attr_enum! {
    /// Who takes part in an ordering.
    #[allow(missing_docs)]
    MemSyncScope { Gpu = "gpu", Cta = "cta", System = "sys" }
}

attr_enum! {
    /// How fp32 operands of a dot are used.
    #[allow(missing_docs)]
    InputPrecision { Tf32 = "tf32", Tf32x3 = "tf32x3", Ieee = "ieee", Bf16x3 = "bf16x3", Bf16x6 = "bf16x6" } default Ieee
}

attr_enum! {
    /// How warps divide a dot's result (ML-Triton, section 3.1): its rows, its columns, or both so that the parts are about square. `default`
    /// leaves it to the compiler.
    #[allow(missing_docs)]
    Tiling { Default = "default", Horizontal = "horizontal", Vertical = "vertical", Square = "square" } default Default
}

attr_enum! {
    /// What the elements of an operand of a scaled dot are. `e2m1` are two in each `i8`, the first in the low bits.
    #[allow(missing_docs)]
    ScaleDotElemType { E4M3 = "e4m3", E5M2 = "e5m2", E2M1 = "e2m1", Bf16 = "bf16", Fp16 = "fp16" }
}

impl ScaleDotElemType {
    /// The type of a tensor's elements.
    pub fn element(self) -> Type {
        match self {
            ScaleDotElemType::E4M3 => Type::F8E4M3FN,
            ScaleDotElemType::E5M2 => Type::F8E5M2,
            ScaleDotElemType::E2M1 => Type::I8,
            ScaleDotElemType::Bf16 => Type::BF16,
            ScaleDotElemType::Fp16 => Type::F16,
        }
    }
}

attr_enum! {
    /// Rounding of a conversion to a narrower float.
    #[allow(missing_docs)]
    RoundingMode { Rtz = "rtz", Rtne = "rtne" }
}

attr_enum! {
    /// The languages of code that `tt.raw_call` hands on.
    #[allow(missing_docs)]
    RawLanguage { Ptx = "ptx", Llvm = "llvm" }
}

attr_enum! {
    /// Grid axes.
    #[allow(missing_docs)]
    ProgramDim { X = "x", Y = "y", Z = "z" }
}

attr_enum! {
    /// Programs that run at the same time: those of a cluster, or all.
    #[allow(missing_docs)]
    ProgramScope { Cluster = "cluster", Grid = "grid" }
}

const READ: Effect = Effect::new(Access::Read, Resource::Global, Some("ptr"));
const WRITE: Effect = Effect::new(Access::Write, Resource::Global, Some("ptr"));
const SENT: Effect = Effect::new(Access::Read, Resource::Global, Some("src"));
const RECEIVED: Effect = Effect::new(Access::Write, Resource::Global, Some("dst"));
/// It is not to be moved or erased.
const STAYS: Effect = OTHER;
const LEAVES: Effect = OTHER;
const OTHER: Effect = Effect::new(Access::Write, Resource::Other, None);
const READ_INPUTS: Effect = Effect::new(Access::Read, Resource::Global, Some("inputs"));
const READ_OUTPUTS: Effect = Effect::new(Access::Read, Resource::Global, Some("outputs"));
const WRITE_OUTPUTS: Effect = Effect::new(Access::Write, Resource::Global, Some("outputs"));
const READ_DESC: Effect = Effect::new(Access::Read, Resource::Global, Some("desc"));
const WRITE_DESC: Effect = Effect::new(Access::Write, Resource::Global, Some("desc"));

crate::dialect! {
    dialect "tt" Tt;

    /// A function. `sym_visibility` is `public` for a kernel; `arg_attrs` is an array with a dictionary per argument.
    op Func = "func" {
        attrs(
            sym_name: String = "sym_name",
            function_type: Type = "function_type",
            sym_visibility: Option<String> = "sym_visibility",
            arg_attrs: Option<Attr> = "arg_attrs",
        )
        regions(body: "") flow()
        traits(Isolated)
        index(Unrelated)
        types()
        effects(STAYS)
        verify verify_func
    }

    /// Ends a function.
    op Return = "return" {
        operands(values: var)
        traits(Terminator)
        index(Unrelated)
        types()
        effects(LEAVES)
        format "attr-dict ($values^ `:` type($values))?"
        verify verify_return
    }

    /// Calls a function of the module.
    op Call = "call" {
        operands(args: var)
        attrs(callee: SymbolRef = "callee")
        variadic_results(results)
        index(Whole)
        types()
        effects(OTHER)
        format "$callee `(` $args `)` attr-dict `:` functional-type($args, $results)"
        verify verify_call
    }

    /// The index of the program along an axis of the grid.
    op GetProgramId = "get_program_id" {
        attrs(axis: ProgramDim = "axis")
        results(result)
        traits(Pure)
        index(Unrelated)
        types(Is("result", Fixed(Type::I32)))
        effects()
        format "$axis attr-dict `:` type($result)"
    }

    /// The extent of the grid along an axis.
    op GetNumPrograms = "get_num_programs" {
        attrs(axis: ProgramDim = "axis")
        results(result)
        traits(Pure)
        index(Unrelated)
        types(Is("result", Fixed(Type::I32)))
        effects()
        format "$axis attr-dict `:` type($result)"
    }

    /// Programs of a scope wait for each other: what any of them has written before, each of them sees after. They are all of the
    /// scope, or, where there is a `count`, that many, those that come to a barrier of this `group`. Programs that meet more than
    /// once meet in the same group; other programs do in another.
    op ProgramBarrier = "program_barrier" {
        operands(count: opt)
        attrs(scope: ProgramScope = "scope", group: i32 = "group")
        index(Unrelated)
        types(Is("count", Fixed(Type::I32)))
        effects(Effect::wait(Scope::Gpu))
        marks(GLOBAL_SCRATCH_OFFSET, RELAXED)
        format "$scope (`,` $count^)? attr-dict"
    }

    /// Waits until the integer at an address, or each of a tensor of addresses, is at least `value`, compared as signed ones, and acquires: what
    /// came before the release that made it so, on this device or on another one, is seen behind it. With `flagged` they are words of 64 bits, whose
    /// upper halves are flags: it waits until each is that of `value`, and does not acquire, as what there is to see is the lower half.
    /// `memory` is where the rank's memory begins (`tle/_ranks.py`), which says for how long to wait, and where to report that it was in vain.
    op WaitSignal = "wait_signal" {
        operands(ptr: one, value: one, memory: opt)
        attrs(flagged: bool = "flagged")
        results(result)
        index(Aligned)
        types(Each("ptr", Ptr), Each("memory", Ptr), Is("value", Loaded("ptr")), Is("result", Loaded("ptr")))
        effects(READ, Effect::wait(Scope::System))
        marks(VEC, VEC_AXIS)
        format "$ptr `,` $value (`,` $memory^)? attr-dict `:` type(operands)"
        verify verify_wait_signal
    }

    /// Sends `bytes` that lie in this rank's memory to another rank's, as messages of a library: `dst` says whose memory it is. What the program's threads have
    /// stored before is sent; with `released` what the program has released at system scope, by which its threads met. It is there behind what releases, and until then
    /// `src` must stay as it is.
    op Send = "send" {
        operands(dst: one, src: one, bytes: one)
        attrs(released: bool = "released")
        index(Unrelated)
        types(Each("dst", Ptr), Each("src", Ptr), Is("bytes", Fixed(Type::I64)))
        effects(SENT, RECEIVED)
        format "$dst `,` $src `,` $bytes attr-dict `:` type($dst) `,` type($src)"
        verify verify_send
    }

    /// `[start, end)` as a 1-D `i32` tensor.
    op MakeRange = "make_range" {
        attrs(end: i32 = "end", start: i32 = "start")
        results(result)
        traits(Pure)
        index(Generated)
        types(Each("result", Tensor), Each("result", Int))
        effects()
        format "attr-dict `:` type($result)"
        verify verify_make_range
    }

    /// A scalar in every element.
    op Splat = "splat" {
        operands(src: one)
        results(result)
        traits(Pure)
        index(Generated)
        types(Is("src", Element("result")), Each("result", Tensor))
        effects()
        format "$src attr-dict `:` type($src) `->` type($result)"
    }

    /// The only element of a tensor.
    op Unsplat = "unsplat" {
        operands(src: one)
        results(result)
        traits(Pure)
        index(Unrelated)
        types(Each("src", Tensor), Is("result", Element("src")))
        effects()
        format "$src attr-dict `:` type($src)"
        verify verify_unsplat
    }

    /// Inserts a dimension of extent 1.
    op ExpandDims = "expand_dims" {
        operands(src: one)
        attrs(axis: i32 = "axis")
        results(result)
        traits(Pure)
        index(ExpandDims("axis"))
        types(Is("result", Like("src")))
        effects()
        format "$src attr-dict `:` type($src) `->` type($result)"
    }

    /// Repeats dimensions of extent 1.
    op Broadcast = "broadcast" {
        operands(src: one)
        results(result)
        traits(Pure)
        index(Broadcast)
        types(Is("result", Like("src")))
        effects()
        format "$src attr-dict `:` type($src) `->` type($result)"
    }

    /// The same elements in row-major order under another shape; with `allow_reorder`, in any order.
    op Reshape = "reshape" {
        operands(src: one)
        attrs(allow_reorder: bool = "allow_reorder", efficient_layout: bool = "efficient_layout")
        results(result)
        traits(Pure)
        index(Reshape)
        types(Is("result", Like("src")))
        effects()
        format "$src (`allow_reorder` $allow_reorder^)? (`efficient_layout` $efficient_layout^)? attr-dict `:` type($src) `->` type($result)"
    }

    /// Permutes dimensions: result dimension i is source dimension `order[i]`.
    op Trans = "trans" {
        operands(src: one)
        attrs(order: Vec<i32> = "order")
        results(result)
        traits(Pure)
        index(Permute("order"))
        types(Is("result", Like("src")))
        effects()
        format "$src attr-dict `:` type($src) `->` type($result)"
    }

    /// Two tensors along a new innermost dimension of extent 2.
    op Join = "join" {
        operands(lhs: one, rhs: one)
        results(result)
        traits(Pure)
        index(Join)
        types(Is("rhs", Same("lhs")), Is("result", Like("lhs")))
        effects()
        format "$lhs `,` $rhs attr-dict `:` type($lhs) `->` type($result)"
    }

    /// The two halves of an innermost dimension of extent 2.
    op Split = "split" {
        operands(src: one)
        results(lhs, rhs)
        traits(Pure)
        index(Split)
        types(Is("rhs", Same("lhs")), Is("lhs", Like("src")))
        effects()
        format "$src attr-dict `:` type($src) `->` type($lhs)"
    }

    /// Two 1-D tensors one after the other; the order of elements is not specified.
    op Cat = "cat" {
        operands(lhs: one, rhs: one)
        results(result)
        traits(Pure)
        index(Concat)
        types(Is("rhs", Like("lhs")), Is("result", Like("lhs")))
        effects()
        format "$lhs `,` $rhs attr-dict `:` type($lhs) `->` type($result)"
    }

    /// Loads through a pointer or a tensor of pointers; masked-off elements read as `other` (undefined if absent).
    op Load = "load" {
        operands(ptr: one, mask: opt, other: opt)
        attrs(
            cache: CacheModifier = "cacheModifier",
            evict: EvictionPolicy = "evictionPolicy",
            is_volatile: bool = "isVolatile",
        )
        results(result)
        index(Aligned)
        types(Each("ptr", Ptr), Is("mask", Mask("ptr")), Is("other", Loaded("ptr")), Is("result", Loaded("ptr")))
        effects(READ, OTHER.when("isVolatile"))
        marks(VEC, VEC_AXIS, ASYNC, COPY)
        format "$ptr (`,` $mask^)? (`,` $other^)? oilist(`cacheModifier` `=` $cacheModifier | `evictionPolicy` `=` $evictionPolicy) attr-dict `:` type($ptr)"
    }

    /// Stores through a pointer or a tensor of pointers where the mask holds.
    op Store = "store" {
        operands(ptr: one, value: one, mask: opt)
        attrs(cache: CacheModifier = "cacheModifier", evict: EvictionPolicy = "evictionPolicy")
        index(Aligned)
        types(Each("ptr", Ptr), Is("value", Loaded("ptr")), Is("mask", Mask("ptr")))
        effects(WRITE)
        marks(VEC, VEC_AXIS, FILLS)
        format "$ptr `,` $value (`,` $mask^)? oilist(`cacheModifier` `=` $cacheModifier | `evictionPolicy` `=` $evictionPolicy) attr-dict `:` type($ptr)"
    }

    /// Pointer plus offset, in elements.
    op Addptr = "addptr" {
        operands(ptr: one, offset: one)
        same_as(ptr)
        traits(Pure, Elementwise)
        index(Elementwise)
        types(Each("ptr", Ptr), Each("offset", Int))
        effects()
        format "$ptr `,` $offset attr-dict `:` type($result) `,` type($offset)"
    }

    /// A pointer to a tile of a tensor in memory: extents and strides (`i64`), offsets (`i32`). The result points to a
    /// tensor type.
    op MakeTensorPtr = "make_tensor_ptr" {
        operands(base: one, shape: var, strides: var, offsets: var)
        attrs(order: Vec<i32> = "order")
        results(result)
        traits(Pure)
        index(Unrelated)
        types(Each("base", Ptr), Is("shape", Fixed(Type::I64)), Is("strides", Fixed(Type::I64)), Is("offsets", Fixed(Type::I32)), Each("result", Ptr))
        effects()
        format "$base `,` `[` $shape `]` `,` `[` $strides `]` `,` `[` $offsets `]` attr-dict `:` short-type(tt.ptr, $result)"
    }

    /// The tile pointer moved by offsets (`i32`).
    op Advance = "advance" {
        operands(ptr: one, offsets: var)
        same_as(ptr)
        traits(Pure)
        index(Unrelated)
        types(Each("ptr", Ptr), Is("offsets", Fixed(Type::I32)))
        effects()
        format "$ptr `,` `[` $offsets `]` attr-dict `:` short-type(tt.ptr, $result)"
    }

    /// Describes a tensor in memory for block accesses: extents (`i32`) and strides (`i64`, in elements; the last is 1).
    /// `padding` is 2 where what is out of bounds reads as NaN; absent, it reads as zero.
    op MakeTensorDescriptor = "make_tensor_descriptor" {
        operands(base: one, shape: var, strides: var)
        attrs(padding: Option<i32> = "padding")
        results(result)
        traits(Pure)
        index(Unrelated)
        types(Each("base", Ptr), Is("shape", Fixed(Type::I32)), Is("strides", Fixed(Type::I64)))
        effects()
        format "$base `,` `[` $shape `]` `,` `[` $strides `]` attr-dict `:` short-type(tt.ptr, $base) `,` short-type(tt.tensordesc, $result)"
        verify verify_make_descriptor
    }

    /// Loads the block at the indices (`i32`); out of bounds it reads as the descriptor's padding. Leading dimensions of
    /// extent 1 may be missing in the result.
    op DescriptorLoad = "descriptor_load" {
        operands(desc: one, indices: var)
        attrs(cache: CacheModifier = "cacheModifier", evict: EvictionPolicy = "evictionPolicy")
        results(result)
        index(Block("desc", "result"))
        types(Is("indices", Fixed(Type::I32)), Is("result", Like("desc")))
        effects(READ_DESC)
        marks(MULTICAST)
        format "$desc `[` $indices `]` oilist(`cacheModifier` `=` $cacheModifier | `evictionPolicy` `=` $evictionPolicy) attr-dict `:` type($desc) `->` type($result)"
        verify verify_indices
    }

    /// Brings the block at the indices (`i32`) into a cache, from which it is to be loaded soon; what is out of bounds is left out.
    op DescriptorPrefetch = "descriptor_prefetch" {
        operands(desc: one, indices: var)
        index(Unrelated)
        types(Is("indices", Fixed(Type::I32)))
        effects(OTHER)
        format "$desc `[` $indices `]` attr-dict `:` type($desc)"
        verify verify_indices
    }

    /// Stores a block at the indices; what is out of bounds is not stored.
    op DescriptorStore = "descriptor_store" {
        operands(desc: one, src: one, indices: var)
        index(Block("desc", "src"))
        types(Is("indices", Fixed(Type::I32)), Is("src", Like("desc")))
        effects(READ_DESC, WRITE_DESC)
        format "$desc `[` $indices `]` `,` $src attr-dict `:` type($desc) `,` type($src)"
        verify verify_indices
    }

    /// Combines a block at the indices with what lies there, element by element and atomically; what is out of bounds is
    /// left out.
    op DescriptorReduce = "descriptor_reduce" {
        operands(desc: one, src: one, indices: var)
        attrs(kind: DescriptorReduceKind = "kind")
        index(Block("desc", "src"))
        types(Is("indices", Fixed(Type::I32)), Is("src", Like("desc")))
        effects(READ_DESC, WRITE_DESC)
        format "$kind `,` $desc `[` $indices `]` `,` $src attr-dict `:` type($desc) `,` type($src)"
        verify verify_indices
    }

    /// Loads parts of the rows `x_offsets` of a matrix, from the column `y_offset` on. The descriptor's block is one row.
    op DescriptorGather = "descriptor_gather" {
        operands(desc: one, x_offsets: one, y_offset: one)
        results(result)
        index(Rows("desc", "x_offsets", "result"))
        types(Each("x_offsets", Int), Bits("x_offsets", Equal, "y_offset"), Is("y_offset", Fixed(Type::I32)), Is("result", Like("desc")))
        effects(READ_DESC)
        format "$desc `[` $x_offsets `,` $y_offset `]` attr-dict `:` functional-type(operands, $result)"
    }

    /// Stores parts of the rows `x_offsets` of a matrix, from the column `y_offset` on. The descriptor's block is one row.
    op DescriptorScatter = "descriptor_scatter" {
        operands(desc: one, x_offsets: one, y_offset: one, src: one)
        index(Rows("desc", "x_offsets", "src"))
        types(Each("x_offsets", Int), Bits("x_offsets", Equal, "y_offset"), Is("y_offset", Fixed(Type::I32)), Is("src", Like("desc")))
        effects(READ_DESC, WRITE_DESC)
        format "$desc `[` $x_offsets `,` $y_offset `]` `,` $src attr-dict `:` type(operands)"
    }

    /// An integer as a pointer.
    op IntToPtr = "int_to_ptr" {
        operands(src: one)
        results(result)
        traits(Pure, Elementwise)
        index(Elementwise)
        types(Each("src", Int), Each("result", Ptr))
        effects()
        format "$src attr-dict `:` type($src) `->` type($result)"
    }

    /// A pointer as an integer.
    op PtrToInt = "ptr_to_int" {
        operands(src: one)
        results(result)
        traits(Pure, Elementwise)
        index(Elementwise)
        types(Each("src", Ptr), Each("result", Int))
        effects()
        format "$src attr-dict `:` type($src) `->` type($result)"
    }

    /// The same bits as another type; also between pointer types.
    op Bitcast = "bitcast" {
        operands(src: one)
        results(result)
        traits(Pure, Elementwise)
        index(Elementwise)
        types(Bits("src", Equal, "result"))
        effects()
        format "$src attr-dict `:` type($src) `->` type($result)"
    }

    /// Conversion between floats where one is an fp8, or with a given rounding.
    op FpToFp = "fp_to_fp" {
        operands(src: one)
        attrs(rounding: Option<RoundingMode> = "rounding")
        results(result)
        traits(Pure, Elementwise)
        index(Elementwise)
        types(Each("src", Float), Each("result", Float))
        effects()
        format "$src attr-dict (`,` `rounding` `=` $rounding^)? `:` type($src) `->` type($result)"
    }

    /// min(max(x, lo), hi); with `propagate_nan` a NaN x stays NaN.
    op Clampf = "clampf" {
        operands(x: one, min: one, max: one)
        attrs(propagate_nan: bool = "propagateNan")
        same_as(x)
        traits(Pure, Elementwise, SameTypes)
        index(Elementwise)
        types(All(Float))
        effects()
    }

    /// Square root, rounded to nearest.
    op PreciseSqrt = "precise_sqrt" {
        operands(x: one)
        same_as(x)
        traits(Pure, Elementwise, SameTypes)
        index(Elementwise)
        types(All(Float))
        effects()
        format "$x attr-dict `:` type($result)"
    }

    /// Division, rounded to nearest.
    op PreciseDivf = "precise_divf" {
        operands(x: one, y: one)
        same_as(x)
        traits(Pure, Elementwise, SameTypes)
        index(Elementwise)
        types(All(Float))
        effects()
        format "$x `,` $y attr-dict `:` type($result)"
    }

    /// The upper half of an unsigned product.
    op Mulhiui = "mulhiui" {
        operands(x: one, y: one)
        same_as(x)
        traits(Pure, Elementwise, SameTypes)
        index(Elementwise)
        types(All(Int))
        effects()
        format "$x `,` $y attr-dict `:` type($result)"
    }

    /// d = a · b + c for a (M×K), b (K×N), c and d (M×N), or batched with a leading dimension. `tiling` says how warps divide d.
    op Dot = "dot" {
        operands(a: one, b: one, c: one)
        attrs(
            input_precision: InputPrecision = "inputPrecision",
            max_num_imprecise_acc: Option<i32> = "maxNumImpreciseAcc",
            tiling: Tiling = "tiling",
        )
        same_as(c)
        traits(Pure)
        index(Contraction)
        types(All(Tensor))
        effects()
        format "$a `,` $b `,` $c (`,` `inputPrecision` `=` $inputPrecision^)? (`tiling` `=` $tiling^)? attr-dict `:` type($a) `*` type($b) `->` type($result)"
        verify verify_dot
    }

    /// d = (a · its scales) · (b · its scales) + c in the microscaling formats (OCP Microscaling Formats Specification 1.0).
    ///
    /// A scale belongs to 32 elements along K and is an exponent (`i8`, E8M0: 2^(s - 127), 0 for s = 0), or to 16 and is a
    /// float (E4M3). Scales of a are M×K/32, those of b N×K/32. Elements and scales are converted to fp16 if one of the
    /// operands is fp16, and to bf16 otherwise; their products are rounded to that type and then multiplied as by `tt.dot`. What
    /// has the exponent 255 is NaN, or with `fastMath` its product with infinity. E2M1 elements lie along K two in a byte,
    /// without `lhs_k_pack` (`rhs_k_pack`) along M (N). Floats of 8 bits may be given as bytes.
    op DotScaled = "dot_scaled" {
        operands(a: one, b: one, c: one, a_scale: opt, b_scale: opt)
        attrs(
            a_elem_type: ScaleDotElemType = "a_elem_type",
            b_elem_type: ScaleDotElemType = "b_elem_type",
            fast_math: bool = "fastMath",
            lhs_k_pack: DefaultTrue = "lhs_k_pack",
            rhs_k_pack: DefaultTrue = "rhs_k_pack",
        )
        same_as(c)
        traits(Pure)
        index(ScaledContraction(["a_elem_type", "b_elem_type"], ["lhs_k_pack", "rhs_k_pack"]))
        types(All(Tensor), Each("c", Float))
        effects()
        format "$a (`scale` $a_scale^)? `,` $b (`scale` $b_scale^)? `,` $c `lhs` `=` $a_elem_type `rhs` `=` $b_elem_type attr-dict `:` type($a) (`,` type($a_scale)^)? `*` type($b) (`,` type($b_scale)^)? `->` type($result)"
        verify verify_dot_scaled
    }

    /// Combines elements along an axis with the function in the region (associative and commutative).
    /// The region's arguments are the accumulators and then the elements, one of each per operand.
    op Reduce = "reduce" {
        operands(srcs: var)
        attrs(axis: i32 = "axis")
        variadic_results(results)
        regions(combine: "tt.reduce.return") flow()
        traits(RecursiveEffects, SingleBlock)
        index(Reduce("axis"))
        types(Each("srcs", Tensor), Is("results", Like("srcs")))
        effects()
        marks(LANES_APART)
        verify verify_combine
    }

    /// Ends the region of a reduce.
    op ReduceReturn = "reduce.return" {
        operands(values: var)
        traits(Terminator)
        index(Unrelated)
        types()
        effects()
        format "$values attr-dict `:` type($values)"
    }

    /// Inclusive prefix combination along an axis with the function in the region (associative).
    op Scan = "scan" {
        operands(srcs: var)
        attrs(axis: i32 = "axis", reverse: bool = "reverse")
        variadic_results(results)
        regions(combine: "tt.scan.return") flow()
        traits(RecursiveEffects, SingleBlock)
        index(Scan("axis"))
        types(Each("srcs", Tensor), Is("results", Same("srcs")))
        effects()
        verify verify_combine
    }

    /// Ends the region of a scan.
    op ScanReturn = "scan.return" {
        operands(values: var)
        traits(Terminator)
        index(Unrelated)
        types()
        effects()
        format "$values attr-dict `:` type($values)"
    }

    /// Applies the function in the region to elements, `pack` at a time: its arguments are the first operand's elements, then the
    /// second's; what it returns is the first result's elements, then the second's. Which elements go together is not said.
    op MapElementwise = "map_elementwise" {
        operands(srcs: var)
        attrs(pack: i32 = "pack")
        variadic_results(results)
        regions(scalar_op: "tt.map_elementwise.return") flow()
        traits(Elementwise, RecursiveEffects, SingleBlock)
        index(Elementwise)
        types()
        effects()
        verify verify_map
    }

    /// Ends the region of a `tt.map_elementwise`.
    op MapElementwiseReturn = "map_elementwise.return" {
        operands(values: var)
        traits(Terminator)
        index(Unrelated)
        types()
        effects()
        format "$values attr-dict `:` type($values)"
    }

    /// How often each of 0..bins occurs in an integer tensor; other values are not counted.
    op Histogram = "histogram" {
        operands(src: one, mask: opt)
        results(result)
        traits(Pure)
        index(Count)
        types(Each("src", Int), Is("mask", Mask("src")), Each("result", Int))
        effects()
        format "$src (`,` $mask^)? attr-dict `:` type($src) `->` type($result)"
    }

    /// `result[i][j] = src[indices[i][j]][j]` for axis 0, and so on.
    op Gather = "gather" {
        operands(src: one, indices: one)
        attrs(axis: i32 = "axis", efficient_layout: bool = "efficient_layout")
        results(result)
        traits(Pure)
        index(Gather("axis"))
        types(Each("indices", Int), Is("result", Like("src")))
        effects()
        format "$src `[` $indices `]` (`efficient_layout` $efficient_layout^)? attr-dict `:` `(` type($src) `,` type($indices) `)` `->` type($result)"
    }

    /// Tile number `index`, in row-major order, of the grid of such tiles that the source is cut into.
    op Extract = "extract" {
        operands(src: one)
        attrs(index: i32 = "index")
        results(result)
        traits(Pure)
        index(TileAt("index"))
        types(Is("result", Like("src")))
        effects()
        format "$src `` `[` $index `]` attr-dict `:` type($src) `->` type($result)"
    }

    /// A tile of the grid of such tiles that the source is cut into, by its number along each dimension. An index that is out of
    /// range is undefined.
    op ExtractTile = "extract_tile" {
        operands(src: one, index: var)
        results(result)
        traits(Pure)
        index(Tile("result"))
        types(Is("index", Fixed(Type::I32)), Is("result", Like("src")))
        effects()
        format "$src `[` $index `]` attr-dict `:` type($src) `->` type($result)"
    }

    /// The source with a tile of its grid replaced.
    op InsertTile = "insert_tile" {
        operands(src: one, tile: one, index: var)
        results(result)
        traits(Pure)
        index(Tile("tile"))
        types(Is("tile", Like("src")), Is("index", Fixed(Type::I32)), Is("result", Same("src")))
        effects()
        format "$tile `,` $src `[` $index `]` attr-dict `:` type($tile) `,` type($src)"
    }

    /// The elements at `offsets[d] + i * strides[d]` along each dimension. Where they are outside it is undefined.
    op ExtractSlice = "extract_slice" {
        operands(src: one, offsets: var)
        attrs(strides: Vec<i32> = "strides")
        results(result)
        traits(Pure)
        index(Unrelated)
        types(Each("src", Tensor), Is("offsets", Fixed(Type::I32)), Is("result", Like("src")))
        effects()
        format "$src `[` $offsets `]` `by` $strides attr-dict `:` type($src) `->` type($result)"
        verify verify_slice
    }

    /// The source with the elements that `tt.extract_slice` would take replaced.
    op InsertSlice = "insert_slice" {
        operands(src: one, part: one, offsets: var)
        attrs(strides: Vec<i32> = "strides")
        results(result)
        traits(Pure)
        index(Unrelated)
        types(Each("src", Tensor), Each("part", Tensor), Is("part", Like("src")), Is("offsets", Fixed(Type::I32)), Is("result", Same("src")))
        effects()
        format "$part `,` $src `[` $offsets `]` `by` $strides attr-dict `:` type($part) `,` type($src)"
        verify verify_slice
    }

    /// Atomic read-modify-write; gives the old value.
    op AtomicRmw = "atomic_rmw" {
        operands(ptr: one, val: one, mask: opt)
        attrs(rmw_op: RmwOp = "atomic_rmw_op", sem: MemSemantic = "sem", scope: MemSyncScope = "scope")
        results(result)
        index(Aligned)
        types(Each("ptr", Ptr), Is("val", Loaded("ptr")), Is("mask", Mask("ptr")), Is("result", Loaded("ptr")))
        effects(READ, WRITE)
        marks(VEC, VEC_AXIS)
        format "$atomic_rmw_op `,` $sem `,` $scope `,` $ptr `,` $val (`,` $mask^)? attr-dict `:` functional-type(operands, $result)"
    }

    /// Atomic compare-and-swap; gives the old value.
    op AtomicCas = "atomic_cas" {
        operands(ptr: one, cmp: one, val: one)
        attrs(sem: MemSemantic = "sem", scope: MemSyncScope = "scope")
        results(result)
        index(Aligned)
        types(Each("ptr", Ptr), Is("cmp", Loaded("ptr")), Is("val", Loaded("ptr")), Is("result", Loaded("ptr")))
        effects(READ, WRITE)
        marks(VEC, VEC_AXIS)
        format "$sem `,` $scope `,` $ptr `,` $cmp `,` $val attr-dict `:` functional-type(operands, $result)"
    }

    /// A function of a device library by name, elementwise.
    op ExternElementwise = "extern_elementwise" {
        operands(srcs: var)
        attrs(
            libname: String = "libname", libpath: String = "libpath", symbol: String = "symbol", pure: bool = "pure",
        )
        results(result)
        traits(Pure, Elementwise)
        index(Elementwise)
        types()
        effects(OTHER.unless("pure"))
        format "$srcs attr-dict `:` functional-type(operands, $result)"
    }

    /// Target assembly applied elementwise, `packed_element` elements at a time.
    op ElementwiseInlineAsm = "elementwise_inline_asm" {
        operands(args: var)
        attrs(
            asm_string: String = "asm_string", constraints: String = "constraints", pure: bool = "pure",
            packed_element: i32 = "packed_element",
        )
        variadic_results(results)
        traits(Elementwise)
        index(Elementwise)
        types()
        effects(OTHER.unless("pure"))
        format "$asm_string attr-dict ($args^ `:` type($args))? `->` type($results)"
    }

    /// Runs the author's own code, `source`, in every thread: the function `symbol` of it, or, in PTX without a symbol, the text itself, in
    /// which `%[name]` is an operand (`%[name.1]` the second of a tensor's elements in the thread). Parameter `i`, which messages call `names[i]`, is
    /// operand `order[i]`. What the code may write are the `outputs`: the memory behind a pointer; of a tensor or number the value
    /// behind the call is a result. A thread has a tensor's elements as its encoding in `layouts`, one for each operand (`unit` for what is no
    /// tensor), says; of a pointer into a buffer that is handed over as it lies, its layout. With `threads` as many threads of those that come here as their product run it,
    /// the first ones, numbered along as many dimensions.
    op RawCall = "raw_call" {
        operands(inputs: var, outputs: var)
        attrs(
            language: RawLanguage = "language", symbol: String = "symbol", source: String = "source",
            names: Vec<String> = "names", order: Vec<i32> = "order", layouts: Attr = "layouts", threads: Vec<i32> = "threads",
        )
        variadic_results(results)
        index(Unrelated)
        types()
        effects(READ_INPUTS, READ_OUTPUTS, WRITE_OUTPUTS, OTHER)
        verify verify_raw_call
    }

    /// Prints from the device: the prefix, then each argument's elements with their program and index.
    op Print = "print" {
        operands(args: var)
        attrs(prefix: String = "prefix", hex: bool = "hex", is_signed: Vec<i32> = "isSigned")
        index(Whole)
        types()
        effects(OTHER)
        format "$prefix attr-dict (`:` $args^ `:` type($args))?"
    }

    /// Traps where the condition does not hold.
    op Assert = "assert" {
        operands(condition: one)
        attrs(message: String = "message")
        index(Aligned)
        types(Each("condition", Bool))
        effects(OTHER)
        format "$condition `,` $message attr-dict `:` type($condition)"
    }
}

/// Whether an operation is code of the author's own that may access global memory: programs may wait for each other by it, and tell each other what they
/// have done.
pub fn accesses_memory(module: &Module, op: Op) -> bool {
    match module.opcode(op) {
        Some(crate::Opcode::Tt(Kind::ElementwiseInlineAsm)) => {
            ElementwiseInlineAsm(op).accesses_memory(module)
        }
        Some(crate::Opcode::Tt(Kind::RawCall)) => RawCall(op).accesses_memory(module),
        _ => false,
    }
}

impl Load {
    /// Whether the load is to bring what lies in memory where it stands: volatile, or past all caches (`.cv`). Such a load is made once, and there.
    pub fn is_fresh(self, module: &Module) -> bool {
        self.is_volatile(module) || self.cache(module) == CacheModifier::Cv
    }
}

impl ElementwiseInlineAsm {
    /// Whether its PTX loads, stores, or orders such accesses. Instructions that only compute, or read a counter, do neither.
    fn accesses_memory(self, module: &Module) -> bool {
        const SUCH: [&str; 12] = [
            "ld.",
            "ldu.",
            "st.",
            "atom.",
            "red.",
            "bar.",
            "barrier.",
            "fence",
            "membar",
            "cp.",
            "griddepcontrol",
            "call",
        ];
        let text = self.asm_string(module);
        !self.pure(module) && SUCH.iter().any(|instruction| text.contains(instruction))
    }
}

impl RawCall {
    /// Whether it is given pointers to global memory.
    fn accesses_memory(self, module: &Module) -> bool {
        module.operands(self.0).iter().any(|&v| {
            let ty = module.value_type(v);
            module.is_ptr(ty) && !module.is_shared_pointer(ty)
        })
    }
}

/// Every operand is a parameter, and every output that is no pointer a result.
fn verify_raw_call(module: &Module, op: Op) -> Result<(), String> {
    let call = RawCall(op);
    let operands = module.operands(op).len();
    let mut order = call.order(module);
    order.sort_unstable();
    if order != (0..operands as i32).collect::<Vec<_>>() {
        return Err("`order` must have the number of each operand, once".into());
    }
    if call.names(module).len() != operands {
        return Err("`names` must have one name for each operand".into());
    }
    match module.attr_kind(call.layouts(module)) {
        AttrKind::Array(items) if items.len() == operands => {}
        _ => return Err("`layouts` must have one layout, or `unit`, for each operand".into()),
    }
    let threads = call.threads(module);
    if threads.len() > 3 || threads.iter().any(|&n| n < 1) {
        return Err("`threads` must have at most three extents, each of at least 1".into());
    }
    let types =
        |values: &[crate::entity::Value]| values.iter().map(|&v| module.value_type(v)).collect::<Vec<_>>();
    let values = call.outputs(module).iter().copied();
    let values: Vec<_> = values.filter(|&v| module.pointee_type(module.value_type(v)).is_none()).collect();
    same_type_lists(module, "the results", &types(module.results(op)), "the outputs", &types(&values))
}

/// An offset and a stride for each dimension, and a part that is inside if the offsets are zeros.
fn verify_slice(module: &Module, op: Op) -> Result<(), String> {
    let (whole, part, offsets, strides) = match InsertSlice::cast(module, op) {
        Some(op) => (op.src(module), op.part(module), op.offsets(module), op.strides(module)),
        None => {
            let op = ExtractSlice(op);
            (op.src(module), op.result(module), op.offsets(module), op.strides(module))
        }
    };
    let shape = |v: Value| module.shape(module.value_type(v)).unwrap_or(&[]);
    let (whole, part) = (shape(whole), shape(part));
    if [part.len(), offsets.len(), strides.len()] != [whole.len(); 3] {
        return Err(format!("a slice of {whole:?} needs {} extents, offsets and strides", whole.len()));
    }
    let last = |(n, stride): (&u32, &i32)| i64::from(n.saturating_sub(1)) * i64::from(*stride);
    let inside = part.iter().zip(strides.iter()).zip(whole).all(|(p, n)| *p.1 > 0 && last(p) < i64::from(*n));
    inside
        .then_some(())
        .ok_or(format!("a slice of {part:?} elements, {strides:?} apart, is not inside {whole:?}"))
}

pub(crate) fn verify_func(module: &Module, op: Op) -> Result<(), String> {
    let (inputs, _) = function_type(module, op)?;
    let Some(&entry) = module.region_blocks(Func(op).body(module)).first() else { return Ok(()) };
    let args: Vec<Type> = module.block_args(entry).iter().map(|&v| module.value_type(v)).collect();
    same_type_lists(module, "the body's arguments", &args, "the function type", inputs)?;
    match module.op_attr(op, "arg_attrs").map(|a| module.attr_kind(a)) {
        Some(AttrKind::Array(a)) if a.len() != inputs.len() => {
            Err("arg_attrs must have an entry for each argument".into())
        }
        _ => Ok(()),
    }
}

fn function_type(module: &Module, func: Op) -> Result<(&[Type], &[Type]), String> {
    match module.op_attr(func, "function_type").map(|a| module.attr_kind(a)) {
        Some(AttrKind::Type(t)) => match module.type_kind(*t) {
            TypeKind::Function { inputs, results } => Ok((inputs, results)),
            _ => Err("function_type must be a function type".into()),
        },
        _ => Err("function_type must be a type".into()),
    }
}

fn verify_return(module: &Module, op: Op) -> Result<(), String> {
    let Some(func) = module.parent_op(op).filter(|&f| Func::cast(module, f).is_some()) else {
        return Err("it must lie in a function".into());
    };
    let (_, results) = function_type(module, func)?;
    let returned: Vec<Type> = module.operands(op).iter().map(|&v| module.value_type(v)).collect();
    same_type_lists(module, "returned types", &returned, "the function's", results)
}

fn verify_call(module: &Module, op: Op) -> Result<(), String> {
    let callee = Call(op).callee(module).0;
    let Some(func) = module.function_beside(op, &callee) else {
        return Err(format!("there is no function @{callee}"));
    };
    let (inputs, results) = function_type(module, func)?;
    let types = |values: &[crate::Value]| values.iter().map(|&v| module.value_type(v)).collect::<Vec<Type>>();
    same_type_lists(module, "arguments", &types(module.operands(op)), "the function's", inputs)?;
    same_type_lists(module, "results", &types(module.results(op)), "the function's", results)
}

fn verify_wait_signal(m: &Module, op: Op) -> Result<(), String> {
    let wait = WaitSignal(op);
    match m.element_type(m.value_type(wait.value(m))) {
        Type::I32 if wait.flagged(m) => Err("a word with a flag has 64 bits".to_string()),
        Type::I32 | Type::I64 => Ok(()),
        _ => Err("a signal is an integer of 32 or 64 bits".to_string()),
    }
}

fn verify_send(m: &Module, op: Op) -> Result<(), String> {
    let send = Send(op);
    if !m.is_symmetric_pointer(m.value_type(send.dst(m))) {
        return Err("what is sent goes to memory that says whose it is".into());
    }
    Ok(())
}

fn verify_make_range(module: &Module, op: Op) -> Result<(), String> {
    let r = MakeRange(op);
    let (start, end) = (r.start(module), r.end(module));
    if module.element_type(module.value_type(r.result(module))) != Type::I32 {
        return Err("a range has elements of i32".into());
    }
    if start >= end {
        return Err(format!("a range [{start}, {end}) is empty"));
    }
    match module.shape(module.value_type(r.result(module))) {
        Some(&[n]) if i64::from(end) - i64::from(start) == i64::from(n) => Ok(()),
        _ => Err(format!(
            "a range [{start}, {end}) needs a 1-D result of {} elements",
            i64::from(end) - i64::from(start)
        )),
    }
}

fn verify_unsplat(module: &Module, op: Op) -> Result<(), String> {
    let shape = module.shape(module.value_type(Unsplat(op).src(module))).unwrap_or(&[]);
    if shape.iter().all(|&d| d == 1) { Ok(()) } else { Err("the operand must have one element".into()) }
}

/// The block that a descriptor's accesses move.
fn block_of(module: &Module, desc: crate::Value) -> Result<Type, String> {
    match module.type_kind(module.value_type(desc)) {
        TypeKind::TensorDesc { block } => Ok(*block),
        _ => Err("a tensor descriptor expected".into()),
    }
}

fn verify_make_descriptor(module: &Module, op: Op) -> Result<(), String> {
    let make = MakeTensorDescriptor(op);
    let block = block_of(module, make.result(module))?;
    let rank = module.shape(block).map_or(0, <[u32]>::len);
    if !(1..=5).contains(&rank) || make.shape(module).len() != rank || make.strides(module).len() != rank {
        return Err("a descriptor has 1 to 5 dimensions, and as many extents and strides".into());
    }
    if module.pointee_type(module.value_type(make.base(module))) != Some(module.element_type(block)) {
        return Err("the base must point to the block's elements".into());
    }
    match make.padding(module) {
        None | Some(1 | 2) => Ok(()),
        Some(other) => Err(format!("the padding is 1 (zero) or 2 (NaN), not {other}")),
    }
}

/// An index for each dimension of the descriptor's block.
fn verify_indices(module: &Module, op: Op) -> Result<(), String> {
    let rank = module.shape(block_of(module, module.operands(op)[0])?).map_or(0, <[u32]>::len);
    let group = module.def(op).and_then(|d| d.group("indices"));
    let found = group.map_or(0, |g| module.operand_group(op, g).len());
    if found == rank { Ok(()) } else { Err(format!("{rank} indices expected, not {found}")) }
}

/// The elements of both operands have one width.
fn verify_dot(module: &Module, op: Op) -> Result<(), String> {
    let [a, b] = [Dot(op).a(module), Dot(op).b(module)].map(|v| module.value_type(v));
    if module.bits(a) == module.bits(b) {
        return Ok(());
    }
    let [a, b] = [a, b].map(|ty| print_type(module, ty));
    Err(format!("elements of the operands must have one width, but those of {a} and {b} differ"))
}

/// Elements and scales are of the formats.
fn verify_dot_scaled(module: &Module, op: Op) -> Result<(), String> {
    let dot = DotScaled(op);
    let element = |v: crate::Value| module.element_type(module.value_type(v));
    let sides = [
        ("lhs", dot.a(module), dot.a_scale(module), dot.a_elem_type(module), dot.lhs_k_pack(module)),
        ("rhs", dot.b(module), dot.b_scale(module), dot.b_elem_type(module), dot.rhs_k_pack(module)),
    ];
    for (side, value, scale, format, k_pack) in sides {
        let (found, name) = (element(value), format.keyword());
        // Bytes are floats of 8 bits, too.
        let bytes = found == Type::I8 && matches!(format, ScaleDotElemType::E4M3 | ScaleDotElemType::E5M2);
        if found != format.element() && !bytes {
            let [found, expected] = [found, format.element()].map(|t| print_type(module, t));
            return Err(format!("elements of {name} are {expected}, but those of the {side} are {found}"));
        }
        if !k_pack.0 && format != ScaleDotElemType::E2M1 {
            return Err(format!(
                "the {side} is {name}, and only e2m1 is packed along another dimension than K"
            ));
        }
        if let Some(scale) = scale
            && !matches!(element(scale), Type::I8 | Type::F8E4M3FN)
        {
            return Err(format!(
                "scales are i8 (E8M0) or f8E4M3FN, not {}",
                print_type(module, element(scale))
            ));
        }
    }
    Ok(())
}

/// The combine function takes accumulators, then elements, and gives accumulators.
fn verify_map(module: &Module, op: Op) -> Result<(), String> {
    let pack = MapElementwise(op).pack(module);
    if pack < 1 {
        return Err(format!("`pack` must be 1 or more, not {pack}"));
    }
    let block = module.region_block(module.regions(op)[0]);
    let stores = |&op: &Op| module.opcode(op) == Some(crate::Opcode::Tt(Kind::Store));
    if module.all_ops(op).iter().any(stores) {
        return Err("the function must not store".into());
    }
    let elements = |values: &[crate::Value]| -> Vec<Type> {
        let types = values.iter().map(|&v| module.element_type(module.value_type(v)));
        types.flat_map(|ty| std::iter::repeat_n(ty, pack as usize)).collect()
    };
    let types = |values: &[crate::Value]| values.iter().map(|&v| module.value_type(v)).collect::<Vec<Type>>();
    let (args, wanted) = (types(module.block_args(block)), elements(module.operands(op)));
    same_type_lists(module, "the function's arguments", &args, "the elements", &wanted)?;
    let returned = module.last_op(block).map(|o| types(module.operands(o))).unwrap_or_default();
    same_type_lists(
        module,
        "what the function returns",
        &returned,
        "the results' elements",
        &elements(module.results(op)),
    )
}

fn verify_combine(module: &Module, op: Op) -> Result<(), String> {
    let block = module.region_block(module.regions(op)[0]);
    let elements: Vec<Type> =
        module.operands(op).iter().map(|&v| module.element_type(module.value_type(v))).collect();
    let expected: Vec<Type> = elements.iter().chain(&elements).copied().collect();
    let types = |values: &[crate::Value]| values.iter().map(|&v| module.value_type(v)).collect::<Vec<Type>>();
    let args = types(module.block_args(block));
    same_type_lists(module, "the combine function's arguments", &args, "the elements", &expected)?;
    let returned = module.last_op(block).map(|o| types(module.operands(o))).unwrap_or_default();
    same_type_lists(module, "the combine function's results", &returned, "the elements", &elements)
}
