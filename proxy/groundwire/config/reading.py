"""Read settings from a file and from variables, and report errors with their location."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import BaseModel, ValidationError

from groundwire.config.settings import DEFAULT_UPSTREAMS, Settings, Upstream
from groundwire.errors import ConfigError

PREFIX = "GROUNDWIRE_"

KeyPath = tuple[str | int, ...]

RENAMED: Mapping[KeyPath, str] = {
    ("encoder",): "judge",
    ("hallucination",): "information_budget",
    ("information_budget", "output_verification", "asked_from"): "probability_min",
    ("information_budget", "output_verification", "asked_below"): "probability_max",
    ("upstreams", "*", "retries", "first_wait"): "initial_backoff",
    ("upstreams", "*", "retries", "longest_wait"): "max_backoff",
    ("upstreams", "*", "retries", "within"): "deadline",
}
"""The present names of former keys, which are still read; `*` is any key."""


def load_settings(
    path: Path | None = None,
    environ: Mapping[str, str] = os.environ,
    warn: Callable[[str], None] = lambda _: None,
) -> Settings:
    """Return the settings of a file (None: the defaults), overridden by those of the environment.

    `warn` is called with a sentence for each key or variable with a former name, and for each ignored variable that has
    the prefix but matches no setting. Raises ConfigError with one line for each error, naming file, line and key.
    """
    values, lines = ({}, {}) if path is None else _read(path, warn)
    environ, left_out = dict(environ), list[str]()
    while True:
        whole, variables = _overlay(values, environ)
        try:
            settings = Settings.model_validate(whole)
            break
        except ValidationError as error:
            found = error.errors()
            strange = _unknown(found, variables, lines)
            if not strange:
                raise ConfigError([_problem(details, path, lines, variables) for details in found]) from error
            left_out += strange
            environ = {name: text for name, text in environ.items() if name not in strange}
    for at, name in variables.items():
        if (present := PREFIX + "__".join(_upper(str(key)) for key in at)) != name.upper():
            warn(f"{name}: now called {present}")
    for warning in _describe(left_out, environ, settings):
        warn(warning)
    return settings


class _Loader(yaml.SafeLoader):
    """Load all plain words except null as text, to be converted by the key's type: YAML 1.1 reads `off` as false."""

    yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag.endswith((":null", ":merge"))]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


def _present(path: KeyPath) -> str:
    """Return the present name of the last key of a path; of those before it the path has present names."""
    for former, name in RENAMED.items():
        if len(former) == len(path) and all(old in ("*", key) for old, key in zip(former, path, strict=True)):
            return name
    return str(path[-1])


def _read(path: Path, warn: Callable[[str], None]) -> tuple[dict[str, Any], dict[KeyPath, int]]:
    try:
        node = yaml.compose(path.read_text(encoding="utf-8"), _Loader)
        if node is None:
            return {}, {}
        for line, former, name in _rename(node, ()):
            warn(f"{path}:{line}: '{former}' is now called '{name}'")
        values = _Loader("").construct_document(node)
        lines, twice = dict(_lines(node, ())), list(_duplicates(node))
    except OSError as error:
        raise ConfigError([f"{path}: {error.strerror}"]) from error
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{path}:{mark.line + 1}" if mark else str(path)
        raise ConfigError([f"{place}: {getattr(error, 'problem', None) or error}"]) from error
    if twice:
        raise ConfigError([f"{path}:{line}: '{key}' is given twice" for key, line in twice])
    if not isinstance(values, dict):
        raise ConfigError([f"{path}:1: the file must hold keys and values"])
    return values, lines


def _rename(node: yaml.Node, path: KeyPath) -> Iterator[tuple[int, str, str]]:
    """Rename the keys with former names. Yields line, former and present name of each."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            former, key.value = key.value, _present((*path, key.value))
            if key.value != former:
                yield key.start_mark.line + 1, former, key.value
            yield from _rename(value, (*path, key.value))


def _lines(node: yaml.Node, path: KeyPath) -> Iterator[tuple[KeyPath, int]]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield (*path, key.value), key.start_mark.line + 1
            yield from _lines(value, (*path, key.value))
    elif isinstance(node, yaml.SequenceNode):
        for at, value in enumerate(node.value):
            yield (*path, at), value.start_mark.line + 1
            yield from _lines(value, (*path, at))


def _duplicates(node: yaml.Node) -> Iterator[tuple[str, int]]:
    if isinstance(node, yaml.MappingNode):
        seen = set()
        for key, value in node.value:
            if key.value in seen:
                yield key.value, key.start_mark.line + 1
            seen.add(key.value)
            yield from _duplicates(value)


def _overlay(values: Mapping[str, Any], environ: Mapping[str, str]) -> tuple[dict[str, Any], dict[KeyPath, str]]:
    """Return the values overridden by variables, and the variable that provides the value at each path.

    Upstreams that only variables describe are completed with the default of the same name.
    """
    whole, variables = dict(values), dict[KeyPath, str]()
    for name, text in sorted(environ.items()):
        if not name.startswith(PREFIX) or "__" not in name:
            continue
        at, path = whole, list[str]()
        *sections, last = name.removeprefix(PREFIX).split("__")
        for section in sections:
            path.append(_present((*path, _key(at, section))))
            inner = at.get(path[-1])
            at[path[-1]] = at = dict(inner) if isinstance(inner, dict) else {}
        path.append(_present((*path, _key(at, last))))
        at[path[-1]] = _parse_value(text)
        variables[tuple(path)] = name
    if "upstreams" not in values and isinstance(upstreams := whole.get("upstreams"), dict):
        for name, each in upstreams.items():
            if isinstance(each, dict):
                upstreams[name] = {**DEFAULT_UPSTREAMS.get(name, {}), **each}
    return whole, variables


def _parse_value(text: str) -> Any:
    """Parse the value of a variable: a list or mapping in YAML's flow style, null, or else plain text."""
    if not text.startswith(("[", "{")):
        return None if text in ("", "null", "~") else text
    try:
        return yaml.load(text, _Loader)  # noqa: S506 - a safe one
    except yaml.YAMLError:
        return text


