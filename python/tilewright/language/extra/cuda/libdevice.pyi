# Made by scripts/stubs.py.
from ..libdevice import *
