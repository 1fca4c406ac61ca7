//! How operations are declared: one [`dialect!`](macro@crate::dialect) block per file says everything about an op once.
//!
//! From the declaration come the [`OpDef`] table (which the printer, parser, verifier and analyses read), a typed
//! wrapper with accessors (`tt::Load(op).ptr(&module)`), a builder function (`tt::Load::build(&mut b, ...)`) and the
//! reference docs.
//!
//! Together with the module, its builder, the dialects and what declarations are made of (`index`, `typing`, `flow`, `verify`), since
//! an operation of a module points to its declaration, and a declaration to functions that read the module.

use crate::entity::{Op, Type};
use crate::flow::{Flow, Place};
use crate::index::Index;
use crate::module::Module;
use crate::typing::TypeRule;

/// Every registered operation, by dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // the variants are the dialects' names
pub enum Opcode {
    Builtin(crate::dialect::builtin::Kind),
    Arith(crate::dialect::arith::Kind),
    Math(crate::dialect::math::Kind),
    Scf(crate::dialect::scf::Kind),
    Cf(crate::dialect::cf::Kind),
    Tt(crate::dialect::tt::Kind),
    Ttg(crate::dialect::ttg::Kind),
    Ttng(crate::dialect::ttng::Kind),
    Blackwell(crate::dialect::blackwell::Kind),
    Llvm(crate::dialect::llvm::Kind),
    Ub(crate::dialect::ub::Kind),
    Gpu(crate::dialect::gpu::Kind),
    Func(crate::dialect::func::Kind),
    Memref(crate::dialect::memref::Kind),
    Hivm(crate::dialect::hivm::Kind),
    Vector(crate::dialect::vector::Kind),
    Tensor(crate::dialect::tensor::Kind),
    Scope(crate::dialect::scope::Kind),
    MemrefExt(crate::dialect::memref_ext::Kind),
    Linalg(crate::dialect::linalg::Kind),
    Hfusion(crate::dialect::hfusion::Kind),
    Bufferization(crate::dialect::bufferization::Kind),
    Annotation(crate::dialect::annotation::Kind),
    Affine(crate::dialect::affine::Kind),
    HivmMore(crate::dialect::hivm_more::Kind),
}

/// How many values an operand group holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arity {
    /// Exactly one.
    One,
    /// None or one.
    Optional,
    /// Any number.
    Variadic,
}

/// An operand group of an [`OpDef`].
#[derive(Debug)]
pub struct OperandDef {
    /// The accessor's name, which the format string uses as `$name`.
    pub name: &'static str,
    /// How many values it holds.
    pub arity: Arity,
}

/// A declared attribute of an [`OpDef`].
#[derive(Debug)]
pub struct AttrDef {
    /// The name in IR text.
    pub name: &'static str,
    /// Whether it may be absent.
    pub optional: bool,
    /// Checks that a present attribute (or its absence) is readable as the declared Rust type.
    pub check: fn(&Module, Option<crate::Attr>) -> bool,
    /// The declared Rust type, for messages and docs.
    pub ty: &'static str,
    /// The keywords, where it is an enumeration.
    pub keywords: &'static [&'static str],
    /// The keyword that is said by absence, if one is.
    pub default_keyword: Option<&'static str>,
    /// The name of an attribute that formats write as `<...>`; empty for every other.
    pub mnemonic: &'static str,
}

/// A region of an [`OpDef`].
#[derive(Debug)]
pub struct RegionDef {
    /// The accessor's name.
    pub name: &'static str,
    /// The operation that ends it; empty: any terminator.
    pub ends: &'static str,
}

/// The results of an [`OpDef`].
#[derive(Debug, Clone, Copy)]
pub enum ResultsDef {
    /// The builder is given a type for each of these.
    Given(&'static [&'static str]),
    /// One result with the type of an operand group.
    SameAs(&'static str),
    /// Any number, given to the builder.
    Variadic(&'static str),
}

/// What is generally true of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trait {
    /// No effects and cannot fault: may be erased when unused, merged, hoisted and speculated.
    Pure,
    /// Works element by element; all operands and results that are tensors have one shape and encoding.
    Elementwise,
    /// Operands may be exchanged.
    Commutative,
    /// All operands and results have one type.
    SameTypes,
    /// Ends a block.
    Terminator,
    /// A constant with a `value` attribute.
    Constant,
    /// Its effects are those of its regions.
    RecursiveEffects,
    /// Values defined outside are not visible inside its regions.
    Isolated,
    /// Every region has one block.
    SingleBlock,
    /// It has any number of regions.
    VariadicRegions,
    /// Integer division by its second operand: faults where that is 0 or, for the smallest integer, -1.
    FaultsOnZero,
}

