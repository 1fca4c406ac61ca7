//! How the types of an operation's operands and results follow from each other.
//!
//! Each declaration lists [`TypeRule`]s. The verifier checks them, and the text form, which prints no type twice, finds by
//! them what it did not print. Shapes are the matter of the [index relation](crate::index); a rule that gives a whole type
//! ([`TypeOf::Same`], [`TypeOf::Mask`], …) includes shape and encoding.

use crate::entity::{Op, Type, Value};
use crate::module::Module;
use crate::opdef::{OpDef, ResultsDef, Trait};
use crate::text::print_type;
use crate::types::{Container, Shape, TypeKind};

/// What values may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Elements are integers (or `index`).
    Int,
    /// Elements are floating-point numbers.
    Float,
    /// Elements are pointers.
    Ptr,
    /// Elements are integers or pointers.
    IntOrPtr,
    /// Elements are `i1`.
    Bool,
    /// A tensor.
    Tensor,
    /// A buffer.
    Buffer,
    /// A buffer that may be written.
    Mutable,
    /// A view of memory (`memref`).
    View,
    /// A view, or a tensor of whatever shape.
    Shaped,
    /// A buffer of one mbarrier, `!ttg.memdesc<1xi64, …>`.
    Mbarrier,
}

/// The type that follows from that of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TypeOf {
    /// The same.
    Same(&'static str),
    /// As many `i1`.
    Mask(&'static str),
    /// What lies where the pointers of the group point to: an element for each, or the tile.
    Loaded(&'static str),
    /// One element of it.
    Element(&'static str),
    /// Something with the same elements, in a shape that the index relation tells.
    Like(&'static str),
    /// The tensor of what a view has.
    TensorOf(&'static str),
    /// This one.
    Fixed(Type),
}

/// How the widths of two groups' elements compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Width {
    Below,
    Above,
    Equal,
}

/// A statement about types, about every value of a group of operands or results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TypeRule {
    /// All operands and results are of a class.
    All(Class),
    /// A group is.
    Each(&'static str, Class),
    /// The types of the first group follow from those of another: value by value where that has as many, else from its first.
    Is(&'static str, TypeOf),
    /// The values of the first group have the types of the tensors in the second one: what an operation makes of destinations that are no memory.
    Written(&'static str, &'static str),
    /// The elements of the first group are narrower than (wider than, as wide as) those of the second.
    Bits(&'static str, Width, &'static str),
}

impl TypeOf {
    /// The group that it speaks of.
    pub const fn group(self) -> Option<&'static str> {
        match self {
            TypeOf::Same(g)
            | TypeOf::Mask(g)
            | TypeOf::Loaded(g)
            | TypeOf::Element(g)
            | TypeOf::TensorOf(g)
            | TypeOf::Like(g) => Some(g),
            TypeOf::Fixed(_) => None,
        }
    }

    /// The type, if all of it follows.
    fn resolve(self, m: &mut Module, from: Option<Type>) -> Option<Type> {
        match self {
            TypeOf::Same(_) => from,
            TypeOf::Mask(_) => from.map(|t| m.with_element(t, Type::I1)),
            TypeOf::Loaded(_) => {
                let pointee = m.pointee_type(from?)?;
                Some(m.with_element(from?, pointee))
            }
            TypeOf::Element(_) => from.map(|t| m.element_type(t)),
            TypeOf::TensorOf(_) => tensor_of(m.type_kind(from?)).map(|kind| m.ty(kind)),
            TypeOf::Like(_) => None,
            TypeOf::Fixed(t) => Some(t),
        }
    }

    fn holds(self, m: &Module, found: Type, from: Option<Type>) -> bool {
        let Some(from) = from else {
            return match self {
                TypeOf::Fixed(t) => found == t,
                _ => true,
            };
        };
        let shaped = |element: Type| match m.type_kind(from) {
            TypeKind::Tensor { .. } => {
                m.is_tensor(found)
                    && m.shape(found) == m.shape(from)
                    && m.encoding(found) == m.encoding(from)
                    && m.element_type(found) == element
            }
            TypeKind::Shaped { container, shape, rest, .. } => match m.type_kind(found) {
                TypeKind::Shaped { container: c, shape: s, element: e, rest: r } => {
                    *e == element && (c, s, r) == (container, shape, rest)
                }
                _ => false,
            },
            _ => found == element,
        };
        match self {
            TypeOf::Same(_) => found == from,
            TypeOf::Mask(_) => shaped(Type::I1),
            TypeOf::Loaded(_) => m.pointee_type(from).is_some_and(shaped),
            TypeOf::Element(_) => found == m.element_type(from),
            TypeOf::TensorOf(_) => {
                tensor_of(m.type_kind(from)).is_some_and(|kind| kind == *m.type_kind(found))
            }
            TypeOf::Like(_) => element(m, found) == element(m, from),
            TypeOf::Fixed(t) => found == t,
        }
    }

    /// What a type should be, for a message.
    pub fn describe(self) -> String {
        match self {
            TypeOf::Same(g) => format!("the type of `{g}`"),
            TypeOf::Mask(g) => format!("i1 with the shape and layout of `{g}`"),
            TypeOf::Loaded(g) => format!("what `{g}` points to, with its shape and layout"),
            TypeOf::Element(g) => format!("the element type of `{g}`"),
            TypeOf::TensorOf(g) => format!("the tensor of what `{g}` has"),
            TypeOf::Like(g) => format!("elements as those of `{g}`"),
            TypeOf::Fixed(t) => match t {
                Type::I1 => "i1".into(),
                Type::I32 => "i32".into(),
                Type::I64 => "i64".into(),
                Type::INDEX => "index".into(),
                Type::RING => "!ttg.ring".into(),
                _ => "an asynchronous token".into(),
            },
        }
    }
}

impl Class {
    fn holds(self, m: &Module, ty: Type) -> bool {
        match self {
            Class::Int => m.is_int(ty),
            Class::Float => m.is_float(ty),
            Class::Ptr => m.is_ptr(ty),
            Class::IntOrPtr => m.is_int(ty) || m.is_ptr(ty),
            Class::Bool => m.element_type(ty) == Type::I1,
            Class::Tensor => m.is_tensor(ty),
            Class::Buffer => matches!(m.type_kind(ty), TypeKind::MemDesc { .. }),
            Class::Mutable => matches!(m.type_kind(ty), TypeKind::MemDesc { mutable: true, .. }),
            Class::View => {
                matches!(m.type_kind(ty), TypeKind::Shaped { container: Container::MemRef, .. })
            }
            Class::Shaped => Class::View.holds(m, ty) || is_tensor(m, ty),
            Class::Mbarrier => {
                Class::Buffer.holds(m, ty) && m.shape(ty) == Some(&[1]) && m.element_type(ty) == Type::I64
            }
        }
    }

    /// For a message.
    pub fn describe(self) -> &'static str {
        match self {
            Class::Int => "integers",
            Class::Float => "floats",
            Class::Ptr => "pointers",
            Class::IntOrPtr => "integers or pointers",
            Class::Bool => "i1",
            Class::Tensor => "a tensor",
            Class::Buffer => "a buffer",
            Class::Mutable => "a mutable buffer",
            Class::View => "a view (memref)",
            Class::Shaped => "a view or a tensor",
            Class::Mbarrier => "an mbarrier (!ttg.memdesc<1xi64, ...>)",
        }
    }
}

impl TypeRule {
    /// The names of groups that it speaks of.
    pub const fn names(self) -> [Option<&'static str>; 2] {
        match self {
            TypeRule::All(_) => [None, None],
            TypeRule::Each(g, _) => [Some(g), None],
            TypeRule::Is(g, of) => [Some(g), of.group()],
            TypeRule::Bits(a, _, b) | TypeRule::Written(a, b) => [Some(a), Some(b)],
        }
    }

    /// For the reference of operations.
    pub fn describe(self) -> String {
        match self {
            TypeRule::All(class) => class.describe().into(),
            TypeRule::Each(g, class) => format!("`{g}`: {}", class.describe()),
            TypeRule::Is(g, of) => format!("`{g}`: {}", of.describe()),
            TypeRule::Written(a, b) => format!("`{a}`: the types of the tensors in `{b}`"),
            TypeRule::Bits(a, Width::Below, b) => format!("`{a}` narrower than `{b}`"),
            TypeRule::Bits(a, Width::Above, b) => format!("`{a}` wider than `{b}`"),
            TypeRule::Bits(a, Width::Equal, b) => format!("`{a}` as wide as `{b}`"),
        }
    }
}

/// The element type of a tensor, a buffer or a descriptor's block.
fn element(m: &Module, ty: Type) -> Type {
    match m.type_kind(ty) {
        TypeKind::TensorDesc { block } => m.element_type(*block),
        _ => m.element_type(ty),
    }
}

/// A tensor, of whatever shape.
fn is_tensor(m: &Module, ty: Type) -> bool {
    m.is_tensor(ty) || matches!(m.type_kind(ty), TypeKind::Shaped { container: Container::Tensor, .. })
}

/// The tensor of what a view has.
fn tensor_of(view: &TypeKind) -> Option<TypeKind> {
    let TypeKind::Shaped { container: Container::MemRef, shape, element, .. } = view else { return None };
    let known: Option<Shape> = shape.iter().copied().collect();
    Some(match known {
        Some(shape) => TypeKind::Tensor { shape, element: *element, encoding: None },
        None => TypeKind::Shaped {
            container: Container::Tensor,
            shape: shape.clone(),
            element: *element,
            rest: String::new(),
        },
    })
}

/// The values of a group of operands, or of the results of that name.
fn group<'m>(m: &'m Module, op: Op, def: &OpDef, name: &str) -> &'m [Value] {
    match def.group(name) {
        Some(g) => m.operand_group(op, g),
        None => match (def.results, def.result(name)) {
            (ResultsDef::Variadic(_), _) => m.results(op),
            (_, Some(i)) => m.results(op).get(i..=i).unwrap_or(&[]),
            _ => &[],
        },
    }
}

/// Checks the rules of an operation's declaration.
pub(crate) fn check(m: &Module, op: Op, def: &OpDef) -> Result<(), String> {
    let types = |name: &str| group(m, op, def, name).iter().map(|&v| m.value_type(v));
    for &rule in def.types {
        match rule {
            TypeRule::All(class) => {
                let all = m.operands(op).iter().chain(m.results(op)).map(|&v| m.value_type(v));
                each(m, all, class, "")?;
            }
            TypeRule::Each(name, class) => each(m, types(name), class, &format!(" for `{name}`"))?,
            TypeRule::Is(name, of) => {
                let from: Vec<Type> = of.group().map(|g| types(g).collect()).unwrap_or_default();
                let found: Vec<Type> = types(name).collect();
                if from.len() != found.len() && from.len() > 1 {
                    return Err(format!(
                        "{} values for `{name}` where there are {}",
                        found.len(),
                        from.len()
                    ));
                }
                for (i, &ty) in found.iter().enumerate() {
                    let source = if from.len() > 1 { from.get(i) } else { from.first() };
                    if !of.holds(m, ty, source.copied()) {
                        let source =
                            source.map_or(String::new(), |&t| format!(", which is {}", print_type(m, t)));
                        let (found, of) = (print_type(m, ty), of.describe());
                        return Err(format!("`{name}` has type {found}; it must be {of}{source}"));
                    }
                }
            }
            TypeRule::Written(results, written) => {
                let made: Vec<Type> = types(written).filter(|&t| is_tensor(m, t)).collect();
                let found: Vec<Type> = types(results).collect();
                same_type_lists(m, "results", &found, "the tensors that are written", &made)?;
            }
            TypeRule::Bits(a, width, b) => {
                for (from, to) in types(a).zip(types(b)) {
                    let (x, y) = (m.bits(from), m.bits(to));
                    let holds = match width {
                        Width::Below => x < y,
                        Width::Above => x > y,
                        Width::Equal => x == y,
                    };
                    if !holds || x == 0 {
                        let (from, to) = (print_type(m, from), print_type(m, to));
                        return Err(format!("no conversion from {from} to {to}: {}", rule.describe()));
                    }
                }
            }
        }
    }
    Ok(())
}

fn each(m: &Module, mut types: impl Iterator<Item = Type>, class: Class, place: &str) -> Result<(), String> {
    match types.find(|&t| !class.holds(m, t)) {
        Some(t) => Err(format!("{} expected{place}, not {}", class.describe(), print_type(m, t))),
        None => Ok(()),
    }
}

// ---- what the text form does not print -------------------------------------------------------------------------------

/// What is known of an operation's types while it is read: the first type of each operand group, and of the results.
pub(crate) struct Known<'a> {
    /// By operand group.
    pub groups: &'a [Option<Type>],
    /// The first result's.
    pub result: Option<Type>,
}

