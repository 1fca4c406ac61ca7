//! What the verifier checks of particular operations, beyond their declarations.

use crate::attrs::AttrKind;
use crate::dialect::{arith, cf, scf, tt, ttg};
use crate::entity::{Attr, Block, Op, Region, Type, Value};
use crate::module::Module;
use crate::opdef::Opcode;
use crate::text::print_type;
use crate::types::TypeKind;
use crate::{Encoding, SharedKind};

type Check = Result<(), String>;

fn ensure(condition: bool, message: impl FnOnce() -> String) -> Check {
    if condition { Ok(()) } else { Err(message()) }
}

fn types(m: &Module, values: &[Value]) -> Vec<Type> {
    values.iter().map(|&v| m.value_type(v)).collect()
}

fn list(m: &Module, types: &[Type]) -> String {
    let texts: Vec<String> = types.iter().map(|&t| print_type(m, t)).collect();
    format!("({})", texts.join(", "))
}

fn same(m: &Module, what: &str, found: &[Type], expected_as: &str, expected: &[Type]) -> Check {
    ensure(found == expected, || {
        format!("{what} {} do not fit {expected_as} {}", list(m, found), list(m, expected))
    })
}

/// Checks one operation, whose declaration is already known to be met.
pub(crate) fn check(m: &Module, op: Op, opcode: Opcode) -> Check {
    match opcode {
        Opcode::Arith(kind) => check_arith(m, op, kind),
        Opcode::Scf(kind) => check_scf(m, op, kind),
        Opcode::Cf(kind) => check_cf(m, op, kind),
        Opcode::Tt(kind) => check_tt(m, op, kind),
        Opcode::Ttg(kind) => check_ttg(m, op, kind),
        Opcode::Math(kind) => {
            let ty = m.value_type(m.operands(op)[0]);
            if kind == crate::dialect::math::Kind::Absi {
                ensure(m.is_int(ty), || "an integer expected".into())
            } else {
                ensure(m.is_float(ty), || format!("a float expected, not {}", print_type(m, ty)))
            }
        }
        _ => Ok(()),
    }
}

fn check_arith(m: &Module, op: Op, kind: arith::Kind) -> Check {
    use arith::Kind as K;
    let operand = m.operands(op).first().map(|&v| m.value_type(v));
    let result = m.value_type(m.result(op));
    let bits = |t| m.bits(t);
    let from = operand.unwrap_or(result);
    match kind {
        K::Constant | K::Select => Ok(()),
        K::Addf
        | K::Subf
        | K::Mulf
        | K::Divf
        | K::Remf
        | K::Negf
        | K::Minimumf
        | K::Maximumf
        | K::Minnumf
        | K::Maxnumf => {
            ensure(m.is_float(result), || format!("floats expected, not {}", print_type(m, result)))
        }
        K::Cmpi | K::Cmpf => {
            let rhs = m.value_type(m.operands(op)[1]);
            ensure(from == rhs, || {
                format!("{} and {} cannot be compared", print_type(m, from), print_type(m, rhs))
            })?;
            let fits = if kind == K::Cmpi { m.is_int(from) || m.is_ptr(from) } else { m.is_float(from) };
            ensure(fits, || format!("operands of type {} do not fit", print_type(m, from)))?;
            ensure(m.element_type(result) == Type::I1 && m.shape(result) == m.shape(from), || {
                "the result must be i1 of the operands' shape".into()
            })
        }
        K::Extsi | K::Extui => {
            cast(m, from, result, m.is_int(from) && m.is_int(result) && bits(from) < bits(result))
        }
        K::Trunci => cast(m, from, result, m.is_int(from) && m.is_int(result) && bits(from) > bits(result)),
        K::Extf => cast(m, from, result, m.is_float(from) && m.is_float(result) && bits(from) < bits(result)),
        K::Truncf => {
            cast(m, from, result, m.is_float(from) && m.is_float(result) && bits(from) > bits(result))
        }
        K::Sitofp | K::Uitofp => cast(m, from, result, m.is_int(from) && m.is_float(result)),
        K::Fptosi | K::Fptoui => cast(m, from, result, m.is_float(from) && m.is_int(result)),
        K::Bitcast => cast(m, from, result, bits(from) == bits(result) && bits(from) != 0),
        K::IndexCast => cast(m, from, result, m.is_int(from) && m.is_int(result)),
        _ => ensure(m.is_int(result), || format!("integers expected, not {}", print_type(m, result))),
    }
}

