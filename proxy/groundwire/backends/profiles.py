"""Profiles of public models: the location of their files, their input format, and published facts about them.

`judge.model` takes the name of a profile. docs/models.md has the same facts as a table, and the models without a
profile.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from groundwire.config import SHIPPED, JudgeSettings
from groundwire.errors import ConfigError

MAX_TOKENS = 512
"""The maximum length of a pair if neither settings nor profile set one."""


@dataclass(frozen=True, slots=True)
class Profile:
    """A public model. Without `file`, its repository has no known ONNX graph, so it has to be exported.

    `model` to `max_tokens` are used for loading; `labels` are in the order of the outputs. The rest is for people:
    `megabytes` of the file that is loaded, or of the weights to export (None: not verified); `context` is the number of
    tokens that the model was published for.
    """

    model: str
    revision: str | None
    file: str | None
    labels: tuple[str, ...]
    licence: str
    parameters: str
    megabytes: int | None
    context: int
    accuracy: str
    source: str
    note: str = ""
    template: str | None = None
    supported_label: str | None = None
    layout: str | None = None
    max_tokens: int = MAX_TOKENS
    task: str = "text-classification"

    def export_command(self, folder: str) -> str:
        """Return the command that writes the files of the model, with an ONNX graph, to a folder."""
        return f"optimum-cli export onnx --model {self.model} --task {self.task} {folder}"


@dataclass(frozen=True, slots=True)
class ModelSource:
    """The location of a model's files and its input format, from settings and profile together."""

    model: str
    revision: str | None
    file: str | None
    template: str | None
    supported_label: str | None
    layout: str | None
    max_tokens: int


_NLI = ("contradiction", "entailment", "neutral")
_SENTENCE_TRANSFORMERS = "the list of pretrained cross-encoders of the sentence-transformers documentation"
_LETTUCE = "docs/benchmarks.md of KRLabsOrg/LettuceDetect and the model card"
_TINY = "docs/TINYLETTUCE.md of KRLabsOrg/LettuceDetect"
_MINICHECK = "arXiv:2404.10774v2, average over LLM-AggreFact, cited from a summary of the paper"


def _cross_encoder(size: str, revision: str, parameters: str, megabytes: int | None, accuracy: str) -> Profile:
    return Profile(
        model=f"cross-encoder/nli-deberta-v3-{size}",
        revision=revision,
        file="onnx/model_quint8_avx2.onnx",
        labels=_NLI,
        licence="Apache-2.0",
        parameters=parameters,
        megabytes=megabytes,
        context=512,
        accuracy=f"MNLI mismatched {accuracy} %",
        source=_SENTENCE_TRANSFORMERS,
    )


def _lettuce(name: str, parameters: str, accuracy: str, source: str, note: str = "") -> Profile:
    return Profile(
        model=f"KRLabsOrg/{name}",
        revision=None,
        file=None,
        labels=("supported", "hallucinated"),
        licence="MIT",
        parameters=parameters,
        megabytes=None,
        context=4096,
        accuracy=f"RAGTruth, whole answers: F1 {accuracy} %",
        source=source,
        note=note,
        template="Summarize the following text:\npassage 1: {evidence}\noutput:",
        task="token-classification",
    )


def _minicheck(
    name: str, revision: str, parameters: str, megabytes: int, accuracy: str, context: int, layout: str | None
) -> Profile:
    return Profile(
        model=f"lytang/MiniCheck-{name}",
        revision=revision,
        file=None,
        labels=("0", "1"),
        licence="MIT",
        parameters=parameters,
        megabytes=megabytes,
        context=context,
        accuracy=f"LLM-AggreFact: balanced accuracy {accuracy} %",
        source=_MINICHECK,
        note="label 1 is supported; it does not tell a contradiction from what is not stated",
        supported_label="1",
        layout=layout,
    )


