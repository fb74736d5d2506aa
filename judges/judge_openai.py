"""The openai package for Python uses the served pair as it would use OpenAI's own servers.

    python3 judges/judge_openai.py --work FOLDER
"""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Any, Literal

from harness import API_KEY, KEY_OPTIONS, MODEL, counters, judged, report, served, start

OPTIONS = (*KEY_OPTIONS, "--max-context", "1024")
# Gives up what is asked for below, which takes far longer.
HASTY = ("--request-timeout", "1")
HI = [{"role": "user", "content": "Say hi."}]
COUNT = [{"role": "user", "content": "Count from one to twenty."}]
WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a place.",
        "parameters": {
            "type": "object",
            "properties": {"place": {"type": "string", "enum": ["Rome", "Oslo"]}},
            "required": ["place"],
            "additionalProperties": False,
        },
    },
}
ASKS_WEATHER = [{"role": "user", "content": "How is the weather in Oslo?"}]


def main() -> int:
    judge = start("openai", "openai==3.57.0", "pydantic==2.14.4")
    from openai import OpenAI

    outcomes: dict[str, str] = {}
    passed = True
    for options, asked in ((OPTIONS, CHECKS), ((*OPTIONS, *HASTY), CHECKS_OF_HASTY)):
        with served(judge, *options, shows_tools=True) as url:
            client = OpenAI(base_url=f"{url}/v1", api_key=API_KEY, max_retries=0, timeout=120)
            came, well = judged(asked, client)
        outcomes |= came
        passed = passed and well
    report(judge, OPTIONS, {"checks": outcomes, "with": {check.__name__: HASTY for check in CHECKS_OF_HASTY}})
    return 0 if passed else 1


def models_are_listed(client: Any) -> None:
    assert [model.id for model in client.models.list()] == [MODEL]
    assert client.models.retrieve(MODEL).id == MODEL


def completion_has_usage_and_ending(client: Any) -> None:
    made = client.completions.create(model=MODEL, prompt="The sky is", max_tokens=8, temperature=0)
    assert made.object == "text_completion" and made.id.startswith("cmpl-")
    assert made.choices[0].finish_reason == "length" and made.choices[0].text
    assert made.usage.completion_tokens == 8 and made.usage.total_tokens == made.usage.prompt_tokens + 8


def completion_takes_lists_of_prompts_and_n(client: Any) -> None:
    made = client.completions.create(model=MODEL, prompt=["Hello", "World"], max_tokens=4, n=2, seed=1)
    assert [choice.index for choice in made.choices] == [0, 1, 2, 3]
    assert made.usage.completion_tokens == 16


def completion_takes_token_ids(client: Any) -> None:
    text = client.completions.create(model=MODEL, prompt="Hello", max_tokens=4, temperature=0, extra_body={"return_token_ids": True})
    ids = text.choices[0].model_extra["prompt_token_ids"]
    assert client.completions.create(model=MODEL, prompt=ids, max_tokens=4, temperature=0).choices[0].text == text.choices[0].text


def completion_echoes_with_logprobs(client: Any) -> None:
    made = client.completions.create(model=MODEL, prompt="Hello world", max_tokens=3, temperature=0, echo=True, logprobs=2)
    choice = made.choices[0]
    told = choice.logprobs
    assert choice.text.startswith("Hello world")
    assert "".join(told.tokens) == choice.text
    assert told.token_logprobs[0] is None and all(logprob <= 0 for logprob in told.token_logprobs[1:])
    assert all(len(top) >= 2 for top in told.top_logprobs[1:])
    assert [choice.text[at:][: len(token)] for at, token in zip(told.text_offset, told.tokens)] == told.tokens


def completion_streams_the_same_text(client: Any) -> None:
    asked = {"model": MODEL, "prompt": "The sky is", "max_tokens": 24, "temperature": 0}
    whole = client.completions.create(**asked)
    chunks = list(client.completions.create(**asked, stream=True, stream_options={"include_usage": True}))
    assert "".join(chunk.choices[0].text for chunk in chunks if chunk.choices) == whole.choices[0].text
    assert chunks[-1].choices == [] and chunks[-1].usage.completion_tokens == whole.usage.completion_tokens


