from __future__ import annotations

import pytest

from llamasweep.run.process import clean_environment, inherited_settings
from llamasweep.run.secrets import (
    hide_arguments,
    hide_home,
    hide_in_argv,
    hide_in_environment,
    hide_values,
    secrets_in,
)

HOME = "/home/alice"


@pytest.mark.parametrize(
    "name",
    ["HF_TOKEN", "hf_token", "MY_SECRET", "PASSWORD", "GH_PASSWD", "AWS_ACCESS_KEY_ID", "OPENAI_API_KEY", "APIKEY",
     "AUTHORIZATION", "X_BEARER", "SOME_CREDENTIALS", "OPENAI_KEY", "MY_KEY_1", "DB_PASS", "PGPWD", "key"],
)  # fmt: skip
def test_a_variable_named_like_a_secret_is_hidden(name: str) -> None:
    assert hide_in_environment([(name, "s3cret")]) == {name: "(hidden)"}


def test_other_variables_are_shown_without_the_home_folder() -> None:
    pairs = [("OMP_NUM_THREADS", "2"), ("LD_LIBRARY_PATH", f"{HOME}/lib:/usr/lib:{HOME}")]
    assert hide_in_environment(pairs, HOME) == {
        "OMP_NUM_THREADS": "2",
        "LD_LIBRARY_PATH": "~/lib:/usr/lib:~",
    }


@pytest.mark.parametrize("flag", ["-hft", "--hf-token", "--api-key", "--token"])
def test_the_word_after_a_token_flag_is_hidden(flag: str) -> None:
    assert hide_in_argv(["bench", flag, "s3cret", "-p", "512"], HOME) == [
        "bench",
        flag,
        "(hidden)",
        "-p",
        "512",
    ]
    assert hide_in_argv([f"{flag}=s3cret"], HOME) == [f"{flag}=(hidden)"]


def test_a_token_that_looks_like_a_flag_does_not_unhide_the_next_word() -> None:
    assert hide_in_argv(["--token", "--token", "-p"], HOME) == ["--token", "(hidden)", "-p"]


def test_a_token_flag_at_the_end_hides_nothing() -> None:
    assert hide_in_argv(["-hft"], HOME) == ["-hft"]


def test_an_assignment_to_a_secret_name_is_hidden() -> None:
    assert hide_in_argv(["env", "HF_TOKEN=s3cret", "N=1"], None) == [
        "env",
        "HF_TOKEN=(hidden)",
        "N=1",
    ]


def test_a_word_that_only_speaks_of_tokens_is_shown() -> None:
    words = ["-m", "/models/token embd=1.gguf", "-ot", "token_embd.weight=CPU"]
    assert hide_in_argv(words, HOME) == words


def test_a_login_in_an_address_is_hidden() -> None:
    shown = hide_in_argv(["--rpc", "https://bob:s3cret@host:1/x@y"], None)
    assert shown == ["--rpc", "https://(hidden)@host:1/x@y"]
    assert hide_in_environment([("http_proxy", "http://bob:s3cret@host")]) == {
        "http_proxy": "http://(hidden)@host"
    }


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (HOME, "~"),
        (f"{HOME}/m.gguf", "~/m.gguf"),
        (f"--grammar={HOME}/g", "--grammar=~/g"),
        (f"error: failed to load model '{HOME}/m.gguf'", "error: failed to load model '~/m.gguf'"),
        (f"a {HOME}/x and {HOME}/y", "a ~/x and ~/y"),
        ("/home/alicent/m.gguf", "/home/alicent/m.gguf"),
        ("/mnt/home/alice/m.gguf", "/mnt/home/alice/m.gguf"),
        (f"{HOME}.bak", f"{HOME}.bak"),
        ("", ""),
    ],
)
def test_the_home_folder_is_written_short(text: str, shown: str) -> None:
    assert hide_home(text, HOME) == shown
    assert hide_home(text, HOME + "/") == shown


@pytest.mark.parametrize("home", [None, "", "/"])
def test_without_a_home_folder_nothing_changes(home: str | None) -> None:
    assert hide_home("/home/alice/m.gguf", home) == "/home/alice/m.gguf"
    assert hide_in_argv(["/a"], home) == ["/a"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://host/x?a=1&token=s3cret&b=2", "https://host/x?a=1&token=(hidden)&b=2"),
        ("https://host/x?api_key=s3cret#f", "https://host/x?api_key=(hidden)#f"),
        ("Authorization: Bearer s3cret", "Authorization: Bearer (hidden)"),
        ("hf_" + "aB3" * 8, "(hidden)"),
        ("hf_model", "hf_model"),
        ("blk.*.attn_key=CPU", "blk.*.attn_key=CPU"),
    ],
)
def test_a_secret_is_known_by_its_form_too(text: str, shown: str) -> None:
    assert hide_in_argv([text], None) == [shown]
    assert hide_in_environment([("PLAIN", text)]) == {"PLAIN": shown}


def test_of_a_command_of_the_user_only_the_program_is_shown() -> None:
    argv = [f"{HOME}/bin/tell", "https://host/bot123:s3cret/send", "done"]
    assert hide_arguments(argv, HOME) == ["~/bin/tell", "(hidden)", "(hidden)"]


def test_what_the_engine_repeats_of_its_secrets_is_hidden() -> None:
    argv = ["bench", "-hft", "tok-after", "--hf-token=tok-in", "--rpc", "https://u:tok-login@h/x"]
    pairs = [("MY_KEY", "tok-env"), ("URL", "https://h/?token=tok-url"), ("N", "harmless")]
    secrets = secrets_in(argv, pairs)
    said = b"bad: tok-after --hf-token=tok-in u:tok-login tok-env tok-url harmless"
    assert hide_values(said, secrets) == (
        b"bad: (hidden) --hf-token=(hidden) (hidden) (hidden) (hidden) harmless"
    )


def test_a_short_secret_is_not_searched_for_in_numbers() -> None:
    assert secrets_in(["bench", "--token", "12"], [("KEY", "512")]) == ()


def test_settings_of_the_shell_reach_the_engine_and_the_record_but_tokens_do_not() -> None:
    shell = {
        "OMP_NUM_THREADS": "1",
        "LLAMA_API_KEY": "sk-very-secret",
        "EDITOR": "vi",
        "PATH": "/bin",
    }
    assert inherited_settings(shell) == [("OMP_NUM_THREADS", "1")]
    assert clean_environment([("A", "b")], shell) == {
        "PATH": "/bin",
        "OMP_NUM_THREADS": "1",
        "A": "b",
    }
