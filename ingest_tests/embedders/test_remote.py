"""The `openai` provider, against a real server that behaves and misbehaves."""

import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from email.utils import formatdate

import numpy as np
import pytest

from ingest_assets.embedders.counting import counting
from ingest_assets.embedders.endpoint_errors import (
    EndpointAnswerUnusable,
    EndpointBusy,
    EndpointDenied,
    EndpointKeyMissing,
    EndpointRefused,
    EndpointTimeout,
    EndpointUnreachable,
    TextRefused,
    VectorUnusable,
    WrongDimension,
)
from ingest_assets.embedders.errors import EmbedderClosed
from ingest_assets.embedders.registry import describe_dense
from ingest_assets.embedders.remote import RemoteEmbedder
from ingest_assets.model.embedding import DenseOptions, RemoteOptions
from ingest_assets.model.errors import ConfigError, ItemError
from ingest_tests.conftest import clean_environment
from ingest_tests.embedders.vector_server import (
    DIM,
    QUICK,
    VectorScript,
    answer_of,
    embedder_of,
    items_of,
    options_for,
    right_answer,
    serving,
    vectors_of,
)
from ingest_tests.parsing.vision_server import Reply, refused

TEXTS = ["one", "two words", "three words here", "four"]


def first(number: int, reply: Reply) -> VectorScript:
    """The first requests are answered so, and the others rightly."""
    return lambda n, texts: reply if n < number else None


def poisoned(reply: Reply, *bad: str) -> VectorScript:
    """Requests with these texts are answered so."""
    return lambda n, texts: reply if set(bad) & set(texts) else None


def test_every_text_has_its_vector_in_order():
    """Whatever order the micro-batches had."""
    with serving() as server, embedder_of(server, batch_size=3) as embedder:
        texts = [f"{'long ' * (n % 7)}text {n}" for n in range(20)]

        assert (embedder.embed(texts) == vectors_of(texts)).all()
        assert embedder.embed([]).shape == (0, DIM)
        assert max(map(len, server.inputs)) <= 3


def test_a_request_says_what_the_protocol_wants():
    """Model, input and format; dimensions only when the settings say so; the key as a bearer."""
    with serving() as server:
        with embedder_of(server, environ={"KEY": "secret-key"}, api_key_env="KEY") as embedder:
            embedder.embed(["a"])
        with embedder_of(server, send_dimensions=True) as embedder:
            embedder.embed(["a"])

    assert server.asked[0].path == "/v1/embeddings"
    assert server.asked[0].body == {"model": "some-model", "input": ["a"], "encoding_format": "float"}
    assert server.asked[0].headers["authorization"] == "Bearer secret-key"
    assert server.asked[1].body["dimensions"] == DIM
    assert "authorization" not in server.asked[1].headers


def test_prefixes_go_before_texts():
    """Queries and chunks have their own."""
    with serving() as server:
        options = options_for(server.url).model_copy(
            update={"query_prefix": "query: ", "passage_prefix": "passage: "}
        )
        embedder = RemoteEmbedder(options, {}, QUICK)
        embedder.embed(["a"])
        embedder.embed(["a"], "query")
        embedder.close()

    assert server.inputs == [["passage: a"], ["query: a"]]


def test_base64_and_shuffled_answers_are_understood():
    """A server may answer as it likes, as long as it says which vector is whose."""
    import base64

    def script(number: int, texts: list[str]) -> Reply:
        items = items_of(texts)[::-1]
        for item in items:
            item["embedding"] = base64.b64encode(np.float32(item["embedding"]).tobytes()).decode()
        return answer_of(items)

    with serving(script) as server, embedder_of(server) as embedder:
        assert (embedder.embed(TEXTS) == vectors_of(TEXTS)).all()


def test_an_answer_without_numbers_is_taken_in_order():
    """Some servers leave `index` out."""

    def script(number: int, texts: list[str]) -> Reply:
        return answer_of([{"embedding": item["embedding"]} for item in items_of(texts)])

    with serving(script) as server, embedder_of(server) as embedder:
        assert (embedder.embed(TEXTS) == vectors_of(TEXTS)).all()


