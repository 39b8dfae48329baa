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
        """How far both reach over the same columns of the page; negative: the gap between them."""
        return min(self.right, other.right) - max(self.left, other.left)

    def shared_height(self, other: "Box") -> float:
        """How far both reach over the same rows of the page; negative: the gap between them."""
        return min(self.bottom, other.bottom) - max(self.top, other.top)

    def share_in(self, other: "Box") -> float:
        """The share of this box that the other one covers; of a line without area, that of its length."""
        width, height = self.shared_width(other), self.shared_height(other)
        if width < 0 or height < 0:
            return 0.0
        area = self.area
        if area > 0:
            return width * height / area
        length = max(self.width, self.height)
        return max(width, height) / length if length > 0 else 1.0

    def holds_middle_of(self, other: "Box") -> bool:
        """Whether the other box's middle lies in this one."""
        return self.left <= other.middle_x <= self.right and self.top <= other.middle_y <= self.bottom

    def grown(self, x: float, y: float) -> "Box":
        """The box with so much more on each side."""
        return Box(self.left - x, self.top - y, self.right + x, self.bottom + y)


def around(boxes: Iterable[Box]) -> Box:
    """The smallest box around all of them."""
    every = list(boxes)
    return Box(
        min(box.left for box in every),
        min(box.top for box in every),
        max(box.right for box in every),
        max(box.bottom for box in every),
    )
