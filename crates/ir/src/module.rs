//! The module: arenas, and the primitive reads and edits on which everything else stands.

use cranelift_entity::PrimaryMap;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::attrs::{AttrKind, Name};
use crate::dialect::builtin;
use crate::entity::{Attr, Block, Loc, Op, Region, Type, Value};
use crate::interner::Interner;
use crate::launch::Relied;
use crate::opdef::{OpDef, Opcode, Trait};
use crate::types::{FloatKind, Shape, TypeKind};

/// A source location.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LocKind {
    /// `loc(unknown)`
    Unknown,
    /// `loc("file":line:column)`, both counted from 1.
    File {
        /// The file's name as given.
        file: String,
        /// Line, from 1.
        line: u32,
        /// Column, from 1.
        column: u32,
    },
    /// `loc("name"(child))`
    Name(String, Loc),
    /// `loc(callsite(callee at caller))`
    CallSite {
        /// Where in the called function.
        callee: Loc,
        /// Where it was called from.
        caller: Loc,
    },
    /// `loc(fused[a, b])`
    Fused(Vec<Loc>),
}

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ValueDef {
    /// The n-th result of an operation.
    Result(Op, u32),
    /// The n-th argument of a block.
    Argument(Block, u32),
}

/// One use of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Use {
    /// The using operation.
    pub op: Op,
    /// The operand's index in it.
    pub index: u32,
}

#[derive(Debug, Clone)]
struct ValueData {
    ty: Type,
    def: ValueDef,
    uses: SmallVec<[Use; 2]>,
}

#[derive(Debug, Clone)]
struct OpData {
    /// `None` for an unregistered operation, whose name stands in `unregistered`.
    def: Option<&'static OpDef>,
    operands: SmallVec<[Value; 4]>,
    /// Sizes of the operand groups, where the declaration has groups of varying size.
    segments: SmallVec<[u16; 4]>,
    results: SmallVec<[Value; 1]>,
    attrs: SmallVec<[(Name, Attr); 2]>,
    regions: SmallVec<[Region; 1]>,
    successors: SmallVec<[Block; 2]>,
    loc: Loc,
    parent: Option<Block>,
    prev: Option<Op>,
    next: Option<Op>,
    erased: bool,
}

#[derive(Debug, Clone, Default)]
struct BlockData {
    args: SmallVec<[Value; 4]>,
    first: Option<Op>,
    last: Option<Op>,
    parent: Option<Region>,
}

#[derive(Debug, Clone, Default)]
struct RegionData {
    blocks: SmallVec<[Block; 1]>,
    parent: Option<Op>,
}

/// What is needed to create an operation.
#[derive(Debug, Clone)]
pub struct OpSpec {
    /// The declaration; `None` for an unregistered operation.
    pub def: Option<&'static OpDef>,
    /// Operands, all groups in order.
    pub operands: SmallVec<[Value; 4]>,
    /// Sizes of the operand groups (filled for declarations with groups of varying size).
    pub segments: SmallVec<[u16; 4]>,
    /// Result types.
    pub results: SmallVec<[Type; 1]>,
    /// Attributes, declared and others.
    pub attrs: SmallVec<[(Name, Attr); 2]>,
    /// Successor blocks.
    pub successors: SmallVec<[Block; 2]>,
    /// How many empty regions to create.
    pub regions: usize,
    /// Location.
    pub loc: Loc,
}

impl OpSpec {
    /// An operation of the given declaration with nothing filled in.
    pub fn new(def: &'static OpDef, loc: Loc) -> Self {
        OpSpec {
            def: Some(def),
            operands: SmallVec::new(),
            segments: SmallVec::new(),
            results: SmallVec::new(),
            attrs: SmallVec::new(),
            successors: SmallVec::new(),
            regions: def.regions.len(),
            loc,
        }
    }

    /// An operation that no dialect declares. The name is kept in the attribute [`Module::UNREGISTERED_NAME`].
    pub fn unregistered(module: &mut Module, name: &str, loc: Loc) -> Self {
        let name = module.attr(AttrKind::Str(name.to_string()));
        let mut attrs = SmallVec::new();
        attrs.push((Name::Borrowed(Module::UNREGISTERED_NAME), name));
        OpSpec {
            def: None,
            operands: SmallVec::new(),
            segments: SmallVec::new(),
            results: SmallVec::new(),
            attrs,
            successors: SmallVec::new(),
            regions: 0,
            loc,
        }
    }

    /// Appends an operand group of one value.
    pub fn operand(&mut self, value: Value) {
        self.operand_group(&[value]);
    }

    /// Appends an operand group.
    pub fn operand_group(&mut self, values: &[Value]) {
        self.operands.extend_from_slice(values);
        if self.def.is_some_and(OpDef::has_segments) {
            self.segments.push(values.len() as u16);
        }
    }

    /// Sets an attribute, if there is one.
    pub fn attr(&mut self, name: impl Into<Name>, attr: Option<Attr>) {
        if let Some(attr) = attr {
            self.attrs.push((name.into(), attr));
        }
    }
}

