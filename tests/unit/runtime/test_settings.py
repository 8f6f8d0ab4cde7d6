from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from ojs_engine.base.problems import StartupProblem
from ojs_runtime.setting_readers import written
from ojs_runtime.settings import GONE, OPTIONS, Settings, load
from support.tables import each


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)


def problem(flags: dict[str, object] | None = None, env: dict[str, str] | None = None, file: str | None = None) -> str:
    with pytest.raises(StartupProblem) as raised:
        load(flags or {}, env or {}, file=file)
    return str(raised.value)


def test_every_field_has_one_row_in_the_table() -> None:
    assert sorted(option.name for option in OPTIONS) == sorted({*Settings.__struct_fields__} - {"features"})


def test_every_default_is_a_value_that_may_be_written() -> None:
    defaults = Settings()
    for option in OPTIONS:
        value = getattr(defaults, option.name)
        assert option.read(written(value)) == value, option.name


def test_without_anything_the_defaults_count() -> None:
    loaded = load({}, {})
    assert msgspec.structs.replace(loaded.settings, instance="x") == Settings(instance="x")
    assert set(loaded.sources.values()) == {"default"}


def test_flags_win_over_the_environment_over_the_file_over_defaults(tmp_path: Path) -> None:
    file = write(tmp_path / "settings.toml", 'port = 1\nreplicas = 3\nlog_level = "error"\n')
    loaded = load({"port": "3"}, {"OJS_PORT": "2", "OJS_REPLICAS": "5"}, file=file)
    assert (loaded.settings.port, loaded.settings.replicas, loaded.settings.log_level) == (3, 5, "error")
    assert loaded.settings.host == "127.0.0.1"
    assert [loaded.sources[name] for name in ("port", "replicas", "log_level", "host")] == [
        "--port",
        "OJS_REPLICAS",
        file,
        "default",
    ]


def test_the_file_is_found_by_flag_then_variable_then_in_the_working_folder(tmp_path: Path) -> None:
    write(tmp_path / "ojs-nats.toml", "port = 1")
    named = write(tmp_path / "named.toml", "port = 2")
    given = write(tmp_path / "given.toml", "port = 3")
    assert load({}, {}).settings.port == 1
    assert load({}, {"OJS_CONFIG": named}).settings.port == 2
    assert load({}, {"OJS_CONFIG": named}, file=given).settings.port == 3


def test_toml_values_have_their_own_types(tmp_path: Path) -> None:
    file = write(
        tmp_path / "s.toml",
        'test_mode = true\nhealth_port = "off"\nconnect_timeout = 1.5',
    )
    settings = load({}, {}, file=file).settings
    assert settings.test_mode is True
    assert settings.health_port is None
    assert settings.connect_timeout == 1.5


def test_one_message_lists_all_problems_under_the_names_the_user_wrote(tmp_path: Path) -> None:
    file = write(tmp_path / "s.toml", 'prot = 1\nlog-level = "debug"\nreplicas = 9\n')
    message = problem({"port": "x"}, {"OJS_LOG_FORMAT": "xml", "OJS_PROT": "80"}, file)
    assert message.splitlines() == [
        "6 settings can't be used:",
        f"  prot in {file}: unknown name (did you mean port?)",
        f"  log-level in {file}: unknown name (did you mean log_level?)",
        f"  replicas in {file}: 9 is not a whole number from 1 to 5",
        "  OJS_LOG_FORMAT: 'xml' is none of auto, console, json",
        "  OJS_PROT: unknown name (did you mean OJS_PORT?)",
        "  --port: 'x' is not a whole number from 0 to 65535",
    ]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"OJS_TLS_CERT": "c.pem"}, "tls_cert (c.pem) is set without tls_key: name the certificate's key, too"),
        ({"OJS_TLS_KEY": "k.pem"}, "tls_key (k.pem) is set without tls_cert: name the key's certificate, too"),
        ({"OJS_CLIENT_CA": "ca.pem"}, "client_ca (ca.pem) is set without tls_cert: clients show certificates by TLS alone"),
    ],
)
def test_files_of_tls_that_need_others_are_refused_without_them(given: dict[str, str], said: str) -> None:
    assert problem({}, given) == said


