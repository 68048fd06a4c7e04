"""Run an entailment model with ONNX Runtime: a cross-encoder of claim and evidence, or a token classifier.

The graph is given a pair of texts: premise and hypothesis of an NLI cross-encoder, prompt and answer of LettuceDetect's
token classifiers. The two kinds differ in the shape of their `logits`. A cross-encoder may also have `token_logits`,
one for each of the first tokens at least to the end of the claim: the log-odds that it is wrong.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import structlog
from numpy.typing import NDArray

from groundwire.backends.models import EVIDENCE, Files, Profile
from groundwire.backends.pairs import (
    LAYOUTS,
    Layout,
    Pair,
    claim_first_matched,
    evidence_first,
    is_wordpiece,
    load_wordpiece,
)
from groundwire.errors import ConfigError
from groundwire.extras import require_extras
from groundwire.verifiers.entailment import Entailment, Question, State

log = structlog.get_logger("groundwire.judge")

_TYPES: Mapping[str, np.dtype[Any]] = {"tensor(int64)": np.dtype(np.int64), "tensor(int32)": np.dtype(np.int32)}
_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
_DOUBTED = 0.5  # the least probability of being wrong at which a token is doubted
_WORD = re.compile(r"\w+(?:[-'’.,]\w+)*")

Row = NDArray[np.float64]


class OnnxModel:
    """An entailment model. It may be called from any thread and works on the calling one.

    Pairs are run one by one: in a batch the quantised sums of one pair would depend on the others, and with them
    verdicts.
    """

    state: State = "ready"

    def __init__(self, files: Files, profile: Profile) -> None:
        """Load and try the model. Raises ConfigError, naming the folder, when its kind is not supported."""
        self._template = profile.template or EVIDENCE
        try:
            own = files.config.get("groundwire", {})
            layout = profile.layout or own.get("layout", "evidence_first")
            if layout not in LAYOUTS:
                raise ValueError(f"its layout {layout} is none of {', '.join(LAYOUTS)}")
            self._layout = LAYOUTS[layout]
            self._tokenizer = load_tokenizer(files.tokenizer, self._layout)
            self._session = _session(files.graph)
            tokens = self._session.get_inputs()[0].shape[-1]
            self._length = tokens if isinstance(tokens, int) else None  # fixed when the graph was exported, or any
            self._padding = int(files.config.get("pad_token_id") or 0)
            limits = (_positions(files.config), own.get("max_tokens"), self._length)
            self._limit = min(profile.max_tokens, *(int(limit) for limit in limits if limit))
            self._inputs, self._outputs = _inputs(self._session), _outputs(self._session)
            tried = self._run(self._pair(Question("a", "", "a")))[0]
            self._per_token = tried.ndim == 2
            labels = _labels(files.config, tried.shape[-1])
            self._supporting = sorted(supporting(labels, per_token=self._per_token, named=profile.supported_label))
            self._contradicting = sorted(contradicting(labels))
        except ConfigError:
            raise
        except Exception as error:  # both libraries raise arbitrary exceptions for invalid files
            raise ConfigError([f"judge.model: {files.folder} cannot be used: {_first_line(error)}"]) from error

    def entail(self, questions: Sequence[Question]) -> list[Entailment]:
        """Return the model's opinion on each question. Logs and re-raises errors of ONNX Runtime."""
        try:
            return [self._entail(question) for question in questions]
        except Exception as error:
            log.warning("judge.failed", error=type(error).__name__, detail=_first_line(error))
            raise

    def _entail(self, question: Question) -> Entailment:
        pair = self._pair(question)
        logits, *of_tokens = self._run(pair)
        shares = _shares(logits)
        support: Row = shares[..., self._supporting].sum(axis=-1)
        if self._per_token:  # the support of a claim is that of its most doubted token
            wrong = max((share for _, share in _in_claim(question.claim, pair, 1 - support)), default=0.0)
            return Entailment(1 - wrong, 0.0, _doubted(question.claim, pair, 1 - support))
        contradicted = float(shares[..., self._contradicting].sum(axis=-1))
        doubted = _doubted(question.claim, pair, _shares(of_tokens[0].reshape(-1, 1))[:, 0]) if of_tokens else ()
        return Entailment(float(support), contradicted, doubted)

    def _pair(self, question: Question) -> Pair:
        evidence = self._template.replace(EVIDENCE, question.evidence)
        return self._layout(self._tokenizer, question.claim, question.lead, evidence, self._limit)

    def _run(self, pair: Pair) -> list[Row]:
        """Return the outputs for a pair: `(labels,)` or `(tokens, labels)`, and those of tokens if there are any."""
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


def load_tokenizer(path: Path, layout: Layout = evidence_first) -> Any:
    """Load a tokenizer that neither pads nor truncates, and reads special tokens in a text as text.

    Raises ConfigError when it needs the library `tokenizers`, which is not installed.
    """
    described = json.loads(path.read_text(encoding="utf-8"))
    if layout is claim_first_matched and is_wordpiece(described):
        return load_wordpiece(path)
    require_extras(("judge.model", "hub"))
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.encode_special_tokens = True
    return tokenizer


