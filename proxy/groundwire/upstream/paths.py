"""Request paths: one spelling for routing and forwarding, and no escape from the upstream's base path."""

from __future__ import annotations

import re
from urllib.parse import unquote

_NEEDLESS = re.compile("%(?:2[DdEe]|3[0-9]|[46][1-9A-Fa-f]|[57][0-9Aa]|5[Ff])")  # letters, digits and -._
_BLANK = "[\x00-\x20]*"  # some servers drop these characters
_DOT_SEGMENT = re.compile(rf"(?:^|[/\\]){_BLANK}\.{{1,2}}{_BLANK}(?:[/\\;?#]|$)")
_OVERLONG = re.compile("[\xc0\xc1]")  # the first byte of an overlong form in UTF-8, such as C0 AE for a dot
_MAX_DECODED = 3


def normalised(path: str) -> str:
    """Return a path whose letters, digits, hyphens, dots and underscores are not percent-encoded.

    It identifies the same resource by RFC 3986, section 6.2.2.2. `~` stays as it is: no route contains it, and some
    clients encode it.
    """
    return _NEEDLESS.sub(lambda match: unquote(match.group()), path) if "%" in path else path


def has_dot_segment(path: str) -> bool:
    """Return whether `path` has a segment `.` or `..` that some server might resolve, however it is spelled.

    It is checked as it is and decoded up to three times; backslashes count as slashes, and `;`, `?` and `#` end a
    segment.
    """
    for _ in range(_MAX_DECODED + 1):
        if _DOT_SEGMENT.search(path) or _OVERLONG.search(path):
            return True
        decoded = unquote(path, encoding="latin-1") if "%" in path else path
        if decoded == path:
            return False
        path = decoded
    return False
