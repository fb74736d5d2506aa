"""LangChain's client for OpenAI's API chats with the served pair, streams, gets objects and binds tools.

    python3 judges/judge_langchain.py --work FOLDER
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any, Literal

from harness import API_KEY, KEY_OPTIONS, MODEL, judged, report, served, start

OPTIONS = (*KEY_OPTIONS, "--max-context", "1024")
QUESTION = "What is the weather in Oslo?"


def main() -> int:
    judge = start("langchain", "langchain-openai==1.7.4")
    from langchain_openai import ChatOpenAI

    with served(judge, *OPTIONS, shows_tools=True) as url:
        chat = ChatOpenAI(base_url=f"{url}/v1", api_key=API_KEY, model=MODEL, temperature=0, max_tokens=120, max_retries=0)
        checks, passed = judged(CHECKS, chat)
    report(judge, OPTIONS, {"checks": checks})
    return 0 if passed else 1


def chat_answers_with_usage(chat: Any) -> None:
    answer = chat.invoke([("system", "Be brief."), ("user", "Say hi.")])
    assert answer.content
    assert answer.usage_metadata["output_tokens"] == answer.response_metadata["token_usage"]["completion_tokens"] > 0
    assert answer.response_metadata["finish_reason"] in ("stop", "length")


def stream_adds_up_to_the_answer(chat: Any) -> None:
    chunks = list(chat.stream("Name three colours.", stream_usage=True))
    whole = chat.invoke("Name three colours.")
    assert len(chunks) > 3
    assert "".join(chunk.content for chunk in chunks) == whole.content
    added = chunks[0]
    for chunk in chunks[1:]:
        added = added + chunk
    assert added.usage_metadata["output_tokens"] == whole.usage_metadata["output_tokens"]


def batches_are_answered_in_order(chat: Any) -> None:
    questions = ["What is gravity?", "How do bees make honey?", "Name three colours."]
    together = asyncio.run(chat.abatch(questions))
    assert [answer.content for answer in together] == [chat.invoke(question).content for question in questions]


def logprobs_are_told(chat: Any) -> None:
    answer = chat.bind(logprobs=True, top_logprobs=2).invoke("Say hi.")
    told = answer.response_metadata["logprobs"]["content"]
    assert len(told) == answer.usage_metadata["output_tokens"]


def structured_output_by_schema(chat: Any) -> None:
    asked = chat.with_structured_output(weather_model(), method="json_schema")
    assert asked.invoke(QUESTION).place in ("Rome", "Oslo")


def structured_output_by_call(chat: Any) -> None:
    asked = chat.with_structured_output(weather_model(), method="function_calling")
    assert asked.invoke(QUESTION).place in ("Rome", "Oslo")


def structured_output_by_json_mode(chat: Any) -> None:
    """An object, or the beginning of one where the small model finds no end."""
    from openai import LengthFinishReasonError

    asked = chat.with_structured_output(None, method="json_mode")
    try:
        assert isinstance(asked.invoke('Answer with {"place": "Oslo"} as JSON.'), dict)
    except LengthFinishReasonError as cut:
        assert cut.completion.choices[0].message.content.lstrip().startswith("{")


def tools_are_bound_called_and_answered(chat: Any) -> None:
    from langchain_core.messages import HumanMessage, ToolMessage

    asked = [HumanMessage(QUESTION)]
    call = chat.bind_tools([weather_tool()], tool_choice="any").invoke(asked)
    assert [made["name"] for made in call.tool_calls] and call.tool_calls[0]["args"]["place"] in ("Rome", "Oslo")
    answers = [weather_tool().invoke(made) for made in call.tool_calls]
    assert all(isinstance(answer, ToolMessage) for answer in answers)
    assert chat.bind_tools([weather_tool()], tool_choice="none").invoke([*asked, call, *answers]).content


def tool_calls_stream(chat: Any) -> None:
    bound = chat.bind_tools([weather_tool()], tool_choice="weather")
    chunks = list(bound.stream(QUESTION))
    added = chunks[0]
    for chunk in chunks[1:]:
        added = added + chunk
    assert [(call["name"], call["args"]) for call in added.tool_calls] == [
        (call["name"], call["args"]) for call in bound.invoke(QUESTION).tool_calls
    ]


def weather_model() -> type[Any]:
    from pydantic import BaseModel

    class Weather(BaseModel):
        """The weather of a place."""

        place: Literal["Rome", "Oslo"]
        is_sunny: bool

    return Weather


def weather_tool() -> Any:
    from langchain_core.tools import tool

    @tool
    def weather(place: Literal["Rome", "Oslo"]) -> str:
        """The weather of a place."""
        return f"{place}: sunny, 20 degrees"

    return weather


CHECKS = (
    chat_answers_with_usage,
    stream_adds_up_to_the_answer,
    batches_are_answered_in_order,
    logprobs_are_told,
    structured_output_by_schema,
    structured_output_by_call,
    structured_output_by_json_mode,
    tools_are_bound_called_and_answered,
    tool_calls_stream,
)

if __name__ == "__main__":
    sys.exit(main())