def _session(path: Path) -> onnxruntime.InferenceSession:
    """Open a session on one core that keeps no memory beyond one pair; other threads use other cores.

    An addition and a normalisation take a fifth of the time of the operator that ONNX Runtime makes of the two.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.enable_cpu_mem_arena = False
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(
        str(path), options, providers=["CPUExecutionProvider"], disabled_optimizers=["SkipLayerNormFusion"]
    )


def _inputs(session: onnxruntime.InferenceSession) -> dict[str, np.dtype[Any]]:
    """Return the graph's inputs with their types. Raises ValueError for one that a pair of texts does not have."""
    required = {each.name: each.type for each in session.get_inputs()}
    if strange := [name for name, kind in required.items() if name not in _INPUTS or kind not in _TYPES]:
        raise ValueError(f"its graph asks for {', '.join(strange)}")
    return {name: _TYPES[kind] for name, kind in required.items()}


def _outputs(session: onnxruntime.InferenceSession) -> list[str]:
    names = [str(output.name) for output in session.get_outputs()]
    return [name for name in ("logits", "token_logits") if name in names] or names[:1]


def _labels(config: Mapping[str, Any], count: int) -> dict[int, str]:
    """Return the names of the labels by index. Raises ValueError when the config has another number of labels."""
    names = config.get("id2label") or {}
    if names and len(names) != count:
        raise ValueError(f"its graph has {count} labels, and its config.json names {len(names)}")
    return {place: str(names.get(str(place), f"LABEL_{place}")) for place in range(count)}


def _positions(config: Mapping[str, Any]) -> int:
    """Return the number of token positions; models of RoBERTa's kind count from behind the padding token's id."""
    positions = int(config.get("max_position_embeddings") or 512)
    is_shifted = "roberta" in str(config.get("model_type", "")) or config.get("model_type") in ("camembert", "mpnet")
    return positions - (int(config.get("pad_token_id", 1)) + 1 if is_shifted else 0)


def _shares(logits: Row) -> Row:
    """Return probabilities over the last axis; of a single logit, that of its one label."""
    if logits.shape[-1] == 1:
        return 1 / (1 + np.exp(-logits))
    raised = np.exp(logits - logits.max(axis=-1, keepdims=True))
    shares: Row = raised / raised.sum(axis=-1, keepdims=True)
    return shares


def _in_claim(claim: str, pair: Pair, wrong: Row) -> Iterator[tuple[tuple[int, int], float]]:
    """Yield the tokens of the claim that contain a letter or digit, each with its probability of being wrong."""
    for place, share in zip(pair.places[: len(wrong)], wrong, strict=True):
        if place and _WORD.search(claim[slice(*place)]):
            yield place, float(share)


def _doubted(claim: str, pair: Pair, wrong: Row) -> tuple[str, ...]:
    """Return the words that contain doubted tokens, with neighbours joined."""
    doubted = [place for place, share in _in_claim(claim, pair, wrong) if share >= _DOUBTED]
    spans = [match.span() for match in _WORD.finditer(claim)]
    phrases: list[str] = []
    for is_doubted, run in groupby(spans, lambda word: any(low < word[1] and word[0] < high for low, high in doubted)):
        if is_doubted:
            phrase = list(run)
            phrases.append(claim[phrase[0][0] : phrase[-1][1]])
    return tuple(phrases)


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


_SUPPORTED = frozenset(
    "entailment entailed entails entail supported supports support supporting faithful grounded consistent factual "
    "nothallucinated nothallucination nonhallucinated".split()
)
_CONTRADICTING = frozenset("contradiction contradicted contradicts contradict refuted refutes refute".split())
_AGAINST = _CONTRADICTING | frozenset(
    "neutral notentailment nonentailment notentailed notenoughinfo nei unsupported notsupported hallucination "
    "hallucinated inconsistent unfaithful ungrounded nonfactual baseless fabricated".split()
)
_GENERIC = re.compile(r"(?:label)?\d+")
_BEGINS_OR_CONTINUES = re.compile(r"[bi][-_](?=\w{2})")
_OUTSIDE = "o"  # outside any span that a token classifier marks


def contradicting(labels: Mapping[int, str]) -> frozenset[int]:
    """Return the indices of the labels that mean "contradicted"; none if a model has no such label."""
    return frozenset(place for place, label in labels.items() if _plain(label) in _CONTRADICTING)


def supporting(labels: Mapping[int, str], *, per_token: bool, named: str | None = None) -> frozenset[int]:
    """Return the indices of the labels that mean "supported"; their probabilities add up.

    `named` overrides the meaning of names. Two unnamed labels of a token classifier are read as in LettuceDetect: 0
    supported, 1 hallucinated. Raises ValueError when the meaning cannot be determined.
    """
    if named is not None:
        places = frozenset(place for place, label in labels.items() if _plain(label) == _plain(named))
    else:
        places = _by_name({place: _plain(label) for place, label in labels.items()}, per_token)
    if not places or len(places) == len(labels) > 1:
        listed = ", ".join(labels.values())
        raise ValueError(f"judge.supported_label must name the one of its labels ({listed}) that means supported")
    return places


def _by_name(labels: Mapping[int, str], per_token: bool) -> frozenset[int]:
    known = _SUPPORTED | {_OUTSIDE} if per_token else _SUPPORTED
    places = frozenset(place for place, label in labels.items() if label in known)
    if places or len(labels) != 2:
        return places
    if any(label in _AGAINST for label in labels.values()):
        return frozenset(place for place, label in labels.items() if label not in _AGAINST)
    if per_token and all(_GENERIC.fullmatch(label) for label in labels.values()):
        return frozenset({min(labels)})
    return frozenset()


def _plain(label: str) -> str:
    """Return a label in lower-case letters and digits only, without the prefix for the beginning or inside of a
    span.
    """
    return re.sub(r"[\W_]+", "", _BEGINS_OR_CONTINUES.sub("", label.strip().lower(), count=1))
