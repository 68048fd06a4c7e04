"""Scripts that complete the commands and options of `groundwire` in a shell."""

from __future__ import annotations

from typing import Literal

from typer.completion import get_completion_script  # type: ignore[attr-defined]

Shell = Literal["bash", "zsh", "fish"]


def completion_script(shell: Shell) -> str:
    """Return the script for a shell. It asks `groundwire` for completions, so that it remains valid after an update."""
    return get_completion_script(prog_name="groundwire", complete_var="_GROUNDWIRE_COMPLETE", shell=shell)
