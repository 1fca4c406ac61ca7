"""Peak rates of GPUs, for the viewer's ``util``: the numbers that Triton's viewer goes by."""

from __future__ import annotations

__all__ = ["max_bps", "max_flops"]

# Dense operations on 8-bit numbers a second.
_FLOPS8 = {"80": 624e12, "89": 330.3e12}
# The same for each multiprocessor and kHz of its clock; that of sm_90 is 1513e12 for 114 multiprocessors at 1755 MHz.
_FLOPS8_PER_SM_KHZ = {"90": 1513e12 / 114 / 1755e3, "100": 16384e3}


def max_flops(device_type: str, arch: str, width: int, num_sms: int, clock_rate: float) -> float:
    """The most operations a second on numbers of ``width`` bits.

    :param arch: the compute capability without its dot.
    :param clock_rate: in kHz.
    """
    _check(device_type)
    if arch in _FLOPS8:
        return _FLOPS8[arch] / (width / 8)
    if arch in _FLOPS8_PER_SM_KHZ:
        return _FLOPS8_PER_SM_KHZ[arch] * num_sms * clock_rate / (width / 8)
    raise ValueError(f"Unsupported architecture: {arch}")


def max_bps(device_type: str, arch: str, bus_width: int, memory_clock_rate: float) -> float:
    """The most bytes a second from memory, which transfers twice a clock.

    :param bus_width: in bits.
    :param memory_clock_rate: in kHz.
    """
    _check(device_type)
    return 2 * bus_width / 8 * memory_clock_rate * 1e3


def _check(device_type: str) -> None:
    if device_type != "CUDA":
        raise ValueError(f"Unsupported device type: {device_type}: peak rates are known of CUDA devices")
