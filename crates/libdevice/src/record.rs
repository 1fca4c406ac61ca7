//! Code that is recorded, and not run here: functions that are written on a [`Recorder`] become instructions of whatever target has one.

/// What a recorded value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Word {
    /// An integer of 8 bits.
    I8,
    /// An integer of 16 bits.
    I16,
    /// An integer of 32 bits.
    I32,
    /// An integer of 64 bits.
    I64,
    /// A float of 16 bits.
    F16,
    /// A float of 32 bits.
    F32,
    /// A float of 64 bits.
    F64,
}

impl Word {
    /// Its bits.
    pub const fn bits(self) -> u32 {
        match self {
            Word::I8 => 8,
            Word::I16 | Word::F16 => 16,
            Word::I32 | Word::F32 => 32,
            Word::I64 | Word::F64 => 64,
        }
    }

    /// An integer of as many bits.
    #[must_use]
    pub const fn whole(self) -> Word {
        match self.bits() {
            8 => Word::I8,
            16 => Word::I16,
            32 => Word::I32,
            _ => Word::I64,
        }
    }

    /// The bits of a fraction, where it is a float.
    pub const fn fraction(self) -> u32 {
        match self {
            Word::F16 => 10,
            Word::F32 => 23,
            _ => 52,
        }
    }
}

/// What is made of two values of one type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Binary {
    /// The sum of integers.
    Add,
    /// The difference of integers.
    Sub,
    /// The lower half of the product of integers.
    Mul,
    /// The quotient of integers without a sign.
    DivU,
    /// The remainder of integers without a sign.
    RemU,
    /// The bits that both have.
    And,
    /// The bits that either has.
    Or,
    /// The bits that one has.
    Xor,
    /// Bits moved up, by less than there are.
    Shl,
    /// Bits moved down, by less than there are.
    ShrU,
    /// Bits moved down with the sign, by less than there are.
    ShrS,
    /// The sum of floats.
    AddF,
    /// The difference of floats.
    SubF,
    /// The product of floats.
    MulF,
    /// The quotient of floats.
    DivF,
    /// The lesser of floats; the other one of NaN.
    MinF,
}

/// A question about two values of one type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Compare {
    /// Whether integers are equal.
    Eq,
    /// Whether one integer is less, with signs.
    LessS,
    /// Whether one integer is less, without signs.
    LessU,
    /// Whether one float is less; not of NaN.
    LessF,
    /// Whether floats are not equal: NaN are not.
    NotF,
}

/// How a value becomes one of another type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Convert {
    /// The same bits.
    Bits,
    /// The low bits of an integer.
    Low,
    /// An integer with zeros above.
    Zero,
    /// An integer with its sign above.
    Sign,
    /// A float, towards zero, that the integer holds.
    Whole,
    /// An integer that the float holds.
    Float,
    /// A float of another format, rounded to the nearest.
    Round,
}

/// Records instructions.
pub trait Recorder {
    /// A value.
    type Value: Copy;

    /// What a value is.
    fn word(&self, x: Self::Value) -> Word;
    /// An integer.
    fn integer(&mut self, n: i64, ty: Word) -> Self::Value;
    /// A float.
    fn number(&mut self, x: f64, ty: Word) -> Self::Value;
    /// What two values make.
    fn binary(&mut self, op: Binary, x: Self::Value, y: Self::Value) -> Self::Value;
    /// A truth.
    fn compare(&mut self, how: Compare, x: Self::Value, y: Self::Value) -> Self::Value;
    /// One of two values, by a truth.
    fn select(&mut self, truth: Self::Value, yes: Self::Value, no: Self::Value) -> Self::Value;
    /// A value of another type.
    fn convert(&mut self, how: Convert, x: Self::Value, to: Word) -> Self::Value;
    /// The magnitude of a float.
    fn magnitude(&mut self, x: Self::Value) -> Self::Value;

    /// What a value and an integer make.
    fn with(&mut self, op: Binary, x: Self::Value, n: i64) -> Self::Value {
        let n = self.integer(n, self.word(x));
        self.binary(op, x, n)
    }

    /// Whether an integer is this one.
    fn is(&mut self, x: Self::Value, n: i64) -> Self::Value {
        let n = self.integer(n, self.word(x));
        self.compare(Compare::Eq, x, n)
    }
}
