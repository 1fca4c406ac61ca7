//! What a vendor answers: the instructions of its own, and the operations that only it has.
//!
//! A vendor's folder has a type for what it knows while one function is lowered, which [`Lower`] carries as its field
//! `hooks`, and implements [`Hooks`] for it. Each hook is a function of the whole state, so that it records instructions
//! and reads values like the code that calls it; which one is meant is known when the compiler is built.

use std::borrow::Cow;

use smallvec::SmallVec;
use tilewright_ir as ir;
use tilewright_ir::FloatKind;
use tilewright_ir::dialect::{arith, tt};
use tilewright_layout::{MatrixAccess, MatrixInstruction, TileLayout};
use tilewright_llvm::{Builder, Effect, Scalar, Ty, Value};

use crate::{Atomic, Buffer, Lower, Result};

/// The registers of one access to memory, one a word.
pub type WordValues = SmallVec<[Value; 4]>;

/// How an access is cut into machine words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Words {
    /// Bits of a word: 8, 16, 32 or 64.
    pub bits: u32,
    /// Words of the access: 1, 2 or 4.
    pub count: u32,
    /// Elements of a word.
    pub per_word: u32,
}

impl Words {
    /// The words of `elements` elements of `bits` bits.
    pub fn of(elements: u32, bits: u32) -> Words {
        let total = elements * bits;
        let word = if bits == 64 { 64 } else { total.min(32) };
        Words { bits: word, count: total / word, per_word: word / bits }
    }

    /// The type of a word in a register: bytes are in ones of 16 bits.
    pub fn register(self) -> Ty {
        Ty::scalar(crate::int_of(self.bits.max(16)))
    }
}

/// Which lane a shuffle takes its value from.
#[derive(Debug, Clone, Copy)]
pub enum Shuffle {
    /// The own lane XOR a constant.
    Xor(u32),
    /// A lane by number.
    Index(Value),
    /// The lane so many below (the own one where there is none).
    Up(u32),
    /// The lane so many above (the own one where there is none).
    Down(u32),
}

/// What is said of a global load besides its place.
#[derive(Debug, Clone, Copy)]
pub struct LoadHints {
    /// Whether it must be made, and made once.
    pub volatile: bool,
    /// Which caches keep it.
    pub cache: tt::CacheModifier,
    /// How soon they give it up.
    pub evict: tt::EvictionPolicy,
    /// Whether it should begin when it can, whatever registers that takes: there is nothing else to wait with.
    pub early: bool,
    /// Whether nobody sees what it gives where its predicate does not hold.
    pub unseen: bool,
}

/// fp32 functions that hardware approximates, to about 2 ulp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Approximation {
    /// The square root.
    Sqrt,
    /// 1 over the square root.
    Rsqrt,
    /// 1 over the number.
    Reciprocal,
    /// 2 to the power of the number.
    Exp2,
    /// The same where subnormal results become zero.
    Exp2Flushed,
}

/// A vendor's answers.
pub trait Hooks: Sized {
    // ---- functions -------------------------------------------------------------------------------------------------

    /// The symbol of a function, as the target's assembly takes it. It is none of the lowering's own:
    /// [`SHARED_MEMORY`](crate::SHARED_MEMORY), or what begins with [`OWN_PREFIX`](crate::OWN_PREFIX).
    fn symbol(name: &str) -> Cow<'_, str>;

    /// Size and alignment, in bytes, of a kernel's parameter of this type if the launch passes the thing itself, and what
    /// the kernel has is its address.
    fn by_value(_m: &ir::Module, _ty: ir::Type) -> Option<(u32, u32)> {
        None
    }

    /// Called when a function's parameters have their values, before its first operation.
    ///
    /// # Errors
    /// What the function holds and the target does not support.
    fn begin(_l: &mut Lower<'_, Self>, _function: ir::Op) -> Result<()> {
        Ok(())
    }

