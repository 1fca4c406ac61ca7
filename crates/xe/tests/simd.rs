//! LLVM IR in SIMD and in SIMT style, as ML-Triton has it (Listing 5, Table 4), and what LLVM says of it.

mod common;

use std::io::Write as _;
use std::process::{Command, Stdio};

use common::lowered;

/// A kernel in SIMD style. LLVM has read it.
fn simd(source: &str, signature: &str, num_warps: u32) -> String {
    let module = lowered(source, signature, num_warps);
    read_by_llvm(
        tilewright_xe::simd::text(&module)
            .unwrap_or_else(|e| panic!("{e}\n{}", tilewright_ir::print(&module))),
    )
}

/// A kernel in SIMT style. LLVM has read it.
fn simt(source: &str, signature: &str, num_warps: u32) -> String {
    let module = lowered(source, signature, num_warps);
    read_by_llvm(
        tilewright_xe::simd::simt_text(&module)
            .unwrap_or_else(|e| panic!("{e}\n{}", tilewright_ir::print(&module))),
    )
}

fn read_by_llvm(text: String) -> String {
    let mut opt = Command::new("/usr/lib/llvm-19/bin/opt")
        .args(["-passes=verify", "-disable-output", "-"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("LLVM 19 is installed");
    opt.stdin.take().expect("is piped").write_all(text.as_bytes()).expect("it reads");
    let done = opt.wait_with_output().expect("it ends");
    assert!(done.status.success(), "{}\n{text}", String::from_utf8_lossy(&done.stderr));
    text
}

/// How a kernel of the tests is refused.
fn refused(source: &str, signature: &str, num_warps: u32) -> String {
    tilewright_xe::simd::text(&lowered(source, signature, num_warps)).expect_err("is not there").to_string()
}

/// The lines with a text in them.
fn lines<'a>(text: &'a str, part: &str) -> Vec<&'a str> {
    text.lines().filter(|line| line.contains(part) && !line.starts_with("declare")).collect()
}

/// The indices of a `shufflevector`.
fn indices(line: &str) -> Vec<u32> {
    let list = &line[line.rfind('<').expect("a mask")..];
    list.split("i32 ")
        .skip(1)
        .map(|n| n.trim_end_matches([',', ' ', '>']).parse().expect("a number"))
        .collect()
}

const MATMUL: &str = "def kernel(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM
    columns = tl.program_id(1) * BN
    a_blocks = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    b_blocks = tl.make_tensor_descriptor(b, [K, N], [N, 1], [BK, BN])
    c_blocks = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
    accumulator = tl.zeros((BM, BN), dtype=ACC)
    for k in range(0, K, BK):
        accumulator = tl.dot(a_blocks.load([rows, k]), b_blocks.load([k, columns]), accumulator, out_dtype=ACC)
    c_blocks.store([rows, columns], accumulator)
";

/// The source and signature of a product of `of` with blocks of 256×256×`k`.
fn product(of: &str, acc: &str, k: u32) -> (String, String) {
    let source = MATMUL.replace("ACC", &format!("tl.{}", if acc == "fp32" { "float32" } else { "int32" }));
    let source = source
        .replace("BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr", "")
        .replace("K, )", "K)")
        .replace("BM", "256")
        .replace("BN", "256")
        .replace("BK", &k.to_string());
    (source, format!("*{of}:16,*{of}:16,*{acc}:16,i32:16,i32:16,i32:16"))
}

/// It in 32 warps.
fn matmul(of: &str, acc: &str, k: u32) -> String {
    let (source, signature) = product(of, acc, k);
    simd(&source, &signature, 32)
}

