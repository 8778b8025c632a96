# ruff: noqa: E501 - tables of refusals, one a line
"""Every refusal of a condition manifest: where it points, what it expects, what is near."""

from __future__ import annotations

from pathlib import Path

import pytest

from scheduler.manifest.condition import load_condition
from scheduler.manifest.faults import ManifestError
from tests.scheduler.manifest.builders import PROMPT, condition_text, write, write_world
from workers.contract.base import sha256_hex

SHA = sha256_hex(PROMPT.encode())

EXTRA_WORKER = """\
  - id: helper
    kind: worker
    role: helper
    count: 1
    endpoint: {endpoint}
    model_revision: r1
    prompt: {{path: personas/solo.md, sha256: {sha}}}
prices:"""


@pytest.mark.parametrize(
    ("old", "new", "line", "field", "words", "nearest"),
    [
        ("condition: one", "conditon: one", 2, "conditon", "unknown field", "condition"),
        ("condition: one\n", "", None, "condition", "required and is not there", None),
        ("condition: one", "condition: 7", 2, "condition", "expected text, found 7: put it in quotes", None),
        ("condition: one", "condition: yes", 2, "condition", "found true: put it in quotes", None),
        ("condition: one", "condition: ''", 2, "condition", "text that is not empty", None),
        ('schema_version: "1"', "schema_version: 1", 1, "schema_version", "expected '1', found 1", None),
        ("kind: orchestrator", "kind: orchestrater", 5, "roster[0].kind", "expected 'orchestrator' or 'worker', found 'orchestrater'", "orchestrator"),
        ("kind: orchestrator", "kind: worker", 3, "roster", "exactly one orchestrator, this has 0", None),
        ("count: 1", "count: 2", 3, "roster", "exactly one orchestrator, this has 2", None),
        ("count: 1", "count: 0", 7, "roster[0].count", "greater than 0, found 0", None),
        ("count: 1", "count: 1.5", 7, "roster[0].count", "expected a whole number, found 1.5", None),
        ("count: 1", "count: one", 7, "roster[0].count", "expected a whole number, found 'one'", None),
        ("    count: 1\n", "", 4, "roster[0].count", "required", None),
        ("    count: 1\n", "    count: 1\n    temperature: 0.5\n", 8, "roster[0].temperature", "no such field here", "roster.generation.temperature"),
        ("role: solo", "Role: solo", 6, "roster[0].Role", "unknown field", "role"),
        ("id: solo", "id: Solo", 4, "roster[0].id", "of the form ^[a-z0-9]", None),
        ("max_output_tokens: 4096", "max-output-tokens: 4096", 14, "roster[0].generation.max-output-tokens", "unknown field", "max_output_tokens"),
        ("max_output_tokens: 4096", "max_tokens: 4096", 14, "roster[0].generation.max_tokens", "unknown field", "max_output_tokens"),
        ("max_output_tokens: 4096", "max_output_tokens: 200000", 14, "roster[0].generation.max_output_tokens", "must be less than context_window_tokens 200000", None),
        ("max_output_tokens: 4096", "max_output_tokens: 4096\n      compact_at_tokens: 199999", 15, "roster[0].generation.compact_at_tokens", "at most 195904", None),
        ("max_output_tokens: 4096", "thinking_effort: hihg", 14, "roster[0].generation.thinking_effort", "found 'hihg'", "high"),
        ("max_output_tokens: 4096", "temperature: -1", 14, "roster[0].generation.temperature", "at least 0, found -1", None),
        ("max_output_tokens: 4096", "compact_at_percent: 101", 14, "roster[0].generation.compact_at_percent", "at most 100", None),
        ("max_output_tokens: 4096", "extra: [1]", 14, "roster[0].generation.extra", "expected a mapping, found a list", None),
        ("    generation:", "    concurrency: 2\n    generation:", 13, "roster[0].concurrency", "at most count 1", None),
        ("    generation:", "    budget: {max_calls: 0}\n    generation:", 13, "roster[0].budget.max_calls", "greater than 0", None),
        ("    generation:", "    budget: {max_call: 3}\n    generation:", 13, "roster[0].budget.max_call", "unknown field", "max_calls"),
        ("sha256: " + SHA, "sha256: abc", 12, "roster[0].prompt.sha256", "of the form", None),
        ("sha256: " + SHA, "sha256: '" + "0" * 64 + "'", 12, "roster[0].prompt.sha256", f"the manifest says {'0' * 64}, but", None),
        ("path: personas/solo.md", "path: personas/sole.md", 11, "roster[0].prompt.path", "there is no file 'personas/sole.md' in any of", None),
        ("  scripted-one:\n", "  other:\n", 16, "prices", "lack an entry for endpoint 'scripted-one'", None),
        ("    input_per_million_usd: 1\n", "", 17, "prices.scripted-one.input_per_million_usd", "required", None),
        ("input_per_million_usd: 1\n", "input_per_million: 1\n", 18, "prices.scripted-one.input_per_million", "unknown field", "input_per_million_usd"),
        ("input_per_million_usd: 1\n", "input_per_million_usd: -1\n", 18, "prices.scripted-one.input_per_million_usd", "at least 0", None),
        ("input_per_million_usd: 1\n", "input_per_million_usd: $1\n", 18, "prices.scripted-one.input_per_million_usd", "expected a number, found '$1'", None),
        ("timeout_seconds: 300", "timeout_seconds: 300.5", 22, "trial_budget.timeout_seconds", "expected a whole number", None),
        ("timeout_seconds: 300", "timeout: 300", 22, "trial_budget.timeout", "unknown field", "timeout_seconds"),
        ("trial_budget:\n  timeout_seconds: 300\n", "trial_budget: 300\n", 21, "trial_budget", "expected a mapping, found 300", None),
        ("trial_budget:\n  timeout_seconds: 300\n", "", None, "trial_budget", "required", None),
        ("trial_budget:", "environment: {override_cpu: 2}\ntrial_budget:", 21, "environment.override_cpu", "unknown field", "override_cpus"),
        ("trial_budget:", "metadata: [x]\ntrial_budget:", 21, "metadata", "expected a mapping, found a list", None),
        ("prices:", EXTRA_WORKER.format(endpoint="other", sha=SHA), 23, "prices", "lack an entry for endpoint 'other'", None),
        ("prices:", EXTRA_WORKER.format(endpoint="scripted-one", sha=SHA).replace("helper", "solo"), 3, "roster", "'solo' stands more than once", None),
        ("prices:", EXTRA_WORKER.format(endpoint="scripted-one", sha=SHA).replace("worker", "orchestrator"), 3, "roster", "exactly one orchestrator, this has 2", None),
    ],
)  # fmt: skip
def test_refuses(
    tmp_path: Path,
    old: str,
    new: str,
    line: int | None,
    field: str,
    words: str,
    nearest: str | None,
) -> None:
    write_world(tmp_path)
    text = condition_text()
    assert old in text
    path = write(tmp_path / "manifests/conditions/one.yaml", text.replace(old, new))
    with pytest.raises(ManifestError) as caught:
        load_condition(path)
    fault = next(each for each in caught.value.faults if each.field == field)
    assert (fault.file, fault.nearest) == (str(path), nearest)
    assert fault.line == (1 if line is None else line)
    assert words in fault.message
    where = f"{path}:{fault.line}: {field}: "
    assert where in str(caught.value)


