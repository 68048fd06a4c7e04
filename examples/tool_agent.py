"""An agent that calls a tool: its answer is checked against the result of the tool.

`python examples/tool_agent.py` runs offline, with the demo model behind the proxy. Needs `pip install openai`.
"""

from __future__ import annotations

import json
from typing import Any

from openai import OpenAI

from groundwire.demo.model import MODEL
from groundwire.demo.show import demo_proxy
from groundwire.integrations import grounding_of

TICKETS = {
    48213: {
        "customer": "Harbour Clinic",
        "plan": "Business",
        "seats": 240,
        "priority": "high",
        "notes": [
            "2025-03-04: Backups fail every night since the update to version 7.2.",
            "2025-03-05: Support reproduced the failure and passed it to engineering.",
        ],
    }
}
TOOL: Any = {
    "type": "function",
    "function": {
        "name": "get_ticket",
        "description": "Return a support ticket.",
        "parameters": {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]},
    },
}


def run(client: OpenAI, question: str) -> Any:
    """Let the model call the tool until it answers, and return the last completion."""
    messages: list[Any] = [{"role": "user", "content": question}]
    while True:
        completion = client.chat.completions.create(model=MODEL, messages=messages, tools=[TOOL])
        message = completion.choices[0].message
        if not message.tool_calls:
            return completion
        messages.append(message)
        for call in message.tool_calls:
            arguments = json.loads(call.function.arguments)
            print(f"calls {call.function.name}({arguments['id']})")
            result = json.dumps(TICKETS.get(arguments["id"], {"error": "unknown ticket"}))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


def main() -> None:
    """Ask about a ticket, and print the claims of the answer that the ticket does not support."""
    with demo_proxy() as url:
        completion = run(OpenAI(base_url=url, api_key="none"), "What is going on with ticket 48213?")
    print(completion.choices[0].message.content)
    report = grounding_of(completion)
    for claim in report["choices"][0]["claims"] if report else ():
        if claim["label"] != "supported":
            print(f"\n{claim['label']}: {claim['text']}\n  {claim['reason']}")


if __name__ == "__main__":
    main()
