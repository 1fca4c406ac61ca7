//! Functions of bits.

/// The position of the lowest bit that is set, from 1; 0 where none is.
pub(crate) fn find_first_set(x: i64) -> i32 {
    if x == 0 { 0 } else { x.trailing_zeros() as i32 + 1 }
}

/// Four of the eight bytes of `y` and `x`, each chosen by three bits of a hexadecimal digit of `selector`.
pub(crate) fn byte_perm(x: i32, y: i32, selector: i32) -> i32 {
    let bytes = (u64::from(y as u32) << 32 | u64::from(x as u32)).to_le_bytes();
    i32::from_le_bytes(std::array::from_fn(|i| bytes[(selector >> (4 * i)) as usize & 7]))
}

/// The number whose high and low 32 bits these are.
pub(crate) fn double_of(high: i32, low: i32) -> f64 {
    f64::from_bits(u64::from(high as u32) << 32 | u64::from(low as u32))
}
