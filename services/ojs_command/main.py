"""The `ojs-nats` command."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

from ojs_command.client.parser import CommandParser, add_command, add_module
from ojs_command.client.registration import GONE, add_client_commands, run_client
from ojs_command.services import BACKGROUND, SERVICES, SHARED
from ojs_engine.base.problems import CANNOT_START, WRONG_USE, StartupProblem, WrongCommandLine
from ojs_features.startup import OPTIONS as OF_FEATURES
from ojs_link.address import masked
from ojs_nats._command import version, worker
from ojs_nats._command.parser import PlainParser, meant
from ojs_runtime.service_entry import ServiceEntry
from ojs_runtime.setting_readers import written
from ojs_runtime.settings import CONFIG_ENV, DEFAULT_FILE, OPTIONS, Loaded, Option, SettingKind, Settings, gone, load

_OPTIONS: Final = (*OPTIONS, *OF_FEATURES)
_FIRST: Final[dict[SettingKind, frozenset[str]]] = {
    "dev": frozenset(
        ("data", "port", "host", "nats_port", "nats", "api_key_file", "tls_cert", "tls_key", "dashboard", "log_level")
    )
}
"""The settings that `--help` of a command has; `--help-all` has the rest. A command that isn't here shows all."""
_PASSWORD: Final = re.compile(r"://[^\s/?#@]*:[^\s/?#]*@")
_SEEN_BY_ALL: Final = (
    "ojs-nats: warning: a password on the command line can be read by everybody on this machine (ps): put it into a file "
    "(--nats-creds FILE), or the address into the environment (OJS_NATS, OJS_URL)"
)

_NATS_CONF: Final = "print the configuration that nats-server needs, by size and place, and its users"
_EPILOG: Final = f"""\
Each option can also be written as a variable (--log-level: OJS_LOG_LEVEL) or in a TOML file (log_level = "debug").
Flags win over variables, variables over the file, the file over the defaults. The file is --config, {CONFIG_ENV}
or ./{DEFAULT_FILE} if there is one. 'ojs-nats config' shows what counts and where it was written.
"""

_EXAMPLES: Final[dict[SettingKind, str]] = {
    "dev": """\
examples:
  ojs-nats dev                                    everything on this machine, files in ./data
  ojs-nats dev --port 0 --nats-port 0             on any free ports
  ojs-nats dev --nats nats://nats.internal:4222   with a NATS server that runs already
""",
    "gateway": """\
examples:
  ojs-nats gateway --nats nats://n1:4222,nats://n2:4222,nats://n3:4222 --replicas 3
  OJS_NATS=nats://nats.internal:4222 OJS_HOST=0.0.0.0 ojs-nats gateway
  ojs-nats gateway --processes 4 --health-port 9101           four of them behind one port, asked for metrics on 9101 to 9104
""",
    "service": """\
examples:
  ojs-nats {name} --nats nats://nats.internal:4222
  OJS_NATS=nats://nats.internal:4222 OJS_HEALTH_PORT=8081 ojs-nats {name}
""",
    "projector": """\
examples:
  ojs-nats projector --nats nats://nats.internal:4222 --projector-data /var/lib/ojs-nats/projector
  OJS_NATS=nats://nats.internal:4222 OJS_HEALTH_PORT=8082 ojs-nats projector
""",
    "services": """\
examples:
  ojs-nats services --nats nats://nats.internal:4222               all but the gateway
  ojs-nats services scheduler reaper --nats nats://nats.internal:4222
  OJS_NATS=nats://nats.internal:4222 OJS_HEALTH_PORT=8081 ojs-nats services
""",
    "setup": """\
examples:
  ojs-nats setup --nats nats://nats.internal:4222 --nats-creds /etc/ojs-nats/nats/operator.nk
  ojs-nats setup --nats nats://n1:4222,nats://n2:4222,nats://n3:4222 --replicas 3
""",
    "config": """\
examples:
  ojs-nats config
  OJS_PORT=9000 ojs-nats config --json
  ojs-nats config --check --config /etc/ojs-nats/ojs-nats.toml
""",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    parser = _parser()
    words = list(sys.argv[1:] if arguments is None else arguments)
    given, unknown = parser.parse_known_args([*words[1:], "--help"] if words[:1] == ["help"] else words)
    if any(map(_PASSWORD.search, words)):
        print(_SEEN_BY_ALL, file=sys.stderr)
    if given.command is None:
        parser.print_help(sys.stderr)
        return WRONG_USE
    if (code := run_client(parser, given)) is not None:
        return code
    if "act" in given:
        if unknown:
            parser.refuse(unknown)
        return int(given.act(given))
    try:
        loaded = _load(given, unknown)
        if given.command == "config":
            if given.check:
                return _checked(loaded.settings, as_json=given.json)
            _print(_shown(loaded, as_json=given.json))
            return 0
        return _serve(given, loaded)
    except StartupProblem as problem:
        print(f"ojs-nats {given.command}: {problem}", file=sys.stderr)
        return WRONG_USE if isinstance(problem, WrongCommandLine) else CANNOT_START


def _serve(given: argparse.Namespace, loaded: Loaded) -> int:
    """Run the server, or a part of it, until it is told to stop. Raises StartupProblem."""
    from ojs_runtime.service import run, run_loop  # noqa: PLC0415  # each process takes what it needs

    settings = loaded.settings
    if given.command == "setup":
        from ojs_command.setup import set_up  # noqa: PLC0415

        return run_loop(set_up(settings))
    if given.command == "dev":
        from ojs_command.dev import run_dev  # noqa: PLC0415

        return run_loop(run_dev(loaded))
    if given.command == "services":
        from ojs_command.several import run_services  # noqa: PLC0415

        return run_loop(run_services(given.services or BACKGROUND, settings, given.supervisor_fd))
    entry: ServiceEntry = given.service
    if entry.kind == "gateway" and settings.processes > 1 and given.number is None:
        from ojs_command.processes import run_processes  # noqa: PLC0415

        return run_loop(run_processes(entry, settings, given.supervisor_fd))
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, entry.nice)
    from ojs_features.all import STORE_FEATURES  # noqa: PLC0415  # takes what only a server needs

    return run_loop(run(entry.name, settings, entry.load(), STORE_FEATURES, supervisor=given.supervisor_fd))


