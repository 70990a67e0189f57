"""What .ci/archive.py packs and says of it: `python3 -m unittest discover .ci`."""

import contextlib
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import unittest

import archive

PLATFORM = f"linux_{archive.MACHINES.get(os.uname().machine, '')}"
SOURCE = "github.com/owner/provider-sample"


def packed(directory: str, out: str, **said: str) -> tuple[str, str]:
    """Packs a program that says who it is; returns what is printed, and the path of the stem."""
    provider = {"name": "sample", "version": "1.2.3", "source": SOURCE, "build": "abc"} | said
    program = os.path.join(directory, "provider-sample")
    with open(program, "w", encoding="utf-8") as file:
        file.write(f"#!/bin/sh\necho '{json.dumps({'provider': provider})}'\n")
    os.chmod(program, 0o755)
    target = os.path.join(directory, out)
    os.mkdir(target)
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "archive.py")
    run = subprocess.run(
        [sys.executable, script, "--name", "provider-sample", "--version", "1.2.3", "--source", SOURCE,
         "--build", "abc", "--out", target, f"{PLATFORM}=target={directory}"],
        cwd=os.path.dirname(os.path.dirname(script)), capture_output=True, text=True,
        env=os.environ | {"SOURCE_DATE_EPOCH": "86400"},
    )
    return run.stdout + run.stderr, os.path.join(target, "provider-sample_1.2.3")


class Archives(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name

    def test_hosts_find_the_archive_its_sum_and_the_lock_entry(self) -> None:
        printed, stem = packed(self.directory, "out")
        path = f"{stem}_{PLATFORM}.tar.gz"
        sums = f"{hashlib.sha256(archive.read(path)).hexdigest()}  {os.path.basename(path)}\n"
        self.assertEqual(archive.read(f"{stem}_SHA256SUMS").decode(), sums)
        with tarfile.open(path) as found:
            self.assertEqual(found.getnames(), ["LICENSE", "provider-sample"])
            entry = found.getmember("provider-sample")
            self.assertEqual((entry.mode, entry.mtime, entry.uid), (0o755, 0, 0))
            program = found.extractfile(entry).read()
        lock = archive.read(f"{stem}.lock.hcl").decode()
        self.assertEqual(lock, f'''provider "sample" {{
  source      = "{SOURCE}"
  version     = "1.2.3"
  resolved_at = "1970-01-02T00:00:00Z"
  checksums = {{
    "{PLATFORM}" = "sha256:{hashlib.sha256(program).hexdigest()}"
  }}
}}
''')
        self.assertTrue(printed.endswith(lock), printed)

    def test_the_same_programs_are_the_same_bytes(self) -> None:
        one, other = (packed(self.directory, out)[1] for out in ("one", "other"))
        for end in (f"_{PLATFORM}.tar.gz", "_SHA256SUMS", ".lock.hcl"):
            self.assertEqual(archive.read(one + end), archive.read(other + end), end)

    def test_a_build_that_says_another_identity_is_refused(self) -> None:
        for key, value in [("version", "1.2.4"), ("source", ""), ("build", "def")]:
            printed, stem = packed(self.directory, key, **{key: value})
            self.assertIn(f"it reports the {key} '{value}'", printed)
            self.assertFalse(os.path.exists(f"{stem}.lock.hcl"))

    def test_a_missing_source_is_reported(self) -> None:
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            archive.lock_entry({"name": "x", "source": "", "version": "1.0.0"}, {})
        self.assertIn("set PROVIDER_SOURCE", said.getvalue())


if __name__ == "__main__":
    unittest.main()
