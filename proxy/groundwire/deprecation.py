"""Support for arguments that have been renamed: the old names work for one more version, with a warning."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def renamed(**names: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Accept old keyword arguments (`old="new"`) in addition to the new ones, with a DeprecationWarning.

    The function raises TypeError, as for any argument given twice, when both names are used.
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        if inspect.iscoroutinefunction(function):

            @wraps(function)
            async def later(*args: P.args, **kwargs: P.kwargs) -> Any:
                return await function(*args, **_translated(function.__name__, kwargs, names))

            return later  # type: ignore[return-value]

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            return function(*args, **_translated(function.__name__, kwargs, names))

        return call

    return decorate


def _translated(function: str, given: Mapping[str, Any], names: Mapping[str, str]) -> Any:
    """Return keyword arguments under their new names. Raises TypeError when one is given under both names."""
    if names.keys().isdisjoint(given):
        return given
    found = dict(given)
    for old, new in names.items():
        if old in given:
            if new in given:
                raise TypeError(f"{function}() got '{new}' twice: '{old}' is its old name")
            message = f"{function}(): the argument '{old}' is now called '{new}'; the old name will be removed in 0.3"
            warnings.warn(message, DeprecationWarning, stacklevel=3)
            found[new] = found.pop(old)
    return found
