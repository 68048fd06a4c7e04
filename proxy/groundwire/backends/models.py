"""Find the files of an entailment model: in a folder, or on the Hugging Face hub, as a profile of a public model says.

`judge.model` takes the name of a profile. docs/models.md lists the facts about these models, and the models without a
profile.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from groundwire.config import SHIPPED, JudgeSettings
from groundwire.errors import ConfigError
from groundwire.extras import require_extras

MAX_TOKENS = 512
"""The maximum length of a pair if neither settings nor profile set one."""

EVIDENCE = "{evidence}"


@dataclass(frozen=True, slots=True)
class Profile:
    """A model: the location of its files, and its input format.

    `template` surrounds the evidence (`EVIDENCE` in it), `max_tokens` bounds a pair. Without a `layout`, that of the
    model's config.json is used. A public model without `file` has no known ONNX graph, so it has to be exported.
    """

    model: str
    revision: str | None = None
    file: str | None = None
    template: str | None = None
    supported_label: str | None = None
    layout: str | None = None
    max_tokens: int = MAX_TOKENS
    task: str = "text-classification"

    def export_command(self, folder: str) -> str:
        """Return the command that writes the files of the model, with an ONNX graph, to a folder."""
        return f"optimum-cli export onnx --model {self.model} --task {self.task} {folder}"


_QUANTISED = "onnx/model_quint8_avx2.onnx"


def _lettuce(name: str) -> Profile:
    template = "Summarize the following text:\npassage 1: {evidence}\noutput:"
    return Profile(f"KRLabsOrg/{name}", template=template, task="token-classification")


PROFILES: Mapping[str, Profile] = MappingProxyType(
    {
        "nli-deberta-v3-xsmall": Profile(
            "cross-encoder/nli-deberta-v3-xsmall", "a150876415327c80daeff35ca6f68f5ed8cf5c24", _QUANTISED
        ),
        "nli-deberta-v3-small": Profile(
            "cross-encoder/nli-deberta-v3-small", "fa2804872c3b4bd748f38c0185cc85775361e735", _QUANTISED
        ),
        "nli-deberta-v3-base": Profile(
            "cross-encoder/nli-deberta-v3-base", "6c749ce3425cd33b46d187e45b92bbf96ee12ec7", _QUANTISED
        ),
        "nli-deberta-v3-base-fever": Profile(
            "Xenova/DeBERTa-v3-base-mnli-fever-anli", file="onnx/model_quantized.onnx"
        ),
        "nli-modernbert-base": Profile("tasksource/ModernBERT-base-nli", "de4ab7e77845098b7fab7f6ab9d370ddff27b19c"),
        "lettucedetect-base": _lettuce("lettucedect-base-modernbert-en-v1"),
        "lettucedetect-large": _lettuce("lettucedect-large-modernbert-en-v1"),
        "tinylettuce-17m": _lettuce("tinylettuce-ettin-17m-en"),
        "tinylettuce-32m": _lettuce("tinylettuce-ettin-32m-en"),
        "tinylettuce-68m": _lettuce("tinylettuce-ettin-68m-en"),
        "minicheck-roberta-large": Profile(
            "lytang/MiniCheck-RoBERTa-Large",
            "74c8919647e61ed0f71bc177d94f10930f090068",
            supported_label="1",
            layout="evidence_first_one_separator",
        ),
        "minicheck-deberta-large": Profile(
            "lytang/MiniCheck-DeBERTa-v3-Large", "2f2d01a54fa022a7ffadb76260e1ea8bc88c82bb", supported_label="1"
        ),
    }
)
"""All profiles by name."""


def find_model(settings: JudgeSettings) -> Profile:
    """Return the model that settings select; explicit settings override its profile.

    Raises ConfigError for a name that is unknown, and for a model that has to be exported first.
    """
    is_named = settings.model in PROFILES
    name = settings.model if is_named else settings.profile
    if not is_named and settings.model != SHIPPED and "/" not in settings.model and not Path(settings.model).is_dir():
        unknown = f"judge.model: {settings.model} is no profile, folder or hub id such as owner/name"
        raise ConfigError([unknown + _nearest(settings.model)])
    if name is not None and name not in PROFILES:
        raise ConfigError([f"judge.profile: {name} is no profile{_nearest(name)}"])
    if name is not None and settings.model == SHIPPED:
        raise ConfigError([f"judge.profile: the shipped model needs none; for another one, set judge.model: {name}"])
    profile = PROFILES[name] if name is not None else Profile(settings.model)
    if not is_named:
        profile = replace(profile, model=settings.model, revision=None, file=None)
    if is_named and profile.file is None and settings.file is None:
        folder = f"models/{name}"
        raise ConfigError(
            [
                f"judge.model: {name} has no ONNX graph on the hub that is known here. Export it once "
                f"({profile.export_command(folder)}), then set judge.model: {folder} and judge.profile: {name}"
            ]
        )
    return replace(
        profile,
        revision=settings.revision or profile.revision,
        file=settings.file or profile.file,
        template=settings.template or profile.template,
        supported_label=settings.supported_label or profile.supported_label,
        max_tokens=settings.max_tokens or profile.max_tokens,
    )


def _nearest(name: str) -> str:
    near = difflib.get_close_matches(name.lower(), [SHIPPED, *PROFILES], n=1)
    return f" (did you mean '{near[0]}'?)" if near else ""


NAMES = (
    "model.onnx",
    "onnx/model.onnx",
    "model_quantized.onnx",
    "onnx/model_quantized.onnx",
    "model_int8.onnx",
    "onnx/model_int8.onnx",
)
"""The paths at which the ONNX graph is searched for, in this order."""

COMBINATION = "groundwire.json"
"""The file that `groundwire calibrate --model` writes into the model's folder."""

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
_EXPORT = "optimum-cli export onnx --model MODEL FOLDER writes one"


