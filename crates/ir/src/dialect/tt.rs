//! `tt`: block-level operations of the Triton language. Tensors have no encoding until `ttg`.

use crate::attr_enum;
use crate::attrs::SymbolRef;
use crate::entity::{Attr, Op, Type};
use crate::module::Module;
use crate::opdef::{Access, Effect, Resource};
use crate::types::TypeKind;

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
    /// Rounding of a conversion to a narrower float.
    #[allow(missing_docs)]
    RoundingMode { Rtz = "rtz", Rtne = "rtne" }
}

attr_enum! {
    /// Grid axes.
    #[allow(missing_docs)]
    ProgramDim { X = "x", Y = "y", Z = "z" }
}

const READ: Effect = Effect::new(Access::Read, Resource::Global, Some("ptr"));
const WRITE: Effect = Effect::new(Access::Write, Resource::Global, Some("ptr"));
const OTHER: Effect = Effect::new(Access::Write, Resource::Other, None);
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
        regions(body)
        traits(Isolated)
    }

    /// Ends a function.
    op Return = "return" {
        operands(values: var)
        traits(Terminator)
        format "attr-dict ($values^ `:` type($values))?"
    }

    /// Calls a function of the module.
    op Call = "call" {
        operands(args: var)
        attrs(callee: SymbolRef = "callee")
        variadic_results(results)
        effects(OTHER)
        format "$callee `(` $args `)` attr-dict `:` functional-type($args, $results)"
    }

    /// The index of the program along an axis of the grid.
    op GetProgramId = "get_program_id" {
        attrs(axis: ProgramDim = "axis")
        results(result)
        traits(Pure)
        format "$axis attr-dict `:` type($result)"
    }

    /// The extent of the grid along an axis.
    op GetNumPrograms = "get_num_programs" {
        attrs(axis: ProgramDim = "axis")
        results(result)
        traits(Pure)
        format "$axis attr-dict `:` type($result)"
    }

    /// `[start, end)` as a 1-D `i32` tensor.
    op MakeRange = "make_range" {
        attrs(end: i32 = "end", start: i32 = "start")
        results(result)
        traits(Pure)
        format "attr-dict `:` type($result)"
        verify verify_make_range
    }

    /// A scalar in every element.
    op Splat = "splat" {
        operands(src: one)
        results(result)
        traits(Pure)
        format "$src attr-dict `:` type($src) `->` type($result)"
    }

    /// The only element of a tensor.
    op Unsplat = "unsplat" {
        operands(src: one)
        results(result)
        traits(Pure)
        format "$src attr-dict `:` type($src)"
    }

    /// Inserts a dimension of extent 1.
    op ExpandDims = "expand_dims" {
        operands(src: one)
        attrs(axis: i32 = "axis")
        results(result)
        traits(Pure)
        format "$src attr-dict `:` type($src) `->` type($result)"
    }

    /// Repeats dimensions of extent 1.
    op Broadcast = "broadcast" {
        operands(src: one)
        results(result)
        traits(Pure)
        format "$src attr-dict `:` type($src) `->` type($result)"
    }

    /// The same elements in row-major order under another shape; with `allow_reorder`, in any order.
    op Reshape = "reshape" {
        operands(src: one)
        attrs(allow_reorder: bool = "allow_reorder", efficient_layout: bool = "efficient_layout")
        results(result)
        traits(Pure)
        format "$src (`allow_reorder` $allow_reorder^)? (`efficient_layout` $efficient_layout^)? attr-dict `:` type($src) `->` type($result)"
    }

    /// Permutes dimensions: result dimension i is source dimension `order[i]`.
    op Trans = "trans" {
        operands(src: one)
        attrs(order: Vec<i32> = "order")
        results(result)
        traits(Pure)
        format "$src attr-dict `:` type($src) `->` type($result)"
    }

    /// Two tensors along a new innermost dimension of extent 2.
    op Join = "join" {
        operands(lhs: one, rhs: one)
        results(result)
        traits(Pure)
        format "$lhs `,` $rhs attr-dict `:` type($lhs) `->` type($result)"
    }

    /// The two halves of an innermost dimension of extent 2.
    op Split = "split" {
        operands(src: one)
        results(lhs, rhs)
        traits(Pure)
        format "$src attr-dict `:` type($src) `->` type($lhs)"
    }

    /// Two 1-D tensors one after the other; the order of elements is not specified.
    op Cat = "cat" {
        operands(lhs: one, rhs: one)
        results(result)
        traits(Pure)
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
        effects(READ)
        format "$ptr (`,` $mask^)? (`,` $other^)? oilist(`cacheModifier` `=` $cacheModifier | `evictionPolicy` `=` $evictionPolicy) attr-dict `:` type($ptr)"
        verify verify_load
    }

    /// Stores through a pointer or a tensor of pointers where the mask holds.
    op Store = "store" {
        operands(ptr: one, value: one, mask: opt)
        attrs(cache: CacheModifier = "cacheModifier", evict: EvictionPolicy = "evictionPolicy")
        effects(WRITE)
        format "$ptr `,` $value (`,` $mask^)? oilist(`cacheModifier` `=` $cacheModifier | `evictionPolicy` `=` $evictionPolicy) attr-dict `:` type($ptr)"
        verify verify_store
    }

    /// Pointer plus offset, in elements.
    op Addptr = "addptr" {
        operands(ptr: one, offset: one)
        same_as(ptr)
        traits(Pure, Elementwise)
        format "$ptr `,` $offset attr-dict `:` type($result) `,` type($offset)"
    }

    /// A pointer to a tile of a tensor in memory: extents and strides (`i64`), offsets (`i32`). The result points to a
    /// tensor type.
    op MakeTensorPtr = "make_tensor_ptr" {
        operands(base: one, shape: var, strides: var, offsets: var)
        attrs(order: Vec<i32> = "order")
        results(result)
        traits(Pure)
        format "$base `,` `[` $shape `]` `,` `[` $strides `]` `,` `[` $offsets `]` attr-dict `:` short-type(tt.ptr, $result)"
    }

    /// The tile pointer moved by offsets (`i32`).
    op Advance = "advance" {
        operands(ptr: one, offsets: var)
        same_as(ptr)
        traits(Pure)
        format "$ptr `,` `[` $offsets `]` attr-dict `:` short-type(tt.ptr, $result)"
    }

    /// Describes a tensor in memory for block accesses: extents (`i32`) and strides (`i64`, in elements; the last is 1).
    /// `padding` is 2 where what is out of bounds reads as NaN; absent, it reads as zero.
    op MakeTensorDescriptor = "make_tensor_descriptor" {
        operands(base: one, shape: var, strides: var)
        attrs(padding: Option<i32> = "padding")
        results(result)
        traits(Pure)
        format "$base `,` `[` $shape `]` `,` `[` $strides `]` attr-dict `:` short-type(tt.ptr, $base) `,` short-type(tt.tensordesc, $result)"
        verify verify_make_descriptor
    }

    /// Loads the block at the indices (`i32`); out of bounds it reads as the descriptor's padding. Leading dimensions of
    /// extent 1 may be missing in the result.
    op DescriptorLoad = "descriptor_load" {
        operands(desc: one, indices: var)
        attrs(cache: CacheModifier = "cacheModifier", evict: EvictionPolicy = "evictionPolicy")
        results(result)
        effects(READ_DESC)
        format "$desc `[` $indices `]` oilist(`cacheModifier` `=` $cacheModifier | `evictionPolicy` `=` $evictionPolicy) attr-dict `:` type($desc) `->` type($result)"
        verify verify_descriptor_load
    }

    /// Stores a block at the indices; what is out of bounds is not stored.
    op DescriptorStore = "descriptor_store" {
        operands(desc: one, src: one, indices: var)
        effects(READ_DESC, WRITE_DESC)
        format "$desc `[` $indices `]` `,` $src attr-dict `:` type($desc) `,` type($src)"
        verify verify_descriptor_store
    }

    /// Combines a block at the indices with what lies there, element by element and atomically; what is out of bounds is
    /// left out.
    op DescriptorReduce = "descriptor_reduce" {
        operands(desc: one, src: one, indices: var)
        attrs(kind: DescriptorReduceKind = "kind")
        effects(READ_DESC, WRITE_DESC)
        format "$kind `,` $desc `[` $indices `]` `,` $src attr-dict `:` type($desc) `,` type($src)"
        verify verify_descriptor_reduce
    }

    /// Loads parts of the rows `x_offsets` of a matrix, from the column `y_offset` on. The descriptor's block is one row.
    op DescriptorGather = "descriptor_gather" {
        operands(desc: one, x_offsets: one, y_offset: one)
        results(result)
        effects(READ_DESC)
        format "$desc `[` $x_offsets `,` $y_offset `]` attr-dict `:` functional-type(operands, $result)"
        verify verify_descriptor_gather
    }

    /// Stores parts of the rows `x_offsets` of a matrix, from the column `y_offset` on. The descriptor's block is one row.
    op DescriptorScatter = "descriptor_scatter" {
        operands(desc: one, x_offsets: one, y_offset: one, src: one)
        effects(READ_DESC, WRITE_DESC)
        format "$desc `[` $x_offsets `,` $y_offset `]` `,` $src attr-dict `:` type(operands)"
        verify verify_descriptor_scatter
    }

    /// An integer as a pointer.
    op IntToPtr = "int_to_ptr" {
        operands(src: one)
        results(result)
        traits(Pure, Elementwise)
        format "$src attr-dict `:` type($src) `->` type($result)"
    }

    /// A pointer as an integer.
    op PtrToInt = "ptr_to_int" {
        operands(src: one)
        results(result)
        traits(Pure, Elementwise)
        format "$src attr-dict `:` type($src) `->` type($result)"
    }

    /// The same bits as another type; also between pointer types.
    op Bitcast = "bitcast" {
        operands(src: one)
        results(result)
        traits(Pure, Elementwise)
        format "$src attr-dict `:` type($src) `->` type($result)"
    }

    /// Conversion between floats where one is an fp8, or with a given rounding.
    op FpToFp = "fp_to_fp" {
        operands(src: one)
        attrs(rounding: Option<RoundingMode> = "rounding")
        results(result)
        traits(Pure, Elementwise)
        format "$src attr-dict (`,` `rounding` `=` $rounding^)? `:` type($src) `->` type($result)"
    }

    /// min(max(x, lo), hi); with `propagate_nan` a NaN x stays NaN.
    op Clampf = "clampf" {
        operands(x: one, min: one, max: one)
        attrs(propagate_nan: bool = "propagateNan")
        same_as(x)
        traits(Pure, Elementwise, SameTypes)
    }

    /// Square root, rounded to nearest.
    op PreciseSqrt = "precise_sqrt" {
        operands(x: one)
        same_as(x)
        traits(Pure, Elementwise, SameTypes)
        format "$x attr-dict `:` type($result)"
    }

    /// Division, rounded to nearest.
    op PreciseDivf = "precise_divf" {
        operands(x: one, y: one)
        same_as(x)
        traits(Pure, Elementwise, SameTypes)
        format "$x `,` $y attr-dict `:` type($result)"
    }

    /// The upper half of an unsigned product.
    op Mulhiui = "mulhiui" {
        operands(x: one, y: one)
        same_as(x)
        traits(Pure, Elementwise, SameTypes)
        format "$x `,` $y attr-dict `:` type($result)"
    }

    /// d = a · b + c for a (M×K), b (K×N), c and d (M×N), or batched with a leading dimension.
    op Dot = "dot" {
        operands(a: one, b: one, c: one)
        attrs(input_precision: InputPrecision = "inputPrecision", max_num_imprecise_acc: Option<i32> = "maxNumImpreciseAcc")
        same_as(c)
        traits(Pure)
        format "$a `,` $b `,` $c (`,` `inputPrecision` `=` $inputPrecision^)? attr-dict `:` type($a) `*` type($b) `->` type($result)"
        verify verify_dot
    }

    /// Combines elements along an axis with the function in the region (associative and commutative).
    /// The region's arguments are the accumulators and then the elements, one of each per operand.
    op Reduce = "reduce" {
        operands(srcs: var)
        attrs(axis: i32 = "axis")
        variadic_results(results)
        regions(combine)
        traits(RecursiveEffects, SingleBlock)
    }

    /// Ends the region of a reduce.
    op ReduceReturn = "reduce.return" {
        operands(values: var)
        traits(Terminator)
        format "$values attr-dict `:` type($values)"
    }

    /// Inclusive prefix combination along an axis with the function in the region (associative).
    op Scan = "scan" {
        operands(srcs: var)
        attrs(axis: i32 = "axis", reverse: bool = "reverse")
        variadic_results(results)
        regions(combine)
        traits(RecursiveEffects, SingleBlock)
    }

    /// Ends the region of a scan.
    op ScanReturn = "scan.return" {
        operands(values: var)
        traits(Terminator)
        format "$values attr-dict `:` type($values)"
    }

    /// How often each of 0..bins occurs in an integer tensor; other values are not counted.
    op Histogram = "histogram" {
        operands(src: one, mask: opt)
        results(result)
        traits(Pure)
        format "$src (`,` $mask^)? attr-dict `:` type($src) `->` type($result)"
    }

    /// result[i][j] = src[indices[i][j]][j] for axis 0, and so on.
    op Gather = "gather" {
        operands(src: one, indices: one)
        attrs(axis: i32 = "axis", efficient_layout: bool = "efficient_layout")
        results(result)
        traits(Pure)
        format "$src `[` $indices `]` (`efficient_layout` $efficient_layout^)? attr-dict `:` `(` type($src) `,` type($indices) `)` `->` type($result)"
    }

    /// Atomic read-modify-write; gives the old value.
    op AtomicRmw = "atomic_rmw" {
        operands(ptr: one, val: one, mask: opt)
        attrs(rmw_op: RmwOp = "atomic_rmw_op", sem: MemSemantic = "sem", scope: MemSyncScope = "scope")
        results(result)
        effects(READ, WRITE)
        format "$atomic_rmw_op `,` $sem `,` $scope `,` $ptr `,` $val (`,` $mask^)? attr-dict `:` functional-type(operands, $result)"
    }

    /// Atomic compare-and-swap; gives the old value.
    op AtomicCas = "atomic_cas" {
        operands(ptr: one, cmp: one, val: one)
        attrs(sem: MemSemantic = "sem", scope: MemSyncScope = "scope")
        results(result)
        effects(READ, WRITE)
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
        effects(OTHER)
        format "$asm_string attr-dict ($args^ `:` type($args))? `->` type($results)"
    }

    /// Prints from the device: the prefix, then each argument's elements with their program and index.
    op Print = "print" {
        operands(args: var)
        attrs(prefix: String = "prefix", hex: bool = "hex", is_signed: Vec<i32> = "isSigned")
        effects(OTHER)
        format "$prefix attr-dict (`:` $args^ `:` type($args))?"
    }

    /// Traps where the condition does not hold.
    op Assert = "assert" {
        operands(condition: one)
        attrs(message: String = "message")
        effects(OTHER)
        format "$condition `,` $message attr-dict `:` type($condition)"
    }
}

