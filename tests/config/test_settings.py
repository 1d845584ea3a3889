"""Settings: defaults, the file, the environment and arguments, in this order; and errors are named."""

from __future__ import annotations

import json
import math
import re
import traceback
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError
from pydantic_settings import SettingsConfigDict

from callboard.config import (
    Budget,
    ImapSettings,
    Limits,
    MailSettings,
    McpServer,
    PolicyRule,
    PolicySettings,
    Settings,
    ShellSettings,
    SmtpSettings,
    Verdict,
)
from callboard.config._secrets_in_urls import MASK
from callboard.messages import AgentKind, AtDeadline, Effect, Hazard, Secret, SettingsError, field_descriptions


def refused(file: Path) -> str:
    with pytest.raises(SettingsError) as info:
        Settings.load(file)
    return str(info.value)


def sections(model: type[BaseModel] = Settings) -> list[type[BaseModel]]:
    """Find the model and all models that its fields hold."""
    found = [model]
    for field in model.model_fields.values():
        found += [inner for part in models_in(field.annotation) for inner in sections(part)]
    return list(dict.fromkeys(found))


def models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in getattr(annotation, "__args__", ()) for model in models_in(part)]


FIELDS = [
    pytest.param(model, name, id=f"{model.__name__}.{name}") for model in sections() for name in model.model_fields
]


def test_without_a_file_everything_has_its_default():
    loaded = Settings.load()
    assert (loaded.limits, loaded.policy, loaded.mcp_servers) == (Limits(), PolicySettings(), {})


def test_an_empty_file_is_all_defaults(write):
    assert Settings.load(write("")).limits == Limits()


def test_the_file_beats_the_defaults(write):
    loaded = Settings.load(write("limits: {steps: 7}"))
    assert (loaded.limits.steps, loaded.limits.repairs) == (7, Limits().repairs)


def test_the_environment_beats_the_file_value_by_value(write, monkeypatch):
    monkeypatch.setenv("CALLBOARD_LIMITS__STEPS", "9")
    loaded = Settings.load(write("limits: {steps: 7, repairs: 5}"))
    assert (loaded.limits.steps, loaded.limits.repairs) == (9, 5)


def test_arguments_beat_the_environment_and_the_file_value_by_value(write, monkeypatch):
    monkeypatch.setenv("CALLBOARD_LIMITS__STEPS", "9")
    monkeypatch.setenv("CALLBOARD_LIMITS__REPAIRS", "4")
    loaded = Settings.load(write("limits: {steps: 7, action_failures: 6}"), limits={"steps": 11})
    assert (loaded.limits.steps, loaded.limits.repairs, loaded.limits.action_failures) == (11, 4, 6)


def test_the_environment_alone_is_enough(monkeypatch):
    monkeypatch.setenv("CALLBOARD_SYSTEM__SAFE_GUARD", "false")
    monkeypatch.setenv("CALLBOARD_POLICY", '[{"verdict": "deny", "tool": "delete_*"}]')
    loaded = Settings.load()
    assert loaded.system.safe_guard is False
    assert loaded.policy.rules == (PolicyRule(verdict=Verdict.DENY, tool="delete_*"),)


def test_variables_without_our_prefix_are_not_read(write, monkeypatch):
    for name in ("LIMITS", "LIMITS__STEPS", "MCPSERVERS", "mcpServers", "POLICY", "BASE"):
        monkeypatch.setenv(name, '{"stray": {"command": "stray"}}')
    assert Settings.load(write("")).mcp_servers == {}


def test_mcp_servers_come_from_the_environment_under_our_prefix(monkeypatch):
    monkeypatch.setenv("CALLBOARD_MCP_SERVERS", '{"files": {"command": "mcp-files"}}')
    assert Settings.load().mcp_servers == {"files": McpServer(command="mcp-files")}


