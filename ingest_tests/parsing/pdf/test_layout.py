import numpy as np
import pytest

from ingest_assets.parsing.pdf.layout import CLASSES, HEIGHT, STRIDES, WIDTH, PageLayout, decode


def _grids() -> tuple[list[np.ndarray], list[np.ndarray]]:
    points = [-(-HEIGHT // stride) * -(-WIDTH // stride) for stride in STRIDES]
    scores = [np.zeros((count, len(CLASSES)), dtype=np.float32) for count in points]
    return scores, [np.zeros((count, 32), dtype=np.float32) for count in points]


def _point_at(distances: np.ndarray, point: int, steps: int) -> None:
    distances[point].reshape(4, 8)[:, steps] = 50  # all weight on one distance


def test_a_grid_point_becomes_a_box_around_its_centre() -> None:
    """The distributions give the distances of its edges."""
    scores, distances = _grids()
    scores[2][19 * 3 + 4, CLASSES.index("table")] = 0.9
    _point_at(distances[2], 19 * 3 + 4, steps=2)
    [region] = decode(scores, distances)
    assert region.label == "table"
    assert (region.left * WIDTH, region.top * HEIGHT) == pytest.approx(
        (4.5 * 32 - 64, 3.5 * 32 - 64), abs=0.01
    )
    assert (region.right * WIDTH, region.bottom * HEIGHT) == pytest.approx(
        (4.5 * 32 + 64, 3.5 * 32 + 64), abs=0.01
    )


def test_the_most_certain_of_overlapping_boxes_stays() -> None:
    """Neighbouring grid points detect the same region."""
    scores, distances = _grids()
    for point, score in ((1000, 0.6), (1001, 0.8)):
        scores[0][point, 0] = score
        _point_at(distances[0], point, steps=5)
    assert [round(region.score, 3) for region in decode(scores, distances)] == [0.8]


def test_a_blank_page_has_no_regions() -> None:
    """With the real model."""
    from PIL import Image

    assert PageLayout(threads=1).regions(Image.new("RGB", (595, 842), "white")) == []
