"""Write the JSON Schema of the report to docs/report.schema.json.

Run as `python tools/report_schema.py` in the repository root; with `--check` it only fails if the file is not current.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from groundwire.dialects.checks import report_json_schema

FILE = Path(__file__).parent.parent / "docs" / "report.schema.json"


def main() -> int:
    """Write the file, or compare it with the schema."""
    text = json.dumps(report_json_schema(), indent=2, ensure_ascii=False) + "\n"
    if "--check" in sys.argv[1:]:
        return int(not FILE.exists() or FILE.read_text(encoding="utf-8") != text)
    FILE.write_text(text, encoding="utf-8")
    print(f"wrote {FILE.relative_to(FILE.parent.parent)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
