"""Numbers of the microscaling formats as torch tensors, to make inputs of ``tl.dot_scaled`` and to check its results.

The formats are those of the OCP Microscaling specification, version 1.0: elements of 4 bits (E2M1: sign, two bits of exponent with
bias 1, one of mantissa) and scales of 8 bits (E8M0: an exponent with bias 127, where 255 is NaN).
"""

from __future__ import annotations

import itertools

import torch

__all__ = ["MXFP4Tensor", "MXScaleTensor"]

#: The magnitudes of E2M1 by code.
_E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
_NAN, _BIAS = 255, 127


class _Codes:
    """Codes in :attr:`data`: converted from float32, or of a size that :meth:`random` fills."""

    def __init__(
        self,
        data: torch.Tensor | None = None,
        size: int | tuple[int, ...] | None = None,
        device: str | torch.device | None = None,
    ):
        if data is None and size is None:
            raise ValueError("either data or size says what the tensor is")
        self.device = device
        if data is not None:
            if not isinstance(data, torch.Tensor):
                raise TypeError(f"data is a torch tensor, not {type(data).__name__}")
            self.device = data.device
            self.data = self._from_float(data)
        else:
            self.size = size if isinstance(size, tuple) else (size,)

    @staticmethod
    def _only_float32(dtype: torch.dtype) -> None:
        if dtype != torch.float32:
            raise ValueError(f"codes are converted to torch.float32, not to {dtype}")


class MXFP4Tensor(_Codes):
    """Elements of E2M1, one in the low four bits of each byte of :attr:`data`."""

    def random(self) -> MXFP4Tensor:
        """Fills with random elements; gives the tensor itself."""
        self.data = torch.randint(0, 16, self.size, dtype=torch.uint8, device=self.device)
        return self

    def to(self, dtype: torch.dtype) -> torch.Tensor:
        """The elements as float32."""
        self._only_float32(dtype)
        magnitudes = torch.tensor(_E2M1, dtype=dtype, device=self.data.device)[(self.data & 7).long()]
        return torch.where(self.data & 8 != 0, -magnitudes, magnitudes)

    def _from_float(self, values: torch.Tensor) -> torch.Tensor:
        """The nearest elements, of two the even one; beyond the largest, and for NaN, the largest."""
        magnitudes = values.abs().float().nan_to_num(nan=_E2M1[-1])
        between = torch.tensor(
            [(a + b) / 2 for a, b in itertools.pairwise(_E2M1)], dtype=torch.float32, device=values.device
        )
        # In the middle, up from odd codes and down from even ones.
        up = torch.searchsorted(between, magnitudes, right=True)
        down = torch.searchsorted(between, magnitudes, right=False)
        codes = torch.where(up % 2 == 0, up, down)
        return (codes | torch.signbit(values).long() << 3).to(torch.uint8)

    def to_packed_tensor(self, dim: int) -> torch.Tensor:
        """Two elements a byte along a dimension, the first in the low bits; an odd extent is filled up with zero."""
        if not 0 <= dim < self.data.ndim:
            raise ValueError(f"there is no dimension {dim} of {self.data.ndim}")
        codes = self.data.movedim(dim, -1)
        if codes.shape[-1] % 2:
            codes = torch.nn.functional.pad(codes, (0, 1))
        return (codes[..., ::2] | codes[..., 1::2] << 4).movedim(-1, dim).contiguous()

    def unpack_packed_tensor(
        self, packed_tensor: torch.Tensor, dim: int, original_shape: tuple[int, ...]
    ) -> torch.Tensor:
        """The elements, one a byte, of what :meth:`to_packed_tensor` gave."""
        packed = packed_tensor.movedim(dim, -1)
        codes = torch.stack((packed & 15, packed >> 4), dim=-1).flatten(-2)
        return codes[..., : original_shape[dim]].movedim(-1, dim).contiguous().to(torch.uint8)


class MXScaleTensor(_Codes):
    """Scales of E8M0: powers of two."""

    def random(self, low: float | None = None, high: float | None = None) -> MXScaleTensor:
        """Fills with random scales from ``low`` to ``high``, never NaN; gives the tensor itself."""

        def code(value: float | None, default: int) -> int:
            if value is None:
                return default
            return min(max(int(torch.log2(torch.tensor(float(value)))) + _BIAS, 0), _NAN - 1)

        least, most = code(low, 0), code(high, _NAN - 1)
        if least > most:
            raise ValueError(f"low, {low}, is above high, {high}")
        self.data = torch.randint(least, most + 1, self.size, dtype=torch.uint8, device=self.device)
        return self

    def to(self, dtype: torch.dtype) -> torch.Tensor:
        """The scales as float32."""
        self._only_float32(dtype)
        values = torch.ldexp(torch.ones_like(self.data, dtype=dtype), self.data.int() - _BIAS)
        return torch.where(self.data == _NAN, torch.nan, values)

    def _from_float(self, values: torch.Tensor) -> torch.Tensor:
        """The largest powers of two that are not above the values; NaN for what is not a positive number."""
        positive = torch.isfinite(values) & (values > 0)
        _, exponent = torch.frexp(torch.where(positive, values, 1.0))
        codes = (exponent - 1 + _BIAS).clamp(0, _NAN - 1)
        return torch.where(positive, codes, _NAN).to(torch.uint8)
