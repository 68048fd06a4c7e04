"""Measure the text readers on 64 KB of the worst possible input, and the time of an import.

In process, CPU time of one core, best of three. The tests check that the work grows linearly; these are the figures in
milliseconds.

    python -m bench.hostile
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from bench.report import heading, machine, markdown, write
from bench.texts import answer
from groundwire.claims.answer import find_claims
from groundwire.claims.markdown import blocks
from groundwire.domain import Exchange, Message, Part, Source
from groundwire.evidence.index import Context
from groundwire.evidence.messages import gather
from groundwire.policy import Policy
from groundwire.text.folding import fold
from groundwire.text.quantities import find_quantities
from groundwire.verifiers.quotes import find_quotes

SIZE = 65_536
UNITS = (
    "\n|> |>|\\||`|#|* - | |\t|<|-\n|=\n|a\n|[|\\\\|a|. |。|and |, and it is |; |*|**a** |_|<p>\n|<!--\n|{|{}|[[[[|"
    '{"a":|[1,|\u200b|😀|http://a |no |if you |Yes. |It is so. |1,|$|one |1 000 |1-|[1|(|two hundred |Jan |1% |5 km/|'
    '1 to |2019-|1e|1/|½|between 3 and |+1 |"|“|“”|«| "a|s\' |<a b=c |é|e\u0301|漢，|<doc>|<context>|[1]|Context:\n|'
    "Content: a\n|The company said that revenue rose by 5% in 2020 [1], and profit fell to $3 million.\n"
).split("|")
READERS: Mapping[str, Callable[[str], object]] = {
    "Markdown blocks": lambda text: list(blocks(text)),
    "claims": lambda text: find_claims(text, Policy()),
    "quotations": find_quotes,
    "folding": fold,
    "numbers": find_quantities,
    "sources of a prompt": lambda text: gather(Exchange(messages=(Message(0, "user", (Part(text),)),))),
    "context": lambda text: Context([Source("s", "document", text)]),
}


def taken_ms(read: Callable[[str], object], text: str) -> float:
    """Return the CPU milliseconds of the fastest of three runs, each of a text that no cache knows."""
    runs = []
    for number in range(3):
        text += f" {number}"
        start = time.thread_time()
        read(text)
        runs.append((time.thread_time() - start) * 1000)
    return min(runs)


def import_ms() -> float:
    """Return how much longer an interpreter takes that imports the package."""

    def seconds(code: str) -> float:
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        return time.perf_counter() - start

    return (min(seconds("import groundwire") for _ in range(5)) - min(seconds("pass") for _ in range(5))) * 1000


def run() -> dict[str, Any]:
    """Return the figures, as they are written to a file."""
    readers: dict[str, Any] = {}
    for name, read in READERS.items():
        times = {unit: taken_ms(read, (unit * SIZE)[:SIZE]) for unit in UNITS}
        worst = max(times, key=lambda unit: times[unit])
        readers[name] = {"worst_ms": times[worst], "worst": worst, "typical_ms": taken_ms(read, answer(1))}
        print(f"{name}: {times[worst]:.0f} ms for {worst!r}", file=sys.stderr, flush=True)
    return {
        "command": "python -m bench.hostile",
        "machine": machine(),
        "readers": readers,
        "texts": len(UNITS),
        "import_ms": import_ms(),
    }


def as_table(result: Mapping[str, Any]) -> str:
    """Return the figures as Markdown."""
    rows = [
        (name, f"{each['typical_ms']:.2f}", f"{each['worst_ms']:.0f}", f"`{each['worst']!r}`".replace("|", "\\|"))
        for name, each in result["readers"].items()
    ]
    return "\n".join(
        (
            heading("How long hostile text takes", result),
            f"Milliseconds of CPU time, best of three: an answer of 200 words, the slowest of {result['texts']} texts "
            f"of 64 KB that repeat one piece. Importing the package takes {result['import_ms']:.0f} ms.\n",
            markdown(("reader", "typical", "slowest", "of"), rows),
        )
    )


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    result = run()
    table = as_table(result)
    print(table)
    write("hostile", result, table)


if __name__ == "__main__":
    main()
