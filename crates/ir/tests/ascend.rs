//! The dialects of Ascend's code, as the public project AscendNPU-IR writes them: each operation is read, verified and printed as it was
//! written, and what breaks a rule is refused. The files are `ascend/*.mlir`.

use tilewright_ir::{PrintOptions, dialect, parse, print_with, verify};

/// The operations that have one view and nothing else.
const UNARY: [&str; 17] = [
    "vexp", "vexp2", "vexpm1", "vln", "vlog2", "vlog10", "vlog1p", "vsqrt", "vrsqrt", "vrec", "vrelu",
    "vtanh", "vsin", "vcos", "vtan", "vatan", "verf",
];

/// The files, with the operations in them that are alike written out.
fn files() -> [String; 2] {
    let mut unary: Vec<&str> = UNARY.to_vec();
    unary.push("vabs");
    let line =
        |name: &&str| format!("hivm.hir.{name} ins(%x : memref<4x32xf32>) outs(%x : memref<4x32xf32>)");
    let unary: Vec<String> = unary.iter().map(line).collect();
    let named = |def: &&tilewright_ir::opdef::OpDef| {
        let own = [
            "linalg.fill",
            "linalg.broadcast",
            "linalg.transpose",
            "linalg.reduce",
            "linalg.generic",
            "linalg.yield",
        ];
        ["linalg.", "hfusion."].iter().any(|d| def.name.starts_with(d)) && !own.contains(&def.name)
    };
    let line = |(i, def): (usize, &tilewright_ir::opdef::OpDef)| {
        format!(
            "%n{i} = {} ins(%c : tensor<8x4xf32>) outs(%c : tensor<8x4xf32>) -> tensor<8x4xf32>",
            def.name
        )
    };
    let named: Vec<String> = dialect::all_defs().filter(named).enumerate().map(line).collect();
    [
        include_str!("ascend/hivm.mlir").replace("// UNARY", &unary.join("\n    ")),
        include_str!("ascend/others.mlir").replace("// NAMED", &named.join("\n    ")),
    ]
}

