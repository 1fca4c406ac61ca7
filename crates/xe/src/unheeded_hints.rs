//! Says which hints of a kernel Intel's GPUs have no use for, each at its line, as a [remark](tilewright_passes::remarks): warps that load for others,
//! and what caches keep. Nothing is changed.
//!
//! Why here: first of all, while loops and accesses are those of the author.
//!
//! ```text
//! %x = tt.load %p evictionPolicy = evict_last : tensor<64x!tt.ptr<f32>>
//! =>
//! module attributes {ttg.remarks = ["k.py:7:10: eviction_policy changes nothing on xe:pvc"]}
//! ```

use tilewright_ir::dialect::tt::{self, CacheModifier, EvictionPolicy};
use tilewright_ir::{Module, Op};
use tilewright_passes::hopper::warp_specialize;
use tilewright_passes::pass::Pass;
use tilewright_passes::remarks;
use tilewright_passes::target::TargetInfo;

/// The pass.
pub const PASS: Pass = Pass {
    name: "unheeded-hints",
    summary: "say which hints change nothing",
    requires: &[],
    ensures: &[],
    run: |m, t, _| {
        run(m, t);
        Ok(())
    },
};

fn run(module: &mut Module, target: &TargetInfo) {
    let loops = warp_specialize::of_author(module, module.root());
    warp_specialize::remark(module, &loops, &format!("{} has no warps that load for others", target.name));
    for op in module.all_ops(module.root()) {
        let Some((cache, evict)) = hints(module, op) else { continue };
        let given = [
            ("cache_modifier", cache != CacheModifier::None),
            ("eviction_policy", evict != EvictionPolicy::Normal),
        ];
        for (name, _) in given.iter().filter(|(_, given)| *given) {
            remarks::add(module, op, &format!("{name} changes nothing on {}", target.name));
        }
    }
}

/// What an access says of caches.
fn hints(m: &Module, op: Op) -> Option<(CacheModifier, EvictionPolicy)> {
    if let Some(load) = tt::Load::cast(m, op) {
        // (One past all caches is made where it stands, as a volatile one.)
        let cache = load.cache(m);
        return Some((if cache == CacheModifier::Cv { CacheModifier::None } else { cache }, load.evict(m)));
    }
    if let Some(load) = tt::DescriptorLoad::cast(m, op) {
        return Some((load.cache(m), load.evict(m)));
    }
    tt::Store::cast(m, op).map(|store| (store.cache(m), store.evict(m)))
}