fn cast(m: &Module, from: Type, to: Type, fits: bool) -> Check {
    ensure(fits && m.shape(from) == m.shape(to), || {
        format!("no conversion from {} to {}", print_type(m, from), print_type(m, to))
    })
}

/// The types that the `scf.yield` at the end of a region gives.
fn yielded(m: &Module, region: Region) -> Result<Vec<Type>, String> {
    let &[block] = m.region_blocks(region) else { return Err("each region must have one block".into()) };
    match m.last_op(block).and_then(|o| scf::Yield::cast(m, o)) {
        Some(y) => Ok(types(m, y.values(m))),
        None => Err("the region must end with scf.yield".into()),
    }
}

fn check_scf(m: &Module, op: Op, kind: scf::Kind) -> Check {
    let results = types(m, m.results(op));
    match kind {
        scf::Kind::For => {
            let bounds = types(m, &m.operands(op)[..3]);
            let block = m.region_block(m.regions(op)[0]);
            let induction = m.value_type(m.block_args(block)[0]);
            ensure(m.is_int(induction) && m.shape(induction).is_none(), || "it counts integers".into())?;
            ensure(bounds.iter().all(|&t| t == induction), || {
                format!("bounds {} differ from the induction variable's type", list(m, &bounds))
            })
        }
        scf::Kind::If => {
            let f = scf::If(op);
            ensure(m.value_type(f.condition(m)) == Type::I1, || "the condition must be i1".into())?;
            same(m, "yielded types", &yielded(m, f.then_region(m))?, "the results", &results)?;
            if m.region_blocks(f.else_region(m)).is_empty() {
                return ensure(results.is_empty(), || "with results there must be an else region".into());
            }
            same(m, "yielded types", &yielded(m, f.else_region(m))?, "the results", &results)
        }
        scf::Kind::While => {
            let w = scf::While(op);
            let before = m.region_block(w.before(m));
            let after = m.region_block(w.after(m));
            let init = types(m, w.init(m));
            same(m, "arguments of the first region", &types(m, m.block_args(before)), "the inits", &init)?;
            let Some(condition) = m.last_op(before).and_then(|o| scf::Condition::cast(m, o)) else {
                return Err("the first region must end with scf.condition".into());
            };
            ensure(m.value_type(condition.condition(m)) == Type::I1, || "the condition must be i1".into())?;
            let passed = types(m, condition.args(m));
            same(m, "types passed on", &passed, "the results", &results)?;
            same(
                m,
                "arguments of the second region",
                &types(m, m.block_args(after)),
                "what is passed on",
                &passed,
            )?;
            same(m, "yielded types", &yielded(m, w.after(m))?, "the inits", &init)
        }
        scf::Kind::Condition | scf::Kind::Yield => {
            let parent = m.parent_op(op).and_then(|p| m.opcode(p));
            ensure(matches!(parent, Some(Opcode::Scf(_)) | None), || "it must lie in an scf operation".into())
        }
    }
}

fn check_cf(m: &Module, op: Op, kind: cf::Kind) -> Check {
    let target = |block: Block, args: &[Value]| {
        same(m, "arguments", &types(m, args), "those of the block", &types(m, m.block_args(block)))
    };
    match (kind, m.successors(op)) {
        (cf::Kind::Br, &[to]) => target(to, m.operands(op)),
        (cf::Kind::CondBr, &[yes, no]) => {
            let c = cf::CondBr(op);
            ensure(m.value_type(c.condition(m)) == Type::I1, || "the condition must be i1".into())?;
            target(yes, c.true_args(m))?;
            target(no, c.false_args(m))
        }
        (_, successors) => Err(format!("{} successors do not fit", successors.len())),
    }
}

fn function_type(m: &Module, func: Op) -> Result<(&[Type], &[Type]), String> {
    match m.op_attr(func, "function_type").map(|a| m.attr_kind(a)) {
        Some(AttrKind::Type(t)) => match m.type_kind(*t) {
            TypeKind::Function { inputs, results } => Ok((inputs, results)),
            _ => Err("function_type must be a function type".into()),
        },
        _ => Err("function_type must be a type".into()),
    }
}

