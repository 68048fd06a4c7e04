"""Find the files of an entailment model: in a folder, or on the Hugging Face hub and in its cache."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from groundwire.errors import ConfigError
from groundwire.extras import require_extras

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
    return Files(config.parent, graph, tokenizer, _read(config), fetch(COMBINATION))


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
        commit = path.relative_to(_snapshots(path)).parts[0]
        return path

    return fetch


def _snapshots(path: Path) -> Path:
    """Return the folder of the hub's cache that has one subfolder per commit, given a file below it."""
    return next(parent for parent in path.parents if parent.name == "snapshots")


def _read(path: Path) -> Mapping[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError([f"judge.model: {path} cannot be read: {error}"]) from error
    if not isinstance(found, dict):
        raise ConfigError([f"judge.model: {path} holds no JSON object"])
    return found
