"""Rectangles on a page, in points from its top left corner."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle; `top` is smaller than `bottom`."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def width(self) -> float:
        return self.right - self.left

    @property
    def height(self) -> float:
        return self.bottom - self.top

    @property
    def area(self) -> float:
        return max(0.0, self.width) * max(0.0, self.height)

    @property
    def middle_x(self) -> float:
        return (self.left + self.right) / 2

    @property
    def middle_y(self) -> float:
        return (self.top + self.bottom) / 2

    def shared_width(self, other: "Box") -> float:
        """Return the width of the overlap of both x ranges; negative: the gap between them."""
        return min(self.right, other.right) - max(self.left, other.left)

    def shared_height(self, other: "Box") -> float:
        """Return the height of the overlap of both y ranges; negative: the gap between them."""
        return min(self.bottom, other.bottom) - max(self.top, other.top)

    def share_in(self, other: "Box") -> float:
        """Return the share of this box that the other covers; by length if this box has no area."""
        width, height = self.shared_width(other), self.shared_height(other)
        if width < 0 or height < 0:
            return 0.0
        area = self.area
        if area > 0:
            return width * height / area
        length = max(self.width, self.height)
        return max(width, height) / length if length > 0 else 1.0

    def contains_middle_of(self, other: "Box") -> bool:
        """True if the other box's centre is inside this one."""
        return self.left <= other.middle_x <= self.right and self.top <= other.middle_y <= self.bottom

    def expanded(self, x: float, y: float) -> "Box":
        """Return the box enlarged by these amounts on each side."""
        return Box(self.left - x, self.top - y, self.right + x, self.bottom + y)


def bounding_box(boxes: Iterable[Box]) -> Box:
    """Return the smallest box around all boxes."""
    every = list(boxes)
    return Box(
        min(box.left for box in every),
        min(box.top for box in every),
        max(box.right for box in every),
        max(box.bottom for box in every),
    )
