"""``ir``: types. A type is a dtype of the language: integers are signed, an index has 64 bits."""

from ....language._marker import builtin


class IntegerType:
    """Integers of so many bits."""

    @builtin
    def get_signless(width):
        """The type of integers of ``width`` bits."""


class IndexType:
    """Numbers of elements."""

    @builtin
    def get():
        """The type."""


class VectorType:
    """So many elements that one operation takes at once."""

    @builtin
    def get(shape, element_type):
        """The type of vectors of such a shape."""


class F16Type:
    """IEEE half."""

    @builtin
    def get():
        """The type."""


class BF16Type:
    """bfloat16."""

    @builtin
    def get():
        """The type."""


class F32Type:
    """IEEE single."""

    @builtin
    def get():
        """The type."""


class F64Type:
    """IEEE double."""

    @builtin
    def get():
        """The type."""


class RankedTensorType:
    """For annotations: ``Annotated[ir.RankedTensorType, "tensor<128xf32>"]``."""


class MemRefType:
    """For annotations: ``Annotated[ir.MemRefType, "memref<128xf32, 3>"]``."""
