use super::*;

/// Parses, checks that printing is the identity from then on, and returns the text.
fn round_trip(text: &str) -> String {
    let module = parse(text, "test.mlir").unwrap_or_else(|e| panic!("{e}"));
    let full = print(&module);
    let again = parse(&full, "again.mlir").unwrap_or_else(|e| panic!("{e}\n{full}"));
    assert_eq!(print(&again), full);
    let plain = print_with(&module, PrintOptions::PLAIN);
    let again = parse(&plain, "again.mlir").unwrap_or_else(|e| panic!("{e}\n{plain}"));
    assert_eq!(print_with(&again, PrintOptions::PLAIN), plain);
    plain
}

/// The text is already as it is printed.
fn unchanged(text: &str) {
    let printed = round_trip(text);
    assert!(printed == text, "printed:\n{printed}");
}

fn error(text: &str) -> String {
    parse(text, "test.mlir").expect_err("an error").to_string()
}

#[test]
fn vector_add_as_triton_prints_it() {
    unchanged(
        r#"#blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @add_kernel(%arg0: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %arg1: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %arg2: i32) attributes {noinline = false} {
    %c1024_i32 = arith.constant 1024 : i32
    %0 = tt.get_program_id x : i32
    %1 = arith.muli %0, %c1024_i32 : i32
    %2 = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32, #blocked>
    %3 = tt.splat %1 : i32 -> tensor<1024xi32, #blocked>
    %4 = arith.addi %3, %2 : tensor<1024xi32, #blocked>
    %5 = tt.splat %arg2 : i32 -> tensor<1024xi32, #blocked>
    %6 = arith.cmpi slt, %4, %5 : tensor<1024xi32, #blocked>
    %7 = tt.splat %arg0 : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #blocked>
    %8 = tt.addptr %7, %4 : tensor<1024x!tt.ptr<f32>, #blocked>, tensor<1024xi32, #blocked>
    %cst = arith.constant dense<0.000000e+00> : tensor<1024xf32, #blocked>
    %9 = tt.load %8, %6, %cst cacheModifier = cg evictionPolicy = evict_last {isVolatile = true} : tensor<1024x!tt.ptr<f32>, #blocked>
    tt.store %8, %9, %6 : tensor<1024x!tt.ptr<f32>, #blocked>
    tt.return
  }
}
"#,
    );
}

#[test]
fn control_flow() {
    unchanged(
        r#"module {
  tt.func @f(%arg0: i32, %arg1: i1, %arg2: f32) -> (f32, i32) {
    %c0_i32 = arith.constant 0 : i32
    %c1_i32 = arith.constant 1 : i32
    %c1_i32_0 = arith.constant 1 : i32
    %c-1_i32 = arith.constant -1 : i32
    %true = arith.constant true
    %0:2 = scf.for %arg3 = %c0_i32 to %arg0 step %c1_i32 iter_args(%arg4 = %arg2, %arg5 = %c0_i32) -> (f32, i32)  : i32 {
      %3 = scf.if %arg1 -> (f32) {
        scf.yield %arg4 : f32
      } else {
        %4 = arith.addf %arg4, %arg2 fastmath<fast> : f32
        scf.yield %4 : f32
      }
      scf.if %arg1 {
        %4 = tt.get_num_programs y : i32
      }
      scf.yield %3, %arg5 : f32, i32
    } {tt.num_stages = 3 : i32}
    %1 = scf.while (%arg3 = %arg0) : (i32) -> i32 {
      %3 = arith.cmpi ne, %arg3, %c0_i32 : i32
      scf.condition(%3) %arg3 : i32
    } do {
    ^bb0(%arg3: i32):
      %3 = arith.shrsi %arg3, %c1_i32 : i32
      scf.yield %3 : i32
    }
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    scf.for %arg3 = %c0 to %c1 step %c1 {
      tt.print "x: " : %arg2, %0#1 : f32, i32
    }
    %2 = tt.call @g(%0#0) : (f32) -> f32
    tt.return %2, %0#1 : f32, i32
  }
  tt.func private @g(f32) -> f32
  tt.func private @h(%arg0: i1, %arg1: i32) -> i32 attributes {noinline = true} {
    cf.cond_br %arg0, ^bb1(%arg1 : i32), ^bb2
  ^bb1(%0: i32):  // 2 preds: ^bb0, ^bb2
    tt.return %0 : i32
  ^bb2:  // pred: ^bb0
    %c7_i32 = arith.constant 7 : i32
    cf.br ^bb1(%c7_i32 : i32)
  }
}
"#,
    );
}

