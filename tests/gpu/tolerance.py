"""How far a result may be from the exact one: a share of the spread of its row, by the type that it is rounded to.

A bound on single elements that is as large as the elements themselves lets an attention pass that lost 16 of 4,096 keys, and one on the
largest of an array lets small elements be anything. Rounding makes an error of less than ``finfo.eps / 2`` of each element, so a
row's root mean square error is less than that share of its root mean square; lost or repeated terms of a sum of n make one of
``1 / sqrt(n)`` each. A row of less than a tenth of the array's root mean square is held to that tenth: it may be what large terms
that cancel leave.

Rounding errs either way, so that a row's errors, and those of a column of many rows, cancel in their mean: what is left of n of them is about ``1 / sqrt(n)`` of one.
What is lost from every sum, such as some columns of a row's denominator or a term of a logarithm, moves all elements alike and does not cancel; so the share of a
row that its errors are along it, and the mean of a row's and of a column's errors, are held to ``LEANING / sqrt(n)`` of the bound.
"""

import torch

# Standard deviations of a mean of roundings. (Products whose terms tensor cores truncate lean a little.)
LEANING = 12.0
# Of the spread, what float32 sums and the hardware's approximations of functions leave alike in all elements.
LEAST = 2e-6


def eps(dtype: torch.dtype) -> float:
    return torch.finfo(dtype).eps


def close(
    actual: torch.Tensor,
    wanted: torch.Tensor,
    share: float | None = None,
    tail: float = 8.0,
    truncated: bool = False,
) -> float:
    """Asserts that each row (last dimension) of ``actual`` is the exact ``wanted`` as its type, or ``share``, can tell.

    Returns the largest share of a row's root mean square that its root mean square error is.

    :param share: of a row's root mean square, what its root mean square error may be; twice ``eps`` of the type of ``actual``, where
        nothing is given, and not less than what a float32 sum leaves.
    :param tail: how many times that a single element may be off.
    :param truncated: whether the hardware cuts off digits of the sums that it forms, as tensor cores do of products of fp8, so that errors lean towards zero.
    """
    assert actual.shape == wanted.shape, (actual.shape, wanted.shape)
    if not actual.is_floating_point():
        assert torch.equal(actual, wanted.to(actual.dtype)), (
            f"{int((actual != wanted).sum())} integers differ"
        )
        return 0.0
    share = share or max(2 * eps(actual.dtype), 1e-5)
    exact = wanted if wanted.dtype == torch.float64 else wanted.float()
    given = actual.to(exact.dtype)
    assert bool(torch.isfinite(given).all()), f"{int((~torch.isfinite(given)).sum())} elements are not finite"
    error = (given - exact).abs()
    squares = exact.square().mean(-1, keepdim=True)
    spread = squares.clamp_min(float(squares.mean()) / 100).sqrt()
    rows = error.square().mean(-1, keepdim=True).sqrt() / (spread + torch.finfo(torch.float32).tiny)
    assert rows.max() <= share, (
        f"a row is off by {rows.max():.3g} of its spread, {share:.3g} are allowed; {int((rows > share).sum())} of {rows.numel()} rows are"
    )
    if not truncated:
        _leans_little(given - exact, exact, spread, share)
    far = error > tail * share * spread + eps(actual.dtype) * exact.abs()
    assert not far.any(), (
        f"{int(far.sum())} elements are off by more than {tail:g} times {share:.3g} of their row's spread"
    )
    return float(rows.max())


def _leans_little(error: torch.Tensor, exact: torch.Tensor, spread: torch.Tensor, share: float) -> None:
    """Asserts that errors have little in common along rows and columns. Roundings of elements are shares of these: where few are much larger than the others, fewer
    errors cancel."""
    spread = spread + torch.finfo(torch.float32).tiny
    error, exact = error / spread, exact / spread
    one = LEANING * share / exact.shape[-1] ** 0.5
    lean(error.mean(-1), one, "the errors of a row")
    lean((error * exact).mean(-1), one * exact.pow(4).mean(-1).clamp_min(1).sqrt(), "errors along a row")
    rows = exact[..., 0].numel()
    if exact.dim() > 1 and rows >= 64:
        columns = exact.flatten(0, -2).square().mean(0).clamp_min(1).sqrt()
        lean(error.flatten(0, -2).mean(0), LEANING * share / rows**0.5 * columns, "the errors of a column")


def lean(means: torch.Tensor, allowed: torch.Tensor | float, what: str) -> None:
    """Asserts that what errors have in common is what roundings leave."""
    allowed = torch.as_tensor(allowed, dtype=means.dtype, device=means.device).clamp_min(LEAST)
    over = means.abs() - allowed
    worst = int(over.argmax())
    assert over.max() <= 0, (
        f"{what} lean to one side by {float(means.flatten()[worst].abs()):.3g} of the spread, {float(allowed.expand_as(means).flatten()[worst]):.3g} are allowed"
    )


def poison(out: torch.Tensor) -> None:
    """Fills what a kernel must write with what no kernel gives."""
    out.fill_(float("nan") if out.is_floating_point() else torch.iinfo(out.dtype).min + 1)
