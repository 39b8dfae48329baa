"""A vision model reads the pages: real HTTP, real Docling, and every kind of server failure."""

import pickle
import re

import pytest

from ingest_assets.core.errors import ItemError
from ingest_assets.parsing import vlm as asking
from ingest_assets.parsing.engines import choose_engine
from ingest_assets.parsing.errors import (
    EngineUnavailable,
    VlmAnswerUnusable,
    VlmBusy,
    VlmDenied,
    VlmRefused,
    VlmTimeout,
    VlmUnreachable,
)
from ingest_assets.parsing.reader import DocumentReader
from ingest_assets.settings.parsing import ParsingOptions, VlmOptions
from ingest_tests.parsing.conftest import Read
from ingest_tests.parsing.documents import pdf
from ingest_tests.parsing.vision_server import Asked, Reply, Script, answering, refused, said

KEY = "sk-must-stay-secret"
ONE_PAGE = pdf([[(72, 760, 20, "Swarms")]])
SWARMS = said(
    "<doctag><section_header_level_1><loc_60><loc_40><loc_200><loc_60>Swarms</section_header_level_1>"
    "<text><loc_60><loc_80><loc_400><loc_100>A swarm leaves in May.</text></doctag>"
)


def _reader(url: str, **options: object) -> DocumentReader:
    parsing = ParsingOptions(pdf="vlm", vlm=VlmOptions(url=url, model="granite-docling", **options))
    return DocumentReader(parsing, 1, choose_engine(parsing))


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "PAUSE_SECONDS", 0.01)


def _failure(read: Read, script: Script, **options: object) -> tuple[ItemError, int]:
    """Read one page; return the error and the number of requests."""
    with answering(script) as server, pytest.raises(ItemError) as failure:
        read("a.pdf", ONE_PAGE, _reader(server.url, **options))
    return failure.value, len(server.asked)


def test_doctags_become_the_document(read: Read):
    """Headings and texts are at the model's positions."""
    with answering(lambda number, asked: SWARMS) as server:
        parsed = read("swarms.pdf", ONE_PAGE, _reader(server.url))

    assert parsed.parser == "docling/pdf-vlm"
    assert (parsed.pages, parsed.texts, parsed.title) == (1, 2, "Swarms")
    assert "A swarm leaves in May." in parsed.doctags
    assert parsed.warnings == ()


def test_markdown_becomes_the_document(read: Read):
    """With tables, and inside a fence, which models often add."""
    table = "| hive | kg |\n|---|---|\n| 3 | 41 |"
    with answering(lambda number, asked: said(f"```markdown\n# Swarms\n\nIn May.\n\n{table}\n```")) as server:
        parsed = read("swarms.pdf", ONE_PAGE, _reader(server.url, response_format="markdown"))

    assert (parsed.pages, parsed.tables, parsed.title) == (1, 1, "Swarms")


def test_an_image_is_a_page_too(read: Read, tmp_path):
    """For example a photograph of notes."""
    from PIL import Image

    Image.new("RGB", (400, 300), "white").save(tmp_path / "note.png")
    with answering(lambda number, asked: SWARMS) as server:
        parsed = read("note.png", tmp_path / "note.png", _reader(server.url))

    assert parsed.parser == "docling/image-vlm"
    assert parsed.title == "Swarms"


def test_requests_follow_the_settings(read: Read, monkeypatch: pytest.MonkeyPatch):
    """Model, prompt, image, limits and the key."""
    monkeypatch.setenv("VLM_KEY", KEY)
    options = {"api_key_env": "VLM_KEY", "prompt": "Read!", "max_tokens": 99, "image_scale": 0.5}
    with answering(lambda number, asked: SWARMS) as server:
        read("swarms.pdf", ONE_PAGE, _reader(server.url, **options))

    (asked,) = server.asked
    assert asked.path == "/v1/chat/completions"
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.body["model"] == "granite-docling"
    assert (asked.body["max_tokens"], asked.body["temperature"]) == (99, 0)
    assert asked.body["messages"][0]["content"][1] == {"type": "text", "text": "Read!"}
    assert asked.picture.size == (298, 421)  # half of a page of 595 by 842 points


