"""Claims of the kinds users meet, with their context and the label that a careful person gives.

`+` supported, `-` contradicted, `?` not in the context; `!` contradicted or not in the context: a person would flag it
either way.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from groundwire.backends.loading import load_judge
from groundwire.domain import Choice, Source
from groundwire.evidence.index import Context
from groundwire.judge import Judge
from groundwire.pipeline import verify

PRODUCT = (
    "The AirLite 300 vacuum weighs 2.4 kg and runs for up to 40 minutes on a full charge. The battery charges in "
    "three hours. The dust container holds 0.6 litres and can be washed under running water. The filter must not "
    "be put in the dishwasher. A two-year warranty covers the motor, but not the brushes."
)
HR = (
    "All full-time employees are entitled to 25 days of paid annual leave. Part-time employees receive leave in "
    "proportion to their hours. Up to five unused days may be carried over to the next year; the rest expires on "
    "31 March. Requests must be submitted to the line manager at least two weeks in advance. Interns are not "
    "eligible for the pension plan."
)
LEAFLET = (
    "Take one tablet twice a day with food. Do not take Calmorin if you are pregnant or allergic to ibuprofen. "
    "Common side effects are headache, nausea and dizziness. In rare cases the medicine may cause skin rash. "
    "Patients with kidney disease should take a lower dose. Store below 25 °C and keep out of the reach of "
    "children."
)
TERMS = (
    "Either party may terminate the agreement with 30 days' written notice. The Customer shall pay all invoices "
    "within 14 days of receipt. The Provider is not liable for indirect damages. The Provider may suspend the "
    "service if an invoice remains unpaid for more than 60 days. The agreement is governed by the laws of "
    "Denmark."
)
ABSTRACT = (
    "We enrolled 412 adults with mild hypertension in a randomised trial. After 12 weeks, systolic pressure fell "
    "by 8.3 mmHg in the exercise group and by 2.1 mmHg in the control group. The difference was significant (p < "
    "0.001). No serious adverse events occurred. Adherence declined in the second half of the trial."
)
RECIPE = (
    "Preheat the oven to 180 °C. Mix 250 g of flour with two eggs and 100 ml of milk. Fold in the blueberries. "
    "Bake the muffins for 25 minutes until golden. Let them cool before serving. The recipe makes 12 muffins."
)
TRAVEL = (
    "The ferry from Bari to Dubrovnik leaves every Tuesday and Friday at 22:00 and takes about ten hours. "
    "Tickets cost 65 euros in low season. Dogs travel free of charge, but they must wear a muzzle. Cabins have "
    "to be booked in advance. The museum in the old town is closed on Mondays."
)
NEWS = (
    "Halden Foods acquired the bakery chain Brotzeit in June for $48 million. Halden's chief executive Maria "
    "Lindqvist said the takeover would create 200 jobs in Leipzig. Most analysts welcomed the deal. Shares of "
    "Halden rose by 4%. The union criticised the closure of the Hamburg plant."
)
TICKET = """{"ticket": {"id": 5531, "status": "open", "priority": "high", "assignee": "Nadia Petrov",
"escalated": false, "customer": {"name": "Orbit Labs", "plan": "Business", "seats": 40}, "sla_hours": 8,
"tags": ["login", "sso"], "opened": "2025-02-11",
"notes": [{"date": "2025-02-12", "text": "Login fails for all users since the certificate expired."}]}}"""
FLIGHT = (
    '{"flight": "LX318", "from": "Zurich", "to": "London", "departure": "2025-05-02T07:15", "status": "delayed", '
    '"delay_minutes": 35, "gate": "B22", "cabin": "economy", "refundable": false, "meal": "none"}'
)
TABLE = """Quarterly figures, USD million