/// Whether an [`Effect`] reads or writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Access {
    Read,
    Write,
    Allocate,
    Free,
    /// Waits for other threads (those of the [`Scope`]), or for what they signal.
    Wait,
}

/// What an [`Effect`] touches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Resource {
    /// Global memory.
    Global,
    /// Shared memory (a buffer operand, or scratch where no operand is named).
    Shared,
    /// Tensor memory of Blackwell (a buffer operand).
    Tensor,
    /// Something outside the program's memory: printing, traps, barriers.
    Other,
}

/// Through which hardware path an [`Effect`] goes (PTX ISA, "Async proxy").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Proxy {
    /// Ordinary loads and stores.
    Generic,
    /// Asynchronous copies and tensor-core operand reads.
    Async,
}

/// How it is known that an [`Effect`] is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Completion {
    /// The operation itself is.
    Immediate,
    /// The issuing thread waits for a commit group of `cp.async` (`ttg.async_wait`).
    Copies,
    /// The warp group waits for a group of products (`ttng.warp_group_dot_wait`).
    Dots,
    /// The issuing thread waits for a group of bulk copies (`ttng.async_tma_store_wait`).
    Stores,
    /// An mbarrier completes a phase: whoever waits for that sees it.
    Mbarrier,
}

/// Who sees an [`Effect`]'s ordering.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Scope {
    Warp,
    Cta,
    Cluster,
    Gpu,
    System,
}

/// One memory effect of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Effect {
    /// Read or write.
    pub access: Access,
    /// What is touched.
    pub resource: Resource,
    /// The operand group that names the memory, if one does.
    pub operand: Option<&'static str>,
    /// The path.
    pub proxy: Proxy,
    /// How its end is known.
    pub completion: Completion,
    /// The scope.
    pub scope: Scope,
    /// It is there only where this attribute is true (or false).
    pub when: Option<(&'static str, bool)>,
}

impl Effect {
    /// An effect through the generic proxy at CTA scope.
    pub const fn new(access: Access, resource: Resource, operand: Option<&'static str>) -> Self {
        let (proxy, completion, scope) = (Proxy::Generic, Completion::Immediate, Scope::Cta);
        Effect { access, resource, operand, proxy, completion, scope, when: None }
    }
    /// Waiting for the other threads of a scope, or for a signal from there.
    pub const fn wait(scope: Scope) -> Self {
        Effect { scope, ..Effect::new(Access::Wait, Resource::Other, None) }
    }
    /// The same, but only where an attribute is true.
    pub const fn when(mut self, attr: &'static str) -> Self {
        self.when = Some((attr, true));
        self
    }
    /// The same, but only where an attribute is false.
    pub const fn unless(mut self, attr: &'static str) -> Self {
        self.when = Some((attr, false));
        self
    }
    /// The same through the async proxy, its end known in the given way.
    pub const fn asynchronous(mut self, completion: Completion) -> Self {
        self.proxy = Proxy::Async;
        self.completion = completion;
        self
    }
}

/// A check of one operation; the error says what is wrong with it.
pub type VerifyFn = fn(&Module, Op) -> Result<(), String>;

/// Everything declared about an operation.
#[derive(Debug)]
pub struct OpDef {
    /// The full name, such as `tt.load`.
    pub name: &'static str,
    /// Reference text.
    pub doc: &'static str,
    /// The opcode.
    pub opcode: Opcode,
    /// Operand groups, in order.
    pub operands: &'static [OperandDef],
    /// Declared attributes.
    pub attrs: &'static [AttrDef],
    /// Results.
    pub results: ResultsDef,
    /// The name of a last result, `!ttg.async.token`, which may be absent: accesses to one buffer are put in order by passing it on.
    pub token: Option<&'static str>,
    /// Regions.
    pub regions: &'static [RegionDef],
    /// How values come into and out of the regions.
    pub flow: &'static [Flow],
    /// Traits.
    pub traits: &'static [Trait],
    /// How the dimensions of its tensors go together.
    pub index: Index,
    /// How the types of its operands and results follow from each other.
    pub types: &'static [TypeRule],
    /// Memory effects.
    pub effects: &'static [Effect],
    /// The [marks](crate::marks) that passes may leave on it.
    pub marks: &'static [&'static str],
    /// The assembly format in MLIR's declarative notation; `None`: generic form, or hand-written (`text/custom.rs`).
    pub format: Option<&'static str>,
    /// Checks beyond what the declaration says.
    pub verify: Option<VerifyFn>,
}

