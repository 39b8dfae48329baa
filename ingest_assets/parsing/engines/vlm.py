"""Docling's VLM pipeline, with a vision model behind an OpenAI-compatible address.

Docling makes pictures of the pages and documents of the answers. The asking is done here: Docling's client
tells a refusal from a busy server only by the text of a message, and waits for as long as a server says.
"""

import os
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from pydantic import SecretStr

from ingest_assets.model.endpoints import key_fault
from ingest_assets.model.vlm import VlmOptions
from ingest_assets.parsing.engines.asking import Answer, PageAsker
from ingest_assets.parsing.engines.errors import EngineUnavailable, VlmAnswerUnusable

_MAX_PIXELS = 4096  # of the longer side of a page's picture
_TAG = re.compile(r"<[a-z_]+[0-9]*>")


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
    stage.engine = _Endpoint(options, PageAsker(options, _key(options)))  # type: ignore[attr-defined]
    return pipeline


def _key(options: VlmOptions) -> SecretStr | None:
    """From this worker's own environment: it travels with no plan and rests in no file."""
    fault = key_fault(options.api_key_env, os.environ)
    if fault:
        raise EngineUnavailable(f"parsing.vlm.api_key_env: on this worker {fault}; set it where workers run.")
    return SecretStr(os.environ[options.api_key_env]) if options.api_key_env else None


class _Endpoint:
    """What Docling's VLM stage takes for an inference engine."""

    def __init__(self, options: VlmOptions, asker: PageAsker) -> None:
        self._options = options
        self._asker = asker

    def predict_batch(self, inputs: Sequence[Any]) -> list[Any]:
        """An answer for each page, in order; a fault of the server ends the document."""
        with ThreadPoolExecutor(self._options.concurrency) as pool:
            return list(pool.map(lambda page: self._output(self._asker.ask(page.image)), inputs))

    def cleanup(self) -> None:
        """Docling calls this at the end."""
        self._asker.close()

    def _output(self, answer: Answer) -> Any:
        """An answer that is no page is a page that failed: the others still count."""
        from docling.datamodel.base_models import VlmStopReason
        from docling.models.inference_engines.vlm.base import VlmEngineOutput

        fault = self._fault(answer.text)
        if fault:
            stop = VlmStopReason.INFERENCE_ERROR
            return VlmEngineOutput(text="", stop_reason=stop.value, metadata={"error": fault})
        reasons = {"length": VlmStopReason.LENGTH, "content_filter": VlmStopReason.CONTENT_FILTERED}
        stop = reasons.get(answer.finish_reason, VlmStopReason.END_OF_SEQUENCE)
        return VlmEngineOutput(text=answer.text, stop_reason=stop.value)

    def _fault(self, text: str) -> str:
        if not text:
            return "the answer is empty"
        if self._options.response_format == "doctags" and not _TAG.search(text):
            return "the answer holds no DocTags"
        return ""
