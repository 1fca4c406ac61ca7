"""`torch.compile` with TorchInductor's kernels compiled by Tilewright, against eager: one block of a transformer forward and backward (of the
size of GPT-2's on a GPU, in float32 and bfloat16), and operators one by one.
`python tests/gpu/inductor.py [--device cpu] [--max-autotune] [NAME …]`; needs torch, and no Triton.

On the CPU the kernels run in the executor, or with `TILEWRIGHT_BACKEND=ptxsim` in the simulator. The exit status is 1 if anything failed.
"""

import argparse
import sys
import time

import tilewright
import tilewright.as_triton  # before torch looks for Triton

# isort: split
import torch
import torch._inductor.config as inductor
import torch.nn.functional as F
import triton
from torch import nn

SHAPES = [(64, 96), (33, 77), (5, 3001)]
# The widths in which these are computed allow no more.
TOLERANCE = {"float16": 2e-2, "bfloat16": 2e-2}


class Block(nn.Module):
    """A block of a decoder: attention under a causal mask and a perceptron, each behind a norm."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.qkv, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def attention(self, x):
        batch, length, width = x.shape
        parts = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)
        scores = q @ k.mT * (width // self.heads) ** -0.5
        hidden = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
        weights = scores.masked_fill(hidden, float("-inf")).softmax(-1)
        return self.project((weights @ v).transpose(1, 2).reshape(x.shape))

    def forward(self, x):
        x = x + self.attention(self.norms[0](x))
        return x + self.down(F.gelu(self.up(self.norms[1](x)), approximate="tanh"))


def places(x):
    return torch.arange(x.shape[0], device=x.device)


OPERATORS = {
    "softmax": lambda x: x.softmax(-1),
    "log_softmax": lambda x: x.log_softmax(0),
    "var_mean": lambda x: torch.var_mean(x, 1),
    "layer_norm": lambda x: F.layer_norm(x, x.shape[1:]),
    "batch_norm": lambda x: F.batch_norm(x, None, None, training=True),
    "norm": lambda x: x.norm(dim=1) / x.norm(),
    "amax": lambda x: x.amax(1) - x.amin(1),
    "argmax": lambda x: (x.argmax(1), x.argmin(0)),
    "prod": lambda x: (x * 0.01 + 1).prod(1),
    "any": lambda x: ((x > 3).any(1), (x > -9).all(0)),
    "cumsum": lambda x: x.cumsum(1),
    "cumprod": lambda x: (x * 0.1 + 1).cumprod(1),
    "cummax": lambda x: x.cummax(1)[0],
    "logcumsumexp": lambda x: x.logcumsumexp(1),
    "sort": lambda x: x[:, :32].sort(1)[0],
    "topk": lambda x: x.topk(3, 1)[0],
    "bucketize": lambda x: torch.bucketize(x, torch.linspace(-2, 2, 17, device=x.device)),
    "index": lambda x: x[places(x) % 4, places(x) % 7],
    "index_add": lambda x: torch.zeros(8, x.shape[1], device=x.device).index_add(0, places(x) % 8, x),
    "embedding": lambda x: F.embedding(torch.arange(20, device=x.device) % x.shape[0], x).relu(),
    "cross_entropy": lambda x: F.cross_entropy(x, places(x) % x.shape[1]),
    "cat": lambda x: torch.cat([x, x.flip(0)], 1) + 1,
    "pad": lambda x: F.pad(x, (1, 2, 3, 4)) * 2,
    "tril": lambda x: x.tril() + x.triu(1) * 2,
    "unfold": lambda x: x.unfold(1, 4, 2).sum(-1),
    "max_pool2d": lambda x: F.max_pool2d(x[None, None], 3, 2),
    "interpolate": lambda x: F.interpolate(x[None, None], scale_factor=2.0, mode="bilinear"),
    "float16": lambda x: (x.half() * 2 + 1).float(),
    "bfloat16": lambda x: x.bfloat16().exp().sum(0),
    "float64": lambda x: x.double().sin() + x.double().tanh(),
    "int32": lambda x: (x * 100).int() // 7 + (x * 100).int() % 5,
    "bits": lambda x: (x * 100).int() ^ 3,
    "where": lambda x: torch.where(x > 0, x, -x).sqrt(),
    "clamp": lambda x: x.clamp(-0.5, 0.5),
    "round": lambda x: (x * 3).round() + (x * 3).floor() + (x * 3).trunc(),
    "fmod": lambda x: torch.fmod(x * 5, 1.3) + torch.remainder(x * 5, 1.3),
    "pow": lambda x: x.abs() ** 1.7,
    "atan2": lambda x: torch.atan2(x, x.flip(0)),
    "hypot": lambda x: torch.hypot(x, x.flip(0)),
    "erf": lambda x: x.erf() + x.abs().log1p(),
    "lgamma": lambda x: (x.abs() + 1).lgamma(),
    "i0": lambda x: torch.special.i0(x),
    "bessel_j0": lambda x: torch.special.bessel_j0(x),
    "activations": lambda x: x.sigmoid() * F.silu(x) * F.softplus(x) + F.mish(x) + F.elu(x),
    "nextafter": lambda x: torch.nextafter(x, x + 1),
    "nan_to_num": lambda x: torch.nan_to_num(x / torch.zeros_like(x)),
    "signbit": lambda x: x.signbit() | x.isnan() | x.isinf(),
}


# Batch, length, width and heads of the block; GPT-2's where there is a GPU.
BLOCKS = {"cuda": (4, 1024, 768, 12), "cpu": (2, 64, 192, 6)}
# How far a result may be from eager's, as a part of its norm: both round each intermediate value.
NORMS = {torch.float32: 1e-4, torch.bfloat16: 2e-2}


def check_block(device, mode, dtype):
    """The block's result and all of its gradients."""
    torch.manual_seed(0)
    torch._dynamo.reset()
    batch, length, width, heads = BLOCKS[device]
    block = Block(width, heads).to(device, dtype)
    x = torch.randn(batch, length, width, device=device, dtype=dtype, requires_grad=True)

    def step(module):
        y = module(x)
        return y, *torch.autograd.grad(y.square().mean(), [x, *block.parameters()])

    for ours, eager in zip(step(torch.compile(block, mode=mode)), step(block), strict=True):
        far = (ours.double() - eager.double()).norm() / eager.double().norm()
        assert far <= NORMS[dtype], f"{tuple(eager.shape)}: {far:.2e} of the norm"