impl OpDef {
    /// Whether the op has a trait.
    pub fn has(&self, t: Trait) -> bool {
        self.traits.contains(&t)
    }
    /// The index of an operand group.
    pub fn group(&self, name: &str) -> Option<usize> {
        self.operands.iter().position(|o| o.name == name)
    }
    /// Whether it may have so many results in place of those that its declaration names: these and a token.
    pub fn adds_token(&self, results: &[Type]) -> bool {
        let ResultsDef::Given(names) = self.results else { return false };
        self.token.is_some() && results.len() == names.len() + 1 && results.last() == Some(&Type::ASYNC_TOKEN)
    }
    /// The number of the result of this name (0 for results of any number, and for the one that has an operand's type).
    pub fn result(&self, name: &str) -> Option<usize> {
        match self.results {
            ResultsDef::Given(names) => names.iter().position(|n| *n == name),
            ResultsDef::SameAs(_) => (name == "result").then_some(0),
            ResultsDef::Variadic(n) => (name == n).then_some(0),
        }
    }
    /// Whether operand groups vary in size, so that an op stores its segment sizes.
    pub fn has_segments(&self) -> bool {
        self.operands.iter().any(|o| o.arity != Arity::One)
    }
}

const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len() != b.len() {
        return false;
    }
    let mut i = 0;
    while i < a.len() {
        if a[i] != b[i] {
            return false;
        }
        i += 1;
    }
    true
}

const fn is_declared(def: &OpDef, name: Option<&str>) -> bool {
    let Some(name) = name else { return true };
    let mut i = 0;
    while i < def.operands.len() {
        if same(def.operands[i].name, name) {
            return true;
        }
        i += 1;
    }
    let mut i = 0;
    while i < def.attrs.len() {
        if same(def.attrs[i].name, name) {
            return true;
        }
        i += 1;
    }
    match def.results {
        ResultsDef::SameAs(_) => same(name, "result"),
        ResultsDef::Variadic(result) => same(name, result),
        ResultsDef::Given(names) => {
            let mut i = 0;
            while i < names.len() {
                if same(names[i], name) {
                    return true;
                }
                i += 1;
            }
            false
        }
    }
}

/// Run by the compiler for each dialect: whether declarations speak of operands, attributes and results that exist.
///
/// # Panics
/// They don't, which fails the build.
pub const fn check_names(defs: &[OpDef]) {
    let mut n = 0;
    while n < defs.len() {
        let def = &defs[n];
        let mut i = 0;
        while i < def.index.names().len() {
            assert!(is_declared(def, def.index.names()[i]), "an index relation names what is not declared");
            i += 1;
        }
        let mut i = 0;
        while i < def.types.len() {
            let names = def.types[i].names();
            let known = is_declared(def, names[0]) && is_declared(def, names[1]);
            assert!(known, "a type rule names what is not declared");
            i += 1;
        }
        let mut i = 0;
        while i < def.effects.len() {
            let condition = match def.effects[i].when {
                Some((attr, _)) => Some(attr),
                None => None,
            };
            let known = is_declared(def, def.effects[i].operand) && is_declared(def, condition);
            assert!(known, "an effect names what is not declared");
            i += 1;
        }
        let mut i = 0;
        while i < def.flow.len() {
            let known = match def.flow[i].from {
                Place::Operands(name) => is_declared(def, Some(name)),
                Place::End(region, _) => region < def.regions.len(),
                _ => false,
            };
            let exists = match def.flow[i].to {
                Place::Entry(region, _) | Place::Nested(region) => region < def.regions.len(),
                Place::Results => true,
                _ => false,
            };
            assert!(known && exists, "values pass between places that are not declared");
            i += 1;
        }
        n += 1;
    }
}

