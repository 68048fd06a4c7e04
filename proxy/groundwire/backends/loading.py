"""Load the judge that the settings describe; a server loads its model in the background."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from hashlib import sha256
from importlib.resources import files as package_files
from pathlib import Path

import structlog

from groundwire.backends.models import Files, Profile, find_files, find_model
from groundwire.backends.pairs import can_use_wordpiece
from groundwire.backends.vectors import WordVectors
from groundwire.config import SHIPPED, JudgeSettings
from groundwire.errors import ConfigError
from groundwire.extras import require_extras
from groundwire.judge import Judge
from groundwire.verifiers.entailment import EntailmentModel, Opinion, Question, State
from groundwire.verifiers.signals import Combination, read_combination

log = structlog.get_logger("groundwire.judge")

_SHIPPED = Path(str(package_files("groundwire.backends").joinpath("shipped")))


class LoadingModel:
    """A model that a separate thread loads, beginning at construction."""

    def __init__(self, load: Callable[[], EntailmentModel]) -> None:
        self._load = load
        self._model: EntailmentModel | None = None
        self._failed = False
        self._thread = threading.Thread(target=self._run, name="groundwire-judge")  # not a daemon: exit waits
        self._thread.start()

    @property
    def state(self) -> State:
        """The state of loading."""
        return self._model.state if self._model else "failed" if self._failed else "loading"

    def entail(self, questions: Sequence[Question]) -> Sequence[Opinion]:
        """Query the model. Raises RuntimeError while it is not loaded."""
        if self._model is None:
            raise RuntimeError("the entailment model is not loaded")
        return self._model.entail(questions)

    def wait(self, timeout: float) -> None:
        """Wait until loading has succeeded or failed, at most `timeout` seconds."""
        self._thread.join(timeout)

    def _run(self) -> None:
        try:
            self._model = self._load()
        except Exception as error:
            self._failed = True
            log.exception("judge.load_failed", error=type(error).__name__)


def start_judge(settings: JudgeSettings) -> Judge:
    """Return a judge whose model is loaded in the background. Raises ConfigError when a file is missing."""
    if settings.by == "off":
        return Judge()
    files, profile = _files(settings)
    model = LoadingModel(lambda: _model(files, profile))
    return Judge(model, _combination(files, settings), vectors=shipped_vectors())


@lru_cache(maxsize=2)
def load_judge(settings: JudgeSettings = JudgeSettings()) -> Judge:
    """Return a judge whose model is loaded. Raises ConfigError when it cannot be, or is a language model."""
    if settings.by == "off":
        return Judge()
    if settings.is_language:
        raise ConfigError([f"judge.by: {settings.by} is no encoder, and nothing else can judge here"])
    files, profile = _files(settings)
    return Judge(_model(files, profile), _combination(files, settings), vectors=shipped_vectors())


@lru_cache(maxsize=8)
def judge_identity(settings: JudgeSettings) -> str:
    """Return the identity of the judge: a digest of its settings, its profile, the vectors, and its files."""
    if settings.by == "off":
        return ""
    if settings.is_language:
        return sha256(f"{settings.identity}{judge_identity(settings.encoder)}".encode()).hexdigest()[:16]
    files, profile = _files(settings)
    parts = sha256(f"{settings.identity}{profile}".encode())
    parts.update(files.graph.stat().st_size.to_bytes(8, "big"))
    parts.update(shipped_vectors().path.read_bytes())
    for path in (files.folder / "config.json", _weights(files, settings)):
        parts.update(path.read_bytes() if path and path.is_file() else b"")
    return parts.hexdigest()[:16]


def _files(settings: JudgeSettings) -> tuple[Files, Profile]:
    """Find the files of a model. Raises ConfigError when one, or the library that reads them, is missing."""
    profile = find_model(settings)
    if profile.model == SHIPPED:
        return find_files(str(_SHIPPED), None, profile.file), profile
    files = find_files(profile.model, profile.revision, profile.file)
    layout = profile.layout or files.config.get("groundwire", {}).get("layout")
    if not can_use_wordpiece(files.tokenizer, layout):
        require_extras(("judge.model", "hub"))
    return files, profile


@cache
def shipped_vectors() -> WordVectors:
    """Return the shipped vectors, which select the evidence for every model."""
    return WordVectors(_SHIPPED)


def _model(files: Files, profile: Profile) -> EntailmentModel:
    """Load a model, and the vectors that select its evidence."""
    try:
        from groundwire.backends.onnx import OnnxModel

        shipped_vectors().load()
    except ImportError as error:
        raise ConfigError([f"judge.by: {error.name} is not installed; judge.by: off needs none"]) from error
    return OnnxModel(files, profile)


def _weights(files: Files, settings: JudgeSettings) -> Path | None:
    return Path(settings.weights).expanduser() if settings.weights else files.combination


def _combination(files: Files, settings: JudgeSettings) -> Combination:
    path = _weights(files, settings)
    if path is None:
        return Combination()
    try:
        return read_combination(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError([f"judge.weights: {path}: {error.strerror}"]) from error
    except ValueError as error:
        raise ConfigError([f"judge.weights: {path}: {error}"]) from error
