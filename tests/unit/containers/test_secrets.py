from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from containers.secrets import (
    NAME,
    EnvironmentSecrets,
    FolderSecrets,
    Secret,
    SecretMissing,
    SecretsUnavailable,
    resolve,
    secret_variable,
)
from containers.spec import ContainerSpec

CANARY = "canary-7c1f"


def test_a_secret_shows_its_name_and_never_its_value():
    secret = Secret("PGPASSWORD", "team/db", CANARY)
    spec = ContainerSpec(name="run", secrets=(secret,), env={"A": "1"})
    for text in (repr(secret), str(secret), repr(spec), f"{spec}", repr(EnvironmentSecrets({"A": CANARY}))):
        assert CANARY not in text
    assert "team/db" in repr(secret)
    assert spec.environment() == {"A": "1", "PGPASSWORD": CANARY}


def test_the_same_name_is_found_in_the_environment_and_in_a_folder(tmp_path):
    (tmp_path / "data-engineering").mkdir()
    (tmp_path / "data-engineering/warehouse").write_text(f"{CANARY}\n")
    name = "data-engineering/warehouse"
    assert secret_variable(name) == "PUNCTUAL_SECRET_DATA_ENGINEERING__WAREHOUSE"
    environment = EnvironmentSecrets({secret_variable(name): "of-the-environment"})
    folder = FolderSecrets(tmp_path)
    assert resolve({"P": name}, [folder]) == (Secret("P", name, CANARY),)
    assert resolve({"P": name}, [environment, folder]) == (Secret("P", name, "of-the-environment"),)


def _as_folded(name: str) -> str:
    return name.upper().translate(str.maketrans("-./", "___"))


@given(st.from_regex(NAME, fullmatch=True), st.data())
def test_no_two_secrets_share_a_variable(name: str, data: st.DataObject) -> None:
    alike = "".join(
        data.draw(st.sampled_from("-_./" if sign in "-_./" else (sign.lower(), sign.upper())))
        for sign in name
    )
    assert _as_folded(alike) == _as_folded(name)
    assert (secret_variable(alike) == secret_variable(name)) == (alike == name)
    assert re.fullmatch("[A-Za-z0-9_]+", secret_variable(name))


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("Tests/db2", "tESTS__DB2"),
        ("data_eng/db.password", "DATA___ENG__DB____PASSWORD"),
        ("sales/PGPASSWORD", "SALES__pgpassword"),
    ],
)
def test_names_with_capitals_and_other_signs_have_variables_of_their_own(name, variable):
    assert secret_variable(name) == f"PUNCTUAL_SECRET_{variable}"


@pytest.mark.parametrize("name", ["absent", "team", "file/below"])
def test_what_is_nowhere_is_missing_by_name(tmp_path, name):
    (tmp_path / "team").mkdir()
    (tmp_path / "file").write_text("x")
    with pytest.raises(SecretMissing, match=name) as missing:
        resolve({"A": name}, [EnvironmentSecrets({}), FolderSecrets(tmp_path)])
    assert secret_variable(name) in missing.value.message


@pytest.mark.parametrize("content", [b"canary\xff", b"canary\0", b"canary" * 20_000])
def test_what_no_variable_can_hold_is_refused_without_showing_it(tmp_path, content):
    (tmp_path / "db").write_bytes(content)
    with pytest.raises(SecretMissing, match="'db'") as refused:
        resolve({"A": "db"}, [FolderSecrets(tmp_path)])
    error: BaseException | None = refused.value
    while error is not None:
        assert "canary" not in repr(error)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def test_a_folder_that_does_not_answer_is_not_a_missing_secret(tmp_path):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(SecretsUnavailable, match="'loop'"):
        resolve({"A": "loop"}, [FolderSecrets(tmp_path)])
