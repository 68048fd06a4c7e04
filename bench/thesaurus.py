"""Builds the thesaurus of the package from the files of WordNet 3.

    python -m bench.thesaurus FOLDER [--out FILE]

FOLDER holds data.noun, data.verb, data.adj, data.adv and index.sense (in Debian: wordnet-base, wordnet-sense-index).

Only what words commonly mean counts. How often a word means a sense is estimated from how often the sense was tagged in
running text, and two words are related as far as both are likely to mean what relates them. Inflections and rare words
that share a stem with a common one are told apart by the same counts.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from proxy.verification.alignment.lexicon import base
from proxy.verification.words import STOPWORDS, stem

OUT = Path(__file__).parent.parent / "proxy" / "verification" / "alignment" / "thesaurus.txt"
_FILES = ("data.noun", "data.verb", "data.adj", "data.adv")
_PARTS = {"n": "1", "v": "2", "a": "3", "s": "3", "r": "4"}
_UNTAGGED = 0.2  # what a sense that was never seen counts beside one that was seen once
_SYNONYM, _DERIVED, _NARROWER, _ANTONYM = 0.03, 0.02, 0.06, 0.1  # the least likelihoods
_LEVELS = {"1": 4, "2": 2, "3": 1, "4": 1}  # steps up from a sense that still say something
_MOST_BELOW = {"1": 4500, "2": 600, "3": 10**6, "4": 10**6}  # senses under one that still says something
_ASIDE = 3.0  # a word counts in full for its stem from a third of the stem's uses on


class Pointer(NamedTuple):
    """A relation of one sense to another, or of a word of one to a word of the other (counted from 1; 0: of all)."""

    symbol: str
    target: str
    source_word: int
    target_word: int


@dataclass(frozen=True, slots=True)
class Sense:
    """A synset: its words in lower case, and where it points. `is_satellite` marks an adjective under a plainer one."""

    part: str
    words: tuple[str, ...]
    pointers: tuple[Pointer, ...]
    is_satellite: bool


@dataclass(frozen=True, slots=True)
class WordNet:
    """All senses, how many lie under each, how likely a word means each of its senses (0–1), and how common it is."""

    senses: Mapping[str, Sense]
    below: Mapping[str, int]
    meanings: Mapping[str, Mapping[str, float]]
    counts: Mapping[str, float]


class Relation(NamedTuple):
    """What a source's word `stated_by` is to a claim's `word`: "alike", "narrower" or "opposite"; and how likely."""

    kind: str
    word: str
    stated_by: str
    likelihood: float


def read(folder: Path) -> WordNet:
    """WordNet as its files have it."""
    senses = dict(_sense(line) for name in _FILES for line in (folder / name).open() if not line.startswith("  "))
    counted: dict[str, dict[str, float]] = defaultdict(dict)
    for line in (folder / "index.sense").open():
        key, offset, number, tagged = line.split()
        word, _, kind = key.partition("%")
        counted[word][("3" if kind[0] == "5" else kind[0]) + offset] = int(tagged) + _UNTAGGED / int(number)
    counts = {word: sum(found.values()) for word, found in counted.items()}
    return WordNet(senses, _below(senses), {word: _likely(found) for word, found in counted.items()}, counts)


def _sense(line: str) -> tuple[str, Sense]:
    fields = line.partition(" | ")[0].split()
    part, count = _PARTS[fields[2]], int(fields[3], 16)
    first = 5 + 2 * count
    pointers = (fields[at : at + 4] for at in range(first, first + 4 * int(fields[first - 1]), 4))
    return part + fields[0], Sense(
        part,
        tuple(word.partition("(")[0].lower() for word in fields[4 : first - 1 : 2]),
        tuple(Pointer(to, _PARTS[of] + at, int(ends[:2], 16), int(ends[2:], 16)) for to, at, of, ends in pointers),
        fields[2] == "s",
    )


def _likely(counted: Mapping[str, float]) -> dict[str, float]:
    """How likely each sense is among those of its part of speech; less so where that part of speech itself is rare."""
    of_part: dict[str, float] = defaultdict(float)
    for sense, count in counted.items():
        of_part[sense[0]] += count
    every = sum(of_part.values())
    return {s: count / of_part[s[0]] * min(1.0, 4 * of_part[s[0]] / every) for s, count in counted.items()}


def _below(senses: Mapping[str, Sense]) -> dict[str, int]:
    under: dict[str, int] = defaultdict(int)
    for sense in senses:
        for above in _all_above(senses, sense):
            under[above] += 1
    return under


def _all_above(senses: Mapping[str, Sense], sense: str) -> set[str]:
    found: set[str] = set()
    rest = [sense]
    while rest:
        above = {to.target for to in senses[rest.pop()].pointers if to.symbol == "@"} - found
        found |= above
        rest += above
    return found


def relations(net: WordNet) -> Iterator[Relation]:
    """Every relation of two words."""
    for key, sense in net.senses.items():
        for word in sense.words:
            meant = net.meanings[word][key]
            yield from (
                Relation("alike", other, word, meant * net.meanings[other][key])
                for other in sense.words
                if other != word
            )
            for above in _said_too(net, key):
                for other in net.senses[above].words:
                    yield Relation("narrower", other, word, meant * net.meanings[other][above])
        yield from _of_words(net, key)


def _said_too(net: WordNet, key: str) -> set[str]:
    """The senses that hold wherever one holds: what is more general, what an action includes or causes."""
    part = net.senses[key].part
    include = ("*", ">", "&") if net.senses[key].is_satellite or part == "2" else ()
    said: set[str] = {to.target for to in net.senses[key].pointers if to.symbol in include}
    level = {key}
    for _ in range(_LEVELS[part]):
        level = {to.target for low in level for to in net.senses[low].pointers if to.symbol == "@"}
        said |= {sense for sense in level if net.below[sense] <= _MOST_BELOW[part]}
    return said - {key}


def _of_words(net: WordNet, key: str) -> Iterator[Relation]:
    """What WordNet says of single words of a sense: derivations, the noun of an adjective, antonyms."""
    sense = net.senses[key]
    for to in sense.pointers:
        if not (to.source_word and to.target_word) or to.symbol not in ("+", "\\", "!"):
            continue
        word, other = sense.words[to.source_word - 1], net.senses[to.target].words[to.target_word - 1]
        likelihood = net.meanings[word][key] * net.meanings[other][to.target]
        kind = "opposite" if to.symbol == "!" else "derived"
        yield Relation(kind, word, other, likelihood)
        yield Relation(kind, other, word, likelihood)


def lines(net: WordNet) -> Iterator[str]:
    """The file's lines, sorted: a stem, then what is alike, what is narrower, and what is opposite, between tabs."""
    least = {"alike": _SYNONYM, "derived": _DERIVED, "narrower": _NARROWER, "opposite": _ANTONYM}
    found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    of_stem: dict[str, float] = defaultdict(float)
    for word, count in net.counts.items():
        of_stem[_key(word)] += count
    share = {word: min(1.0, _ASIDE * count / of_stem[_key(word)]) for word, count in net.counts.items()}
    for kind, word, other, likelihood in relations(net):
        if likelihood * share[word] * share[other] < least[kind] or not (_is_plain(word) and _is_plain(other)):
            continue
        if _key(word) != _key(other):
            found[_key(word)]["alike" if kind == "derived" else kind].add(_key(other))
    for word in sorted(found):
        groups = found[word]
        groups["narrower"] -= groups["alike"]
        groups["alike"] -= groups["opposite"]
        groups["narrower"] -= groups["opposite"]
        yield "\t".join((word, *(" ".join(sorted(groups[kind])) for kind in ("alike", "narrower", "opposite"))))


def _key(word: str) -> str:
    return base(stem(word))


def _is_plain(word: str) -> bool:
    return word.isascii() and word.isalpha() and len(word) > 1 and stem(word) not in STOPWORDS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args()
    given.out.write_text("".join(f"{line}\n" for line in lines(read(given.folder))), encoding="ascii")


if __name__ == "__main__":
    main()