#[test]
fn reductions_dots_and_layouts() {
    unchanged(
        r##"#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#linear = #ttg.linear<{register = [[0, 1], [8, 0]], lane = [[0, 2], [1, 0]], warp = [], block = []}>
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#shared1 = #ttg.padded_shared<[128:+4] {order = [1, 0]}>
#shared2 = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
#smem = #ttg.shared_memory
module {
  tt.func @f(%arg0: tensor<64x32xf16, #blocked>, %arg1: tensor<64x64xf32, #mma>, %arg2: !ttg.memdesc<2x64x32xf16, #shared, #smem, mutable>, %arg3: tensor<4x4xf32, #linear>, %arg4: !ttg.memdesc<64x32xf16, #shared1, #smem, mutable, 128x32>, %arg5: tensor<64x32x!tt.ptr<f16>, #blocked>) {
    %c1_i32 = arith.constant 1 : i32
    %0 = ttg.local_alloc %arg0 : (tensor<64x32xf16, #blocked>) -> !ttg.memdesc<64x32xf16, #shared2, #smem>
    %1 = ttg.local_alloc : () -> !ttg.memdesc<64x32xf16, #shared2, #smem, mutable>
    %2 = ttg.local_load %0 : !ttg.memdesc<64x32xf16, #shared2, #smem> -> tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>
    %3 = ttg.memdesc_trans %0 {order = array<i32: 1, 0>} : !ttg.memdesc<64x32xf16, #shared2, #smem> -> !ttg.memdesc<32x64xf16, #shared2, #smem>
    %4 = ttg.local_load %3 : !ttg.memdesc<32x64xf16, #shared2, #smem> -> tensor<32x64xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>>
    %5 = tt.dot %2, %4, %arg1, inputPrecision = tf32 : tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>> * tensor<32x64xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>> -> tensor<64x64xf32, #mma>
    %6 = "tt.reduce"(%5) <{axis = 1 : i32}> ({
    ^bb0(%arg6: f32, %arg7: f32):
      %17 = arith.maxnumf %arg6, %arg7 : f32
      tt.reduce.return %17 : f32
    }) : (tensor<64x64xf32, #mma>) -> tensor<64xf32, #ttg.slice<{dim = 1, parent = #mma}>>
    %7 = "tt.scan"(%5) <{axis = 0 : i32, reverse = false}> ({
    ^bb0(%arg6: f32, %arg7: f32):
      %17 = arith.addf %arg6, %arg7 : f32
      tt.scan.return %17 : f32
    }) : (tensor<64x64xf32, #mma>) -> tensor<64x64xf32, #mma>
    %8 = tt.expand_dims %6 {axis = 1 : i32} : tensor<64xf32, #ttg.slice<{dim = 1, parent = #mma}>> -> tensor<64x1xf32, #mma>
    %9 = ttg.memdesc_index %arg2[%c1_i32] : !ttg.memdesc<2x64x32xf16, #shared, #smem, mutable> -> !ttg.memdesc<64x32xf16, #shared, #smem, mutable>
    %10 = ttg.memdesc_subslice %9[0, 16] : !ttg.memdesc<64x32xf16, #shared, #smem, mutable> -> !ttg.memdesc<64x16xf16, #shared, #smem, mutable, 64x32>
    %11 = ttg.async_copy_global_to_local %arg5, %9 : tensor<64x32x!tt.ptr<f16>, #blocked> -> <64x32xf16, #shared, #smem, mutable>
    %12 = ttg.async_commit_group tokens %11
    %13 = ttg.async_wait %12 {num = 2 : i32}
    %14 = ttg.local_load %9 token %13 : !ttg.memdesc<64x32xf16, #shared, #smem, mutable> -> tensor<64x32xf16, #blocked>
    %15 = ttg.convert_layout %14 : tensor<64x32xf16, #blocked> -> tensor<64x32xf16, #ttg.slice<{dim = 0, parent = #blocked}>>
    %16 = tt.reshape %14 allow_reorder : tensor<64x32xf16, #blocked> -> tensor<2048xf16>
    ttg.barrier
    tt.return
  }
}
"##,
    );
}

#[test]
fn atomics_conversions_and_assembly() {
    unchanged(
        r#"module {
  tt.func @f(%arg0: !tt.ptr<i32>, %arg1: tensor<96xf32>, %arg2: tensor<96xi1>, %arg3: i32, %arg4: tensor<96x!tt.ptr<f32>>, %arg5: !tt.ptr<f16, 3>, %arg6: tensor<96xi32>) {
    %0 = tt.atomic_rmw fadd, acq_rel, gpu, %arg4, %arg1, %arg2 : (tensor<96x!tt.ptr<f32>>, tensor<96xf32>, tensor<96xi1>) -> tensor<96xf32>
    %1 = tt.atomic_cas acq_rel, sys, %arg0, %arg3, %arg3 : (!tt.ptr<i32>, i32, i32) -> i32
    %2 = tt.fp_to_fp %arg1, rounding = rtne : tensor<96xf32> -> tensor<96xf8E4M3FN>
    %3 = tt.fp_to_fp %2 : tensor<96xf8E4M3FN> -> tensor<96xf16>
    %4 = tt.extern_elementwise %arg1 {libname = "", libpath = "", pure = true, symbol = "__nv_tanf"} : (tensor<96xf32>) -> tensor<96xf32>
    %5:2 = tt.elementwise_inline_asm "shl.b32 $0, $0, 3;" {constraints = "=r,=r,r", packed_element = 1 : i32, pure = true} %arg6 : tensor<96xi32> -> tensor<96xi32>, tensor<96xi32>
    %6 = tt.clampf %arg1, %arg1, %arg1, propagateNan = all : tensor<96xf32>
    %7 = arith.select %arg2, %arg1, %6 : tensor<96xi1>, tensor<96xf32>
    %8 = arith.select %9, %arg1, %6 : tensor<96xf32>
    %9 = arith.cmpf oge, %10, %10 : f32
    %10 = tt.unsplat %arg1 : tensor<96xf32>
    %11, %12 = tt.split %13 : tensor<48x2xf32> -> tensor<48xf32>
    %13 = tt.reshape %arg1 : tensor<96xf32> -> tensor<48x2xf32>
    %14 = tt.join %11, %12 : tensor<48xf32> -> tensor<48x2xf32>
    %15 = tt.trans %14 {order = array<i32: 1, 0>} : tensor<48x2xf32> -> tensor<2x48xf32>
    %16 = tt.histogram %arg6, %arg2 : tensor<96xi32> -> tensor<16xi32>
    %17 = tt.gather %arg1[%arg6] {axis = 0 : i32} : (tensor<96xf32>, tensor<96xi32>) -> tensor<96xf32>
    tt.assert %arg2, "a \22quoted\22 \\ message\0A" : tensor<96xi1>
    tt.print "x" {hex = true, isSigned = array<i32: 0>} : %arg1 : tensor<96xf32>
    tt.return
  }
}
"#
        .replace("%11, %12 = tt.split", "%11:2 = tt.split")
        .replace("%11, %12 :", "%11#0, %11#1 :")
        .replace("%13", "%12")
        .replace("%14", "%13")
        .replace("%15", "%14")
        .replace("%16", "%15")
        .replace("%17", "%16")
        .as_str(),
    );
}

#[test]
fn descriptors_and_tile_pointers() {
    unchanged(
        r#"module {
  tt.func @f(%arg0: !tt.ptr<f16>, %arg1: i32, %arg2: i64) {
    %c1_i64 = arith.constant 1 : i64
    %0 = tt.make_tensor_descriptor %arg0, [%arg1, %arg1], [%arg2, %c1_i64] : <f16>, <tensor<16x32xf16>>
    %1 = tt.descriptor_load %0[%arg1, %arg1] evictionPolicy = evict_first : !tt.tensordesc<tensor<16x32xf16>> -> tensor<16x32xf16>
    tt.descriptor_store %0[%arg1, %arg1], %1 : !tt.tensordesc<tensor<16x32xf16>>, tensor<16x32xf16>
    tt.descriptor_reduce add, %0[%arg1, %arg1], %1 : !tt.tensordesc<tensor<16x32xf16>>, tensor<16x32xf16>
    %2 = tt.make_tensor_descriptor %arg0, [%arg1, %arg1], [%arg2, %c1_i64] {padding = 2 : i32} : <f16>, <tensor<1x32xf16>>
    %3 = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32>
    %4 = tt.descriptor_gather %2[%3, %arg1] : (!tt.tensordesc<tensor<1x32xf16>>, tensor<8xi32>, i32) -> tensor<8x32xf16>
    tt.descriptor_scatter %2[%3, %arg1], %4 : !tt.tensordesc<tensor<1x32xf16>>, tensor<8xi32>, i32, tensor<8x32xf16>
    %5 = tt.descriptor_load %2[%arg1, %arg1] : !tt.tensordesc<tensor<1x32xf16>> -> tensor<32xf16>
    %6 = tt.make_tensor_ptr %arg0, [%arg2, %arg2], [%arg2, %c1_i64], [%arg1, %arg1] {order = array<i32: 1, 0>} : <tensor<16x32xf16>>
    %7 = tt.advance %6, [%arg1, %arg1] : <tensor<16x32xf16>>
    tt.return
  }
}
"#,
    );
}

#[test]
fn unknown_dialects_are_kept_as_text() {
    unchanged(
        r##"#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {foo.bar = #foo.bar<a = "<", b = (1)>, my.type = !foo.type<3 x f32>} {
  tt.func @f(%arg0: !foo.tile<4x4>, %arg1: tensor<8xf32, #foo.layout<{x = 1}>>) {
    %0:2 = "foo.op"(%arg0, %arg1) <{p = 1 : i64}> ({
      "foo.end"() : () -> ()
    }, {
    ^bb0(%arg2: i32):
      "foo.end"(%arg2)[^bb1] : (i32) -> ()
    ^bb1:  // pred: ^bb0
      "foo.end"() : () -> ()
    }) {x, y = [1 : i32, "s", @sym, unit, f32]} : (!foo.tile<4x4>, tensor<8xf32, #foo.layout<{x = 1}>>) -> (i32, tensor<8xi32, #blocked>)
    tt.return
  }
}
"##,
    );
}

#[test]
fn aliases_inside_unknown_attributes_are_expanded() {
    let text = round_trip(
        r##"#a = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#b = #foo.wrap<parent = #a>
!t = tensor<8xf32, #b>
module { tt.func @f(%x: !t, %y: !foo.list<!t>) { tt.return } }
"##,
    );
    assert!(text.contains("tensor<8xf32, #foo.wrap<parent = #ttg.blocked<{sizePerThread = [1],"), "{text}");
    assert!(text.contains("!foo.list<tensor<8xf32,"), "{text}");
}

#[test]
fn layouts_with_parameters_that_are_not_modelled_are_kept_as_text() {
    let text = round_trip(
        r##"#a = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0], CTAsPerCGA = [2], CTASplitNum = [2], CTAOrder = [0]}>
#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0], CTAsPerCGA = [1], CTASplitNum = [1], CTAOrder = [0]}>
tt.func @f(%x: tensor<8xf32, #a>, %y: tensor<8xf32, #b>) { tt.return }
"##,
    );
    assert!(text.contains("CTAsPerCGA = [2]"), "{text}");
    assert!(text.contains("%arg1: tensor<8xf32, #blocked>"), "{text}");
}

#[test]
fn locations() {
    let text = r##"module {
  tt.func @f() {
    %0 = tt.get_program_id x : i32 loc(#loc4)
    %1 = tt.get_program_id y : i32 loc(#loc5)
    %2 = tt.get_program_id z : i32 loc(#loc6)
    tt.return loc(#loc)
  } loc(#loc1)
} loc(#loc)
#loc = loc(unknown)
#loc1 = loc("a \22b\22.py":3:1)
#loc2 = loc("a.py":10:4)
#loc3 = loc("a.py":20:8)
#loc4 = loc("pid"(#loc2))
#loc5 = loc(callsite(#loc2 at #loc3))
#loc6 = loc(fused[#loc2, #loc3])
"##;
    let module = parse(text, "x.mlir").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(print(&module), text);
    // Where none is given, an operation's place is that in the text.
    let module = parse("\n  tt.func @f() {\n tt.return }", "x.mlir").unwrap();
    assert!(print(&module).contains("loc(\"x.mlir\":3:2)"));
    let lenient = "tt.func @f(%a: i32 loc(\"a\"(#loc9))) { tt.return loc(fused<1>[\"f\":1:2 to 3:4, \"g\":1:2 to :4]) }";
    parse(lenient, "x.mlir").unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn floats_keep_their_value() {
    let cases = [
        (1.0, "1.000000e+00 : f32"),
        (0.5, "5.000000e-01 : f32"),
        (f64::from(std::f32::consts::LOG2_E), "1.44269502 : f32"),
        (f64::from(0.088_388_346_f32), "0.0883883461 : f32"),
        (f64::from(1e-5_f32), "9.99999974E-6 : f32"),
        (f64::from(1e-3_f32), "1.000000e-03 : f32"),
        (f64::INFINITY, "0x7F800000 : f32"),
        (f64::NEG_INFINITY, "0xFF800000 : f32"),
        (f64::from(123_456_789.0_f32), "0x4CEB79A3 : f32"),
        (-0.0, "-0.000000e+00 : f32"),
    ];
    for (value, text) in cases {
        let mut m = Module::new();
        let attr = m.attr(crate::AttrKind::Float(crate::FloatBits::new(value), crate::Type::F32));
        assert_eq!(print_attr(&m, attr), text);
        round_trip(&format!("\"x\"() {{v = {text}}} : () -> ()"));
    }
    let narrow = round_trip(
        "\"x\"() {a = 0x7C00 : f16, b = 0.1 : f16, c = 0.1 : bf16, d = 448.0 : f8E4M3FN, e = 0.1 : f64} : () -> ()",
    );
    assert!(
        narrow
            .contains("a = 0x7C00 : f16, b = 9.997550e-02 : f16, c = 1.000980e-01 : bf16, d = 4.480000e+02"),
        "{narrow}"
    );
    assert!(narrow.contains("e = 1.000000e-01 : f64"), "{narrow}");
}

#[test]
fn dense_constants() {
    let text = round_trip(
        "tt.func @f() {
           %0 = arith.constant dense<[[1, 2], [-3, 0x10]]> : tensor<2x2xi32>
           %1 = arith.constant dense<true> : tensor<4xi1>
           %2 = arith.constant dense<[true, false]> : tensor<2xi1>
           %3 = arith.constant dense<255> : tensor<4xi8>
           %4 = arith.constant dense<[1.5, 2.5]> : tensor<2xf16>
           tt.return }",
    );
    assert!(text.contains("dense<[[1, 2], [-3, 16]]> : tensor<2x2xi32>"), "{text}");
    assert!(text.contains("dense<true> : tensor<4xi1>"), "{text}");
    assert!(text.contains("dense<[true, false]> : tensor<2xi1>"), "{text}");
    assert!(text.contains("dense<-1> : tensor<4xi8>"), "{text}");
    assert!(text.contains("dense<[1.500000e+00, 2.500000e+00]> : tensor<2xf16>"), "{text}");
}

#[test]
fn the_generic_form_of_registered_operations() {
    let text = round_trip(
        r#""builtin.module"() ({
  "tt.func"() <{function_type = (!tt.ptr<f32>, i1) -> (), sym_name = "k", sym_visibility = "public"}> ({
  ^bb0(%p: !tt.ptr<f32>, %m: i1):
    %c = "arith.constant"() <{value = true}> : () -> i1
    %x = "tt.load"(%p, %m) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 1, 0>, cacheModifier = "cg"}> : (!tt.ptr<f32>, i1) -> f32
    "tt.store"(%p, %x, %m) : (!tt.ptr<f32>, f32, i1) -> ()
    %i = "tt.get_program_id"() <{axis = 1 : i32}> : () -> i32
    %y = "tt.load"(%p) {cache = 1 : i32, evict = 3 : i32} : (!tt.ptr<f32>) -> f32
    "tt.return"() : () -> ()
  }) : () -> ()
}) {"ttg.num-warps" = 4 : i32} : () -> ()
"#,
    );
    assert!(text.contains("%0 = tt.load %arg0, %arg1 cacheModifier = cg : !tt.ptr<f32>"), "{text}");
    assert!(text.contains("tt.store %arg0, %0, %arg1 : !tt.ptr<f32>"), "{text}");
    assert!(text.contains("tt.get_program_id y : i32"), "{text}");
    assert!(text.contains("tt.load %arg0 evictionPolicy = evict_last : !tt.ptr<f32>"), "{text}");
    assert!(text.contains("tt.func public @k(%arg0: !tt.ptr<f32>, %arg1: i1) {"), "{text}");
}

#[test]
fn the_barrier_of_older_text() {
    let module = crate::parse("tt.func @f() {\n  gpu.barrier\n  tt.return\n}", "test.mlir").unwrap();
    assert!(crate::print(&module).contains("ttg.barrier"));
}

#[test]
fn errors_show_the_place() {
    let e = error("tt.func @f(%x: i32) {\n  %y = arith.addi %x, %z : i32\n  tt.return\n}");
    assert!(e.contains("`%z` is not defined") && e.contains("test.mlir:2:23"), "{e}");
    let e = error("tt.func @f(%x: i32) {\n  %y = arith.addf %x, %x : f32\n  tt.return\n}");
    assert!(e.contains("`%x` has type i32, but is used as f32"), "{e}");
    let e = error("tt.func @f() {\n  foo.bar\n}");
    assert!(e.contains("not supported yet: the operation `foo.bar`"), "{e}");
    for (text, message) in [
        ("module {", "an operation expected"),
        ("tt.func @f(%a: i32, %a: i32) { tt.return }", "defined twice"),
        ("tt.func @f() { cf.br ^bb7 }", "`^bb7` is not defined"),
        ("tt.func @f(%x: tensor<4xf32, #nope>) { tt.return }", "`#nope` is not defined"),
        ("tt.func @f() { %0 = tt.get_program_id w : i32 }", "one of x, y, z expected"),
        ("tt.func @f() { %0:2 = tt.get_program_id x : i32 }", "has 1 results, not 2"),
        ("tt.func @f() { tt.return loc(#nope) }", "the location `#nope` is not defined"),
        ("tt.func @f() { %0 = arith.constant 300 : i8 }", "does not fit"),
        ("tt.func @f() { %0 = arith.constant dense<[1, 2]> : tensor<3xi32> }", "do not fill"),
        ("\"tt.load\"() : () -> ()", "cannot have 0 operands"),
    ] {
        let e = error(text);
        assert!(e.contains(message), "{text}: {e}");
    }
}

#[test]
fn limits() {
    let deep = format!("\"x\"() {{a = {}1{}}} : () -> ()", "[".repeat(100_000), "]".repeat(100_000));
    assert!(error(&deep).contains("too deeply nested"));
    let regions = "\"x\"() ({".repeat(100_000);
    assert!(error(&regions).contains("too deeply nested"));
    let mut laughs = String::from("#a0 = #x.y<aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa>\n");
    for i in 1..100 {
        laughs += &format!("#a{i} = #x.y<#a{p} #a{p} #a{p} #a{p}>\n", p = i - 1);
    }
    assert!(error(&laughs).contains("too long"));
}

#[test]
fn warp_group_dots() {
    unchanged(
        r#"#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 128, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module {
  tt.func @f(%arg0: !ttg.memdesc<64x64xf16, #shared, #smem>, %arg1: !ttg.memdesc<64x128xf16, #shared, #smem>, %arg2: tensor<64x128xf32, #mma>) {
    ttng.fence_async_shared
    %0 = ttng.warp_group_dot %arg0, %arg1, %arg2 {inputPrecision = 0 : i32, isAsync = true} : !ttg.memdesc<64x64xf16, #shared, #smem> * !ttg.memdesc<64x128xf16, #shared, #smem> -> tensor<64x128xf32, #mma>
    %1:2 = ttng.warp_group_dot_wait %0, %arg0 {pendings = 0 : i32} : tensor<64x128xf32, #mma>, !ttg.memdesc<64x64xf16, #shared, #smem>
    %2 = ttng.warp_group_dot %arg0, %arg1, %1#0 : !ttg.memdesc<64x64xf16, #shared, #smem> * !ttg.memdesc<64x128xf16, #shared, #smem> -> tensor<64x128xf32, #mma>
    tt.return
  }
}
"#,
    );
}

#[test]
fn mbarriers_and_tma_copies() {
    unchanged(
        r#"#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#shared1 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @copy(%arg0: !tt.tensordesc<tensor<64x64xf16, #shared>>, %arg1: !tt.ptr<i8>, %arg2: i32, %arg3: i64) attributes {noinline = false} {
    %true = arith.constant true
    %0 = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    %1 = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #shared1, #smem, mutable>
    ttng.init_barrier %1, 1 : !ttg.memdesc<1xi64, #shared1, #smem, mutable>
    ttng.barrier_expect %1, 8192, %true : !ttg.memdesc<1xi64, #shared1, #smem, mutable>
    ttng.async_tma_copy_global_to_local %arg0[%arg2, %arg2] %0, %1, %true evictionPolicy = evict_first : !tt.tensordesc<tensor<64x64xf16, #shared>>, !ttg.memdesc<1xi64, #shared1, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    ttng.wait_barrier %1, %arg2 : !ttg.memdesc<1xi64, #shared1, #smem, mutable>
    ttng.wait_barrier %1, %arg2, %true deps %0 : !ttg.memdesc<1xi64, #shared1, #smem, mutable>, !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    ttng.arrive_barrier %1, 2, %true : !ttg.memdesc<1xi64, #shared1, #smem, mutable>
    ttng.async_copy_mbarrier_arrive %1 {noIncrement = true} : !ttg.memdesc<1xi64, #shared1, #smem, mutable>
    ttng.inval_barrier %1 : !ttg.memdesc<1xi64, #shared1, #smem, mutable>
    ttng.fence_async_shared
    ttng.async_tma_copy_local_to_global %arg0[%arg2, %arg2] %0 : !tt.tensordesc<tensor<64x64xf16, #shared>>, !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    ttng.async_tma_reduce add, %arg0[%arg2, %arg2] %0 : !tt.tensordesc<tensor<64x64xf16, #shared>>, !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    ttng.async_tma_store_wait {pendings = 0 : i32}
    ttng.tensormap_create %arg1, %arg1, [%arg2, %arg2], [%arg2, %arg2], [%arg3], [%arg2, %arg2] {elem_type = 6 : i32, fill_mode = 0 : i32, interleave_layout = 0 : i32, swizzle_mode = 3 : i32} : (!tt.ptr<i8>, !tt.ptr<i8>, i32, i32, i32, i32, i64, i32, i32) -> ()
    ttng.tensormap_fenceproxy_acquire %arg1 : !tt.ptr<i8>
    %2 = ttng.reinterpret_tensor_descriptor %arg1 : !tt.ptr<i8> to !tt.tensordesc<tensor<64x64xf16, #shared>>
    ttng.cluster_arrive {relaxed = true}
    ttng.cluster_wait
    tt.return
  }
}
"#,
    );
    let wrong = r#"#bar = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
module { tt.func @f() {
    %0 = ttg.local_alloc : () -> !ttg.memdesc<2xi64, #bar, #ttg.shared_memory, mutable>
    ttng.init_barrier %0, 1 : !ttg.memdesc<2xi64, #bar, #ttg.shared_memory, mutable>
    tt.return
} }"#;
    let wrong =
        crate::verify::verify(&parse(wrong, "test.mlir").unwrap()).expect_err("an error")[0].to_string();
    assert!(wrong.contains("an mbarrier (!ttg.memdesc<1xi64, ...>) expected"), "{wrong}");
}

#[test]
fn warp_specialize() {
    unchanged(
        r#"module attributes {"ttg.num-warps" = 8 : i32} {
  tt.func public @f(%arg0: i32, %arg1: !tt.ptr<i32>) {
    %0 = ttg.warp_specialize(%arg0, %arg1) attributes {requestedRegisters = array<i32: 24, 40>}
    default {
      %1 = arith.addi %arg0, %arg0 : i32
      ttg.warp_yield %1 : i32
    }
    partition0(%arg0: i32, %arg1: !tt.ptr<i32>) num_warps(1) {
      %0 = arith.muli %arg0, %arg0 : i32
      tt.store %arg1, %0 : !tt.ptr<i32>
      ttg.warp_return
    }
    partition1(%arg0: i32, %arg1: !tt.ptr<i32>) num_warps(4) {
      ttg.warp_return
    } : (i32, !tt.ptr<i32>) -> i32
    tt.return
  }
}
"#,
    );
}

#[test]
fn a_partition_sees_only_its_arguments() {
    let with = |body: &str, ty: &str| {
        format!(
            "tt.func @f(%x: {ty}) {{ ttg.warp_specialize(%x) default {{ ttg.warp_yield }} \
             partition0(%a: {ty}) num_warps(1) {{ {body} ttg.warp_return }} : ({ty}) -> () tt.return }}"
        )
    };
    let error = parse(&with("%y = arith.addi %x, %x : i32", "i32"), "t.mlir").unwrap_err().to_string();
    assert!(error.contains("`%x` is not defined"), "{error}");
    let module = parse(&with("", "tensor<8xi32>"), "t.mlir").unwrap_or_else(|e| panic!("{e}"));
    let errors = crate::verify(&module).unwrap_err();
    assert!(errors[0].to_string().contains("cannot be captured"), "{}", errors[0]);
}