fn check_tt(m: &Module, op: Op, kind: tt::Kind) -> Check {
    use tt::Kind as K;
    let operand = |i: usize| m.operands(op).get(i).map_or(Type::I1, |&v| m.value_type(v));
    let result = |i: usize| m.results(op).get(i).map_or(Type::I1, |&v| m.value_type(v));
    let text = |t| print_type(m, t);
    let shape = |t| m.shape(t).unwrap_or(&[]).to_vec();
    match kind {
        K::Func => {
            let (inputs, _) = function_type(m, op)?;
            let Some(&entry) = m.region_blocks(m.regions(op)[0]).first() else { return Ok(()) };
            same(m, "the body's arguments", &types(m, m.block_args(entry)), "the function type", inputs)?;
            match m.op_attr(op, "arg_attrs").map(|a| m.attr_kind(a)) {
                Some(AttrKind::Array(a)) if a.len() != inputs.len() => {
                    Err("arg_attrs must have an entry for each argument".into())
                }
                _ => Ok(()),
            }
        }
        K::Return => {
            let Some(func) = m.parent_op(op).filter(|&f| tt::Func::cast(m, f).is_some()) else {
                return Err("it must lie in a function".into());
            };
            let (_, results) = function_type(m, func)?;
            same(m, "returned types", &types(m, m.operands(op)), "the function's", results)
        }
        K::Call => {
            let callee = tt::Call(op).callee(m).0;
            let Some(func) = m.function(&callee) else {
                return Err(format!("there is no function @{callee}"));
            };
            let (inputs, results) = function_type(m, func)?;
            same(m, "arguments", &types(m, m.operands(op)), "the function's", inputs)?;
            same(m, "results", &types(m, m.results(op)), "the function's", results)
        }
        K::GetProgramId | K::GetNumPrograms => ensure(result(0) == Type::I32, || "the result is i32".into()),
        K::Splat => ensure(
            m.shape(operand(0)).is_none()
                && m.shape(result(0)).is_some()
                && m.element_type(result(0)) == operand(0),
            || format!("{} does not fill {}", text(operand(0)), text(result(0))),
        ),
        K::Unsplat => ensure(shape(operand(0)).iter().all(|&d| d == 1) && m.is_tensor(operand(0)), || {
            "the operand must have one element".into()
        }),
        K::ExpandDims => {
            let axis = tt::ExpandDims(op).axis(m) as usize;
            let mut expected = shape(operand(0));
            ensure(axis <= expected.len(), || format!("axis {axis} is out of range"))?;
            expected.insert(axis, 1);
            ensure(
                expected == shape(result(0)) && m.element_type(operand(0)) == m.element_type(result(0)),
                || format!("{} with axis {axis} does not give {}", text(operand(0)), text(result(0))),
            )?;
            sliced(m, operand(0), result(0), axis)
        }
        K::Broadcast => {
            let (from, to) = (shape(operand(0)), shape(result(0)));
            ensure(
                from.len() == to.len()
                    && from.iter().zip(&to).all(|(a, b)| a == b || *a == 1)
                    && m.element_type(operand(0)) == m.element_type(result(0))
                    && m.encoding(operand(0)) == m.encoding(result(0)),
                || format!("{} does not broadcast to {}", text(operand(0)), text(result(0))),
            )
        }
        K::Reshape => ensure(
            count(&shape(operand(0))) == count(&shape(result(0)))
                && m.element_type(operand(0)) == m.element_type(result(0)),
            || format!("{} does not reshape to {}", text(operand(0)), text(result(0))),
        ),
        K::Trans => permuted(m, operand(0), result(0), &tt::Trans(op).order(m)),
        K::Join => {
            let mut expected = shape(operand(0));
            expected.push(2);
            ensure(operand(0) == operand(1) && shape(result(0)) == expected, || {
                format!("{} and {} do not join to {}", text(operand(0)), text(operand(1)), text(result(0)))
            })
        }
        K::Split => {
            let mut expected = shape(result(0));
            expected.push(2);
            ensure(result(0) == result(1) && shape(operand(0)) == expected, || {
                format!("{} does not split to {}", text(operand(0)), text(result(0)))
            })
        }
        K::Cat => {
            let (a, b, c) = (shape(operand(0)), shape(operand(1)), shape(result(0)));
            ensure(a.len() == 1 && b.len() == 1 && c.len() == 1 && a[0] + b[0] == c[0], || {
                format!(
                    "{} and {} do not concatenate to {}",
                    text(operand(0)),
                    text(operand(1)),
                    text(result(0))
                )
            })
        }
        K::Addptr => ensure(m.is_ptr(operand(0)) && m.is_int(operand(1)), || {
            format!("{} plus {} is not an address", text(operand(0)), text(operand(1)))
        }),
        K::IntToPtr => {
            ensure(m.is_int(operand(0)) && m.is_ptr(result(0)), || "an integer to a pointer".into())
        }
        K::PtrToInt => {
            ensure(m.is_ptr(operand(0)) && m.is_int(result(0)), || "a pointer to an integer".into())
        }
        K::Bitcast => cast(m, operand(0), result(0), m.bits(operand(0)) == m.bits(result(0))),
        K::FpToFp => cast(m, operand(0), result(0), m.is_float(operand(0)) && m.is_float(result(0))),
        K::Dot => check_dot(m, op),
        K::Reduce => check_reduction(m, op, tt::Reduce(op).axis(m), true),
        K::Scan => check_reduction(m, op, tt::Scan(op).axis(m), false),
        K::ReduceReturn | K::ScanReturn => {
            let parent = m.parent_op(op).and_then(|p| m.opcode(p));
            let expected = if kind == K::ReduceReturn { K::Reduce } else { K::Scan };
            ensure(parent == Some(Opcode::Tt(expected)), || "it must lie in its reduction or scan".into())
        }
        K::Histogram => ensure(m.is_int(operand(0)) && shape(result(0)).len() == 1, || {
            "an integer tensor to a 1-D tensor".into()
        }),
        K::Gather => {
            let axis = tt::Gather(op).axis(m);
            let (src, indices, out) = (shape(operand(0)), shape(operand(1)), shape(result(0)));
            ensure(
                axis >= 0
                    && (axis as usize) < src.len()
                    && src.len() == indices.len()
                    && indices == out
                    && m.is_int(operand(1))
                    && (0..src.len()).all(|d| d == axis as usize || src[d] == indices[d]),
                || {
                    format!(
                        "{} at {} along {axis} does not give {}",
                        text(operand(0)),
                        text(operand(1)),
                        text(result(0))
                    )
                },
            )
        }
        K::AtomicRmw | K::AtomicCas => {
            let ok = m.pointee_type(operand(0)) == Some(m.element_type(operand(1)))
                && m.shape(operand(0)) == m.shape(operand(1))
                && (0..2).all(|i| m.encoding(operand(i)) == m.encoding(result(0)));
            ensure(ok && operand(1) == result(0), || {
                format!("{} at {} gives {}", text(operand(1)), text(operand(0)), text(result(0)))
            })
        }
        K::Load => {
            let l = tt::Load(op);
            let mask = l.mask(m).map(|v| m.value_type(v));
            let layouts = [Some(result(0)), mask];
            ensure(layouts.iter().flatten().all(|&t| m.encoding(t) == m.encoding(operand(0))), || {
                "pointer, mask and result must have one layout".into()
            })
        }
        K::Store => {
            let s = tt::Store(op);
            let mask = s.mask(m).map(|v| m.value_type(v));
            let layouts = [Some(m.value_type(s.value(m))), mask];
            ensure(layouts.iter().flatten().all(|&t| m.encoding(t) == m.encoding(operand(0))), || {
                "pointer, value and mask must have one layout".into()
            })
        }
        K::Assert => ensure(m.element_type(operand(0)) == Type::I1, || "the condition must be i1".into()),
        K::Clampf | K::PreciseSqrt | K::PreciseDivf => {
            ensure(m.is_float(operand(0)), || format!("a float expected, not {}", text(operand(0))))
        }
        K::Mulhiui => {
            ensure(m.is_int(operand(0)), || format!("an integer expected, not {}", text(operand(0))))
        }
        K::MakeRange | K::ExternElementwise | K::ElementwiseInlineAsm | K::Print => Ok(()),
        #[allow(unreachable_patterns)] // operations yet to be declared
        _ => Ok(()),
    }
}