@dataclass(frozen=True, slots=True)
class Files:
    """The files of a model. `config` is the content of config.json, `combination` the path of `COMBINATION`, if any."""

    folder: Path
    graph: Path
    tokenizer: Path
    config: Mapping[str, Any]
    combination: Path | None


def find_files(model: str, revision: str | None, file: str | None) -> Files:
    """Find the files of `model`, a folder or a hub id; files of the hub are downloaded unless they are cached.

    `revision` applies to the hub. `file` is the path of the graph, by default the first of `NAMES` that exists. Raises
    ConfigError when a file is missing.
    """
    folder = Path(model).expanduser()
    fetch = _in_folder(folder) if folder.is_dir() else _on_hub(model, revision)
    config = fetch("config.json")
    tokenizer = fetch("tokenizer.json")
    names = (file,) if file else NAMES
    graph = next((found for name in names if (found := fetch(name))), None)
    missing = [name for name, path in (("config.json", config), ("tokenizer.json", tokenizer)) if path is None]
    if config is None or tokenizer is None or graph is None:
        missing += [] if graph else [f"{' or '.join(names[:2])} ({_EXPORT})"]
        raise ConfigError([f"judge.model: {model} holds no {name}" for name in missing])
    if graph.name.endswith(".onnx"):
        fetch(f"{graph.relative_to(config.parent).as_posix()}_data")  # weights of large models
    return Files(config.parent, graph, tokenizer, _read_config(config), fetch(COMBINATION))


Fetch = Callable[[str], Path | None]


def _in_folder(folder: Path) -> Fetch:
    return lambda name: path if (path := folder / name).is_file() and path.is_relative_to(folder) else None


def _on_hub(model: str, revision: str | None) -> Fetch:
    """Return a function that fetches files of a hub id, all of one commit.

    It respects HF_HOME, HF_TOKEN and HF_HUB_OFFLINE.
    """
    if not _HUB_ID.fullmatch(model):
        raise ConfigError([f"judge.model: {model} is neither a folder nor a hub id such as owner/name"])
    require_extras((f"judge.model: {model} is on the hub", "hub"))
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError

    commit = revision

    def fetch(name: str) -> Path | None:
        nonlocal commit
        try:
            path = Path(hf_hub_download(model, name, revision=commit))
        except EntryNotFoundError:
            return None
        except (OSError, ValueError) as error:
            why = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            raise ConfigError([f"judge.model: {model} is no folder, and the hub does not give it: {why}"]) from error
        snapshots = next(parent for parent in path.parents if parent.name == "snapshots")  # has a folder per commit
        commit = path.relative_to(snapshots).parts[0]
        return path

    return fetch


def _read_config(path: Path) -> Mapping[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError([f"judge.model: {path} cannot be read: {error}"]) from error
    if not isinstance(found, dict):
        raise ConfigError([f"judge.model: {path} holds no JSON object"])
    return found
