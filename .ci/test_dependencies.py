"""What .ci/dependencies.py finds wrong, and what it does not: `python3 -m unittest discover .ci`."""

import os
import tempfile
import unittest

import dependencies


def package(name: str, version: str, **more: str) -> dict:
    return {"name": name, "version": version, "license": "MIT", "source": None} | more


class Licences(unittest.TestCase):
    ALLOWED = {"MIT", "ISC", "Apache-2.0 WITH LLVM-exception"}

    def test_an_expression_is_met_by_one_side_of_or_and_both_of_and(self) -> None:
        for expression, expected in [
            ("MIT OR GPL-3.0", True),
            ("GPL-3.0/MIT", True),
            ("MIT AND GPL-3.0", False),
            ("(MIT OR GPL-3.0) AND ISC", True),
            ("GPL-3.0 OR GPL-2.0 AND MIT", False),
            ("Apache-2.0 WITH LLVM-exception", True),
            ("Apache-2.0", False),
        ]:
            self.assertEqual(dependencies.is_allowed(expression, self.ALLOWED, set()), expected, expression)

    def test_what_is_not_allowed_not_named_or_not_used_is_reported(self) -> None:
        rules = {"allow": ["MIT", "ISC"], "unused-allowed-license": "deny"}
        packages = [package("a", "1.0.0", license="GPL-3.0"), package("b", "1.0.0", license=""), package("c", "1.0.0")]
        self.assertEqual(
            dependencies.licences(rules, packages),
            [
                "a 1.0.0 is under GPL-3.0, which is not allowed",
                "b 1.0.0 names no licence",
                "no crate is under ISC: take it out of deny.toml",
            ],
        )


class Tree(unittest.TestCase):
    def test_two_versions_are_reported_unless_one_is_skipped_and_a_skip_has_to_skip(self) -> None:
        twice = [package("a", "1.2.3"), package("a", "2.0.0")]
        rules = {"multiple-versions": "deny", "skip": []}
        self.assertEqual(len(dependencies.duplicates(rules, twice)), 1)
        rules["skip"] = [{"name": "a@1.2"}]
        self.assertEqual(dependencies.duplicates(rules, twice), [])
        self.assertEqual(len(dependencies.duplicates(rules, twice[:1])), 1)
        self.assertEqual(len(dependencies.duplicates(rules, twice[1:])), 1)

    def test_banned_crates_and_strange_sources_are_reported(self) -> None:
        rules = {"deny": [{"name": "a", "reason": "no"}], "wildcards": "deny", "allow-registry": ["https://r"]}
        packages = [package("a", "1.0.0", source="git+https://g"), package("b", "1.0.0", source="registry+https://r")]
        self.assertEqual(dependencies.bans(rules, packages, ["open"]), ["a is banned: no", "open"])
        self.assertEqual(dependencies.sources(rules, packages), ["a comes from git+https://g"])

    def test_a_banned_crate_is_taken_from_its_wrappers_and_nobody_else(self) -> None:
        rules = {"deny": [{"name": "a", "reason": "no", "wrappers": ["w"]}], "wildcards": "deny"}
        for users, expected in [({"w"}, []), ({"w", "b"}, ["a is banned: no"])]:
            self.assertEqual(dependencies.bans(rules, [package("a", "1.0.0") | {"users": users}], []), expected)


class Advisories(unittest.TestCase):
    def test_requirements_mean_what_they_mean_to_cargo(self) -> None:
        for version, requirement, expected in [
            ("1.2.3", "^1.2", True),
            ("2.0.0", "1.2", False),
            ("0.2.5", "^0.2.3", True),
            ("0.3.0", "^0.2.3", False),
            ("0.0.4", "0.0.3", False),
            ("1.2.9", "~1.2.3", True),
            ("1.3.0", "~1.2.3", False),
            ("1.2.3-rc.1", ">= 1.2.3", False),
            ("1.5.0", "> 1.2, < 2", True),
            ("2.0.0", "> 1.2, < 2", False),
        ]:
            self.assertEqual(dependencies.meets(version, requirement), expected, (version, requirement))

    def test_a_version_that_is_neither_patched_nor_withdrawn_nor_ignored_is_reported(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            for name, more in [("open", ""), ("over", 'withdrawn = "2020-01-01"\n')]:
                os.makedirs(os.path.join(directory, "crates", name))
                with open(os.path.join(directory, "crates", name, "x.md"), "w", encoding="utf-8") as file:
                    file.write(f'```toml\n[advisory]\nid = "X-{name}"\n{more}[versions]\npatched = [">= 2"]\n```\n')
            locked = [package("open", "1.0.0"), package("over", "1.0.0"), package("other", "1.0.0")]
            rules = {"ignore": []}
            self.assertEqual(dependencies.advised(rules, locked, directory), ["open 1.0.0: X-open"])
            self.assertEqual(dependencies.advised(rules, [package("open", "2.1.0")], directory), [])
            self.assertEqual(dependencies.advised({"ignore": ["X-open"]}, locked, directory), [])


if __name__ == "__main__":
    unittest.main()