    /// Called before a kernel returns.
    fn before_return(_l: &mut Lower<'_, Self>) {}

    /// Called behind a function's last operation.
    ///
    /// # Errors
    /// As those of [`Hooks::begin`].
    fn end(_l: &mut Lower<'_, Self>) -> Result<()> {
        Ok(())
    }

    /// Lowers an operation in a way of the target's own, or says (`false`) that it has none.
    ///
    /// # Errors
    /// What of the operation is not supported.
    fn operation(l: &mut Lower<'_, Self>, op: ir::Op) -> Result<bool>;

    /// Whether a tensor goes from block to block as words of several elements, which must not be taken apart there.
    fn crosses_as_words(_l: &mut Lower<'_, Self>, _ty: ir::Type) -> bool {
        false
    }

    /// The words of such a tensor.
    ///
    /// # Errors
    /// A value that has no registers.
    fn words(l: &mut Lower<'_, Self>, v: ir::Value) -> Result<Vec<Value>> {
        l.packed_words(v)
    }

    /// Whether a poison of this type may be anything, from run to run.
    fn may_be_undefined(_l: &Lower<'_, Self>, _ty: ir::Type) -> bool {
        false
    }

    // ---- threads ---------------------------------------------------------------------------------------------------

    /// The thread's index in the CTA.
    fn thread_id(l: &mut Lower<'_, Self>) -> Value;

    /// The program's index along an axis of the grid, or how many programs there are.
    fn program_id(l: &mut Lower<'_, Self>, axis: tt::ProgramDim, count: bool) -> Value;

    /// Waits for all threads of [`Lower::scope`]; their writes to shared memory are visible after it.
    fn barrier(l: &mut Lower<'_, Self>);

    /// The same for the lanes of the warp.
    fn warp_barrier(l: &mut Lower<'_, Self>);

    /// The 32-bit word of another lane of the warp.
    fn shuffle(l: &mut Lower<'_, Self>, word: Value, how: Shuffle) -> Value;

    /// The intrinsic of an instruction that combines the values of all lanes by this operation, if there is one.
    fn lane_reduction(_operation: arith::Kind, _ty: Ty) -> Option<&'static str> {
        None
    }

    /// Such an intrinsic of a value: what all lanes get.
    fn reduce_lanes(l: &mut Lower<'_, Self>, intrinsic: &str, value: Value) -> Value {
        let ty = l.b.ty(value);
        l.b.intrinsic(intrinsic, Effect::Read, Some(ty), &[value])
    }

    // ---- memory ----------------------------------------------------------------------------------------------------

    /// Loads words from global memory where `pred` holds; elsewhere they are those of `other`, or zero.
    fn load_global(
        l: &mut Lower<'_, Self>,
        ptr: Value,
        words: Words,
        pred: Option<Value>,
        other: Option<&[Value]>,
        hints: LoadHints,
    ) -> WordValues;

    /// Whether there are stores that are atomic in each word, and order nothing: exchanges whose old values nobody wants.
    const RELAXED_STORES: bool = false;

    /// Such a store to global memory where `pred` holds, in the eyes of `scope`.
    fn store_relaxed(
        _l: &mut Lower<'_, Self>,
        _ptr: Value,
        _values: &[Value],
        _words: Words,
        _pred: Option<Value>,
        _scope: tt::MemSyncScope,
    ) {
        unreachable!("`RELAXED_STORES` says that there are none")
    }

    /// Stores words to global memory where `pred` holds.
    fn store_global(
        l: &mut Lower<'_, Self>,
        ptr: Value,
        values: &[Value],
        words: Words,
        pred: Option<Value>,
        cache: tt::CacheModifier,
        evict: tt::EvictionPolicy,
    );

    /// Operates atomically on an element of global or shared memory where `pred` holds: with one value, or, for compare-and-swap, with the
    /// one expected and the one stored. Gives the element's bits before, where they are used.
    ///
    /// # Errors
    /// That the target has no such operation, or none on this type.
    fn atomic(
        l: &mut Lower<'_, Self>,
        _what: Atomic,
        _ptr: Value,
        _values: &[Value],
        _pred: Option<Value>,
    ) -> Result<Value> {
        Err(l.unsupported(format!("the operation `{}`", l.m.op_name(l.op))))
    }

    /// Whether there is a [`Hooks::fence`] for what is at such a pointer.
    fn has_fence(_l: &mut Lower<'_, Self>, _ptr: Value) -> bool {
        false
    }

    /// Orders all that a thread did before with all that it does behind, in the eyes of `scope`. `ptr`: what is accessed, whose memory may be nobody else's.
    fn fence(_l: &mut Lower<'_, Self>, _ptr: Value, _scope: tt::MemSyncScope) {
        unreachable!("`has_fence` says that there is none")
    }

    /// Whether [`Hooks::add_side_by_side`] adds to several elements of this type at such a pointer.
    fn adds_side_by_side(_l: &mut Lower<'_, Self>, _ptr: Value, _ty: Ty) -> bool {
        false
    }

    /// Adds floats of type `ty`, as words, to those that stand side by side in global memory where `pred` holds, each atomically in the eyes of
    /// `scope` and ordered with nothing. The elements before are not given.
    fn add_side_by_side(
        _l: &mut Lower<'_, Self>,
        _ty: Ty,
        _ptr: Value,
        _values: &[Value],
        _words: Words,
        _pred: Option<Value>,
        _scope: tt::MemSyncScope,
    ) {
        unreachable!("`adds_side_by_side` says that it can't")
    }

    /// Loads consecutive words from shared memory, aligned to their whole width, where `pred` holds; elsewhere they are zero.
    fn load_shared(l: &mut Lower<'_, Self>, ptr: Value, words: Words, pred: Option<Value>) -> WordValues;

    /// Stores consecutive words to shared memory, aligned to their whole width, where `pred` holds.
    fn store_shared(l: &mut Lower<'_, Self>, ptr: Value, values: &[Value], words: Words, pred: Option<Value>);

    /// Adds 1 to a 32-bit word of shared memory where `pred` holds, whatever other threads add to it meanwhile.
    fn count_shared(l: &mut Lower<'_, Self>, ptr: Value, pred: Option<Value>);

    /// The registers of a tile of type `ty`, loaded from a buffer by instructions in which the lanes of a warp work together;
    /// `None` where they don't fit it.
    ///
    /// # Errors
    /// A buffer or tensor without a layout.
    fn load_tile(
        _l: &mut Lower<'_, Self>,
        _buffer: &Buffer,
        _buffer_ty: ir::Type,
        _ty: ir::Type,
        _tile: &TileLayout,
    ) -> Result<Option<Vec<Value>>> {
        Ok(None)
    }

    /// Stores the matrices of one instruction, for targets that have it
    /// ([`TargetInfo::stmatrix`](tilewright_passes::TargetInfo)). `pred` is the same in all lanes.
    ///
    /// # Errors
    /// That the target has no such instruction.
    fn store_matrices(
        l: &mut Lower<'_, Self>,
        _plan: &MatrixAccess,
        _instruction: &MatrixInstruction,
        _at: Value,
        _regs: &[Value],
        _pred: Option<Value>,
    ) -> Result<()> {
        Err(l.unsupported("stores of whole matrices"))
    }

    // ---- arithmetic ------------------------------------------------------------------------------------------------

    /// Whether there are instructions that add and multiply bf16, and that make it of integers.
    fn bf16_arithmetic(&self) -> bool;

    /// The upper half of the product of two unsigned 64-bit integers.
    fn mul_high(b: &mut Builder<'_>, x: Value, y: Value) -> Value;

    /// The quotient of two fp32 numbers to 2 ulp.
    fn divide(l: &mut Lower<'_, Self>, x: Value, y: Value) -> Value;

    /// The larger of two numbers, and the other of a number and NaN, in words that LLVM draws no conclusions from.
    fn maxnum(l: &mut Lower<'_, Self>, x: Value, y: Value) -> Value;

    /// A function of an fp32 number.
    fn approximate(l: &mut Lower<'_, Self>, function: Approximation, x: Value) -> Value;

    /// A word of two fp32 numbers as f16 or bf16, the first in its lower half: rounded to nearest, or towards zero.
    fn pack_halves(l: &mut Lower<'_, Self>, low: Value, high: Value, to: Scalar, towards_zero: bool)
    -> Value;

    /// An fp64 number, or an integer of 32 or 64 bits, as fp32, rounded towards zero. What is too large becomes the largest
    /// finite number.
    fn f32_towards_zero(l: &mut Lower<'_, Self>, x: Value, signed: bool) -> Value;

    /// A word of two 8-bit floats as f16; `None` without an instruction for it.
    fn widen_fp8(_l: &mut Lower<'_, Self>, _low: Value, _high: Value, _from: FloatKind) -> Option<Value> {
        None
    }

    /// Two fp32 numbers as 8-bit floats in 16 bits, to nearest, saturating; `None` without an instruction for it.
    fn narrow_fp8(_l: &mut Lower<'_, Self>, _low: Value, _high: Value, _to: FloatKind) -> Option<Value> {
        None
    }

    // ---- messages --------------------------------------------------------------------------------------------------

    /// Prints by a format of C's `printf`.
    fn printf(l: &mut Lower<'_, Self>, format: &str, args: &[Value]);

    /// Ends the program with a message and a place in the source.
    fn fail(l: &mut Lower<'_, Self>, message: &str, file: &str, line: u32);

    /// Tells who checks the target's code, not the hardware, that a number of 32 or 64 bits, read without a sign, is below a limit.
    fn promise_below(_l: &mut Lower<'_, Self>, _number: Value, _limit: u32) {}
}
