#!/usr/bin/env python3
"""Holds the tree of dependencies to deny.toml: licences, duplicates, bans, sources and advisories.

    .ci/dependencies.py [--advisories DIRECTORY]

It reads what cargo knows of Cargo.lock and nothing else, so that it needs no program that takes minutes to build.
Advisories are the exception: their database is a git repository. Where that cannot be reached, the
check says that it was left out; with --advisories it reads a copy of the database instead.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections import defaultdict

# How long the database may take to answer and to come.
TIMEOUT_S = 60

Version = tuple[int, int, int, str]


def main() -> int:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--advisories", metavar="DIRECTORY")
    given = arguments.parse_args()
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    with open("deny.toml", "rb") as file:
        rules = tomllib.load(file)
    packages, wildcards = tree(rules["graph"]["targets"])

    problems = licences(rules["licenses"], packages)
    problems += duplicates(rules["bans"], packages)
    problems += bans(rules["bans"], packages, wildcards)
    problems += sources(rules["sources"], packages)
    found, note = advisories(rules["advisories"], packages, given.advisories)
    problems += found
    for problem in problems:
        print(f"dependencies: {problem}", file=sys.stderr)
    print(f"{len(packages)} crates looked at: licences, duplicates, bans, sources; {note}")
    return 1 if problems else 0


def tree(targets: list[str]) -> tuple[list[dict], list[str]]:
    """The packages that any of the targets needs, and what our own manifests leave open."""
    packages, wildcards = {}, []
    for target in targets:
        command = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", target]
        metadata = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
        nodes = metadata["resolve"]["nodes"]
        used = {node["id"] for node in nodes}
        packages |= {package["id"]: package for package in metadata["packages"] if package["id"] in used}
        names = {package["id"]: package["name"] for package in metadata["packages"]}
        for node in nodes:
            for dependency in node["dependencies"]:
                packages[dependency].setdefault("users", set()).add(names[node["id"]])
        ours = [package for package in metadata["packages"] if package["id"] in metadata["workspace_members"]]
        wildcards = [
            f"{package['name']} takes any version of {dependency['name']}"
            for package in ours
            for dependency in package["dependencies"]
            if dependency["req"] == "*" and not dependency.get("path")
        ]
    return sorted(packages.values(), key=lambda package: (package["name"], package["version"])), wildcards


# --- licences ---


def licences(rules: dict, packages: list[dict]) -> list[str]:
    allowed, used, problems = set(rules["allow"]), set(), []
    for package in packages:
        name = f"{package['name']} {package['version']}"
        if not package["license"]:
            problems.append(f"{name} names no licence")
        elif not is_allowed(package["license"], allowed, used):
            problems.append(f"{name} is under {package['license']}, which is not allowed")
    if rules.get("unused-allowed-license") == "deny":
        problems += [f"no crate is under {licence}: take it out of deny.toml" for licence in sorted(allowed - used)]
    return problems


def is_allowed(expression: str, allowed: set[str], used: set[str]) -> bool:
    """Whether an SPDX expression can be met; AND binds closer than OR. A slash is the old way to write OR."""
    tokens = re.findall(r"[()]|[^\s()]+", expression.replace("/", " OR "))

    def alternatives() -> bool:
        met = conjunction()
        while tokens[:1] == ["OR"]:
            tokens.pop(0)
            met = conjunction() or met
        return met

    def conjunction() -> bool:
        met = single()
        while tokens[:1] == ["AND"]:
            tokens.pop(0)
            met = single() and met
        return met

    def single() -> bool:
        token = tokens.pop(0)
        if token == "(":
            met = alternatives()
            if tokens.pop(0) != ")":
                raise SystemExit(f"{expression!r} is no licence expression")
            return met
        if tokens[:1] == ["WITH"]:
            tokens.pop(0)
            token += " WITH " + tokens.pop(0)
        if token in allowed:
            used.add(token)
        return token in allowed

    try:
        met = alternatives()
    except IndexError:
        raise SystemExit(f"{expression!r} is no licence expression") from None
    return met and not tokens


# --- duplicates, bans, sources ---


def duplicates(rules: dict, packages: list[dict]) -> list[str]:
    if rules["multiple-versions"] != "deny":
        return []
    skipped = {entry["name"] for entry in rules["skip"]}
    versions, problems = defaultdict(list), []
    for package in packages:
        versions[package["name"]].append(package["version"])
    hit = set()
    for name, all_of_it in versions.items():
        kept = []
        for version in all_of_it:
            names = {f"{name}@{prefix}" for prefix in prefixes(version)} & skipped
            hit |= names
            if not names:
                kept.append(version)
        if len(kept) > 1:
            problems.append(f"{name} is there {len(kept)} times: {', '.join(kept)} (cargo tree -i {name}@{kept[0]})")
        if len(all_of_it) == 1 and kept != all_of_it:
            problems.append(f"{name} is there once: take it out of deny.toml's skip")
    return problems + [f"deny.toml skips {name}, which is not there" for name in sorted(skipped - hit)]


def prefixes(version: str) -> list[str]:
    """`1`, `1.2` and `1.2.3` of 1.2.3."""
    parts = version.split(".")
    return [".".join(parts[:many]) for many in range(1, len(parts) + 1)]


def bans(rules: dict, packages: list[dict], wildcards: list[str]) -> list[str]:
    problems, entries = [], {entry["name"]: entry for entry in rules["deny"]}
    for package in packages:
        entry = entries.get(package["name"])
        # Without wrappers nobody may depend on it; with them, nobody else.
        if entry and not ("wrappers" in entry and package.get("users", set()) <= set(entry["wrappers"])):
            problems.append(f"{package['name']} is banned: {entry['reason']}")
    return problems + (wildcards if rules["wildcards"] == "deny" else [])


def sources(rules: dict, packages: list[dict]) -> list[str]:
    allowed = {f"registry+{registry}" for registry in rules["allow-registry"]}
    # No source is a directory of this repository: cargo would not have locked any other.
    strange = [package for package in packages if package["source"] and package["source"] not in allowed]
    return [f"{package['name']} comes from {package['source']}" for package in strange]


# --- advisories ---


def advisories(rules: dict, packages: list[dict], directory: str | None) -> tuple[list[str], str]:
    if directory:
        return advised(rules, packages, directory), "advisories, from a copy"
    with tempfile.TemporaryDirectory() as place:
        for url in rules["db-urls"]:
            command = ["git", "clone", "--quiet", "--depth", "1", url, os.path.join(place, "db")]
            environment = os.environ | {"GIT_TERMINAL_PROMPT": "0"}
            try:
                subprocess.run(command, check=True, capture_output=True, timeout=TIMEOUT_S, env=environment)
            except (subprocess.SubprocessError, OSError):
                return [], "ADVISORIES WERE NOT CHECKED: their database cannot be reached from here"
            return advised(rules, packages, os.path.join(place, "db")), "advisories"
    return [], "no database of advisories is named"


def advised(rules: dict, packages: list[dict], directory: str) -> list[str]:
    """What the database says of the versions that are locked."""
    crates = os.path.join(directory, "crates")
    if not os.path.isdir(crates):
        raise SystemExit(f"{directory} is no database of advisories: it has no crates directory")
    problems = []
    for package in packages:
        place = os.path.join(crates, package["name"])
        for name in sorted(os.listdir(place)) if os.path.isdir(place) else []:
            if not name.endswith(".md"):
                continue
            with open(os.path.join(place, name), encoding="utf-8") as file:
                entry = tomllib.loads(re.search(r"```toml\n(.*?)```", file.read(), re.DOTALL)[1])
            advisory, versions = entry["advisory"], entry.get("versions", {})
            safe = versions.get("patched", []) + versions.get("unaffected", [])
            is_over = "withdrawn" in advisory or advisory["id"] in rules["ignore"]
            if not is_over and not any(meets(package["version"], requirement) for requirement in safe):
                problems.append(f"{package['name']} {package['version']}: {advisory['id']}")
    return problems


def meets(version: str, requirement: str) -> bool:
    """Whether a version meets a requirement in Cargo's own words."""
    return all(meets_one(parse(version)[0], part.strip()) for part in requirement.split(","))


def meets_one(version: Version, part: str) -> bool:
    operator, text = re.fullmatch(r"(>=|<=|>|<|=|\^|~)?\s*(.*)", part).groups()
    if text == "*":
        return True
    bound, given = parse(text)
    match operator:
        case ">=":
            return version >= bound
        case "<=":
            return version <= bound
        case ">":
            return version > bound
        case "<":
            return version < bound
        case "=":
            return version[:given] == bound[:given] and (given < 3 or version[3] == bound[3])
        case "~":
            return version >= bound and version[: min(given, 2)] == bound[: min(given, 2)]
    # As without an operator: the first part that is not zero must not change.
    fixed = next((at for at in range(given) if bound[at]), given - 1) + 1
    return version >= bound and version[:fixed] == bound[:fixed]


def parse(text: str) -> tuple[Version, int]:
    """A version as something to compare, and how many of its three parts were written."""
    core, _, before = text.split("+")[0].partition("-")
    parts = [int(part) for part in core.split(".") if part.isdigit()]
    whole = (parts + [0, 0, 0])[:3]
    # What comes before a release sorts before it: `~` is the last of the plain characters.
    return (whole[0], whole[1], whole[2], before or "~"), len(parts)


if __name__ == "__main__":
    sys.exit(main())