|                  | Q1 2024 | Q4 2023 |
|------------------|---------|---------|
| Revenue          | 182.4   | 171.0   |
| Operating costs  | 140.2   | 139.5   |
| Net profit       | 31.6    | 24.8    |
| Employees        | 2,140   | 2,095   |
"""
PRICES = """| Plan       | Price per month | Users | Support |
|------------|-----------------|-------|---------|
| Starter    | 9 EUR           | 3     | e-mail  |
| Team       | 29 EUR          | 15    | chat    |
| Enterprise | 99 EUR          | 200   | phone   |
"""
LIST = (
    "The park is home to wolves, lynx and brown bears. Hiking is allowed from May to October. Camping is "
    "forbidden. Visitors need a permit, which costs 12 euros. The visitor centre in Lobau opens at 9 am. Drones "
    "are banned in the whole park."
)

BANK = (
    "Accounts opened online are free for the first six months. After that a monthly fee of 4.90 euros applies. "
    "Withdrawals at partner machines are free; at other machines the bank charges 1.95 euros. The overdraft rate "
    "is 9.9% a year. Customers under 26 pay no monthly fee. The app supports fingerprint login."
)
SOFT = (
    "Version 4.2 adds dark mode and fixes a memory leak in the sync engine. It drops support for Windows 7. The "
    "installer no longer requires administrator rights. Users of version 3 must first upgrade to 4.0. Search is "
    "now twice as fast. The legacy API will be removed in version 5."
)
BIO = (
    "Elena Marku was born in Tirana in 1974. She studied physics in Vienna and moved to Toronto in 2003, where "
    "she founded the company Lumen Optics with her brother Arben. In 2015 Lumen Optics was sold to Zeiss. Marku "
    "now teaches at the University of Graz."
)
WEATHER = (
    '[{"city": "Oslo", "temp_c": 4, "condition": "rain", "wind": {"speed_kmh": 32, "direction": "north"}}, '
    '{"city": "Rome", "temp_c": 19, "condition": "sunny", "wind": {"speed_kmh": 8, "direction": "west"}}]'
)
ORDER = (
    '{"order_id": "A-7731", "customer": "Lena Vogt", "status": "shipped", "carrier": "DHL", "items": [{"name": '
    '"Desk lamp", "qty": 2, "price": 39.9}, {"name": "Office chair", "qty": 1, "price": 189.0}], "gift_wrap": '
    'true, "express": false, "total": 268.8, "currency": "EUR"}'
)
CSV = """\
Year,Visitors,Revenue (EUR thousand)
2022,48200,1310
2023,51900,1475
2024,47100,1390
"""
BULL = """\
Benefits:
- Free parking for residents
- 24-hour reception
- Heated indoor pool, open from 7 am to 9 pm
- Pets allowed on request (15 euros per night)