def test_mcp_servers_have_the_usual_form(write):
    text = """
        mcpServers:
          files: {command: mcp-files, args: [--root, /srv], env: {TOKEN: hush-hush}, agents: [linux], trusted: true}
          wiki: {url: https://wiki.example/mcp, headers: {Authorization: Bearer hush-hush}}
    """
    servers = Settings.load(write(text)).mcp_servers
    assert (servers["files"].args, servers["files"].agents) == (("--root", "/srv"), (AgentKind.LINUX,))
    assert servers["wiki"].headers["Authorization"].get_secret_value() == "Bearer hush-hush"


def test_policy_rules_stand_in_order(write):
    text = "policy: [{verdict: approve, effects: [once]}, {verdict: deny, agent: 'linux/*', reason: not here}]"
    assert Settings.load(write(text)).policy.rules == (
        PolicyRule(verdict=Verdict.APPROVE, effects=(Effect.ONCE,)),
        PolicyRule(verdict=Verdict.DENY, agent="linux/*", reason="not here"),
    )


def test_a_plain_list_of_rules_is_the_rules_and_keeps_the_defaults(write):
    plain = Settings.load(write("policy: [{verdict: deny, tool: 'delete_*'}]")).policy
    assert plain == Settings.load(write("policy: {rules: [{verdict: deny, tool: 'delete_*'}]}")).policy
    assert plain.defaults is True


def test_the_default_asks_for_every_hazard_after_the_operators_rules(write):
    own, default = Settings.load(write("policy: [{verdict: allow, hazards: [launches]}]")).policy.all_rules
    assert own == PolicyRule(verdict=Verdict.ALLOW, hazards=(Hazard.LAUNCHES,))
    assert (default.verdict, set(default.hazards)) == (Verdict.APPROVE, set(Hazard))
    assert (default.agent, default.application, default.tool, default.effects) == ("*", "*", "*", ())


def test_without_the_defaults_the_operators_rules_stand_alone(write):
    policy = Settings.load(write("policy: {rules: [{verdict: allow, tool: read}], defaults: false}")).policy
    assert policy.all_rules == policy.rules == (PolicyRule(verdict=Verdict.ALLOW, tool="read"),)


def test_budgets_are_open_by_default_and_set_one_by_one(write):
    loaded = Settings.load(write("budget: {task: {tokens: 1000, cost: 0.5}, at_limit: ask}")).budget
    assert (loaded.task, loaded.subtask, loaded.step) == (Budget(tokens=1000, cost=0.5), Budget(), Budget())
    assert loaded.at_limit == "ask"
    assert set(Budget().model_dump().values()) == {None}


def test_undecided_approval_is_denied_by_default(write):
    assert Settings.load(write("")).limits.at_approval_deadline is AtDeadline.DENY


def test_relative_paths_start_from_the_folder_of_the_file(write, tmp_path, monkeypatch):
    monkeypatch.chdir("/")
    loaded = Settings.load(write("documents: {workspace: reports}"))
    assert loaded.path(loaded.documents.workspace) == tmp_path / "reports"


def test_absolute_paths_stay(write):
    loaded = Settings.load(write("documents: {workspace: /srv/reports}"))
    assert loaded.path(loaded.documents.workspace) == Path("/srv/reports")