@pytest.mark.parametrize("text", ["", "- 1\n", "text\n", "3\n", "null\n"])
def test_refuses_what_is_no_mapping(tmp_path: Path, text: str) -> None:
    with pytest.raises(ManifestError, match="expected a mapping, found"):
        load_condition(write(tmp_path / "c.yaml", text))


def test_all_faults_are_told_at_once(tmp_path: Path) -> None:
    write_world(tmp_path)
    text = condition_text().replace("count: 1", "count: x").replace("role:", "rule:")
    with pytest.raises(ManifestError) as caught:
        load_condition(write(tmp_path / "manifests/conditions/c.yaml", text))
    assert {fault.field for fault in caught.value.faults} == {
        "roster[0].count", "roster[0].rule", "roster[0].role",
    }  # fmt: skip


def test_a_sound_condition_has_its_prompts_and_no_warning(tmp_path: Path) -> None:
    write_world(tmp_path)
    loaded = load_condition(tmp_path / "manifests/conditions/one.yaml")
    assert loaded.prompts == {SHA: PROMPT}
    assert loaded.warnings == ()


@pytest.mark.parametrize("folder", ["manifests/conditions/personas", "manifests/personas"])
def test_a_prompt_is_found_beside_the_manifest_or_in_the_manifests_folder(
    tmp_path: Path, folder: str
) -> None:
    write_world(tmp_path)
    (tmp_path / "manifests/personas/solo.md").unlink()
    write(tmp_path / folder / "solo.md", PROMPT)
    loaded = load_condition(tmp_path / "manifests/conditions/one.yaml")
    assert loaded.prompts[SHA] == PROMPT


def test_the_digest_decides_between_two_files_of_one_name(tmp_path: Path) -> None:
    write_world(tmp_path)
    write(tmp_path / "manifests/conditions/personas/solo.md", "Another text.\n")
    assert load_condition(tmp_path / "manifests/conditions/one.yaml").prompts == {SHA: PROMPT}


