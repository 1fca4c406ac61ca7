//! Tokens to the syntax tree (PTX ISA §4, §5, §7, §11).

use crate::Error;
use crate::ast::*;
use crate::lex::{Tok, Token, lex};

/// Blocks nested deeper than this are refused, so that recursion is bounded.
const MAX_DEPTH: u32 = 64;

/// Parses a module.
pub fn parse(text: &str) -> Result<Module, Error> {
    let toks = lex(text)?;
    let mut p = Parser { toks: &toks, at: 0, loc: None, depth: 0 };
    let mut m = Module { address_size: 64, ..Module::default() };
    p.module(&mut m)?;
    Ok(m)
}

struct Parser<'t, 'a> {
    toks: &'t [Token<'a>],
    at: usize,
    loc: Option<Loc>,
    depth: u32,
}

fn show(t: Tok<'_>) -> String {
    match t {
        Tok::Ident(s) | Tok::Num(s) => format!("`{s}`"),
        Tok::Dot(s) => format!("`.{s}`"),
        Tok::Str(s) => format!("\"{s}\""),
        Tok::P(c) => format!("`{c}`"),
        Tok::Eof => "the end of the text".into(),
    }
}

impl<'a> Parser<'_, 'a> {
    fn peek(&self) -> Tok<'a> {
        self.toks[self.at].tok
    }
    fn peek2(&self) -> Tok<'a> {
        self.toks.get(self.at + 1).map_or(Tok::Eof, |t| t.tok)
    }
    fn line(&self) -> u32 {
        self.toks[self.at].line
    }
    fn next(&mut self) -> Tok<'a> {
        let t = self.toks[self.at].tok;
        if self.at + 1 < self.toks.len() {
            self.at += 1;
        }
        t
    }
    fn eat(&mut self, c: char) -> bool {
        let yes = self.peek() == Tok::P(c);
        if yes {
            self.next();
        }
        yes
    }
    fn eat_dot(&mut self, word: &str) -> bool {
        let yes = self.peek() == Tok::Dot(word);
        if yes {
            self.next();
        }
        yes
    }
    fn fail<T>(&self, what: &str) -> Result<T, Error> {
        Err(Error::at(self.line(), format!("expected {what}, found {}", show(self.peek()))))
    }
    fn expect(&mut self, c: char) -> Result<(), Error> {
        if self.eat(c) { Ok(()) } else { self.fail(&format!("`{c}`")) }
    }
    fn ident(&mut self, what: &str) -> Result<&'a str, Error> {
        match self.peek() {
            Tok::Ident(s) => {
                self.next();
                Ok(s)
            }
            _ => self.fail(what),
        }
    }
    fn uint(&mut self, what: &str) -> Result<u64, Error> {
        match self.peek() {
            Tok::Num(_) => self.int_expr(),
            _ => self.fail(what),
        }
    }

    fn module(&mut self, m: &mut Module) -> Result<(), Error> {
        let mut external = false;
        loop {
            match self.peek() {
                Tok::Eof => return Ok(()),
                Tok::Dot("version") => {
                    self.next();
                    let Tok::Num(v) = self.next() else { return self.fail("a version such as 8.4") };
                    let (a, b) = v.split_once('.').unwrap_or((v, "0"));
                    m.version = (a.parse().unwrap_or(0), b.parse().unwrap_or(0));
                }
                Tok::Dot("target") => {
                    self.next();
                    m.target = self.ident("a target such as sm_90a")?.to_string();
                    while self.eat(',') {
                        self.ident("a target option")?;
                    }
                }
                Tok::Dot("address_size") => {
                    self.next();
                    m.address_size = self.uint("32 or 64")? as u32;
                    if m.address_size != 64 {
                        return Err(Error::at(self.line(), "not supported yet: .address_size other than 64"));
                    }
                }
                Tok::Dot("file") => {
                    self.next();
                    let n = self.uint("a file number")? as u32;
                    let Tok::Str(s) = self.next() else { return self.fail("a file name") };
                    m.files.push((n, s.to_string()));
                    while self.eat(',') {
                        self.next();
                    }
                }
                Tok::Dot("section") => self.section()?,
                Tok::Dot("pragma") => self.skip_to_semicolon()?,
                Tok::Dot("alias") => {
                    return Err(Error::at(self.line(), "not supported yet: .alias"));
                }
                Tok::Dot("visible" | "weak" | "common") => {
                    self.next();
                }
                Tok::Dot("extern") => {
                    self.next();
                    external = true;
                }
                Tok::Dot("entry") | Tok::Dot("func") => {
                    let f = self.function()?;
                    m.functions.push(f);
                    external = false;
                }
                Tok::Dot("global" | "shared" | "const" | "local" | "reg" | "param") => {
                    for mut v in self.variables()? {
                        v.external = external;
                        m.vars.push(v);
                    }
                    external = false;
                }
                Tok::Dot("loc") => self.loc()?,
                Tok::P(';') => {
                    self.next();
                }
                _ => return self.fail("a module directive"),
            }
        }
    }

    /// `.section name { … }`: debugging tables, which mean nothing here.
    fn section(&mut self) -> Result<(), Error> {
        let line = self.line();
        while self.peek() != Tok::P('{') {
            if self.peek() == Tok::Eof {
                return Err(Error::at(line, "a .section has no body"));
            }
            self.next();
        }
        let mut depth = 0;
        loop {
            match self.next() {
                Tok::P('{') => depth += 1,
                Tok::P('}') => {
                    depth -= 1;
                    if depth == 0 {
                        return Ok(());
                    }
                }
                Tok::Eof => return Err(Error::at(line, "a .section is never closed")),
                _ => {}
            }
        }
    }

    fn skip_to_semicolon(&mut self) -> Result<(), Error> {
        loop {
            match self.next() {
                Tok::P(';') => return Ok(()),
                Tok::Eof => return self.fail("`;`"),
                _ => {}
            }
        }
    }

    fn loc(&mut self) -> Result<(), Error> {
        self.next();
        let file = self.uint("a file number")? as u32;
        let line = self.uint("a line")? as u32;
        let column = self.uint("a column")? as u32;
        // `, function_name sym+off, inlined_at file line column`: the inner position is the useful one.
        while self.eat(',') {
            match self.next() {
                Tok::Ident("function_name") => {
                    self.ident("a label")?;
                    if self.eat('+') {
                        self.uint("an offset")?;
                    }
                }
                Tok::Ident("inlined_at") => {
                    for _ in 0..3 {
                        self.uint("a position")?;
                    }
                }
                _ => return self.fail("function_name or inlined_at"),
            }
        }
        self.loc = (line != 0).then_some(Loc { file, line, column });
        Ok(())
    }

    fn dims3(&mut self) -> Result<[u32; 3], Error> {
        let mut d = [1u32; 3];
        for (k, d) in d.iter_mut().enumerate() {
            if k > 0 && !self.eat(',') {
                break;
            }
            *d = self.uint("a size")? as u32;
        }
        Ok(d)
    }

    fn function(&mut self) -> Result<Function, Error> {
        let line = self.line();
        let entry = self.next() == Tok::Dot("entry");
        let mut f = Function {
            name: String::new(),
            entry,
            rets: vec![],
            params: vec![],
            body: None,
            reqntid: None,
            maxntid: None,
            maxnreg: None,
            minnctapersm: None,
            cluster: None,
            line,
        };
        self.attribute()?;
        if self.peek() == Tok::P('(') {
            f.rets = self.params()?;
        }
        f.name = self.ident("a function name")?.to_string();
        if self.peek() == Tok::P('(') {
            f.params = self.params()?;
        }
        loop {
            match self.peek() {
                Tok::Dot("reqntid") => {
                    self.next();
                    f.reqntid = Some(self.dims3()?);
                }
                Tok::Dot("maxntid") => {
                    self.next();
                    f.maxntid = Some(self.dims3()?);
                }
                Tok::Dot("reqnctapercluster") => {
                    self.next();
                    f.cluster = Some(self.dims3()?);
                }
                Tok::Dot("maxnreg") => {
                    self.next();
                    f.maxnreg = Some(self.uint("a number")? as u32);
                }
                Tok::Dot("minnctapersm") => {
                    self.next();
                    f.minnctapersm = Some(self.uint("a number")? as u32);
                }
                Tok::Dot("maxnctapersm" | "maxclusterrank" | "abi_preserve" | "abi_preserve_control") => {
                    self.next();
                    self.uint("a number")?;
                }
                Tok::Dot("noreturn" | "explicitcluster" | "blocksareclusters" | "unique") => {
                    self.next();
                }
                Tok::Dot("pragma") => self.skip_to_semicolon()?,
                _ => break,
            }
        }
        if self.eat(';') {
            return Ok(f);
        }
        self.loc = None;
        self.expect('{')?;
        f.body = Some(self.body()?);
        Ok(f)
    }

    fn attribute(&mut self) -> Result<(), Error> {
        while self.eat_dot("attribute") {
            self.expect('(')?;
            while !self.eat(')') {
                if self.next() == Tok::Eof {
                    return self.fail("`)`");
                }
            }
        }
        Ok(())
    }

    fn params(&mut self) -> Result<Vec<Var>, Error> {
        self.expect('(')?;
        let mut out = vec![];
        if self.eat(')') {
            return Ok(out);
        }
        loop {
            let line = self.line();
            let space = match self.next() {
                Tok::Dot("param") => Space::Param,
                Tok::Dot("reg") => Space::Reg,
                _ => return self.fail("`.param` or `.reg`"),
            };
            let (mut align, mut ty, mut vec) = (None, None, 1);
            let mut pointer = false;
            loop {
                match self.peek() {
                    Tok::Dot("align") => {
                        self.next();
                        let a = self.uint("an alignment")? as u32;
                        if !pointer {
                            align = Some(a);
                        }
                    }
                    Tok::Dot("ptr") => {
                        self.next();
                        pointer = true;
                    }
                    Tok::Dot("global" | "shared" | "const" | "local") => {
                        self.next();
                    }
                    Tok::Dot("v2") => {
                        self.next();
                        vec = 2;
                    }
                    Tok::Dot("v4") => {
                        self.next();
                        vec = 4;
                    }
                    Tok::Dot(t) => {
                        let Some(t) = Ty::parse(t) else { return self.fail("a parameter type") };
                        self.next();
                        ty = Some(t);
                    }
                    _ => break,
                }
            }
            let Some(ty) = ty else { return self.fail("a parameter type") };
            let name = match self.peek() {
                Tok::Ident(s) => {
                    self.next();
                    s.to_string()
                }
                _ => String::new(),
            };
            let dims = self.dims()?;
            out.push(Var {
                space,
                align: align.unwrap_or(ty.bytes() * vec).max(1),
                ty,
                vec,
                name,
                range: None,
                dims,
                init: vec![],
                external: false,
                line,
            });
            if self.eat(')') {
                return Ok(out);
            }
            self.expect(',')?;
        }
    }

    fn dims(&mut self) -> Result<Vec<u64>, Error> {
        let mut dims = vec![];
        while self.eat('[') {
            if self.eat(']') {
                dims.push(0);
            } else {
                dims.push(self.int_expr()?);
                self.expect(']')?;
            }
        }
        Ok(dims)
    }

    /// `.shared .align 16 .b8 a[4], b;`
    fn variables(&mut self) -> Result<Vec<Var>, Error> {
        let space = match self.next() {
            Tok::Dot("global") => Space::Global,
            Tok::Dot("shared") => Space::Shared,
            Tok::Dot("const") => Space::Const,
            Tok::Dot("local") => Space::Local,
            Tok::Dot("reg") => Space::Reg,
            Tok::Dot("param") => Space::Param,
            _ => return self.fail("a state space"),
        };
        let (mut align, mut ty, mut vec) = (None, None, 1);
        loop {
            match self.peek() {
                Tok::Dot("align") => {
                    self.next();
                    align = Some(self.uint("an alignment")? as u32);
                }
                Tok::Dot("attribute") => self.attribute()?,
                Tok::Dot("v2") => {
                    self.next();
                    vec = 2;
                }
                Tok::Dot("v4") => {
                    self.next();
                    vec = 4;
                }
                Tok::Dot(t) => {
                    let Some(t) = Ty::parse(t) else {
                        return Err(Error::at(
                            self.line(),
                            format!("not supported yet: a variable of type `.{t}`"),
                        ));
                    };
                    self.next();
                    ty = Some(t);
                }
                _ => break,
            }
        }
        let Some(ty) = ty else { return self.fail("a type") };
        let mut out = vec![];
        loop {
            let line = self.line();
            let name = self.ident("a name")?.to_string();
            let range = if self.eat('<') {
                let n = self.uint("a count")?;
                self.expect('>')?;
                if n > 1 << 20 {
                    return Err(Error::at(line, format!("`{name}<{n}>` declares too many registers")));
                }
                Some(n as u32)
            } else {
                None
            };
            let mut dims = self.dims()?;
            let mut init = vec![];
            if self.eat('=') {
                self.init(&mut init)?;
                // An unsized array takes its initializer's length.
                if dims.first() == Some(&0) {
                    let inner = dims[1..].iter().fold(u64::from(vec), |all, &n| all.saturating_mul(n));
                    dims[0] = (init.len() as u64).div_ceil(inner.max(1));
                }
            }
            out.push(Var {
                space,
                align: align.unwrap_or(ty.bytes() * vec).max(1),
                ty,
                vec,
                name,
                range,
                dims,
                init,
                external: false,
                line,
            });
            if self.eat(';') {
                return Ok(out);
            }
            self.expect(',')?;
        }
    }

    fn init(&mut self, out: &mut Vec<Init>) -> Result<(), Error> {
        match self.peek() {
            Tok::P('{') => {
                self.next();
                self.depth += 1;
                if self.depth > MAX_DEPTH {
                    return Err(Error::at(self.line(), "an initializer is nested too deeply"));
                }
                while !self.eat('}') {
                    self.init(out)?;
                    if !self.eat(',') {
                        self.expect('}')?;
                        break;
                    }
                }
                self.depth -= 1;
                Ok(())
            }
            Tok::Ident(name) => {
                self.next();
                let generic = name == "generic";
                let name = if generic {
                    self.expect('(')?;
                    let n = self.ident("a symbol")?;
                    self.expect(')')?;
                    n
                } else {
                    name
                };
                let offset = self.offset()?;
                out.push(Init::Symbol { name: name.to_string(), offset, generic });
                Ok(())
            }
            _ => {
                match self.number()? {
                    Operand::Int(v) => out.push(Init::Int(v)),
                    Operand::F32(b) => out.push(Init::Float(f64::from(f32::from_bits(b)))),
                    Operand::F64(b) => out.push(Init::Float(f64::from_bits(b))),
                    _ => return self.fail("a constant"),
                }
                Ok(())
            }
        }
    }

    /// Zero or more `+n` / `-n`.
    fn offset(&mut self) -> Result<i64, Error> {
        let mut off = 0i64;
        loop {
            let minus = match self.peek() {
                Tok::P('+') => false,
                Tok::P('-') => true,
                _ => return Ok(off),
            };
            self.next();
            let v = self.int_factor()? as i64;
            off = if minus { off.wrapping_sub(v) } else { off.wrapping_add(v) };
        }
    }

    fn body(&mut self) -> Result<Vec<Stmt>, Error> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Error::at(self.line(), "blocks are nested too deeply"));
        }
        let mut out = vec![];
        loop {
            match self.peek() {
                Tok::P('}') => {
                    self.next();
                    self.depth -= 1;
                    return Ok(out);
                }
                Tok::P('{') => {
                    self.next();
                    let b = self.body()?;
                    out.push(Stmt::Block(b));
                }
                Tok::P(';') => {
                    self.next();
                }
                Tok::Dot("loc") => self.loc()?,
                Tok::Dot("pragma") => self.skip_to_semicolon()?,
                Tok::Dot("reg" | "shared" | "local" | "param" | "global" | "const") => {
                    out.extend(self.variables()?.into_iter().map(Stmt::Var));
                }
                Tok::Ident(name) if self.peek2() == Tok::P(':') => {
                    let line = self.line();
                    self.next();
                    self.next();
                    match self.peek() {
                        Tok::Dot("branchtargets") => {
                            self.next();
                            let mut t = vec![self.ident("a label")?.to_string()];
                            while self.eat(',') {
                                t.push(self.ident("a label")?.to_string());
                            }
                            self.expect(';')?;
                            out.push(Stmt::BranchTargets(name.to_string(), t));
                        }
                        Tok::Dot("callprototype" | "calltargets") => self.skip_to_semicolon()?,
                        _ => out.push(Stmt::Label(name.to_string(), line)),
                    }
                }
                Tok::Ident(_) | Tok::P('@') => {
                    let i = self.instr()?;
                    out.push(Stmt::Instr(i));
                }
                _ => return self.fail("an instruction, a declaration or `}`"),
            }
        }
    }

    fn instr(&mut self) -> Result<Instr, Error> {
        let guard = if self.eat('@') {
            let neg = self.eat('!');
            Some((self.ident("a predicate")?.to_string(), neg))
        } else {
            None
        };
        let line = self.line();
        let op = self.ident("an instruction")?.to_string();
        let mut mods = vec![];
        while let Tok::Dot(m) = self.peek() {
            mods.push(m.to_string());
            self.next();
        }
        let mut operands = vec![];
        if !self.eat(';') {
            loop {
                operands.push(self.operand()?);
                if self.eat(';') {
                    break;
                }
                self.expect(',')?;
            }
        }
        Ok(Instr { guard, op, mods, operands, line, loc: self.loc })
    }

    fn operand(&mut self) -> Result<Operand, Error> {
        let first = match self.peek() {
            Tok::P('{') => {
                self.next();
                let mut v = vec![];
                while !self.eat('}') {
                    v.push(self.simple()?);
                    if !self.eat(',') {
                        self.expect('}')?;
                        break;
                    }
                }
                Operand::Vector(v)
            }
            Tok::P('(') => {
                self.next();
                let mut v = vec![];
                while !self.eat(')') {
                    v.push(self.simple()?);
                    if !self.eat(',') {
                        self.expect(')')?;
                        break;
                    }
                }
                Operand::List(v)
            }
            Tok::P('[') => {
                self.next();
                let base = Box::new(self.simple()?);
                let (base, mut offset) = match *base {
                    Operand::Offset(s, o) => (Box::new(Operand::Ident(s)), o),
                    b => (Box::new(b), 0),
                };
                offset = offset.wrapping_add(self.offset()?);
                let mut coords = vec![];
                if self.eat(',') {
                    self.expect('{')?;
                    while !self.eat('}') {
                        coords.push(self.simple()?);
                        if !self.eat(',') {
                            self.expect('}')?;
                            break;
                        }
                    }
                }
                self.expect(']')?;
                Operand::Mem { base, offset, coords }
            }
            _ => self.simple()?,
        };
        if self.eat('|') {
            let second = self.simple()?;
            return Ok(Operand::Pair(Box::new(first), Box::new(second)));
        }
        Ok(first)
    }

    fn simple(&mut self) -> Result<Operand, Error> {
        match self.peek() {
            Tok::P('!') => {
                self.next();
                Ok(Operand::Not(Box::new(Operand::Ident(self.ident("a predicate")?.to_string()))))
            }
            Tok::Ident("_") => {
                self.next();
                Ok(Operand::Sink)
            }
            Tok::Ident(s) => {
                self.next();
                if let Tok::Dot(c) = self.peek() {
                    let c = match c {
                        "x" | "r" => 'x',
                        "y" | "g" => 'y',
                        "z" | "b" => 'z',
                        "w" | "a" => 'w',
                        _ => return self.fail("a component .x, .y, .z or .w"),
                    };
                    self.next();
                    return Ok(Operand::Component(s.to_string(), c));
                }
                let off = self.offset()?;
                Ok(if off == 0 { Operand::Ident(s.to_string()) } else { Operand::Offset(s.to_string(), off) })
            }
            _ => self.number(),
        }
    }

    fn number(&mut self) -> Result<Operand, Error> {
        let minus = self.peek() == Tok::P('-')
            && matches!(self.peek2(), Tok::Num(n) if n.contains('.') || n.starts_with("0f") || n.starts_with("0d")
                || n.starts_with("0F") || n.starts_with("0D"));
        if minus {
            self.next();
        }
        if let Tok::Num(n) = self.peek() {
            let bits = |s: &str, line| {
                u64::from_str_radix(s, 16)
                    .map_err(|_| Error::at(line, format!("`{n}` is not a floating constant")))
            };
            if n.starts_with("0f") || n.starts_with("0F") {
                let b = bits(&n[2..], self.line())? as u32;
                self.next();
                return Ok(Operand::F32(if minus { b ^ 0x8000_0000 } else { b }));
            }
            if n.starts_with("0d") || n.starts_with("0D") {
                let b = bits(&n[2..], self.line())?;
                self.next();
                return Ok(Operand::F64(if minus { b ^ (1 << 63) } else { b }));
            }
            let hex = n.starts_with("0x") || n.starts_with("0X");
            if !hex && (n.contains('.') || n.contains('e') || n.contains('E')) {
                let v: f64 = n
                    .parse()
                    .map_err(|_| Error::at(self.line(), format!("`{n}` is not a floating constant")))?;
                self.next();
                return Ok(Operand::F64(if minus { -v } else { v }.to_bits()));
            }
        }
        Ok(Operand::Int(self.int_expr()?))
    }

    /// An integer constant expression; operators associate left at one level but for `*` (§4.5.3 needs no more in
    /// text that compilers write).
    fn int_expr(&mut self) -> Result<u64, Error> {
        let mut v = self.int_factor()?;
        loop {
            match self.peek() {
                Tok::P('+') => {
                    self.next();
                    v = v.wrapping_add(self.int_factor()?);
                }
                Tok::P('-') => {
                    self.next();
                    v = v.wrapping_sub(self.int_factor()?);
                }
                Tok::P('*') => {
                    self.next();
                    v = v.wrapping_mul(self.int_factor()?);
                }
                Tok::P('<') if self.peek2() == Tok::P('<') => {
                    self.next();
                    self.next();
                    v = v.wrapping_shl(self.int_factor()? as u32);
                }
                _ => return Ok(v),
            }
        }
    }

    fn int_factor(&mut self) -> Result<u64, Error> {
        match self.peek() {
            Tok::P(sign @ ('-' | '+' | '~')) => {
                self.next();
                self.depth += 1;
                if self.depth > MAX_DEPTH {
                    return Err(Error::at(self.line(), "a constant is nested too deeply"));
                }
                let v = self.int_factor()?;
                self.depth -= 1;
                Ok(match sign {
                    '-' => v.wrapping_neg(),
                    '~' => !v,
                    _ => v,
                })
            }
            Tok::Num(n) => {
                let bad = || Error::at(self.line(), format!("`{n}` is not an integer"));
                let t = n.trim_end_matches('U');
                let v = if let Some(h) = t.strip_prefix("0x").or_else(|| t.strip_prefix("0X")) {
                    u64::from_str_radix(h, 16).map_err(|_| bad())?
                } else if let Some(b) = t.strip_prefix("0b").or_else(|| t.strip_prefix("0B")) {
                    u64::from_str_radix(b, 2).map_err(|_| bad())?
                } else if t.len() > 1 && t.starts_with('0') {
                    u64::from_str_radix(t, 8).map_err(|_| bad())?
                } else {
                    t.parse::<u64>().map_err(|_| bad())?
                };
                self.next();
                Ok(v)
            }
            _ => self.fail("an operand"),
        }
    }
}
