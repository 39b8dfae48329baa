"""Docling's VLM pipeline, with a vision model behind an OpenAI-compatible address.

Docling makes pictures of the pages and documents of the answers. The asking is done here: Docling's client
tells a refusal from a busy server only by the text of a message, and waits for as long as a server says.
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

from ingest_assets.core.endpoints import DENIED, is_busy, key_fault, retry_after_s
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

# One page, one question to a vision model, one answer. What goes wrong is told by status, not by words.

ATTEMPTS = 4  # for one page, before its document fails and may be retried as a whole
PAUSE_SECONDS = 1.0  # before the second attempt
MAX_PAUSE_SECONDS = 30.0  # whatever a server asks for: a worker waits in it
_MAX_PIXELS = 4096  # of the longer side of a page's picture
_TAG = re.compile(r"<[a-z_]+[0-9]*>")


@dataclass(frozen=True, slots=True)
class Answer:
    """What the model said of a page, and why it stopped."""

    text: str
    finish_reason: str = ""


class _Endpoint:
    """What Docling's VLM stage takes for an inference engine: asks one address, from several threads at once.

    Redirects are not followed, for the key goes along.
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
        """An answer for each page, in order; a fault of the server ends the document."""
        with ThreadPoolExecutor(self._options.concurrency) as pool:
            return list(pool.map(lambda page: self._output(self._ask(page.image)), inputs))

    def cleanup(self) -> None:
        """Docling calls this at the end."""
        self._client.close()

    def _ask(self, image: Any) -> Answer:
        """The answer for a page's picture; a busy server is asked a few times, with growing pauses."""
        question = self._question(image)
        for attempt in range(1, ATTEMPTS):
            try:
                return self._attempt(question)
            except (VlmBusy, VlmTimeout, VlmUnreachable) as error:
                # what the server asks for, within reason; else twice as long each time
                usual = PAUSE_SECONDS * 2 ** (attempt - 1) * random.uniform(1, 1.25)
                time.sleep(min(float(error.detail.get("retry_after", usual)), MAX_PAUSE_SECONDS))
        return self._attempt(question)

    def _question(self, image: Any) -> bytes:
        picture = BytesIO()
        image.convert("RGB").save(picture, "PNG")
        url = "data:image/png;base64," + base64.b64encode(picture.getvalue()).decode()
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

    def _attempt(self, question: bytes) -> Answer:
        address, limit = self._options.address, self._options.timeout_seconds
        try:
            response = self._client.post(
                self._options.url, content=question, headers={"Content-Type": "application/json"}
            )
        except httpx.TimeoutException:
            raise VlmTimeout(f"The vision model at {address} did not answer within {limit:g} s.") from None
        except httpx.HTTPError as error:
            kind = type(error).__name__
            raise VlmUnreachable(f"The vision model at {address} cannot be reached ({kind}).") from None
        if response.status_code != HTTPStatus.OK:
            raise _refusal(response, address)
        return _answer(response, address)

    def _output(self, answer: Answer) -> Any:
        """An answer that is no page is a page that failed: the others still count."""
        from docling.datamodel.base_models import VlmStopReason
        from docling.models.inference_engines.vlm.base import VlmEngineOutput

        fault = ""
        if not answer.text:
            fault = "the answer is empty"
        elif self._options.response_format == "doctags" and not _TAG.search(answer.text):
            fault = "the answer holds no DocTags"
        if fault:
            stop = VlmStopReason.INFERENCE_ERROR
            return VlmEngineOutput(text="", stop_reason=stop.value, metadata={"error": fault})
        reasons = {"length": VlmStopReason.LENGTH, "content_filter": VlmStopReason.CONTENT_FILTERED}
        stop = reasons.get(answer.finish_reason, VlmStopReason.END_OF_SEQUENCE)
        return VlmEngineOutput(text=answer.text, stop_reason=stop.value)


def _refusal(response: httpx.Response, address: str) -> ItemError:
    status = response.status_code
    said = f"The vision model at {address} answered with status {status}"
    if status in DENIED:
        return VlmDenied(f"{said}: the key is missing, wrong or not allowed in; see parsing.vlm.api_key_env.")
    if is_busy(status):
        wait = retry_after_s(response.headers.get("retry-after", ""), time.time())
        return VlmBusy(f"{said}.", detail=None if wait is None else {"retry_after": wait})
    return VlmRefused(f"{said}; check parsing.vlm.url and parsing.vlm.model.")


def _answer(response: httpx.Response, address: str) -> Answer:
    try:
        choice = json.loads(response.content)["choices"][0]
        content = choice["message"]["content"] or ""
        if isinstance(content, list):
            content = "".join(part.get("text") or "" for part in content)
        return Answer(content.strip(), str(choice.get("finish_reason") or ""))
    except (ValueError, KeyError, IndexError, TypeError, AttributeError):
        raise VlmAnswerUnusable(
            f"The vision model at {address} answered with something that is no chat completion; "
            "check parsing.vlm.url."
        ) from None


def open_vlm(options: VlmOptions) -> Any:
    """The pipeline; remote services are enabled here and nowhere else."""
    from docling.datamodel.pipeline_options import VlmConvertOptions, VlmPipelineOptions
    from docling.datamodel.pipeline_options_vlm_model import ResponseFormat
    from docling.datamodel.settings import settings
    from docling.datamodel.stage_model_specs import VlmModelSpec
    from docling.datamodel.vlm_engine_options import ApiVlmEngineOptions
    from docling.models.inference_engines.vlm import VlmEngineType
    from docling.pipeline.vlm_pipeline import VlmPipeline

    class VlmPages(VlmPipeline):
        """A document of which no page was answered in full is the model's failure, not the document's."""

        def _determine_status(self, conv_res: Any) -> Any:
            status = super()._determine_status(conv_res)
            failed = {error.page_no for error in conv_res.errors}
            if conv_res.pages and all(page.page_no in failed for page in conv_res.pages):
                raise VlmAnswerUnusable(
                    f"The vision model at {options.address} gave a usable, whole answer for none of the "
                    f"{len(conv_res.pages)} pages; check parsing.vlm: model, prompt, response_format, "
                    "max_tokens."
                )
            return status

    spec = VlmModelSpec(
        name=options.model,
        default_repo_id=options.model,
        prompt=options.prompt,
        response_format=ResponseFormat(options.response_format),
        max_new_tokens=options.max_tokens,
    )
    settings.perf.page_batch_size = options.concurrency  # pages that are asked for together
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
    """From this worker's own environment: it travels with no plan and rests in no file."""
    fault = key_fault(options.api_key_env, os.environ)
    if fault:
        raise EngineUnavailable(f"parsing.vlm.api_key_env: on this worker {fault}; set it where workers run.")
    return SecretStr(os.environ[options.api_key_env]) if options.api_key_env else None
