//! Conversions within a warp, by shuffles.
//!
//! Both layouts being linear, so is the map that says, for each register and lane of the result, which register of which
//! lane holds the element: `(lane', register') = L(register, lane)`. One `shfl.idx` moves one value out of each lane, so in
//! round t every lane must ask a lane that offers just what it needs. Lane l asks for its register `t ^ G(l)`, with `G`
//! chosen such that lanes which need different registers ask different lanes: then the lane to ask is `N(l) ^ const` and
//! the register that lane s has to offer is `P(s) ^ const`, both linear.
//!
//! ```text
//! pre:    v[i] = src[i ^ P(lane)]            selects, one step per bit of P's image
//! rounds: w[t] = shfl(v[c_t], N(lane) ^ n_t)
//! post:   dst[i] = w[i ^ G(lane)]            selects, one step per bit of G's image
//! ```
//!
//! A 2×2 transpose between lane bit 0 and register bit 0, for example, takes the select `v[i] = src[i ^ lane&1]`, two
//! rounds of which one stays in its lane, and the select back.

use smallvec::SmallVec;

use crate::f2::{Span, Vectors, combine, extend, kernel};
use crate::linear::{Dim, LinearLayout};

/// A condition on the thread: whether an odd number of the masked bits of lane and warp is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ThreadParity {
    /// The lane bits that count.
    pub lane: u32,
    /// The warp bits that count.
    pub warp: u32,
}

impl ThreadParity {
    /// The condition's value in a thread.
    pub fn holds(self, lane: u32, warp: u32) -> bool {
        ((lane & self.lane).count_ones() + (warp & self.warp).count_ones()) % 2 == 1
    }
}

/// A step of selects over an array of registers: `v[i] = if condition { v[i ^ mask] } else { v[i] }`, all at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SelectStep {
    /// What to XOR register numbers with.
    pub mask: u32,
    /// In which threads.
    pub condition: ThreadParity,
}

/// A lane number that is linear in the thread: `constant ^ (lane bits set → lane[i]) ^ (warp bits set → warp[i])`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneExpr {
    /// The constant part.
    pub constant: u32,
    /// What each lane bit contributes.
    pub lane: SmallVec<[u32; 6]>,
    /// What each warp bit contributes.
    pub warp: SmallVec<[u32; 6]>,
}

impl LaneExpr {
    /// The lane that a thread asks.
    pub fn at(&self, lane: u32, warp: u32) -> u32 {
        self.constant ^ combine(&self.lane, u64::from(lane)) ^ combine(&self.warp, u64::from(warp))
    }

    /// The constant c if the expression is `lane ^ c`: a butterfly shuffle (`shfl.bfly`), or for c = 0 no shuffle at all.
    pub fn as_xor(&self) -> Option<u32> {
        let own =
            self.lane.iter().enumerate().all(|(i, &b)| b == 1 << i) && self.warp.iter().all(|&b| b == 0);
        own.then_some(self.constant)
    }
}

/// One round: register `dst` of the result of the rounds is `shfl.idx` of register `src` from lane `from`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShuffleRound {
    /// The register offered (of the array after the pre steps).
    pub src: u32,
    /// The register received (of the array before the post steps).
    pub dst: u32,
    /// The lane to ask.
    pub from: LaneExpr,
}

/// A conversion within each warp. It is made for one unit and done for each repeat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShufflePlan {
    /// Registers that follow each other and stay together, as one word: all that is said of registers here is said of such words.
    pub per_word: u32,
    /// Registers of a unit of the source.
    pub src_registers: u32,
    /// Registers of a unit of the result.
    pub dst_registers: u32,
    /// For each repeat: its first register in the source and in the result.
    pub reps: Vec<(u32, u32)>,
    /// Selects on the source's registers.
    pub pre: Vec<SelectStep>,
    /// The rounds, those that ask the same lane next to each other: narrow elements of such rounds can share a shuffle.
    pub rounds: Vec<ShuffleRound>,
    /// Selects on the received registers, which leave the result.
    pub post: Vec<SelectStep>,
}

impl ShufflePlan {
    /// 32-bit shuffle instructions that the plan needs, when rounds that ask the same lane share one.
    pub fn num_shuffles(&self, elem_bits: u32) -> u32 {
        let elem_bits = elem_bits * self.per_word;
        let per_word = (32 / elem_bits.max(8)).max(1);
        let words = elem_bits.div_ceil(32).max(1);
        let mut count = 0;
        for same in self.rounds.chunk_by(|a, b| a.from == b.from) {
            if same[0].from.as_xor() != Some(0) {
                count += (same.len() as u32).div_ceil(per_word) * words;
            }
        }
        count * self.reps.len() as u32
    }

