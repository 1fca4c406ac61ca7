"""``triton.tools.LinearLayout``: the compiler's layouts, with any names for their dimensions."""

import re

import numpy as np
import pytest

from tilewright.tools import LinearLayout


def test_a_strided_layout_and_its_matrix():
    layout = LinearLayout.strided_1d(4, 2, "lane", "x")
    assert [layout.apply({"lane": i})["x"] for i in range(4)] == [0, 2, 4, 6]
    assert layout.get_matrix_view() == [[0, 0], [1, 0], [0, 1]]
    assert layout.out_dims == [("x", 8)] and layout.bases == [("lane", [[2], [4]])]
    assert layout.is_injective() and not layout.is_surjective()


def test_a_product_puts_the_second_outside_of_the_first():
    tile = LinearLayout.identity_1d(2, "register", "x") * LinearLayout.identity_1d(4, "lane", "y")
    tile *= LinearLayout.identity_1d(2, "warp", "x")
    assert tile.get_in_dim_names() == ["register", "lane", "warp"]
    assert tile.get_out_dim_names() == ["x", "y"]
    assert tile.apply({"register": 1, "lane": 3, "warp": 1}) == {"x": 3, "y": 3}


@pytest.mark.parametrize("seed", range(20))
def test_composition_and_inverse_agree_with_tables(seed):
    rng = np.random.default_rng(seed)
    names = ["a", "b", "c"]

    def layout(ins, outs):
        basis = [[1 << bit if at == dim else 0 for at in range(3)] for dim in range(3) for bit in range(2)]
        basis = [basis[i] for i in rng.permutation(6)]
        return LinearLayout.from_bases([(n, basis[2 * k : 2 * k + 2]) for k, n in enumerate(ins)], outs)

    first = layout(["r", "l", "w"], names)
    second = layout(list(rng.permutation(names)), ["p", "q", "s"])
    both, back = first.compose(second), first.invert()
    for i in range(64):
        at = {"r": i % 4, "l": i // 4 % 4, "w": i // 16}
        assert both.apply(at) == second.apply(first.apply(at))
        assert back.apply(first.apply(at)) == at
    assert first.compose(back) == LinearLayout.identity_1d(4, "r", "r") * LinearLayout.identity_1d(
        4, "l", "l"
    ) * LinearLayout.identity_1d(4, "w", "w")
    other = layout(["x", "y", "z"], ["c", "a", "b"])
    where = first.invert_and_compose(other)
    for i in range(64):
        at = {"r": i % 4, "l": i // 4 % 4, "w": i // 16}
        assert other.apply(where.apply(at)) == first.apply(at)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda: LinearLayout.identity_1d(3, "a", "b"), "the size 3 is not a power of two"),
        (lambda: LinearLayout.strided_1d(1 << 20, 1 << 20, "a", "b"), "are too many"),
        (lambda: LinearLayout.from_bases([("a", [[2], [2]])], ["x"]), "is not surjective"),
        (lambda: LinearLayout.from_bases([("a", [[1]])], ["x", "y"]), "a basis has 1 indices"),
        (lambda: LinearLayout.from_bases([("a", [[4]])], ["x"], [4]), "outside of `x`, whose size is 4"),
        (lambda: LinearLayout.from_bases([("a", [[1]]), ("a", [])], ["x"]), "`a` is named twice"),
        (lambda: LinearLayout.from_bases([("a", [[1]])], ["x"], None, False), "must be provided"),
        (lambda: LinearLayout.zeros_1d(2, "a", "b").invert(), "not invertible"),
        (lambda: LinearLayout.identity_1d(2, "a", "b").apply({"b": 0}), "input dimension `a`"),
        (lambda: LinearLayout.identity_1d(2, "a", "b").apply({"a": 2}), "the index 2 is outside of `a`"),
        (
            lambda: LinearLayout.identity_1d(4, "a", "b").compose(LinearLayout.identity_1d(2, "b", "c")),
            "`b` has the size 4, and the outer layout takes 2",
        ),
        (
            lambda: LinearLayout.identity_1d(1 << 20, "a", "b") * LinearLayout.identity_1d(1 << 20, "c", "d"),
            "more than 31 bits",
        ),
    ],
)
def test_what_can_not_be_is_a_value_error(wrong, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        wrong()
