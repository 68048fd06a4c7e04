"""Read settings from a file and from variables, and report errors with their location."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

from groundwire.config.grounding import Tolerance
from groundwire.config.settings import Settings
from groundwire.config.upstreams import DEFAULT_UPSTREAMS, Upstream
from groundwire.config.variables import PREFIX, KeyPath, described, key_path, stray, unknown
from groundwire.errors import ConfigError

Path_ = KeyPath


def load_settings(
    path: Path | None = None,
    environ: Mapping[str, str] = os.environ,
    warn: Callable[[str], None] = lambda _: None,
) -> Settings:
    """Return the settings of a file (None: the defaults), overridden by those of the environment.

    `warn` is called with a sentence for each ignored variable that has the prefix but matches no setting. Raises
    ConfigError with one line for each error, naming file, line and key.
    """
    values, lines = ({}, {}) if path is None else _read(path)
    environ, left_out = dict(environ), list[str]()
    while True:
        whole, variables = _overlaid(values, environ)
        try:
            settings = Settings.model_validate(whole)
            break
        except ValidationError as error:
            found = error.errors()
            strange = unknown(found, variables, lines)
            if not strange:
                raise ConfigError([_problem(details, path, lines, variables) for details in found]) from error
            left_out += strange
            environ = {name: text for name, text in environ.items() if name not in strange}
    for name in (*left_out, *stray(environ, settings)):
        warn(described(name, settings))
    return settings


def _overlaid(values: Mapping[str, Any], environ: Mapping[str, str]) -> tuple[dict[str, Any], dict[Path_, str]]:
    """Return the values overridden by variables, and the variable that provides the value at each path."""
    whole = dict(values)
    variables = _overlay(whole, environ)
    if "upstreams" in whole and "upstreams" not in values:
        whole["upstreams"] = _completed(whole["upstreams"])
    return whole, variables


def _completed(upstreams: Any) -> Any:
    """Complete upstreams that only variables describe with the default of the same name."""
    if not isinstance(upstreams, dict):
        return upstreams
    return {
        name: {**DEFAULT_UPSTREAMS.get(name, {}), **each} if isinstance(each, dict) else each
        for name, each in upstreams.items()
    }


class _Loader(yaml.SafeLoader):
    """Load all plain words except null as text, to be converted by the key's type: YAML 1.1 reads `off` as false."""

    yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag.endswith((":null", ":merge"))]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


def _read(path: Path) -> tuple[dict[str, Any], dict[Path_, int]]:
    try:
        node = yaml.compose(path.read_text(encoding="utf-8"), _Loader)
        if node is None:
            return {}, {}
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


def _lines(node: yaml.Node, path: Path_) -> Iterator[tuple[Path_, int]]:
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


def _overlay(values: dict[str, Any], environ: Mapping[str, str]) -> dict[Path_, str]:
    """Set the values of variables in `values`; return the variable that provides the value at each path."""
    variables: dict[Path_, str] = {}
    for name, text in sorted(environ.items()):
        if not name.startswith(PREFIX) or "__" not in name:
            continue
        at, path = values, []
        *sections, last = name.removeprefix(PREFIX).split("__")
        for section in sections:
            path.append(_key(at, section))
            inner = at.get(path[-1])
            at[path[-1]] = at = dict(inner) if isinstance(inner, dict) else {}
        path.append(_key(at, last))
        at[path[-1]] = _said(text)
        variables[tuple(path)] = name
    return variables


def _said(text: str) -> Any:
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
    details: Mapping[str, Any], path: Path | None, lines: Mapping[Path_, int], variables: Mapping[Path_, str]
) -> str:
    loc = key_path(details["loc"])
    place = _place(_within(loc, str(details["msg"]), {**lines, **variables}), path, lines, variables)
    if details["type"] == "extra_forbidden":
        near = difflib.get_close_matches(str(loc[-1]), _siblings(loc), n=1)
        what = "unknown key" + (f" (did you mean '{near[0]}'?)" if near else "")
    elif details["type"] in ("model_type", "dict_type"):
        what = "must hold keys and values"
    else:
        what = str(details["msg"]).removeprefix("Value error, ")
    return f"{place}{'.'.join(map(str, loc))}: {what}" if loc else f"{place}{what}"


def _within(loc: Path_, said: str, given: Collection[Path_]) -> Path_:
    """Return the key that a complaint about a whole section starts with, if it is given; else the section."""
    first, *_ = said.removeprefix("Value error, ").split(" ", 1)
    inner = (*loc, *first.removesuffix(":").split("."))
    return inner if inner in given else loc


def _place(loc: Path_, path: Path | None, lines: Mapping[Path_, int], variables: Mapping[Path_, str]) -> str:
    """Locate a wrong value: the variable that sets it, its line, a variable within it, or the enclosing line."""
    giving = (f"{name}: " for place, name in variables.items() if loc[: len(place)] == place)
    within = (f"{name}: " for place, name in variables.items() if place[: len(loc)] == loc)
    around = [f"{path}:{lines[loc[:n]]}: " for n in range(len(loc), 0, -1) if loc[:n] in lines]
    exact = around[:1] if loc in lines else []
    return next(chain(giving, exact, within, around), f"{path}: " if path else "")


def _siblings(loc: Path_) -> list[str]:
    """Return the valid keys at the position of an unknown one."""
    model: Any = Settings
    for step in loc[:-1]:
        if isinstance(model, type) and issubclass(model, BaseModel):
            field = model.model_fields.get(str(step))
            model = field.annotation if field else None
            if str(step) == "upstreams":
                model = dict
            elif str(step) == "tolerance":
                model = Tolerance
        elif model is dict:
            model = Upstream
    return list(model.model_fields) if isinstance(model, type) and issubclass(model, BaseModel) else []
