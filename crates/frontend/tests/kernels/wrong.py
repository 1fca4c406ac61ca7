"""Wrong kernels. The comment before each is the signature it is compiled for; what is said about it is in wrong.txt."""

import collections

import torch
import tilewright
import tilewright.language as tl

SIZE = 128
WIDTHS = [1, 2]
CONST = tl.constexpr(4)


def plain(x):
    return x + 1


@tilewright.jit
def helper(x, y: tl.constexpr):
    return x + y


@tilewright.jit
def forever(x):
    return forever(x) + 1


@tilewright.jit
def bad_inside(x, n):
    return x + tl.arange(0, n)


@tilewright.jit
def wrong_combine(a, b):
    return (a + b).to(tl.float16)


# *fp32
@tilewright.jit
def unknown_name(x_ptr):
    offsets = tl.arange(0, 16)
    tl.store(x_ptr + ofsets, 1.0)


# *fp32
@tilewright.jit
def unknown_tl(x_ptr):
    pid = tl.progam_id(0)
    tl.store(x_ptr + pid, 1.0)


# *fp32
@tilewright.jit
def unknown_method(x_ptr):
    x = tl.load(x_ptr + tl.arange(0, 16))
    x.summ(0)


# *fp32
@tilewright.jit
def shapes(x_ptr):
    a = tl.load(x_ptr + tl.arange(0, 16))
    b = tl.load(x_ptr + tl.arange(0, 24))
    tl.store(x_ptr + tl.arange(0, 16), a + b)


# *fp32
@tilewright.jit
def shapes_2d(x_ptr):
    a = tl.zeros((16, 32), tl.float32)
    b = tl.zeros((16, 8), tl.float32)
    tl.store(x_ptr + tl.arange(0, 16), tl.sum(a * b, 1))


# *fp32
@tilewright.jit
def mask_shape(x_ptr):
    offsets = tl.arange(0, 16)
    x = tl.load(x_ptr + offsets, mask=tl.arange(0, 32) < 20)
    tl.store(x_ptr + offsets, x)


# *fp32
@tilewright.jit
def mask_type(x_ptr):
    offsets = tl.arange(0, 16)
    x = tl.load(x_ptr + offsets, mask=offsets)


# *fp32
@tilewright.jit
def other_shape(x_ptr):
    offsets = tl.arange(0, 16)
    x = tl.load(x_ptr + offsets, mask=offsets < 4, other=tl.zeros((8,), tl.float32))


# *fp32
@tilewright.jit
def other_without_mask(x_ptr):
    x = tl.load(x_ptr + tl.arange(0, 16), other=0.0)


# *fp32
@tilewright.jit
def store_block_to_scalar(x_ptr):
    tl.store(x_ptr, tl.zeros((16,), tl.float32))


# *fp16
@tilewright.jit
def dot_k(x_ptr):
    a = tl.zeros((16, 32), tl.float16)
    b = tl.zeros((64, 16), tl.float16)
    c = tl.dot(a, b)


# *fp16
@tilewright.jit
def dot_types(x_ptr):
    c = tl.dot(tl.zeros((16, 32), tl.float16), tl.zeros((32, 16), tl.bfloat16))


# *fp16
@tilewright.jit
def dot_acc(x_ptr):
    c = tl.dot(tl.zeros((16, 32), tl.float16), tl.zeros((32, 16), tl.float16), tl.zeros((16, 16), tl.float16))


# *fp32, i32
@tilewright.jit
def runtime_extent(x_ptr, n):
    offsets = tl.arange(0, n)
    tl.store(x_ptr + offsets, 1.0)


# *fp32
@tilewright.jit
def lost_constexpr(x_ptr):
    n = 16
    tl.store(x_ptr + tl.arange(0, n), 1.0)


# *fp32, i32
@tilewright.jit
def loop_type(x_ptr, n):
    acc = 0
    for i in range(n):
        acc += tl.load(x_ptr + i)
    tl.store(x_ptr, acc)