    /// Select instructions that the plan needs.
    pub fn num_selects(&self, elem_bits: u32) -> u32 {
        let words = (elem_bits * self.per_word).div_ceil(32).max(1);
        let unit = self.pre.len() as u32 * self.src_registers + self.post.len() as u32 * self.dst_registers;
        unit * words * self.reps.len() as u32
    }

    /// The same with words of up to 32 bits, of as many elements as stay together.
    pub(crate) fn in_words(mut self, elem_bits: u32) -> Self {
        while (8..32).contains(&(elem_bits * self.per_word))
            && let Some(pairs) = self.in_pairs()
        {
            self = pairs;
        }
        self
    }

    /// The same of pairs of registers, if none is taken apart.
    fn in_pairs(&self) -> Option<Self> {
        let halves = |steps: &[SelectStep]| -> Option<Vec<SelectStep>> {
            steps.iter().map(|s| Some(SelectStep { mask: half(s.mask)?, ..*s })).collect()
        };
        let rounds = self.rounds.iter().filter(|round| round.dst.is_multiple_of(2)).map(|low| {
            let high = self.rounds.iter().find(|round| round.dst == low.dst + 1)?;
            (high.src == low.src + 1 && high.from == low.from).then_some(())?;
            Some(ShuffleRound { src: half(low.src)?, dst: low.dst / 2, from: low.from.clone() })
        });
        let reps = self.reps.iter().map(|&(from, to)| Some((half(from)?, half(to)?)));
        Some(ShufflePlan {
            per_word: 2 * self.per_word,
            src_registers: half(self.src_registers)?,
            dst_registers: half(self.dst_registers)?,
            reps: reps.collect::<Option<_>>()?,
            pre: halves(&self.pre)?,
            rounds: rounds.collect::<Option<_>>()?,
            post: halves(&self.post)?,
        })
    }
}

/// Half of an even number.
fn half(n: u32) -> Option<u32> {
    n.is_multiple_of(2).then_some(n / 2)
}

/// Where the elements of a result lie in the source.
pub(crate) struct Source {
    /// For each in bit of the result: the register mask and the lane mask in the source.
    register: SmallVec<[(u32, u32); 16]>,
    lane: SmallVec<[(u32, u32); 8]>,
    warp: SmallVec<[(u32, u32); 8]>,
}

/// Finds, for layouts of the same unit, the source of each element of `dst` within the same warp, preferably in the same
/// lane. `None` when some element has to cross warps, or the lane counts differ.
pub(crate) fn source_in_warp(src: &LinearLayout, dst: &LinearLayout) -> Option<Source> {
    if src.in_bits(Dim::Lane) != dst.in_bits(Dim::Lane) {
        return None;
    }
    let registers = src.flat_bases(Dim::Register);
    let in_thread = Span::of(registers);
    let mut in_warp = in_thread.clone();
    src.flat_bases(Dim::Lane).iter().for_each(|&b| _ = in_warp.insert(b));
    let split = |mask: u64| ((mask & ((1 << registers.len()) - 1)) as u32, (mask >> registers.len()) as u32);
    let own = |v: u32| in_thread.solve(v).or_else(|| in_warp.solve(v)).map(split);

    let register = dst.flat_bases(Dim::Register).iter().map(|&b| own(b)).collect::<Option<_>>()?;
    let lanes = dst.flat_bases(Dim::Lane).iter().zip(src.flat_bases(Dim::Lane)).enumerate();
    let lane = lanes
        .map(|(i, (&d, &s))| match in_thread.solve(d ^ s) {
            Some(mask) => Some((mask as u32, 1 << i)),
            None => own(d),
        })
        .collect::<Option<_>>()?;
    let (src_warp, dst_warp) = (src.flat_bases(Dim::Warp), dst.flat_bases(Dim::Warp));
    let at = |bases: &[u32], i: usize| bases.get(i).copied().unwrap_or(0);
    let warp = (0..src_warp.len().max(dst_warp.len()))
        .map(|i| own(at(dst_warp, i) ^ at(src_warp, i)))
        .collect::<Option<_>>()?;
    Some(Source { register, lane, warp })
}

