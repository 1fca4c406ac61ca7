//! Every barrier that the pipeline places is needed: with any one of them removed from the PTX the simulator reports a
//! race, and with all of them it reports nothing.

mod common;

use common::*;
use tilewright_nvidia::{Kernel, Options, Target, compile};
use tilewright_passes::{Options as PassOptions, TargetInfo, lower_to_ttg};
use tilewright_ptxsim as sim;

fn kernel(name: &str, target: &str, wgmma: bool, num_warps: u32, num_stages: u32) -> Kernel {
    let path = format!("{}/../passes/tests/ir/{name}.mlir", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap();
    let mut module = tilewright_ir::parse(&text, &path).unwrap_or_else(|e| panic!("{e}"));
    let mut info = TargetInfo::parse(target).unwrap_or_else(|e| panic!("{e}"));
    info.wgmma = wgmma;
    lower_to_ttg(&mut module, &info, &PassOptions { num_warps, num_ctas: 1, num_stages })
        .unwrap_or_else(|e| panic!("{e}"));
    compile(&module, &Options::new(Target::parse(target).unwrap())).unwrap_or_else(|e| panic!("{e}"))
}

fn findings(kernel: &Kernel, ptx: &str, buffers: &mut [Buffer], scalars: &[i32]) -> Vec<sim::Finding> {
    let program = sim::Program::parse(ptx).unwrap_or_else(|e| panic!("{e}\n{ptx}"));
    let mut memory = sim::Memory::new();
    let mut params = Vec::new();
    for (i, b) in buffers.iter_mut().enumerate() {
        // SAFETY: the buffers outlive the launch, which alone uses them.
        unsafe { memory.register_slice(&mut b.bytes, &format!("arg{i}")) };
        params.push(Param::Pointer(b.bytes.as_ptr() as u64));
    }
    params.extend(scalars.iter().map(|v| Param::Int(i64::from(*v))));
    let launch = sim::Launch {
        entry: kernel.name.clone(),
        grid: [1, 1, 1],
        block: [kernel.num_warps * 32, 1, 1],
        cluster: None,
        shared_bytes: kernel.shared_bytes,
        params,
    };
    program.launch(&launch, &memory, &sim::Options::default()).unwrap_or_else(|e| panic!("{e}")).findings
}

/// Checks a kernel as it is, and without each of its barriers. A barrier is needed if one of the launches shows it.
/// `least` guards against a kernel that has none.
fn each_is_needed(what: &str, kernel: &Kernel, least: usize, buffers: &mut [Buffer], launches: &[&[i32]]) {
    for scalars in launches {
        let clean = findings(kernel, &kernel.ptx, buffers, scalars);
        assert!(clean.is_empty(), "{what} {scalars:?}: {clean:#?}");
    }
    let lines: Vec<&str> = kernel.ptx.lines().collect();
    let barriers: Vec<usize> = (0..lines.len())
        .filter(|&i| {
            let l = lines[i].trim_start();
            // What an elected lane publishes for the others of its warp the simulator doesn't tell from its own.
            let elects = || lines[i + 1..].iter().take(4).any(|l| l.contains("elect.sync"));
            l.starts_with("bar.sync")
                || l.starts_with("barrier.sync")
                || (l.starts_with("bar.warp.sync") && !elects())
        })
        .collect();
    assert!(barriers.len() >= least, "{what} has {} barriers\n{}", barriers.len(), kernel.ptx);
    let mut redundant = vec![];
    for &at in &barriers {
        let mut without = lines.clone();
        without[at] = "";
        let without = without.join("\n");
        let race =
            |f: &sim::Finding| matches!(f.kind, sim::FindingKind::SharedRace | sim::FindingKind::GlobalRace);
        if !launches.iter().any(|l| findings(kernel, &without, buffers, l).iter().any(race)) {
            redundant.push(format!("line {}: {}", at + 1, lines[at].trim()));
        }
    }
    assert!(
        redundant.is_empty(),
        "{what}: of {} barriers, these are not needed: {redundant:#?}",
        barriers.len()
    );
}

fn matmul(target: &str, wgmma: bool, num_warps: u32, num_stages: u32) {
    let k = kernel("matmul", target, wgmma, num_warps, num_stages);
    assert_eq!(k.ptx.contains("wgmma.mma_async"), wgmma);
    let depth = 320;
    let mut buffers = [
        Buffer::f16(&numbers(128 * depth, 1)),
        Buffer::f16(&numbers(depth * 128, 2)),
        Buffer::zeros(128 * 128 * 2),
    ];
    let d = depth as i32;
    each_is_needed(
        &format!("matmul, {target}, wgmma {wgmma}, {num_warps} warps, {num_stages} stages"),
        &k,
        1,
        &mut buffers,
        &[&[128, 128, d, d, 128, 128]],
    );
}

fn attention(target: &str, wgmma: bool, num_warps: u32, num_stages: u32) {
    let k = kernel("attention", target, wgmma, num_warps, num_stages);
    assert_eq!(k.ptx.contains("wgmma.mma_async"), wgmma);
    let (n, d) = (320usize, 128usize);
    let mut buffers = [
        Buffer::f16(&numbers(128 * d, 1)),
        Buffer::f16(&numbers(n * d, 2)),
        Buffer::f16(&numbers(n * d, 3)),
        Buffer::zeros(128 * d * 2),
        Buffer::zeros(128 * 4),
    ];
    each_is_needed(
        &format!("attention, {target}, wgmma {wgmma}, {num_warps} warps, {num_stages} stages"),
        &k,
        1,
        &mut buffers,
        // With no keys the loop is left out, and what is before it meets what is after it.
        &[&[d as i32, n as i32], &[d as i32, 0]],
    );
}

#[test]
fn matmul_by_warps() {
    for (target, num_warps, num_stages) in
        [("cuda:80", 4, 3), ("cuda:80", 8, 2), ("cuda:80", 4, 1), ("cuda:90", 4, 4)]
    {
        matmul(target, false, num_warps, num_stages);
    }
}

#[test]
fn matmul_by_warp_groups() {
    for (num_warps, num_stages) in [(4, 3), (8, 2), (4, 1)] {
        matmul("cuda:90", true, num_warps, num_stages);
    }
}

#[test]
fn attention_by_warps() {
    for (target, num_warps, num_stages) in [("cuda:80", 8, 3), ("cuda:80", 4, 2), ("cuda:90", 4, 1)] {
        attention(target, false, num_warps, num_stages);
    }
}

#[test]
fn attention_by_warp_groups() {
    for (num_warps, num_stages) in [(8, 3), (8, 2), (8, 1), (4, 3), (4, 2), (4, 1)] {
        attention("cuda:90", true, num_warps, num_stages);
    }
}

#[test]
fn softmax_reductions() {
    for (target, num_warps) in [("cuda:80", 4), ("cuda:90", 8), ("cuda:90", 2)] {
        let k = kernel("softmax", target, false, num_warps, 3);
        let mut buffers = [Buffer::zeros(1008 * 2), Buffer::f16(&numbers(1008, 1))];
        each_is_needed(
            &format!("softmax, {target}, {num_warps} warps"),
            &k,
            2,
            &mut buffers,
            &[&[1008, 1000]],
        );
    }
}