/// A module: the IR and everything that it refers to.
#[derive(Debug, Clone)]
pub struct Module {
    ops: PrimaryMap<Op, OpData>,
    blocks: PrimaryMap<Block, BlockData>,
    regions: PrimaryMap<Region, RegionData>,
    values: PrimaryMap<Value, ValueData>,
    types: Interner<Type, TypeKind>,
    attrs: Interner<Attr, AttrKind>,
    locs: Interner<Loc, LocKind>,
    /// What a value is called in the source, where it has a name there.
    names: FxHashMap<Value, Box<str>>,
    relied: Relied,
    root: Op,
}

impl Default for Module {
    fn default() -> Self {
        Self::new()
    }
}

impl Module {
    /// The attribute under which an unregistered operation keeps its name.
    pub const UNREGISTERED_NAME: &'static str = "__name";

    /// An empty module: a `builtin.module` operation with an empty body.
    pub fn new() -> Self {
        let mut types = Interner::new();
        for kind in [
            TypeKind::Int(1),
            TypeKind::Int(8),
            TypeKind::Int(16),
            TypeKind::Int(32),
            TypeKind::Int(64),
            TypeKind::Float(FloatKind::F16),
            TypeKind::Float(FloatKind::BF16),
            TypeKind::Float(FloatKind::F32),
            TypeKind::Float(FloatKind::F64),
            TypeKind::Index,
            TypeKind::Float(FloatKind::F8E4M3FN),
            TypeKind::Float(FloatKind::F8E5M2),
            TypeKind::AsyncToken,
            TypeKind::Ring,
        ] {
            types.intern(kind);
        }
        let mut locs = Interner::new();
        locs.intern(LocKind::Unknown);
        let mut module = Module {
            ops: PrimaryMap::new(),
            blocks: PrimaryMap::new(),
            regions: PrimaryMap::new(),
            values: PrimaryMap::new(),
            types,
            attrs: Interner::new(),
            locs,
            names: FxHashMap::default(),
            relied: Relied::default(),
            root: Op(0),
        };
        let spec = OpSpec::new(crate::dialect::builtin::Kind::Module.def(), Loc::UNKNOWN);
        module.root = module.create_op(spec);
        let region = module.regions(module.root)[0];
        module.append_block(region, &[]);
        module
    }

    /// What is taken for no negative numbers, as the launch sees to it ([`trusts_divisor`](crate::launch::trusts_divisor)).
    pub fn relied(&self) -> &Relied {
        &self.relied
    }

    // ---- types, attributes, locations -------------------------------------------------------------------------

    /// The reference of a type.
    pub fn ty(&mut self, kind: TypeKind) -> Type {
        self.types.intern(kind)
    }

    /// What a type is.
    pub fn type_kind(&self, ty: Type) -> &TypeKind {
        self.types.get(ty)
    }

    /// The type of this kind, if the module has it already.
    pub fn find_type(&self, kind: &TypeKind) -> Option<Type> {
        self.types.find(kind)
    }

    /// An integer type.
    pub fn int_type(&mut self, bits: u16) -> Type {
        self.ty(TypeKind::Int(bits))
    }

    /// `!tt.ptr<pointee>` to global memory.
    pub fn ptr_type(&mut self, pointee: Type) -> Type {
        self.ty(TypeKind::Ptr { pointee, address_space: 1 })
    }

    /// A tensor type.
    pub fn tensor_type(&mut self, shape: &[u32], element: Type, encoding: Option<Attr>) -> Type {
        self.ty(TypeKind::Tensor { shape: Shape::from_slice(shape), element, encoding })
    }

    /// A buffer in shared memory, `#ttg.shared_memory`.
    pub fn buffer_type(&mut self, shape: &[u32], element: Type, encoding: Attr, mutable: bool) -> Type {
        let memory_space = self.attr(AttrKind::Opaque("#ttg.shared_memory".into()));
        let (shape, encoding) = (Shape::from_slice(shape), Some(encoding));
        self.ty(TypeKind::MemDesc { shape, element, encoding, memory_space, mutable, alloc_shape: None })
    }

    /// The tensor's shape; `None` for anything but a tensor or a buffer.
    pub fn shape(&self, ty: Type) -> Option<&[u32]> {
        match self.type_kind(ty) {
            TypeKind::Tensor { shape, .. } | TypeKind::MemDesc { shape, .. } => Some(shape),
            _ => None,
        }
    }

    /// The tensor's or buffer's encoding, if any.
    pub fn encoding(&self, ty: Type) -> Option<Attr> {
        match self.type_kind(ty) {
            TypeKind::Tensor { encoding, .. } | TypeKind::MemDesc { encoding, .. } => *encoding,
            _ => None,
        }
    }