def test_a_tilde_stands_for_a_home_folder_and_stays_for_an_unknown_user(write, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    settings = Settings.load(write(""))
    assert settings.path("~/documents") == tmp_path / "home/documents"
    assert settings.path("~nobody-at-all/documents") == settings.base / "~nobody-at-all/documents"


def test_without_a_file_relative_paths_start_from_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert Settings.load().path("reports") == tmp_path / "reports"


def test_a_file_that_is_named_relatively_gives_an_absolute_base(write, tmp_path, monkeypatch):
    write("limits: {steps: 7}")
    monkeypatch.chdir(tmp_path)
    assert Settings.load("callboard.yaml").base == tmp_path


def test_a_model_is_found_by_kind_of_agent(write):
    models = Settings.load(write("models: {app: 'scripted:a.yaml'}")).models
    assert {kind: models.of(kind) for kind in AgentKind} == {
        AgentKind.HOST: None,
        AgentKind.APP: "scripted:a.yaml",
        AgentKind.MOBILE: None,
        AgentKind.LINUX: None,
        AgentKind.OPERATOR: None,
    }


def test_loads_are_independent_of_each_other(write):
    assert Settings.load(write("limits: {steps: 7}")).limits.steps == 7
    assert Settings.load(write("limits: {repairs: 7}")).limits.steps == Limits().steps


@pytest.mark.parametrize(
    ("text", "where", "near"),
    [
        ("limit: {steps: 7}", "limit", "limits"),
        ("limits: {step: 7}", "limits.step", "steps"),
        ("log: {fille: a.log}", "log.fille", "file"),
        ("mcpServers: {files: {comand: x}}", "mcpServers.files.comand", "command"),
        ("policy: [{verdict: deny}, {verdict: deny, tol: x}]", "policy.rules.1.tol", "tool"),
        ("policy: {rules: [{verdict: deny, tol: x}]}", "policy.rules.0.tol", "tool"),
        ("policy: {rule: []}", "policy.rule", "rules"),
        ("budget: {task: {token: 5}}", "budget.task.token", "tokens"),
    ],
)
def test_an_unknown_key_is_named_with_the_nearest_known_one(write, text, where, near):
    assert f"{where}: unknown key; did you mean {near!r}?" in refused(write(text))


def test_unknown_key_error_lists_known_keys_when_none_is_near(write):
    assert "system.zzzz: unknown key; known: ask_question, safe_guard" in refused(write("system: {zzzz: 1}"))


def test_all_wrong_keys_are_named_at_once(write):
    told = refused(write("limits: {step: 7, repairs: -1}\nlogs: {}"))
    assert [line.split(": ")[1] for line in told.splitlines()] == ["limits.repairs", "limits.step", "logs"]


def test_the_file_is_named(write):
    file = write("limits: {steps: none}")
    assert refused(file).startswith(f"{file}: limits.steps: ")


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("limits: {steps: 0}", "limits.steps"),
        ("limits: {steps: many}", "limits.steps"),
        ("limits: {command_seconds: 0}", "limits.command_seconds"),
        ("log: {level: loud}", "log.level"),
        ("policy: [{verdict: perhaps}]", "policy.rules.0.verdict"),
        ("policy: [{}]", "policy.rules.0.verdict"),
        ("policy: [{verdict: deny, tool: 're:('}]", "policy.rules.0.tool"),
        ("policy: [{verdict: deny, hazards: [explodes]}]", "policy.rules.0.hazards.0"),
        ("policy: 7", "policy"),
        ("budget: {task: {cost: -1}}", "budget.task.cost"),
        ("budget: {task: {cost: .inf}}", "budget.task.cost"),
        ("budget: {at_limit: beg}", "budget.at_limit"),
        ("limits: {at_approval_deadline: wait}", "limits.at_approval_deadline"),
        ("mcpServers: {files: {agents: [butler], command: x}}", "mcpServers.files.agents.0"),
        ("models: {host: [a]}", "models.host"),
        ("limits: 7", "limits"),
    ],
)
def test_a_wrong_value_is_named(write, text, where):
    assert f": {where}: " in refused(write(text))


@pytest.mark.parametrize("text", ["{}", "{command: x, url: 'http://x'}"])
def test_an_mcp_server_has_one_way_to_reach_it(write, text):
    told = refused(write(f"mcpServers: {{files: {text}}}"))
    assert "mcpServers.files" in told
    assert "needs either `command` (stdio) or `url` (HTTP)" in told


