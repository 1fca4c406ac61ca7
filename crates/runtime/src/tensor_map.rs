//! Tensor maps: what the tensor memory accelerator must know of a tensor (CUDA driver API, "Tensor Map Object Management").

use std::ffi::c_void;

use crate::driver::driver;
use crate::error::{Error, Result, check};

/// The most dimensions of a tensor map.
pub const MAX_RANK: usize = 5;

/// `CUtensorMap`: opaque, and passed to a kernel by value.
#[repr(C, align(64))]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TensorMapBytes(pub [u64; 16]);

/// A tensor in global memory and the box that one copy moves. Dimension 0 is the innermost, whose elements lie side by
/// side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TensorMap<'a> {
    /// Address of element 0, a multiple of 16.
    pub address: u64,
    /// The number of a `CUtensorMapDataType`.
    pub element: u32,
    /// Extents, one to five of them.
    pub dims: &'a [u64],
    /// Bytes between neighbours along each dimension but the innermost, multiples of 16.
    pub strides: &'a [u64],
    /// Extents of the box, at most 256 each.
    pub box_dims: &'a [u32],
    /// How a box lies in shared memory: 0 (row by row), or the period of its swizzle in bytes, 32, 64 or 128.
    pub swizzle_bytes: u32,
    /// Elements outside of the tensor read as NaN, not zero.
    pub nan: bool,
}

impl TensorMap<'_> {
    /// The bytes for the GPU.
    ///
    /// # Errors
    /// What the driver refuses; a driver older than CUDA 12.
    pub fn encode(&self) -> Result<TensorMapBytes> {
        let rank = self.dims.len();
        if !(1..=MAX_RANK).contains(&rank) || self.strides.len() + 1 != rank || self.box_dims.len() != rank {
            return Err(Error::InvalidLaunch(format!("a tensor map of {rank} dimensions: {self:?}")));
        }
        if !self.address.is_multiple_of(16) {
            let said = format!(
                "a tensor descriptor's base must be a multiple of 16 bytes, and is {:#x}",
                self.address
            );
            return Err(Error::InvalidLaunch(said));
        }
        if let Some(bytes) = self.strides.iter().find(|bytes| !bytes.is_multiple_of(16)) {
            let said =
                format!("a tensor descriptor's rows must be multiples of 16 bytes apart, and are {bytes}");
            return Err(Error::InvalidLaunch(said));
        }
        let Some(encode) = driver()?.tensor_map_encode_tiled else {
            return Err(Error::InvalidLaunch("tensor maps need a driver for CUDA 12 or later".to_string()));
        };
        let swizzle = match self.swizzle_bytes {
            32 => 1,
            64 => 2,
            128 => 3,
            _ => 0,
        };
        const INTERLEAVE_NONE: i32 = 0;
        const L2_PROMOTION_128B: i32 = 2;
        let mut bytes = TensorMapBytes([0; 16]);
        // SAFETY: the arrays have `rank` elements (`strides` one less, which is what is read), the result has 128 bytes
        // and is aligned to 64. The address is not accessed.
        let code = unsafe {
            encode(
                &mut bytes,
                self.element as i32,
                rank as u32,
                self.address as *mut c_void,
                self.dims.as_ptr(),
                self.strides.as_ptr(),
                self.box_dims.as_ptr(),
                [1u32; MAX_RANK].as_ptr(),
                INTERLEAVE_NONE,
                swizzle,
                L2_PROMOTION_128B,
                i32::from(self.nan),
            )
        };
        check("cuTensorMapEncodeTiled", code).map_err(|e| e.with_hint(|| format!("{self:?}")))?;
        Ok(bytes)
    }
}
