"""What all dialects stand on: the threads that run a function, those of them that come here, and places in memory."""

from ....language._marker import builtin


@builtin
def number(dimension=0):
    """The thread's number along a dimension, from 0 on. The first dimension is the fastest."""


@builtin
def count(dimension=0):
    """How many threads there are along a dimension."""


@builtin
def active():
    """Which threads come here."""


@builtin
def place(memory, indices, writes=False, shape=()):
    """Pointers to the elements at the indices, of a buffer or a pointer, one for each thread; with a shape, to a block of it, along the last dimensions."""


@builtin
def spread(value, shape):
    """A number of each thread, or a vector, as a vector of a shape (or of that of another vector): again and again along the dimensions in front."""


@builtin
def is_at(shape, position, dimension):
    """Which elements of a vector of a shape have this number along a dimension."""


@builtin
def shaped(value, shape):
    """The elements of a vector in row-major order under another shape."""


@builtin
def extent(memory, dimension):
    """How many elements a buffer has along a dimension."""
