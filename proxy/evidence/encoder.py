"""A classifier of claims and their evidence, run by ONNX Runtime.

Its graph is given a pair of texts: premise and hypothesis of an NLI cross-encoder, prompt and answer of LettuceDetect's
token classifiers. Both kinds are told apart by the shape of their `logits`. A cross-encoder may have `token_logits`
besides, one for each token: the log-odds that it is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import structlog
from numpy.typing import NDArray
from tokenizers import Tokenizer

from proxy.errors import ConfigError
from proxy.evidence.files import Files
from proxy.evidence.labels import supporting
from proxy.evidence.pairs import LAYOUTS, Layout, Pair
from proxy.verification.encoder import Opinion, TooLong

log = structlog.get_logger("groundwire.encoder")

_TYPES: Mapping[str, np.dtype[Any]] = {"tensor(int64)": np.dtype(np.int64), "tensor(int32)": np.dtype(np.int32)}
_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
EVIDENCE = "{evidence}"
_LEAST_ROOM = 32  # tokens of evidence, below which a claim is too long to be read with any
_SPARE = 8  # tokens, for a window cut out of a text may be cut into a few more tokens than it had there
_DOUBTED = 0.5  # probability of being hallucinated, from which on a token is doubted
_WORD = re.compile(r"\w+(?:[-'’.,]\w+)*")

Row = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Reading:
    """How an encoder is read: `template` stands around the evidence, `max_tokens` is the most that it reads at once."""

    template: str = EVIDENCE
    max_tokens: int = 512
    supported_label: str | None = None


class OnnxEncoder:
    """Says how likely evidence supports a claim. Any thread may call it; the work is done on the calling thread."""

    def __init__(self, files: Files, reading: Reading = Reading()) -> None:
        """Loads and tries the model. Raises ConfigError, naming the folder, when it cannot do what is asked of it."""
        self._template = reading.template
        try:
            own = files.config.get("groundwire", {})
            self._layout = _layout(own.get("layout", "evidence_first"))
            self._tokenizer = _tokenizer(files.tokenizer)
            self._session = _session(files.graph)
            self._length = _length(self._session)
            self._padding = int(files.config.get("pad_token_id") or 0)
            limits = (_positions(files.config), own.get("max_tokens"), self._length)
            self._limit = min(reading.max_tokens, *(int(limit) for limit in limits if limit))
            self._inputs, self._outputs = _inputs(self._session), _outputs(self._session)
            tried = self._run(self._pair("a", "a"))[0]
            self._per_token = tried.ndim == 2
            labels = _labels(files.config, tried.shape[-1])
            self._supporting = sorted(supporting(labels, per_token=self._per_token, named=reading.supported_label))
        except Exception as error:  # what both libraries raise about a model that is none is theirs to choose
            raise ConfigError([f"encoder.model: {files.folder} cannot be used: {_first_line(error)}"]) from error

    def __call__(self, claim: str, evidence: str) -> Opinion:
        """The opinion of the window of evidence that supports the claim best.

        Raises TooLong when no evidence fits beside the claim, and what ONNX Runtime raises, after telling the log.
        """
        windows = list(self._windows(claim, evidence))
        try:
            opinions = [self._opinion(claim, window) for window in windows]
        except Exception as error:
            log.warning("encoder.failed", error=type(error).__name__, detail=_first_line(error))
            raise
        return max(opinions, key=lambda opinion: opinion.support)

    def _opinion(self, claim: str, evidence: str) -> Opinion:
        pair = self._pair(claim, evidence)
        logits, *of_tokens = self._run(pair)
        support: Row = _shares(logits)[..., self._supporting].sum(axis=-1)
        if self._per_token:
            return _of_tokens(claim, pair, 1 - support)
        doubted = _of_tokens(claim, pair, _shares(of_tokens[0].reshape(-1, 1))[:, 0]).doubted if of_tokens else ()
        return Opinion(float(support), doubted)

    def _pair(self, claim: str, evidence: str) -> Pair:
        return self._layout(self._tokenizer, claim, self._template.replace(EVIDENCE, evidence))

    def _windows(self, claim: str, evidence: str) -> Iterator[str]:
        """The evidence, or overlapping windows of it that fit beside the claim: nothing is cut off."""
        room = self._limit - len(self._pair(claim, "").ids)
        if room < _LEAST_ROOM:
            raise TooLong(f"{self._limit} tokens are too few for it")
        spans = self._tokenizer.encode(evidence, add_special_tokens=False).offsets
        if len(spans) <= room:
            yield evidence
            return
        width = room - _SPARE
        for first in range(0, len(spans) - width // 2, width // 2):
            last = min(first + width, len(spans)) - 1
            yield evidence[spans[first][0] : spans[last][1]]

    def _run(self, pair: Pair) -> list[Row]:
        """What the graph says of one pair: `(labels,)` or `(tokens, labels)`, and what it says of tokens besides."""
        count = len(pair.ids)
        rest = max(0, (self._length or 0) - count)
        given = {
            "input_ids": [*pair.ids, *[self._padding] * rest],
            "attention_mask": [1] * count + [0] * rest,
            "token_type_ids": [*pair.types, *[0] * rest],
        }
        fed = {name: np.array([given[name]], dtype) for name, dtype in self._inputs.items()}
        found = [np.asarray(each, np.float64)[0] for each in self._session.run(self._outputs, fed)]
        return [each[:count] if rest and len(each) == count + rest else each for each in found]


def _layout(name: str) -> Layout:
    if name not in LAYOUTS:
        raise ValueError(f"its layout {name} is none of {', '.join(LAYOUTS)}")
    return LAYOUTS[name]


def _tokenizer(path: Path) -> Tokenizer:
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _session(path: Path) -> onnxruntime.InferenceSession:
    """One core, and no memory kept beyond what one pair takes: claims of other answers wait in other threads."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.enable_cpu_mem_arena = False
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def _inputs(session: onnxruntime.InferenceSession) -> dict[str, np.dtype[Any]]:
    """The graph's inputs with their types. ValueError: it asks for something that a pair of texts does not have."""
    asked = {each.name: each.type for each in session.get_inputs()}
    if strange := [name for name, kind in asked.items() if name not in _INPUTS or kind not in _TYPES]:
        raise ValueError(f"its graph asks for {', '.join(strange)}")
    return {name: _TYPES[kind] for name, kind in asked.items()}