/// The same of a lane, by the instructions of Listing 5's second half and of Table 4.
#[test]
fn matmul_of_the_paper_lane_by_lane() {
    let (source, signature) = product("fp16", "fp32", 32);
    let text = simt(&source, &signature, 32);
    let of_a = lines(&text, "call <64 x i16> @llvm.genx.GenISA.LSC2DBlockRead.v64i16(i64 ");
    let of_b = lines(&text, "call <32 x i32> @llvm.genx.GenISA.LSC2DBlockRead.v32i32(i64 ");
    assert_eq!((of_a.len(), of_b.len()), (1, 2), "{text}");
    // 16 bits, two blocks of 16 columns and 32 rows, not turned; those of B in VNNI.
    assert!(of_a[0].ends_with("i32 16, i32 16, i32 32, i32 2, i1 false, i1 false, i32 0)"), "{}", of_a[0]);
    for b in of_b {
        assert!(b.ends_with("i32 16, i32 16, i32 32, i32 2, i1 false, i1 true, i32 0)"), "{b}");
    }
    let dots =
        lines(&text, "call <8 x float> @llvm.genx.GenISA.sub.group.dpas.v8f32.v8i16.v8i32(<8 x float> ");
    assert_eq!(dots.len(), 32);
    assert!(dots.iter().all(|dot| dot.ends_with("i32 10, i32 10, i32 8, i32 8, i1 false)")), "{}", dots[0]);
    assert_eq!(lines(&text, "call void @llvm.genx.GenISA.LSC2DBlockWrite.v8i32(i64 ").len(), 16);
    // "%a_sub0 = shufflevector <64 x i16> … <8 x i32> <i32 0, …, i32 7>", and the like of B.
    let a: Vec<_> = lines(&text, "shufflevector <64 x i16>").iter().map(|p| indices(p)).collect();
    let b: Vec<_> = lines(&text, "shufflevector <32 x i32>").iter().map(|p| indices(p)).collect();
    assert_eq!((a.len(), b.len()), (8, 8));
    assert_eq!((a[0].clone(), b[0].clone()), ((0..8).collect::<Vec<_>>(), (0..8).collect::<Vec<_>>()));
    assert_eq!((a[1][0], a[2][0], b[1][0], b[2][0]), (32, 8, 16, 8));
    assert!(text.contains("!intel_reqd_sub_group_size !0"), "{text}");
}

#[test]
fn what_lanes_have_no_columns_of() {
    let source = "def kernel(x):
    at = tl.arange(0, 256)
    tl.store(x + at, tl.load(x + at) * 2)
";
    let module = lowered(source, "*fp32:16", 4);
    let error = tilewright_xe::simd::simt_text(&module).expect_err("is not there").to_string();
    let what = "not supported yet: a tensor of other than two dimensions in SIMT style";
    assert!(error.contains(what), "{error}");
}

/// Listing 5 and Table 4: one load of A, two of B, 32 dots, 16 stores, and parts that are registers by other names.
#[test]
fn matmul_of_the_paper() {
    let text = matmul("fp16", "fp32", 32);
    let loads = lines(&text, "call <512 x i32> @llvm.genx.lsc.load2d.stateless.v512i32.i1.i64(i1 true");
    assert_eq!(loads.len(), 3, "{text}");
    // Two blocks of 16 columns beside each other, 32 rows; those of B in VNNI.
    assert!(loads[0].contains("i8 2, i8 1, i8 2, i16 16, i16 32, i8 0, i64 "), "{}", loads[0]);
    for b in &loads[1..] {
        assert!(b.contains("i8 2, i8 1, i8 2, i16 16, i16 32, i8 1, i64 "), "{b}");
    }
    let dots = lines(&text, "call <128 x float> @llvm.genx.dpas2.v128f32.v128i32.v64i32(<128 x float> ");
    assert_eq!(dots.len(), 32);
    for dot in dots {
        assert!(dot.ends_with("i32 10, i32 10, i32 8, i32 8, i32 1, i32 1)"), "{dot}");
    }
    let stores = lines(&text, "call void @llvm.genx.lsc.store2d.stateless.i1.i64.v128i32(i1 true");
    assert_eq!(stores.len(), 16);
    let parts = lines(&text, "shufflevector <512 x i32>");
    let of_a: Vec<_> = parts.iter().filter(|p| p.contains("<64 x i32> <")).map(|p| indices(p)).collect();
    let of_b: Vec<_> = parts.iter().filter(|p| p.contains("<128 x i32> <")).map(|p| indices(p)).collect();
    assert_eq!((of_a.len(), of_b.len()), (8, 8));
    // "%a_sub0 = shufflevector … <i32 0..63>", "%b_sub0 = … <i32 0..127>".
    assert_eq!(of_a[0], (0..64).collect::<Vec<_>>());
    assert_eq!(of_b[0], (0..128).collect::<Vec<_>>());
    for part in of_a.iter().chain(&of_b) {
        assert!(part.windows(2).all(|two| two[0] + 1 == two[1]), "registers beside each other: {part:?}");
    }
    // The second block of columns is behind all rows of the first.
    assert_eq!((of_a[1][0], of_a[2][0], of_b[1][0], of_b[2][0]), (256, 64, 256, 128));
}

