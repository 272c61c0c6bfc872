"""Whose models those are that a killed run left on a server."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from llamasweep.drivers import ollama_server
from llamasweep.drivers.ollama_server import owner_of


def test_machines_of_one_name_with_one_path_do_not_remove_each_others_models(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    owners = []
    for machine in ("aa", "bb", None):
        place = tmp_path / str(machine)
        if machine is not None:
            place.write_text(machine)
        monkeypatch.setattr(ollama_server, "MACHINE_ID", place)
        owners += [owner_of("/home/user/cache"), owner_of("/home/other/cache")]

    assert len(set(owners)) == 6
    assert all(re.fullmatch("[0-9a-f]{8}", owner) for owner in owners)
    assert owner_of("/home/user/cache") == owners[4]
