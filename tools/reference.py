"""Write docs/settings.md from the settings model and docs/cli.md from the commands.

Run as `python tools/reference.py` in the repository root; with `--check` it only fails if a page is not current. Types,
defaults and bounds come from the model, the descriptions of settings from the comments of config.yaml.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import typer
import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from groundwire.cli import app
from groundwire.config import Settings, values
from groundwire.config.settings import Upstream

ROOT = Path(__file__).parent.parent

_KEY = re.compile(r"^(?P<indent> *)(?P<key>\w+):(?: (?P<value>[^#]*?))?\s*(?:(?<= )# (?P<comment>.*))?$")
_UNITS = {
    values.Duration: "duration",
    values.Size: "size",
    values.Share: "share",
    values.Days: "duration",
    values.Secretive: "URL",
}
_WORDS = {str: "text", int: "number", float: "number", bool: "yes or no"}
_BOUNDS = {"ge": "≥ {}", "gt": "> {}", "le": "≤ {}", "lt": "< {}"}

SETTINGS_HEAD = """# Settings

<!-- Written by `python tools/reference.py`; edit config.yaml or the settings model instead. -->

Settings come from a file (`--config`, else `./config.yaml`) and from variables of the environment, which override it:
`GROUNDWIRE_SECTION__KEY`, such as `GROUNDWIRE_SERVER__PORT=9000`. Unknown keys are errors. `groundwire config` prints
the settings in effect. [config.yaml](../config.yaml) has all defaults; keep only the keys that you change.

| type | written |
|---|---|
| duration | `150ms`, `10s`, `5m`, `1h`, `30d` |
| size | `512KiB`, `8MiB`, `1GiB` |
| share | `5%` or `0.05`, from 0 to 1 |
"""
CLI_HEAD = """# Command reference

<!-- Written by `python tools/reference.py`; edit the help texts in the code instead. -->

