"""Says what other people's packages bring: their licences, their known vulnerabilities, and a bill of materials of them.

`.venv/bin/python script/supply_chain.py check` fails for a licence that isn't on the list below and for a package with a known
vulnerability. A package that couldn't be looked up is named. If none could (no network, an index without advisories), that
fails as well; with `--even-offline` it is a warning.
`… sbom` writes what goes into the wheels: requirements/ojs-nats-server.cdx.json and shared/ojs-nats.cdx.json.

All three are about what `pip install ojs-nats-server[…]`, or `ojs-nats[…]`, brings with every extra, at the versions of
requirements/dev.txt.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, Final

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT: Final = Path(__file__).parent.parent
CLIENT: Final = "ojs-nats"
SERVER: Final = "ojs-nats-server"
SBOMS: Final = {
    CLIENT: ROOT / "shared" / "ojs-nats.cdx.json",
    SERVER: ROOT / "requirements" / "ojs-nats-server.cdx.json",
}
"""The files of the bills of materials, by our distributions."""
ALLOWED: Final = (
    "3-Clause BSD License",
    "Apache Software License",
    "Apache-2.0",
    "Apache-2.0 AND BSD-2-Clause",
    "Apache-2.0 AND MIT",
    "Apache-2.0 OR BSD-3-Clause",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "MIT",
    "MIT License",
    "MIT OR Apache-2.0",
    "MIT-0",
    "MPL-2.0",
    "Mozilla Public License 2.0 (MPL 2.0)",
    "PSF-2.0",
    "Python Software Foundation License",
)
"""Licences that a package may have, as pip-licenses writes them. One that isn't here is a decision for people."""
_AUDIT_S: Final = 60.0
"""How long looking up vulnerabilities may take altogether."""

Packages = Mapping[str, tuple[Distribution, list[str]]]
"""By name: what is installed, and the names of what it needs."""


def shipped(*names: str) -> Packages:
    """Return some of ours with every extra, and all that comes with them; both unless they are named.

    The client's extra that brings the server isn't followed.
    """
    found: dict[str, tuple[Distribution, list[str]]] = {}
    ours = names or tuple(SBOMS)
    waiting = [(name, frozenset(distribution(name).metadata.get_all("Provides-Extra") or ())) for name in ours]
    for name, extras in waiting:
        try:
            one, needs = found.setdefault(name, (distribution(name), []))
        except PackageNotFoundError:
            raise SystemExit(f"{name} isn't installed: script/setup dev installs it") from None
        for line in one.requires or ():
            need = Requirement(line)
            wanted = need.marker is None or any(need.marker.evaluate({"extra": extra}) for extra in ("", *extras))
            needed = canonicalize_name(need.name)
            if wanted and needed not in (name, SERVER, *needs):
                needs.append(needed)
                waiting.append((needed, frozenset(need.extras)))
    return found