fn verify_make_range(module: &Module, op: Op) -> Result<(), String> {
    let r = MakeRange(op);
    let (start, end) = (r.start(module), r.end(module));
    match module.shape(module.value_type(r.result(module))) {
        Some(&[n]) if i64::from(end) - i64::from(start) == i64::from(n) => Ok(()),
        _ => Err(format!(
            "a range [{start}, {end}) needs a 1-D result of {} elements",
            i64::from(end) - i64::from(start)
        )),
    }
}

fn check_mask(module: &Module, ptr: Type, mask: Option<crate::Value>) -> Result<(), String> {
    let Some(mask) = mask else { return Ok(()) };
    let ty = module.value_type(mask);
    if module.element_type(ty) != Type::I1 || module.shape(ty) != module.shape(ptr) {
        return Err("the mask must be i1 with the pointer's shape".into());
    }
    Ok(())
}

fn verify_load(module: &Module, op: Op) -> Result<(), String> {
    let load = Load(op);
    let ptr = module.value_type(load.ptr(module));
    check_mask(module, ptr, load.mask(module))?;
    let result = module.value_type(load.result(module));
    // A pointer to a tile gives the tile.
    if module.pointee_type(ptr) == Some(result) {
        return Ok(());
    }
    if module.pointee_type(ptr) != Some(module.element_type(result))
        || module.shape(ptr) != module.shape(result)
    {
        return Err("the result must have the pointer's shape and pointee type".into());
    }
    match load.other(module) {
        Some(o) if module.value_type(o) != result => Err("`other` must have the result's type".into()),
        _ => Ok(()),
    }
}

