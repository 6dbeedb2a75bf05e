"""Inputs of scientific programs."""

import math

from draw import write


def points(draw):
    """Points near a sphere of four dimensions."""
    lines = ["4", "18000"]
    for _ in range(18000):
        x = [draw.real() - 0.5 for _ in range(4)]
        size = math.sqrt(sum(v * v for v in x)) or 1
        scale = (0.97 + 0.03 * draw.real()) / size
        lines.append(" ".join(f"{v * scale:.6f}" for v in x))
    write("points.txt", "\n".join(lines) + "\n")


INPUTS = {
    "qhull": points,
}