fn printed(text: &str) -> String {
    let module = parse(text, "f.mlir").unwrap_or_else(|e| panic!("{e}"));
    if let Err(errors) = verify(&module) {
        panic!("{}", errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"));
    }
    print_with(&module, PrintOptions::PLAIN)
}

#[test]
fn what_is_printed_reads_the_same() {
    for file in files() {
        let once = printed(&file);
        assert_eq!(once, printed(&once));
    }
}

/// A line without the names of values, and without spaces.
fn regular(line: &str) -> String {
    let mut out = String::new();
    let mut in_value = false;
    for c in line.chars() {
        in_value = c == '%' || in_value && (c.is_ascii_alphanumeric() || c == '_' || c == '#');
        if c == '%' || !(in_value || c.is_whitespace()) {
            out.push(c);
        }
    }
    out
}

#[test]
fn operations_are_printed_as_they_were_written() {
    let [file, _] = files();
    // Values get other names, and an operation may stand on several lines.
    let operations = |text: &str| -> Vec<String> {
        let of = text.lines().filter_map(|l| l.split_once("hivm.hir.").map(|(_, rest)| rest));
        of.map(regular).collect()
    };
    for (written, printed) in operations(&file).iter().zip(operations(&printed(&file))) {
        assert_eq!(*written, printed);
    }
}

#[test]
fn every_operation_is_in_the_files() {
    let text = files().concat();
    let dialects = [
        "hivm",
        "memref",
        "memref_ext",
        "tensor",
        "bufferization",
        "affine",
        "annotation",
        "scope",
        "linalg",
        "hfusion",
        "vector",
    ];
    // What stands behind a name is no part of a longer one.
    let mentions = |name: &str| {
        text.match_indices(name)
            .any(|(at, _)| !text[at + name.len()..].starts_with(|c: char| c.is_alphanumeric() || c == '_'))
    };
    for def in dialect::all_defs() {
        let (of, _) = def.name.split_once('.').expect("a dialect and a name");
        assert!(!dialects.contains(&of) || mentions(def.name), "{}", def.name);
    }
}

/// The error of a function with this body.
fn error(body: &str) -> String {
    let text = format!(
        "func.func @f(%x: memref<4x32xf32>, %y: memref<4x32xf32>, %h: memref<4x32xf16>, %b: memref<4x32xbf16>, %m: memref<4x32xi1>, %col: memref<4x1xf32>,\n\
         %gm: memref<4x32xf32, #hivm.address_space<gm>>, %ub: memref<4x32xf32, #hivm.address_space<ub>>, %t: tensor<4x32xf32>, %s: f32, %e: i64, %n: index) {{\n{body}\nreturn\n}}"
    );
    match parse(&text, "f.mlir") {
        Err(e) => e.to_string(),
        Ok(module) => match verify(&module) {
            Ok(()) => String::new(),
            Err(errors) => errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"),
        },
    }
}

#[test]
fn what_breaks_a_rule_is_refused() {
    let (f32, f16, col, gm, ub) = (
        "memref<4x32xf32>",
        "memref<4x32xf16>",
        "memref<4x1xf32>",
        "memref<4x32xf32, #hivm.address_space<gm>>",
        "memref<4x32xf32, #hivm.address_space<ub>>",
    );
    for (body, message) in [
        (format!("hivm.hir.load ins(%gm : {gm}) outs(%gm : {gm})"), "it does not go from GM to GM"),
        (format!("hivm.hir.store ins(%gm : {gm}) outs(%ub : {ub})"), "it does not go from GM to UB"),
        (format!("hivm.hir.copy ins(%gm : {gm}) outs(%gm : {gm})"), "it does not go from GM to GM"),
        (format!("hivm.hir.load ins(%x : {f32}) outs(%h : {f16})"), "must have the same elements"),
        (format!("hivm.hir.load ins(%x : {f32}) outs(%col : {col})"), "must have the same extents"),
        (format!("hivm.hir.load ins(%gm : {gm}) outs(%ub : {ub}) pad_mode = <PadValue>"), "the value that it pads with is missing"),
        (format!("hivm.hir.load ins(%gm : {gm}) outs(%ub : {ub}) pad_mode = <PadValue> pad_value = %e : i64"), "with a value of type i64"),
        (format!("hivm.hir.load ins(%x : {f32}) outs(%t : tensor<4x32xf32>) -> tensor<4x32xf32>"), "from a view to a view"),
        (format!("hivm.hir.vadd ins(%x : {f32}) outs(%y : {f32})"), "1 operands instead of 2"),
        (format!("hivm.hir.vadd ins(%x, %h : {f32}, {f16}) outs(%y : {f32})"), "must have the same elements"),
        (format!("hivm.hir.vadd ins(%x, %col : {f32}, {col}) outs(%y : {f32})"), "does not fit memref<4x32xf32> along dimension 1"),
        (format!("hivm.hir.vadd ins(%x, %x : {f32}, {f32}) outs(%y : {f32}) broadcast = [0] transpose = [0, 1]"), "it broadcasts or transposes, not both"),
        (format!("hivm.hir.vadd ins(%x, %x : {f32}, {f32}) outs(%y : {f32}) broadcast = [2]"), "there is no dimension 2 among 2"),
        (format!("hivm.hir.vadd ins(%x, %x : {f32}, {f32}) outs(%y : {f32}) transpose = [1, 0]"), "the last one at its place"),
        ("hivm.hir.vadd ins(%b, %b : memref<4x32xbf16>, memref<4x32xbf16>) outs(%b : memref<4x32xbf16>)".into(), "it has no elements of type bf16"),
        ("hivm.hir.vand ins(%m, %s : memref<4x32xi1>, f32) outs(%m : memref<4x32xi1>)".into(), "a view or tensor is needed, not f32"),
        (format!("hivm.hir.vcast ins(%x : {f32}) outs(%m : memref<4x32xi1>) round_mode = <odd>"), "by `odd`"),
        (format!("hivm.hir.vbrc ins(%x : {f32}) outs(%y : {f32}) broadcast_dims = [1]"), "has more than one element along dimension 1"),
        (format!("hivm.hir.vbrc ins(%col : {col}) outs(%y : {f32})"), "it names no dimension"),
        (format!("hivm.hir.vbrc ins(%s : f32) outs(%y : {f32}) broadcast_dims = [1]"), "a number has no dimension"),
        (format!("hivm.hir.vreduce <sum> ins(%x : {f32}) outs(%y : {f32}) reduce_dims = [1]"), "which is reduced"),
        (format!("hivm.hir.vreduce <sum> ins(%x : {f32}) outs(%col : {col}) reduce_dims = []"), "it names no dimension"),
        (format!("hivm.hir.vtranspose ins(%x : {f32}) outs(%y : {f32}) permutation = [0, 1]"), "two dimensions are exchanged"),
        (format!("hivm.hir.varange strides[%n] outs(%y : {f32})"), "1 strides for 2 dimensions"),
        ("hivm.hir.set_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID8>]".into(), "the attribute `static_event_id` is not of the kind"),
        ("\"hivm.hir.set_flag\"(%e) <{set_pipe = #hivm.pipe<PIPE_V>, wait_pipe = #hivm.pipe<PIPE_S>, static_event_id = #hivm.event<EVENT_ID0>}> : (i64) -> ()".into(), "must be said once"),
        ("%a = hivm.hir.pointer_cast() : memref<4xf32>".into(), "it needs an address"),
        ("%a = memref.alloc() : memref<?xf32>".into(), "0 extents are given for 1 that memref<?xf32> leaves open"),
        (format!("%a = hivm.hir.vadd ins(%t, %t : tensor<4x32xf32>, tensor<4x32xf32>) outs(%x : {f32}) -> tensor<4x32xf32>"), "do not fit the tensors that are written"),
        (format!("hivm.hir.convert_layout %x output_shape [4, 32] {{srcLayout = #hivm.data_layout<dotA_ND>, dstLayout = #hivm.data_layout<nZ>}} : ({f32}) -> {f32}"), "`transpose` must be given"),
        (format!("%a = memref.load %x[%n, %n] : {f16}"), "has type memref<4x32xf32>, but is used as memref<4x32xf16>"),
    ] {
        let found = error(&body);
        assert!(found.contains(message), "{body}\n{found}");
    }
}