@pytest.mark.parametrize(
    "reply",
    [
        refused(429),
        refused(429, Retry_After="0"),
        refused(429, Retry_After="soon"),
        refused(429, Retry_After=formatdate(0, usegmt=True)),
        refused(408),
        refused(409),
        refused(425),
        refused(500),
        refused(502),
        refused(503, Retry_After="99999"),
        refused(529),
        Reply(b"", 0),
        Reply(b""),
        Reply(b"<html>One moment please</html>"),
        Reply(b'{"data": [{"index"'),
        Reply(b"[]"),
        Reply(b'{"data": null}'),
        Reply(b"[" * 100_000),
        Reply(b"junk", headers={"Content-Encoding": "gzip"}),
        Reply(b"", 204),
    ],
    ids=lambda reply: f"{reply.status} {reply.body[:12]!r}",
)
def test_a_passing_fault_costs_a_retry(reply: Reply):
    """Told by status and shape, whatever the words are."""
    with serving(first(2, reply)) as server, embedder_of(server) as embedder, counting() as counts:
        if reply.status == 204:  # a success without an answer is no passing fault
            with pytest.raises(EndpointRefused, match="status 204"):
                embedder.embed(TEXTS)
            return
        assert (embedder.embed(TEXTS) == vectors_of(TEXTS)).all()
        assert (counts["requests"], counts["request_retries"]) == (3, 2)


