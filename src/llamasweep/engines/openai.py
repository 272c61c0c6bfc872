"""Any OpenAI-compatible server as an engine: it is there, we ask it, and its settings are its own. Pure."""

from __future__ import annotations

from llamasweep.engines.base import Call, CallOptions
from llamasweep.engines.driven import Driven, Job, axes_and_tests, job_call
from llamasweep.engines.llama_server import (
    OF_REQUESTS,
    depth_restrictions,
    stream_restrictions,
)
from llamasweep.sweep.cell import Block, Group
from llamasweep.sweep.matrix import Restriction
from llamasweep.sweep.subjects import Build, Model

NOT_OURS = "{name} is a setting of the server, which was started by somebody else"


class OpenAi(Driven):
    """A server at an address: llama-server, vLLM, LM Studio, Ollama's /v1."""

    name = "openai"

    def restrictions(self, block: Block, model: Model, build: Build) -> list[Restriction]:
        del model, build
        refused = [
            Restriction(reason=NOT_OURS.format(name=name), where={name: frozenset(values)})
            for name, values in block.axes
            if name not in OF_REQUESTS
        ]
        return [*depth_restrictions(block), *stream_restrictions(block), *refused]

    def describe(self, group: Group, options: CallOptions) -> Call:
        job = Job(
            engine=self.name,
            base_url=group.build.path,
            model=group.model.source.served or "",
            key_variable=options.server.key_variable,
            n_reps=options.n_reps,
            warmup=options.warmup,
            options={"is_chat": options.server.template == "own"},
            **axes_and_tests(group.block),
        )
        return job_call(group, options, job)