def chat_answers(client: Any) -> None:
    made = client.chat.completions.create(model=MODEL, messages=HI, max_tokens=16, temperature=0)
    assert made.object == "chat.completion" and made.choices[0].message.role == "assistant"
    assert made.choices[0].message.content and made.usage.completion_tokens <= 16


def chat_streams_the_same_text_with_usage(client: Any) -> None:
    asked = {"model": MODEL, "messages": COUNT, "max_completion_tokens": 32, "temperature": 0}
    whole = client.chat.completions.create(**asked)
    chunks = list(client.chat.completions.create(**asked, stream=True, stream_options={"include_usage": True}))
    assert chunks[0].choices[0].delta.role == "assistant"
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == whole.choices[0].message.content
    endings = [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices]
    assert endings[-1] == whole.choices[0].finish_reason and not any(endings[:-1])
    assert chunks[-1].choices == [] and chunks[-1].usage.completion_tokens == whole.usage.completion_tokens


def chat_stream_helper_assembles(client: Any) -> None:
    with client.chat.completions.stream(model=MODEL, messages=HI, max_tokens=400, temperature=0, stop=["\n", "."]) as stream:
        kinds = {event.type for event in stream}
        final = stream.get_final_completion()
    assert {"chunk", "content.delta", "content.done"} <= kinds
    assert final.choices[0].message.content


def chat_tells_logprobs(client: Any) -> None:
    made = client.chat.completions.create(model=MODEL, messages=HI, max_tokens=6, temperature=0, logprobs=True, top_logprobs=3)
    tokens = made.choices[0].logprobs.content
    assert len(tokens) == made.usage.completion_tokens
    assert b"".join(bytes(token.bytes) for token in tokens).decode() == made.choices[0].message.content
    assert all(len(token.top_logprobs) == 3 and token.top_logprobs[0].token == token.token for token in tokens)


def seed_repeats_and_drafts_change_nothing(client: Any) -> None:
    def text(**extra: Any) -> str:
        made = client.chat.completions.create(model=MODEL, messages=COUNT, max_tokens=24, temperature=0.9, seed=7, extra_body=extra)
        return made.choices[0].message.content

    assert text() == text() == text(speculative=False)


def stop_and_bias_are_obeyed(client: Any) -> None:
    def text(**fields: Any) -> Any:
        return client.chat.completions.create(model=MODEL, messages=COUNT, max_tokens=32, temperature=0, **fields).choices[0]

    whole = text().message.content
    mark = whole[40:43]
    stopped = text(stop=["never said", mark])
    assert stopped.finish_reason == "stop" and stopped.message.content == whole[: whole.index(mark)], (whole, stopped)
    made = client.completions.create(model=MODEL, prompt="a", max_tokens=3, temperature=0, logit_bias={"28": 100})
    assert len(set(made.choices[0].text)) == 1


def parse_fills_a_model(client: Any) -> None:
    from pydantic import BaseModel, Field

    class Pet(BaseModel):
        name: str
        kind: Literal["cat", "dog"]
        tags: list[str] = Field(max_length=2)

    asked = {"model": MODEL, "messages": [{"role": "user", "content": "A cat named Tom"}], "temperature": 0, "max_tokens": 300}
    made = client.chat.completions.parse(**asked, response_format=Pet)
    assert isinstance(made.choices[0].message.parsed, Pet)
    with client.chat.completions.stream(**asked, response_format=Pet) as stream:
        assert stream.get_final_completion().choices[0].message.parsed == made.choices[0].message.parsed


def parse_tells_of_a_cut_answer(client: Any) -> None:
    from openai import LengthFinishReasonError
    from pydantic import BaseModel

    class Essay(BaseModel):
        title: str
        text: str

    expect(LengthFinishReasonError, client.chat.completions.parse, model=MODEL, messages=HI, max_tokens=2, response_format=Essay)


