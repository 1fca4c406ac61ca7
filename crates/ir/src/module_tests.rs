use crate::dialect::{arith, tt};
use crate::*;

#[test]
fn build_edit_and_erase() {
    let mut m = Module::new();
    let body = m.body();
    let ptr = m.ptr_type(Type::F32);
    let (a, load);
    {
        let mut b = Builder::at_end(&mut m, body);
        a = b.i32(3);
        let c = b.i32(-1);
        let sum = arith::Addi::build(&mut b, a, c);
        assert_eq!(b.module.constant_int(c), Some(-1));
        assert_eq!(sum.lhs(b.module), a);
        let p = tt::IntToPtr::build(&mut b, a, ptr).result(b.module);
        load = tt::Load::build(
            &mut b,
            p,
            None,
            None,
            tt::CacheModifier::None,
            tt::EvictionPolicy::Last,
            false,
            Type::F32,
        );
    }
    assert_eq!(load.mask(&m), None);
    assert_eq!(load.evict(&m), tt::EvictionPolicy::Last);
    assert_eq!(load.cache(&m), tt::CacheModifier::None);
    assert_eq!(m.uses(a).len(), 2);
    m.set_operand_group(load.0, 1, &[a]);
    assert_eq!(load.mask(&m), Some(a));
    assert_eq!(load.other(&m), None);
    m.erase_op(load.0);
    assert_eq!(m.uses(a).len(), 2);
    assert!(tt::Load::of(&m, a).is_none());
    assert_eq!(m.block_ops(body).count(), 4);
}