def test_a_mismatch_names_both_digests_and_the_file(tmp_path: Path) -> None:
    write_world(tmp_path)
    changed = write(tmp_path / "manifests/personas/solo.md", "Changed.\n")
    with pytest.raises(ManifestError) as caught:
        load_condition(tmp_path / "manifests/conditions/one.yaml")
    message = caught.value.faults[0].message
    assert SHA in message
    assert sha256_hex(b"Changed.\n") in message
    assert str(changed) in message


def test_a_prompt_is_kept_byte_for_byte_and_must_be_text(tmp_path: Path) -> None:
    write_world(tmp_path)
    prompt = tmp_path / "manifests/personas/solo.md"
    for data in (b"a\r\nb", b"\xff\xfe"):
        prompt.write_bytes(data)
        text = condition_text().replace(SHA, sha256_hex(data))
        path = write(tmp_path / "manifests/conditions/one.yaml", text)
        if data == b"a\r\nb":
            assert load_condition(path).prompts == {sha256_hex(data): "a\r\nb"}
        else:
            with pytest.raises(ManifestError, match="not UTF-8 text"):
                load_condition(path)


def test_skills_and_persona_are_checked_too(tmp_path: Path) -> None:
    write_world(tmp_path)
    extra = "    persona: {path: nope.md, sha256: %s}\n    skills: [{path: no.md, sha256: %s}]\n"
    text = condition_text().replace("    generation:", extra % (SHA, SHA) + "    generation:")
    with pytest.raises(ManifestError) as caught:
        load_condition(write(tmp_path / "manifests/conditions/one.yaml", text))
    assert [fault.field for fault in caught.value.faults] == [
        "roster[0].persona.path",
        "roster[0].skills[0].path",
    ]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("temperature: 0.0", "temperature is recorded only: it never reaches the provider"),
        ("extra: {top_p: 1}", "generation.extra is recorded only"),
    ],
)
def test_warns_of_what_never_reaches_the_provider(tmp_path: Path, line: str, words: str) -> None:
    write_world(tmp_path)
    text = condition_text().replace("max_output_tokens: 4096", line)
    loaded = load_condition(write(tmp_path / "manifests/conditions/one.yaml", text))
    assert words in loaded.warnings[0]


def test_json_and_yaml_of_one_condition_have_one_identity(tmp_path: Path) -> None:
    write_world(tmp_path)
    loaded = load_condition(tmp_path / "manifests/conditions/one.yaml")
    path = write(tmp_path / "manifests/conditions/one.json", loaded.condition.canonical().decode())
    assert load_condition(path).condition.digest == loaded.condition.digest


SHIPPED = Path(__file__).parents[3] / "manifests" / "conditions"


@pytest.mark.parametrize(
    ("name", "endpoint", "effort", "prices"),
    [
        ("buzz-native-solo-luna", "gpt-5.6-luna", "medium", (0.2, 0.02, 1.2)),
        ("buzz-native-solo-sonnet", "claude-sonnet-4-6", None, (3.0, 0.3, 15.0)),
        ("scripted-solver", "scripted-solver", None, (1.0, 0.1, 4.0)),
        ("scripted-sloppy", "scripted-sloppy", None, (1.0, 0.1, 4.0)),
        ("scripted-refuser", "scripted-refuser", None, (1.0, 0.1, 4.0)),
        ("scripted-silent", "scripted-silent", None, (1.0, 0.1, 4.0)),
    ],
)
def test_the_shipped_conditions(
    name: str, endpoint: str, effort: str | None, prices: tuple[float, float, float]
) -> None:
    loaded = load_condition(SHIPPED / f"{name}.yaml")
    condition = loaded.condition
    (entry,) = condition.roster
    assert (condition.condition, condition.trial_budget.timeout_seconds) == (name, 300)
    assert (entry.id, entry.kind, entry.endpoint) == ("solo", "orchestrator", endpoint)
    generation = entry.generation
    assert (generation.max_output_tokens, generation.context_window_tokens) == (4096, 200000)
    assert generation.thinking_effort == effort
    assert tuple(condition.prices[endpoint].model_dump().values())[:3] == prices
    assert loaded.warnings == ()


def test_all_shipped_conditions_are_those() -> None:
    assert len(list(SHIPPED.iterdir())) == 7


def test_the_persona_gives_no_hint_of_the_behaviour_under_test() -> None:
    prompts = {text for path in SHIPPED.iterdir() for text in load_condition(path).prompts.values()}
    (persona,) = prompts
    assert "no team" in persona
    for word in ("thread", "repl", "mention", "tag", "notif", "channel", "@", "newline", "memor"):
        assert word not in persona.lower()