@pytest.mark.parametrize(
    ("reply", "kind", "words"),
    [
        (refused(429), EndpointBusy, "status 429"),
        (refused(500), EndpointBusy, "status 500"),
        (Reply(b"", 0), EndpointUnreachable, "cannot be reached"),
        (Reply(b""), EndpointAnswerUnusable, "answered with nothing"),
        (Reply(b"<p>"), EndpointAnswerUnusable, "answered with HTML"),
        (Reply(b'{"result": 1}'), EndpointAnswerUnusable, "without a list `data` \\(it has 'result'\\)"),
        (Reply(b'{"data": [' + b" " * 3_000_000 + b"]}"), EndpointAnswerUnusable, "more than"),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_a_fault_that_stays_ends_after_the_attempts_allowed(reply: Reply, kind: type[ItemError], words: str):
    """The error names the address, and says whether it is worth trying again."""
    with serving(lambda n, texts: reply) as server, embedder_of(server, retries=2) as embedder:
        with pytest.raises(kind, match=words) as caught:
            embedder.embed(TEXTS)

        assert server.url in str(caught.value)
        assert "\n" not in str(caught.value)
        assert caught.value.detail["index"] == 0
        assert len(server.asked) == 3


def test_a_dead_endpoint_is_asked_once_by_each_who_comes_and_recovers_by_itself():
    """Patience with every document would take all night."""
    state = {"is_dead": True}
    script: VectorScript = lambda n, texts: refused(503) if state["is_dead"] else None  # noqa: E731
    with serving(script) as server, embedder_of(server, retries=4) as embedder:
        for _ in range(3):
            with pytest.raises(EndpointBusy):
                embedder.embed(["a"])
        assert len(server.asked) == 5 + 1 + 1

        state["is_dead"] = False
        embedder.embed(["a"])
        state["is_dead"] = True
        with pytest.raises(EndpointBusy):
            embedder.embed(["a"])
        assert len(server.asked) == 7 + 1 + 5


def test_a_server_that_hangs_is_a_time_out():
    """Also one that drips."""
    with (
        serving(lambda n, texts: Reply(b"", seconds=0.4)) as server,
        embedder_of(server, timeout_seconds=0.1, retries=1) as embedder,
    ):
        with pytest.raises(EndpointTimeout, match=r"within 0\.1 s"):
            embedder.embed(["a"])

        assert len(server.asked) == 2


def test_nobody_there_is_unreachable():
    """A refused connection is a passing fault: servers start and stop."""
    with serving() as server:
        pass
    with (
        embedder_of(server, retries=1) as embedder,
        pytest.raises(EndpointUnreachable, match="cannot be reached"),
    ):
        embedder.embed(["a"])


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_text_that_is_refused_costs_nobody_else(status: int):
    """The batch is divided until the offender stands alone; callers of other texts get their vectors."""
    texts = [f"text {n}" for n in range(16)]
    with (
        serving(poisoned(refused(status), "text 5")) as server,
        embedder_of(server, max_in_flight=1) as embedder,
        ThreadPoolExecutor(16) as pool,
    ):
        with pytest.raises(TextRefused, match=f"status {status}") as caught:
            embedder.embed(texts)
        assert caught.value.detail["index"] == 5

        found = list(pool.map(lambda text: _vector_or_error(embedder, text), texts))

    assert [text for text, one in zip(texts, found, strict=True) if isinstance(one, ItemError)] == ["text 5"]
    assert len(server.asked) < 40


def _vector_or_error(embedder: RemoteEmbedder, text: str) -> np.ndarray | ItemError:
    try:
        return embedder.embed([text])
    except ItemError as error:
        return error


def test_a_batch_that_is_too_large_teaches_the_size():
    """The second batch is asked for in pieces that the server takes."""
    script: VectorScript = lambda n, texts: refused(413) if len(texts) > 4 else None  # noqa: E731
    texts = [f"text {n}" for n in range(8)]
    with serving(script) as server, embedder_of(server, batch_size=8) as embedder:
        embedder.embed(["warm up"])
        for _ in range(2):
            assert (embedder.embed(texts) == vectors_of(texts)).all()

        assert [len(texts) for texts in server.inputs] == [1, 8, 4, 4, 4, 4]


@pytest.mark.parametrize(
    ("reply", "kind", "words"),
    [
        (refused(401), EndpointDenied, "remote.api_key_env"),
        (refused(403), EndpointDenied, "remote.api_key_env"),
        (refused(404), EndpointRefused, "check embeddings.dense.remote.url and embeddings.dense.model"),
        (refused(405), EndpointRefused, "status 405"),
        (refused(301, Location="http://127.0.0.1:9/"), EndpointRefused, "status 301"),
        (refused(501), EndpointRefused, "status 501"),
        (refused(400), EndpointRefused, "also for a harmless text"),
        (right_answer(TEXTS, dim=5), WrongDimension, "5 numbers, and embeddings.dense.dim is 8"),
        (
            Reply(b'{"error": {"code": "insufficient_quota"}}', 429),
            EndpointDenied,
            "no credit left",
        ),
    ],
    ids=lambda value: str(getattr(value, "status", "")),
)
def test_what_no_text_would_mend_is_asked_for_once(reply: Reply, kind: type[ItemError], words: str):
    """No storm: whoever waits or comes soon is told the same without a request."""
    with serving(lambda n, texts: reply) as server, embedder_of(server) as embedder:
        for _ in range(5):
            with pytest.raises(kind, match=words) as caught:
                embedder.embed(TEXTS)
            assert not caught.value.retryable
        assert len(server.asked) == (2 if reply.status == 400 else 1)


def test_a_verdict_does_not_stand_for_ever():
    """The key may be let in meanwhile."""
    pace = replace(QUICK, verdict_seconds=0.0)
    with serving(first(1, refused(401))) as server, embedder_of(server, pace) as embedder:
        with pytest.raises(EndpointDenied):
            embedder.embed(TEXTS)

        assert (embedder.embed(TEXTS) == vectors_of(TEXTS)).all()


def test_errors_do_not_tell_the_key():
    """Servers quote it."""
    reply = Reply(b'{"error": {"message": "no model for key secret-key\\n  at all"}}', 404)
    with (
        serving(lambda n, texts: reply) as server,
        embedder_of(server, environ={"KEY": "secret-key"}, api_key_env="KEY") as embedder,
        pytest.raises(EndpointRefused, match="no model for key … at all") as caught,
    ):
        embedder.embed(["a"])

    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("embedding", "words"),
    [
        ([1.0] * 7, "7 numbers instead of 8"),
        ([float("nan")] * 8, "not finite"),
        ([1e300] * 8, "not finite"),
        ([10**400] * 8, "not finite"),
        ([None] * 8, "no number"),
        ([True] * 8, "no number"),
        ([[1.0]] * 8, "no number"),
        (["1"] * 8, "no number"),
        (None, "null"),
        ({}, "dict"),
        ("!!", "no base64"),
        ("AAAA", "half a number"),
        ("", "0 numbers"),
    ],
    ids=repr,
)
def test_a_vector_that_is_none_is_asked_for_again_and_then_fails_alone(embedding: object, words: str):
    """`contract` errors name what came back and whose it is."""
    asked: list[list[str]] = []

    def script(number: int, texts: list[str]) -> Reply:
        asked.append(texts)
        items = items_of(texts)
        for item, text in zip(items, texts, strict=True):
            if text == "bad":
                item["embedding"] = embedding
        return answer_of(items)

    with serving(script) as server, embedder_of(server) as embedder:
        with pytest.raises(VectorUnusable, match=words) as caught:
            embedder.embed(["good", "bad", "fine"])

        assert caught.value.category == "contract"
        assert caught.value.detail["index"] == 1
    assert sorted(map(sorted, asked)) == [["bad"], ["bad", "fine", "good"]]


def test_a_vector_that_comes_at_the_second_time_is_good():
    """Only the texts without one are asked for again."""

    def script(number: int, texts: list[str]) -> Reply | None:
        items = items_of(texts)
        items[0]["embedding"] = None
        return answer_of(items) if number == 0 else None

    with serving(script) as server, embedder_of(server) as embedder:
        assert (embedder.embed(TEXTS) == vectors_of(TEXTS)).all()

    assert [len(texts) for texts in server.inputs] == [4, 1]


@pytest.mark.parametrize("keep", [slice(0, 3), slice(1, 4), slice(0, 0)], ids=["last", "first", "all"])
def test_a_short_list_is_completed(keep: slice):
    """The numbers tell what is missing where they have gaps; else nothing of the list is believed."""
    with (
        serving(lambda n, texts: answer_of(items_of(texts)[keep]) if len(texts) == 4 else None) as server,
        embedder_of(server) as embedder,
    ):
        assert (embedder.embed(TEXTS) == vectors_of(TEXTS)).all()

    assert [len(texts) for texts in server.inputs] == ([4, 1] if keep.start else [4, 2, 2])


def test_a_server_that_leaves_a_text_out_and_counts_anew_mixes_nothing_up():
    """Its numbers look right, and every vector after the gap is another text's."""

    def script(number: int, texts: list[str]) -> Reply:
        return answer_of(items_of([text for text in texts if text != "two words"]))

    with serving(script) as server, embedder_of(server) as embedder:
        with pytest.raises(VectorUnusable, match="0 vectors for 1 texts") as caught:
            embedder.embed(TEXTS)
        assert caught.value.detail["index"] == 1
        others = [text for text in TEXTS if text != "two words"]
        assert (embedder.embed(others) == vectors_of(others)).all()


@pytest.mark.parametrize("change", ["one more", "all the same", "past the end", "negative", "words"])
def test_numbers_that_cannot_be_are_not_believed(change: str):
    """Asked one by one, there is nothing to number."""

    def script(number: int, texts: list[str]) -> Reply:
        items = items_of(texts)
        if change == "one more":
            items += items_of(["more"])
        for item in items:
            wrong = {"all the same": 0, "past the end": 99, "negative": -1, "words": "0"}
            item["index"] = wrong.get(change, item["index"])
        return answer_of(items)

    with serving(script) as server, embedder_of(server) as embedder:
        if change == "all the same":
            assert (embedder.embed(TEXTS) == vectors_of(TEXTS)).all()
        else:
            with pytest.raises(VectorUnusable, match="vectors for 1 texts"):
                embedder.embed(TEXTS)


def test_requests_in_flight_are_bounded():
    """Over all threads of the process."""

    def script(number: int, texts: list[str]) -> Reply:
        return replace(right_answer(texts), seconds=0.02)

    with (
        serving(script) as server,
        embedder_of(server, max_in_flight=3, batch_size=1) as embedder,
        ThreadPoolExecutor(12) as pool,
    ):
        list(pool.map(lambda n: embedder.embed([f"{n} a", f"{n} b"]), range(12)))

        assert len(server.asked) == 24
        assert 2 <= server.server.most_at_once <= 3


def test_tokens_and_cost_are_counted_for_whom_they_were_spent():
    """They add up to what the server said, whoever shared a request."""
    with serving() as server, embedder_of(server, usd_per_million_tokens=0.13, batch_size=64) as embedder:
        with counting() as counts:
            embedder.embed(["word " * 1000, "a", "b c"])

        assert counts == {"requests": 1, "tokens": 1003, "cost_micro_usd": 130}


def test_usage_that_is_nonsense_is_not_counted():
    """A counter is a convenience too."""
    for usage in (None, [], {"prompt_tokens": "many"}, {"prompt_tokens": -1, "total_tokens": 7}):

        def script(number: int, texts: list[str], usage: object = usage) -> Reply:
            import json

            return Reply(json.dumps({"data": items_of(texts), "usage": usage}).encode())

        with serving(script) as server, embedder_of(server) as embedder, counting() as counts:
            embedder.embed(["a"])
            assert counts.get("tokens", 0) == (
                7 if isinstance(usage, dict) and "total_tokens" in usage else 0
            )


@pytest.mark.parametrize(
    "script",
    [lambda n, texts: refused(503, Retry_After="50"), lambda n, texts: Reply(b"", seconds=3.0)],
    ids=["waiting for its turn", "waiting for the server"],
)
def test_closing_ends_all_waiting_at_once(script: VectorScript):
    """Ctrl-C must not wait for a server's pause, nor for the server."""
    pace = replace(QUICK, longest_asked_seconds=50.0)
    with serving(script) as server:
        embedder = RemoteEmbedder(options_for(server.url), {}, pace)
        with ThreadPoolExecutor(1) as pool:
            result = pool.submit(embedder.embed, ["a"])
            while not server.asked:
                time.sleep(0.005)
            closing = threading.Thread(target=embedder.close)
            closing.start()
            with pytest.raises(EmbedderClosed):
                result.result(timeout=2.5)
            closing.join(2.5)
            assert not closing.is_alive()


_ENDS_WHILE_WAITING = """
import sys, threading
from ingest_assets.embedders.remote import RemoteEmbedder
from ingest_assets.model.embedding import DenseOptions

embedder = RemoteEmbedder(DenseOptions.model_validate_json(sys.argv[1]), {})
threading.Thread(target=embedder.embed, args=(["a"],), daemon=True).start()
print("asked", flush=True)
sys.stdin.readline()
"""


@pytest.mark.parametrize(
    "reply", [refused(503, Retry_After="50"), Reply(b"", seconds=20.0)], ids=["pause", "hang"]
)
def test_a_program_ends_though_a_request_waits(reply: Reply):
    """Nobody closed the embedder, and Python waits for the threads of pools."""
    with serving(lambda n, texts: reply) as server:
        arguments = [sys.executable, "-c", _ENDS_WHILE_WAITING, options_for(server.url).model_dump_json()]
        process = subprocess.Popen(
            arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=clean_environment()
        )
        assert process.stdout is not None
        process.stdout.readline()
        while not server.asked:
            time.sleep(0.005)

        process.communicate(b"go\n", timeout=15)

    assert process.returncode == 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"dim": None}, "embeddings.dense.dim: not set"),
        ({"remote": RemoteOptions()}, "embeddings.dense.remote.url: not set"),
        ({"model": DenseOptions().model}, "embeddings.dense.model: set it"),
    ],
)
def test_settings_that_cannot_work_are_refused_before_anything_starts(change: dict[str, object], words: str):
    """Planning asks no endpoint, so the settings must say what it gives."""
    with pytest.raises(ConfigError, match=words):
        describe_dense(options_for("http://127.0.0.1:9/v1").model_copy(update=change))


