"""Every flag that the program writes has words, so that no reader meets a bare name."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.contract.source import modules, tree

from llamasweep.results.flag_words import FLAGS

COLLECTORS = {"flags", "found"}
"""What the variables are called that flags are put into."""


def _written() -> Iterator[str]:
    for name in modules():
        if name.split(".")[0] not in ("run", "engines", "drivers"):
            continue
        for node in ast.walk(tree(name)):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            if node.func.attr not in ("append", "add"):
                continue
            target, arguments = node.func.value, node.args
            if isinstance(target, ast.Name) and target.id in COLLECTORS:
                yield from (
                    argument.value
                    for argument in arguments
                    if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
                )


def test_every_flag_has_words() -> None:
    written = {flag for flag in _written() if flag.replace("_", "").isalpha()}
    assert {"wide_spread", "prompt_cached", "clocks_differ", "prompt_not_cached"} <= written
    assert written - set(FLAGS) == set()