    /// The element type of a tensor, buffer or view; a scalar is its own element type.
    pub fn element_type(&self, ty: Type) -> Type {
        match self.type_kind(ty) {
            TypeKind::Tensor { element, .. }
            | TypeKind::MemDesc { element, .. }
            | TypeKind::Shaped { element, .. } => *element,
            _ => ty,
        }
    }

    /// The type that a pointer (or a tensor of pointers) points to.
    pub fn pointee_type(&self, ty: Type) -> Option<Type> {
        match self.type_kind(self.element_type(ty)) {
            TypeKind::Ptr { pointee, .. } => Some(*pointee),
            _ => None,
        }
    }

    /// Whether it is a pointer (or a tensor of pointers) to shared memory.
    pub fn is_shared_pointer(&self, ty: Type) -> bool {
        matches!(self.type_kind(self.element_type(ty)), TypeKind::Ptr { address_space: 3, .. })
    }

    /// Whether it is a pointer (or a tensor of pointers) to shared memory of another CTA of the cluster.
    pub fn is_remote_pointer(&self, ty: Type) -> bool {
        matches!(
            self.type_kind(self.element_type(ty)),
            TypeKind::Ptr { address_space: crate::types::REMOTE, .. }
        )
    }

    /// Whether it is a pointer (or a tensor of pointers) to the memory of ranks that a library reaches.
    pub fn is_symmetric_pointer(&self, ty: Type) -> bool {
        matches!(
            self.type_kind(self.element_type(ty)),
            TypeKind::Ptr { address_space: crate::types::SYMMETRIC, .. }
        )
    }

    /// The type with its element replaced: `tensor<8xf32>` and `i1` give `tensor<8xi1>`; a scalar gives `element`.
    pub fn with_element(&mut self, ty: Type, element: Type) -> Type {
        match self.type_kind(ty).clone() {
            TypeKind::Tensor { shape, encoding, .. } => {
                self.ty(TypeKind::Tensor { shape, element, encoding })
            }
            TypeKind::Shaped { container, shape, rest, .. } => {
                self.ty(TypeKind::Shaped { container, shape, element, rest })
            }
            _ => element,
        }
    }

    /// The tensor or buffer type with its encoding replaced; other types are returned as they are.
    pub fn with_encoding(&mut self, ty: Type, encoding: Option<Attr>) -> Type {
        match self.type_kind(ty).clone() {
            TypeKind::Tensor { shape, element, .. } => self.ty(TypeKind::Tensor { shape, element, encoding }),
            TypeKind::MemDesc { shape, element, memory_space, mutable, alloc_shape, .. } => {
                self.ty(TypeKind::MemDesc { shape, element, encoding, memory_space, mutable, alloc_shape })
            }
            _ => ty,
        }
    }

    /// Whether a type is a tensor.
    pub fn is_tensor(&self, ty: Type) -> bool {
        matches!(self.type_kind(ty), TypeKind::Tensor { .. })
    }

    /// Whether the element type is an integer (`index` included).
    pub fn is_int(&self, ty: Type) -> bool {
        matches!(self.type_kind(self.element_type(ty)), TypeKind::Int(_) | TypeKind::Index)
    }

    /// Whether the element type is a floating-point number.
    pub fn is_float(&self, ty: Type) -> bool {
        matches!(self.type_kind(self.element_type(ty)), TypeKind::Float(_))
    }

    /// Whether the element type is a pointer.
    pub fn is_ptr(&self, ty: Type) -> bool {
        matches!(self.type_kind(self.element_type(ty)), TypeKind::Ptr { .. })
    }

    /// The width of the element type in bits: pointers and `index` count 64; 0 where there is no width.
    pub fn bits(&self, ty: Type) -> u32 {
        match self.type_kind(self.element_type(ty)) {
            TypeKind::Int(b) => u32::from(*b),
            TypeKind::Float(k) => k.bits(),
            TypeKind::Ptr { .. } | TypeKind::Index => 64,
            _ => 0,
        }
    }

    /// The reference of an attribute.
    pub fn attr(&mut self, kind: AttrKind) -> Attr {
        self.attrs.intern(kind)
    }

    /// What an attribute is.
    pub fn attr_kind(&self, attr: Attr) -> &AttrKind {
        self.attrs.get(attr)
    }

    /// The encoding that an attribute holds.
    pub fn encoding_of(&self, attr: Attr) -> Option<&crate::Encoding> {
        match self.attr_kind(attr) {
            AttrKind::Encoding(e) => Some(e),
            _ => None,
        }
    }

    /// The reference of a location.
    pub fn loc(&mut self, kind: LocKind) -> Loc {
        self.locs.intern(kind)
    }

    /// What a location is.
    pub fn loc_kind(&self, loc: Loc) -> &LocKind {
        self.locs.get(loc)
    }

    // ---- structure --------------------------------------------------------------------------------------------

    /// The `builtin.module` operation.
    pub fn root(&self) -> Op {
        self.root
    }

    /// The module's body, which holds the functions.
    pub fn body(&self) -> Block {
        self.region_blocks(self.regions(self.root)[0])[0]
    }

