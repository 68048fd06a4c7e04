"""RAG with citations in LlamaIndex: retrieve nodes, answer with `[n]`, and list the claims with their evidence.

`python examples/rag_llama_index.py` runs offline, with the demo model behind the proxy. Needs
`pip install llama-index-core llama-index-llms-openai-like`.
"""

from __future__ import annotations

import re

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.llms import ChatMessage
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.llms.openai_like import OpenAILike

from groundwire.demo.model import MODEL
from groundwire.demo.show import demo_proxy
from groundwire.integrations import grounding_of

NODES = [
    TextNode(id_="travel", text="Hotel costs are reimbursed by the company up to 180 euros per night."),
    TextNode(
        id_="remote",
        text="Employees may work from abroad for at most 20 days per calendar year. A request must be approved by the "
        "line manager at least two weeks before departure.",
    ),
    TextNode(id_="canteen", text="Lunch is served from half past eleven. The menu changes every Monday."),
]
QUESTION = "How long may I work from abroad, and what does the company pay for a hotel?"


class WordRetriever(BaseRetriever):
    """Score nodes by the words that they share with the query: offline. Use an index with embeddings for yours."""

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        wanted = _words(query_bundle.query_str)
        found = [NodeWithScore(node=node, score=len(wanted & _words(node.text))) for node in NODES]
        return [each for each in found if each.score]


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w{4,}", text.lower()))


def main() -> None:
    """Answer the question and print the report."""
    nodes = WordRetriever().retrieve(QUESTION)
    documents = [
        f'<document id="{at}" title="{each.node_id}">{each.text}</document>' for at, each in enumerate(nodes, 1)
    ]
    system = "\n".join(["Answer from the documents and cite them like [1].", *documents])
    with demo_proxy() as url:
        model = OpenAILike(api_base=url, api_key="none", model=MODEL, is_chat_model=True)
        response = model.chat([ChatMessage(role="system", content=system), ChatMessage(role="user", content=QUESTION)])
    print(response.message.content)
    report = grounding_of(response)
    titles = {source["id"]: source.get("title", source["id"]) for source in report["sources"]}
    for claim in report["choices"][0]["claims"]:
        print(f"\n{claim['label']}: {claim['text']}")
        for citation in claim["citations"]:
            print(f"  {titles[citation['source']]}: {citation['text']}")


if __name__ == "__main__":
    main()
