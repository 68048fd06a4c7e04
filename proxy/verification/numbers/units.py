"""Units of measurement, converted to one base unit per dimension by a table of our own (pint is too slow to import)."""

from __future__ import annotations

import re
from typing import NamedTuple


class Unit(NamedTuple):
    """What one unit is worth: `value * factor + offset` is the value in the dimension's base unit."""

    dimension: str
    factor: float
    offset: float = 0.0


class Reading(NamedTuple):
    """A unit read from text: it ends before `end`."""

    unit: Unit
    end: int


def read_unit(text: str, position: int) -> Reading | None:
    """The unit that stands at `position`, such as "kg", "square feet", "km/h" or "miles per hour", or None."""
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
    if other is None:
        return Reading(unit, match.end("exponent") if match["exponent"] else match.end("name"))
    return Reading(Unit(f"{unit.dimension}/{other.dimension}", unit.factor / other.factor), match.end())


def _named(name: str) -> Unit | None:
    """Symbols count as written ("m" is not "M"); names of three letters and more count in any case."""
    return _UNITS.get(name) or (_UNITS.get(name.lower()) if len(name) > 2 else None)


# One line per unit: dimension, worth in the base unit, its names. Areas and volumes are powers of a length and speeds
# are a length by a time, so that "m2", "square metres" and "acres" meet.
_TABLE = """
length 1 m metre metres meter meters
length 1000 km KM Km kilometre kilometres kilometer kilometers
length .01 cm centimetre centimetres centimeter centimeters
length .001 mm millimetre millimetres millimeter millimeters
length 1e-6 µm μm um micron microns micrometre micrometres micrometer micrometers
length 1e-9 nm nanometre nanometres nanometer nanometers
length 1609.344 mi mile miles
length .9144 yd yds yard yards
length .3048 ft foot feet
length .0254 inch inches
length 9.4607e15 ly light-year light-years lightyear lightyears
mass 1 kg Kg KG kilogram kilograms kilogramme kilogrammes kilo kilos
mass .001 g gram grams gramme grammes
mass 1e-6 mg milligram milligrams
mass 1e-9 µg μg mcg ug microgram micrograms
mass 1000 tonne tonnes
mass 1000 metric-ton metric-tons
mass 907.185 ton tons
mass .453592 lb lbs pound pounds
mass .0283495 oz ounce ounces
mass 6.35029 stone
time 1 s sec secs second seconds
time .001 ms millisecond milliseconds
time 1e-6 µs μs microsecond microseconds
time 1e-9 ns nanosecond nanoseconds
time 60 min mins minute minutes
time 3600 h hr hrs hour hours
time 86400 day days
time 604800 week weeks wk wks
time 2629800 month months
time 31557600 yr yrs year years
time 315576000 decade decades
time 3155760000 century centuries
length^2 4046.856 acre acres
length^2 10000 ha hectare hectares
length^2 .09290304 sqft
length^3 .001 l L litre litres liter liters
length^3 1e-6 ml mL ML millilitre millilitres milliliter milliliters cc
length^3 1e-5 cl cL centilitre centilitres centiliter centiliters
length^3 1e-4 dl dL decilitre decilitres deciliter deciliters
length^3 .003785412 gal gallon gallons
length^3 .000473176 pint pints
length^3 .000946353 quart quarts
length^3 .000236588 cup cups
length^3 1.47868e-5 tbsp tablespoon tablespoons
length^3 4.92892e-6 tsp teaspoon teaspoons
length^3 2.95735e-5 floz
length^3 .158987 bbl barrel barrels
length/time .44704 mph
length/time .2777778 kmh kph kmph
length/time .514444 knot knots kn
data 1 byte bytes
data 1e3 kB KB kilobyte kilobytes
data 1e6 MB megabyte megabytes
data 1e9 GB gigabyte gigabytes
data 1e12 TB terabyte terabytes
data 1e15 PB petabyte petabytes
data 1024 KiB
data 1048576 MiB
data 1073741824 GiB
bit 1 bit bits
bit 1e6 Mbit Mb megabit megabits
bit 1e9 Gbit Gb gigabit gigabits
bit/time 1e3 kbps Kbps
bit/time 1e6 Mbps
bit/time 1e9 Gbps
energy 1 J joule joules
energy 1000 kJ kilojoule kilojoules
energy 1e6 MJ megajoule megajoules
energy 4184 kcal kcals kilocalorie kilocalories
energy 4184 Cal calorie calories cals
energy 3.6e3 Wh
energy 3.6e6 kWh kilowatt-hour kilowatt-hours
energy 3.6e9 MWh megawatt-hour megawatt-hours
energy 3.6e12 GWh gigawatt-hour gigawatt-hours
energy 3.6e15 TWh terawatt-hour terawatt-hours
energy 1.602e-19 eV
power 1 W watt watts
power 1e-3 mW milliwatt milliwatts
power 1e3 kW KW kilowatt kilowatts
power 1e6 MW megawatt megawatts
power 1e9 GW gigawatt gigawatts
power 1e12 TW terawatt terawatts
power 745.7 hp horsepower
pressure 1 Pa pascal pascals
pressure 100 hPa mbar millibar millibars
pressure 1e3 kPa kilopascal kilopascals
pressure 1e6 MPa megapascal megapascals
pressure 1e5 bar bars
pressure 6894.757 psi
pressure 101325 atm
pressure 133.322 mmHg
frequency 1 Hz hertz
frequency 1e3 kHz kilohertz
frequency 1e6 MHz megahertz
frequency 1e9 GHz gigahertz
frequency .0166667 rpm bpm
voltage 1 V volt volts
voltage 1e-3 mV millivolt millivolts
voltage 1e3 kV kilovolt kilovolts
current 1 amp amps ampere amperes
current 1e-3 mA milliamp milliamps
force 1 N newton newtons
amount 1 mol mole moles
amount 1e-3 mmol
amount 1e-6 µmol μmol
concentration 1 ppm
concentration .001 ppb
sound 1 dB decibel decibels
luminosity 1 lumen lumens
angle 1 ° degree degrees
"""
_UNITS = {name: Unit(row[0], float(row[1])) for line in _TABLE.split("\n") if (row := line.split()) for name in row[2:]}
_KELVIN = Unit("temperature", 1.0)
_CELSIUS = Unit("temperature", 1.0, 273.15)
_FAHRENHEIT = Unit("temperature", 5 / 9, 459.67 * 5 / 9)
for _names, _unit in (
    ("°C ℃ ºC celsius degC", _CELSIUS),
    ("°F ℉ ºF fahrenheit degF", _FAHRENHEIT),
    ("K kelvin kelvins", _KELVIN),
):
    _UNITS.update(dict.fromkeys(_names.split(), _unit))
_POWERS = {"square": 2, "sq": 2, "cubic": 3, "cu": 3}
_EXPONENTS = {"²": 2, "2": 2, "^2": 2, "³": 3, "3": 3, "^3": 3}

_UNIT = re.compile(
    r"(?:(?P<power>square|cubic|sq\.?|cu\.?)[ -])?(?P<degrees>degrees? (?=[CF]))?"
    r"(?P<name>[°º](?: ?[CF]\b)?|[℃℉]|light-years?|metric-tons?|(?:kilo|mega|giga|tera)watt-hours?"
    r"|[^\W\d_²³]{1,14}(?![^\W\d_²³]))(?P<exponent>[²³]|\^[23]|[23](?!\w))?"
    r"(?:(?: ?/ ?| per |-per-| an? )(?P<other>[^\W\d_]{1,12})(?!\w))?",
    re.IGNORECASE,
)
