"""What can be queued, and how an invalid line is explained."""

import json

import pytest
from pydantic import ValidationError

from ingest_assets.intake.queue.artifacts import NewArtifact
from ingest_assets.settings.intake import QueueOptions


def test_a_line_of_a_list_is_an_artifact() -> None:
    """The resolver follows from url or path."""
    page = NewArtifact.model_validate_json('{"id": "p", "url": "https://a.org/x", "meta": {"k": [1]}}')
    file = NewArtifact.model_validate_json('{"id": "f", "path": "/x.md", "resolver": "mine"}')

    rows = [each.as_row(1.0) for each in (page, file)]

    assert [row["resolver"] for row in rows] == ["http", "mine"]
    assert [(row["state"], row["attempts"], row["not_before"]) for row in rows] == [("queued", 0, 1.0)] * 2


def test_the_canonical_url_is_the_default_id() -> None:
    """Two spellings of one URL are one document; a null counts as missing."""
    spellings = [
        '{"url": "https://A.org:443/x#part"}',
        '{"url": " https://a.org/x", "id": null, "meta": null}',
    ]

    ids = {NewArtifact.model_validate_json(line).artifact_id for line in spellings}

    assert ids == {"https://a.org/x"}


def test_metadata_is_kept_down_to_its_deepest_level() -> None:
    """A hundred levels, including the outermost."""
    deepest = json.loads("[" * 99 + "]" * 99)

    row = NewArtifact(artifact_id="a", path="x", meta={"n": deepest}).as_row(1.0)

    assert json.loads(row["meta"]) == {"n": deepest}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"path": "x"}', "id"),
        ('{"id": "", "path": "x"}', "at least 1 character"),
        ('{"id": "a"}', "either url or path"),
        ('{"id": "a", "url": "https://a.org", "path": "x"}', "either url or path"),
        ('{"id": "a", "url": "ftp://a.org"}', "only http and https"),
        ('{"url": "ftp://a.org"}', "only http and https"),
        ('{"id": "a", "url": "https:///x"}', "no valid host"),
        ('{"id": "a", "url": "https://[::1"}', "not a valid URL"),
        ('{"id": "a", "url": "https://me:secret@a.org/"}', "https://a.org/ contains a user name or password"),
        ('{"id": "a", "path": "x", "meta": {"n": 1e999}}', "valid JSON, without NaN"),
        ('{"id": "a", "path": "x", "meta": {"n": %s}}' % ("[" * 100 + "]" * 100), "100 levels deep"),
        ('{"id": "a", "path": "x", "not_before": 1714560000000}', "less than"),
        ('{"id": "a", "path": "x", "not_before": 1e999}', "finite"),
        ('{"id": "a", "path": "x", "resolver": "two words"}', "resolver"),
        ('{"id": "a", "path": "x", "metadata": {}}', "Extra inputs"),
        ('{"id": "a\\u0000", "path": "x"}', "NUL"),
        ('{"id": 5, "path": "x"}', "valid string"),
        ('{"id": "%s", "path": "x"}' % ("é" * 1001), "2000 bytes"),
        ('{"id": "a", "path": "x"', "JSON"),
        ("[]", "object"),
    ],
)
def test_an_invalid_line_has_a_reason(line: str, reason: str) -> None:
    """Users correct lists by these messages."""
    with pytest.raises(ValidationError, match=reason):
        NewArtifact.model_validate_json(line)


@pytest.mark.parametrize(
    "wrong",
    [
        {"lease_ttl_seconds": 29},
        {"lease_ttl_seconds": 60, "heartbeat_seconds": 60},
        {"heartbeat_seconds": 4},
        {"max_workers": 257},
        {"max_per_host": 0},
        {"max_per_resolver": {"a": 0}},
        {"max_per_resolver": {"two words": 1}},
        {"max_job_attempts": 0},
        {"quotas": {"a": {"rate": 0, "per_seconds": 1}}},
        {"quotas": {"a": {"rate": 1, "per_seconds": 0}}},
        {"workers": 3},
    ],
)
def test_options_out_of_range_are_refused(wrong: dict[str, object]) -> None:
    """So are unknown keys, and a lease shorter than its heartbeat."""
    with pytest.raises(ValidationError):
        QueueOptions(**wrong)


def test_the_defaults_are_as_documented() -> None:
    """And valid."""
    assert QueueOptions().model_dump() == {
        "max_workers": 8,
        "max_per_host": 4,
        "max_per_resolver": {},
        "lease_ttl_seconds": 600,
        "heartbeat_seconds": 30,
        "max_job_attempts": 3,
        "retry_backoff_seconds": 60,
        "jitter_seconds": 15,
        "refresh_days": 0,
        "quotas": {},
    }


def test_a_host_has_one_lane_for_all_spellings() -> None:
    """An international name and its ASCII form are the same server."""
    hosts = {
        NewArtifact(url=url).host for url in ("https://bücher.example/a", "https://xn--bcher-kva.example/b")
    }

    assert hosts == {"xn--bcher-kva.example"}