fn count(shape: &[u32]) -> u64 {
    shape.iter().map(|&d| u64::from(d)).product()
}

/// Without `axis`, the layout of `whole` must be that of `part`.
fn sliced(m: &Module, part: Type, whole: Type, axis: usize) -> Check {
    let (Some(part), Some(whole)) = (encoding(m, part), encoding(m, whole)) else { return Ok(()) };
    match part {
        Encoding::Slice { dim, parent } => ensure(*dim as usize == axis && **parent == *whole, || {
            format!("the layout of the smaller tensor must be the slice of the larger one's along {axis}")
        }),
        // Other encodings can say the same layout; their bases are the layout crate's matter.
        _ => Ok(()),
    }
}

fn encoding(m: &Module, ty: Type) -> Option<&Encoding> {
    m.encoding(ty).and_then(|a: Attr| m.encoding_of(a))
}

fn permuted(m: &Module, from: Type, to: Type, order: &[i32]) -> Check {
    let (Some(a), Some(b)) = (m.shape(from), m.shape(to)) else {
        return Err("a tensor or buffer expected".into());
    };
    let mut sorted = order.to_vec();
    sorted.sort_unstable();
    ensure(sorted.len() == a.len() && sorted.iter().enumerate().all(|(i, &d)| d == i as i32), || {
        format!("{order:?} is no permutation of {} dimensions", a.len())
    })?;
    ensure(b.len() == a.len() && order.iter().zip(b).all(|(&d, &n)| a[d as usize] == n), || {
        format!("{} permuted by {order:?} is not {}", print_type(m, from), print_type(m, to))
    })
}