def check_operator(name, shape, device, mode):
    torch.manual_seed(0)
    x = torch.randn(*shape, device=device)
    torch._dynamo.reset()
    function = OPERATORS[name]
    tolerance = TOLERANCE.get(name, 2e-4)
    torch.testing.assert_close(
        torch.compile(function, fullgraph=True, mode=mode)(x),
        function(x),
        rtol=tolerance,
        atol=tolerance,
        equal_nan=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--max-autotune", action="store_true")
    parser.add_argument("names", nargs="*", choices=[[], "block", *OPERATORS])
    given = parser.parse_args()
    inductor.cpu_backend = "triton"
    inductor.force_disable_caches = True
    mode = "max-autotune-no-cudagraphs" if given.max_autotune else None
    compiled = []
    triton.knobs.compilation.listener = lambda **facts: compiled.append(facts["src"].name)

    checks = {f"block {dtype}": lambda dtype=dtype: check_block(given.device, mode, dtype) for dtype in NORMS}
    for name in OPERATORS:
        for shape in SHAPES:
            checks[f"{name} {shape}"] = lambda name=name, shape=shape: check_operator(
                name, shape, given.device, mode
            )
    if given.names:
        checks = {name: check for name, check in checks.items() if name.split()[0] in given.names}
    failed, start = 0, time.time()
    for name, check in checks.items():
        try:
            check()
        except Exception as error:
            failed += 1
            print(f"{name}: {type(error).__name__}: {str(error)[:600]}", flush=True)
    print(
        f"torch {torch.__version__}, {given.device}: {len(checks) - failed} of {len(checks)} checks agree with eager, "
        f"{len(compiled)} kernels compiled by Tilewright {tilewright.__version__}, {time.time() - start:.0f} s"
    )
    sys.exit(bool(failed) or not compiled)


if __name__ == "__main__":
    main()
