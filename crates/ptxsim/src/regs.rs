//! The register file of a warp: a structure of arrays, one array of 32 lanes a register.
//!
//! Immediates and the special registers that never change are registers too, filled when the warp starts, so that an
//! operand is always an index and an instruction's loop over lanes has no branch in it.

/// Threads in a warp.
pub(crate) const LANES: usize = 32;

/// Lanes of a mask.
pub(crate) fn lanes(mask: u32) -> impl Iterator<Item = usize> {
    let mut m = mask;
    std::iter::from_fn(move || {
        (m != 0).then(|| {
            let l = m.trailing_zeros() as usize;
            m &= m - 1;
            l
        })
    })
}

/// Which of the files a register is in, by width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum File {
    /// Predicates: a mask of lanes each.
    P,
    /// 16 bits; also registers declared with 8.
    H,
    /// 32 bits.
    W,
    /// 64 bits.
    D,
    /// 128 bits.
    Q,
}

impl File {
    pub fn bits(self) -> u32 {
        match self {
            File::P => 1,
            File::H => 16,
            File::W => 32,
            File::D => 64,
            File::Q => 128,
        }
    }

    /// The file that holds values of `bits` bits.
    pub fn of(bits: u32) -> File {
        match bits {
            1 => File::P,
            0..=16 => File::H,
            17..=32 => File::W,
            33..=64 => File::D,
            _ => File::Q,
        }
    }
}

/// A register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Reg {
    pub file: File,
    pub idx: u32,
}

/// All registers of a warp.
#[derive(Clone, Default, Debug)]
pub(crate) struct Regs {
    pub p: Vec<u32>,
    pub h: Vec<[u16; LANES]>,
    pub w: Vec<[u32; LANES]>,
    pub d: Vec<[u64; LANES]>,
    pub q: Vec<[u128; LANES]>,
}

impl Regs {
    /// Adds a register whose lanes all hold `bits`.
    pub fn push(&mut self, file: File, bits: u128) -> u32 {
        let n = match file {
            File::P => {
                self.p.push(if bits & 1 != 0 { !0 } else { 0 });
                self.p.len()
            }
            File::H => {
                self.h.push([bits as u16; LANES]);
                self.h.len()
            }
            File::W => {
                self.w.push([bits as u32; LANES]);
                self.w.len()
            }
            File::D => {
                self.d.push([bits as u64; LANES]);
                self.d.len()
            }
            File::Q => {
                self.q.push([bits; LANES]);
                self.q.len()
            }
        };
        n as u32 - 1
    }

    /// One lane of a register, zero-extended.
    pub fn lane(&self, r: Reg, lane: usize) -> u64 {
        let i = r.idx as usize;
        match r.file {
            File::P => u64::from(self.p[i] >> lane & 1),
            File::H => self.h[i][lane].into(),
            File::W => self.w[i][lane].into(),
            File::D => self.d[i][lane],
            File::Q => self.q[i][lane] as u64,
        }
    }

    /// Sets one lane, truncating.
    pub fn set_lane(&mut self, r: Reg, lane: usize, v: u64) {
        let i = r.idx as usize;
        match r.file {
            File::P => self.p[i] = self.p[i] & !(1 << lane) | ((v & 1) as u32) << lane,
            File::H => self.h[i][lane] = v as u16,
            File::W => self.w[i][lane] = v as u32,
            File::D => self.d[i][lane] = v,
            File::Q => self.q[i][lane] = v.into(),
        }
    }

    /// One lane with all its bits.
    pub fn lane_bits(&self, r: Reg, lane: usize) -> u128 {
        match r.file {
            File::Q => self.q[r.idx as usize][lane],
            _ => self.lane(r, lane).into(),
        }
    }

    /// Sets one lane to what [`Regs::lane_bits`] gave.
    pub fn set_lane_bits(&mut self, r: Reg, lane: usize, v: u128) {
        match r.file {
            File::Q => self.q[r.idx as usize][lane] = v,
            _ => self.set_lane(r, lane, v as u64),
        }
    }

    /// All lanes, zero-extended to 64 bits.
    pub fn wide(&self, r: Reg) -> [u64; LANES] {
        let i = r.idx as usize;
        match r.file {
            File::P => std::array::from_fn(|l| u64::from(self.p[i] >> l & 1)),
            File::H => self.h[i].map(u64::from),
            File::W => self.w[i].map(u64::from),
            File::D => self.d[i],
            File::Q => self.q[i].map(|v| v as u64),
        }
    }
}

/// A lane's value in one of the files.
pub(crate) trait Lane: Copy + Default + 'static {
    fn get(r: &Regs, idx: u32) -> &[Self; LANES];
    fn get_mut(r: &mut Regs, idx: u32) -> &mut [Self; LANES];
    fn from_u64(v: u64) -> Self;
}

macro_rules! lane {
    ($t:ty, $f:ident) => {
        impl Lane for $t {
            #[inline(always)]
            fn get(r: &Regs, idx: u32) -> &[Self; LANES] {
                &r.$f[idx as usize]
            }
            #[inline(always)]
            fn get_mut(r: &mut Regs, idx: u32) -> &mut [Self; LANES] {
                &mut r.$f[idx as usize]
            }
            #[inline(always)]
            fn from_u64(v: u64) -> Self {
                v as $t
            }
        }
    };
}
lane!(u16, h);
lane!(u32, w);
lane!(u64, d);
lane!(u128, q);
