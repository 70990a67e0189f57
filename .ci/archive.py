"""Packs binaries into archives that are the same bytes whenever they are packed, and sums them up.

Called by .ci/package with PLATFORM=TARGET=DIRECTORY for each platform; the directory holds the program
NAME and those of --with. Writes, into the directory --out:
  NAME_VERSION_PLATFORM.zip   the programs and the licence
  NAME_VERSION_SHA256SUMS     what `sha256sum --check` reads
  NAME_VERSION.lock.hcl       the entry of a lock file: identity, and the sums in the two forms in
                              which lock files of this family write them
"""

import argparse
import base64
import hashlib
import json
import os
import subprocess
import zipfile

# The earliest moment that a zip archive can tell.
NO_TIME = (1980, 1, 1, 0, 0, 0)


def main() -> None:
    arguments = argparse.ArgumentParser()
    for option in ("name", "version", "build", "out"):
        arguments.add_argument(f"--{option}", required=True)
    arguments.add_argument("--with", dest="others", action="append", default=[])
    arguments.add_argument("built", nargs="+")
    given = arguments.parse_args()
    stem = f"{given.name}_{given.version}"

    archives = []
    for built in sorted(given.built):
        platform, target, directory = built.split("=", 2)
        files = {name: (read(os.path.join(directory, name)), 0o755) for name in [given.name, *given.others]}
        files["LICENSE"] = (read("LICENSE"), 0o644)
        path = os.path.join(given.out, f"{stem}_{platform}.zip")
        pack(path, files)
        archives.append((platform, target, path, hash_of_files(files)))

    sums = os.path.join(given.out, f"{stem}_SHA256SUMS")
    with open(sums, "w", encoding="utf-8") as out:
        for _, _, path, _ in archives:
            out.write(f"{sha256(path)}  {os.path.basename(path)}\n")
    lock = os.path.join(given.out, f"{stem}.lock.hcl")
    with open(lock, "w", encoding="utf-8") as out:
        out.write(lock_entry(given, archives))
    for path in [path for _, _, path, _ in archives] + [sums, lock]:
        print(path)


def read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def sha256(path: str) -> str:
    return hashlib.sha256(read(path)).hexdigest()


def pack(path: str, files: dict[str, tuple[bytes, int]]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in sorted(files):
            content, mode = files[name]
            entry = zipfile.ZipInfo(name, NO_TIME)
            entry.create_system = 3  # Unix: the mode counts
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)


def hash_of_files(files: dict[str, tuple[bytes, int]]) -> str:
    """The sum over an archive's content (`h1:`), which repacking does not change."""
    lines = [f"{hashlib.sha256(files[name][0]).hexdigest()}  {name}\n" for name in sorted(files)]
    return base64.b64encode(hashlib.sha256("".join(lines).encode()).digest()).decode()


def lock_entry(given: argparse.Namespace, archives: list[tuple[str, str, str, str]]) -> str:
    identity = describe(given, archives)
    lines = [f'provider "{identity.pop("name")}" {{']
    width = max(map(len, identity))
    for key, value in identity.items():
        shown = value if key == "protocol_version" else f'"{value}"'
        lines.append(f"  {key:<{width}} = {shown}")
    lines.append("  hashes = [")
    for platform, target, path, content in archives:
        lines.append(f"    # {platform}, built for {target}")
        lines.append(f'    "h1:{content}",')
        lines.append(f'    "zh:{sha256(path)}",')
    lines += ["  ]", "}", ""]
    return "\n".join(lines)


def describe(given: argparse.Namespace, archives: list[tuple[str, str, str, str]]) -> dict[str, str]:
    """What the build says of itself, by its own mouth where this machine can run it."""
    for built in given.built:
        platform, _, directory = built.split("=", 2)
        if platform.endswith({"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, "-")):
            # Its exit code judges the machine.
            program = os.path.abspath(os.path.join(directory, given.name))
            said = subprocess.run([program, "doctor", "--json"], capture_output=True, text=True)
            identity = json.loads(said.stdout)["provider"]
            expected = given.version + (f"+{given.build}" if given.build else "")
            if identity["version"] != expected:
                raise SystemExit(f"it reports version {identity['version']}, not {expected}")
            return {key: identity[key] for key in ("source", "version", "protocol_version")} | {
                "name": identity["name"], "category": "tool"}
    raise SystemExit("none of the platforms runs here, so that nothing can be asked for its identity")


if __name__ == "__main__":
    main()
