"""The names of spans, events, attributes and labels, all in one place.

Those of the GenAI conventions exist in two editions. "1.41" is the last one of OpenTelemetry's semantic conventions
(open-telemetry/semantic-conventions, v1.41.0, docs/gen-ai); "next" is its successor in
open-telemetry/semantic-conventions-genai, described in its docs/gen-ai/non-normative/migration.md: metrics of inference
are named `gen_ai.client.inference.*` (#521), token usage is separate counters for input and output (#374), and
"creation" of a provider's cache became "write" (#440). Span names, `gen_ai.provider.name`, the other attributes and
`gen_ai.evaluation.result` are the same in both. Names that the conventions do not define begin with `grounding.`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Semconv = Literal["1.41", "next"]
Purpose = Literal["answer", "sample", "correction", "probe"]
"""The purpose of a call: the answer, another sample of it, a correction, or a probability estimate."""

METHOD: Final = "http.request.method"
ROUTE: Final = "http.route"
STATUS_CODE: Final = "http.response.status_code"
ERROR: Final = "error.type"

OPERATION: Final = "gen_ai.operation.name"
PROVIDER: Final = "gen_ai.provider.name"
REQUEST_MODEL: Final = "gen_ai.request.model"
REQUEST_STREAM: Final = "gen_ai.request.stream"
RESPONSE_ID: Final = "gen_ai.response.id"
RESPONSE_MODEL: Final = "gen_ai.response.model"
FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
FIRST_CHUNK: Final = "gen_ai.response.time_to_first_chunk"
INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
CACHE_READ: Final = "gen_ai.usage.cache_read.input_tokens"
REASONING: Final = "gen_ai.usage.reasoning.output_tokens"
INPUT_MESSAGES: Final = "gen_ai.input.messages"
OUTPUT_MESSAGES: Final = "gen_ai.output.messages"
TOKEN_TYPE: Final = "gen_ai.token.type"  # noqa: S105 - no password
TOKEN_MODALITY: Final = "gen_ai.token.modality"  # noqa: S105 - no password

EVALUATION: Final = "gen_ai.evaluation.result"
EVALUATION_NAME: Final = "gen_ai.evaluation.name"
EVALUATION_SCORE: Final = "gen_ai.evaluation.score.value"
EVALUATION_LABEL: Final = "gen_ai.evaluation.score.label"
EVALUATION_EXPLANATION: Final = "gen_ai.evaluation.explanation"

CONVERSATION: Final = "gen_ai.conversation.id"

VERIFY_SPAN: Final = "grounding verify"
STAGE_EVENT: Final = "grounding.stage"
CLIENT: Final = "grounding.client"
SUBJECT: Final = "grounding.subject.hash"
GROUNDING_ID: Final = "grounding.id"
STATUS: Final = "grounding.status"
VERDICT: Final = "grounding.verdict"
FLAG: Final = "grounding.flag"
FLAGS: Final = "grounding.flags"
CLAIM_LABEL: Final = "grounding.claim.label"
VERIFIER: Final = "grounding.verifier"
STAGE: Final = "grounding.stage"
UPSTREAM: Final = "grounding.upstream"
PURPOSE: Final = "grounding.purpose"
BUDGET_STATUS: Final = "grounding.budget.status"
SCORE_KIND: Final = "grounding.score.kind"
CONTRADICTION_KIND: Final = "grounding.contradiction.kind"
SEVERITY: Final = "grounding.severity"
DECISION: Final = "grounding.review.decision"
PART: Final = "grounding.part"
JOB: Final = "grounding.job.kind"
OUTCOME: Final = "grounding.outcome"
SIGNAL: Final = "grounding.signal"
TARGET: Final = "grounding.target"
CLAIMS: Final = "grounding.claims"
SOURCES: Final = "grounding.sources"
VERSION: Final = "service.version"

REQUEST_ATTRIBUTES: Final = {
    "gen_ai.request.temperature": "temperature",
    "gen_ai.request.top_p": "top_p",
    "gen_ai.request.top_k": "top_k",
    "gen_ai.request.max_tokens": "max_tokens",
    "gen_ai.request.choice.count": "n",
    "gen_ai.request.seed": "seed",
    "gen_ai.request.frequency_penalty": "frequency_penalty",
    "gen_ai.request.presence_penalty": "presence_penalty",
}


@dataclass(frozen=True, slots=True)
class GenAINames:
    """The names that differ between editions; with `counts_tokens` usage is two counters, else one histogram."""

    duration: str
    first_chunk: str
    per_chunk: str
    input_tokens: str
    output_tokens: str
    cache_written: str
    counts_tokens: bool


EDITIONS: Final[dict[Semconv, GenAINames]] = {
    "1.41": GenAINames(
        duration="gen_ai.client.operation.duration",
        first_chunk="gen_ai.client.operation.time_to_first_chunk",
        per_chunk="gen_ai.client.operation.time_per_output_chunk",
        input_tokens="gen_ai.client.token.usage",
        output_tokens="gen_ai.client.token.usage",
        cache_written="gen_ai.usage.cache_creation.input_tokens",
        counts_tokens=False,
    ),
    "next": GenAINames(
        duration="gen_ai.client.inference.duration",
        first_chunk="gen_ai.client.inference.time_to_first_chunk",
        per_chunk="gen_ai.client.inference.time_per_output_chunk",
        input_tokens="gen_ai.client.inference.usage.input_tokens",
        output_tokens="gen_ai.client.inference.usage.output_tokens",
        cache_written="gen_ai.usage.cache_write.input_tokens",
        counts_tokens=True,
    ),
}
