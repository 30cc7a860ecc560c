"""Primitives: the parts of a drawing, and a canvas that paints them with smooth edges.

A drawing is a sequence of parts in unit coordinates: x to the right and y down, both from -1 to 1.
A canvas works in pixels of the finished image.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from PIL import Image, ImageDraw

Point: TypeAlias = tuple[float, float]
Colour: TypeAlias = tuple[int, int, int]
Box: TypeAlias = tuple[float, float, float, float]

INK: Colour = (43, 43, 51)
OUTLINE = 0.05  # width of the ink around an area, in unit coordinates
SUPERSAMPLING = 4


@dataclass(frozen=True)
class Part:
    """A filled area with an ink outline, or a line where ``width`` (in unit coordinates) is set."""

    points: tuple[Point, ...]
    colour: Colour
    width: float | None = None


Drawing: TypeAlias = tuple[Part, ...]


def area(colour: Colour, *points: Point) -> Part:
    """A polygon."""
    return Part(points, colour)


def box(colour: Colour, left: float, top: float, right: float, bottom: float) -> Part:
    """An upright rectangle."""
    return area(colour, (left, top), (right, top), (right, bottom), (left, bottom))


def blob(colour: Colour, *points: Point) -> Part:
    """A closed smooth curve through the points."""
    return Part(tuple(_smooth((points[-1], *points, *points[:2]))), colour)


def oval(colour: Colour, x: float, y: float, rx: float, ry: float) -> Part:
    """An ellipse around (x, y)."""
    return Part(tuple(arc(x, y, rx, ry, 0, 360)), colour)


def line(colour: Colour, width: float, *points: Point) -> Part:
    """Straight strokes from point to point."""
    return Part(points, colour, width)


def curve(colour: Colour, width: float, *points: Point) -> Part:
    """An open smooth stroke through the points."""
    return Part(tuple(_smooth((points[0], *points, points[-1]))), colour, width)


def arc(x: float, y: float, rx: float, ry: float, start: float, end: float) -> list[Point]:
    """Points on an ellipse around (x, y); angles in degrees, clockwise from the right."""
    steps = max(2, round(abs(end - start) / 9))
    angles = (math.radians(start + (end - start) * i / steps) for i in range(steps + 1))
    return [(x + rx * math.cos(a), y + ry * math.sin(a)) for a in angles]


def _smooth(points: Sequence[Point], steps: int = 8) -> Iterable[Point]:
    """Catmull-Rom spline through all points but the first and the last."""
    for p, q, r, s in zip(points, points[1:], points[2:], points[3:], strict=False):
        for t in (i / steps for i in range(steps)):
            yield _spline(p[0], q[0], r[0], s[0], t), _spline(p[1], q[1], r[1], s[1], t)
    yield points[-2]


def _spline(p: float, q: float, r: float, s: float, t: float) -> float:
    return q + t / 2 * (r - p + t * (2 * p - 5 * q + 4 * r - s + t * (3 * (q - r) + s - p)))


def extent(drawing: Drawing) -> Box:
    """Left, top, right and bottom of a drawing, in unit coordinates."""
    xs = [x for part in drawing for x, _ in part.points]
    ys = [y for part in drawing for _, y in part.points]
    return min(xs), min(ys), max(xs), max(ys)


def mix(a: Colour, b: Colour, share: float) -> Colour:
    """The colour that lies ``share`` of the way from ``a`` to ``b``."""
    red, green, blue = (round(x + (y - x) * share) for x, y in zip(a, b, strict=True))
    return red, green, blue


class Canvas:
    """An image in the making. Sizes are in pixels of the finished image."""

    def __init__(self, width: int, height: int, paper: Colour) -> None:
        self.width = width
        self.height = height
        self._image = Image.new("RGB", (width * SUPERSAMPLING, height * SUPERSAMPLING), paper)
        self._draw = ImageDraw.Draw(self._image)

    def polygon(self, points: Iterable[Point], fill: Colour, outline: float = 0) -> None:
        """Fill an area; ``outline`` is the width of the ink around it."""
        corners = list(points)
        self._draw.polygon([_up(point) for point in corners], fill=fill)
        if outline:
            self.line([*corners, corners[0]], INK, outline)

    def rectangle(self, edges: Box, fill: Colour, outline: float = 0) -> None:
        """Fill an upright rectangle (left, top, right, bottom)."""
        left, top, right, bottom = edges
        corners = [(left, top), (right, top), (right, bottom), (left, bottom)]
        self.polygon(corners, fill, outline)

    def ellipse(
        self, x: float, y: float, rx: float, ry: float, fill: Colour, outline: float = 0
    ) -> None:
        """Fill an ellipse around (x, y)."""
        self.polygon(arc(x, y, rx, ry, 0, 360), fill, outline)

    def line(self, points: Iterable[Point], fill: Colour, width: float) -> None:
        """A stroke with round joints and ends."""
        path = [_up(point) for point in points]
        thick = max(1, round(width * SUPERSAMPLING))
        self._draw.line(path, fill=fill, width=thick, joint="curve")
        for x, y in (path[0], path[-1]):
            self._draw.ellipse(
                (x - thick / 2, y - thick / 2, x + thick / 2, y + thick / 2), fill=fill
            )

    def thing(self, drawing: Drawing, x: float, y: float, half: float) -> None:
        """Paint a drawing around (x, y), ``half`` pixels from its middle to its edges."""
        for part in drawing:
            points = [(x + px * half, y + py * half) for px, py in part.points]
            if part.width is None:
                self.polygon(points, part.colour, OUTLINE * half)
            else:
                self.line(points, part.colour, part.width * half)

    def image(self) -> Image.Image:
        """The finished image, in RGB."""
        return self._image.reduce(SUPERSAMPLING)


def _up(point: Point) -> Point:
    return point[0] * SUPERSAMPLING, point[1] * SUPERSAMPLING
