"""What programs need beside kernels."""