def _checked(settings: Settings, *, as_json: bool) -> int:
    from ojs_command.client.doctor.findings import report  # noqa: PLC0415  # takes what draws tables
    from ojs_command.client.output import Output  # noqa: PLC0415
    from ojs_command.configuration_check import check  # noqa: PLC0415

    return 0 if report(Output(as_json=as_json), masked(settings.nats), check(settings)) else CANNOT_START


def _print(text: str) -> None:
    try:
        print(text, flush=True)
    except BrokenPipeError:  # whoever reads has seen enough; what is left is flushed at the end of Python
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _load(given: argparse.Namespace, unknown: Sequence[str]) -> Loaded:
    flags = {option.name: getattr(given, option.name) for option in _OPTIONS if hasattr(given, option.name)}
    problems = [_unknown(word, given) for word in unknown if word.startswith("-")]
    if unknown and not problems:
        problems = [f"{word}: unknown argument" for word in unknown]
    return load(flags, os.environ, OF_FEATURES, file=given.config, problems=problems)


def _unknown(word: str, given: argparse.Namespace) -> str:
    flag = word.partition("=")[0]
    if problem := gone(flag, flag.removeprefix("--").removeprefix("no-").replace("-", "_")):
        return problem
    if any(option.flag == flag for option in _OPTIONS):
        return f"{flag}: not an option of {given.command}"
    known = [option.flag for option in _OPTIONS if option.is_of(given.kind)]
    return f"{flag}: unknown option{meant(flag, known)}"


def _shown(loaded: Loaded, *, as_json: bool) -> str:
    rows = [(option, _told(option, loaded.settings.value(option)), loaded.sources[option.name]) for option in _OPTIONS]
    if as_json:
        return json.dumps({option.name: {"value": value, "source": source} for option, value, source in rows}, indent=2)
    names, values = max(len(row[0].name) for row in rows), max(len(row[1]) for row in rows)
    return "\n".join(f"{option.name:<{names}}  {value:<{values}}  {source}" for option, value, source in rows)


def _told(option: Option, value: object) -> str:
    return "***" if option.secret and value is not None else masked(written(value))


