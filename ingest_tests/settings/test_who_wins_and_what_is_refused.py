"""The settings tree: the order of sources, and the errors for invalid values."""

from pathlib import Path

import pytest

from ingest_assets.core.errors import ConfigError
from ingest_assets.settings.chunks import resolve_options
from ingest_assets.settings.read import home_folder, read_settings, settings_from_json, settings_to_json


def error_lines(home: Path, toml: str = "") -> list[str]:
    """Return the lines of the error for a home's settings."""
    if toml:
        (home / "ingest.toml").write_text(toml, encoding="utf-8")
    with pytest.raises(ConfigError) as raised:
        read_settings(home)
    return str(raised.value).splitlines()


def test_a_home_without_a_file_has_the_defaults(home: Path) -> None:
    """The embedded default needs no configuration."""
    settings = read_settings(home)

    assert resolve_options(settings.chunks).max_tokens == 256
    assert settings.batches.max_documents == 500
    assert settings.stages.doctags.policy == "cpu"


def test_the_file_wins_over_defaults_and_the_environment_over_the_file(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Defaults < ingest.toml < INGEST_*; other keys of the section keep the file's values."""
    (home / "ingest.toml").write_text(
        "[batches]\nmax_documents = 7\nmax_mebibytes = 9\n[chunks]\nmax_tokens = 64\n"
    )
    monkeypatch.setenv("INGEST_BATCHES__MAX_DOCUMENTS", "3")

    settings = read_settings(home)

    assert settings.batches.max_documents == 3
    assert settings.batches.max_mebibytes == 9
    assert settings.chunks.max_tokens == 64
    assert resolve_options(settings.chunks).merge_peers is True


def test_a_stage_section_keeps_the_stages_other_defaults(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`[stages.doctags] workers = 4` must not turn killable processes into threads."""
    (home / "ingest.toml").write_text("[stages.doctags]\nworkers = 4\n")
    monkeypatch.setenv("INGEST_STAGES__DOCTAGS__RETRIES", "2")
    monkeypatch.setenv("INGEST_STAGES__DENSE__WORKERS", "1")

    stages = read_settings(home).stages

    assert (stages.doctags.workers, stages.doctags.retries) == (4, 2)
    assert (stages.doctags.policy, stages.doctags.per_item_timeout_s) == ("cpu", 900)
    assert stages.doctags.memory_per_worker_mib == 2048
    assert (stages.dense.policy, stages.dense.retries, stages.dense.workers) == ("gpu", 1, 1)


@pytest.mark.parametrize(
    ("toml", "key", "expected", "got"),
    [
        ("[stages.doctags]\nworkers = -1", "stages.doctags.workers", "greater than or equal to 0", "-1"),
        ("[chunks]\nmax_tokens = 'many'", "chunks.max_tokens", "valid integer", "'many'"),
        ("[stages.dense]\npolicy = 'tpu'", "stages.dense.policy", "'io', 'cpu' or 'gpu'", "'tpu'"),
        ("[stages.dense]\nmax_failed_share = 1.5", "stages.dense.max_failed_share", "equal to 1", "1.5"),
        ("[parsing]\nocr = 'perhaps'", "parsing.ocr", "valid boolean", "'perhaps'"),
        ("[chunks]\nmax_tokens = -5", "chunks.max_tokens", "at least 16, or 0 for the profile's", "-5"),
        ("[embeddings.dense]\nmodel = ''", "embeddings.dense.model", "should name a model", "''"),
        ("[embeddings.dense]\nbatch_tokens = 0", "embeddings.dense.batch_tokens", "equal to 1", "0"),
        ("[automation]\nsettle_seconds = -1", "automation.settle_seconds", "equal to 0", "-1"),
        ("[sources.a]\npath = 3", "sources.a.path", "path", "3"),
        ("chunks = 5", "chunks", "dictionary", "5"),
        ("[sources.'a b']\npath = 'x'", "sources.a b", "match", "'a b'"),
    ],
)
def test_the_error_names_file_key_expectation_and_value(
    home: Path, toml: str, key: str, expected: str, got: str
) -> None:
    """One line is enough to fix the setting."""
    (line,) = error_lines(home, toml)

    assert line.startswith(f"{home / 'ingest.toml'}: {key}")
    assert expected in line
    assert line.endswith(f"got {got}.")


def test_each_error_has_its_own_line(home: Path) -> None:
    """One run reports all invalid settings."""
    lines = error_lines(home, "[chunks]\nmax_tokens = 1\nsize = 3\n[pools]\ngpu = 0\n")

    assert [line.removeprefix(f"{home}/ingest.toml: ").split(":")[0] for line in lines] == [
        "chunks.max_tokens",
        "chunks.size",
        "pools.gpu",
    ]


@pytest.mark.parametrize(
    ("toml", "key", "known"),
    [
        ("[limits]\nmax_tokens = 64", "limits", ["automation", "chunks", "sources", "stages"]),
        ("[chunks]\nwords = 128", "chunks.words", ["max_tokens", "merge_peers"]),
        ("[stages.doctags]\nfast = 1", "stages.doctags.fast", ["policy", "workers", "retries"]),
        ("[embeddings.dense]\nwhich = 1", "embeddings.dense.which", ["batch_tokens", "model"]),
        ("[sources.a]\npath = 'x'\nglob = '*'", "sources.a.glob", ["exclude", "path"]),
    ],
)
def test_an_unknown_key_lists_the_known_ones(home: Path, toml: str, key: str, known: list[str]) -> None:
    """A misspelt key must not be ignored."""
    (line,) = error_lines(home, toml)

    assert line.startswith(f"{home / 'ingest.toml'}: {key}: no such setting; known here: ")
    assert set(known) <= set(line.partition("known here: ")[2].rstrip(".").split(", "))


@pytest.mark.parametrize(
    ("toml", "key", "close"),
    [
        ("[chunk]\nmax_tokens = 64", "chunk", "chunks"),
        ("[chunks]\nmax_token = 64", "chunks.max_token", "max_tokens"),
        ("[stages.doctags]\nworker = 1", "stages.doctags.worker", "workers"),
    ],
)
def test_a_misspelt_key_names_the_key_that_was_meant(home: Path, toml: str, key: str, close: str) -> None:
    """A list of twenty keys is for those that resemble none."""
    (line,) = error_lines(home, toml)

    assert line == f"{home / 'ingest.toml'}: {key}: no such setting; did you mean {close!r}?"


def test_an_unknown_variable_is_rejected(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`INGEST_CHUNK__MAX_TOKENS` must not be ignored silently."""
    monkeypatch.setenv("INGEST_CHUNK__MAX_TOKENS", "64")

    (line,) = error_lines(home)

    assert line.startswith(
        "INGEST_CHUNK__MAX_TOKENS: no such setting; sections are admission, automation, batches"
    )


@pytest.mark.parametrize(
    ("variable", "value", "expected"),
    [
        ("INGEST_CHUNKS__MAX_TOKENS", "1", "at least 16, or 0 for the profile's; got '1'."),
        ("INGEST_CHUNKS__SIZE", "1", "no such setting; known here: max_tokens, merge_peers, "),
        ("INGEST_CHUNKS", "256", "dictionary"),
        ("INGEST_CHUNKS", "many", "many"),
        ("INGEST_CHUNKS", '{"max_tokens": 1}', "at least 16, or 0 for the profile's; got 1."),
        ("ingest_chunks__max_tokens", "1", "at least 16, or 0 for the profile's; got '1'."),
    ],
)
def test_the_error_names_the_variable(
    home: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, expected: str
) -> None:
    """The invalid value is in the environment, so the error must not name the file."""
    monkeypatch.setenv(variable, value)

    (line,) = error_lines(home)

    assert line.startswith(f"{variable}: ")
    assert expected in line


def test_an_invalid_cron_expression_is_rejected(home: Path) -> None:
    """Dagster would reject it later, without the name of the setting."""
    (line,) = error_lines(home, "[automation]\nreconcile_cron = 'every night'")

    assert line.startswith(f"{home / 'ingest.toml'}: automation.reconcile_cron: ")


@pytest.mark.parametrize("content", [b"[chunks", b"\xff\xfe"])
def test_a_file_that_is_not_toml_is_rejected_in_one_line(home: Path, content: bytes) -> None:
    """The line names the file."""
    (home / "ingest.toml").write_bytes(content)

    (line,) = error_lines(home)

    assert line.startswith(f"{home / 'ingest.toml'}: not valid TOML")


def test_a_settings_file_that_cannot_be_read_is_rejected_in_one_line(home: Path) -> None:
    """Here it is a folder, which cannot be read as a file."""
    (home / "ingest.toml").mkdir()

    (line,) = error_lines(home)

    assert line.startswith(f"{home / 'ingest.toml'}: cannot be read")


@pytest.mark.parametrize("file", ["ingest.toml", "state/ledger.sqlite"])
def test_the_home_is_the_nearest_parent_folder_with_a_homes_file(
    home: Path, monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    """Commands work in any folder of a project."""
    (home / file).parent.mkdir(exist_ok=True)
    (home / file).touch()
    near = home / "near"
    deep = near / "a" / "b"
    deep.mkdir(parents=True)
    monkeypatch.chdir(deep)

    outer = home_folder({})
    (near / file).parent.mkdir(exist_ok=True)
    (near / file).touch()
    inner = home_folder({})

    assert (outer, inner) == (home, near)


def test_without_such_a_file_the_home_is_the_current_folder(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A first run in an empty folder creates its home there."""
    monkeypatch.chdir(home)

    assert home_folder({"INGEST_HOME": ""}) == home


def test_the_variable_decides_the_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """INGEST_HOME overrides these files; a relative path starts at the current folder."""
    (home / "ingest.toml").touch()
    monkeypatch.chdir(home)

    assert home_folder({"INGEST_HOME": "elsewhere"}) == home / "elsewhere"


def test_settings_from_json_are_equal_and_ignore_variables(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unset keys stay unset, so that a stage still uses `[execution]`."""
    toml = "[execution]\nbackend = 'ray'\n[stages.doctags.execution]\nnum_cpus = 2\n[sources.a]\npath = 'ü'\n"
    (home / "ingest.toml").write_text(toml, encoding="utf-8")
    monkeypatch.setenv("INGEST_STAGES__DOCTAGS__RETRIES", "2")
    settings = read_settings(home)
    text = settings_to_json(settings)
    monkeypatch.setenv("INGEST_STAGES__DOCTAGS__RETRIES", "5")

    again = settings_from_json(text)

    assert again.model_dump() == settings.model_dump()
    assert again.stages.doctags.execution.model_fields_set == {"num_cpus"}
    assert settings_to_json(again) == text


def test_settings_are_current_at_each_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server reads them for every step, and a person can edit the file."""
    file = tmp_path / "ingest.toml"
    values = [read_settings(tmp_path).chunks.max_tokens]
    for tokens in (100, 120):
        file.write_text(f"[chunks]\nmax_tokens = {tokens}\n")
        values += [read_settings(tmp_path).chunks.max_tokens, read_settings(tmp_path).chunks.max_tokens]
    monkeypatch.setenv("INGEST_CHUNKS__MAX_TOKENS", "140")
    values.append(read_settings(tmp_path).chunks.max_tokens)
    monkeypatch.delenv("INGEST_CHUNKS__MAX_TOKENS")
    file.unlink()
    values.append(read_settings(tmp_path).chunks.max_tokens)

    assert values == [None, 100, 100, 120, 120, 140, None]