@pytest.mark.parametrize(
    "text", ["a: b: c", "limits: {steps", "\tlimits: {}", "x: !unknown 1", "!!python/object/apply:os.getcwd []"]
)
def test_broken_yaml_is_refused(write, text):
    assert "is not valid YAML" in refused(write(text))


@pytest.mark.parametrize(("text", "what"), [("[1, 2]", "a list"), ("hello", "text"), ("7", "a number")])
def test_a_file_without_keys_is_refused(write, text, what):
    assert f"holds {what}, not a mapping of keys to values" in refused(write(text))


def test_a_missing_file_is_named(tmp_path):
    assert (
        refused(tmp_path / "nowhere.yaml") == f"{tmp_path / 'nowhere.yaml'}: can't be read: No such file or directory"
    )


def test_folder_is_refused_as_a_settings_file(tmp_path):
    assert "can't be read" in refused(tmp_path)


def test_settings_file_that_is_not_utf_8_is_refused(tmp_path):
    file = tmp_path / "callboard.yaml"
    file.write_bytes(b"\xff\xfe\x00limits")
    assert "is not UTF-8 text (byte 1): save it as UTF-8" in refused(file)


def test_a_wrong_value_in_the_environment_is_refused(monkeypatch):
    monkeypatch.setenv("CALLBOARD_LIMITS__STEPS", "many")
    with pytest.raises(SettingsError, match=r"the environment: CALLBOARD_LIMITS__STEPS: limits\.steps: "):
        Settings.load()


def test_an_unknown_key_of_a_section_in_the_environment_is_refused(monkeypatch):
    monkeypatch.setenv("CALLBOARD_LIMITS__STEP", "7")
    with pytest.raises(SettingsError, match=r"limits\.step: unknown key; did you mean 'steps'"):
        Settings.load()


def test_an_unknown_section_in_the_environment_is_refused(monkeypatch):
    monkeypatch.setenv("CALLBOARD_LIMIT__STEPS", "7")
    with pytest.raises(SettingsError, match="limit"):
        Settings.load()


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("CALLBOARD_MODEL", "did you mean CALLBOARD_MODELS?"),
        ("callboard_model", "did you mean CALLBOARD_MODELS?"),
        ("CALLBOARD_LIMITS_STEPS", "did you mean CALLBOARD_LIMITS__STEPS?"),
        ("CALLBOARD_MCPSERVERS", "did you mean CALLBOARD_MCP_SERVERS?"),
        ("CALLBOARD_LIMIT__STEPS", "did you mean CALLBOARD_LIMITS__...?"),
        ("CALLBOARD_ZZZ", "known: LIMITS, SYSTEM, "),
        ("CALLBOARD_", "known: LIMITS, SYSTEM, "),
    ],
)
def test_an_unknown_variable_is_refused_with_the_nearest_known_one(monkeypatch, name, near):
    monkeypatch.setenv(name, "3")
    with pytest.raises(SettingsError, match=rf"the environment: {name}: unknown section .*; {re.escape(near)}"):
        Settings.load()


@pytest.mark.parametrize("section", Settings.model_fields)
def test_a_whole_section_can_be_given_as_json(monkeypatch, section):
    monkeypatch.setenv(
        f"CALLBOARD_{section.upper()}", "[]" if section in {"agents", "check_programs", "skills"} else "{}"
    )
    assert Settings.load() == Settings()


def test_a_section_as_json_is_read(monkeypatch):
    monkeypatch.setenv("CALLBOARD_LIMITS", '{"steps": 3}')
    assert Settings.load().limits.steps == 3


def test_broken_json_in_the_environment_is_refused(monkeypatch):
    monkeypatch.setenv("CALLBOARD_LIMITS", "{broken")
    with pytest.raises(SettingsError, match="the environment: CALLBOARD_LIMITS: is not valid JSON"):
        Settings.load()


@pytest.mark.parametrize("key", ["1", "null", "true", "2024-05-31", "[a]"])
def test_key_that_is_not_text_is_refused(write, key):
    assert "callboard.yaml" in refused(write(f"? {key}\n: {{steps: 7}}"))


