//! Loads and stores: compact and dense addresses, masks of every form, and the checks.

mod common;

use common::{int, m, ro, run, try_run};

/// A 2-D tile of `rows`×`cols` f32 copied from `x` (row stride `%sx`) to `y` (row stride `%sy`), masked by
/// `row < %m and col < %n`, others read as -1; everything is stored, without a mask.
fn tile_copy(rows: usize, cols: usize, ty: &str, other: &str) -> String {
    format!(
        r#"
module {{
  tt.func public @k(%x: !tt.ptr<{ty}>, %y: !tt.ptr<{ty}>, %sx0: i32, %sx1: i32, %m: i32, %n: i32) {{
    %other = arith.constant dense<{other}> : tensor<{rows}x{cols}x{ty}>
    %rr = tt.make_range {{end = {rows} : i32, start = 0 : i32}} : tensor<{rows}xi32>
    %rc = tt.make_range {{end = {cols} : i32, start = 0 : i32}} : tensor<{cols}xi32>
    %r = tt.expand_dims %rr {{axis = 1 : i32}} : tensor<{rows}xi32> -> tensor<{rows}x1xi32>
    %c = tt.expand_dims %rc {{axis = 0 : i32}} : tensor<{cols}xi32> -> tensor<1x{cols}xi32>
    %s0 = tt.splat %sx0 : i32 -> tensor<{rows}x1xi32>
    %s1 = tt.splat %sx1 : i32 -> tensor<1x{cols}xi32>
    %ro = arith.muli %r, %s0 : tensor<{rows}x1xi32>
    %co = arith.muli %c, %s1 : tensor<1x{cols}xi32>
    %rb = tt.broadcast %ro : tensor<{rows}x1xi32> -> tensor<{rows}x{cols}xi32>
    %cb = tt.broadcast %co : tensor<1x{cols}xi32> -> tensor<{rows}x{cols}xi32>
    %off = arith.addi %rb, %cb : tensor<{rows}x{cols}xi32>
    %xs = tt.splat %x : !tt.ptr<{ty}> -> tensor<{rows}x{cols}x!tt.ptr<{ty}>>
    %xp = tt.addptr %xs, %off : tensor<{rows}x{cols}x!tt.ptr<{ty}>>, tensor<{rows}x{cols}xi32>
    %ms = tt.splat %m : i32 -> tensor<{rows}x1xi32>
    %ns = tt.splat %n : i32 -> tensor<1x{cols}xi32>
    %mr = arith.cmpi slt, %r, %ms : tensor<{rows}x1xi32>
    %mc = arith.cmpi slt, %c, %ns : tensor<1x{cols}xi32>
    %mrb = tt.broadcast %mr : tensor<{rows}x1xi1> -> tensor<{rows}x{cols}xi1>
    %mcb = tt.broadcast %mc : tensor<1x{cols}xi1> -> tensor<{rows}x{cols}xi1>
    %mask = arith.andi %mrb, %mcb : tensor<{rows}x{cols}xi1>
    %v = tt.load %xp, %mask, %other : tensor<{rows}x{cols}x!tt.ptr<{ty}>>
    %cols = arith.constant dense<{cols}> : tensor<{rows}x1xi32>
    %yro = arith.muli %r, %cols : tensor<{rows}x1xi32>
    %yrb = tt.broadcast %yro : tensor<{rows}x1xi32> -> tensor<{rows}x{cols}xi32>
    %ycb = tt.broadcast %c : tensor<1x{cols}xi32> -> tensor<{rows}x{cols}xi32>
    %yoff = arith.addi %yrb, %ycb : tensor<{rows}x{cols}xi32>
    %ys = tt.splat %y : !tt.ptr<{ty}> -> tensor<{rows}x{cols}x!tt.ptr<{ty}>>
    %yp = tt.addptr %ys, %yoff : tensor<{rows}x{cols}x!tt.ptr<{ty}>>, tensor<{rows}x{cols}xi32>
    tt.store %yp, %v : tensor<{rows}x{cols}x!tt.ptr<{ty}>>
    tt.return
  }}
}}
"#
    )
}