# *fp32, i32
@tilewright.jit
def loop_shape(x_ptr, n):
    acc = 0.0
    for i in range(n):
        acc += tl.load(x_ptr + tl.arange(0, 16))
    tl.store(x_ptr + tl.arange(0, 16), acc)


# *fp32, i32
@tilewright.jit
def branch_type(x_ptr, n):
    if n > 3:
        v = 1.0
    else:
        v = 1
    tl.store(x_ptr, v)


# *fp32, i32
@tilewright.jit
def one_branch(x_ptr, n):
    if n > 3:
        v = 1.0
    tl.store(x_ptr, v)


# *fp32, i32
@tilewright.jit
def after_loop(x_ptr, n):
    for i in range(n):
        last = tl.load(x_ptr + i)
    tl.store(x_ptr, last)


# *fp32, i32
@tilewright.jit
def loop_variable_after(x_ptr, n):
    for i in range(n):
        tl.store(x_ptr + i, 1.0)
    tl.store(x_ptr, i)


# *fp32
@tilewright.jit
def recursion(x_ptr):
    tl.store(x_ptr, forever(1.0))


# *fp32
@tilewright.jit
def plain_function(x_ptr):
    tl.store(x_ptr, plain(1.0))


# *fp32
@tilewright.jit
def torch_function(x_ptr):
    tl.store(x_ptr, torch.exp(1.0))


# *fp32
@tilewright.jit
def too_many(x_ptr):
    tl.store(x_ptr, helper(1.0, 2, 3))


# *fp32
@tilewright.jit
def too_few(x_ptr):
    tl.store(x_ptr, helper(1.0))


# *fp32
@tilewright.jit
def unknown_keyword(x_ptr):
    tl.store(x_ptr, helper(1.0, z=2))


# *fp32
@tilewright.jit
def builtin_keyword(x_ptr):
    x = tl.load(x_ptr, masks=True)


# *fp32
@tilewright.jit
def builtin_missing(x_ptr):
    tl.store(x_ptr)


# *fp32
@tilewright.jit
def mutable_global(x_ptr):
    tl.store(x_ptr + tl.arange(0, SIZE), 1.0)


# *fp32
@tilewright.jit
def global_list(x_ptr):
    tl.store(x_ptr, WIDTHS[0])


# *fp32
@tilewright.jit
def try_statement(x_ptr):
    try:
        tl.store(x_ptr, 1.0)
    except ValueError:
        pass


# *fp32
@tilewright.jit
def with_statement(x_ptr):
    with x_ptr:
        pass


# *fp32
@tilewright.jit
def lambda_expression(x_ptr):
    f = lambda x: x + 1


# *fp32
@tilewright.jit
def class_statement(x_ptr):
    class A:
        pass


# *fp32
@tilewright.jit
def nested_function(x_ptr):
    def f():
        pass


# *fp32, i32
@tilewright.jit
def break_statement(x_ptr, n):
    for i in range(n):
        if i > 3:
            break


# *fp32
@tilewright.jit
def dictionary(x_ptr):
    d = {"a": 1}


# *fp32
@tilewright.jit
def item_assignment(x_ptr):
    x = tl.zeros((16,), tl.float32)
    x[0] = 1.0


# *fp32
@tilewright.jit
def item_access(x_ptr):
    x = tl.zeros((16,), tl.float32)
    y = x[3]


# *fp32, fp32
@tilewright.jit
def pointer_plus_float(x_ptr, f):
    tl.store(x_ptr + f, 1.0)


# *fp32, *fp32
@tilewright.jit
def pointer_plus_pointer(x_ptr, y_ptr):
    tl.store(x_ptr + y_ptr, 1.0)


# fp32
@tilewright.jit
def load_from_number(x):
    y = tl.load(x)


# *fp32, i32
@tilewright.jit
def return_in_loop(x_ptr, n):
    for i in range(n):
        if i > 3:
            return
        tl.store(x_ptr + i, 1.0)


# *fp32, i32
@tilewright.jit
def kernel_returns(x_ptr, n):
    return n + 1