@pytest.mark.parametrize("value", [".inf", ".nan", "1e300"])
@pytest.mark.parametrize("name", [name for name in Limits.model_fields if name.endswith("_seconds")])
def test_a_span_of_time_is_one_that_a_clock_can_wait(write, name, value):
    assert f"limits.{name}" in refused(write(f"limits: {{{name}: {value}}}"))


NAMES = [name for model in sections() for name in model.model_fields]
JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=10)
    | st.dates()
    | st.sampled_from(NAMES),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from([*NAMES, "mcpServers"]) | st.text(max_size=5) | st.integers(), inner, max_size=3
        )
    ),
    max_leaves=8,
)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return tmp_path_factory.mktemp("junk") / "callboard.yaml"


def loads_or_says_why(file: Path) -> None:
    try:
        said = str(Settings.load(file).base)
    except SettingsError as error:
        said = str(error)
    assert str(file.parent) in said


@given(content=st.dictionaries(st.sampled_from([*Settings.model_fields, "mcpServers"]), JUNK, max_size=4))
def test_junk_below_known_keys_is_refused_or_read_but_never_a_traceback(file, content):
    file.write_text(yaml.safe_dump(content, allow_unicode=True), encoding="utf-8")
    loads_or_says_why(file)


@given(content=JUNK)
@example(content={1: 2})
def test_any_yaml_is_refused_or_read_but_never_a_traceback(file, content):
    file.write_text(yaml.safe_dump(content, allow_unicode=True), encoding="utf-8")
    loads_or_says_why(file)


@given(content=st.binary(max_size=60) | st.text(alphabet="{}[]:,-#&*!|>'\"%@` \n\tab1", max_size=40).map(str.encode))
@settings(max_examples=200)
def test_any_bytes_are_refused_or_read_but_never_a_traceback(file, content):
    file.write_bytes(content)
    loads_or_says_why(file)


SECRET = "hush-hush-4711"
HOLDS_SECRET = f"mcpServers: {{files: {{command: x, env: {{TOKEN: {SECRET}}}, headers: {{Authorization: {SECRET}}}}}}}"


def test_secrets_are_hidden_in_every_dump(write):
    loaded = Settings.load(write(HOLDS_SECRET))
    shown = [repr(loaded), str(loaded), str(loaded.model_dump()), loaded.model_dump_json(), repr(loaded.mcp_servers)]
    assert loaded.mcp_servers["files"].env["TOKEN"].get_secret_value() == SECRET
    assert [text for text in shown if SECRET in text] == []


@pytest.mark.parametrize(
    ("args", "shown"),
    [
        (["--api-key", "X9", "--root", "/srv"], ["--api-key", MASK, "--root", "/srv"]),
        (["--token=X9", "--deep"], [f"--token={MASK}", "--deep"]),
        (["-secret", "-X9"], ["-secret", MASK]),
        (["--password", "--verbose"], ["--password", "--verbose"]),
        (["-e", "GITHUB_TOKEN=X9"], ["-e", f"GITHUB_TOKEN={MASK}"]),
        (["--header", "Authorization: Bearer X9"], ["--header", f"Authorization: {MASK}"]),
        (["--config", '{"apiKey": "X9", "n": 1}'], ["--config", f'{{"apiKey": "{MASK}", "n": 1}}']),
        (["postgresql://ada:X9@db/sales"], [f"postgresql://{MASK}@db/sales"]),
        (["--url=https://wiki/?t=X9"], [f"--url=https://wiki/?t={MASK}"]),
        (["-y", "mcp-files", "/srv/reports"], ["-y", "mcp-files", "/srv/reports"]),
    ],
)
def test_arguments_that_look_like_keys_are_hidden_in_every_dump(args, shown):
    server = McpServer(command="x", args=args)
    assert server.args == tuple(args)
    assert server.model_dump()["args"] == tuple(shown)
    assert json.loads(server.model_dump_json())["args"] == shown
    assert "X9" not in repr(server) + str(server)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://wiki.example/mcp", "https://wiki.example/mcp"),
        ("https://ada:X9@wiki.example/mcp", f"https://{MASK}@wiki.example/mcp"),
        ("https://X9@wiki.example:8080", f"https://{MASK}@wiki.example:8080"),
        ("https://ada:p@X9@wiki.example", f"https://{MASK}@wiki.example"),
        ("https://wiki.example/mcp?key=X9&v=X9", f"https://wiki.example/mcp?key={MASK}&v={MASK}"),
        ("https://wiki.example/mcp?X9#top", f"https://wiki.example/mcp?{MASK}#top"),
        ("https://[X9", "https://[X9"),
    ],
)
def test_the_secrets_of_an_address_are_hidden_in_every_dump(url, shown):
    server = McpServer(url=url)
    assert server.url == url
    assert server.model_dump()["url"] == json.loads(server.model_dump_json())["url"] == shown
    assert repr(shown) in repr(server)


