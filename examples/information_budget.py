"""The information budget, step by step: does the cited evidence change a model's belief?

Run it as a script, `python examples/information_budget.py`, or cell by cell in an editor that knows `# %%`. It
starts a small stand-in for a model server and the proxy before it on free ports, and takes no key. The stand-in
believes by a plain rule, so that the numbers can be followed: 98 % for the content of a source, 40 % for all else.
"""

import json
import math
import re
from typing import Any

import openai
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from groundwire.config import Settings
from groundwire.demo.show import serving
from groundwire.domain import Citation, Probability, Source
from groundwire.features.information_budget import scrub
from groundwire.http.app import build_app
from groundwire.scoring.budget import measure
from groundwire.telemetry import configure_logs

# %% Bits: how far evidence moves belief, and how far it would have to


def known(value: float) -> Probability:
    """Return a probability that is known exactly."""
    return Probability(value, value, value, "logprobs")


CASES = [(0.98, 0.4), (0.5, 0.5), (0.01, 0.9), (0.99, 0.99)]
print("   p1    p0  required  observed     gap  status")
for p1, p0 in CASES:
    budget = measure(known(p1), known(p0))
    bits = f"{budget.required_bits:8.2f}  {budget.observed_bits:8.2f}  {budget.budget_gap:6.2f}"
    print(f"{p1:5.2f} {p0:5.2f}  {bits}  {budget.status}")

# %% Scrubbing: the context without the cited evidence, its structure kept


REPORT = Source("1", "document", "- The board of Acme, after long talks, sold the plant in March.\n- It rained in May.")
SENTENCE = "The board of Acme, after long talks, sold the plant in March."
START = REPORT.text.index(SENTENCE)
(scrubbed,) = scrub([REPORT], [Citation("1", START, START + len(SENTENCE), SENTENCE, 1.0, "exact")])
print(f"\n{scrubbed.text}")

# %% A model server that answers one question, and reports its certainty about claims


ANSWER = "The board of Acme sold the plant. The board hired two advisers from Sweden."


def believed(claim: str, context: str) -> float:
    """Return 98 % when some sentence of the context has every word of the claim, else 40 %."""
    words = set(re.findall(r"\w+", claim.lower()))
    stated = any(words <= set(re.findall(r"\w+", sentence.lower())) for sentence in re.split(r"[.\n]", context))
    return 0.98 if stated else 0.4


def verdict(probability: float) -> dict[str, Any]:
    """Return a token YES or NO, with the logprobs of both."""
    shown = [
        {"token": word, "logprob": math.log(mass)} for word, mass in ((" YES", probability), (" NO", 1 - probability))
    ]
    return {**max(shown, key=lambda each: each["logprob"]), "top_logprobs": shown}


def judged(prompt: str) -> list[dict[str, Any]]:
    """Return the tokens of an answer to a probe, whose data are JSON lines: the context, then one claim or several."""
    context, asked = (json.loads(line) for line in prompt.splitlines() if line.startswith(("[", "{")))
    text = "\n".join(source["text"] for source in context)
    if isinstance(asked, dict):
        return [verdict(believed(asked["claim"], text))]
    lines = [(f"\n{each['id']}:", verdict(believed(each["claim"], text))) for each in asked]
    return [token for mark, said in lines for token in ({"token": mark, "logprob": 0.0, "top_logprobs": []}, said)]


async def complete(request: Request) -> JSONResponse:
    """Return one chat completion, in OpenAI's format."""
    asked = await request.json()
    tokens = judged(asked["messages"][-1]["content"]) if asked.get("logprobs") else None
    text = ANSWER if tokens is None else "".join(token["token"] for token in tokens)
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    logprobs = {"logprobs": {"content": tokens}} if tokens else {}
    usage = {"prompt_tokens": len(str(asked["messages"]).split()), "completion_tokens": len(text.split())}
    head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1750000000, "model": asked["model"]}
    return JSONResponse({**head, "choices": [{**choice, **logprobs}], "usage": usage})


MODEL_SERVER = Starlette(routes=[Route("/v1/chat/completions", complete, methods=["POST"])])

# %% The proxy before it, and the openai SDK pointed there


HALLUCINATION = {
    "enabled": True,
    "backend": {"type": "self"},
    "output_verification": {"enabled": True, "probability_min": 0.0, "probability_max": 1.0},
}
MESSAGES: Any = [{"role": "system", "content": REPORT.text}, {"role": "user", "content": "What did the board do?"}]

with serving(MODEL_SERVER) as model_url:
    settings = Settings.model_validate(
        {
            "upstreams": {"demo": {"base_url": model_url}},
            "information_budget": HALLUCINATION,
            "telemetry": {"log_level": "error"},
        }
    )
    configure_logs(settings.telemetry)
    with serving(build_app(settings)) as proxy_url:
        client = openai.OpenAI(base_url=proxy_url, api_key="not-needed", max_retries=0)
        completion = client.chat.completions.create(model="demo", messages=MESSAGES)
grounding: Any = (completion.model_extra or {})["grounding"]

# %% The report on each claim, and its cost

for claim in grounding["choices"][0]["claims"]:
    told = claim["budget"]
    print(f"\n{claim['text']}\n  {claim['label']}: {claim['reason']}")
    print(f"  p1 {told['p1']}, p0 {told['p0']}, gap {told['budget_gap']} bits: {told['status']}")
print(f"\nflags: {', '.join(grounding['flags'])}")
for stage in grounding["stages"]:
    print(f"{stage['stage']:>13}: {stage['claims']} claims, {stage['calls']} calls, {stage['prompt_tokens']} tokens")
