"""Map signs, names and codes of currencies to ISO 4217 codes, or to "$" for a dollar of no stated country."""

from __future__ import annotations

CURRENCIES: dict[str, str] = {
    "$": "$",
    "dollar": "$",
    "dollars": "$",
    "cent": "$",
    "cents": "$",
    "¢": "$",
    "bucks": "$",
}
CURRENCIES |= {"€": "EUR", "euro": "EUR", "euros": "EUR", "£": "GBP", "pound": "GBP", "pounds": "GBP", "pence": "GBP"}
CURRENCIES |= {"sterling": "GBP", "¥": "JPY", "yen": "JPY", "₹": "INR", "rs": "INR", "rupee": "INR", "rupees": "INR"}
CURRENCIES |= {"us$": "USD", "u.s.$": "USD", "a$": "AUD", "au$": "AUD", "c$": "CAD", "ca$": "CAD", "nz$": "NZD"}
CURRENCIES |= {"hk$": "HKD", "s$": "SGD", "r$": "BRL", "yuan": "CNY", "renminbi": "CNY", "rmb": "CNY", "₩": "KRW"}
CURRENCIES |= {"won": "KRW", "₽": "RUB", "rubles": "RUB", "franc": "CHF", "francs": "CHF", "₺": "TRY", "₪": "ILS"}
CURRENCIES |= {"krona": "SEK", "kronor": "SEK", "zloty": "PLN", "dirhams": "AED", "rand": "ZAR", "reais": "BRL"}
CODES = (
    "USD EUR GBP JPY CNY INR AUD CAD CHF HKD NZD SGD SEK NOK DKK KRW BRL MXN ZAR RUB TRY PLN CZK HUF ILS AED SAR THB "
    "IDR MYR PHP TWD NGN EGP"
).split()
CURRENCIES |= {code.lower(): code for code in CODES}
CENTS = frozenset(("cent", "cents", "¢", "pence"))
