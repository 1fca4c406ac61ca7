//! Memory accesses of a warp: addresses to places, with bounds, alignment and the counters.
//!
//! A place is host memory, shared memory of some CTA of the cluster, or the lane's local memory. Generic addresses
//! carry a tag in their top byte for the last two (§5.1.1 leaves the mapping to the implementation); no host pointer
//! has bits there. A 32-bit shared address is the offset in the CTA's own window, or, with a nonzero top byte, in the
//! window of the CTA of rank one less (`mapa`).

use crate::ast::Space;
use crate::isa::{Inst, NARROW_ADDRESS};
use crate::machine::{Cx, Visit};
use crate::memory;
use crate::regs::{LANES, lanes};
use crate::report::FindingKind;

/// Top byte of generic addresses of shared memory.
pub(crate) const SHARED_TAG: u64 = 1 << 56;
/// Top byte of generic addresses of local memory.
pub(crate) const LOCAL_TAG: u64 = 2 << 56;
const TAG: u64 = 0xff << 56;

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Read,
    Write,
    Atomic,
    /// A read by a copy, through the asynchronous proxy.
    CopyRead,
    /// A write by a copy.
    CopyWrite,
    /// A copy that combines what it brings with what is there, each element atomically.
    CopyReduce,
    /// A load or store that other threads may race with on purpose: volatile, relaxed, acquire or release.
    StrongRead,
    StrongWrite,
}

impl Kind {
    pub fn writes(self) -> bool {
        matches!(self, Kind::Write | Kind::Atomic | Kind::StrongWrite | Kind::CopyWrite | Kind::CopyReduce)
    }
    pub fn reads(self) -> bool {
        !matches!(self, Kind::Write | Kind::StrongWrite | Kind::CopyWrite)
    }
    pub fn strong(self) -> bool {
        !matches!(self, Kind::Read | Kind::Write | Kind::CopyRead | Kind::CopyWrite)
    }
    /// Whether it goes through the asynchronous proxy.
    pub fn is_copy(self) -> bool {
        matches!(self, Kind::CopyRead | Kind::CopyWrite | Kind::CopyReduce)
    }
}

/// Checked places, a lane each.
pub(crate) struct Places {
    /// Host address, `rank << 32 | offset` in shared memory, or an offset in the warp's local memory.
    pub at: [u64; LANES],
    pub host: u32,
    pub shared: u32,
    pub local: u32,
}

impl Places {
    pub fn mask(&self) -> u32 {
        self.host | self.shared | self.local
    }
}