@given(st.lists(st.text(max_size=12) | st.sampled_from(["--key", "--key=", "a://", "@", "?", "&", "="]), max_size=5))
def test_any_arguments_and_any_address_can_be_shown(args):
    shown = McpServer(command="x", args=args).model_dump()["args"]
    assert len(shown) == len(args)
    assert McpServer(url="".join(args)).model_dump()["url"] is not None


@pytest.mark.parametrize(
    "text",
    [
        HOLDS_SECRET.replace("command: x", "command: x, url: y"),
        HOLDS_SECRET.replace("command: x", "comand: x"),
        f"mcpServers: {{files: {{command: x, env: {SECRET}}}}}",
        f"mcpServers: {{files: {{command: x, env: {{TOKEN: [{SECRET}]}}}}}}",
    ],
)
def test_secrets_are_hidden_when_settings_are_refused(write, text):
    with pytest.raises(SettingsError) as info:
        Settings.load(write(text))
    assert SECRET not in str(info.value)
    assert SECRET not in "".join(traceback.format_exception(info.value))


def test_secrets_are_hidden_when_the_yaml_is_broken(write):
    with pytest.raises(SettingsError) as info:
        Settings.load(write(f"mcpServers:\n  files: {{command: x, env: {{TOKEN: {SECRET}: 1}}}}"))
    assert SECRET not in "".join(traceback.format_exception(info.value))


@pytest.mark.parametrize(("model", "name"), FIELDS)
def test_every_field_has_a_description(model, name):
    description = field_descriptions(model)[name]
    assert description
    assert description.rstrip().endswith(".")


@pytest.mark.parametrize(("model", "name"), FIELDS)
def test_every_field_has_a_default_but_six(model, name):
    required = {
        (PolicyRule, "verdict"),
        (Secret, "value"),
        (ShellSettings, "cwd"),
        (MailSettings, "sender"),
        (SmtpSettings, "host"),
        (ImapSettings, "host"),
    }
    assert model.model_fields[name].is_required() is ((model, name) in required)


@pytest.mark.parametrize("model", sections())
def test_every_section_refuses_unknown_keys_and_changes(model):
    open_ones = {"Models", "Prompts"}  # `Settings.load` refuses unknown kinds of agents there
    assert model.model_config["extra"] == ("allow" if model.__name__ in open_ones else "forbid")
    assert model.model_config["frozen"]


def test_settings_can_not_be_changed():
    with pytest.raises(ValidationError, match="frozen"):
        Settings.load().limits.steps = 3


def test_the_defaults_are_settings_that_can_be_loaded(write):
    defaults = json.loads(Settings.load().model_dump_json(by_alias=True))
    assert Settings.load(write(yaml.safe_dump(defaults))).limits == Limits()


