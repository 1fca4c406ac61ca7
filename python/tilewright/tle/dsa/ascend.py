"""``tle.dsa.ascend``: the local memories of Ascend's cores, for :func:`tle.dsa.alloc`."""


class address_space:
    """A memory of an accelerator, by its name."""

    def __init__(self, name):
        # The compiler knows it by its path, as it does functions.
        self.__name__ = self.__qualname__ = name
        self.__module__ = __name__

    def __repr__(self):
        return f"tle.dsa.ascend.{self.__name__}"

    def __reduce__(self):
        return self.__name__


#: The unified buffer of a vector core: what vector instructions read and write.
UB = address_space("UB")
#: The buffer of a cube core, between global memory and the operands of products.
L1 = address_space("L1")
#: Left operands of products.
L0A = address_space("L0A")
#: Right operands of products.
L0B = address_space("L0B")
#: What products are added up in.
L0C = address_space("L0C")

__all__ = ["L0A", "L0B", "L0C", "L1", "UB", "address_space"]
