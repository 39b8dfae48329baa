"""Providers by name: this product's own, and those that installed packages offer."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest

from ingest_assets.embedders import registry
from ingest_assets.embedders.errors import ModelUnusable
from ingest_assets.embedders.registry import (
    close_dense,
    dense_kind,
    describe_dense,
    open_dense,
    resolve_dense,
)
from ingest_assets.model.embedding import DenseOptions
from ingest_assets.model.errors import ConfigError

MODULE = """
import numpy as np
from ingest_assets.model.embedding import DenseFacts

class Lengths:
    model_id, dim, closed = "lengths", 2, False
    def embed(self, texts, kind="passage"):
        return np.array([[len(text), 1] for text in texts], dtype=np.float32)
    def close(self):
        self.closed = True

class Kind:
    def describe(self, options):
        return DenseFacts("lengths", "lengths", 2, None, None, True, {"model": "lengths"}, {})
    def open(self, options):
        return Lengths()

class Shut(Kind):
    tries = 0
    def open(self, options):
        self.tries += 1
        raise OSError("no such device")

kind = Kind()
shut = Shut()
nothing = 3
"""
ENTRY_POINTS = """[ingest_assets.dense_providers]
lengths = far_lengths:Kind
ready = far_lengths:kind
shut = far_lengths:shut
nothing = far_lengths:nothing
broken = far_lengths:missing
local = far_lengths:Kind
"""


@pytest.fixture
def _package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package as pip installs it: a module, and its entry points in its `.dist-info`."""
    (tmp_path / "far_lengths.py").write_text(MODULE)
    info = tmp_path / "far_lengths-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: far-lengths\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.syspath_prepend(str(tmp_path))
    dense_kind.cache_clear()
    yield
    close_dense()
    dense_kind.cache_clear()
    sys.modules.pop("far_lengths", None)


@pytest.mark.usefixtures("_package")
@pytest.mark.parametrize("name", ["lengths", "ready"])
def test_an_installed_package_adds_a_provider(name: str) -> None:
    """By a class or by an object, with no change here."""
    options = DenseOptions(provider=name)

    assert describe_dense(options).dim == 2
    np.testing.assert_array_equal(open_dense(options).embed(["abc"]), [[3, 1]])


@pytest.mark.usefixtures("_package")
def test_a_package_cannot_take_our_names() -> None:
    """Installing something must not change what stored settings mean."""
    assert type(dense_kind("local")).__module__ == "ingest_assets.embedders.local"


@pytest.mark.usefixtures("_package")
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("broken", "'broken' of package far-lengths cannot be loaded"),
        ("unheard", "no provider 'unheard'; there are auto, local, .*lengths"),
    ],
)
def test_a_provider_that_is_none_is_refused_in_one_line(name: str, says: str) -> None:
    """The line says what there is, or whose fault it is."""
    with pytest.raises(ConfigError, match=says) as raised:
        describe_dense(DenseOptions(provider=name))
    assert len(str(raised.value).splitlines()) == 1


@pytest.mark.usefixtures("_package")
def test_an_entry_point_without_the_two_calls_is_refused() -> None:
    """Before it fails in the middle of a run."""
    with pytest.raises(ConfigError, match="'nothing' is no provider"):
        dense_kind("nothing")


@pytest.mark.usefixtures("_package")
def test_a_process_has_one_provider_until_it_is_closed() -> None:
    """Threads share it; whoever asks after it was closed has a new one."""
    options = DenseOptions(provider="lengths")
    first = open_dense(options)

    assert open_dense(options) is first
    close_dense(options)
    assert first.closed
    assert open_dense(options) is not first


@pytest.mark.usefixtures("_package")
def test_a_provider_that_cannot_be_opened_is_not_tried_again_for_every_document() -> None:
    """Each try may take a minute, and a batch has hundreds; the settings' owner is told what is wrong."""
    options = DenseOptions(provider="shut", model="some-model")

    for _ in range(3):
        with pytest.raises(ModelUnusable, match=r"provider shut cannot open some-model \(OSError: no such"):
            open_dense(options)
    assert dense_kind("shut").tries == 1
    close_dense()
    with pytest.raises(ModelUnusable):
        open_dense(options)
    assert dense_kind("shut").tries == 2


@pytest.mark.usefixtures("_package")
def test_a_forked_child_opens_its_own() -> None:
    """Threads and locks of the parent do not work there."""
    options = DenseOptions(provider="lengths")
    first = open_dense(options)
    child = os.fork()
    if child == 0:
        os._exit(0 if open_dense(options) is not first else 1)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_auto_is_decided_once_and_with_nothing_heavy_loaded() -> None:
    """Planning must be quick: in a process that has loaded nothing else."""
    import subprocess

    code = (
        "import sys; from ingest_assets.embedders.registry import *\n"
        "from ingest_assets.model.embedding import DenseOptions\n"
        "print(describe_dense(DenseOptions(device='cpu')).provider,"
        " *({'torch', 'transformers', 'onnx', 'onnxruntime', 'tokenizers'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["onnx"]


def test_a_graphics_card_means_torch() -> None:
    """Resolved options say so to every worker."""
    assert resolve_dense(DenseOptions(device="cuda")).provider == "local"
    assert resolve_dense(DenseOptions(provider="onnx-int8")).provider == "onnx-int8"


def test_what_changes_no_vector_is_not_in_the_identity() -> None:
    """Else a faster setting would make every table stale."""
    plain = describe_dense(DenseOptions(provider="onnx"))
    changes = {
        "batch_tokens": 7,
        "exports_path": "x",
        "device": "cpu",
        "query_prefix": "q",
        "truncation": "refuse",
    }
    other = describe_dense(DenseOptions(provider="onnx", **changes))
    assert other.identity == plain.identity
    for change in ({"dim": 8}, {"max_tokens": 99}, {"pooling": "cls"}, {"passage_prefix": "p"}):
        assert describe_dense(DenseOptions(provider="onnx", **change)).identity != plain.identity
    assert registry.BUILT_IN.keys() >= {"local", "onnx", "onnx-int8", "sentence-transformers", "openai"}