def _key(values: Mapping[str, Any], variable: str) -> str:
    """Find the key that a part of a variable refers to, ignoring case and dashes; else return its lower case."""
    lower = variable.lower()
    return next((key for key in values if str(key).lower().replace("-", "_") == lower), lower)


def _problem(
    details: Mapping[str, Any], path: Path | None, lines: Mapping[KeyPath, int], variables: Mapping[KeyPath, str]
) -> str:
    loc = _key_path(details["loc"])
    place = _place(_key_in_section(loc, str(details["msg"]), {**lines, **variables}), path, lines, variables)
    if details["type"] == "extra_forbidden":
        near = difflib.get_close_matches(str(loc[-1]), _siblings(loc), n=1)
        what = "unknown key" + (f" (did you mean '{near[0]}'?)" if near else "")
    elif details["type"] in ("model_type", "dict_type"):
        what = "must hold keys and values"
    else:
        what = str(details["msg"]).removeprefix("Value error, ")
    return f"{place}{'.'.join(map(str, loc))}: {what}" if loc else f"{place}{what}"


def _key_in_section(loc: KeyPath, message: str, given: Collection[KeyPath]) -> KeyPath:
    """Return the key that a complaint about a whole section starts with, if it is given; else the section."""
    first, *_ = message.removeprefix("Value error, ").split(" ", 1)
    inner = (*loc, *first.removesuffix(":").split("."))
    return inner if inner in given else loc


def _place(loc: KeyPath, path: Path | None, lines: Mapping[KeyPath, int], variables: Mapping[KeyPath, str]) -> str:
    """Locate a wrong value: the variable that sets it, its line, a variable within it, or the enclosing line."""
    giving = (f"{name}: " for place, name in variables.items() if loc[: len(place)] == place)
    below = (f"{name}: " for place, name in variables.items() if place[: len(loc)] == loc)
    around = [f"{path}:{lines[loc[:n]]}: " for n in range(len(loc), 0, -1) if loc[:n] in lines]
    exact = around[:1] if loc in lines else []
    return next(chain(giving, exact, below, around), f"{path}: " if path else "")


def _siblings(loc: KeyPath) -> list[str]:
    """Return the valid keys at the position of an unknown one."""
    if loc[0] == "upstreams":
        loc = (loc[0], *loc[2:])
    model: type[BaseModel] = Settings
    for step in loc[:-1]:
        field = model.model_fields.get(str(step))
        sections = _sections(field.annotation) if field else []
        if len(sections) != 1:
            return []
        model = sections[0]
    return list(model.model_fields)


def _unknown(
    errors: Sequence[Mapping[str, Any]], variables: Mapping[KeyPath, str], file: Collection[KeyPath]
) -> list[str]:
    """Return the variables that caused unknown-key errors of a validation, except for keys in the file."""
    wrong = []
    for each in errors:
        key = _key_path(each["loc"])
        is_too_deep = isinstance(each["input"], dict) and str(each["type"]).endswith("_type")  # SERVER__PORT__X
        if is_too_deep or (each["type"] == "extra_forbidden" and key not in file):
            wrong.append(key)
    return [name for path, name in variables.items() if any(path[: len(key)] == key for key in wrong)]


def _key_path(loc: Sequence[str | int]) -> KeyPath:
    """Return the keys that lead to a wrong value, without the steps that pydantic adds for members of a union."""
    return tuple(step for step in loc if step not in ("Tolerance", "literal['written']"))


def _describe(unknown: Sequence[str], environ: Collection[str], settings: Settings) -> Iterator[str]:
    """Yield a warning about each unknown variable, with the closest known name.

    To these belong those with the prefix that name neither a setting nor a secret that the settings refer to.
    """
    secrets = [*_secrets(settings.model_dump())]
    stray = (name for name in environ if name.startswith(PREFIX) and "__" not in name and name not in secrets)
    known = [*_names(Settings, PREFIX), *secrets]
    known += [name for each in settings.upstreams for name in _names(Upstream, f"{PREFIX}UPSTREAMS__{_upper(each)}__")]
    plain = {name.removeprefix(PREFIX): name for name in known}
    for variable in (*unknown, *sorted(stray)):
        near = difflib.get_close_matches(variable.removeprefix(PREFIX), plain, n=1)
        yield f"{variable}: no setting has this name" + (f" (did you mean {plain[near[0]]}?)" if near else "")


def _names(model: type[BaseModel], prefix: str) -> Iterator[str]:
    """Yield the variables of a section's keys and of its nested sections."""
    for key, field in model.model_fields.items():
        name = prefix + _upper(key)
        inner = _sections(field.annotation)
        for each in inner:
            yield from _names(each, f"{name}__")
        if not inner:
            yield name


def _sections(annotation: Any) -> list[type[BaseModel]]:
    """Return the sections in a type, such as `dict[str, Upstream]`."""
    parts = (annotation, *get_args(annotation))
    return [each for each in parts if isinstance(each, type) and issubclass(each, BaseModel)]


def _secrets(values: Any, key: str = "") -> Iterator[str]:
    """Yield the names of variables in the settings: the values of all keys that end in `_env`."""
    if isinstance(values, dict):
        for inner, value in values.items():
            yield from _secrets(value, key if key.endswith("_env") else inner)
    elif isinstance(values, str) and key.endswith("_env"):
        yield values


def _upper(key: str) -> str:
    return key.upper().replace("-", "_")
