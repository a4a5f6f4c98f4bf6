"""What a call will take of a limit on tokens per minute, before it is made: learnt from the calls before it."""

from harness_repo.runtime.chat import ChatRequest, Usage

# Before anything is known; texts in Chinese have fewer characters to a token, and are learnt soon.
CHARACTERS_PER_TOKEN = 3.0
COMPLETION_TOKENS = 400.0
# How much one call changes what is known.
_WEIGHT = 0.1


class TokenEstimates:
    """Estimates for a model at an endpoint."""

    def __init__(self) -> None:
        self._characters_per_token = CHARACTERS_PER_TOKEN
        self._completion_tokens = COMPLETION_TOKENS

    def estimate(self, request: ChatRequest) -> int:
        """Prompt and completion tokens of a request, at least 1."""
        completion = self._completion_tokens
        for name in ("max_tokens", "max_completion_tokens"):
            most = request.parameters.get(name)
            if isinstance(most, int) and most > 0:
                completion = min(completion, most)
        return max(int(_characters(request) / self._characters_per_token + completion), 1)

    def learn(self, request: ChatRequest, usage: Usage) -> None:
        """Take into account what a request has taken; nothing where the server does not say it."""
        if not usage.prompt_tokens:
            return
        ratio = max(_characters(request) / usage.prompt_tokens, 0.1)
        self._characters_per_token += _WEIGHT * (ratio - self._characters_per_token)
        self._completion_tokens += _WEIGHT * (usage.completion_tokens - self._completion_tokens)


def _characters(request: ChatRequest) -> int:
    tools = len(str(request.tools)) if request.tools else 0
    return sum(len(str(message)) for message in request.messages) + tools
