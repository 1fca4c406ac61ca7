"""What all dialects stand on: the threads that run a function, those of them that come here, and places in memory."""

from ....language._marker import builtin


@builtin
def number():
    """The thread's number, from 0 on."""


@builtin
def count():
    """How many threads there are."""


@builtin
def active():
    """Which threads come here."""


@builtin
def place(memory, indices, writes=False, length=0):
    """Pointers to the elements at the indices, of a buffer or a pointer, one for each thread; with a length, to so many side by side."""


@builtin
def spread(value, length):
    """A number of each thread as a vector of so many."""


@builtin
def extent(memory, dimension):
    """How many elements a buffer has along a dimension."""
