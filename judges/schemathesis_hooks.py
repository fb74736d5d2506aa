"""Keeps what Schemathesis sends small, and what it sends as valid free of what a schema of fields cannot say.

A description tells of each field what it may hold. That fields fit each other, and the model that is served, is told by the
refusal instead: those rules are taken care of here, so that every refusal that is left is a fault.
"""

from __future__ import annotations

from typing import Any

import schemathesis

GENERATION = ("/v1/completions", "/v1/chat/completions")
MOST_TOKENS = 1
MOST_CHOICES = 2
MOST_MESSAGES = 8
VOCABULARY = 49152


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: Any) -> None:
    if "{name}" in case.operation.path:
        case.path_parameters["name"] = "made-up"
    body = case.body
    if not isinstance(body, dict) or is_example(case):
        return
    if case.meta is not None and case.meta.generation.mode.is_positive:
        fit_together(body)
    if case.operation.path in GENERATION:
        keep_small(body)


def is_example(case: Any) -> bool:
    """Examples are to be accepted as they are described."""
    return case.meta is not None and case.meta.phase.name == "examples"


def keep_small(body: dict[str, Any]) -> None:
    """A valid bound stays valid, and an invalid one invalid."""
    for name in ("max_tokens", "max_completion_tokens", "min_tokens"):
        if is_number(body.get(name)) and MOST_TOKENS < body[name] < 2**53:
            body[name] = MOST_TOKENS
    if body.get("max_tokens") is None and body.get("max_completion_tokens") is None:
        body["max_tokens"] = MOST_TOKENS
    if is_number(body.get("n")) and MOST_CHOICES < body["n"] <= 128:
        body["n"] = MOST_CHOICES


def is_number(value: Any) -> bool:
    """Whole numbers come as floats too."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def fit_together(body: dict[str, Any]) -> None:
    fit_names(body)
    fit_rules(body)
    fit_tokens(body)
    fit_limits(body)
    fit_details(body)
    fit_structure(body)
    if body.get("messages"):
        fit_chat(body)


def fit_names(body: dict[str, Any]) -> None:
    """What is served is known to the server alone."""
    for name in ("model", "drafter"):
        body.pop(name, None)


def fit_tokens(body: dict[str, Any]) -> None:
    """Ids of the model's vocabulary."""
    for name in ("tokens", "prompt", "stop_token_ids", "allowed_token_ids"):
        if isinstance(body.get(name), list):
            body[name] = [within(item) for item in body[name]]
    if body.get("logit_bias"):
        body["logit_bias"] = {str(int(token) % VOCABULARY): bias for token, bias in body["logit_bias"].items()}


def within(item: Any) -> Any:
    if isinstance(item, list):
        return [within(each) for each in item]
    return int(item) % VOCABULARY if is_number(item) else item


def fit_rules(body: dict[str, Any]) -> None:
    """Rules that leave a token: what is allowed is not forbidden by others."""
    if body.get("allowed_token_ids"):
        for name in ("bad_words", "logit_bias", "stop_token_ids", "response_format"):
            body.pop(name, None)


def fit_limits(body: dict[str, Any]) -> None:
    """Lengths that do not contradict each other."""
    if body.get("max_tokens") == 0 and not body.get("echo"):
        body["max_tokens"] = 1
    if body.get("max_tokens") is not None:
        body.pop("max_completion_tokens", None)
    for name in ("min_tokens", "truncate_prompt_tokens"):
        body.pop(name, None)


def fit_details(body: dict[str, Any]) -> None:
    """Details of details that are asked for."""
    if "messages" in body and not body.get("logprobs"):
        body.pop("top_logprobs", None)
    if not body.get("stream"):
        body.pop("stream_options", None)
    else:
        body.pop("prompt_logprobs", None)
    options = body.get("stream_options")
    if options and options.get("include_usage") is False:
        options.pop("continuous_usage_stats", None)


def fit_structure(body: dict[str, Any]) -> None:
    """One structure at most, and none in a language of its own, which text at random is not written in."""
    body.pop("structured_outputs", None)
    if (body.get("response_format") or {}).get("type") in ("json_schema", "structural_tag"):
        del body["response_format"]


def fit_chat(body: dict[str, Any]) -> None:
    """A chat of texts that the context of the model holds, and variables that the template reads."""
    texts = [{"role": message["role"], "content": "text"} for message in body["messages"] if message["role"] != "tool"]
    body["messages"] = texts[:MOST_MESSAGES]
    if not body["messages"]:
        body["messages"] = [{"role": "user", "content": "text"}]
    for name in ("chat_template_kwargs", "reasoning_effort", "tools", "tool_choice", "continue_final_message"):
        body.pop(name, None)