Breakfast is not included in the room rate. Check-in starts at 3 pm; check-out is until 11 am.
"""
MEET = (
    "Minutes, 14 May. Present: Okafor, Brandt, Silva. Brandt reported that the migration is two weeks behind "
    "schedule because the supplier delivered the servers late. Silva proposed to postpone the launch to 1 July. "
    "The team agreed. Okafor will inform the client by Friday. The budget was not discussed."
)

CORNER = """| EUR million | 2024 | 2023 |
|---|---|---|
| Sales | 85.2 | 71.0 |
| Operating profit | 12.4 | 15.1 |
"""

RETURNS = "Items can be returned within 30 days of purchase. Refunds are paid within 60 days. Shipping costs 5 euros."
COUNCIL = (
    "Minutes of the June meeting. Present were Anna Kessler (chair), Tom Reid and Priya Nair. Marcus Bell "
    "sent his apologies. The committee approved the purchase of two new printers by two votes to one, "
    "with Tom Reid voting against. The next meeting takes place in room 4 on 12 July."
)
DEPOT = (
    "The depot in Marlow was closed in May after a fire in the paint shop, but nobody was injured. It reopened in June."
)
LOSS = (
    "RegioRail reported a loss of 9 million euros, after a profit of 3 million the year before. The "
    "company blamed higher energy prices."
)
OPS = "The maintenance window is on Thursday. Technicians will disconnect the servers at noon and restart them by 3 pm."
FARES = "We will not raise fares this year. Season tickets remain valid until the end of March."
METF = (
    "Metformin does not usually cause hypoglycaemia when used alone. The dose should be reduced when eGFR "
    "lies between 30 and 45. Nausea is common."
)
ABSENCE = (
    "A doctor's certificate is required from the fourth day of absence. Employees must call their manager by 9 am."
)
ASPIRIN = "Aspirin is safe for adults but not for children."
PATIENT = "The patient was born in Lyon and lives in Nice. She works as a nurse."
X1 = "The X1 is built for carpets. Unlike the X1, the X2 cannot be used on wet floors."
PENS = "Alder Pensions will replace Fenwick Trust as the scheme's administrator."
WARE = "The warehouse will open in March 2025 instead of December 2024. It will employ 120 people."
INV = '{"order": {"id": 8841, "paid": true, "eta": "2025-05-06", "total": 86.5, "carrier": "UPS"}}'
EU = """| Country | Capital | Population (million) | GDP growth 2023 | Joined EU |
|---|---|---|---|---|
| Estonia | Tallinn | 1.37 | −3.0% | 2004 |
| Croatia | Zagreb | 3.85 | 3.1% | 2013 |
| Latvia | Riga | 1.88 | −0.3% | 2004 |
| Norway | Oslo | 5.50 | 0.5% | no |
"""
BRIDGE = "The bridge will cost 22 million euros, twice the original estimate. It is 640 metres long."
TOWN = "Marlow lies on the river Tarn. It has 40,000 inhabitants and two railway stations."
DRUG = "The drug reduced HbA1c by 1.1 percentage points, while placebo reduced it by 0.3 percentage points."
POOL = "The pool opens at 7 am and closes at 9 pm. Towels are free."
MICE = "The order contains two wireless mice at €24.50 each and one keyboard at €59."
KETTLE = "The kettle holds 0.7 litres and boils in two minutes."
INSPECT = "The lifts are inspected every six months. The stairs are cleaned weekly."
LEAVE = "Full-time employees get 28 days of leave. Part-time employees get leave in proportion to their hours."
LEASES = "The lease on Mill Lane ends on 31 March 2026. The lease on Kingsway ends on 30 September 2027."
MOWER = "The CleanBot runs for up to 60 minutes in eco mode and 25 minutes in boost mode."
CLINIC = "Dr. Weber, unlike Dr. Lang, speaks Spanish. Visits start at 8 am."

ROWS = [
    # paraphrases by synonym, voice, nominalisation, order
    ("+", PRODUCT, "The AirLite 300 has a weight of 2.4 kg."),
    ("+", PRODUCT, "On a full charge, the vacuum runs for up to 40 minutes."),
    ("+", PRODUCT, "Charging the battery takes three hours."),
    ("+", PRODUCT, "The dust container can be washed and holds 0.6 litres."),
    ("+", PRODUCT, "The motor is covered by a two-year warranty."),
    ("+", PRODUCT, "The warranty does not cover the brushes."),
    ("-", PRODUCT, "The filter can be put in the dishwasher."),
    ("-", PRODUCT, "The battery charges in five hours."),
    ("-", PRODUCT, "The AirLite 300 vacuum weighs 3.4 kg."),
    ("?", PRODUCT, "The vacuum comes with a carrying bag and a wall mount."),
    ("?", PRODUCT, "The vacuum is available in red."),
    ("+", HR, "Full-time employees get 25 days of paid annual leave."),
    ("+", HR, "Employees who work part-time receive leave in proportion to their hours."),
    ("+", HR, "A maximum of five unused days can be carried over to the next year."),
    ("+", HR, "Leave requests must be submitted to your line manager at least two weeks in advance."),
    ("+", HR, "Interns cannot join the pension plan."),
    ("-", HR, "Interns are eligible for the pension plan."),
    ("-", HR, "Full-time employees are entitled to 30 days of paid annual leave."),
    ("-", HR, "The rest expires on 31 May."),
    ("?", HR, "Employees may work from home two days a week."),
    ("?", HR, "Employees receive a free gym membership."),
    ("+", LEAFLET, "One tablet should be taken two times a day with food."),
    ("+", LEAFLET, "Pregnant women should not take Calmorin."),
    ("+", LEAFLET, "Headache, nausea and dizziness are common side effects."),
    ("+", LEAFLET, "The medicine can rarely cause a skin rash."),
    ("-", LEAFLET, "Patients with kidney disease should take a higher dose."),
    ("-", LEAFLET, "Patients can take Calmorin if they are pregnant."),
    ("?", LEAFLET, "Calmorin may cause hair loss."),
    ("?", LEAFLET, "Calmorin was developed by Bayer in Leverkusen."),
    ("+", TERMS, "The agreement can be terminated by either party with 30 days' written notice."),
    ("+", TERMS, "Invoices must be paid by the Customer within 14 days of receipt."),
    ("+", TERMS, "Danish law governs the agreement."),
    ("-", TERMS, "The Provider is liable for indirect damages."),
    ("-", TERMS, "The Customer shall pay all invoices within 45 days of receipt."),
    ("!", TERMS, "The agreement is governed by the laws of Norway."),
    ("?", TERMS, "The Customer must keep the agreement confidential for ten years."),
    ("+", ABSTRACT, "The study enrolled 412 adults with mild hypertension."),
    ("+", ABSTRACT, "Systolic pressure decreased by 8.3 mmHg in the exercise group after 12 weeks."),
    ("+", ABSTRACT, "There were no serious adverse events."),
    ("-", ABSTRACT, "Systolic pressure rose by 8.3 mmHg in the exercise group."),
    ("-", ABSTRACT, "Systolic pressure fell by 2.1 mmHg in the exercise group."),
    ("-", ABSTRACT, "The difference was not significant."),
    ("!", ABSTRACT, "Adherence improved in the second half of the trial."),
    ("?", ABSTRACT, "Participants followed a low-salt diet."),
    ("+", RECIPE, "The oven should be preheated to 180 °C."),
    ("+", RECIPE, "You need 250 g of flour, two eggs and 100 ml of milk."),
    ("+", RECIPE, "The recipe yields 12 muffins."),
    ("-", RECIPE, "Bake the muffins for 45 minutes until golden."),
    ("?", RECIPE, "The muffins are sprinkled with cinnamon sugar."),
    ("+", TRAVEL, "The ferry to Dubrovnik leaves Bari on Tuesdays and Fridays at 10 pm."),
    ("+", TRAVEL, "In low season tickets cost 65 euros."),
    ("+", TRAVEL, "Dogs travel free but have to wear a muzzle."),
    ("+", TRAVEL, "On Mondays the museum in the old town is closed."),
    ("-", TRAVEL, "The museum in the old town is open on Mondays."),
    ("-", TRAVEL, "Tickets cost 85 euros in low season."),
    ("!", TRAVEL, "The ferry from Ancona to Dubrovnik leaves every Tuesday and Friday."),
    ("?", TRAVEL, "The ferry has a swimming pool and a cinema."),
    ("+", NEWS, "In June, Brotzeit was acquired by Halden Foods for $48 million."),
    ("+", NEWS, "Halden Foods bought the bakery chain Brotzeit in June."),
    ("+", NEWS, "The acquisition of Brotzeit by Halden cost $48 million."),
    ("+", NEWS, "Shares of Halden increased by 4%, according to the report."),
    ("+", NEWS, "The union criticised the closure of the Hamburg plant, while most analysts welcomed the deal."),
    ("-", NEWS, "Brotzeit acquired Halden Foods in June."),
    ("-", NEWS, "Shares of Halden fell by 4%."),
    ("-", NEWS, "Shares of Halden rose by 14%."),
    ("-", NEWS, "Halden's chief executive Anna Lindqvist said the takeover would create 200 jobs."),
    ("-", NEWS, "No analysts welcomed the deal."),
    ("?", NEWS, "Halden Foods was founded in 1921 in Oslo."),
    ("+", TICKET, "The ticket is open and has high priority."),
    ("+", TICKET, "Ticket 5531 is assigned to Nadia Petrov."),
    ("+", TICKET, "Orbit Labs is on the Business plan with 40 seats."),
    ("+", TICKET, "The ticket has not been escalated."),
    ("+", TICKET, "The ticket was opened on February 11, 2025."),
    ("-", TICKET, "The ticket is closed."),
    ("-", TICKET, "The ticket has been escalated."),
    ("-", TICKET, "Orbit Labs has 60 seats."),
    ("-", TICKET, "The ticket was opened on February 21, 2025."),
    ("?", TICKET, "The customer has threatened to cancel the contract."),
    ("?", TICKET, "The ticket has urgent priority."),
    ("+", FLIGHT, "Flight LX318 from Zurich to London is delayed by 35 minutes."),
    ("+", FLIGHT, "The ticket is not refundable."),
    ("+", FLIGHT, "The flight departs from gate B22."),
    ("-", FLIGHT, "The ticket is refundable."),
    ("-", FLIGHT, "The flight is delayed by 55 minutes."),
    ("!", FLIGHT, "The flight from Geneva to London is delayed."),
    ("+", TABLE, "Revenue in Q1 2024 was 182.4 million dollars."),
    ("+", TABLE, "Revenue rose from $171.0 million to $182.4 million."),
    ("+", TABLE, "Net profit grew by 27% to 31.6 million dollars."),
    ("+", TABLE, "The company had 2,140 employees in the first quarter of 2024."),
    ("-", TABLE, "Revenue in Q4 2023 was 182.4 million dollars."),
    ("-", TABLE, "Net profit was 41.6 million dollars in Q1 2024."),
    ("-", TABLE, "Revenue in Q1 2024 was 140.2 million dollars."),
    ("+", PRICES, "The Team plan costs 29 euros per month."),
    ("+", PRICES, "The Enterprise plan is for 200 users and comes with phone support."),
    ("-", PRICES, "The Team plan costs 99 euros per month."),
    ("?", PRICES, "The Premium plan costs 59 euros per month."),
    ("+", LIST, "Wolves, lynx and brown bears live in the park."),
    ("+", LIST, "Camping is prohibited and drones are banned."),
    ("+", LIST, "Visitors must have a permit that costs 12 euros."),
    ("?", LIST, "The park was founded by Duke Albrecht."),
    ("+", BANK, "Opening an account online costs nothing for the first six months."),
    ("+", BANK, "A monthly fee of 4.90 euros is charged afterwards."),
    ("+", BANK, "Customers younger than 26 do not pay a monthly fee."),
    ("+", BANK, "The overdraft interest rate is 9.9% per year."),
    ("-", BANK, "The overdraft rate is 7.9% a year."),
    ("-", BANK, "Accounts opened online are free for the first twelve months."),
    ("?", BANK, "The bank offers a credit card with travel insurance."),
    ("+", SOFT, "Dark mode has been added in version 4.2."),
    ("+", SOFT, "Windows 7 is no longer supported."),
    ("+", SOFT, "The installer does not need administrator rights anymore."),
    ("+", SOFT, "Version 4.2 introduces dark mode and repairs a memory leak in the sync engine."),
    ("-", SOFT, "The installer requires administrator rights."),
    ("!", SOFT, "Version 4.2 drops support for Windows 10."),
    ("!", SOFT, "Search is now three times as fast."),
    ("?", SOFT, "Version 4.2 includes a built-in password manager."),
    ("+", BIO, "Elena Marku, who was born in Tirana in 1974, studied physics in Vienna."),
    ("+", BIO, "She founded Lumen Optics together with her brother Arben in Toronto."),
    ("+", BIO, "Zeiss bought Lumen Optics in 2015."),
    ("+", BIO, "Marku is a teacher at the University of Graz."),
    ("-", BIO, "Lumen Optics was sold to Zeiss in 2018."),
    ("!", BIO, "Lumen Optics was sold to Canon in 2015."),
    ("?", BIO, "Elena Marku won the Kepler Prize."),
    ("+", WEATHER, "It is 4 °C and raining in Oslo."),
    ("+", WEATHER, "In Rome the temperature is 19 degrees and the condition is sunny."),
    ("-", WEATHER, "The temperature in Oslo is 19 °C."),
    ("!", WEATHER, "It is sunny in Oslo."),
    ("+", ORDER, "The order has been shipped with DHL."),
    ("+", ORDER, "Lena Vogt ordered two desk lamps and one office chair."),
    ("+", ORDER, "The total is 268.80 euros."),
    ("!", ORDER, "The order was shipped with UPS."),
    ("-", ORDER, "The order is not gift wrapped."),
    ("+", CSV, "The number of visitors fell from 51,900 in 2023 to 47,100 in 2024."),
    ("+", CSV, "Revenue in 2023 was 1.475 million euros."),
    ("-", CSV, "There were 51,900 visitors in 2024."),
    ("+", BULL, "Residents can park for free."),
    ("+", BULL, "Pets are allowed on request for 15 euros per night."),
    ("-", BULL, "Breakfast is included in the room rate."),
    ("+", BULL, "The room rate does not include breakfast."),
    ("-", BULL, "Pets are not allowed."),
    ("!", BULL, "The heated outdoor pool is open from 7 am to 9 pm."),
    ("?", BULL, "The hotel has a sauna and a fitness room."),
    ("+", MEET, "According to Brandt, the migration is two weeks behind schedule."),
    ("+", MEET, "The servers were delivered late by the supplier."),
    ("+", MEET, "The launch will be postponed to 1 July, as Silva proposed."),
    ("+", MEET, "Okafor is going to inform the client by Friday."),
    ("-", MEET, "The migration is two weeks ahead of schedule."),
    ("-", MEET, "The launch will be postponed to 1 August."),
    ("-", MEET, "The budget was discussed."),
    ("?", MEET, "The client threatened to terminate the contract."),
    ("+", CORNER, "Sales grew by 20% to 85.2 million euros."),
    ("-", CORNER, "Operating profit rose to 18.4 million euros."),
    ("-", CORNER, "Sales were 71.0 million euros in 2024."),
    ("-", "Profit fell to $700K.", "Profit rose to $900K, according to the CEO."),
    ("-", "Profit fell to $700K.", "Profit rose to $700K."),
    ("?", "# Kestrel Ltd, annual report\n\nThe year ended in June.", "Kestrel Ltd had a good year."),
    ("+", "The number of employees rose from 310 to 365.", "The company now has 365 employees."),
    # bounds, denials, roles, tables, and numbers of other things
    ("+", CLINIC, "Dr. Weber speaks Spanish."),
    ("-", CLINIC, "Visits start at noon."),
    ("-", RETURNS, "Items can be returned within 40 days."),
    ("-", RETURNS, "Items can be returned within 35 days."),
    ("+", RETURNS, "Items can be returned within 30 days."),
    ("?", COUNCIL, "Priya Nair voted against the purchase."),
    ("!", COUNCIL, "Marcus Bell attended the June meeting."),
    ("+", COUNCIL, "Tom Reid voted against the purchase."),
    ("+", COUNCIL, "Marcus Bell apologised."),
    ("+", COUNCIL, "The purchase of two new printers was approved."),
    ("!", DEPOT, "The depot was closed because of a flood."),
    ("!", DEPOT, "Several people were injured."),
    ("!", DEPOT, "Two people were injured."),
    ("+", DEPOT, "No one was injured."),
    ("+", DEPOT, "The depot was closed because of a fire."),
    ("+", DEPOT, "A fire led to the closure of the Marlow depot."),
    ("!", LOSS, "The loss was blamed on falling passenger numbers."),
    ("+", LOSS, "The loss was blamed on higher energy prices."),
    ("-", LOSS, "RegioRail reported a profit of 9 million euros."),
    ("+", LOSS, "RegioRail reported a loss of 9 million euros."),
    ("-", LOSS, "RegioRail made a loss of 3 million euros."),
    ("!", OPS, "Technicians will disconnect the servers at midnight on Thursday."),
    ("+", OPS, "Technicians will disconnect the servers at noon on Thursday."),
    ("-", INV, "The order has not been paid yet."),
    ("+", INV, "The order has been paid."),
    ("+", INV, "It should arrive on 6 May."),
    ("!", INV, "It should arrive on 16 May."),
    ("-", FARES, "Fares will be raised this year."),
    ("+", FARES, "Fares will not be raised this year."),
    ("+", FARES, "Season tickets are valid until 31 March."),
    ("-", FARES, "Season tickets are valid until 30 April."),
    ("-", METF, "It commonly causes hypoglycaemia when taken on its own."),
    ("+", METF, "It rarely causes hypoglycaemia when taken on its own."),
    ("-", METF, "The dose must be increased when eGFR lies between 30 and 45."),
    ("+", METF, "The dose must be reduced when eGFR lies between 30 and 45."),
    ("-", ABSENCE, "A doctor's certificate is required from the third day of absence."),
    ("+", ABSENCE, "From the 4th day of absence a doctor's certificate is required."),
    ("+", COUNCIL, "The next meeting is in room 4."),
    ("+", ASPIRIN, "Aspirin is safe for adults."),
    ("+", ASPIRIN, "Aspirin is not safe for children."),
    ("+", PATIENT, "The patient was born in Lyon."),
    ("+", PATIENT, "The patient lives in Nice."),
    ("+", X1, "The X2 cannot be used on wet floors."),
    ("-", PENS, "Fenwick Trust will replace Alder Pensions."),
    ("+", PENS, "Alder Pensions will replace Fenwick Trust."),
    ("+", PENS, "Fenwick Trust will be replaced by Alder Pensions."),
    ("-", WARE, "The warehouse will open in December 2024."),
    ("+", WARE, "The warehouse will open in March 2025."),
    ("+", EU, "Estonia's economy shrank by 3% in 2023."),
    ("+", EU, "Estonia's GDP fell by 3.0% in 2023."),
    ("-", EU, "Estonia's GDP grew by 3.0% in 2023."),
    ("-", EU, "Croatia's GDP fell by 3.1% in 2023."),
    ("+", EU, "Croatia's GDP grew by 3.1% in 2023."),
    ("+", EU, "Croatia joined the EU in 2013, nine years after Estonia."),
    ("-", EU, "Croatia joined the EU in 2004."),
    ("+", EU, "Norway has the largest population of the four countries."),
    ("+", EU, "Norway is not a member of the EU."),
    ("-", EU, "Norway has joined the EU."),
    ("-", EU, "Norway joined the EU in 2004."),
    ("+", EU, "Latvia has 1.88 million inhabitants."),
    ("-", EU, "Latvia has 2.88 million inhabitants."),
    ("+", EU, "Estonia and Latvia together have 3.25 million inhabitants."),
    ("-", BRIDGE, "The bridge will cost 32 million euros."),
    ("!", TOWN, "Its population is 60,000."),
    ("+", TOWN, "Its population is 40,000."),
    ("+", DRUG, "The drug led to a 1.1 point reduction in HbA1c."),
    ("+", DRUG, "With the drug, HbA1c fell by 1.1 points."),
    ("+", DRUG, "The drug reduced HbA1c by 0.8 points more than placebo."),
    ("-", DRUG, "Placebo reduced HbA1c by 1.1 percentage points."),
    ("+", POOL, "The pool opens at 7 in the morning."),
    ("-", POOL, "The pool opens at 8 in the morning."),
    ("-", POOL, "The pool opens at 8 am."),
    ("+", MICE, "The two mice cost €49 together."),
    ("+", KETTLE, "The kettle holds 700 ml."),
    ("-", KETTLE, "The kettle holds 900 ml."),
    ("+", RETURNS, "Refunds are paid within two months."),
    ("+", INSPECT, "The lifts are inspected twice a year."),
    ("-", INSPECT, "The lifts are inspected every three months."),
    ("!", LEAVE, "Part-time employees get 28 days too."),
    ("+", LEAVE, "Full-time employees get 28 days."),
    ("-", LEASES, "The lease on Kingsway ends on 31 March."),
    ("+", LEASES, "The lease on Kingsway ends on 30 September 2027."),
    ("-", MOWER, "It runs for up to 60 minutes in boost mode."),
    ("+", MOWER, "It runs for up to 60 minutes in eco mode."),
    ("+", MOWER, "It runs for 25 minutes in boost mode."),
]

_WANTED = {"+": {"supported"}, "-": {"contradicted"}, "?": {"unsupported"}, "!": {"contradicted", "unsupported"}}


def flagged(mark: str, context: str, claim: str, judge: Judge) -> tuple[bool, bool]:
    """Return whether a claim is flagged, and whether it has the label that it should have."""
    report = verify([Choice(0, claim)], Context([Source("s1", "source", context)]), judge=judge)
    labels = {judgement.verdict.label for judgement in report.choices[0].judgements}
    return bool(labels & {"contradicted", "unsupported"}), labels <= _WANTED[mark] | {"not_checked"}


@pytest.mark.parametrize(
    ("judge", "false_alarms", "misses", "accuracy"),
    [(load_judge, 0.13, 0.05, 0.88), (Judge, 0.07, 0.17, 0.86)],
    ids=["model", "words alone"],
)
def test_few_right_claims_are_flagged_and_few_wrong_ones_pass(
    judge: Callable[[], Judge], false_alarms: float, misses: float, accuracy: float
) -> None:
    """These claims repeat the source's words more than most, so that words alone do well. Limits are as measured."""
    found = [(mark == "+", *flagged(mark, context, claim, judge())) for mark, context, claim in ROWS]
    right = [is_flagged for is_right, is_flagged, _ in found if is_right]
    wrong = [is_flagged for is_right, is_flagged, _ in found if not is_right]
    assert sum(right) / len(right) <= false_alarms
    assert 1 - sum(wrong) / len(wrong) <= misses
    assert sum(is_exact for *_, is_exact in found) / len(found) >= accuracy


@pytest.mark.parametrize(("mark", "context", "claim"), ROWS, ids=[claim for _, _, claim in ROWS])
def test_every_one_of_these_claims_is_checked(mark: str, context: str, claim: str) -> None:
    report = verify([Choice(0, claim)], Context([Source("s1", "source", context)]))
    assert {judgement.verdict.label for judgement in report.choices[0].judgements} != {"not_checked"}
