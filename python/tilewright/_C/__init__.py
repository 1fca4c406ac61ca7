"""Where Triton has its native half; ours is ``tilewright._tilewright``, and no program should need either."""