def tools_are_called_and_answered(client: Any) -> None:
    asked = {"model": MODEL, "tools": [WEATHER], "temperature": 0, "max_tokens": 80}
    made = client.chat.completions.create(**asked, messages=ASKS_WEATHER, tool_choice="required")
    message = made.choices[0].message
    assert made.choices[0].finish_reason == "tool_calls" and message.content is None
    call = message.tool_calls[0]
    assert call.function.name == "weather" and call.function.arguments
    answered = {"role": "tool", "tool_call_id": call.id, "content": "Sunny, 20 degrees."}
    after = client.chat.completions.create(**asked, messages=[*ASKS_WEATHER, message, answered], tool_choice="none")
    assert after.choices[0].message.content and after.choices[0].message.tool_calls is None


def tool_calls_stream(client: Any) -> None:
    named = {"type": "function", "function": {"name": "weather"}}
    asked = {"model": MODEL, "messages": ASKS_WEATHER, "tools": [WEATHER], "tool_choice": named, "temperature": 0, "max_tokens": 80}
    whole = client.chat.completions.create(**asked).choices[0].message.tool_calls[0].function
    with client.chat.completions.stream(**asked) as stream:
        streamed = stream.get_final_completion().choices[0].message.tool_calls[0].function
    assert (streamed.name, streamed.arguments) == (whole.name, whole.arguments)


def tools_of_pydantic_are_parsed(client: Any) -> None:
    from openai import pydantic_function_tool
    from pydantic import BaseModel

    class Weather(BaseModel):
        """The weather of a place."""

        place: str

    made = client.chat.completions.parse(
        model=MODEL, messages=ASKS_WEATHER, tools=[pydantic_function_tool(Weather)], tool_choice="required", temperature=0, max_tokens=80
    )
    assert isinstance(made.choices[0].message.tool_calls[0].function.parsed_arguments, Weather)


def errors_have_their_classes(client: Any) -> None:
    import openai

    create = client.chat.completions.create
    missing = expect(openai.NotFoundError, create, model="nope", messages=HI)
    assert missing.code == "model_not_found" and missing.param == "model"
    assert expect(openai.BadRequestError, create, model=MODEL, messages=HI, temperature=9).param == "temperature"
    assert expect(openai.BadRequestError, create, model=MODEL, messages=[]).param == "messages"
    assert expect(openai.BadRequestError, create, model=MODEL, messages=HI, logit_bias={"99999999": 1}).param == "logit_bias"
    long = [{"role": "user", "content": "word " * 2000}]
    assert expect(openai.BadRequestError, create, model=MODEL, messages=long).code == "context_length_exceeded"
    expect(openai.BadRequestError, create, model=MODEL, messages=HI, stream=True, extra_body={"nonsense": 1})
    stranger = client.with_options(api_key="wrong")
    assert expect(openai.AuthenticationError, stranger.models.list).code == "invalid_api_key"
    expect(openai.NotFoundError, client.embeddings.create, model=MODEL, input="x")


def timeouts_end_the_request(client: Any) -> None:
    from openai import APITimeoutError

    hasty = client.with_options(timeout=0.3)
    expect(APITimeoutError, hasty.chat.completions.create, model=MODEL, messages=COUNT, max_tokens=900, extra_body=ENDLESS)
    idle(client)


def closed_streams_end_the_request(client: Any) -> None:
    before = aborted(client)
    stream = client.chat.completions.create(model=MODEL, messages=COUNT, max_tokens=900, stream=True, extra_body=ENDLESS)
    for _, chunk in zip(range(3), stream):
        assert chunk.id
    stream.close()
    idle(client)
    assert aborted(client) == before + 1


def cancelled_tasks_end_the_request(client: Any) -> None:
    from openai import AsyncOpenAI

    async def cancel() -> None:
        async with AsyncOpenAI(base_url=client.base_url, api_key=API_KEY, max_retries=0) as asking:
            asked = asking.chat.completions.create(model=MODEL, messages=COUNT, max_tokens=900, extra_body=ENDLESS)
            task = asyncio.create_task(asked)
            await asyncio.sleep(1)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert task.cancelled()

    before = aborted(client)
    asyncio.run(cancel())
    idle(client)
    assert aborted(client) == before + 1


