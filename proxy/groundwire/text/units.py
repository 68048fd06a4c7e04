"""Units of measurement, currencies, scale words and rates, with their factors to one base unit per dimension.

The tables replace `pint`, which is too slow to import.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from groundwire.text.words import stem


class Unit(NamedTuple):
    """A unit: `value * factor + offset` is a value of it in the base unit of the dimension."""

    dimension: str
    factor: float
    offset: float = 0.0


class UnitReading(NamedTuple):
    """A parsed unit, and the position after it."""

    unit: Unit
    end: int


def read_unit(text: str, position: int) -> UnitReading | None:
    """Parse the unit at `position`, such as "kg", "square feet", "km/h" or "miles per hour", or return None."""
    match = _UNIT.match(text, position)
    if match is None:
        return None
    unit = _named(f"°{match['name'].upper()}" if match["degrees"] and len(match["name"]) == 1 else match["name"])
    if unit is None:
        return None
    power = _POWERS.get((match["power"] or "").lower().rstrip("."), 1) * _EXPONENTS.get(match["exponent"] or "", 1)
    if power > 1:
        unit = Unit(f"{unit.dimension}^{power}", unit.factor**power)
    other = _named(match["other"]) if match["other"] else None
    if other is None or (other.dimension == "time" and other.factor >= DAY):  # "400 mg a day" is a mass
        return UnitReading(unit, match.end("exponent") if match["exponent"] else match.end("name"))
    if match["below"]:
        below = _EXPONENTS[match["below"]]
        other = Unit(f"{other.dimension}^{below}", other.factor**below)
    return UnitReading(Unit(f"{unit.dimension}/{other.dimension}", unit.factor / other.factor), match.end())


def names_of_units(name: str) -> tuple[Unit, ...]:
    """Return the units that a name in lower case may denote: "mw" is the megawatt and the milliwatt."""
    return _BY_LOWER_CASE.get(name.lower(), ())


def _named(name: str) -> Unit | None:
    """Look up a unit. Symbols are case-sensitive ("m" is not "M"), names of three and more letters are not."""
    name = name.replace(" ", "-") if len(name) > 4 or name == "mm Hg" else name.replace(" ", "")
    return _UNITS.get(name) or (_UNITS.get(name.lower()) if len(name) > 2 else None)


# By dimension: the factor to the base unit and the names of each unit. Areas and volumes are powers of a length and
# speeds are a length per time, so that "m2", "square metres" and "acres" are comparable.
_TABLE = """
length: 1000 KM Km kms | .01 CM cms | 1e-6 micron microns | 1609.344 mi mile miles | 1852 nmi nautical-mile
nautical-miles | .9144 yd yds yard yards | .3048 ft foot feet | .0254 inch inches | 1.8288 fathom fathoms | 201.168
furlong furlongs | 9.4607e15 ly light-year light-years lightyear lightyears | 1.495979e11 AU astronomical-unit
astronomical-units
mass: 1 kgs | 1e-6 MG mgs | 1e-9 MCG | 1 Kg KG kilo kilos | 1e-9 mcg ug | .0002 carat carats | 1000 tonne tonnes
metric-ton metric-tons | 1e6 kt kilotonne kilotonnes | 1e9 Mt megatonne megatonnes | 907.185 ton tons short-ton
short-tons | 1016.047 long-ton long-tons | .453592 lb lbs pound pounds | .0283495 oz ounce ounces | 6.35029 stone
length^3: 1e-6 ML mls | 1e-6 ML cc ccm | .003785412 gal gallon gallons | .000473176 pint pints | .000946353 quart
quarts | .000236588 cup cups | 1.47868e-5 tbsp tablespoon tablespoons | 4.92892e-6 tsp teaspoon teaspoons | 2.95735e-5
floz fluid-ounce fluid-ounces | .158987 bbl barrel barrels | .0352391 bushel bushels | 1233.482 acre-foot acre-feet
time: 1 sec secs | 1e-6 µs μs microsecond microseconds | 60 min mins minute minutes | 3600 h hr hrs hour hours | 86400
day days | 604800 week weeks wk wks | 1209600 fortnight fortnights | 2629800 month months | 31557600 yr yrs year years
| 315576000 decade decades | 3155760000 century centuries | 31557600000 millennium millennia
length^2: 4046.856 acre acres | 10000 ha hectare hectares | .09290304 sqft
length/time: .44704 mph | .2777778 kmh kph kmph | .514444 knot knots kn
data: 1e3 KB | 1024 KiB | 1048576 MiB | 1073741824 GiB | 1099511627776 TiB
bit: 1e6 Mb | 1e9 Gb
bit/time: 1e3 kbps Kbps | 1e6 Mbps | 1e9 Gbps | 1e12 Tbps
energy: 4184 kcal kcals kilocalorie kilocalories | 4184 Cal calorie calories cals | 1055.06 BTU BTUs
power: 1e3 KW | 745.7 hp bhp horsepower
pressure: 6894.757 psi | 101325 atm | 133.322 mmHg mm-Hg torr
frequency: .0166667 rpm bpm
concentration: 1 ppm | .001 ppb
sound: 1 dB decibel decibels dBA
angle: 1 ° degree degrees
international-unit: 1 IU
"""
# The same for units with SI prefixes: dimension, factor, prefixes in use, symbols, names in the singular.
# A "-" before a symbol: it is valid only with a prefix, because alone it means something else.
_SI_TABLE = """
length 1 numcdk m metre,meter
length 3.0857e16 kMG -pc parsec
mass .001 pnumk g gram,gramme
mass 1.660539e-27 kM Da dalton
time 1 fpnm s second
current 1 pnumk A amp,ampere
voltage 1 numkMG V volt
power 1 pnumkMGT W watt
energy 1 numkMGTP J joule
energy 3600 kMGTP Wh watt-hour
energy 1.602177e-19 umkMGT eV electronvolt,electron-volt
force 1 numkM N newton
pressure 1 mhkMG Pa pascal
pressure 1e5 mk bar bar
frequency 1 mkMGT Hz hertz
resistance 1 mkMG Ω,Ω ohm
conductance 1 num S siemens
capacitance 1 pnum -F farad
inductance 1 num -H henry
charge 1 pnum -C coulomb
flux-density 1 num -T tesla
amount 1 pnum mol mole
length^3 .001 numcdh L,l litre,liter
luminosity 1 k lm lumen
luminous-intensity 1 m cd candela
illuminance 1 k lx lux
radioactivity 1 kMGT Bq becquerel
dose 1 um Gy gray
equivalent-dose 1 um Sv sievert
data 1 kMGTP -B byte
bit 1 kMGT bit bit
"""
_PREFIXES = {
    symbol: (float(factor), signs, name)
    for symbol, factor, signs, name in map(
        str.split,
        "f 1e-15 f femto|p 1e-12 p pico|n 1e-9 n nano|u 1e-6 µμu micro|m 1e-3 m milli|c 1e-2 c centi|d 1e-1 d deci|"
        "h 1e2 h hecto|k 1e3 k kilo|M 1e6 M mega|G 1e9 G giga|T 1e12 T tera|P 1e15 P peta".split("|"),
    )
}


def _with_prefixes(row: list[str]) -> Iterator[tuple[str, Unit]]:
    """Yield every name in a row of `_SI_TABLE`, with its unit."""
    dimension, worth, prefixes, symbols, names = row
    for symbol in symbols.split(","):
        bare = symbol.removeprefix("-")
        if bare == symbol:
            yield bare, Unit(dimension, float(worth))
        for factor, written, _ in map(_PREFIXES.__getitem__, prefixes):
            yield from ((sign + bare, Unit(dimension, float(worth) * factor)) for sign in written)
    for name in names.split(","):
        for form in (name, f"{name}s"):
            yield form, Unit(dimension, float(worth))
            for factor, _, spelled in map(_PREFIXES.__getitem__, prefixes):
                yield spelled + form, Unit(dimension, float(worth) * factor)


_UNITS = dict(item for row in _SI_TABLE.strip().split("\n") for item in _with_prefixes(row.split()))
for _dimension, _group in re.findall(r"^(\S+): ([^:]+)(?=\n)", _TABLE, re.MULTILINE):
    for _factor, *_names in map(str.split, _group.split("|")):
        _UNITS |= dict.fromkeys(_names, Unit(_dimension, float(_factor)))
_UNITS |= dict.fromkeys("K kelvin kelvins".split(), Unit("temperature", 1.0))
_UNITS |= dict.fromkeys("°C ℃ ºC celsius degC".split(), Unit("temperature", 1.0, 273.15))
_UNITS |= dict.fromkeys("°F ℉ ºF fahrenheit degF".split(), Unit("temperature", 5 / 9, 459.67 * 5 / 9))
_BY_LOWER_CASE: dict[str, tuple[Unit, ...]] = {}
for _name, _unit in sorted(_UNITS.items(), key=lambda item: -item[1].factor):
    _BY_LOWER_CASE[_name.lower()] = (*_BY_LOWER_CASE.get(_name.lower(), ()), _unit)
_POWERS = {"square": 2, "sq": 2, "cubic": 3, "cu": 3}
_EXPONENTS = {"²": 2, "2": 2, "^2": 2, "³": 3, "3": 3, "^3": 3}

_UNIT = re.compile(
    r"(?:(?P<power>square|cubic|sq\.?|cu\.?)[ -])?(?P<degrees>degrees? (?=[CF]))?"
    r"(?P<name>[°º](?: ?[CF]\b)?|[℃℉]|light-years?|(?:metric|short|long)[- ]tons?"
    r"|(?:kilo|mega|giga|tera)?watt[- ]hours?|(?:nautical|fluid|astronomical)[- ](?:miles?|ounces?|units?)"
    r"|acre[- ]f(?:oo|ee)t|mm Hg"
    r"|[^\W\d_²³]{1,14}(?![^\W\d_²³]))(?P<exponent>[²³]|\^[23]|[23](?!\w))?"
    r"(?:(?: ?/ ?| per |-per-| an? )(?P<other>[^\W\d_²³]{1,12})(?P<below>[²³]|\^[23]|[23](?!\w))?(?!\w))?",
    re.IGNORECASE,
)


_CURRENCY_NAMES = """
$ $ dollar dollars cent cents ¢ bucks | EUR € euro euros eurocent eurocents | GBP £ pound pounds pence sterling | JPY
¥ yen | INR ₹ rs rupee rupees | USD us$ u.s.$ | AUD a$ au$ | CAD c$ ca$ | NZD nz$ | HKD hk$ | SGD s$ | BRL r$ reais |
CNY yuan renminbi rmb | KRW ₩ won | RUB ₽ rubles | CHF franc francs | TRY ₺ | ILS ₪ | SEK krona kronor | PLN zloty |
AED dirhams | ZAR rand
"""
CODES = (
    "USD EUR GBP JPY CNY INR AUD CAD CHF HKD NZD SGD SEK NOK DKK KRW BRL MXN ZAR RUB TRY PLN CZK HUF ILS AED SAR THB "
    "IDR MYR PHP TWD NGN EGP"
).split()
CURRENCIES = {code.lower(): code for code in CODES}
"""Signs, names and codes of currencies in lower case, with the ISO 4217 code; "$" for a dollar of no stated country."""
CURRENCIES |= {name: code for code, *names in map(str.split, _CURRENCY_NAMES.split("|")) for name in names}
CENTS = frozenset(("cent", "cents", "¢", "eurocent", "eurocents", "pence"))


SCALES = {"hundred": 1e2, "thousand": 1e3, "thousands": 1e3, "million": 1e6, "millions": 1e6, "billion": 1e9}
SCALES |= {"billions": 1e9, "trillion": 1e12, "trillions": 1e12, "lakh": 1e5, "lakhs": 1e5, "crore": 1e7, "crores": 1e7}
SCALES |= {"mn": 1e6, "mln": 1e6, "mio": 1e6, "bn": 1e9, "bln": 1e9, "tn": 1e12, "trn": 1e12, "dozen": 12.0}
SUFFIXES = {"k": 1e3, "m": 1e6, "mm": 1e6, "b": 1e9, "t": 1e12}


DAY = 86400.0
SECONDS = {"second": 1.0, "minute": 60.0, "hour": 3600.0, "day": DAY, "night": DAY, "week": 7 * DAY}
SECONDS |= {"fortnight": 14 * DAY, "month": 2629800.0, "quarter": 7889400.0, "year": 31557600.0, "annum": 31557600.0}
"""The length of each period, in seconds."""
_PERIOD_OF = "hourly hour|daily day|nightly night|weekly week|monthly month|quarterly quarter|yearly year|annually year"
ADVERBS = {adverb: SECONDS[period] for adverb, period in map(str.split, _PERIOD_OF.split("|"))}
"""The length, in seconds, of the period that each adverb names."""


class Rate(NamedTuple):
    """A parsed rate that ends at `end`: its period in seconds (0: none), and the stems of another divisor ("dose")."""

    per: float
    each: frozenset[str]
    end: int


def read_rate(text: str, position: int, *, counts: bool = False) -> Rate | None:
    """Parse the rate after the amount that ends at `position`, or return None.

    What is measured may precede the rate ("20 days of paid leave a year"), as may, with `counts`, up to two words for
    the counted things ("3 tablets a day").
    """
    start = position
    if between := _MEASURED.match(text, position) or (counts and _COUNTED.match(text, position)):
        position = between.end()
    per, each = 0.0, frozenset[str]()
    for _ in range(_MOST_PARTS):
        if found := _PERIOD.match(text, position):
            per = ADVERBS[found["adverb"].lower()] if found["adverb"] else SECONDS[found["period"].lower()]
        elif found := _EACH.match(text, position):
            each |= frozenset(map(stem, found["each"].split()))
        else:
            break
        position = found.end()
    return Rate(per, each, position) if position > start and (per or each) else None


def measured_part(rate: str) -> int:
    """Return the length of what is measured at the beginning of a rate: " of paid leave" in " of paid leave a year"."""
    found = _MEASURED.match(rate)
    return found.end() if found else 0


_MOST_PARTS = 3
PERIOD_NAMES = "|".join(SECONDS)
ADVERB_NAMES = "|".join(ADVERBS)
PERIOD_KIND = "(?:(?:calendar|full|whole|financial|fiscal|tax|policy|insurance) )?"
# no rate: "a year ago", "a month or two"
NOT_NOW = r"(?! (?:ago|earlier|before|prior|later|after|ahead|old|or (?:so|two|more)|long)\b)"
_PERIOD = re.compile(
    rf"(?: per | an? | each | every | ?/ ?){PERIOD_KIND}(?P<period>{PERIOD_NAMES})\b{NOT_NOW}"
    rf"| (?P<adverb>{ADVERB_NAMES})\b",
    re.IGNORECASE,
)
_EACH = re.compile(
    r"(?: per |/)(?!cent\b|se\b|the\b|our\b|its?\b|his\b|her\b|their\b|this\b|that\b|and\b|or\b)"
    r"(?P<each>[a-z]{3,20}(?:[ -](?!in\b|for\b|and\b|or\b|per\b|to\b|of\b|is\b|was\b|on\b|at\b|by\b|from\b|with\b)"
    r"[a-z]{2,20})?)\b"
)
_MEASURED = re.compile(rf" of(?: [a-z][a-z-]{{1,20}}){{1,4}}?(?= (?:per|an?|each|every) (?:{PERIOD_NAMES})\b)")
_COUNTED = re.compile(
    r"(?: (?!(?:in|for|within|of|on|at|to|by|over|after|and|or|than|from|is|was|were|are|as|about|with|per|an?|each|"
    r"every|during|until|[a-z]+ed)\b)[a-z][a-z-]{1,20}){1,2}(?= (?:per|an?|each|every) | ?/)"
)
