"""Providers by name: built-in ones, and those of installed packages."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest

from ingest_assets.core.errors import ConfigError, ContractBroken, ItemError
from ingest_assets.embedders import providers as registry
from ingest_assets.embedders.errors import ModelUnusable
from ingest_assets.embedders.providers import (
    close_dense,
    dense_factory,
    describe_dense,
    open_dense,
    resolve_dense,
)
from ingest_assets.settings.embeddings import DenseOptions
from ingest_tests.packages import offer_providers

MODULE = """
import numpy as np
from ingest_assets.settings.embeddings import DenseFacts

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

class Raises(Kind):
    def describe(self, options):
        raise ValueError("no such\\n  model")

class GivesADict(Kind):
    def describe(self, options):
        return {"dim": 2}

class GivesNoDim(Kind):
    def describe(self, options):
        return DenseFacts("lengths", "lengths", "2", None, None, True, {})

class GivesObjects(Kind):
    def describe(self, options):
        return DenseFacts("lengths", "lengths", 2, None, None, True, {"model": object()})

class CannotBeMade(Kind):
    def __init__(self):
        raise KeyError("LICENCE")

class OpensAnother(Kind):
    def open(self, options):
        other = Lengths()
        other.dim = 3
        return other

class Unlucky(Kind):
    def open(self, options):
        provider = Lengths()
        provider.embed = lambda texts, kind: 1 / 0
        return provider

kind = Kind()
shut = Shut()
nothing = 3
"""
PROVIDERS = {
    "lengths": "Kind",
    "ready": "kind",
    "shut": "shut",
    "nothing": "nothing",
    "broken": "missing",
    "local": "Kind",
    "raises": "Raises",
    "gives-a-dict": "GivesADict",
    "gives-no-dim": "GivesNoDim",
    "gives-objects": "GivesObjects",
    "cannot-be-made": "CannotBeMade",
    "opens-another": "OpensAnother",
    "unlucky": "Unlucky",
}


@pytest.fixture
def _package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package with valid and invalid providers."""
    monkeypatch.syspath_prepend(str(offer_providers(tmp_path / "site", "far-lengths", MODULE, PROVIDERS)))
    dense_factory.cache_clear()
    yield
    close_dense()
    dense_factory.cache_clear()
    sys.modules.pop("far_lengths", None)


@pytest.mark.usefixtures("_package")
@pytest.mark.parametrize("name", ["lengths", "ready"])
def test_an_installed_package_adds_a_provider(name: str) -> None:
    """As a class or an object, without a change here."""
    options = DenseOptions(provider=name)

    assert describe_dense(options).dim == 2
    np.testing.assert_array_equal(open_dense(options).embed(["abc"]), [[3, 1]])


@pytest.mark.usefixtures("_package")
def test_a_package_cannot_replace_a_built_in_provider() -> None:
    """Installing a package must not change the meaning of stored settings."""
    assert type(dense_factory("local")).__module__ == "ingest_assets.embedders.torch"


@pytest.mark.usefixtures("_package")
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("broken", "'broken' of package far-lengths .far_lengths:missing. cannot be loaded"),
        ("raises", "'raises' of package far-lengths .* failed .ValueError: no such model.. Fix the package"),
        ("gives-a-dict", r"far_lengths:GivesADict.: describe.. returned dict instead of DenseFacts"),
        ("gives-no-dim", "DenseFacts with dim = '2'"),
        ("gives-objects", "identity is not JSON"),
        ("cannot-be-made", "cannot be loaded .KeyError: 'LICENCE'"),
        ("unheard", "unknown provider 'unheard'. Known providers: auto, local, .*lengths"),
    ],
)
def test_an_invalid_provider_is_rejected_in_one_line(name: str, says: str) -> None:
    """The line names the package, or the known providers."""
    with pytest.raises(ConfigError, match=says) as raised:
        describe_dense(DenseOptions(provider=name))
    assert len(str(raised.value).splitlines()) == 1
    assert str(raised.value).startswith("embeddings.dense.provider: ")


@pytest.mark.usefixtures("_package")
def test_an_open_provider_must_match_its_description() -> None:
    """Tables were planned for another vector length."""
    says = "returned model_id 'lengths' with dim 3, but describe.. 'lengths' with 2"
    with pytest.raises(ContractBroken, match=says):
        open_dense(DenseOptions(provider="opens-another"))


@pytest.mark.usefixtures("_package")
def test_errors_of_a_packages_provider_name_the_package() -> None:
    """A bare `ZeroDivisionError` does not help; its code stays E_UNKNOWN."""
    with pytest.raises(ItemError, match=r"'unlucky' of package far-lengths .*ZeroDivisionError") as raised:
        open_dense(DenseOptions(provider="unlucky")).embed(["text"])
    assert raised.value.code == "E_UNKNOWN"


@pytest.mark.usefixtures("_package")
def test_an_entry_point_without_describe_and_open_is_rejected() -> None:
    """Otherwise it would fail in the middle of a run."""
    with pytest.raises(ConfigError, match=r"'nothing' of package far-lengths .* is not a provider"):
        dense_factory("nothing")


@pytest.mark.usefixtures("_package")
def test_a_process_has_one_provider_until_it_is_closed() -> None:
    """Threads share it; after closing, a new one is opened."""
    options = DenseOptions(provider="lengths")
    first = open_dense(options)

    assert open_dense(options) is first
    close_dense(options)
    assert first.provider.closed
    assert open_dense(options) is not first


@pytest.mark.usefixtures("_package")
def test_a_provider_that_cannot_be_opened_is_not_retried_for_every_document() -> None:
    """An attempt can take a minute, and a batch has hundreds of documents."""
    options = DenseOptions(provider="shut", model="some-model")

    for _ in range(3):
        with pytest.raises(ModelUnusable, match=r"'shut' of package .* open\(\) failed \(OSError: no such"):
            open_dense(options)
    assert dense_factory("shut").factory.tries == 1
    close_dense()
    with pytest.raises(ModelUnusable):
        open_dense(options)
    assert dense_factory("shut").factory.tries == 2


@pytest.mark.usefixtures("_package")
def test_a_forked_child_opens_its_own_provider() -> None:
    """The parent's threads and locks do not work there."""
    options = DenseOptions(provider="lengths")
    first = open_dense(options)
    child = os.fork()
    if child == 0:
        os._exit(0 if open_dense(options) is not first else 1)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_auto_is_resolved_without_loading_large_libraries() -> None:
    """Planning must be fast in a new process."""
    import subprocess

    code = (
        "import sys; from ingest_assets.embedders.providers import *\n"
        "from ingest_assets.settings.embeddings import DenseOptions\n"
        "print(describe_dense(DenseOptions(device='cpu')).provider,"
        " *({'torch', 'transformers', 'onnx', 'onnxruntime', 'tokenizers'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["onnx"]


def test_a_gpu_selects_torch() -> None:
    """Resolved options tell every worker."""
    assert resolve_dense(DenseOptions(device="cuda")).provider == "local"
    assert resolve_dense(DenseOptions(provider="onnx-int8")).provider == "onnx-int8"


def test_settings_that_change_no_vector_are_not_in_the_identity() -> None:
    """Otherwise a faster setting would make every table stale."""
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