#[test]
fn tiles_with_box_masks_and_strides() {
    for (rows, cols) in [(4, 8), (3, 5), (1, 7), (6, 1), (1, 1)] {
        let x: Vec<f32> = (0..400).map(|i| i as f32).collect();
        // Row-major, column-major, spread out, and backwards from the middle.
        for (s0, s1, origin) in [(8, 1, 0), (1, 8, 0), (20, 3, 0), (-9, -1, 200), (0, 1, 5), (0, 0, 7)] {
            for (mm, n) in [(100, 100), (2, 3), (0, 4), (1, 1), (100, 2), (2, 100), (-1, 5)] {
                let mut y = vec![7f32; rows * cols];
                let ir = tile_copy(rows, cols, "f32", "-1.000000e+00");
                let mut args = vec![ro(&x), m(&mut y), int(s0), int(s1), int(mm), int(n)];
                // Start in the middle for negative strides: the allocation stays whole.
                let exe = common::compile(&ir);
                let mut memory = tilewright_interp::Memory::new();
                for a in &args {
                    if let common::A::Mem(base, len, w) = *a {
                        // SAFETY: the vectors outlive the run.
                        unsafe { memory.register(base, len, "x", w) };
                    }
                }
                let values: Vec<tilewright_interp::Arg> = args
                    .drain(..)
                    .enumerate()
                    .map(|(i, a)| match a {
                        common::A::Mem(base, ..) => {
                            tilewright_interp::Arg::Pointer(base + if i == 0 { 4 * origin as u64 } else { 0 })
                        }
                        common::A::Is(v) => v,
                    })
                    .collect();
                exe.run([1, 1, 1], &values, &memory, &Default::default()).unwrap();
                for r in 0..rows as i64 {
                    for c in 0..cols as i64 {
                        let want =
                            if r < mm && c < n { x[(origin + r * s0 + c * s1) as usize] } else { -1.0 };
                        let got = y[r as usize * cols + c as usize];
                        assert_eq!(got, want, "{rows}x{cols} strides {s0},{s1} mask {mm},{n} at {r},{c}");
                    }
                }
            }
        }
    }
}

