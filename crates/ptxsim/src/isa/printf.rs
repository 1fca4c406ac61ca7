//! `vprintf` and `__assertfail`: the calls that a kernel makes to say something.

use super::{Flow, Inst};
use crate::access::{LOCAL_TAG, write_bytes};
use crate::machine::{Cx, thread_of};
use crate::regs::lanes;
use crate::report::FindingKind;

impl Cx<'_> {
    /// Where the call parameter whose address is in a register is in the warp's local memory.
    pub(crate) fn place(&self, r: u32, lane: usize) -> usize {
        lane * self.grid.code.local_bytes as usize + self.w.regs.d[r as usize][lane] as usize
    }

    /// `size` bytes of a call parameter.
    fn param(&self, i: &Inst, k: usize, lane: usize, size: u32) -> u64 {
        let r = i.list[i.flags as usize + k];
        crate::access::read_bytes(&self.w.local, self.place(r, lane), size)
    }

    /// One byte at a generic address, if it is readable.
    fn byte(&self, addr: u64, lane: usize) -> Option<u8> {
        if addr & 0xff << 56 == LOCAL_TAG {
            let off = (addr & !(0xff << 56)) as usize;
            let size = self.grid.code.local_bytes as usize;
            return (off < size).then(|| self.w.local[lane * size + off]);
        }
        self.grid.memory.find(addr, 1)?;
        // SAFETY: the byte lies in a live allocation.
        Some(unsafe { crate::memory::read(addr, 1) } as u8)
    }

    /// A string that ends with zero, cut at 4096 bytes.
    fn string(&self, addr: u64, lane: usize) -> String {
        let bytes: Vec<u8> =
            (0..4096).map_while(|k| self.byte(addr.wrapping_add(k), lane).filter(|&b| b != 0)).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn number(&self, addr: u64, lane: usize, size: u32) -> u64 {
        (0..u64::from(size))
            .fold(0, |v, k| v | u64::from(self.byte(addr.wrapping_add(k), lane).unwrap_or(0)) << (8 * k))
    }
}

pub(super) fn vprintf(cx: &mut Cx<'_>, i: &Inst) -> Flow {
    cx.unit.effects += 1;
    for l in lanes(cx.mask) {
        let (fmt, args) = (cx.param(i, 0, l, 8), cx.param(i, 1, l, 8));
        let fmt = cx.string(fmt, l);
        let text = format(cx, &fmt, args, l);
        if let Ok(mut o) = cx.grid.output.lock()
            && o.len() < 1 << 20
        {
            o.push(text);
        }
        if i.flags != 0 {
            let at = cx.place(i.list[0], l);
            write_bytes(&mut cx.w.local, at, 4, 1);
        }
    }
    Flow::Next
}

pub(super) fn assertfail(cx: &mut Cx<'_>, i: &Inst) -> Flow {
    let l = cx.mask.trailing_zeros() as usize;
    let text: Vec<String> = [0, 1, 3].iter().map(|&k| cx.string(cx.param(i, k, l, 8), l)).collect();
    let line = cx.param(i, 2, l, 4);
    let t = thread_of(cx.grid.block, cx.w.id, l);
    let m = format!("{}:{line}: {}: thread {t:?}: assertion `{}` failed", text[1], text[2], text[0]);
    cx.find(FindingKind::Trap, l, None, m);
    Flow::Stop
}

/// C's `printf`, with arguments laid out as the CUDA ABI has them: each aligned to its size.
fn format(cx: &Cx<'_>, fmt: &str, args: u64, lane: usize) -> String {
    let mut out = String::new();
    let mut at = args;
    let mut next = |size: u64| {
        at = at.div_ceil(size) * size;
        let v = cx.number(at, lane, size as u32);
        at += size;
        v
    };
    let mut it = fmt.chars().peekable();
    while let Some(c) = it.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let (mut flags, mut width, mut precision, mut long) =
            (String::new(), None::<usize>, None::<usize>, 0);
        while let Some(&f) = it.peek() {
            if !"-+ #0".contains(f) {
                break;
            }
            flags.push(f);
            it.next();
        }
        let digits = |it: &mut std::iter::Peekable<std::str::Chars<'_>>, next: &mut dyn FnMut(u64) -> u64| {
            if it.peek() == Some(&'*') {
                it.next();
                return Some((next(4) as usize).min(4096));
            }
            let mut n = None;
            while let Some(d) = it.peek().and_then(|c| c.to_digit(10)) {
                n = Some((n.unwrap_or(0) * 10 + d as usize).min(4096));
                it.next();
            }
            n
        };
        if let Some(w) = digits(&mut it, &mut next) {
            width = Some(w);
        }
        if it.peek() == Some(&'.') {
            it.next();
            precision = Some(digits(&mut it, &mut next).unwrap_or(0));
        }
        while let Some(&m) = it.peek() {
            match m {
                'l' | 'j' | 'z' | 't' => long += 1,
                'h' => {}
                _ => break,
            }
            it.next();
        }
        let Some(conv) = it.next() else { break };
        let size = if long > 0 { 8 } else { 4 };
        let body = converted(cx, lane, conv, size, &flags, precision, &mut next);
        pad(&mut out, &body, conv, &flags, width.unwrap_or(0));
    }
    out
}

