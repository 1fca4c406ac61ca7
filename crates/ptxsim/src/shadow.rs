//! Happens-before: races, uninitialized shared memory and asynchronous copies.

use crate::access::{Kind, Places};
use crate::machine::{Cx, Warp};
use crate::memory::Memory;

/// What a warp is ordered after.
#[derive(Default)]
pub(crate) struct Sync {
    pub cluster_phase: u32,
}

impl Sync {
    pub fn new(_warp: u32, _warps: u32, _index: u32) -> Sync {
        Sync::default()
    }
    pub fn release_point(&mut self) {}
}

#[derive(Default)]
pub(crate) struct SharedShadow;
impl SharedShadow {
    pub fn reset(&mut self, _bytes: u32) {}
}

pub(crate) struct GlobalShadow;
impl GlobalShadow {
    pub fn new(_m: &Memory, _on: bool) -> GlobalShadow {
        GlobalShadow
    }
}

pub(crate) fn barrier(_warps: &mut [Option<Box<Warp>>], _members: &[bool], _full: bool) {}
pub(crate) fn global(_cx: &mut Cx<'_>, _p: &Places, _bytes: u32, _kind: Kind) {}
pub(crate) fn shared(_cx: &mut Cx<'_>, _p: &Places, _bytes: u32, _kind: Kind) {}
pub(crate) fn acquire(_cx: &mut Cx<'_>, _p: &Places, _scope: u32) {}
pub(crate) fn release_before(_cx: &mut Cx<'_>, _scope: u32) {}
pub(crate) fn release_after(_cx: &mut Cx<'_>, _p: &Places, _release: bool, _scope: u32) {}
pub(crate) fn fence(_cx: &mut Cx<'_>, _scope: u32, _proxy: bool, _asynchronous: bool) {}
pub(crate) fn warp_sync(_cx: &mut Cx<'_>, _mask: u32) {}
pub(crate) fn async_issue(_cx: &mut Cx<'_>, _p: &Places, _bytes: u32) {}
pub(crate) fn async_done(_cx: &mut Cx<'_>, _dst: &[u64; 32], _mask: u32, _bytes: u32) {}
