"""Printing and assertions."""

from ....language._marker import builtin


@builtin
def vprintf(format, *args):
    """Prints ``format`` up to its first conversion, then the value of each argument in each thread."""


@builtin
def vassert(condition, format="", *args):
    """Ends the program, with the message ``format``, if a thread comes here whose ``condition`` is false."""