/// Declares the operations of a dialect. See the files in `dialect/` for the notation.
#[macro_export]
macro_rules! dialect {
    (
        dialect $dname:literal $variant:ident;
        $(
            $(#[doc = $doc:literal])+
            op $Op:ident = $name:literal {
                $(operands($($on:ident : $ok:ident),* $(,)?))?
                $(attrs($($an:ident : $aty:ty = $astr:literal),* $(,)?))?
                $(results($($rn:ident),*))?
                $(same_as($same:ident))?
                $(variadic_results($rv:ident))?
                $(token($tk:ident))?
                $(regions($($gn:ident : $gend:literal),*) flow($($fl:expr),* $(,)?))?
                $(traits($($tr:ident),*))?
                index($ix:expr)
                types($($ty:expr),* $(,)?)
                effects($($ef:expr),* $(,)?)
                $(marks($($mk:ident),*))?
                $(format $fmt:literal)?
                $(verify $vf:path)?
            }
        )*
    ) => {
        /// The operations of this dialect.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Kind { $($(#[doc = $doc])+ $Op),* }

        impl Kind {
            /// The declaration.
            pub fn def(self) -> &'static $crate::opdef::OpDef { &DEFS[self as usize] }
        }

        /// The declarations, indexed by [`Kind`].
        pub static DEFS: &[$crate::opdef::OpDef] = &[$(
            $crate::opdef::OpDef {
                name: concat!($dname, ".", $name),
                doc: concat!($($doc, "\n"),+),
                opcode: $crate::opdef::Opcode::$variant(Kind::$Op),
                operands: &[$($($crate::opdef::OperandDef {
                    name: stringify!($on), arity: $crate::dialect!(@arity $ok) }),*)?],
                attrs: &[$($($crate::opdef::AttrDef {
                    name: $astr,
                    optional: <$aty as $crate::attrs::AttrValue>::OPTIONAL,
                    check: |m, a| <$aty as $crate::attrs::AttrValue>::read(m, a).is_some(),
                    ty: stringify!($aty),
                    keywords: <$aty as $crate::attrs::AttrValue>::ENUM_KEYWORDS,
                    default_keyword: <$aty as $crate::attrs::AttrValue>::ENUM_DEFAULT,
                    mnemonic: <$aty as $crate::attrs::AttrValue>::MNEMONIC }),*)?],
                results: $crate::dialect!(@results [$($($rn),*)?] [$($same)?] [$($rv)?]),
                token: $crate::dialect!(@name $($tk)?),
                regions: &[$($($crate::opdef::RegionDef { name: stringify!($gn), ends: $gend }),*)?],
                flow: {
                    #[allow(unused_imports)]
                    use $crate::flow::{pass, Place::*};
                    &[$($($fl),*)?]
                },
                traits: &[$($($crate::opdef::Trait::$tr),*)?],
                index: {
                    #[allow(unused_imports)]
                    use $crate::index::Index::*;
                    $ix
                },
                types: {
                    #[allow(unused_imports)]
                    use $crate::typing::{Class::*, TypeOf::*, TypeRule::*, Width::*};
                    &[$($ty),*]
                },
                effects: &[$($ef),*],
                marks: &[$($($crate::marks::$mk),*)?],
                format: $crate::dialect!(@option $($fmt)?),
                verify: $crate::dialect!(@option $($vf)?),
            }
        ),*];

        const _: () = $crate::opdef::check_names(DEFS);

        $(
            $(#[doc = $doc])+
            #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
            pub struct $Op(pub $crate::Op);

            const _: () = {
                #[allow(non_camel_case_types, dead_code, clippy::upper_case_acronyms)]
                enum Group { $($($on),*)? }
                #[allow(non_camel_case_types, dead_code)]
                enum ResultIndex { $($($rn),*)? }
                #[allow(non_camel_case_types, dead_code)]
                enum RegionIndex { $($($gn),*)? }

                #[allow(dead_code, clippy::too_many_arguments, clippy::should_implement_trait)]
                impl $Op {
                    /// The opcode of this operation.
                    pub const OPCODE: $crate::opdef::Opcode = $crate::opdef::Opcode::$variant(Kind::$Op);

                    /// The wrapper, if `op` is this operation.
                    pub fn cast(module: &$crate::Module, op: $crate::Op) -> Option<Self> {
                        (module.opcode(op) == Some(Self::OPCODE)).then_some($Op(op))
                    }

                    /// The wrapper, if `value` is a result of this operation.
                    pub fn of(module: &$crate::Module, value: $crate::Value) -> Option<Self> {
                        module.defining_op(value).and_then(|op| Self::cast(module, op))
                    }

                    /// Builds the operation at the builder's insertion point: operands, attributes, result types.
                    pub fn build(
                        b: &mut $crate::Builder<'_>,
                        $($($on: $crate::dialect!(@operand_type $ok),)*)?
                        $($($an: $aty,)*)?
                        $($($rn: $crate::Type,)*)?
                        $($rv: &[$crate::Type],)?
                        $($tk: bool,)?
                    ) -> Self {
                        #[allow(unused_mut)]
                        let mut spec = $crate::module::OpSpec::new(Kind::$Op.def(), b.loc());
                        $($($crate::dialect!(@push $ok spec $on);)*)?
                        $($(spec.attr($astr, <$aty as $crate::attrs::AttrValue>::store($an, b.module));)*)?
                        $($(spec.results.push($rn);)*)?
                        $(spec.results.push(b.module.value_type($same));)?
                        $(spec.results.extend_from_slice($rv);)?
                        $(if $tk { spec.results.push($crate::Type::ASYNC_TOKEN); })?
                        $Op(b.insert(spec))
                    }

                    $($($crate::dialect!(@accessor $ok $on);)*)?
                    $($(
                        /// The attribute of this name.
                        ///
                        /// # Panics
                        /// If it is absent or of another kind, which the verifier reports.
                        pub fn $an(self, module: &$crate::Module) -> $aty {
                            <$aty as $crate::attrs::AttrValue>::read(module, module.op_attr(self.0, $astr))
                                .expect(concat!("verified attribute ", $astr))
                        }
                    )*)?
                    $($(
                        /// The result of this name.
                        pub fn $rn(self, module: &$crate::Module) -> $crate::Value {
                            module.results(self.0)[ResultIndex::$rn as usize]
                        }
                    )*)?
                    $(
                        /// The result; it has the type of an operand.
                        pub fn result(self, module: &$crate::Module) -> $crate::Value {
                            let _ = stringify!($same);
                            module.results(self.0)[0]
                        }
                    )?
                    $(
                        /// The results.
                        pub fn $rv(self, module: &$crate::Module) -> &[$crate::Value] {
                            module.results(self.0)
                        }
                    )?
                    $(
                        /// The token, if there is one.
                        pub fn $tk(self, module: &$crate::Module) -> Option<$crate::Value> {
                            module.results(self.0).last().copied().filter(|&r| module.value_type(r) == $crate::Type::ASYNC_TOKEN)
                        }
                    )?
                    $($(
                        /// The region of this name.
                        pub fn $gn(self, module: &$crate::Module) -> $crate::Region {
                            module.regions(self.0)[RegionIndex::$gn as usize]
                        }
                    )*)?
                }
            };
        )*
    };
    (@arity one) => { $crate::opdef::Arity::One };
    (@arity opt) => { $crate::opdef::Arity::Optional };
    (@arity var) => { $crate::opdef::Arity::Variadic };
    (@operand_type one) => { $crate::Value };
    (@operand_type opt) => { Option<$crate::Value> };
    (@operand_type var) => { &[$crate::Value] };
    (@push one $spec:ident $v:ident) => { $spec.operand($v) };
    (@push opt $spec:ident $v:ident) => { $spec.operand_group($v.as_slice()) };
    (@push var $spec:ident $v:ident) => { $spec.operand_group($v) };
    (@accessor one $on:ident) => {
        /// The operand of this name.
        pub fn $on(self, module: &$crate::Module) -> $crate::Value {
            module.operand_group(self.0, Group::$on as usize)[0]
        }
    };
    (@accessor opt $on:ident) => {
        /// The operand of this name, if given.
        pub fn $on(self, module: &$crate::Module) -> Option<$crate::Value> {
            module.operand_group(self.0, Group::$on as usize).first().copied()
        }
    };
    (@accessor var $on:ident) => {
        /// The operands of this name.
        pub fn $on(self, module: &$crate::Module) -> &[$crate::Value] {
            module.operand_group(self.0, Group::$on as usize)
        }
    };
    (@results [$($rn:ident),*] [] []) => { $crate::opdef::ResultsDef::Given(&[$(stringify!($rn)),*]) };
    (@results [] [$same:ident] []) => { $crate::opdef::ResultsDef::SameAs(stringify!($same)) };
    (@results [] [] [$rv:ident]) => { $crate::opdef::ResultsDef::Variadic(stringify!($rv)) };
    (@name) => { None };
    (@name $x:ident) => { Some(stringify!($x)) };
    (@option) => { None };
    (@option $x:literal) => { Some($x) };
    (@option $x:path) => { Some($x) };
}