    /// The number of operations ever created (an upper bound of what is live), for dense side tables.
    pub fn num_ops(&self) -> usize {
        self.ops.len()
    }

    /// The number of values ever created, for dense side tables.
    pub fn num_values(&self) -> usize {
        self.values.len()
    }

    /// The function of a name.
    pub fn function(&self, name: &str) -> Option<Op> {
        self.block_ops(self.body()).find(|&op| self.symbol_name(op) == Some(name))
    }

    /// The function of a name in the module around an operation, which may lie within this one.
    pub fn function_beside(&self, op: Op, name: &str) -> Option<Op> {
        let mut around = std::iter::successors(self.parent_op(op), |&at| self.parent_op(at));
        let module = around.find(|&at| self.opcode(at) == Some(builtin::Module::OPCODE))?;
        self.block_ops(self.region_block(self.regions(module)[0]))
            .find(|&op| self.symbol_name(op) == Some(name))
    }

    /// The `sym_name` of an operation.
    pub fn symbol_name(&self, op: Op) -> Option<&str> {
        match self.attr_kind(self.op_attr(op, "sym_name")?) {
            AttrKind::Str(s) | AttrKind::Symbol(s) => Some(s),
            _ => None,
        }
    }

    /// The declaration of an operation; `None` for an unregistered one.
    pub fn def(&self, op: Op) -> Option<&'static OpDef> {
        self.ops[op].def
    }

    /// The opcode; `None` for an unregistered operation.
    pub fn opcode(&self, op: Op) -> Option<Opcode> {
        self.ops[op].def.map(|d| d.opcode)
    }

    /// The full name, such as `tt.load`.
    pub fn op_name(&self, op: Op) -> &str {
        match self.ops[op].def {
            Some(def) => def.name,
            None => match self.op_attr(op, Self::UNREGISTERED_NAME).map(|a| self.attr_kind(a)) {
                Some(AttrKind::Str(s)) => s,
                _ => "<unnamed>",
            },
        }
    }

    /// Whether an operation has a trait; an unregistered one has none. One whose effects are there under a condition alone is pure where
    /// they aren't.
    pub fn has_trait(&self, op: Op, t: Trait) -> bool {
        let has = self.ops[op].def.filter(|d| d.has(t));
        has.is_some_and(|d| t != Trait::Pure || d.effects.is_empty() || crate::effects::is_pure(self, op))
    }

    /// All operands.
    pub fn operands(&self, op: Op) -> &[Value] {
        &self.ops[op].operands
    }

    /// The operands of the n-th declared group.
    pub fn operand_group(&self, op: Op, group: usize) -> &[Value] {
        let data = &self.ops[op];
        let (start, len) = if data.segments.is_empty() {
            (group, 1)
        } else {
            (
                data.segments[..group].iter().map(|&n| n as usize).sum(),
                data.segments.get(group).copied().unwrap_or(0) as usize,
            )
        };
        data.operands.get(start..start + len).unwrap_or(&[])
    }

    /// The sizes of the operand groups; empty where each has one operand.
    pub fn segments(&self, op: Op) -> &[u16] {
        &self.ops[op].segments
    }

    /// All results.
    pub fn results(&self, op: Op) -> &[Value] {
        &self.ops[op].results
    }

    /// The only result.
    ///
    /// # Panics
    /// If there is not exactly one.
    pub fn result(&self, op: Op) -> Value {
        let results = self.results(op);
        assert!(results.len() == 1, "{} has {} results", self.op_name(op), results.len());
        results[0]
    }

    /// The regions.
    pub fn regions(&self, op: Op) -> &[Region] {
        &self.ops[op].regions
    }

    /// The successor blocks.
    pub fn successors(&self, op: Op) -> &[Block] {
        &self.ops[op].successors
    }

    /// The location.
    pub fn op_loc(&self, op: Op) -> Loc {
        self.ops[op].loc
    }

    /// Sets the location.
    pub fn set_op_loc(&mut self, op: Op, loc: Loc) {
        self.ops[op].loc = loc;
    }

    /// An attribute.
    pub fn op_attr(&self, op: Op, name: &str) -> Option<Attr> {
        self.ops[op].attrs.iter().find(|(n, _)| n == name).map(|&(_, a)| a)
    }

    /// All attributes, in the order in which they were set.
    pub fn op_attrs(&self, op: Op) -> &[(Name, Attr)] {
        &self.ops[op].attrs
    }

    /// Sets or replaces an attribute.
    pub fn set_attr(&mut self, op: Op, name: impl Into<Name>, attr: Attr) {
        let name = name.into();
        let attrs = &mut self.ops[op].attrs;
        match attrs.iter_mut().find(|(n, _)| *n == name) {
            Some((_, a)) => *a = attr,
            None => attrs.push((name, attr)),
        }
    }

    /// Removes an attribute.
    pub fn remove_attr(&mut self, op: Op, name: &str) {
        self.ops[op].attrs.retain(|(n, _)| n != name);
    }

    /// An attribute read as an integer.
    pub fn int_attr(&self, op: Op, name: &str) -> Option<i64> {
        match self.attr_kind(self.op_attr(op, name)?) {
            AttrKind::Int(v, _) => Some(*v),
            _ => None,
        }
    }

    /// An attribute read as a string.
    pub fn str_attr(&self, op: Op, name: &str) -> Option<&str> {
        match self.attr_kind(self.op_attr(op, name)?) {
            AttrKind::Str(text) => Some(text),
            _ => None,
        }
    }

    /// Sets an `i32` attribute.
    pub fn set_i32_attr(&mut self, op: Op, name: impl Into<Name>, value: i32) {
        let attr = self.attr(AttrKind::Int(i64::from(value), Type::I32));
        self.set_attr(op, name, attr);
    }

    /// The block that holds an operation.
    pub fn parent_block(&self, op: Op) -> Option<Block> {
        self.ops[op].parent
    }

    /// The operation whose region holds an operation.
    pub fn parent_op(&self, op: Op) -> Option<Op> {
        self.ops[op].parent.and_then(|b| self.block_parent_op(b))
    }

    /// The operation whose region holds a block.
    pub fn block_parent_op(&self, block: Block) -> Option<Op> {
        self.blocks[block].parent.and_then(|r| self.regions[r].parent)
    }

    /// The region that holds a block.
    pub fn block_region(&self, block: Block) -> Option<Region> {
        self.blocks[block].parent
    }

    /// The operation that owns a region.
    pub fn region_op(&self, region: Region) -> Option<Op> {
        self.regions[region].parent
    }

    /// Whether `op` lies in a region of `ancestor`, at any depth, or is it.
    pub fn is_ancestor(&self, ancestor: Op, op: Op) -> bool {
        let mut at = Some(op);
        while let Some(o) = at {
            if o == ancestor {
                return true;
            }
            at = self.parent_op(o);
        }
        false
    }

    /// The ancestor of `op` (or itself) that lies directly in `block`.
    pub fn ancestor_in_block(&self, block: Block, op: Op) -> Option<Op> {
        let mut at = op;
        loop {
            match self.parent_block(at) {
                Some(b) if b == block => return Some(at),
                Some(_) => at = self.parent_op(at)?,
                None => return None,
            }
        }
    }

    /// The blocks of a region.
    pub fn region_blocks(&self, region: Region) -> &[Block] {
        &self.regions[region].blocks
    }

    /// The only block of a region.
    ///
    /// # Panics
    /// If there is not exactly one.
    pub fn region_block(&self, region: Region) -> Block {
        let blocks = self.region_blocks(region);
        assert!(blocks.len() == 1, "region has {} blocks", blocks.len());
        blocks[0]
    }

    /// The arguments of a block.
    pub fn block_args(&self, block: Block) -> &[Value] {
        &self.blocks[block].args
    }

    /// The operations of a block, in order. Removing the operation last returned is not allowed while iterating;
    /// collect first.
    pub fn block_ops(&self, block: Block) -> impl Iterator<Item = Op> + '_ {
        std::iter::successors(self.blocks[block].first, move |&op| self.ops[op].next)
    }

    /// The first operation of a block.
    pub fn first_op(&self, block: Block) -> Option<Op> {
        self.blocks[block].first
    }

    /// The last operation of a block, which in a complete block is the terminator.
    pub fn last_op(&self, block: Block) -> Option<Op> {
        self.blocks[block].last
    }

    /// The operation after this one.
    pub fn next_op(&self, op: Op) -> Option<Op> {
        self.ops[op].next
    }

    /// The operation before this one.
    pub fn prev_op(&self, op: Op) -> Option<Op> {
        self.ops[op].prev
    }

    /// Whether `a` comes before `b` in the block that holds both.
    pub fn is_before(&self, a: Op, b: Op) -> bool {
        let (mut forward, mut backward) = (self.next_op(a), self.prev_op(a));
        // Walk both ways at once: the cost is the distance, not the block's length.
        loop {
            match (forward, backward) {
                (Some(f), _) if f == b => return true,
                (_, Some(p)) if p == b => return false,
                (None, None) => return false,
                _ => {}
            }
            forward = forward.and_then(|f| self.next_op(f));
            backward = backward.and_then(|p| self.prev_op(p));
        }
    }

    /// Calls `f` for each operation inside `op`, itself included, parents before their regions' operations.
    pub fn walk(&self, op: Op, f: &mut impl FnMut(Op)) {
        f(op);
        for &region in self.regions(op) {
            for &block in self.region_blocks(region) {
                let mut at = self.first_op(block);
                while let Some(o) = at {
                    at = self.next_op(o);
                    self.walk(o, f);
                }
            }
        }
    }

    /// All operations inside `op`, itself included, in the order of [`walk`](Self::walk).
    pub fn all_ops(&self, op: Op) -> Vec<Op> {
        let mut ops = Vec::new();
        self.walk(op, &mut |o| ops.push(o));
        ops
    }

    // ---- values -----------------------------------------------------------------------------------------------

    /// The type of a value.
    pub fn value_type(&self, value: Value) -> Type {
        self.values[value].ty
    }

    /// Replaces the type of a value.
    pub fn set_value_type(&mut self, value: Value, ty: Type) {
        self.values[value].ty = ty;
    }

    /// Where a value comes from.
    pub fn value_def(&self, value: Value) -> ValueDef {
        self.values[value].def
    }

    /// The operation of which the value is a result.
    pub fn defining_op(&self, value: Value) -> Option<Op> {
        match self.values[value].def {
            ValueDef::Result(op, _) => Some(op),
            ValueDef::Argument(..) => None,
        }
    }

    /// The block in which a value is defined.
    pub fn value_block(&self, value: Value) -> Option<Block> {
        match self.values[value].def {
            ValueDef::Result(op, _) => self.parent_block(op),
            ValueDef::Argument(block, _) => Some(block),
        }
    }

    /// The uses of a value, in no particular order.
    pub fn uses(&self, value: Value) -> &[Use] {
        &self.values[value].uses
    }

    /// Whether no operation uses the value.
    pub fn is_unused(&self, value: Value) -> bool {
        self.values[value].uses.is_empty()
    }

    /// The integer that a value is, if it is an `arith.constant` (scalar or splat).
    pub fn constant_int(&self, value: Value) -> Option<i64> {
        match self.attr_kind(self.constant_value(value)?) {
            AttrKind::Int(v, _) => Some(*v),
            AttrKind::Splat(a, _) => match self.attr_kind(*a) {
                AttrKind::Int(v, _) => Some(*v),
                _ => None,
            },
            _ => None,
        }
    }

    /// The `value` attribute of the `arith.constant` that defines a value.
    pub fn constant_value(&self, value: Value) -> Option<Attr> {
        let op = self.defining_op(value)?;
        if self.has_trait(op, Trait::Constant) { self.op_attr(op, "value") } else { None }
    }

    // ---- edits ------------------------------------------------------------------------------------------------

    /// Creates a detached operation.
    pub fn create_op(&mut self, spec: OpSpec) -> Op {
        let op = self.ops.push(OpData {
            def: spec.def,
            operands: SmallVec::new(),
            segments: spec.segments,
            results: SmallVec::new(),
            attrs: spec.attrs,
            regions: SmallVec::new(),
            successors: spec.successors,
            loc: spec.loc,
            parent: None,
            prev: None,
            next: None,
            erased: false,
        });
        for (index, &value) in spec.operands.iter().enumerate() {
            self.values[value].uses.push(Use { op, index: index as u32 });
        }
        self.ops[op].operands = spec.operands;
        for &ty in &spec.results {
            self.add_result(op, ty);
        }
        for _ in 0..spec.regions {
            self.add_region(op);
        }
        op
    }

    /// Appends a result to an operation.
    pub fn add_result(&mut self, op: Op, ty: Type) -> Value {
        let index = self.ops[op].results.len() as u32;
        let value =
            self.values.push(ValueData { ty, def: ValueDef::Result(op, index), uses: SmallVec::new() });
        self.ops[op].results.push(value);
        value
    }

    /// Appends an empty region to an operation.
    pub fn add_region(&mut self, op: Op) -> Region {
        let region = self.regions.push(RegionData { blocks: SmallVec::new(), parent: Some(op) });
        self.ops[op].regions.push(region);
        region
    }

    /// Appends a block with arguments of the given types to a region.
    pub fn append_block(&mut self, region: Region, args: &[Type]) -> Block {
        let block = self.blocks.push(BlockData { parent: Some(region), ..BlockData::default() });
        self.regions[region].blocks.push(block);
        for &ty in args {
            self.add_block_arg(block, ty);
        }
        block
    }

    /// Appends an argument to a block.
    pub fn add_block_arg(&mut self, block: Block, ty: Type) -> Value {
        let index = self.blocks[block].args.len() as u32;
        let value =
            self.values.push(ValueData { ty, def: ValueDef::Argument(block, index), uses: SmallVec::new() });
        self.blocks[block].args.push(value);
        value
    }

    /// Removes an argument that has no uses.
    ///
    /// # Panics
    /// If it has uses.
    pub fn remove_block_arg(&mut self, block: Block, index: usize) {
        let value = self.blocks[block].args.remove(index);
        assert!(self.is_unused(value), "a removed block argument has uses");
        for i in index..self.blocks[block].args.len() {
            let arg = self.blocks[block].args[i];
            self.values[arg].def = ValueDef::Argument(block, i as u32);
        }
    }

    /// Puts the blocks of a region in another order.
    ///
    /// # Panics
    /// If `order` is not a permutation of the region's blocks.
    pub fn set_block_order(&mut self, region: Region, order: &[Block]) {
        let blocks = &mut self.regions[region].blocks;
        assert!(
            blocks.len() == order.len() && order.iter().all(|b| blocks.contains(b)),
            "not an order of the region's blocks"
        );
        *blocks = SmallVec::from_slice(order);
    }

    /// Replaces the blocks that a terminator goes to.
    pub fn set_successors(&mut self, op: Op, successors: &[Block]) {
        self.ops[op].successors = SmallVec::from_slice(successors);
    }

    /// Replaces all operands and the sizes of their groups (empty where every group has one operand).
    pub fn set_operands_and_segments(&mut self, op: Op, values: &[Value], segments: &[u16]) {
        self.set_operands(op, values);
        self.ops[op].segments = SmallVec::from_slice(segments);
    }

    /// Moves all blocks of `from` to the end of `to`.
    pub fn move_blocks(&mut self, from: Region, to: Region) {
        let blocks = std::mem::take(&mut self.regions[from].blocks);
        for &block in &blocks {
            self.blocks[block].parent = Some(to);
        }
        self.regions[to].blocks.extend(blocks);
    }

    fn link(&mut self, op: Op, block: Block, prev: Option<Op>, next: Option<Op>) {
        assert!(self.ops[op].parent.is_none(), "the operation is attached already");
        let data = &mut self.ops[op];
        data.parent = Some(block);
        data.prev = prev;
        data.next = next;
        match prev {
            Some(p) => self.ops[p].next = Some(op),
            None => self.blocks[block].first = Some(op),
        }
        match next {
            Some(n) => self.ops[n].prev = Some(op),
            None => self.blocks[block].last = Some(op),
        }
    }

    /// Puts a detached operation at the end of a block.
    pub fn append_op(&mut self, block: Block, op: Op) {
        let last = self.blocks[block].last;
        self.link(op, block, last, None);
    }

    /// Puts a detached operation at the start of a block.
    pub fn prepend_op(&mut self, block: Block, op: Op) {
        let first = self.blocks[block].first;
        self.link(op, block, None, first);
    }

    /// Puts a detached operation before an attached one.
    pub fn insert_before(&mut self, op: Op, anchor: Op) {
        let block = self.ops[anchor].parent.expect("the anchor is attached");
        let prev = self.ops[anchor].prev;
        self.link(op, block, prev, Some(anchor));
    }

    /// Puts a detached operation after an attached one.
    pub fn insert_after(&mut self, op: Op, anchor: Op) {
        let block = self.ops[anchor].parent.expect("the anchor is attached");
        let next = self.ops[anchor].next;
        self.link(op, block, Some(anchor), next);
    }

    /// Detaches an operation from its block, keeping its operands and results.
    pub fn detach_op(&mut self, op: Op) {
        let Some(block) = self.ops[op].parent.take() else { return };
        let (prev, next) = (self.ops[op].prev.take(), self.ops[op].next.take());
        match prev {
            Some(p) => self.ops[p].next = next,
            None => self.blocks[block].first = next,
        }
        match next {
            Some(n) => self.ops[n].prev = prev,
            None => self.blocks[block].last = prev,
        }
    }

    /// Moves an attached operation before another.
    pub fn move_before(&mut self, op: Op, anchor: Op) {
        if op != anchor {
            self.detach_op(op);
            self.insert_before(op, anchor);
        }
    }

    /// Moves an attached operation after another.
    pub fn move_after(&mut self, op: Op, anchor: Op) {
        if op != anchor {
            self.detach_op(op);
            self.insert_after(op, anchor);
        }
    }

    /// Whether an operation was erased; its reference must not be used further.
    pub fn is_erased(&self, op: Op) -> bool {
        self.ops[op].erased
    }

    /// Erases an operation and everything in its regions.
    ///
    /// # Panics
    /// If a result still has uses outside the operation.
    pub fn erase_op(&mut self, op: Op) {
        self.detach_op(op);
        let mut inner = self.all_ops(op);
        inner.reverse();
        for &o in &inner {
            self.set_operands(o, &[]);
        }
        for &o in &inner {
            for i in 0..self.ops[o].results.len() {
                let result = self.ops[o].results[i];
                assert!(self.is_unused(result), "erasing {}, whose result has uses", self.op_name(o));
            }
            self.ops[o].erased = true;
            self.ops[o].parent = None;
        }
    }

    fn remove_use(&mut self, value: Value, op: Op, index: u32) {
        let uses = &mut self.values[value].uses;
        let at = uses.iter().position(|u| u.op == op && u.index == index).expect("a listed use");
        uses.swap_remove(at);
    }

    /// Replaces one operand.
    pub fn set_operand(&mut self, op: Op, index: usize, value: Value) {
        let old = self.ops[op].operands[index];
        if old == value {
            return;
        }
        self.remove_use(old, op, index as u32);
        self.ops[op].operands[index] = value;
        self.values[value].uses.push(Use { op, index: index as u32 });
    }

    /// Replaces all operands of an operation; segment sizes stay as they are (see [`set_operand_group`]).
    ///
    /// [`set_operand_group`]: Self::set_operand_group
    pub fn set_operands(&mut self, op: Op, values: &[Value]) {
        for index in 0..self.ops[op].operands.len() {
            self.remove_use(self.ops[op].operands[index], op, index as u32);
        }
        self.ops[op].operands = SmallVec::from_slice(values);
        for (index, &value) in values.iter().enumerate() {
            self.values[value].uses.push(Use { op, index: index as u32 });
        }
    }

    /// Replaces the operands of one declared group, which may change its size.
    pub fn set_operand_group(&mut self, op: Op, group: usize, values: &[Value]) {
        let data = &self.ops[op];
        let mut all: Vec<Value> = Vec::with_capacity(data.operands.len() + values.len());
        let groups = if data.segments.is_empty() { data.operands.len() } else { data.segments.len() };
        for g in 0..groups {
            if g == group {
                all.extend_from_slice(values);
            } else {
                all.extend_from_slice(self.operand_group(op, g));
            }
        }
        if let Some(size) = self.ops[op].segments.get_mut(group) {
            *size = values.len() as u16;
        }
        self.set_operands(op, &all);
    }

    /// Appends an operand to the last declared group (of a `yield`, `return`, or loop).
    pub fn push_operand(&mut self, op: Op, value: Value) {
        let index = self.ops[op].operands.len() as u32;
        self.ops[op].operands.push(value);
        if let Some(size) = self.ops[op].segments.last_mut() {
            *size += 1;
        }
        self.values[value].uses.push(Use { op, index });
    }

    /// Makes every use of `old` a use of `new`.
    pub fn replace_all_uses(&mut self, old: Value, new: Value) {
        if old == new {
            return;
        }
        let uses = std::mem::take(&mut self.values[old].uses);
        for u in &uses {
            self.ops[u.op].operands[u.index as usize] = new;
        }
        self.values[new].uses.extend(uses);
        if let Some(name) = self.names.remove(&old) {
            self.names.entry(new).or_insert(name);
        }
    }

    /// Gives a value the name under which text shows it, which may get a suffix there; one that it has stays. Passes may ignore
    /// names, and what they make has none.
    pub fn name_value(&mut self, value: Value, name: &str) {
        // As MLIR's text has them.
        if name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        {
            self.names.entry(value).or_insert_with(|| name.into());
        }
    }

    /// Takes the names of all values away: a module that was read has none either.
    pub fn forget_names(&mut self) {
        self.names.clear();
    }

    /// The name of a value, if it has one.
    pub fn value_name(&self, value: Value) -> Option<&str> {
        self.names.get(&value).map(|name| &**name)
    }

    /// Replaces the results of an operation with values and erases it.
    pub fn replace_op(&mut self, op: Op, values: &[Value]) {
        assert_eq!(self.results(op).len(), values.len(), "replacing {}", self.op_name(op));
        for (i, &new) in values.iter().enumerate() {
            self.replace_all_uses(self.ops[op].results[i], new);
        }
        self.erase_op(op);
    }

    /// Clones an operation with its regions, detached. Operands are looked up in `map`, and the clone's results and
    /// block arguments are entered into it.
    pub fn clone_op(&mut self, op: Op, map: &mut FxHashMap<Value, Value>) -> Op {
        let data = self.ops[op].clone();
        let spec = OpSpec {
            def: data.def,
            operands: data.operands.iter().map(|v| *map.get(v).unwrap_or(v)).collect(),
            segments: data.segments,
            results: data.results.iter().map(|&r| self.value_type(r)).collect(),
            attrs: data.attrs,
            successors: data.successors,
            regions: data.regions.len(),
            loc: data.loc,
        };
        let clone = self.create_op(spec);
        for (i, &result) in data.results.iter().enumerate() {
            map.insert(result, self.ops[clone].results[i]);
        }
        for (i, &region) in data.regions.iter().enumerate() {
            let target = self.ops[clone].regions[i];
            self.clone_region(region, target, map);
        }
        clone
    }

    fn clone_region(&mut self, from: Region, to: Region, map: &mut FxHashMap<Value, Value>) {
        let blocks = self.regions[from].blocks.clone();
        let mut block_map: FxHashMap<Block, Block> = FxHashMap::default();
        for &block in &blocks {
            let args = self.blocks[block].args.clone();
            let types: Vec<Type> = args.iter().map(|&a| self.value_type(a)).collect();
            let new = self.append_block(to, &types);
            block_map.insert(block, new);
            for (i, &arg) in args.iter().enumerate() {
                map.insert(arg, self.blocks[new].args[i]);
            }
        }
        for &block in &blocks {
            let ops: Vec<Op> = self.block_ops(block).collect();
            for op in ops {
                let clone = self.clone_op(op, map);
                for s in &mut self.ops[clone].successors {
                    if let Some(&new) = block_map.get(s) {
                        *s = new;
                    }
                }
                self.append_op(block_map[&block], clone);
            }
        }
    }
}