fn check_dot(m: &Module, op: Op) -> Check {
    let dot = tt::Dot(op);
    let (a, b, c) = (m.value_type(dot.a(m)), m.value_type(dot.b(m)), m.value_type(dot.c(m)));
    for (index, ty) in [(0, a), (1, b)] {
        let Some(Encoding::DotOperand { op_idx, parent, .. }) = encoding(m, ty) else { continue };
        ensure(*op_idx == index, || format!("operand {index} has the layout of operand {op_idx}"))?;
        ensure(encoding(m, c).is_none_or(|e| *e == **parent), || {
            format!("the layout of operand {index} is for another result's layout")
        })?;
    }
    Ok(())
}

fn check_reduction(m: &Module, op: Op, axis: i32, reduces: bool) -> Check {
    let sources = types(m, m.operands(op));
    let results = types(m, m.results(op));
    ensure(!sources.is_empty() && sources.len() == results.len(), || {
        format!("{} operands and {} results", sources.len(), results.len())
    })?;
    for (&source, &result) in sources.iter().zip(&results) {
        let Some(shape) = m.shape(source) else { return Err("tensors expected".into()) };
        ensure(axis >= 0 && (axis as usize) < shape.len(), || format!("axis {axis} is out of range"))?;
        ensure(m.shape(sources[0]) == Some(shape) && m.encoding(sources[0]) == m.encoding(source), || {
            "all operands must have one shape and layout".into()
        })?;
        let mut expected = shape.to_vec();
        if reduces {
            expected.remove(axis as usize);
            let found = m.shape(result).unwrap_or(&[]);
            ensure(found == expected && m.element_type(source) == m.element_type(result), || {
                format!("{} along {axis} does not give {}", print_type(m, source), print_type(m, result))
            })?;
            if m.shape(result).is_some() {
                sliced(m, result, source, axis as usize)?;
            }
        } else {
            ensure(source == result, || "a scan's results have the types of its operands".into())?;
        }
    }
    let block = m.region_block(m.regions(op)[0]);
    let elements: Vec<Type> = sources.iter().map(|&t| m.element_type(t)).collect();
    let expected: Vec<Type> = elements.iter().chain(&elements).copied().collect();
    same(m, "the combine function's arguments", &types(m, m.block_args(block)), "the elements", &expected)?;
    match m.last_op(block) {
        Some(last)
            if tt::ReduceReturn::cast(m, last).is_some() || tt::ScanReturn::cast(m, last).is_some() =>
        {
            same(m, "the combine function's results", &types(m, m.operands(last)), "the elements", &elements)
        }
        _ => Err("the combine function must end with tt.reduce.return or tt.scan.return".into()),
    }
}

fn is_buffer(m: &Module, ty: Type) -> bool {
    matches!(m.type_kind(ty), TypeKind::MemDesc { .. })
}

fn is_mutable(m: &Module, ty: Type) -> bool {
    matches!(m.type_kind(ty), TypeKind::MemDesc { mutable: true, .. })
}

/// A tensor (or tile) and a buffer that hold the same elements.
fn same_elements(m: &Module, a: Type, b: Type) -> Check {
    ensure(m.shape(a) == m.shape(b) && m.element_type(a) == m.element_type(b), || {
        format!("{} and {} do not hold the same elements", print_type(m, a), print_type(m, b))
    })
}