def test_no_key_is_sent_without_the_setting(read: Read):
    """Even if one is in the environment."""
    with answering(lambda number, asked: SWARMS) as server:
        read("swarms.pdf", ONE_PAGE, _reader(server.url))

    assert "authorization" not in server.asked[0].headers


def test_concurrent_requests_keep_the_order_of_pages(read: Read):
    """Answers may be late; the limit on concurrency holds."""
    pages = pdf([[(72, 760 - 30 * line, 20, "Swarm") for line in range(number + 1)] for number in range(6)])

    def darkness(number: int, asked: Asked) -> Reply:
        dark = asked.picture.convert("L").histogram()[0]
        reply = said(f"<doctag><text>{dark:06d}</text></doctag>")
        return Reply(reply.body, seconds=0.4 if number == 0 else 0.1)

    with answering(darkness) as server:
        parsed = read("a.pdf", pages, _reader(server.url, concurrency=3))

    found = re.findall(r"\d{6}", parsed.doctags)
    assert found == sorted(set(found))
    assert (parsed.pages, len(found)) == (6, 6)
    assert 1 < server.most_at_once <= 3


def test_a_request_to_a_busy_server_is_retried(read: Read):
    """Too many requests are a temporary failure."""
    with answering(lambda number, asked: refused(429, Retry_After="0") if number < 2 else SWARMS) as server:
        parsed = read("swarms.pdf", ONE_PAGE, _reader(server.url))

    assert parsed.title == "Swarms"
    assert len(server.asked) == 3


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_a_server_that_stays_busy_is_a_retryable_failure(status: int, read: Read):
    """After a few attempts, the stage retries later."""
    error, questions = _failure(read, lambda number, asked: refused(status))

    assert isinstance(error, VlmBusy)
    assert (error.category, error.retryable, questions) == ("provider", True, asking.ATTEMPTS)
    assert f"status {status}" in str(error)


def test_the_wait_for_a_busy_server_is_limited(read: Read, monkeypatch: pytest.MonkeyPatch):
    """A header must not block a worker for a day."""
    monkeypatch.setattr(asking, "MAX_PAUSE_SECONDS", 0.01)

    error, questions = _failure(read, lambda number, asked: refused(503, Retry_After="86400"))

    assert isinstance(error, VlmBusy)
    assert questions == asking.ATTEMPTS


@pytest.mark.parametrize("status", [401, 403])
def test_a_wrong_key_is_a_config_error(status: int, read: Read, monkeypatch: pytest.MonkeyPatch):
    """It is not retried, which might lock the account."""
    monkeypatch.setenv("VLM_KEY", KEY)

    error, questions = _failure(read, lambda number, asked: refused(status), api_key_env="VLM_KEY")

    assert isinstance(error, VlmDenied)
    assert (error.category, error.retryable, questions) == ("config", False, 1)
    assert KEY not in str(error) + repr(error.detail)


@pytest.mark.parametrize("status", [400, 404, 413, 422])
def test_a_rejected_request_is_a_config_error(status: int, read: Read):
    """For example an unknown model."""
    error, questions = _failure(read, lambda number, asked: refused(status))

    assert isinstance(error, VlmRefused)
    assert (error.category, error.retryable, questions) == ("config", False, 1)


def test_a_redirect_is_not_followed(read: Read, monkeypatch: pytest.MonkeyPatch):
    """The key is only for the configured address."""
    monkeypatch.setenv("VLM_KEY", KEY)
    with answering(lambda number, asked: SWARMS) as other:
        error, _ = _failure(
            read, lambda number, asked: refused(307, Location=other.url), api_key_env="VLM_KEY"
        )

    assert isinstance(error, VlmRefused)
    assert other.asked == []


def test_a_timeout_is_a_retryable_failure(read: Read):
    """Each request has its limit."""
    slow = Reply(SWARMS.body, seconds=0.6)

    error, questions = _failure(read, lambda number, asked: slow, timeout_seconds=0.2)

    assert isinstance(error, VlmTimeout)
    assert (error.category, error.retryable, questions) == ("timeout", True, asking.ATTEMPTS)


def test_an_unreachable_server_is_a_retryable_failure(read: Read):
    """It may be starting."""
    with answering(lambda number, asked: SWARMS) as server:
        url = server.url

    with pytest.raises(VlmUnreachable) as failure:
        read("a.pdf", ONE_PAGE, _reader(url))

    assert (failure.value.category, failure.value.retryable) == ("provider", True)