Every command and option; [commands.md](commands.md) has examples. An error of the user ends a command with status 2
and one sentence on standard error.
"""


# --- settings ---------------------------------------------------------------------------------------------------------


def comments(text: str) -> dict[str, str]:
    """Return the comment of each key of config.yaml, by its path; comments may go on in the lines below."""
    found: dict[str, str] = {}
    path: list[tuple[int, str]] = []
    last = ""
    for line in text.splitlines():
        if last and re.match(r"(?:  #)? {20,}# ", line):
            found[last] += " " + line.strip("# ")
        elif match := _KEY.match(re.sub(r"^  # (?= *\w+: )", "  ", line)):
            indent = len(match["indent"])
            path = [*(each for each in path if each[0] < indent), (indent, match["key"])]
            key = ".".join(name for _, name in path)
            last = key if match["comment"] and key not in found else ""
            if last:
                found[key] = match["comment"]
    return {re.sub(r"^upstreams\.ollama\.", "upstreams.NAME.", key): _linked(text) for key, text in found.items()}


def _linked(text: str) -> str:
    """Link the pages that a comment names, and end each line of it that is a sentence."""
    text = re.sub(r"(?<=\]) (?=[A-Z])", ". ", text)
    return re.sub(r"docs/([\w-]+)\.md", r"[\1](\1.md)", text)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}." if text else ""


def settings_page() -> str:
    """Return the page of all settings."""
    known = comments((ROOT / "config.yaml").read_text(encoding="utf-8"))
    parts = [SETTINGS_HEAD]
    for name, field in Settings.model_fields.items():
        model: Any = Upstream if name == "upstreams" else field.annotation
        path = "upstreams.NAME" if model is Upstream else name
        about = _flat("\n\n".join((model.__doc__ or "", _sentence(known.get(name, "")))))
        parts.append(f"## {name}\n\n{about}\n")
        rows = (_row(key, each, default, known) for key, each, default in fields(model, path))
        parts.append("| setting | type | default | |\n|---|---|---|---|\n" + "\n".join(rows) + "\n")
    return "\n".join(parts)


def fields(model: type[BaseModel], path: str) -> Iterator[tuple[str, FieldInfo, Any]]:
    """Yield path, field and default of every setting, those of nested sections in their place."""
    for name, field in model.model_fields.items():
        nested = next((each for each in _alternatives(field.annotation) if _is_section(each)), None)
        if nested is None or field.annotation is not nested:
            yield f"{path}.{name}", field, _default(model, name)
        if nested is not None:
            yield from fields(nested, f"{path}.{name}")


def _is_section(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _default(model: type[BaseModel], name: str) -> Any:
    field = model.model_fields[name]
    if field.is_required():
        return ...
    default = model.model_construct().model_dump(mode="json", include={name})
    return default[name]


def _row(path: str, field: FieldInfo, default: Any, known: Mapping[str, str]) -> str:
    shown = "required" if default is ... else f"`{_as_yaml(default)}`"
    annotation = Annotated[(field.annotation, *field.metadata)] if field.metadata else field.annotation
    bounds = _bounds(field.metadata)
    kind = _type(annotation) + (f", {bounds}" if bounds else "")
    return f"| `{path}` | {_cell(kind)} | {_cell(shown)} | {_cell(known.get(path, ''))} |"


def _as_yaml(value: Any) -> str:
    text = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=10_000, sort_keys=False)
    return text.removesuffix("\n...\n").strip()


def _type(annotation: Any) -> str:
    if get_origin(annotation) is Annotated:
        base, *metadata = get_args(annotation)
        return next((word for unit, word in _UNITS.items() if unit.__metadata__[0] in metadata), _type(base))
    found = [each for each in _alternatives(annotation) if each is not NoneType]
    if len(found) > 1:
        return " or ".join(dict.fromkeys(map(_type, found)))
    (only,) = found
    origin, arguments = get_origin(only), get_args(only)
    if origin is Literal:
        return " \\| ".join(f"`{each}`" for each in arguments)
    if origin is tuple:
        return f"list of {_type(arguments[0])}"
    if origin is dict:
        return "mapping"
    if get_origin(only) is Annotated:
        return _type(only)
    return "section" if _is_section(only) else _WORDS.get(only, "text")


def _alternatives(annotation: Any) -> tuple[Any, ...]:
    return get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)


def _bounds(metadata: list[Any]) -> str:
    units = {unit.__metadata__[0] for unit in _UNITS}
    if any(each in units for each in metadata):
        return ""
    limits = ((form, getattr(each, name, None)) for each in metadata for name, form in _BOUNDS.items())
    return ", ".join(form.format(value) for form, value in limits if value is not None)


# --- commands ---------------------------------------------------------------------------------------------------------


def cli_page() -> str:
    """Return the page of all commands."""
    root: Any = typer.main.get_command(app)
    return "\n".join([CLI_HEAD, *_commands(root, "groundwire")])


def _commands(group: Any, name: str) -> Iterator[str]:
    for each, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, f"{name} {each}")
        else:
            yield _command(command, f"{name} {each}")


def _command(command: Any, name: str) -> str:
    arguments = [each for each in command.params if not each.opts[0].startswith("-")]
    options = [each for each in command.params if each.opts[0].startswith("-")]
    usage = [name, *map(_placeholder, arguments), *(["[OPTIONS]"] if options else [])]
    text = f"## {name}\n\n{_flat(command.help)}\n\n```\n{' '.join(usage)}\n```\n"
    if command.params:
        rows = [f"| `{_spelled(each)}` | {_cell(each.help or '')}{_extra(each)} |" for each in (*arguments, *options)]
        text += "\n| | |\n|---|---|\n" + "\n".join(rows) + "\n"
    return text


def _placeholder(argument: Any) -> str:
    name = argument.name.upper() + ("..." if argument.nargs == -1 else "")
    return name if argument.required else f"[{name}]"


def _spelled(parameter: Any) -> str:
    if not parameter.opts[0].startswith("-"):
        return str(_placeholder(parameter)).strip("[]")
    names = ", ".join(sorted((*parameter.opts, *parameter.secondary_opts), key=len))
    return names if parameter.is_flag else f"{names} {_metavar(parameter)}"


def _metavar(option: Any) -> str:
    annotation = next(each for each in _alternatives(option.type_descriptor.annotation) if each is not NoneType)
    if get_origin(annotation) is Literal:
        return "\\|".join(get_args(annotation))
    words = {Path: "PATH", int: "N", float: "X"}
    return words.get(annotation, "PATH" if annotation == list[Path] else "TEXT")


def _extra(parameter: Any) -> str:
    notes = []
    if getattr(parameter, "multiple", False):
        notes.append("May be repeated.")
    if parameter.default not in (None, False) and not callable(parameter.default):
        notes.append(f"Default: `{parameter.default}`.")
    return "".join(f" {note}" for note in notes)


# --- both -------------------------------------------------------------------------------------------------------------


def _flat(text: str) -> str:
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in re.split(r"\n\s*\n", text.strip()))


def _cell(text: str) -> str:
    return re.sub(r"(?<!\\)\|", r"\\|", " ".join(text.split()))


PAGES = {ROOT / "docs" / "settings.md": settings_page, ROOT / "docs" / "cli.md": cli_page}


def main() -> int:
    """Write the pages, or compare them."""
    check = "--check" in sys.argv[1:]
    stale = []
    for file, page in PAGES.items():
        text = page()
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            stale.append(str(file.relative_to(ROOT)))
            if not check:
                file.write_text(text, encoding="utf-8")
    print(f"{'not current' if check else 'wrote'}: {', '.join(stale) or 'nothing'}")
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
