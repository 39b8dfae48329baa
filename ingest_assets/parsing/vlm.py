"""Docling's VLM pipeline with a vision model behind an OpenAI-compatible endpoint.

Docling renders the pages and converts the answers to documents. The requests are sent here: Docling's client
distinguishes a refusal from a busy server only by message text, and waits for as long as the server says.
"""

import base64
import json
import os
import random
import re
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http import HTTPStatus
from io import BytesIO
from typing import Any

import httpx
from pydantic import SecretStr

from ingest_assets.core.endpoints import DENIED, find_key_fault, is_busy, retry_after_s
from ingest_assets.core.errors import ItemError
from ingest_assets.parsing.errors import (
    EngineUnavailable,
    VlmAnswerUnusable,
    VlmBusy,
    VlmDenied,
    VlmRefused,
    VlmTimeout,
    VlmUnreachable,
)
from ingest_assets.settings.parsing import VlmOptions

# One request per page. Errors are classified by status, not by message text.

ATTEMPTS = 4  # for one page; then its document fails and may be retried
PAUSE_SECONDS = 1.0  # before the second attempt
MAX_PAUSE_SECONDS = 30.0  # limits `Retry-After`: a worker is blocked while it waits
_MAX_PIXELS = 4096  # on the longer side of a page image
_TAG = re.compile(r"<[a-z_]+[0-9]*>")


@dataclass(frozen=True, slots=True)
class Answer:
    """The model's text for a page, and why it stopped."""

    text: str
    finish_reason: str = ""


class _Endpoint:
    """Inference engine for Docling's VLM stage that sends requests to one endpoint from several threads.

    It does not follow redirects, since requests contain the API key.
    """

    def __init__(self, options: VlmOptions, key: SecretStr | None) -> None:
        self._options = options
        self._client = httpx.Client(
            timeout=options.timeout_seconds,
            headers={"Authorization": f"Bearer {key.get_secret_value()}"} if key else {},
            trust_env=options.use_environment_proxies,
            limits=httpx.Limits(max_connections=options.concurrency),
        )

    def predict_batch(self, inputs: Sequence[Any]) -> list[Any]:
        """Return an answer for each page, in order; an error of the server fails the document."""
        with ThreadPoolExecutor(self._options.concurrency) as pool:
            return list(pool.map(lambda page: self._output(self._ask(page.image)), inputs))

    def cleanup(self) -> None:
        """Close the connections; called by Docling."""
        self._client.close()

    def _ask(self, image: Any) -> Answer:
        """Return the answer for a page image; temporary errors are retried with exponential backoff."""
        body = self._request_body(image)
        for attempt in range(1, ATTEMPTS):
            try:
                return self._attempt(body)
            except (VlmBusy, VlmTimeout, VlmUnreachable) as error:
                backoff = PAUSE_SECONDS * 2 ** (attempt - 1) * random.uniform(1, 1.25)
                time.sleep(min(float(error.detail.get("retry_after", backoff)), MAX_PAUSE_SECONDS))
        return self._attempt(body)

    def _request_body(self, image: Any) -> bytes:
        png = BytesIO()
        image.convert("RGB").save(png, "PNG")
        url = "data:image/png;base64," + base64.b64encode(png.getvalue()).decode()
        content = [
            {"type": "image_url", "image_url": {"url": url}},
            {"type": "text", "text": self._options.prompt},
        ]
        return json.dumps(
            {
                "model": self._options.model,
                "messages": [{"role": "user", "content": content}],
                "temperature": 0,
                "max_tokens": self._options.max_tokens,
            }
        ).encode()

    def _attempt(self, body: bytes) -> Answer:
        address, limit = self._options.address, self._options.timeout_seconds
        try:
            response = self._client.post(
                self._options.url, content=body, headers={"Content-Type": "application/json"}
            )
        except httpx.TimeoutException:
            raise VlmTimeout(
                f"The vision model at {address} did not answer (timeout {limit:g} s). Retry later or raise "
                "parsing.vlm.timeout_seconds."
            ) from None
        except httpx.HTTPError as error:
            raise VlmUnreachable(
                f"Cannot reach the vision model at {address} ({type(error).__name__}). Check that the server "
                "is running and retry."
            ) from None
        if response.status_code != HTTPStatus.OK:
            raise _status_error(response, address)
        return _answer(response, address)

    def _output(self, answer: Answer) -> Any:
        """Convert an answer for Docling; an unusable one fails its page, not the document."""
        from docling.datamodel.base_models import VlmStopReason
        from docling.models.inference_engines.vlm.base import VlmEngineOutput

        fault = ""
        if not answer.text:
            fault = "the answer is empty"
        elif self._options.response_format == "doctags" and not _TAG.search(answer.text):
            fault = "the answer contains no DocTags"
        if fault:
            stop = VlmStopReason.INFERENCE_ERROR
            return VlmEngineOutput(text="", stop_reason=stop.value, metadata={"error": fault})
        reasons = {"length": VlmStopReason.LENGTH, "content_filter": VlmStopReason.CONTENT_FILTERED}
        stop = reasons.get(answer.finish_reason, VlmStopReason.END_OF_SEQUENCE)
        return VlmEngineOutput(text=answer.text, stop_reason=stop.value)


