"""The verifiers that settings ask for: with an encoder when they name one, whose libraries are needed only then."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from proxy.config import Encoder as EncoderSettings
from proxy.errors import ConfigError
from proxy.verification.alignment.model import Blend, read_blend
from proxy.verification.encoder import Encoder, verifiers
from proxy.verification.judge import VERIFIERS, Verifier


def load_verifiers(settings: EncoderSettings) -> Sequence[tuple[str, Verifier]]:
    """Every verifier, by name. Raises ConfigError when an encoder is named that cannot be loaded."""
    return VERIFIERS if settings.model is None else verifiers(*load_encoder(settings))


@lru_cache(maxsize=1)
def load_encoder(settings: EncoderSettings) -> tuple[Encoder, Blend]:
    """The encoder that is named, and how what it says counts; loaded once in a process. Raises ConfigError."""
    assert settings.model is not None  # noqa: S101 - there is something to load
    try:
        from proxy.evidence.encoder import EVIDENCE, OnnxEncoder, Reading
        from proxy.evidence.files import find_files
    except ImportError as error:
        needed = f"encoder.model: {error.name} is not installed; pip install 'groundwire[encoder]'"
        raise ConfigError([needed]) from error
    files = find_files(settings.model, settings.revision, settings.file)
    encoder = OnnxEncoder(files, Reading(settings.template or EVIDENCE, settings.max_tokens, settings.supported_label))
    weights = Path(settings.weights).expanduser() if settings.weights else files.blend
    return encoder, Blend() if weights is None else _blend(weights)


def _blend(path: Path) -> Blend:
    try:
        return read_blend(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise ConfigError([f"encoder.weights: {path}: {error.strerror}"]) from error
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError([f"encoder.weights: {path} holds no weights for an encoder"]) from error
