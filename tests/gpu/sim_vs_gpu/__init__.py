"""Generated PTX programs on the GPU against the simulator: ``python tests/gpu/sim_vs_gpu --help``."""