def _status_error(response: httpx.Response, address: str) -> ItemError:
    status = response.status_code
    if status in DENIED:
        return VlmDenied(
            f"The vision model at {address} rejected the API key (status {status}). Check the key in the "
            "variable that parsing.vlm.api_key_env names."
        )
    if is_busy(status):
        wait = retry_after_s(response.headers.get("retry-after", ""), time.time())
        return VlmBusy(
            f"The vision model at {address} is busy or failing (status {status}). Retry later.",
            detail=None if wait is None else {"retry_after": wait},
        )
    return VlmRefused(
        f"The vision model at {address} rejected the request (status {status}). Check parsing.vlm.url and "
        "parsing.vlm.model."
    )


def _answer(response: httpx.Response, address: str) -> Answer:
    try:
        choice = json.loads(response.content)["choices"][0]
        content = choice["message"]["content"] or ""
        if isinstance(content, list):
            content = "".join(part.get("text") or "" for part in content)
        return Answer(content.strip(), str(choice.get("finish_reason") or ""))
    except (ValueError, KeyError, IndexError, TypeError, AttributeError):
        raise VlmAnswerUnusable(
            f"The answer of the vision model at {address} is not a chat completion. Check parsing.vlm.url."
        ) from None


def open_vlm(options: VlmOptions) -> Any:
    """Create the pipeline. This is the only place that enables remote services."""
    from docling.datamodel.pipeline_options import VlmConvertOptions, VlmPipelineOptions
    from docling.datamodel.pipeline_options_vlm_model import ResponseFormat
    from docling.datamodel.settings import settings
    from docling.datamodel.stage_model_specs import VlmModelSpec
    from docling.datamodel.vlm_engine_options import ApiVlmEngineOptions
    from docling.models.inference_engines.vlm import VlmEngineType
    from docling.pipeline.vlm_pipeline import VlmPipeline

    class VlmPages(VlmPipeline):
        """Raises `VlmAnswerUnusable` when all pages failed: the model is at fault, not the document."""

        def _determine_status(self, conv_res: Any) -> Any:
            status = super()._determine_status(conv_res)
            failed = {error.page_no for error in conv_res.errors}
            if conv_res.pages and all(page.page_no in failed for page in conv_res.pages):
                raise VlmAnswerUnusable(
                    f"The vision model at {options.address} gave no usable answer for any of the "
                    f"{len(conv_res.pages)} pages. Check model, prompt, response_format and max_tokens in "
                    "parsing.vlm."
                )
            return status

    spec = VlmModelSpec(
        name=options.model,
        default_repo_id=options.model,
        prompt=options.prompt,
        response_format=ResponseFormat(options.response_format),
        max_new_tokens=options.max_tokens,
    )
    settings.perf.page_batch_size = options.concurrency  # pages in one call of `predict_batch`
    pipeline = VlmPages(
        VlmPipelineOptions(
            enable_remote_services=True,
            generate_page_images=False,
            vlm_options=VlmConvertOptions(
                model_spec=spec,
                scale=options.image_scale,
                max_size=_MAX_PIXELS,
                engine_options=ApiVlmEngineOptions(engine_type=VlmEngineType.API),
            ),
        )
    )
    (stage,) = pipeline.build_pipe
    stage.engine = _Endpoint(options, _key(options))  # type: ignore[attr-defined]
    return pipeline


def _key(options: VlmOptions) -> SecretStr | None:
    """Read the API key from this worker's environment; it is never sent with a plan or stored."""
    fault = find_key_fault(options.api_key_env, os.environ)
    if fault:
        raise EngineUnavailable(f"parsing.vlm.api_key_env: on this worker, {fault}. Set it on every worker.")
    return SecretStr(os.environ[options.api_key_env]) if options.api_key_env else None