# *fp32
@tilewright.jit
def block_condition(x_ptr):
    x = tl.load(x_ptr + tl.arange(0, 16))
    if x > 0:
        tl.store(x_ptr, 1.0)


# *fp32
@tilewright.jit
def in_helper(x_ptr):
    n = tl.program_id(0)
    tl.store(x_ptr, tl.sum(bad_inside(1, n), 0))


# *fp32
@tilewright.jit
def combine_type(x_ptr):
    x = tl.load(x_ptr + tl.arange(0, 16))
    tl.store(x_ptr, tl.reduce(x, 0, wrong_combine))


# *fp32
@tilewright.jit
def reduce_axis(x_ptr):
    x = tl.load(x_ptr + tl.arange(0, 16))
    tl.store(x_ptr, tl.sum(x, 1))


# *fp16
@tilewright.jit
def exp_half(x_ptr):
    x = tl.load(x_ptr + tl.arange(0, 16))
    y = tl.exp(x)


# *fp32
@tilewright.jit
def floor_division(x_ptr):
    x = tl.load(x_ptr)
    y = x // 2.0


# *i32, *u32
@tilewright.jit
def signedness(x_ptr, y_ptr):
    z = tl.load(x_ptr) // tl.load(y_ptr)


# *i8
@tilewright.jit
def constant_range(x_ptr):
    x = tl.load(x_ptr)
    y = x + 300


# *fp32
@tilewright.jit
def static_assertion(x_ptr):
    tl.static_assert(CONST == 5, f"CONST is {CONST}")


# *fp32
@tilewright.jit
def reshape_size(x_ptr):
    x = tl.reshape(tl.arange(0, 16), (3, 5))


# *fp32
@tilewright.jit
def cast_to_torch(x_ptr):
    x = tl.arange(0, 16).to(torch.float32)


# *kfp32
@tilewright.jit
def constant_pointer(x_ptr):
    tl.store(x_ptr, 1.0)


# *fp32
@tilewright.jit
def bad_option(x_ptr):
    x = tl.load(x_ptr, cache_modifier=".xx")


# *fp32
@tilewright.jit
def map_of_a_scalar(x_ptr):
    c = tl.map_elementwise(tl.abs, tl.load(x_ptr))


# *fp32
@tilewright.jit
def block_pointer_mask(x_ptr):
    p = tl.make_block_ptr(x_ptr, [16], [1], [0], [16], [0])
    x = tl.load(p, mask=True)


# *fp32
@tilewright.jit
def block_pointer_rank(x_ptr):
    p = tl.make_block_ptr(x_ptr, [16, 16], [16, 1], [0], [16], [0])


# *fp32
@tilewright.jit
def unpack(x_ptr):
    a, b, c = helper, helper


# *fp32
@tilewright.jit
def large_block(x_ptr):
    x = tl.zeros((2048, 2048), tl.float32)


# *fp32
@tilewright.jit
def wrong_signature(x_ptr, n):
    pass


# *fp32
@tilewright.jit
def f_string(x_ptr):
    x = tl.load(x_ptr)
    tl.static_print(f"{x}")


# *fp32
@tilewright.jit
def multi_line_call(x_ptr):
    x = tl.load(
        x_ptr + tl.arange(0, 16),
        mask=tl.arange(0, 8) < 4,
    )


# *fp32, i32
@tilewright.jit
def chained_comparison(x_ptr, n):
    tl.store(x_ptr, 1.0, mask=0 < n < 5)


# *fp32
@tilewright.jit
def unrolled_too_far(x_ptr):
    for i in tl.static_range(10000):
        for j in tl.static_range(10000):
            tl.store(x_ptr + i, j)


# *fp32, i32
@tilewright.jit
def option_of_a_range(x_ptr, n):
    for i in tl.range(0, n, num_stage=3):
        tl.store(x_ptr + i, 1.0)


# *fp32, i32
@tilewright.jit
def range_without_an_end(x_ptr, n):
    for i in range():
        tl.store(x_ptr + i, 1.0)
