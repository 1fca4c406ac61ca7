//! Loops and branches: blocks of instructions, and what they carry.

use tilewright_ir::dialect::scf;
use tilewright_ir::{Block, Op, Value};

use super::value::Known;
use super::{Result, Writer, unsupported};

/// A carried value: its type, and its name or literal.
type Carried = (String, String);

impl Writer<'_> {
    pub(super) fn counted_loop(&mut self, looped: scf::For) -> Result<()> {
        let body = self.m.region_block(looped.body(self.m));
        let args = self.m.block_args(body).to_vec();
        let [from, to, step] = [looped.lower_bound(self.m), looped.upper_bound(self.m), looped.step(self.m)];
        let (from, to) = (self.typed(looped.0, from)?, self.plain_scalar(looped.0, to)?);
        let step = self.plain_scalar(looped.0, step)?;
        let (ty, from) = from.split_once(' ').unwrap_or_default();
        let mut init = vec![(ty.to_string(), from.to_string())];
        for &value in looped.init(self.m) {
            init.push(self.carried(looped.0, value)?);
        }
        let number = self.number();
        let [head, inside, behind] = ["head", "body", "end"].map(|part| format!("{part}{number}"));
        self.line(format_args!("br label %{head}"));
        let entry = std::mem::replace(&mut self.label, head.clone());
        let names: Vec<String> = init.iter().map(|_| self.fresh()).collect();
        for ((&arg, (ty, _)), name) in args.iter().zip(&init).zip(&names) {
            self.carry(arg, arg, ty, name);
        }
        // The head's merges name what the body ends in: it is written first.
        let before = std::mem::take(&mut self.out);
        self.begin(&inside);
        self.block(body)?;
        let next = self.assign(format!("add {ty} {}, {step}", names[0]));
        let mut last = vec![next];
        for value in self.given(body) {
            last.push(self.carried(looped.0, value)?.1);
        }
        self.line(format_args!("br label %{head}"));
        let (inner, latch) = (std::mem::replace(&mut self.out, before), std::mem::take(&mut self.label));
        self.begin(&head);
        for ((name, (ty, first)), last) in names.iter().zip(&init).zip(&last) {
            self.line(format_args!("{name} = phi {ty} [ {first}, %{entry} ], [ {last}, %{latch} ]"));
        }
        let more = self.assign(format!("icmp slt {ty} {}, {to}", names[0]));
        self.line(format_args!("br i1 {more}, label %{inside}, label %{behind}"));
        self.out.push_str(&inner);
        self.begin(&behind);
        for ((&result, &arg), (i, name)) in
            looped.results(self.m).iter().zip(&args[1..]).zip(names.iter().enumerate().skip(1))
        {
            self.carry(result, arg, &init[i].0, name);
        }
        Ok(())
    }

    pub(super) fn branch(&mut self, branch: scf::If) -> Result<()> {
        let condition = self.plain_scalar(branch.0, branch.condition(self.m))?;
        let regions = [branch.then_region(self.m), branch.else_region(self.m)];
        let blocks = regions.map(|region| self.m.region_blocks(region).first().copied());
        let number = self.number();
        let [yes, no, behind] = ["then", "else", "end"].map(|part| format!("{part}{number}"));
        let other = if blocks[1].is_some() { &no } else { &behind };
        self.line(format_args!("br i1 {condition}, label %{yes}, label %{other}"));
        let mut ends: Vec<(String, Vec<Carried>)> = Vec::new();
        let mut given = Vec::new();
        for (block, label) in blocks.iter().zip([&yes, &no]) {
            let Some(block) = *block else { continue };
            self.begin(label);
            self.block(block)?;
            given = self.given(block);
            let values = given.iter().map(|&v| self.carried(branch.0, v)).collect::<Result<_>>()?;
            self.line(format_args!("br label %{behind}"));
            ends.push((self.label.clone(), values));
        }
        self.begin(&behind);
        for (i, (&result, &like)) in branch.results(self.m).iter().zip(&given).enumerate() {
            let ty = ends[0].1[i].0.clone();
            let merged: Vec<String> =
                ends.iter().map(|(label, values)| format!("[ {}, %{label} ]", values[i].1)).collect();
            let name = self.assign(format!("phi {ty} {}", merged.join(", ")));
            self.carry(result, like, &ty, &name);
        }
        Ok(())
    }

    fn number(&mut self) -> usize {
        self.count += 1;
        self.count
    }

    /// What a block's terminator gives.
    fn given(&self, block: Block) -> Vec<Value> {
        self.m.last_op(block).map_or(Vec::new(), |end| self.m.operands(end).to_vec())
    }

    /// A value as it goes from block to block.
    fn carried(&mut self, op: Op, value: Value) -> Result<Carried> {
        match self.known(op, value)? {
            Known::Scalar { ty, value } => Ok((ty.clone(), value.clone())),
            Known::Vector(_) => self.elements(op, value).map(|v| (v.ty(), v.name)),
            Known::Surface(_) => Err(unsupported(self.m, op, "a descriptor that a loop or branch gives")),
        }
    }

    /// Names a value that came so; `like` has its type.
    fn carry(&mut self, value: Value, like: Value, ty: &str, name: &str) {
        let tensor = self.m.value_type(like);
        if self.m.is_tensor(tensor) {
            let element = super::value::scalar_type(self.m, self.m.element_type(tensor)).unwrap_or_default();
            let vector = super::value::Vector::plain(self.m, tensor, element, name.to_string());
            self.known.insert(value, Known::Vector(vector));
        } else {
            self.scalar(value, ty, name.to_string());
        }
    }
}
