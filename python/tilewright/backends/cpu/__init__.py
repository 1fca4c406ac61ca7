"""The CPU executor as programs look for a backend: ``backends["cpu"]``, as TorchInductor does for ``config.cpu_backend = "triton"``."""