fn verify_store(module: &Module, op: Op) -> Result<(), String> {
    let store = Store(op);
    let ptr = module.value_type(store.ptr(module));
    check_mask(module, ptr, store.mask(module))?;
    let value = module.value_type(store.value(module));
    if module.pointee_type(ptr) == Some(value) {
        return Ok(());
    }
    if module.pointee_type(ptr) != Some(module.element_type(value))
        || module.shape(ptr) != module.shape(value)
    {
        return Err("the value must have the pointer's shape and pointee type".into());
    }
    Ok(())
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

/// A whole block at indices; leading dimensions of extent 1 may be missing in the tensor.
fn check_block(
    module: &Module,
    desc: crate::Value,
    indices: &[crate::Value],
    tensor: crate::Value,
) -> Result<(), String> {
    let (block, tensor) = (block_of(module, desc)?, module.value_type(tensor));
    let (from, to) = (module.shape(block).unwrap_or(&[]), module.shape(tensor).unwrap_or(&[]));
    if indices.len() != from.len() || indices.iter().any(|&i| module.value_type(i) != Type::I32) {
        return Err(format!("{} indices of type i32 expected", from.len()));
    }
    let missing = from.len().saturating_sub(to.len());
    if from[..missing].iter().any(|&d| d != 1)
        || from[missing..] != *to
        || module.element_type(block) != module.element_type(tensor)
    {
        return Err("the tensor must be the descriptor's block".into());
    }
    Ok(())
}

fn verify_descriptor_load(module: &Module, op: Op) -> Result<(), String> {
    let load = DescriptorLoad(op);
    check_block(module, load.desc(module), load.indices(module), load.result(module))
}

fn verify_descriptor_store(module: &Module, op: Op) -> Result<(), String> {
    let store = DescriptorStore(op);
    check_block(module, store.desc(module), store.indices(module), store.src(module))
}

fn verify_descriptor_reduce(module: &Module, op: Op) -> Result<(), String> {
    let reduce = DescriptorReduce(op);
    check_block(module, reduce.desc(module), reduce.indices(module), reduce.src(module))
}

/// Rows of a matrix.
fn check_rows(
    module: &Module,
    desc: crate::Value,
    x_offsets: crate::Value,
    y_offset: crate::Value,
    tensor: crate::Value,
) -> Result<(), String> {
    let (block, tensor) = (block_of(module, desc)?, module.value_type(tensor));
    let x = module.value_type(x_offsets);
    match (module.shape(block), module.shape(x), module.shape(tensor)) {
        (Some(&[1, columns]), Some(&[rows]), Some(&[r, c]))
            if r == rows
                && c == columns
                && module.element_type(x) == Type::I32
                && module.value_type(y_offset) == Type::I32
                && module.element_type(tensor) == module.element_type(block) =>
        {
            Ok(())
        }
        _ => Err("a block of one row, a vector of i32 rows, and a tensor of as many rows expected".into()),
    }
}

fn verify_descriptor_gather(module: &Module, op: Op) -> Result<(), String> {
    let g = DescriptorGather(op);
    check_rows(module, g.desc(module), g.x_offsets(module), g.y_offset(module), g.result(module))
}

fn verify_descriptor_scatter(module: &Module, op: Op) -> Result<(), String> {
    let s = DescriptorScatter(op);
    check_rows(module, s.desc(module), s.x_offsets(module), s.y_offset(module), s.src(module))
}

fn verify_dot(module: &Module, op: Op) -> Result<(), String> {
    let dot = Dot(op);
    let shape = |v| module.shape(module.value_type(v)).unwrap_or(&[]).to_vec();
    let (a, b, c) = (shape(dot.a(module)), shape(dot.b(module)), shape(dot.c(module)));
    let r = a.len();
    if !(r == 2 || r == 3) || b.len() != r || c.len() != r {
        return Err("operands must all have rank 2, or all rank 3".into());
    }
    if a[r - 1] != b[r - 2] || a[r - 2] != c[r - 2] || b[r - 1] != c[r - 1] || a[..r - 2] != b[..r - 2] {
        return Err(format!("shapes {a:?} · {b:?} -> {c:?} do not fit"));
    }
    Ok(())
}
