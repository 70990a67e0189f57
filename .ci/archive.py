"""Packs binaries into archives that are the same bytes whenever they are packed, and sums them up.

Called by .ci/package with PLATFORM=TARGET=DIRECTORY for each platform; the directory holds the program
NAME and those of --with. Writes, into the directory --out:
  NAME_VERSION_PLATFORM.tar.gz  the programs and the licence, named as hosts look for them
  NAME_VERSION_SHA256SUMS       what `sha256sum --check` reads: the archives
  NAME_VERSION.lock.hcl         the entry of a host's .agent/agent.lock.hcl: identity, and for each
                                platform the sum of the program itself, which is what a host runs
Prints where they are, and the entry.
"""

import argparse
import datetime
import gzip
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile

MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}


def main() -> None:
    arguments = argparse.ArgumentParser()
    for option in ("name", "version", "out"):
        arguments.add_argument(f"--{option}", required=True)
    arguments.add_argument("--source", default="")
    arguments.add_argument("--build", default="")
    arguments.add_argument("--with", dest="others", action="append", default=[])
    arguments.add_argument("built", nargs="+")
    given = arguments.parse_args()
    stem = f"{given.name}_{given.version}"

    written, checksums = [], {}
    for built in sorted(given.built):
        platform, _, directory = built.split("=", 2)
        files = {name: (read(os.path.join(directory, name)), 0o755) for name in [given.name, *given.others]}
        files["LICENSE"] = (read("LICENSE"), 0o644)
        path = os.path.join(given.out, f"{stem}_{platform}.tar.gz")
        pack(path, files)
        written.append(path)
        checksums[platform] = sha256(files[given.name][0])

    sums = os.path.join(given.out, f"{stem}_SHA256SUMS")
    with open(sums, "w", encoding="utf-8") as out:
        for path in written:
            out.write(f"{sha256(read(path))}  {os.path.basename(path)}\n")
    entry = lock_entry(identity(given), checksums)
    lock = os.path.join(given.out, f"{stem}.lock.hcl")
    with open(lock, "w", encoding="utf-8") as out:
        out.write(entry)
    for path in [*written, sums, lock]:
        print(path)
    print(entry, end="")


def read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def pack(path: str, files: dict[str, tuple[bytes, int]]) -> None:
    """Neither a time nor an owner of this machine gets in."""
    with open(path, "wb") as out, gzip.GzipFile("", "wb", 9, out, mtime=0) as packed:
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
            for name in sorted(files):
                content, mode = files[name]
                entry = tarfile.TarInfo(name)
                entry.size, entry.mode = len(content), mode
                archive.addfile(entry, io.BytesIO(content))


def identity(given: argparse.Namespace) -> dict[str, str]:
    """What the build says of itself, by its own mouth where this machine can run it."""
    for built in given.built:
        platform, _, directory = built.split("=", 2)
        if platform.endswith(MACHINES.get(os.uname().machine, "-")):
            # Its exit code judges the machine.
            program = os.path.abspath(os.path.join(directory, given.name))
            said = subprocess.run([program, "doctor", "--json"], capture_output=True, text=True)
            found = json.loads(said.stdout)["provider"]
            for key in ("version", "source", "build"):
                if found[key] != getattr(given, key):
                    raise SystemExit(f"it reports the {key} {found[key]!r}, not {getattr(given, key)!r}")
            return found
    raise SystemExit("none of the platforms runs here, so that nothing can be asked for its identity")


def lock_entry(identity: dict[str, str], checksums: dict[str, str]) -> str:
    if not identity["source"]:
        print("this build names no source: set PROVIDER_SOURCE, such as github.com/OWNER/provider-workspace, "
              "for a lock entry that a host can compare", file=sys.stderr)
    lines = [
        f'provider "{identity["name"]}" {{',
        f'  source      = "{identity["source"]}"',
        f'  version     = "{identity["version"]}"',
        f'  resolved_at = "{moment()}"',
        "  checksums = {",
        *(f'    "{platform}" = "sha256:{checksum}"' for platform, checksum in checksums.items()),
        "  }",
        "}",
    ]
    return "\n".join(lines) + "\n"


def moment() -> str:
    """SOURCE_DATE_EPOCH, else now: a host wants to know when an entry was made."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    time = datetime.datetime.fromtimestamp(int(epoch), datetime.timezone.utc) if epoch else datetime.datetime.now(datetime.timezone.utc)
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


if __name__ == "__main__":
    main()