def write_sbom(name: str, path: Path) -> None:
    """Write the bill of materials of one of ours in CycloneDX.

    It names no time, so it changes only when the packages do.
    """
    packages = shipped(name)
    bom = Bom()
    components = {each: _component(each, one) for each, (one, _) in packages.items()}
    for each, (_, needs) in packages.items():
        bom.register_dependency(components[each], [components[need] for need in needs])
        if each != name:
            bom.components.add(components[each])
    bom.metadata.component = components[name]
    made = json.loads(JsonV1Dot6(bom).output_as_string())
    del made["serialNumber"], made["metadata"]["timestamp"]
    path.write_text(json.dumps(made, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def _component(name: str, one: Distribution) -> Component:
    [expression] = one.metadata.get_all("License-Expression") or [None]
    package = PackageURL("pypi", None, name, one.version)
    return Component(
        name=name,
        version=one.version,
        type=ComponentType.APPLICATION if name == SERVER else ComponentType.LIBRARY,
        bom_ref=str(package),
        purl=package,
        licenses=[LicenseFactory().make_from_string(expression)] if expression else (),
    )


def check_licences(packages: Packages) -> bool:
    """Whether every package has a licence of the list; names those that have another."""
    command = [_tool("pip-licenses"), "--python", sys.executable, "--format", "json", "--packages", *packages]
    listed = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    names = {canonicalize_name(package["Name"]) for package in listed}
    if lost := packages.keys() - names:
        return _refuse(f"pip-licenses says nothing of {', '.join(sorted(lost))}")
    others = [f"{package['Name']} {package['Version']}: {package['License']}" for package in listed if not allowed(package)]
    if others:
        return _refuse("licences that aren't allowed (ALLOWED in script/supply_chain.py):", *others)
    return _say(f"licences: {len(names)} packages, each has one that is allowed")


def allowed(package: Mapping[str, str]) -> bool:
    """Whether a package as pip-licenses lists it has licences of the list alone."""
    return all(one in ALLOWED for one in package["License"].split("; "))


def check_vulnerabilities(packages: Packages, *, even_offline: bool) -> bool:
    """Return whether no package has a known vulnerability; names those that have, and those that weren't looked up.

    If none was looked up it returns `even_offline`.
    """
    pins = {name: one.version for name, (one, _) in packages.items() if name not in SBOMS}
    with tempfile.TemporaryDirectory() as folder:
        wanted, answer = Path(folder, "packages.txt"), Path(folder, "answer.json")
        wanted.write_text("".join(f"{name}=={version}\n" for name, version in pins.items()), encoding="utf-8")
        command = [_tool("pip-audit"), "--no-deps", "--disable-pip", "--progress-spinner", "off", "--format", "json"]
        command += ["--requirement", str(wanted), "--output", str(answer)]
        try:
            ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_AUDIT_S)
        except subprocess.TimeoutExpired:
            return _nothing(f"pip-audit had no answer within {_AUDIT_S:.0f} s", even_offline=even_offline)
        if not answer.exists():
            last = ended.stderr.strip().splitlines()[-1:] or [f"pip-audit ended with {ended.returncode}"]
            return _nothing(*last, even_offline=even_offline)
        answers = json.loads(answer.read_text(encoding="utf-8"))["dependencies"]
        return judged(pins, answers, even_offline=even_offline)


def judged(pins: Mapping[str, str], answers: Iterable[Mapping[str, Any]], *, even_offline: bool) -> bool:
    """Return whether the answers name no vulnerability; says what they name, and which packages they say nothing of."""
    by_name = {canonicalize_name(answer["name"]): answer for answer in answers}
    unknown = {name for name in pins if "vulns" not in by_name.get(canonicalize_name(name), {})}
    bad = [
        f"{name} {pins[name]}: {vulnerability['id']}, corrected in {', '.join(vulnerability['fix_versions']) or 'no version'}"
        for name in sorted(pins.keys() - unknown)
        for vulnerability in by_name[canonicalize_name(name)]["vulns"]
    ]
    if len(unknown) == len(pins):
        return _nothing("the package index has no advisories", even_offline=even_offline)
    if unknown:
        _say(f"NOT LOOKED UP: the package index has no advisories of {', '.join(sorted(unknown))}")
    if bad:
        return _refuse("known vulnerabilities:", *bad)
    return _say(f"vulnerabilities: {len(pins) - len(unknown)} of {len(pins)} packages looked up, none has a known one")


def _nothing(why: str, *, even_offline: bool) -> bool:
    said = f"no package was looked up for known vulnerabilities: {why}"
    return _say(f"WARNING: {said}") if even_offline else _refuse(f"{said} (`--even-offline` makes this a warning)")


def _refuse(*lines: str) -> bool:
    print("\n  ".join(lines), file=sys.stderr)
    return False


def _say(line: str) -> bool:
    print(line)
    return True


def _tool(name: str) -> str:
    return str(Path(sys.executable).parent / name)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["check"] | ["check", "--even-offline"]:
            found = shipped()
            results = [check_licences(found), check_vulnerabilities(found, even_offline=len(sys.argv) > 2)]
            sys.exit(0 if all(results) else 1)
        case ["sbom"]:
            for name, path in SBOMS.items():
                write_sbom(name, path)
        case _:
            sys.exit("usage: script/supply_chain.py check [--even-offline] | sbom")
