//! What the tests share.

/// The target's facts, without warp-group products and tensor copies: a test turns on what it is about.
pub fn plain(target: &str) -> tilewright_passes::TargetInfo {
    let mut info = tilewright_nvidia::Target::parse(target).unwrap_or_else(|e| panic!("{e}")).info();
    (info.dots.wgmma, info.tma) = (false, false);
    info
}