@pytest.mark.parametrize("name", [name for name in Limits.model_fields if name.endswith("_seconds")])
def test_every_default_span_of_time_is_finite(name):
    seconds = getattr(Limits(), name)
    assert seconds is None or math.isfinite(seconds)


def test_a_further_kind_is_a_key_only_where_it_is_known(write):
    path = write("models: {clerk: 'scripted:a.yaml'}\nprompts: {clerk: mine.md}")
    loaded = Settings.load(path, kinds=["clerk"])
    assert loaded.models.of("clerk") == "scripted:a.yaml"
    assert loaded.prompts.of("clerk") == Path("mine.md")
    with pytest.raises(SettingsError, match=r"models\.clerk: unknown key; known: host, app"):
        Settings.load(path)
    with pytest.raises(SettingsError, match=r"models\.clerk: unknown key; did you mean 'clerc'\?"):
        Settings.load(path, kinds=["clerc"])


def test_a_mistyped_kind_is_refused_with_the_nearest_one(write):
    with pytest.raises(SettingsError, match=r"models\.hots: unknown key; did you mean 'host'\?"):
        Settings.load(write("models: {hots: 'scripted:a.yaml'}"), kinds=["clerk"])


@pytest.mark.parametrize("section", ["mcpServers", "surfaces"])
@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("a/b", "has '/'"),
        ("*", "has '*'"),
        ("../x", "has '/'"),
        ("a\x1b", "has '\\x1b'"),
        ("a\\b", "has '\\\\'"),
        (" ", "is empty"),
        ("..", "only dots"),
        ("x" * 101, "longer"),
    ],
)
def test_surface_name_that_does_not_fit_an_address_is_refused(section, name, why):
    given = {"mcpServers": {name: {"command": "x"}}, "surfaces": {name: {}}}[section]
    with pytest.raises(SettingsError, match="it becomes a part of addresses") as refused:
        Settings.load(**{section: given})
    assert why in str(refused.value)


def test_names_that_could_give_tools_of_two_servers_one_name_are_refused():
    servers = {name: {"command": "x"} for name in ("notes.work", "notes-old", "notes")}
    with pytest.raises(SettingsError, match=r"a tool of 'notes' could have the name of one of 'notes\.work'"):
        Settings.load(mcpServers=servers)
    del servers["notes"]
    assert {*Settings.load(mcpServers=servers).mcp_servers} == {"notes.work", "notes-old"}


def test_a_server_s_name_may_have_blanks():
    assert [*Settings.load(mcpServers={"my notes": {"command": "x"}}).mcp_servers] == ["my notes"]


def test_a_subclass_reads_its_own_file_and_load_another(write, tmp_path):
    (tmp_path / "own.yaml").write_text("limits: {steps: 7}\n", encoding="utf-8")

    class Own(Settings):
        model_config = SettingsConfigDict(yaml_file=tmp_path / "own.yaml")

    assert Own().limits.steps == 7
    assert Own.load(write("limits: {steps: 9}")).limits.steps == 9


@pytest.mark.parametrize(
    ("network", "reason"),
    [
        ("{allow: ['a b']}", "browser.network.allow: 'a b' is no host"),
        ("{deny: ['localhost:99999']}", "browser.network.deny: 'localhost:99999': 99999 is no port"),
        ("{alow: ['*']}", "browser.network.alow: unknown key; did you mean 'allow'?"),
        ("open", "browser.network: write the rules (`allow: [...]`, `deny: [...]`), or `unguarded`"),
    ],
)
def test_invalid_network_rule_is_an_error_with_its_key(write, network, reason):
    assert reason in refused(write(f"browser: {{executable: chromium, network: {network}}}"))


def test_network_of_a_browser_is_guarded_unless_it_is_named_unguarded(write):
    assert Settings.load().browser.network.guarded
    assert not Settings.load(write("browser: {executable: chromium, network: unguarded}")).browser.network.guarded
