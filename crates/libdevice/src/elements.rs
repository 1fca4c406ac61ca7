//! From a function of numbers to one of tiles, which are bytes in the order of the machine.

use crate::Type;

/// A number that a function takes or gives.
pub(crate) trait Number: Copy {
    /// Its type.
    const TYPE: Type;
    /// As bytes.
    type Bytes: AsRef<[u8]>;
    /// Tiles by their elements.
    fn elements(bytes: &[u8]) -> &[Self::Bytes];
    /// Tiles by their elements, for writing.
    fn elements_mut(bytes: &mut [u8]) -> &mut [Self::Bytes];
    /// The number of some bytes.
    fn get(bytes: &Self::Bytes) -> Self;
    /// The bytes of a number.
    fn put(self, bytes: &mut Self::Bytes);
}

macro_rules! number {
    ($($T:ident $name:ident $size:literal),*) => {$(
        impl Number for $T {
            const TYPE: Type = Type::$name;
            type Bytes = [u8; $size];
            fn elements(bytes: &[u8]) -> &[[u8; $size]] {
                bytes.as_chunks().0
            }
            fn elements_mut(bytes: &mut [u8]) -> &mut [[u8; $size]] {
                bytes.as_chunks_mut().0
            }
            fn get(bytes: &[u8; $size]) -> $T {
                $T::from_ne_bytes(*bytes)
            }
            fn put(self, bytes: &mut [u8; $size]) {
                *bytes = self.to_ne_bytes();
            }
        }
    )*};
}
number!(i32 I32 4, u32 U32 4, i64 I64 8, u64 U64 8, f32 F32 4, f64 F64 8);

/// A function of numbers; `Args` are their types.
pub(crate) trait OfNumbers<Args> {
    /// Applies it to each element.
    fn each(&self, args: &[&[u8]], out: &mut [u8]);
}

macro_rules! of_numbers {
    ($($x:ident: $X:ident = $i:literal),+) => {
        impl<$($X: Number,)+ R: Number, F: Fn($($X),+) -> R> OfNumbers<($($X,)+ R)> for F {
            fn each(&self, args: &[&[u8]], out: &mut [u8]) {
                let out = R::elements_mut(out);
                let n = out.len();
                $(let $x = &$X::elements(args[$i])[..n];)+
                for (i, out) in out.iter_mut().enumerate() {
                    self($($X::get(&$x[i])),+).put(out);
                }
            }
        }
    };
}
of_numbers!(a: A = 0);
of_numbers!(a: A = 0, b: B = 1);
of_numbers!(a: A = 0, b: B = 1, c: C = 2);
of_numbers!(a: A = 0, b: B = 1, c: C = 2, d: D = 3);

/// Applies a function of numbers to each element.
pub(crate) fn apply<Args>(args: &[&[u8]], out: &mut [u8], f: impl OfNumbers<Args>) {
    f.each(args, out);
}