PROFILES: Mapping[str, Profile] = MappingProxyType(
    {
        "nli-deberta-v3-xsmall": _cross_encoder(
            "xsmall", "a150876415327c80daeff35ca6f68f5ed8cf5c24", "71 M", None, "87.77"
        ),
        "nli-deberta-v3-small": _cross_encoder(
            "small", "fa2804872c3b4bd748f38c0185cc85775361e735", "142 M", 173, "87.55"
        ),
        "nli-deberta-v3-base": _cross_encoder(
            "base", "6c749ce3425cd33b46d187e45b92bbf96ee12ec7", "184 M", 244, "90.04"
        ),
        "nli-deberta-v3-base-fever": Profile(
            model="Xenova/DeBERTa-v3-base-mnli-fever-anli",
            revision=None,
            file="onnx/model_quantized.onnx",
            labels=("entailment", "neutral", "contradiction"),
            licence="MIT",
            parameters="184 M",
            megabytes=244,
            context=512,
            accuracy="ANLI, round 1 71.2 %, round 3 49.5 %",
            source="the card of MoritzLaurer/DeBERTa-v3-base-mnli-fever-anli",
            note="an export of that model by others, trained on MNLI, FEVER and ANLI; licence and labels are the "
            "original's; the commit of the export is not pinned",
        ),
        "nli-modernbert-base": Profile(
            model="tasksource/ModernBERT-base-nli",
            revision="de4ab7e77845098b7fab7f6ab9d370ddff27b19c",
            file=None,
            labels=("entailment", "neutral", "contradiction"),
            licence="Apache-2.0",
            parameters="150 M",
            megabytes=598,
            context=8192,
            accuracy="MNLI 82 %, ANLI round 3 38 %, after 10,000 of 200,000 steps",
            source="an early version of the model card",
            note="the figures of the finished model are not verified, nor is its context; "
            "third label inferred from the first two",
        ),
        "lettucedetect-base": _lettuce(
            "lettucedect-base-modernbert-en-v1", "150 M", "76.8", _LETTUCE, "76.07 in the document on TinyLettuce"
        ),
        "lettucedetect-large": _lettuce("lettucedect-large-modernbert-en-v1", "395 M", "79.22", _LETTUCE),
        "tinylettuce-17m": _lettuce("tinylettuce-ettin-17m-en", "17 M", "68.52", _TINY),
        "tinylettuce-32m": _lettuce("tinylettuce-ettin-32m-en", "32 M", "72.15", _TINY),
        "tinylettuce-68m": _lettuce("tinylettuce-ettin-68m-en", "68 M", "74.97", _TINY),
        "minicheck-roberta-large": _minicheck(
            "RoBERTa-Large",
            "74c8919647e61ed0f71bc177d94f10930f090068",
            "355 M",
            1420,
            "72.7",
            512,
            "evidence_first_one_separator",
        ),
        "minicheck-deberta-large": _minicheck(
            "DeBERTa-v3-Large", "2f2d01a54fa022a7ffadb76260e1ea8bc88c82bb", "435 M", 1740, "72.6", 2048, None
        ),
    }
)
"""All profiles by name."""


def find_model(settings: JudgeSettings) -> ModelSource:
    """Return the model that settings select; explicit settings override its profile.

    Raises ConfigError for a name that is unknown, and for a model that has to be exported first.
    """
    is_named = settings.model in PROFILES
    name = settings.model if is_named else settings.profile
    if not is_named:
        _check_name(settings.model)
    if name is None:
        return _without_profile(settings)
    if name not in PROFILES:
        raise ConfigError([f"judge.profile: {name} is no profile{_nearest(name)}"])
    if settings.model == SHIPPED:
        raise ConfigError([f"judge.profile: the shipped model needs none; for another one, set judge.model: {name}"])
    profile = PROFILES[name]
    if is_named and profile.file is None and settings.file is None:
        folder = f"models/{name}"
        raise ConfigError(
            [
                f"judge.model: {name} has no ONNX graph on the hub that is known here. Export it once "
                f"({profile.export_command(folder)}), then set judge.model: {folder} and judge.profile: {name}"
            ]
        )
    return ModelSource(
        profile.model if is_named else settings.model,
        settings.revision or (profile.revision if is_named else None),
        settings.file or (profile.file if is_named else None),
        settings.template or profile.template,
        settings.supported_label or profile.supported_label,
        profile.layout,
        settings.max_tokens or profile.max_tokens,
    )


def _without_profile(settings: JudgeSettings) -> ModelSource:
    return ModelSource(
        settings.model,
        settings.revision,
        settings.file,
        settings.template,
        settings.supported_label,
        None,
        settings.max_tokens or MAX_TOKENS,
    )


def _check_name(model: str) -> None:
    if model != SHIPPED and "/" not in model and not Path(model).is_dir():
        raise ConfigError([f"judge.model: {model} is no profile, folder or hub id such as owner/name{_nearest(model)}"])


def _nearest(name: str) -> str:
    near = difflib.get_close_matches(name.lower(), [SHIPPED, *PROFILES], n=1)
    return f" (did you mean '{near[0]}'?)" if near else ""