@pytest.mark.parametrize(
    "reply",
    [
        Reply(b"<html>Please log in</html>"),
        Reply(b""),
        Reply(b"{}"),
        Reply(b'{"choices": []}'),
        Reply(b'{"choices": [{"message": null}]}'),
        Reply(b'{"choices": [{"message": {"content": 7}}]}'),
        Reply(b"[1, 2]"),
        Reply(b"\xff\xfe\x00"),
    ],
    ids=lambda reply: repr(reply.body[:34]),
)
def test_an_answer_that_is_no_completion_is_a_server_failure(reply: Reply, read: Read):
    """A proxy's page may have status 200; the document is not the cause."""
    error, questions = _failure(read, lambda number, asked: reply)

    assert isinstance(error, VlmAnswerUnusable)
    assert (error.code, error.category, questions) == ("E_PARSE_VLM_ANSWER", "provider", 1)


@pytest.mark.parametrize("text", ["", "   ", None, "I am sorry, I cannot read this."])
def test_a_document_without_a_usable_answer_fails(text: str | None, read: Read):
    """An empty row would look like an empty document."""
    error, _ = _failure(read, lambda number, asked: said(text))

    assert isinstance(error, VlmAnswerUnusable)
    assert "no usable answer for any of the 1 pages" in str(error)


def test_an_answer_in_parts_is_joined(read: Read):
    """Some servers send a list."""
    parts = [{"type": "text", "text": "<doctag><text>In May"}, {"type": "text", "text": ".</text></doctag>"}]
    with answering(lambda number, asked: said(parts)) as server:
        parsed = read("a.pdf", ONE_PAGE, _reader(server.url))

    assert "In May." in parsed.doctags


@pytest.mark.parametrize(
    "reply", [said(""), said("<doctag><text>In M", "length")], ids=["empty", "cut short"]
)
def test_a_page_without_a_complete_answer_is_a_warning(reply: Reply, read: Read):
    """The other pages are kept."""
    pages = pdf([[(72, 760, 20, "One")], [(72, 760, 20, "Two")]])
    with answering(lambda number, asked: reply if number == 1 else SWARMS) as server:
        parsed = read("a.pdf", pages, _reader(server.url, concurrency=1))

    assert parsed.title == "Swarms"
    assert parsed.warnings == ("W_PARSE_PARTIAL: page 2: VlmPages (inference_failure)",)


def test_a_document_whose_only_answer_is_truncated_fails(read: Read):
    """The message names the setting of the limit."""
    error, _ = _failure(read, lambda number, asked: said("<doctag><text>In M", "length"))

    assert isinstance(error, VlmAnswerUnusable)
    assert "max_tokens" in str(error)


def test_a_missing_key_on_a_worker_is_an_error(read: Read, monkeypatch: pytest.MonkeyPatch):
    """Another machine has its own environment."""
    monkeypatch.setenv("VLM_KEY", KEY)
    with answering(lambda number, asked: SWARMS) as server:
        reader = _reader(server.url, api_key_env="VLM_KEY")
        monkeypatch.delenv("VLM_KEY")
        with pytest.raises(EngineUnavailable, match="on this worker, VLM_KEY is not set"):
            read("a.pdf", ONE_PAGE, reader)

    assert server.asked == []


def test_errors_survive_pickling(read: Read, monkeypatch: pytest.MonkeyPatch):
    """With message and details."""
    monkeypatch.setattr(asking, "MAX_PAUSE_SECONDS", 0.01)

    error, _ = _failure(read, lambda number, asked: refused(503, Retry_After="7"))

    travelled = pickle.loads(pickle.dumps(error))

    assert (type(travelled), str(travelled), travelled.detail) == (VlmBusy, str(error), {"retry_after": 7.0})


def test_other_formats_send_no_request(read: Read):
    """Remote services are only for pages."""
    with answering(lambda number, asked: SWARMS) as server:
        parsed = read("a.md", b"# Swarms\n\nIn May.\n", _reader(server.url))

    assert parsed.parser == "docling/md"
    assert server.asked == []