impl Source {
    /// The rounds and selects, if shuffles can do it with one round per register of the result.
    pub(crate) fn shuffles(&self, src_registers: u32) -> Option<ShufflePlan> {
        let lane_of = |v: &[(u32, u32)]| v.iter().map(|x| x.1).collect::<Vectors>();
        let reg_of = |v: &[(u32, u32)]| v.iter().map(|x| x.0).collect::<Vectors>();
        let (lane_lane, lane_reg) = (lane_of(&self.lane), reg_of(&self.lane));
        let (reg_lane, reg_reg) = (lane_of(&self.register), reg_of(&self.register));
        let lanes = self.lane.len();

        // Lanes that ask the same lane (the kernel) but need different registers of it: let each ask for another of its
        // registers, one that lies in a lane nobody else asks.
        let kernel = kernel(&lane_lane);
        let mut needs = Span::new();
        let crowded: Vectors =
            kernel.iter().copied().filter(|&k| needs.insert(combine(&lane_reg, u64::from(k)))).collect();
        let mut asked = Span::of(&lane_lane);
        let mut others = (0..reg_lane.len()).filter(|&r| asked.insert(reg_lane[r])).map(|r| 1u32 << r);
        let mut spread = Vectors::new();
        for _ in &crowded {
            spread.push(others.next()?);
        }
        // G sends crowded[j] to spread[j] and a complement of the crowded to 0. Kernel vectors that need the same register
        // as a combination of crowded ones differ from it by a vector which needs register 0: those complete the basis.
        let mut basis = crowded.clone();
        let mut rest_of_kernel = Vectors::new();
        let needs: Vectors = crowded.iter().map(|&k| combine(&lane_reg, u64::from(k))).collect();
        let needs = Span::of(&needs);
        for &k in &kernel {
            let same = needs.solve(combine(&lane_reg, u64::from(k))).expect("crowded vectors span the needs");
            rest_of_kernel.push(k ^ combine(&crowded, same));
        }
        basis.extend(extend(&crowded, rest_of_kernel));
        let more = extend(&basis, (0..lanes).map(|i| 1 << i));
        basis.extend(more);
        let basis = Span::of(&basis);
        let g: Vectors = (0..lanes)
            .map(|i| {
                let mask = basis.solve(1 << i).expect("a basis of the lanes");
                combine(&spread, mask & ((1 << spread.len()) - 1))
            })
            .collect();

        // N: the lane that a lane asks. M: the register it needs there.
        let n: Vectors = (0..lanes).map(|i| lane_lane[i] ^ combine(&reg_lane, u64::from(g[i]))).collect();
        let m: Vectors = (0..lanes).map(|i| lane_reg[i] ^ combine(&reg_reg, u64::from(g[i]))).collect();
        debug_assert!(crate::f2::kernel(&n).iter().all(|&k| combine(&m, u64::from(k)) == 0));
        // P = M ∘ N⁻¹ on the lanes that are asked, 0 on a complement.
        let mut asked: Vectors = n.clone();
        asked.extend(extend(&n, (0..lanes).map(|i| 1 << i)));
        let asked = Span::of(&asked);
        let p: Vectors = (0..lanes)
            .map(|i| {
                let mask = asked.solve(1 << i).expect("a basis of the lanes");
                combine(&m, mask & ((1 << lanes) - 1))
            })
            .collect();
        let of_p = |lane: u32| combine(&p, u64::from(lane));
        // What the warp adds to the register offered.
        let q: Vectors = self.warp.iter().map(|&(reg, lane)| reg ^ of_p(lane)).collect();
        let from_warp: SmallVec<[u32; 6]> = self.warp.iter().map(|w| w.1).collect();

        let mut rounds: Vec<_> = (0..1u32 << self.register.len())
            .map(|t| {
                let from = combine(&reg_lane, u64::from(t));
                ShuffleRound {
                    src: combine(&reg_reg, u64::from(t)) ^ of_p(from),
                    dst: t,
                    from: LaneExpr {
                        constant: from,
                        lane: n.iter().copied().collect(),
                        warp: from_warp.clone(),
                    },
                }
            })
            .collect();
        rounds.sort_by_key(|r| (r.from.constant, r.dst));
        let no_warp = SmallVec::<[u32; 8]>::from_elem(0, self.warp.len());
        Some(ShufflePlan {
            per_word: 1,
            src_registers,
            dst_registers: 1 << self.register.len(),
            reps: vec![(0, 0)],
            pre: select_steps(&p, &q),
            rounds,
            post: select_steps(&g, &no_warp),
        })
    }
}

/// Steps that together XOR register numbers with `Σ lane[i] (lane bits set) ^ Σ warp[i] (warp bits set)`.
fn select_steps(lane: &[u32], warp: &[u32]) -> Vec<SelectStep> {
    let all: Vectors = lane.iter().chain(warp).copied().collect();
    let mut span = Span::new();
    let basis: Vectors = all.iter().copied().filter(|&v| span.insert(v)).collect();
    let span = Span::of(&basis);
    let mut steps: Vec<_> =
        basis.iter().map(|&mask| SelectStep { mask, condition: ThreadParity::default() }).collect();
    for (i, &v) in all.iter().enumerate() {
        let parts = span.solve(v).expect("in its own span");
        for (j, step) in steps.iter_mut().enumerate() {
            if parts >> j & 1 == 1 {
                if i < lane.len() {
                    step.condition.lane |= 1 << i;
                } else {
                    step.condition.warp |= 1 << (i - lane.len());
                }
            }
        }
    }
    steps
}