def test_the_proxy_protocol_needs_proxies_that_are_trusted() -> None:
    assert problem({}, {"OJS_PROXY_PROTOCOL": "true"}) == (
        "proxy_protocol has no effect without trusted_proxies; name the load balancers' addresses there"
    )
    assert load({"trusted_proxies": "10.0.0.9"}, {"OJS_PROXY_PROTOCOL": "true"}).settings.proxy_protocol


def test_a_single_problem_is_one_sentence() -> None:
    assert problem({}, {"OJS_PORT": "tcp://10.0.0.1:8080"}) == (
        "OJS_PORT: 'tcp://10.0.0.1:8080' is not a whole number from 0 to 65535"
    )


@each(
    "variable",
    [
        "OJS_URL",
        "OJS_AUTH_TOKEN",
        "OJS_CA_FILE",
        "OJS_CERT_FILE",
        "OJS_KEY_FILE",
        "OJS_PORT_8080_TCP",
        "OJS_SERVICE_HOST",
        "OJSPORT",
    ],
)
def test_variables_of_clients_and_platforms_are_left_alone(variable: str) -> None:
    assert load({}, {variable: "anything"}).settings.port == 8080


def test_the_address_of_nats_that_others_set_counts_where_there_is_no_own() -> None:
    others = {"NATS_URL": "nats://others:4222"}
    loaded = load({}, others)
    assert (loaded.settings.nats, loaded.sources["nats"]) == ("nats://others:4222", "NATS_URL")
    assert load({}, others | {"OJS_NATS": "nats://own:4222"}).settings.nats == "nats://own:4222"
    assert load({"nats": "nats://flag:4222"}, others).settings.nats == "nats://flag:4222"


def test_a_setting_of_an_earlier_version_is_refused_with_what_holds_now(tmp_path: Path) -> None:
    for name, now in GONE.items():
        told = f"there is no such setting any more; {now}. Leave it out"
        assert problem(env={f"OJS_{name.upper()}": "1"}) == f"OJS_{name.upper()}: {told}"
        file = write(tmp_path / "old.toml", f"{name} = 1")
        assert problem(file=file) == f"{name} in {file}: {told}"
    assert not GONE.keys() & {option.name for option in OPTIONS}


def test_a_bad_value_is_a_problem_even_where_another_source_wins() -> None:
    assert problem({"port": "80"}, {"OJS_PORT": "x"}).startswith("OJS_PORT: ")


def test_a_named_file_must_exist_and_be_toml(tmp_path: Path) -> None:
    assert problem(file="none.toml") == "none.toml: no such file"
    assert "Is a directory" in problem(file=str(tmp_path))
    assert "line 1" in problem(file=write(tmp_path / "bad.toml", "port 1"))


def test_a_job_has_to_fit_into_a_request() -> None:
    message = problem({"max_envelope_bytes": "5000000", "max_body_bytes": "2000000"})
    assert "max_envelope_bytes (5000000) is more than max_body_bytes (2000000)" in message


def test_a_child_reads_the_settings_of_its_parent_from_its_environment() -> None:
    settings = Settings(
        nats="nats://a:b@h:1",
        replicas=3,
        connect_timeout=1.5,
        port=0,
        test_mode=True,
        log_format="json",
        instance="i",
    )
    child = load({}, settings.environment("gateway")).settings
    assert msgspec.structs.replace(child, instance="i") == settings


def test_a_service_is_not_told_of_the_gateways_port() -> None:
    assert "OJS_PORT" not in Settings().environment("service")
    assert Settings(health_port=None).environment("service")["OJS_HEALTH_PORT"] == "off"


def test_a_namespace_is_held_to_its_characters_and_keeps_answers_out() -> None:
    assert load({"namespace": "shop-2"}, {}).settings.namespace == "shop-2"
    for flags, told in (
        ({"namespace": "Shop"}, '--namespace: "Shop" is not 1 to 32 of a-z, 0-9 and -, beginning with a letter'),
        ({"namespace": "kv"}, "choose another name"),
        ({"nats": "nats://127.0.0.1:4222?namespace=shop"}, "the namespace is a setting of its own"),
    ):
        assert told in problem(dict(flags))