impl Cx<'_> {
    /// The addresses of memory operand `a`.
    #[inline(always)]
    pub fn addresses(&self, i: &Inst) -> [u64; LANES] {
        self.address_of(i.a, i.imm, i.flags & NARROW_ADDRESS != 0)
    }

    #[inline(always)]
    pub fn address_of(&self, reg: u32, imm: i64, narrow: bool) -> [u64; LANES] {
        let off = imm as u64;
        if narrow {
            self.w.regs.w[reg as usize].map(|a| u64::from(a.wrapping_add(off as u32)))
        } else {
            self.w.regs.d[reg as usize].map(|a| a.wrapping_add(off))
        }
    }

    /// Checks an access of `bytes` bytes a lane and finds its places. Lanes that fail are left out, with a finding.
    pub fn resolve(&mut self, space: Space, addr: &[u64; LANES], bytes: u32, kind: Kind) -> Places {
        let mask = self.mask;
        let mut p = Places { at: *addr, host: 0, shared: 0, local: 0 };
        match space {
            Space::Global | Space::Const | Space::Param | Space::Reg => p.host = mask,
            Space::Shared | Space::SharedCluster => p.shared = mask,
            Space::Local => p.local = mask,
            Space::Generic => {
                for l in lanes(mask) {
                    match addr[l] & TAG {
                        SHARED_TAG => p.shared |= 1 << l,
                        LOCAL_TAG => p.local |= 1 << l,
                        _ => p.host |= 1 << l,
                    }
                }
            }
        }
        if p.host != 0 {
            let counted = matches!(space, Space::Global | Space::Generic);
            self.host(&mut p, bytes, kind, counted);
            // Atomics say themselves whether they changed anything.
            self.unit.effects += u64::from(kind.writes() && kind != Kind::Atomic);
        }
        if p.shared != 0 {
            self.shared(&mut p, bytes, kind, space != Space::Generic);
        }
        if p.local != 0 {
            self.local(&mut p, bytes);
        }
        p
    }

    fn host(&mut self, p: &mut Places, bytes: u32, kind: Kind, counted: bool) {
        let align = u64::from(bytes.max(1)) - 1;
        let memory = self.grid.memory;
        let (mut lo, mut hi, mut read_only) = (1u64, 0u64, false);
        let mut bad = 0u32;
        for l in lanes(p.host) {
            let a = p.at[l];
            if a < lo || a.wrapping_add(bytes.into()) > hi || a > hi {
                match memory.find(a, bytes.into()) {
                    Some(k) => {
                        let al = &memory.allocations()[k];
                        lo = al.base;
                        hi = al.base + al.len;
                        read_only = !al.writable;
                    }
                    None => {
                        bad |= 1 << l;
                        continue;
                    }
                }
            }
            if a & align != 0 || (read_only && kind.writes()) {
                bad |= 1 << l;
            }
        }
        if bad != 0 {
            p.host &= !bad;
            let l = bad.trailing_zeros() as usize;
            let a = p.at[l];
            let (k, m) = if memory.find(a, bytes.into()).is_none() {
                let m = format!("{bytes} bytes at {a:#x}, {}", memory.describe(a));
                (FindingKind::GlobalBounds, m)
            } else if a & align != 0 {
                (
                    FindingKind::Misaligned,
                    format!("{a:#x} is not a multiple of {bytes}: {}", memory.describe(a)),
                )
            } else {
                (FindingKind::ReadOnly, format!("stores to {}", memory.describe(a)))
            };
            self.find(k, l, Some(a), m);
        }
        if self.tracked && counted {
            self.count_sectors(p, bytes);
        }
        if self.grid.options.checks && self.tracked && p.host != 0 {
            crate::shadow::global(self, p, bytes, kind, None);
        }
    }

    fn count_sectors(&mut self, p: &Places, bytes: u32) {
        let m = p.host;
        let n = m.count_ones();
        if n == 0 {
            return;
        }
        let b = u64::from(bytes);
        let first = p.at[m.trailing_zeros() as usize];
        let dense = m == !0 && (0..LANES).all(|l| p.at[l] == first.wrapping_add(l as u64 * b));
        let (sectors, min) = if dense {
            let end = first + 32 * b - 1;
            ((end >> 5) - (first >> 5) + 1, b)
        } else {
            let mut v = [0u64; LANES];
            let mut k = 0;
            for l in lanes(m) {
                v[k] = p.at[l];
                k += 1;
            }
            let v = &mut v[..k];
            if !v.is_sorted() {
                v.sort_unstable();
            }
            let (mut sectors, mut distinct, mut last_sector, mut last) = (0, 0, u64::MAX, u64::MAX);
            for &a in v.iter() {
                if a != last {
                    distinct += 1;
                    last = a;
                }
                let (s, e) = (a >> 5, (a + b - 1) >> 5);
                if last_sector == u64::MAX || s > last_sector {
                    sectors += e - s + 1;
                    last_sector = e;
                } else if e > last_sector {
                    sectors += e - last_sector;
                    last_sector = e;
                }
            }
            (sectors, u64::div_ceil(distinct * b, 32))
        };
        let st = &mut self.unit.stats[self.pc as usize];
        st.sectors += sectors;
        // Accesses that overlap in part could make the distinct bytes look like more than there are.
        st.sectors_min += min.min(sectors);
        st.global_bytes += u64::from(n) * b;
    }

    /// Notes an access to the shared memory of another CTA of the cluster.
    fn visit(&mut self, rank: u32, lane: usize) {
        let (warp, pc, stamp) = (self.w.sync.index, self.pc, self.w.sync.now());
        let Some(cta) = self.unit.ctas.iter_mut().find(|c| c.rank == rank) else { return };
        match cta.visits.iter_mut().find(|v| v.warp == warp && v.pc == pc) {
            Some(v) => v.stamp = stamp,
            None => cta.visits.push(Visit { warp, lane: lane as u32, pc, stamp }),
        }
    }

    fn shared(&mut self, p: &mut Places, bytes: u32, kind: Kind, narrow: bool) {
        let align = u64::from(bytes.max(1)) - 1;
        let own = self.unit.ctas[self.w.cta].rank;
        let ranks = self.unit.ctas.len() as u64;
        let size = u64::from(self.grid.shared_bytes);
        let mut bad = 0u32;
        for l in lanes(p.shared) {
            let a = if narrow && p.at[l] & TAG != SHARED_TAG { p.at[l] } else { p.at[l] & !TAG };
            let (rank, off) = if a < 1 << 24 {
                (u64::from(own), a)
            } else if a < 1 << 32 {
                ((a >> 24) - 1, a & 0xff_ffff)
            } else {
                (ranks, 0)
            };
            if rank >= ranks || off + u64::from(bytes) > size || off & align != 0 {
                bad |= 1 << l;
            }
            p.at[l] = rank << 32 | off;
            if rank < ranks && rank != u64::from(own) && self.grid.options.checks {
                self.visit(rank as u32, l);
            }
        }
        if bad != 0 {
            p.shared &= !bad;
            let l = bad.trailing_zeros() as usize;
            let (rank, off) = (p.at[l] >> 32, p.at[l] & 0xffff_ffff);
            let (k, m) = if rank >= ranks {
                (FindingKind::SharedBounds, "the address is in no shared window of the cluster".to_string())
            } else if off + u64::from(bytes) > size {
                let m = format!("{bytes} bytes at offset {off} of a window of {size} bytes");
                (FindingKind::SharedBounds, m)
            } else {
                (FindingKind::Misaligned, format!("shared offset {off} is not a multiple of {bytes}"))
            };
            self.find(k, l, Some(off), m);
        }
        if self.tracked {
            self.count_banks(p, bytes);
        }
        if self.grid.options.checks && self.tracked && p.shared != 0 {
            crate::shadow::shared(self, p, bytes, kind);
        }
    }

    /// Wavefronts of a shared access: a pass serves each of the 32 banks once, for lanes that want the same word
    /// together; 8-byte accesses go by half warps and 16-byte ones by quarters.
    fn count_banks(&mut self, p: &Places, bytes: u32) {
        let m = p.shared;
        if m == 0 {
            return;
        }
        let group = match bytes {
            0..=4 => 32,
            8 => 16,
            _ => 8,
        };
        let words = bytes.div_ceil(4);
        let (mut waves, mut min) = (0u64, 0u64);
        for g in 0..LANES / group {
            let gm = m >> (g * group) & (((1u64 << group) - 1) as u32);
            if gm == 0 {
                continue;
            }
            min += 1;
            let mut bank: [[u32; 4]; 32] = [[u32::MAX; 4]; 32];
            let mut count = [0u8; 32];
            let mut extra: Vec<u32> = vec![];
            let mut most = 1;
            for l in lanes(gm) {
                let w0 = (p.at[g * group + l] >> 2) as u32;
                for w in w0..w0 + words {
                    let b = (w & 31) as usize;
                    let c = count[b] as usize;
                    if bank[b][..c.min(4)].contains(&w) || (c > 4 && extra.contains(&w)) {
                        continue;
                    }
                    if c < 4 {
                        bank[b][c] = w;
                    } else {
                        extra.push(w);
                    }
                    count[b] += 1;
                    most = most.max(c + 1);
                }
            }
            waves += most as u64;
        }
        let st = &mut self.unit.stats[self.pc as usize];
        st.wavefronts += waves;
        st.wavefronts_min += min;
        st.shared_bytes += u64::from(m.count_ones() * bytes);
    }

    fn local(&mut self, p: &mut Places, bytes: u32) {
        let size = u64::from(self.grid.code.local_bytes);
        let align = u64::from(bytes.max(1)) - 1;
        let mut bad = 0u32;
        for l in lanes(p.local) {
            let off = p.at[l] & !TAG;
            if off.checked_add(bytes.into()).is_none_or(|e| e > size) || off & align != 0 {
                bad |= 1 << l;
                continue;
            }
            p.at[l] = off + l as u64 * size;
        }
        if bad != 0 {
            p.local &= !bad;
            let l = bad.trailing_zeros() as usize;
            let off = p.at[l] & !TAG;
            let (k, m) = if off & align != 0 {
                (FindingKind::Misaligned, format!("local offset {off} is not a multiple of {bytes}"))
            } else {
                (
                    FindingKind::LocalBounds,
                    format!("{bytes} bytes at offset {off} of {size} bytes of local memory"),
                )
            };
            self.find(k, l, Some(off), m);
        }
    }

    /// Reads `size` (1, 2, 4 or 8) bytes at `off` past a lane's place.
    #[inline(always)]
    pub fn read(&self, p: &Places, l: usize, off: u32, size: u32) -> u64 {
        let bit = 1u32 << l;
        if p.host & bit != 0 {
            // SAFETY: `resolve` found the lane's bytes in a live allocation and aligned.
            return unsafe { memory::read(p.at[l] + u64::from(off), size) };
        }
        let (mem, at): (&[u8], usize) = if p.shared & bit != 0 {
            (&self.unit.ctas[(p.at[l] >> 32) as usize].shared, (p.at[l] as u32 + off) as usize)
        } else {
            (&self.w.local, p.at[l] as usize + off as usize)
        };
        read_bytes(mem, at, size)
    }

    /// Writes `size` (1, 2, 4 or 8) bytes at `off` past a lane's place.
    #[inline(always)]
    pub fn write(&mut self, p: &Places, l: usize, off: u32, size: u32, v: u64) {
        let bit = 1u32 << l;
        if self.suspect & bit != 0 && self.read(p, l, off, size) != v & (!0 >> (64 - 8 * size)) {
            self.confirmed |= bit;
        }
        if p.host & bit != 0 {
            // SAFETY: `resolve` found the lane's bytes in a live writable allocation and aligned.
            unsafe { memory::write(p.at[l] + u64::from(off), size, v) };
            return;
        }
        let (mem, at): (&mut [u8], usize) = if p.shared & bit != 0 {
            (&mut self.unit.ctas[(p.at[l] >> 32) as usize].shared, (p.at[l] as u32 + off) as usize)
        } else {
            (&mut self.w.local, p.at[l] as usize + off as usize)
        };
        write_bytes(mem, at, size, v);
    }
}

#[inline(always)]
pub(crate) fn read_bytes(mem: &[u8], at: usize, size: u32) -> u64 {
    match size {
        1 => mem[at].into(),
        2 => u16::from_le_bytes([mem[at], mem[at + 1]]).into(),
        4 => {
            let mut b = [0; 4];
            b.copy_from_slice(&mem[at..at + 4]);
            u32::from_le_bytes(b).into()
        }
        _ => {
            let mut b = [0; 8];
            b.copy_from_slice(&mem[at..at + 8]);
            u64::from_le_bytes(b)
        }
    }
}

#[inline(always)]
pub(crate) fn write_bytes(mem: &mut [u8], at: usize, size: u32, v: u64) {
    let n = size as usize;
    mem[at..at + n].copy_from_slice(&v.to_le_bytes()[..n]);
}