impl Known<'_> {
    fn of(&self, def: &OpDef, name: &str) -> Option<Type> {
        match def.group(name) {
            Some(g) => self.groups[g],
            None if def.result(name) == Some(0) => self.result,
            None => None,
        }
    }

    /// Rules both ways round: what is the same as something known is known.
    fn find(&self, m: &mut Module, def: &OpDef, name: &str) -> Option<Type> {
        for &rule in def.types {
            let TypeRule::Is(of, how) = rule else { continue };
            if of == name {
                let from = how.group().and_then(|g| self.of(def, g));
                // An operand that is used before its definition is guessed; what it turns out to be is compared.
                let guess =
                    if matches!(how, TypeOf::Like(_)) && def.group(name).is_some() { from } else { None };
                if let Some(ty) = guess.or_else(|| how.resolve(m, from)) {
                    return Some(ty);
                }
            }
            if matches!(how, TypeOf::Same(g) if g == name)
                && let Some(ty) = self.of(def, of)
            {
                return Some(ty);
            }
        }
        if let ResultsDef::SameAs(same) = def.results
            && same == name
        {
            return self.result;
        }
        None
    }
}

/// The result types of an operation from its operands, where the format prints none of them (or only the first).
pub(crate) fn result_types(
    m: &mut Module,
    def: &OpDef,
    groups: &[Vec<Value>],
    first_printed: Option<Type>,
) -> Option<Vec<Type>> {
    let first: Vec<Option<Type>> = groups.iter().map(|g| g.first().map(|&v| m.value_type(v))).collect();
    let known = Known { groups: &first, result: first_printed };
    match def.results {
        ResultsDef::SameAs(group) => Some(vec![first_printed.or(first[def.group(group)?])?]),
        ResultsDef::Given(_) if def.has(Trait::SameTypes) => {
            Some(vec![first.iter().copied().flatten().next()?])
        }
        ResultsDef::Given(names) => names
            .iter()
            .enumerate()
            .map(|(i, name)| first_printed.filter(|_| i == 0).or_else(|| known.find(m, def, name)))
            .collect(),
        // One for each value of the group whose types they have.
        ResultsDef::Variadic(name) => def.types.iter().find_map(|rule| match rule {
            TypeRule::Is(of, TypeOf::Same(from)) if *of == name => {
                Some(groups[def.group(from)?].iter().map(|&v| m.value_type(v)).collect())
            }
            TypeRule::Written(of, from) if *of == name => {
                let types = groups[def.group(from)?].iter().map(|&v| m.value_type(v));
                Some(types.filter(|&t| is_tensor(m, t)).collect())
            }
            _ => None,
        }),
    }
}