fn check_ttg(m: &Module, op: Op, kind: ttg::Kind) -> Check {
    use ttg::Kind as K;
    let operand = |i: usize| m.operands(op).get(i).map_or(Type::I1, |&v| m.value_type(v));
    let result = |i: usize| m.results(op).get(i).map_or(Type::I1, |&v| m.value_type(v));
    for &v in m.operands(op).iter().chain(m.results(op)) {
        let ty = m.value_type(v);
        let is_shared = matches!(encoding(m, ty), Some(Encoding::Shared(_)));
        if m.is_tensor(ty) && is_shared {
            return Err(format!("the tensor {} has a layout of shared memory", print_type(m, ty)));
        }
        if is_buffer(m, ty) && encoding(m, ty).is_some() && !is_shared {
            return Err(format!("the buffer {} has a layout of registers", print_type(m, ty)));
        }
        if let Some(Encoding::Shared(SharedKind::Swizzled { order, .. } | SharedKind::Padded { order, .. })) =
            encoding(m, ty)
            && let Some(shape) = m.shape(ty)
            && order.len() > shape.len()
        {
            return Err(format!("the layout of {} has more dimensions than it", print_type(m, ty)));
        }
    }
    match kind {
        K::ConvertLayout => {
            ensure(m.is_tensor(operand(0)) && m.is_tensor(result(0)), || "tensors expected".into())?;
            same_elements(m, operand(0), result(0))
        }
        K::LocalAlloc => {
            ensure(is_buffer(m, result(0)), || "the result must be a buffer".into())?;
            match m.operands(op).first() {
                Some(&src) => same_elements(m, m.value_type(src), result(0)),
                None => ensure(is_mutable(m, result(0)), || "a buffer with no source must be mutable".into()),
            }
        }
        K::LocalDealloc => ensure(is_buffer(m, operand(0)), || "a buffer expected".into()),
        K::LocalLoad => {
            ensure(is_buffer(m, operand(0)) && m.is_tensor(result(0)), || "a buffer to a tensor".into())?;
            same_elements(m, operand(0), result(0))
        }
        K::LocalStore => {
            ensure(is_mutable(m, operand(1)) && m.is_tensor(operand(0)), || {
                "a tensor to a mutable buffer".into()
            })?;
            same_elements(m, operand(0), operand(1))
        }
        K::MemdescIndex => {
            let (from, to) = (m.shape(operand(0)).unwrap_or(&[]), m.shape(result(0)).unwrap_or(&[]));
            ensure(is_buffer(m, operand(0)) && is_buffer(m, result(0)), || "buffers expected".into())?;
            ensure(
                from.get(1..) == Some(to) && m.element_type(operand(0)) == m.element_type(result(0)),
                || format!("{} is not a slot of {}", print_type(m, result(0)), print_type(m, operand(0))),
            )
        }
        K::MemdescSubslice => {
            let offsets = ttg::MemdescSubslice(op).offsets(m);
            let (from, to) = (m.shape(operand(0)).unwrap_or(&[]), m.shape(result(0)).unwrap_or(&[]));
            let fits = offsets.len() == from.len()
                && to.len() == from.len()
                && (0..from.len()).all(|d| {
                    offsets[d] >= 0 && i64::from(offsets[d]) + i64::from(to[d]) <= i64::from(from[d])
                });
            ensure(fits, || {
                format!(
                    "{} at {offsets:?} is no part of {}",
                    print_type(m, result(0)),
                    print_type(m, operand(0))
                )
            })
        }
        K::MemdescTrans => permuted(m, operand(0), result(0), &ttg::MemdescTrans(op).order(m)),
        K::AsyncCopyGlobalToLocal => {
            let pointee = m.pointee_type(operand(0));
            ensure(
                is_mutable(m, operand(1))
                    && pointee == Some(m.element_type(operand(1)))
                    && m.shape(operand(0)) == m.shape(operand(1)),
                || format!("{} cannot be copied to {}", print_type(m, operand(0)), print_type(m, operand(1))),
            )
        }
        K::AsyncCommitGroup | K::AsyncWait | K::Barrier | K::WarpId => Ok(()),
        #[allow(unreachable_patterns)] // operations yet to be declared
        _ => Ok(()),
    }
}
