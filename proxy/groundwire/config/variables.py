"""Find environment variables that match no setting, and suggest the name that was meant."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, get_args

from pydantic import BaseModel

from groundwire.config.settings import Settings
from groundwire.config.upstreams import Upstream

PREFIX = "GROUNDWIRE_"

KeyPath = tuple[str | int, ...]


def unknown(
    errors: Sequence[Mapping[str, Any]], variables: Mapping[KeyPath, str], file: Collection[KeyPath]
) -> list[str]:
    """Return the variables that caused unknown-key errors of a validation, except for keys in the file."""
    wrong = [key_path(each["loc"]) for each in errors if each["type"] == "extra_forbidden"]
    wrong = [key for key in wrong if key not in file] + [key_path(each["loc"]) for each in errors if _is_too_deep(each)]
    return [name for path, name in variables.items() if any(path[: len(key)] == key for key in wrong)]


def _is_too_deep(error: Mapping[str, Any]) -> bool:
    """Return whether keys were given below a plain value, as in GROUNDWIRE_SERVER__PORT__X."""
    return isinstance(error["input"], dict) and str(error["type"]).endswith("_type")


def key_path(loc: Sequence[str | int]) -> KeyPath:
    """Return the keys that lead to a wrong value, without the steps that pydantic adds for members of a union."""
    return tuple(step for step in loc if step not in ("Tolerance", "literal['written']"))


def stray(environ: Collection[str], settings: Settings) -> list[str]:
    """Return the variables with the prefix that name neither a setting nor a secret that the settings refer to."""
    known = set(_secrets(settings.model_dump()))
    return sorted(name for name in environ if name.startswith(PREFIX) and "__" not in name and name not in known)


def described(variable: str, settings: Settings) -> str:
    """Return the warning about an unknown variable, with the closest known name."""
    known = [*_names(Settings, PREFIX), *_secrets(settings.model_dump())]
    known += [name for each in settings.upstreams for name in _names(Upstream, f"{PREFIX}UPSTREAMS__{_upper(each)}__")]
    plain = {name.removeprefix(PREFIX): name for name in known}
    near = difflib.get_close_matches(variable.removeprefix(PREFIX), plain, n=1)
    return f"{variable}: no setting has this name" + (f" (did you mean {plain[near[0]]}?)" if near else "")


def _names(model: type[BaseModel], prefix: str) -> Iterator[str]:
    """Yield the variables of a section's keys and of its nested sections."""
    for key, field in model.model_fields.items():
        name = prefix + _upper(key)
        inner = [each for each in (field.annotation, *get_args(field.annotation)) if _is_section(each)]
        if inner:
            for each in inner:
                yield from _names(each, f"{name}__")
        else:
            yield name


def _is_section(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _secrets(values: Any, key: str = "") -> Iterator[str]:
    """Yield the names of variables in the settings: the values of all keys that end in `_env`."""
    if isinstance(values, dict):
        for inner, value in values.items():
            yield from _secrets(value, key if key.endswith("_env") else inner)
    elif isinstance(values, str) and key.endswith("_env"):
        yield values


def _upper(key: str) -> str:
    return key.upper().replace("-", "_")