/// The type of an operand that is used before its definition and whose type is not printed.
pub(crate) fn operand_type(m: &mut Module, def: &OpDef, group: usize, known: &Known<'_>) -> Option<Type> {
    if def.has(Trait::SameTypes) {
        return known.result.or_else(|| known.groups.iter().copied().flatten().next());
    }
    known.find(m, def, def.operands[group].name)
}

fn types(m: &Module, values: &[Value]) -> Vec<Type> {
    values.iter().map(|&v| m.value_type(v)).collect()
}

/// Compares lists of types; the texts name them.
pub(crate) fn same_type_lists(
    m: &Module,
    what: &str,
    found: &[Type],
    expected_as: &str,
    expected: &[Type],
) -> Result<(), String> {
    if found == expected {
        return Ok(());
    }
    let list = |types: &[Type]| types.iter().map(|&t| print_type(m, t)).collect::<Vec<_>>().join(", ");
    Err(format!("{what} ({}) do not fit {expected_as} ({})", list(found), list(expected)))
}

/// The same of values.
pub(crate) fn same_types(
    m: &Module,
    what: &str,
    found: &[Value],
    expected_as: &str,
    expected: &[Value],
) -> Result<(), String> {
    same_type_lists(m, what, &types(m, found), expected_as, &types(m, expected))
}