def timeouts_of_the_server_are_not_asked_for_again(client: Any) -> None:
    """What took too long once would again: of the three times that the client asks by itself, one is left."""
    from openai import APIStatusError

    before = aborted(client)
    patient = client.with_options(max_retries=2)
    late = expect(APIStatusError, patient.chat.completions.create, model=MODEL, messages=COUNT, max_tokens=900, extra_body=ENDLESS)
    assert late.status_code == 408 and late.code == "timeout"
    assert aborted(client) == before + 1


def timeouts_of_the_server_end_a_stream_with_an_error(client: Any) -> None:
    from openai import APIError

    stream = client.chat.completions.create(model=MODEL, messages=COUNT, max_tokens=900, stream=True, extra_body=ENDLESS)
    late = expect(APIError, list, stream)
    assert late.code == "timeout"


def many_at_once_get_their_own_answers(client: Any) -> None:
    from openai import AsyncOpenAI

    words = ["sky", "sea", "tree", "stone", "river", "lamp"]

    async def all_of_them() -> list[str]:
        async with AsyncOpenAI(base_url=client.base_url, api_key=API_KEY, max_retries=0, timeout=120) as asking:
            asked = [asking.completions.create(model=MODEL, prompt=f"The {word} is", max_tokens=8, temperature=0) for word in words]
            return [made.choices[0].text for made in await asyncio.gather(*asked)]

    alone = [client.completions.create(model=MODEL, prompt=f"The {word} is", max_tokens=8, temperature=0) for word in words]
    assert asyncio.run(all_of_them()) == [made.choices[0].text for made in alone]


ENDLESS = {"ignore_eos": True}


def expect(kind: type[Exception], call: Any, *given: Any, **fields: Any) -> Any:
    try:
        call(*given, **fields)
    except kind as error:
        return error
    raise AssertionError(f"Expected {kind.__name__}, got an answer")


def metrics(client: Any) -> dict[str, float]:
    return counters(str(client.base_url).removesuffix("/v1/"))


def aborted(client: Any) -> float:
    """Requests that were given up."""
    text = client.with_options(base_url=str(client.base_url).removesuffix("v1/")).get("/metrics", cast_to=str)
    lines = [line for line in text.splitlines() if line.startswith("blockdraft:request_success_total") and 'finished_reason="abort"' in line]
    return sum(float(line.rpartition(" ")[2]) for line in lines)


def idle(client: Any) -> None:
    """Waits until nothing runs: at most 10 s, far less than what was asked for would take."""
    for _ in range(100):
        if metrics(client)["blockdraft:num_requests_running"] == 0:
            return
        time.sleep(0.1)
    raise AssertionError("Expected no running request, got one that nobody waits for")


CHECKS = (
    models_are_listed,
    completion_has_usage_and_ending,
    completion_takes_lists_of_prompts_and_n,
    completion_takes_token_ids,
    completion_echoes_with_logprobs,
    completion_streams_the_same_text,
    chat_answers,
    chat_streams_the_same_text_with_usage,
    chat_stream_helper_assembles,
    chat_tells_logprobs,
    seed_repeats_and_drafts_change_nothing,
    stop_and_bias_are_obeyed,
    parse_fills_a_model,
    parse_tells_of_a_cut_answer,
    tools_are_called_and_answered,
    tool_calls_stream,
    tools_of_pydantic_are_parsed,
    errors_have_their_classes,
    timeouts_end_the_request,
    closed_streams_end_the_request,
    cancelled_tasks_end_the_request,
    many_at_once_get_their_own_answers,
)
CHECKS_OF_HASTY = (timeouts_of_the_server_are_not_asked_for_again, timeouts_of_the_server_end_a_stream_with_an_error)

if __name__ == "__main__":
    sys.exit(main())