/// Each instruction of the matrix engines has 8 words along K; a word of B is one, two or four elements of a column.
#[test]
fn types_of_dots() {
    for (of, acc, k, code, vnni) in
        [("bf16", "fp32", 32, 9, 1), ("fp32", "fp32", 16, 12, 0), ("i8", "i32", 64, 8, 1)]
    {
        let text = matmul(of, acc, k);
        let result = if acc == "fp32" { "v128f32" } else { "v128i32" };
        let dots = lines(&text, &format!("@llvm.genx.dpas2.{result}.v128i32.v64i32("));
        assert_eq!(dots.len(), 32, "{of}");
        assert!(
            dots[0].ends_with(&format!("i32 {code}, i32 {code}, i32 8, i32 8, i32 1, i32 1)")),
            "{}",
            dots[0]
        );
        let loads = lines(&text, "@llvm.genx.lsc.load2d.stateless.");
        assert!(loads.last().expect("some").contains(&format!(", i8 {vnni}, i64 ")), "{loads:?}");
        assert!(loads[0].contains(", i8 0, i64 "), "{loads:?}");
    }
}

#[test]
fn element_by_element() {
    let source = "def kernel(x, y, out, n):
    at = tl.program_id(0) * 256 + tl.arange(0, 256)
    mask = at < n
    tl.store(out + at, tl.load(x + at, mask=mask) + tl.exp2(tl.load(y + at, mask=mask, other=0.0).to(tl.float32)), mask=mask)
";
    let text = simd(source, "*fp32:16,*fp16:16,*fp32:16,i32", 4);
    // A warp has 64 elements, and an instruction 16.
    assert_eq!(lines(&text, "@llvm.genx.lsc.load.merge.stateless.v16i32.v16i1.v16i64(").len(), 8);
    assert_eq!(lines(&text, "@llvm.genx.lsc.store.stateless.v16i1.v16i64.v16i32(").len(), 4);
    assert_eq!(lines(&text, "@llvm.genx.exp.v16f32(<16 x float>").len(), 4);
}

/// A reduction takes halves: 16 elements by 4 steps. (Rows of 33 elements are no matrix to the instructions that load blocks.)
#[test]
fn reductions_by_halves() {
    let source = "def kernel(x, out):
    r = tl.arange(0, 32)
    c = tl.arange(0, 32)
    block = tl.load(x + r[:, None] * 33 + c[None, :])
    tl.store(out + r, tl.max(block, axis=1))
";
    let text = simd(source, "*fp32:16,*fp32:16", 4);
    assert!(!lines(&text, "@llvm.genx.lsc.store.stateless.").is_empty(), "{text}");
    assert!(lines(&text, "shufflevector <2 x float>").len() >= 2, "{text}");
}

#[test]
fn branches() {
    let source = "def kernel(x, n):
    at = tl.arange(0, 64)
    if n > 3:
        v = tl.load(x + at)
    else:
        v = tl.full((64,), 2.0, tl.float32)
    tl.store(x + at, v * 2.0)
";
    let text = simd(source, "*fp32:16,i32", 4);
    assert_eq!(lines(&text, " phi <16 x float> ").len(), 1, "{text}");
}

#[test]
fn what_is_not_there() {
    let source = "def kernel(x, n):
    tl.atomic_add(x + tl.arange(0, 64), 1)
";
    let error = refused(source, "*i32:16,i32", 4);
    assert!(error.contains("not supported yet: `tt.atomic_rmw` in SIMD style"), "{error}");
    assert!(error.contains("kernel.py:6"), "{error}");
}