#[test]
fn every_element_type_moves_unchanged() {
    // All byte patterns, NaNs included.
    for (ty, other) in [
        ("i8", "3"),
        ("i16", "3"),
        ("i32", "3"),
        ("i64", "3"),
        ("f16", "1.0"),
        ("bf16", "1.0"),
        ("f32", "1.0"),
        ("f64", "1.0"),
        ("f8E5M2", "1.0"),
        ("f8E4M3FN", "1.0"),
    ] {
        let x: Vec<u64> = (0..64u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        let mut y = vec![0u64; 64];
        let size = match ty {
            "i8" | "f8E5M2" | "f8E4M3FN" => 1,
            "i16" | "f16" | "bf16" => 2,
            "i32" | "f32" => 4,
            _ => 8,
        };
        let cols = 64 * 8 / size / 4;
        let ir = tile_copy(4, cols, ty, other);
        run(&ir, [1, 1, 1], &[ro(&x), m(&mut y), int(cols as i64), int(1), int(9), int(1 << 20)]);
        assert_eq!(x, y, "{ty}");
    }
}

/// y[i] = x[idx[i]] where keep[i], else 5; stores only where i is even.
const GATHER: &str = r#"
module {
  tt.func public @k(%x: !tt.ptr<f16>, %idx: !tt.ptr<i64>, %keep: !tt.ptr<i1>, %y: !tt.ptr<f16>) {
    %i = tt.make_range {end = 37 : i32, start = 0 : i32} : tensor<37xi32>
    %is = tt.splat %idx : !tt.ptr<i64> -> tensor<37x!tt.ptr<i64>>
    %ip = tt.addptr %is, %i : tensor<37x!tt.ptr<i64>>, tensor<37xi32>
    %at = tt.load %ip : tensor<37x!tt.ptr<i64>>
    %ks = tt.splat %keep : !tt.ptr<i1> -> tensor<37x!tt.ptr<i1>>
    %kp = tt.addptr %ks, %i : tensor<37x!tt.ptr<i1>>, tensor<37xi32>
    %k = tt.load %kp : tensor<37x!tt.ptr<i1>>
    %xs = tt.splat %x : !tt.ptr<f16> -> tensor<37x!tt.ptr<f16>>
    %xp = tt.addptr %xs, %at : tensor<37x!tt.ptr<f16>>, tensor<37xi64>
    %other = arith.constant dense<5.000000e+00> : tensor<37xf16>
    %v = tt.load %xp, %k, %other : tensor<37x!tt.ptr<f16>>
    %one = arith.constant dense<1> : tensor<37xi32>
    %zero = arith.constant dense<0> : tensor<37xi32>
    %bit = arith.andi %i, %one : tensor<37xi32>
    %even = arith.cmpi eq, %bit, %zero : tensor<37xi32>
    %ys = tt.splat %y : !tt.ptr<f16> -> tensor<37x!tt.ptr<f16>>
    %yp = tt.addptr %ys, %i : tensor<37x!tt.ptr<f16>>, tensor<37xi32>
    tt.store %yp, %v, %even : tensor<37x!tt.ptr<f16>>
    tt.return
  }
}
"#;

#[test]
fn gathers_with_dense_masks() {
    let x: Vec<u16> = (0..64).map(|i| 0x3c00 + i).collect();
    let mut idx: Vec<i64> = (0..37).map(|i| (i * 29) % 64).collect();
    // Not looked at where the mask is off.
    idx[3] = 1 << 40;
    let keep: Vec<u8> = (0..37).map(|i| if i % 3 == 0 && i != 3 { 2 } else { 0 }).collect();
    let mut y = vec![0u16; 37];
    run(GATHER, [1, 1, 1], &[ro(&x), ro(&idx), ro(&keep), m(&mut y)]);
    for i in 0..37 {
        let want = match (i % 2, i % 3 == 0 && i != 3) {
            (1, _) => 0,
            (_, true) => x[(i * 29) % 64],
            _ => 0x4500,
        };
        assert_eq!(y[i], want, "{i}");
    }
}

#[test]
fn a_gather_out_of_bounds_names_the_element_and_the_argument() {
    let x = vec![0u16; 64];
    let mut idx = vec![0i64; 37];
    idx[11] = 66;
    let keep = vec![1u8; 37];
    let mut y = vec![0u16; 37];
    let e = try_run(GATHER, [1, 1, 1], &[ro(&x), ro(&idx), ro(&keep), m(&mut y)]).unwrap_err();
    let text = e.to_string();
    assert_eq!(e.element, Some(vec![11]));
    assert_eq!(e.program, Some([0, 0, 0]));
    assert!(text.contains("out-of-bounds load: f16"), "{text}");
    assert!(text.contains("kernel.mlir:14"), "{text}");
    assert!(text.contains("2 elements past the end of `arg0` (128 bytes)"), "{text}");
}

#[test]
fn a_tile_out_of_bounds_names_its_first_element() {
    let x = vec![0f32; 30];
    let mut y = vec![0f32; 32];
    let ir = tile_copy(4, 8, "f32", "0.0");
    let e = try_run(&ir, [1, 1, 1], &[ro(&x), m(&mut y), int(8), int(1), int(4), int(8)]).unwrap_err();
    assert_eq!(e.element, Some(vec![3, 6]));
    assert!(e.to_string().contains("at element [3, 6] of a tensor of shape [4, 8]"), "{e}");
    // The same tile masked to what is there.
    run(&ir, [1, 1, 1], &[ro(&x), m(&mut y), int(8), int(1), int(3), int(8)]);
    // In front of the allocation.
    let e = try_run(&ir, [1, 1, 1], &[ro(&x), m(&mut y), int(-1), int(1), int(4), int(2)]).unwrap_err();
    assert_eq!(e.element, Some(vec![1, 0]));
    assert!(e.to_string().contains("1 element before the start of `arg0`"), "{e}");
}

#[test]
fn stores_are_checked() {
    let x = vec![0f32; 32];
    let mut y = vec![0f32; 31];
    let ir = tile_copy(4, 8, "f32", "0.0");
    let args = |y: &mut Vec<f32>| vec![ro(&x), m(y), int(8), int(1), int(4), int(8)];
    let e = try_run(&ir, [1, 1, 1], &args(&mut y)).unwrap_err();
    assert!(e.to_string().contains("out-of-bounds store"), "{e}");
    assert_eq!(e.element, Some(vec![3, 7]));
    let z = vec![0f32; 32];
    let e = try_run(&ir, [1, 1, 1], &[ro(&x), ro(&z), int(8), int(1), int(4), int(8)]).unwrap_err();
    assert!(e.to_string().contains("store to read-only memory"), "{e}");
}

#[test]
fn misaligned_addresses_are_errors() {
    let ir = r#"
module {
  tt.func public @k(%x: !tt.ptr<i8>, %o: i64) {
    %a = tt.addptr %x, %o : !tt.ptr<i8>, i64
    %p = tt.bitcast %a : !tt.ptr<i8> -> !tt.ptr<i32>
    %v = tt.load %p : !tt.ptr<i32>
    %q = tt.bitcast %x : !tt.ptr<i8> -> !tt.ptr<i32>
    tt.store %q, %v : !tt.ptr<i32>
    tt.return
  }
}
"#;
    let mut x = [1u64, 2];
    for (offset, ok) in [(0, true), (4, true), (2, false), (1, false), (12, true)] {
        let result = try_run(ir, [1, 1, 1], &[m(&mut x), int(offset)]);
        match result {
            Ok(_) => assert!(ok, "{offset}"),
            Err(e) => assert!(!ok && e.to_string().contains("misaligned load: i32"), "{offset}: {e}"),
        }
    }
}

#[test]
fn an_address_from_memory_must_lie_in_a_registered_allocation() {
    let ir = r#"
module {
  tt.func public @k(%t: !tt.ptr<i64>, %o: !tt.ptr<f32>) {
    %a = tt.load %t : !tt.ptr<i64>
    %p = tt.int_to_ptr %a : i64 -> !tt.ptr<f32>
    %v = tt.load %p : !tt.ptr<f32>
    tt.store %o, %v : !tt.ptr<f32>
    tt.return
  }
}
"#;
    let hidden = [3.5f32];
    let mut out = [0f32];
    let table = [hidden.as_ptr() as u64];
    let e = try_run(ir, [1, 1, 1], &[ro(&table), m(&mut out)]).unwrap_err();
    assert!(e.to_string().contains("in no argument's memory"), "{e}");
    assert!(e.to_string().contains("closest argument"), "{e}");
    // An argument of the kernel's that is passed along is fine.
    let table = [out.as_ptr() as u64];
    run(ir, [1, 1, 1], &[ro(&table), m(&mut out)]);
}

#[test]
fn the_first_failing_program_is_reported() {
    let ir = r#"
module {
  tt.func public @k(%x: !tt.ptr<f32>) {
    %p = tt.get_program_id x : i32
    %q = tt.get_program_id y : i32
    %n = tt.get_num_programs x : i32
    %s = arith.muli %q, %n : i32
    %i = arith.addi %p, %s : i32
    %a = tt.addptr %x, %i : !tt.ptr<f32>, i32
    %v = arith.constant 1.0 : f32
    tt.store %a, %v : !tt.ptr<f32>
    tt.return
  }
}
"#;
    let mut x = vec![0f32; 700];
    for _ in 0..20 {
        let e = try_run(ir, [100, 30, 1], &[m(&mut x)]).unwrap_err();
        assert_eq!(e.program, Some([0, 7, 0]));
        assert!(e.element.is_none());
    }
    assert!(x.iter().all(|&v| v == 1.0));
}