def _parser() -> PlainParser:
    parser = PlainParser(
        prog="ojs-nats",
        description="An Open Job Spec server on NATS JetStream, and workers for it.",
        epilog="Start here: ojs-nats dev. Each command explains itself: ojs-nats COMMAND --help",
        allow_abbrev=False,
    )
    parser.gone = GONE
    parser.add_argument(
        "--version", action=_Version, nargs=0, default=argparse.SUPPRESS, help="show program's version number and exit"
    )
    commands: argparse._SubParsersAction[CommandParser] = parser.add_subparsers(
        dest="command", metavar="COMMAND", parser_class=CommandParser
    )
    _add_command(commands, "dev", "dev", "everything on one machine, with a NATS server of its own")
    for service in SERVICES:
        added = _add_command(commands, service.name, service.kind, service.help, _add_supervision, examples=service.examples)
        added.set_defaults(service=service)
    _add_command(commands, SHARED.name, SHARED.kind, SHARED.help, _add_names)
    _add_command(
        commands, "setup", "setup", "make the streams in NATS, for services whose users may not, or raise their copies, and end"
    )
    add_module(commands, "nats-conf", "nats_conf", _NATS_CONF, argument_default=argparse.SUPPRESS)
    add_command(commands, "worker", worker.PURPOSE, worker.define, epilog=worker.EPILOG).set_defaults(act=worker.run)
    add_client_commands(parser, commands)
    _add_command(commands, "config", "config", "print the settings that count, and where each was written", _add_ways_to_tell)
    return parser


class _Version(argparse.Action):
    """The option that prints the version.

    Reading it from the metadata takes longer than most commands need to start.
    """

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        print(version.shown())
        parser.exit()


def _add_supervision(service: argparse.ArgumentParser) -> None:
    _add_supervisor(service)
    service.add_argument("--number", type=int, help=argparse.SUPPRESS)


def _add_supervisor(service: argparse.ArgumentParser) -> None:
    service.add_argument("--supervisor-fd", type=int, help=argparse.SUPPRESS)


def _add_names(several: argparse.ArgumentParser) -> None:
    named = f"which of {', '.join(entry.name for entry in BACKGROUND)} [all of them]"
    _add_supervisor(several)
    several.add_argument("services", nargs="*", type=_background, metavar="NAME", help=named)


def _add_ways_to_tell(config: argparse.ArgumentParser) -> None:
    config.add_argument("--check", action="store_true", help="say what they will do that one may not want; 1 for a problem")
    config.add_argument("--json", action="store_true", help="as a JSON object")


def _background(name: str) -> ServiceEntry:
    for entry in BACKGROUND:
        if entry.name == name:
            return entry
    known = ", ".join(entry.name for entry in BACKGROUND)
    apart = "; the gateway is a process of its own: 'ojs-nats gateway'" if name == "gateway" else ""
    raise argparse.ArgumentTypeError(f"{name!r} is none of {known}{apart}")


def _add_command(
    commands: argparse._SubParsersAction[CommandParser],
    name: str,
    kind: SettingKind,
    purpose: str,
    more: Callable[[CommandParser], None] = lambda _command: None,
    examples: str = "",
) -> CommandParser:
    """Add a command that takes settings, and `more`."""

    def define(command: CommandParser) -> None:
        command.add_argument("--config", metavar="FILE", help=f"TOML file with settings [{CONFIG_ENV}]")
        for option in _OPTIONS:
            if option.is_of(kind):
                added = _add_option(command, option)
                if option.name not in _FIRST.get(kind, {option.name}):
                    command.hide(*added)
        more(command)

    command = add_command(commands, name, purpose, define, epilog=f"{examples or _EXAMPLES[kind].format(name=name)}\n{_EPILOG}")
    command.set_defaults(kind=kind)
    return command


def _add_option(command: argparse.ArgumentParser, option: Option) -> Sequence[argparse.Action]:
    """Add a setting, unless no command line may have it; returns the options that were added."""
    if option.secret:
        return ()
    notes = f"[{option.env}; default {option.default_text or 'none'}]"
    explained = f"{option.help} {notes}".replace("%", "%%")
    usual: dict[str, Any] = {"dest": option.name, "default": argparse.SUPPRESS}
    if not option.metavar:
        return (command.add_argument(option.flag, action=argparse.BooleanOptionalAction, help=explained, **usual),)
    if option.alone is None:
        return (command.add_argument(option.flag, metavar=option.metavar, help=explained, **usual),)
    return (
        command.add_argument(option.flag, metavar=option.metavar, nargs="?", const=option.alone, help=explained, **usual),
        command.add_argument(f"--no-{option.flag[2:]}", action="store_const", const="off", **usual),
    )