def _length(session: onnxruntime.InferenceSession) -> int | None:
    """The number of tokens that the graph takes, where it was exported for one number only."""
    tokens = session.get_inputs()[0].shape[-1]
    return tokens if isinstance(tokens, int) else None


def _outputs(session: onnxruntime.InferenceSession) -> list[str]:
    names = [str(output.name) for output in session.get_outputs()]
    return [name for name in ("logits", "token_logits") if name in names] or names[:1]


def _labels(config: Mapping[str, Any], count: int) -> dict[int, str]:
    """What the places of the logits are called, by the config or as its writers call what has no name.

    ValueError: the config is of another model, for it names more labels or fewer.
    """
    told = config.get("id2label") or {}
    if told and len(told) != count:
        raise ValueError(f"its graph tells {count} labels apart, and its config.json names {len(told)}")
    return {place: str(told.get(str(place), f"LABEL_{place}")) for place in range(count)}


def _positions(config: Mapping[str, Any]) -> int:
    """How many tokens have a position; RoBERTa's kind count theirs from behind the padding token's id."""
    positions = int(config.get("max_position_embeddings") or 512)
    is_shifted = "roberta" in str(config.get("model_type", "")) or config.get("model_type") in ("camembert", "mpnet")
    return positions - (int(config.get("pad_token_id", 1)) + 1 if is_shifted else 0)


def _shares(logits: Row) -> Row:
    """Probabilities over the last axis; of a single logit, that of its one label."""
    if logits.shape[-1] == 1:
        return 1 / (1 + np.exp(-logits))
    raised = np.exp(logits - logits.max(axis=-1, keepdims=True))
    shares: Row = raised / raised.sum(axis=-1, keepdims=True)
    return shares


def _of_tokens(claim: str, pair: Pair, hallucinated: Row) -> Opinion:
    """A claim is as likely supported as its most doubted token; tokens without a letter or digit do not count."""
    told = [
        (place, float(share))
        for place, share in zip(pair.places, hallucinated, strict=True)
        if place and _WORD.search(claim[slice(*place)])
    ]
    doubted = [place for place, share in told if share >= _DOUBTED]
    return Opinion(1 - max((share for _, share in told), default=0.0), tuple(_phrases(claim, doubted)))


def _phrases(claim: str, doubted: Sequence[tuple[int, int]]) -> Iterator[str]:
    """The words that doubted tokens are part of, neighbours together."""
    words = [match.span() for match in _WORD.finditer(claim)]
    for is_doubted, run in groupby(words, lambda word: any(low < word[1] and word[0] < high for low, high in doubted)):
        if is_doubted:
            phrase = list(run)
            yield claim[phrase[0][0] : phrase[-1][1]]


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