/// An argument as the conversion `conv` shows it, without padding; `size` are the bytes of an integer.
fn converted(
    cx: &Cx<'_>,
    lane: usize,
    conv: char,
    size: u64,
    flags: &str,
    precision: Option<usize>,
    next: &mut dyn FnMut(u64) -> u64,
) -> String {
    let mut body = match conv {
        '%' => "%".to_string(),
        'd' | 'i' => {
            let v = next(size);
            let v = if size == 4 { i64::from(v as i32) } else { v as i64 };
            if v >= 0 && flags.contains('+') {
                format!("+{v}")
            } else if v >= 0 && flags.contains(' ') {
                format!(" {v}")
            } else {
                v.to_string()
            }
        }
        'u' => next(size).to_string(),
        'x' => format!("{}{:x}", if flags.contains('#') { "0x" } else { "" }, next(size)),
        'X' => format!("{}{:X}", if flags.contains('#') { "0X" } else { "" }, next(size)),
        'o' => format!("{:o}", next(size)),
        'p' => format!("{:#x}", next(8)),
        'c' => (next(4) as u8 as char).to_string(),
        's' => {
            let s = cx.string(next(8), lane);
            match precision {
                Some(p) => s.chars().take(p).collect(),
                None => s,
            }
        }
        'f' | 'F' => decimal(f64::from_bits(next(8)), precision.unwrap_or(6)),
        'e' | 'E' => scientific(f64::from_bits(next(8)), precision.unwrap_or(6), conv == 'E'),
        'g' | 'G' => general(f64::from_bits(next(8)), precision.unwrap_or(6).max(1)),
        c => format!("%{c}"),
    };
    if "fFeEgG".contains(conv) && flags.contains('+') && !body.starts_with('-') {
        body.insert(0, '+');
    }
    body
}

/// Appends `body`, padded to `width`.
fn pad(out: &mut String, body: &str, conv: char, flags: &str, width: usize) {
    let pad = width.saturating_sub(body.chars().count());
    if flags.contains('-') {
        out.push_str(body);
        out.extend(std::iter::repeat_n(' ', pad));
    } else if flags.contains('0') && !"sc".contains(conv) {
        let sign = usize::from(body.starts_with(['-', '+']));
        out.push_str(&body[..sign]);
        out.extend(std::iter::repeat_n('0', pad));
        out.push_str(&body[sign..]);
    } else {
        out.extend(std::iter::repeat_n(' ', pad));
        out.push_str(body);
    }
}

fn special(x: f64) -> Option<String> {
    if x.is_nan() {
        return Some("nan".into());
    }
    x.is_infinite().then(|| if x > 0.0 { "inf".into() } else { "-inf".into() })
}

fn decimal(x: f64, p: usize) -> String {
    special(x).unwrap_or_else(|| format!("{x:.p$}"))
}

fn scientific(x: f64, p: usize, upper: bool) -> String {
    if let Some(s) = special(x) {
        return s;
    }
    let s = format!("{x:.p$e}");
    let (m, e) = s.split_once('e').unwrap_or((&s, "0"));
    let e: i32 = e.parse().unwrap_or(0);
    format!("{m}{}{}{:02}", if upper { 'E' } else { 'e' }, if e < 0 { '-' } else { '+' }, e.abs())
}

fn general(x: f64, p: usize) -> String {
    if let Some(s) = special(x) {
        return s;
    }
    let e: i32 = if x == 0.0 {
        0
    } else {
        format!("{x:.*e}", p - 1).split_once('e').and_then(|(_, e)| e.parse().ok()).unwrap_or(0)
    };
    let trim = |s: &str| {
        if s.contains('.') {
            s.trim_end_matches('0').trim_end_matches('.').to_string()
        } else {
            s.to_string()
        }
    };
    if e < -4 || e >= p as i32 {
        let s = scientific(x, p - 1, false);
        let (m, e) = s.split_once('e').unwrap_or((&s, "+00"));
        format!("{}e{e}", trim(m))
    } else {
        trim(&decimal(x, (p as i32 - 1 - e).max(0) as usize))
    }
}
