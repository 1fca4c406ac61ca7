//! The key under mutation: each fact that a host can give is changed by itself, and so is each option and each tool.

use std::collections::HashMap;
use std::sync::Arc;

use tilewright_frontend::dtype::PointerType;
use tilewright_frontend::host::{NamedTuple, Origin};
use tilewright_frontend::{
    ArgSpec, ArgType, Binding, DType, Host, HostError, HostObject, HostValue as V, JitFunction, JitMarks,
    Scalar, Signature, SourceText, build_module,
};

use super::*;

/// Names everything once. A name that stands alone is looked up, and its value goes nowhere: the facts alone differ.
const KERNEL: &str = "\
def kernel(x, n, T):
    INT
    FLOAT
    BOOL
    TEXT
    NOTHING
    TUPLE
    POINT
    DT
    POINTER
    ALIAS
    LEAST
    thing
    Pair
    config.BLOCK
    hasattr(config, 'FAST')
    hasattr(config, 'SLOW')
    size(4, scale=2)
    helper()
";

const HELPER: &str = "\
def helper(a=1):
    NESTED
";

/// A host whose every answer is a field.
#[derive(Clone)]
struct World {
    names: HashMap<&'static str, Binding>,
    attributes: HashMap<&'static str, V>,
    default: V,
    result: V,
    known: Vec<String>,
    /// The kernel and the helper: id, module, name, file, first line, noinline, source.
    functions: [(u64, &'static str, &'static str, &'static str, u32, bool, String); 2],
    args: Vec<ArgSpec>,
}

fn object(id: u64, kind: &str, name: &str, callable: bool) -> HostObject {
    HostObject { id, kind: kind.into(), name: name.into(), callable, namedtuple_fields: None }
}

fn point(class: &str, fields: [&str; 2], values: [V; 2]) -> V {
    let fields = fields.iter().map(|&f| f.into()).collect();
    V::NamedTuple(Arc::new(NamedTuple { class: class.into(), fields, values: values.to_vec() }))
}

fn pointer(element: Scalar, address_space: u32, constant: bool) -> DType {
    DType::Pointer(Arc::new(PointerType { element: element.into(), address_space, constant }))
}

fn world() -> World {
    let constant = |value| Binding { value, constexpr: true, origin: Origin::Global };
    let plain = |value| Binding { value, constexpr: false, origin: Origin::Global };
    let pair = HostObject {
        namedtuple_fields: Some(["a", "b"].iter().map(|&f| f.into()).collect()),
        ..object(13, "class", "Pair", false)
    };
    let names = HashMap::from([
        ("INT", constant(V::Int(0))),
        ("FLOAT", constant(V::Float(0.0))),
        ("BOOL", constant(V::Bool(true))),
        ("TEXT", constant(V::str("1"))),
        ("NOTHING", constant(V::None)),
        ("TUPLE", constant(V::tuple([V::Int(1), V::Int(2)]))),
        ("POINT", constant(point("P", ["a", "b"], [V::Int(1), V::Int(2)]))),
        ("DT", plain(V::DType(Scalar::Fp16.into()))),
        ("POINTER", plain(V::DType(pointer(Scalar::Fp16, 1, false)))),
        ("ALIAS", plain(V::Library("language.exp".into()))),
        ("LEAST", Binding { origin: Origin::Builtin, ..plain(V::Python("min".into())) }),
        ("hasattr", Binding { origin: Origin::Builtin, ..plain(V::Python("hasattr".into())) }),
        ("thing", plain(V::Object(object(10, "Thing", "a thing", false).into()))),
        ("config", plain(V::Object(object(11, "module", "config", false).into()))),
        ("size", constant(V::Object(object(12, "function", "size", true).into()))),
        ("Pair", plain(V::Object(pair.into()))),
        ("helper", plain(V::None)), // the function itself is filled in below
        ("NESTED", constant(V::Int(5))),
        ("unused", constant(V::Int(6))),
    ]);
    World {
        names,
        attributes: HashMap::from([("BLOCK", V::Int(64)), ("FAST", V::Bool(true))]),
        default: V::Int(1),
        result: V::Int(8),
        known: vec!["unused".to_string()],
        functions: [
            (1, "m", "kernel", "m.py", 10, false, KERNEL.to_string()),
            (2, "m", "helper", "m.py", 40, false, HELPER.to_string()),
        ],
        args: vec![
            ArgSpec::value(pointer(Scalar::Fp32, 1, false)).divisible_by(16),
            ArgSpec::constant(V::Int(1)),
            ArgSpec { ty: ArgType::Tuple(vec![ArgSpec::value(Scalar::Int32)]), divisibility: None },
        ],
    }
}

type Mutation = Box<dyn Fn(&mut World)>;

/// What answers: a world with its functions.
struct Asked {
    world: World,
    helper: Arc<JitFunction>,
}

impl Host for Asked {
    fn lookup(&self, _: &Arc<JitFunction>, name: &str) -> Result<Option<Binding>, HostError> {
        let mut found = self.world.names.get(name).cloned();
        if name == "helper"
            && let Some(binding) = &mut found
        {
            binding.value = V::Jit(self.helper.clone());
        }
        Ok(found)
    }

    fn attribute(&self, _: &HostObject, name: &str) -> Result<Option<V>, HostError> {
        Ok(self.world.attributes.get(name).cloned())
    }

    fn default_argument(&self, _: &Arc<JitFunction>, _: &str) -> Result<Option<V>, HostError> {
        Ok(Some(self.world.default.clone()))
    }

    fn call(&self, _: &HostObject, _: &[V], _: &[(Arc<str>, V)]) -> Result<V, HostError> {
        Ok(self.world.result.clone())
    }

    fn names(&self, _: &Arc<JitFunction>) -> Vec<String> {
        self.world.known.clone()
    }
}

fn facts(world: &World) -> Facts {
    let [kernel, helper] = world.functions.clone().map(|(id, module, name, file, line, noinline, text)| {
        JitFunction::new(
            id,
            module,
            name,
            SourceText::new(file, text, line),
            JitMarks { noinline, ..JitMarks::default() },
        )
    });
    let host = Asked { world: world.clone(), helper };
    let signature = Signature { args: world.args.clone() };
    match build_module(&host, &kernel, &signature, &Options::default()) {
        Ok(built) => built.facts,
        Err(error) => panic!("{error}"),
    }
}

/// The key for a target, with these tools.
fn key_for(target: &str, facts: &Facts, options: &Options, tools: &[(&str, String)]) -> Key {
    let target = crate::target(target).unwrap_or_else(|e| panic!("{e}"));
    key(facts, &*target, options, tools)
}

fn tools() -> Vec<(&'static str, String)> {
    let tools = [("build", "build"), ("llvm", "19.1.7 hash"), ("ptxas", "13.0 hash"), ("wgmma", "true")];
    tools.map(|(name, text)| (name, text.to_string())).to_vec()
}

fn key_of(world: &World) -> Key {
    key_for("cuda:90", &facts(world), &Options::default(), &tools())
}

/// Changes what a name's value becomes.
fn value(name: &'static str, value: V) -> Mutation {
    change(move |w| w.names.get_mut(name).expect("is there").value = value.clone())
}

fn change(edit: impl Fn(&mut World) + 'static) -> Mutation {
    Box::new(edit)
}

fn change_object(name: &'static str, edit: fn(&mut HostObject)) -> Mutation {
    change(move |w| {
        let Some(Binding { value: V::Object(object), .. }) = w.names.get_mut(name) else {
            panic!("{name} is no object")
        };
        edit(Arc::make_mut(object));
    })
}

/// Other values of names, and other types of them.
fn other_values() -> Vec<Mutation> {
    vec![
        value("INT", V::Int(1)),
        value("INT", V::Float(0.0)),
        value("INT", V::Bool(false)),
        value("INT", V::None),
        value("INT", V::str("0")),
        value("FLOAT", V::Float(-0.0)),
        value("FLOAT", V::Float(f64::from_bits(1))),
        value("FLOAT", V::Float(f64::NAN)),
        value("FLOAT", V::Float(f64::from_bits(f64::NAN.to_bits() | 1))),
        value("FLOAT", V::Int(0)),
        value("BOOL", V::Bool(false)),
        value("BOOL", V::Int(1)),
        value("TEXT", V::Int(1)),
        value("TEXT", V::str("1 ")),
        value("TEXT", V::str("'1'")),
        value("TEXT", V::Python("1".into())),
        value("NOTHING", V::str("None")),
        value("NOTHING", V::Bool(false)),
        value("TUPLE", V::tuple([V::Int(1), V::Float(2.0)])),
        value("TUPLE", V::tuple([V::Int(2), V::Int(1)])),
        value("TUPLE", V::tuple([V::tuple([V::Int(1), V::Int(2)])])),
        value("TUPLE", V::tuple([V::tuple([V::Int(1)]), V::Int(2)])),
        value("TUPLE", V::tuple([V::Int(1), V::tuple([V::Int(2)])])),
        value("TUPLE", point("P", ["a", "b"], [V::Int(1), V::Int(2)])),
        value("TUPLE", V::str("(1, 2)")),
        value("POINT", point("P", ["b", "a"], [V::Int(1), V::Int(2)])),
        value("POINT", point("Q", ["a", "b"], [V::Int(1), V::Int(2)])),
        value("POINT", point("P", ["a", "b"], [V::Int(2), V::Int(1)])),
        value("POINT", V::tuple([V::Int(1), V::Int(2)])),
        value("DT", V::DType(Scalar::Bf16.into())),
        value("DT", V::DType(DType::block(Scalar::Fp16.into(), vec![16]))),
        value("DT", V::DType(DType::block(Scalar::Fp16.into(), vec![32]))),
        value("DT", V::Library("fp16".into())),
        value("POINTER", V::DType(pointer(Scalar::Fp16, 1, true))),
        value("POINTER", V::DType(pointer(Scalar::Fp16, 3, false))),
        value("POINTER", V::DType(pointer(Scalar::Fp32, 1, false))),
        value("ALIAS", V::Library("language.log2".into())),
        value("ALIAS", V::Library("language.math.exp".into())),
        value("ALIAS", V::Python("language.exp".into())),
        value("LEAST", V::Python("max".into())),
        value("NESTED", V::Int(50)),
    ]
}

/// Other declarations, objects, attributes, functions, and other things that the host computed.
fn other_surroundings() -> Vec<Mutation> {
    vec![
        // The same value found elsewhere or declared otherwise.
        change(|w| w.names.get_mut("DT").expect("is there").constexpr = true),
        change(|w| w.names.get_mut("DT").expect("is there").origin = Origin::Closure),
        // Objects.
        change_object("thing", |o| o.kind = "Other".into()),
        change_object("thing", |o| o.name = "another thing".into()),
        change_object("thing", |o| o.callable = true),
        change_object("thing", |o| o.id = 11), // now the same as `config`
        change_object("thing", |o| o.namedtuple_fields = Some(Arc::new([]))),
        change_object("Pair", |o| o.namedtuple_fields = Some(Arc::new(["b".into(), "a".into()]))),
        change_object("Pair", |o| o.namedtuple_fields = None),
        // Attributes: their values, those asked for in vain, those that `hasattr` found.
        change(|w| drop(w.attributes.insert("BLOCK", V::Int(128)))),
        change(|w| drop(w.attributes.insert("BLOCK", V::Float(64.0)))),
        change(|w| drop(w.attributes.insert("SLOW", V::Bool(true)))),
        change(|w| drop(w.attributes.remove("FAST"))),
        // What the host computed.
        change(|w| w.default = V::Int(2)),
        change(|w| w.default = V::Bool(true)),
        change(|w| w.result = V::Int(9)),
        change(|w| w.result = V::Float(8.0)),
        // Functions: source, names, places.
        change(|w| w.functions[0].6 = KERNEL.replace("scale=2", "scale=3")),
        change(|w| w.functions[0].6 = KERNEL.replace("size(4", "size(4.0")),
        change(|w| w.functions[0].6.push_str("    pass\n")),
        change(|w| w.functions[1].6.push_str("    pass\n")),
        change(|w| w.functions[0].2 = "renamed"),
        change(|w| w.functions[1].2 = "renamed"),
        change(|w| w.functions[1].1 = "other_module"),
        change(|w| w.functions[0].3 = "other.py"),
        change(|w| w.functions[1].3 = "other.py"),
        change(|w| w.functions[0].4 = 11),
        change(|w| w.functions[1].4 = 41),
        change(|w| w.functions[1].5 = true),
    ]
}

fn other_arguments() -> Vec<Mutation> {
    vec![
        change(|w| w.args[0] = ArgSpec::value(pointer(Scalar::Fp32, 1, false))),
        change(|w| w.args[0] = ArgSpec::value(pointer(Scalar::Fp32, 1, false)).divisible_by(8)),
        change(|w| w.args[0] = ArgSpec::value(pointer(Scalar::Fp32, 1, true)).divisible_by(16)),
        change(|w| w.args[0] = ArgSpec::value(pointer(Scalar::Fp16, 1, false)).divisible_by(16)),
        change(|w| w.args[1] = ArgSpec::value(Scalar::Int32)),
        change(|w| w.args[1] = ArgSpec::constant(V::Int(2))),
        change(|w| w.args[1] = ArgSpec::constant(V::Float(1.0))),
        change(|w| w.args[1] = ArgSpec::constant(V::Bool(true))),
        change(|w| w.args[1] = ArgSpec::constant(V::str("1"))),
        change(|w| w.args[1] = ArgSpec::constant(point("P", ["a", "b"], [V::Int(1), V::Int(2)]))),
        change(|w| w.args[1] = ArgSpec::constant(point("P", ["b", "a"], [V::Int(1), V::Int(2)]))),
        change(|w| w.args[2].ty = ArgType::Tuple(vec![ArgSpec::value(Scalar::UInt32)])),
        change(|w| w.args[2].ty = ArgType::Tuple(vec![ArgSpec::value(Scalar::Int32).divisible_by(16)])),
        change(|w| {
            w.args[2].ty =
                ArgType::NamedTuple(("P".into(), ["a".into()].into()), vec![ArgSpec::value(Scalar::Int32)]);
        }),
        change(|w| {
            w.args[2].ty =
                ArgType::NamedTuple(("P".into(), ["b".into()].into()), vec![ArgSpec::value(Scalar::Int32)]);
        }),
        change(|w| {
            w.args[2].ty = ArgType::Descriptor { element: Scalar::Fp16, block: vec![64, 64], nan: false };
        }),
        change(|w| {
            w.args[2].ty = ArgType::Descriptor { element: Scalar::Fp16, block: vec![64, 64], nan: true };
        }),
        change(|w| {
            w.args[2].ty = ArgType::Descriptor { element: Scalar::Fp16, block: vec![64, 32], nan: false };
        }),
        change(|w| {
            w.args[2].ty = ArgType::Descriptor { element: Scalar::Bf16, block: vec![64, 64], nan: false };
        }),
    ]
}

#[test]
fn each_fact_that_a_host_gives_is_in_the_key() {
    let mutations: Vec<Mutation> =
        [other_values(), other_surroundings(), other_arguments()].into_iter().flatten().collect();
    let mut seen = HashMap::from([(key_of(&world()), usize::MAX)]);
    for (at, mutate) in mutations.iter().enumerate() {
        let mut mutant = world();
        mutate(&mut mutant);
        if let Some(twin) = seen.insert(key_of(&mutant), at) {
            let base: Vec<String> = facts(&mutant).lines().map(str::to_string).collect();
            panic!("mutation {at} has the key of {twin} (the last: none):\n{}", base.join("\n"));
        }
    }
}

#[test]
fn what_the_kernel_does_not_ask_for_is_not_in_the_key() {
    let base = key_of(&world());
    let same = |edit: &dyn Fn(&mut World)| {
        let mut mutant = world();
        edit(&mut mutant);
        assert_eq!(key_of(&mutant), base);
    };
    same(&|_| {});
    same(&|w| drop(w.names.remove("unused")));
    same(&|w| w.names.get_mut("unused").expect("is there").value = V::Float(7.0));
    same(&|w| drop(w.attributes.insert("OTHER", V::Int(1))));
    // Names for «did you mean».
    same(&|w| w.known.push("another".to_string()));
    // Another process gives other numbers.
    same(&|w| {
        w.functions[0].0 += 100;
        w.functions[1].0 += 70;
        for binding in w.names.values_mut() {
            if let V::Object(object) = &mut binding.value {
                Arc::make_mut(object).id *= 1000;
            }
        }
    });
}

#[test]
fn answers_that_change_during_a_compilation_are_told_apart() {
    // A function that counts, say: what counts is which answer came when.
    struct Counting(Vec<i128>, std::cell::Cell<usize>, Asked);
    impl Host for Counting {
        fn lookup(&self, f: &Arc<JitFunction>, name: &str) -> Result<Option<Binding>, HostError> {
            self.2.lookup(f, name)
        }
        fn attribute(&self, o: &HostObject, name: &str) -> Result<Option<V>, HostError> {
            self.2.attribute(o, name)
        }
        fn call(&self, _: &HostObject, _: &[V], _: &[(Arc<str>, V)]) -> Result<V, HostError> {
            let at = self.1.replace(self.1.get() + 1);
            Ok(V::Int(self.0[at]))
        }
    }
    let source = "def kernel():\n    size()\n    size()\n    size()\n";
    let mut seen = HashMap::new();
    for answers in [[1, 1, 1], [1, 1, 2], [1, 2, 1], [1, 2, 2], [2, 1, 1], [2, 1, 2], [2, 2, 1], [2, 2, 2]] {
        let kernel = JitFunction::new(
            1,
            "m",
            "kernel",
            SourceText::new("m.py", source.to_string(), 1),
            JitMarks::default(),
        );
        let asked = Asked { world: world(), helper: kernel.clone() };
        let host = Counting(answers.to_vec(), std::cell::Cell::new(0), asked);
        let built = build_module(&host, &kernel, &Signature { args: vec![] }, &Options::default());
        let facts = built.unwrap_or_else(|e| panic!("{e}")).facts;
        let key = key_for("cuda:90", &facts, &Options::default(), &tools());
        assert_eq!(seen.insert(key, answers), None, "{answers:?}");
    }
}

#[test]
fn each_option_and_each_tool_is_in_the_key() {
    let facts = facts(&world());
    let mut options = vec![Options::default()];
    for option in OPTIONS {
        let values = ["0", "1", "2", "8", "64", "ieee", "bf16x3"].iter().filter_map(|t| option.parse(t).ok());
        for value in values.filter(|v| *v != option.default()) {
            let mut changed = Options::default();
            option.set(&mut changed, value).unwrap();
            if option.keyed() {
                options.push(changed);
            } else {
                let one = |options| key_for("cuda:90", &facts, options, &tools());
                assert_eq!(one(&changed), one(&Options::default()), "{}", option.name);
            }
        }
    }
    assert!(options.len() > OPTIONS.len());
    let mut keys: Vec<Key> =
        options.iter().map(|options| key_for("cuda:90", &facts, options, &tools())).collect();
    for changed in 0..tools().len() {
        let mut tools = tools();
        tools[changed].1.push_str(" of another day");
        keys.push(key_for("cuda:90", &facts, &Options::default(), &tools));
    }
    keys.push(key_for("cuda:80", &facts, &Options::default(), &tools()));
    let different: std::collections::HashSet<Key> = keys.iter().copied().collect();
    assert_eq!(different.len(), keys.len());
}