@pytest.mark.parametrize(
    "url", ["localhost:80", "ftp://host/x", "http://user:pass@host/", "http://", "http://h/#x"]
)
def test_an_address_holds_no_secret_and_is_one(url: str):
    """Settings are shown."""
    with pytest.raises(ValueError, match="should be an http"):
        RemoteOptions(url=url)


def test_the_identity_follows_what_changes_vectors_and_nothing_else():
    """The key, the pace and the price are none of a vector's business."""
    base = options_for("http://host/v1/embeddings")

    def identity(options: DenseOptions) -> object:
        return describe_dense(options).identity

    def with_remote(**change: object) -> DenseOptions:
        return base.model_copy(update={"remote": base.remote.model_copy(update=change)})

    for change in (
        {"api_key_env": "K"},
        {"batch_size": 1},
        {"timeout_seconds": 1},
        {"usd_per_million_tokens": 1},
    ):
        assert identity(with_remote(**change)) == identity(base)
    assert identity(with_remote(url="http://other/v1/embeddings")) != identity(base)
    assert identity(with_remote(url="http://host/v1/embeddings?deployment=b")) != identity(base)
    assert identity(with_remote(url="http://a/", name="n")) == identity(
        with_remote(url="http://b/", name="n")
    )
    assert identity(base.model_copy(update={"model": "other"})) != identity(base)
    assert identity(base.model_copy(update={"passage_prefix": "p: "})) != identity(base)
    assert "secret" not in str(identity(with_remote(url="http://host/?key=secret")))


@pytest.mark.parametrize("environ", [{}, {"KEY": ""}, {"KEY": " spaced "}, {"KEY": "schlüssel"}])
def test_a_key_that_is_not_there_is_named(environ: dict[str, str]):
    """By its variable, never by its value."""
    with pytest.raises(EndpointKeyMissing, match="KEY") as caught:
        RemoteEmbedder(options_for("http://127.0.0.1:9/", api_key_env="KEY"), environ, QUICK)

    assert caught.value.category == "config"
