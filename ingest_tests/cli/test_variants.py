"""The variants that are compared, and the settings they give the stages."""

from pathlib import Path

import pytest

from ingest_assets.app import validate as variants
from ingest_assets.app.home import Home
from ingest_assets.app.validate import INLINE, Variant, choose_variants, settings_of
from ingest_assets.backends import kind_of
from ingest_assets.core.errors import ConfigError
from ingest_assets.core.layout import Layout
from ingest_assets.settings.read import read_settings, settings_from_json, settings_to_json

SMALL = "[stages]\ndoctags.workers = 2\nchunks.workers = 1\ndense.workers = 1\n"


@pytest.fixture(autouse=True)
def _no_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(variants, "has_cuda", lambda: False)
    monkeypatch.setattr(variants, "has_ray", lambda: True)


def home_with(folder: Path, toml: str = SMALL) -> Home:
    """Return a home with these settings."""
    (folder / "ingest.toml").write_text(toml, encoding="utf-8")
    return Home(Layout(folder), read_settings(folder))


def run_by(home: Home, variant: Variant) -> Home:
    """Return the home as a variant runs it, after its settings went through JSON."""
    return Home(home.layout, settings_from_json(settings_to_json(settings_of(home, variant))))


def names(chosen: list[Variant]) -> list[str]:
    """Return their names, in order."""
    return [variant.name for variant in chosen]


def test_by_default_every_backend_runs_with_one_two_and_more_workers(tmp_path: Path) -> None:
    """Inline first: the others are compared with it."""
    assert names(choose_variants(home_with(tmp_path), None, None)) == [
        "inline-1",
        "threads-1",
        "threads-2",
        "threads-4",
        "processes-1",
        "processes-2",
        "processes-4",
        "ray-1",
        "ray-2",
    ]


def test_the_number_that_the_home_would_choose_is_added(tmp_path: Path) -> None:
    """The proof should cover the number that really runs."""
    home = home_with(tmp_path, SMALL.replace("chunks.workers = 1", "chunks.workers = 7"))

    assert names(choose_variants(home, "processes", None))[1:] == [
        "processes-1",
        "processes-2",
        "processes-4",
        "processes-7",
    ]


def test_numbers_that_are_given_are_the_only_ones(tmp_path: Path) -> None:
    """On Ray too; inline stays at one."""
    chosen = choose_variants(home_with(tmp_path), "ray, threads", "3,1")

    assert names(chosen) == ["inline-1", "threads-1", "threads-3", "ray-1", "ray-3"]


def test_ray_is_listed_where_it_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A skipped backend must not look as if it was compared."""
    monkeypatch.setattr(variants, "has_ray", lambda: False)

    chosen = choose_variants(home_with(tmp_path), None, None)

    assert [variant.name for variant in chosen if not variant.is_installed] == ["ray-1", "ray-2"]


@pytest.mark.parametrize(
    ("only", "workers", "line"),
    [
        ("thread", None, "--only: unknown backend 'thread'. Use inline, threads, processes, ray."),
        ("inline", None, "--only: the other backends are compared with inline"),
        (None, "1,0", "--workers: must be numbers from 1 to 256, such as 1,2,4; got '1,0'."),
        (None, "two", "--workers: must be numbers"),
        (None, "", "--workers: must be numbers"),
        (None, "257", "--workers: must be numbers"),
    ],
)
def test_variants_that_cannot_run_are_refused(
    tmp_path: Path, only: str | None, workers: str | None, line: str
) -> None:
    """One line with what was expected."""
    with pytest.raises(ConfigError) as raised:
        choose_variants(home_with(tmp_path), only, workers)

    assert str(raised.value).startswith(line)


@pytest.mark.parametrize("kind", ["inline", "threads", "processes", "ray"])
def test_every_stage_runs_as_the_variant_says(tmp_path: Path, kind: str) -> None:
    """Whatever the home's settings say about a stage, including its cap."""
    toml = (
        "[execution]\nrun_on = 'processes'\nmax_workers = 1\n"
        "[stages.doctags]\nworkers = 9\n[stages.doctags.execution]\nbackend = 'ray'\nnum_cpus = 3\n"
        "[features]\nparallel = false\nrequire_parity = true\n"
    )
    home = run_by(home_with(tmp_path, toml), Variant(kind, 1 if kind == "inline" else 3))

    options = {stage: home.options(stage) for stage in home.stages}
    assert {kind_of(each) for each in options.values()} == {kind}
    assert {each.workers for each in options.values()} == {1 if kind == "inline" else 3}
    assert {each.execution.max_workers for each in options.values()} == {0}
    assert (options["doctags"].execution.num_cpus, options["chunks"].execution.num_cpus) == (3, None)
    assert (home.settings.features.parallel, home.settings.features.require_parity) == (True, False)


def test_a_gpu_stage_stays_on_threads_where_there_is_a_gpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several processes would each load the model onto it; the table notes this."""
    monkeypatch.setattr(variants, "has_cuda", lambda: True)
    home = home_with(tmp_path)

    chosen = choose_variants(home, "processes", "2")
    ran = run_by(home, chosen[1])

    assert [variant.note for variant in chosen] == ["", "gpu stages on threads"]
    assert kind_of(ran.options("dense")) == "threads"
    assert kind_of(ran.options("doctags")) == "processes"


def test_the_rows_are_decided_by_the_homes_own_settings(tmp_path: Path) -> None:
    """Retries, limits and sizes are kept; watched folders are not, because the input is given."""
    toml = (
        "[chunks]\nmax_tokens = 99\n[batches]\nmax_documents = 3\n[stages.doctags]\nretries = 4\n"
        "[sources.a]\npath = 'x'\n[embeddings.dense]\nmodel = 'models/mine'\n"
    )
    (tmp_path / "models" / "mine").mkdir(parents=True)
    home = home_with(tmp_path, toml)

    ran = settings_of(home, INLINE)

    assert (ran.chunks.max_tokens, ran.batches.max_documents, ran.stages.doctags.retries) == (99, 3, 4)
    assert ran.sources == {}
    assert ran.embeddings.dense.model == str(tmp_path / "models" / "mine")
