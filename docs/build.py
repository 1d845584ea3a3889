"""Build the documentation site: ``python docs/build.py [--strict]``.

The site is in build/site, and works without a network and without a web server. It needs ``callboard[site]`` and two
scripts under the MIT license: mermaid draws the diagrams, and iframe-worker lets pages without a web server search. npm
installs them once, into the cache. Links, anchors, and the pages' distance from the start are checked at the end.
"""
# ruff: noqa: INP001, T201 - a script that prints its report

from __future__ import annotations

import argparse
import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

import generate
import site_links

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
FILES = f"{PROJECT['project']['urls']['Repository']}/blob/main/"
RAW = f"{PROJECT['project']['urls']['Repository']}/raw/main/"
SCRIPTS = {"mermaid@11.17.2": "dist/mermaid.min.js", "iframe-worker@1.0.4": "shim/index.js"}
"""npm's packages by name and version, and the file that pages load."""
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security-policy.md",
}
"""Pages of the site from the root of the repository."""
INDEX = "overview.md"
"""The page of the site for docs/README.md."""
VERSION_MENU = '\n[project.extra.version]\nprovider = "mike"\n'
_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "callboard" / "ci"
_CDN = re.compile(r"https://(?:unpkg\.com|cdn\.jsdelivr\.net)/([\w@.-]+)[\w@./-]*")
_CDN_OF_PAGES = re.compile(rf'(?<=src="){_CDN.pattern}')


def scripts() -> Path:
    """Return the folder of npm's packages, installed if need be."""
    cache = Path(os.environ.get("CALLBOARD_CI_CACHE") or _CACHE)
    folder = cache / "-".join(("site", *SCRIPTS))
    packages = folder / "node_modules"
    if not all((packages / name.partition("@")[0] / file).exists() for name, file in SCRIPTS.items()):
        options = ["--loglevel=error", "--no-save", "--ignore-scripts", f"--prefix={folder}"]
        npm = shutil.which("npm")
        done = npm and subprocess.run([npm, "install", *options, *SCRIPTS], check=False, stdout=subprocess.DEVNULL)
        if not done or done.returncode:
            sys.exit(f"the site needs {' and '.join(SCRIPTS)}: install them once with npm into {folder}")
    return packages


def local(text: str) -> str:
    """Turn links to the repository into links to the site."""
    for name, page in PAGES.items():
        text = text.replace(f"]({FILES}{name}", f"]({page}")
    text = re.sub(rf"\]\({re.escape(FILES)}docs/([\w-]+\.md)", r"](\1", text)
    text = re.sub(rf"\]\({re.escape(RAW)}docs/([\w-]+\.(?:png|svg))", r"](\1", text)
    text = re.sub(r"\]\((?:docs/)?README\.md", f"]({INDEX}", text)
    return re.sub(r"\]\(docs/([\w-]+\.md)", r"](\1", text)


def linked(page: str) -> str:
    """Link each name in the tables of the public API."""
    module = "callboard"

    def link(match: re.Match[str]) -> str:
        return f"| [{match['code']}][{module}.{match['name']}] |"

    lines = []
    for line in page.splitlines(keepends=True):
        if heading := re.match(r"## `([\w.]+)`", line):
            module = heading[1]
        lines.append(re.sub(r"^\| (?P<code>`(?P<name>[A-Za-z][\w.]*)[^`]*`) \|", link, line))
    return "".join(lines)


def reference(part: str) -> str:
    """Write the page of one public module, for mkdocstrings."""
    module = "callboard" if part == "callboard" else f"callboard.{part}"
    names = "\n".join(f"::: {module}.{name}\n" for name in generate.API[part])
    return f"# {module}\n\n[All modules](../api.md#{module.replace('.', '')})\n\n{names}"


def stage(folder: Path, version: str) -> None:
    """Put the pages, their configuration and the source into a folder."""
    pages = folder / "pages"
    (pages / "reference").mkdir(parents=True)
    for path in (*DOCS.glob("*.png"), *DOCS.glob("*.svg"), DOCS / "site.css"):
        shutil.copy(path, pages)
    texts = {PAGES[name]: ROOT / name for name in PAGES}
    texts |= {INDEX if path.name == "README.md" else path.name: path for path in DOCS.glob("*.md")}
    for name, path in texts.items():
        text = local(path.read_text(encoding="utf-8"))
        (pages / name).write_text(linked(text) if name == "api.md" else text, encoding="utf-8")
    for part in generate.API:
        (pages / "reference" / f"{part}.md").write_text(reference(part), encoding="utf-8")
    packages = scripts()
    for name, file in SCRIPTS.items():
        package = packages / name.partition("@")[0]
        vendored = pages / "vendor" / package.name
        vendored.mkdir(parents=True)
        shutil.copy(package / "LICENSE", vendored / "LICENSE.txt")
        shutil.copy(package / file, vendored / "index.js")
    settings = (DOCS / "zensical.toml").read_text(encoding="utf-8")
    (folder / "zensical.toml").write_text(settings + (VERSION_MENU if version else ""), encoding="utf-8")
    for package in public_packages():
        place = Path(*package.split(".")[1:])
        source = folder / "source" / "callboard" / place
        source.mkdir(parents=True, exist_ok=True)
        for path in (ROOT / place).glob("*.py"):
            (source / path.name).symlink_to(path)


def public_packages() -> set[str]:
    """Return the packages that define the public API, and those around them.

    griffe reads each module that it finds; the others take as long as the rest of the reference.
    """
    packages: set[str] = set()
    for part, names in generate.API.items():
        public = importlib.import_module("callboard" if part == "callboard" else f"callboard.{part}")
        packages.add(str(public.__package__))
        for value in (getattr(public, name) for name in names):
            modules = [getattr(base, "__module__", "") for base in getattr(value, "__mro__", (value,))]
            packages |= {module.rpartition(".")[0] for module in modules if module.startswith("callboard.")}
    split = [package.split(".") for package in packages]
    return {".".join(parts[:count]) for parts in split for count in range(1, len(parts) + 1)}


def add_version(out: Path, version: str) -> None:
    """Add a version to the theme's menu, as the newest."""
    path = out / "versions.json"
    versions = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    versions = [known for known in versions if known["version"] != version]
    versions.insert(0, {"version": version, "title": version, "aliases": []})
    path.write_text(json.dumps(versions, indent=1), encoding="utf-8")
    page = f'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={version}/index.html">'
    (out / "index.html").write_text(f'{page}<a href="{version}/index.html">Callboard {version}</a>', encoding="utf-8")


def make_local(site: Path) -> None:
    """Let the theme load its scripts from the site.

    Those of features that are off get no address.
    """
    vendored = {name.partition("@")[0] for name in SCRIPTS}
    for path in (*site.rglob("*.html"), *(site / "assets").rglob("*.js")):
        above = "../" * (len(path.relative_to(site).parts) - 1)

        def address(match: re.Match[str], above: str = above) -> str:
            return f"{above}vendor/{match[1]}/index.js" if match[1] in vendored else "about:blank"

        pattern = _CDN if path.suffix == ".js" else _CDN_OF_PAGES
        path.write_text(pattern.sub(address, path.read_text(encoding="utf-8")), encoding="utf-8")


def free(target: Path) -> Path:
    """Return a folder that is new, empty or a site."""
    if target.exists() and not (target / "sitemap.xml").exists() and any(target.iterdir()):
        sys.exit(f"{target} has other files than a site: name a new folder with --out")
    return target


def build(out: Path, *, version: str = "", strict: bool = False) -> Path:
    """Build the site, and return the folder of its start page."""
    target = free(out / version)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        stage(folder, version)
        command = [sys.executable, "-m", "zensical", "build", "--clean", "-f", str(folder / "zensical.toml")]
        if subprocess.run([*command, "--strict"] if strict else command, check=False, cwd=DOCS).returncode:
            sys.exit("the site was not built: see the lines above")
        make_local(folder / "site")
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(folder / "site", target)
    if version:
        add_version(out, version)
    return target


def main() -> int:
    """Build the site, and print its faults."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "site", help="default: build/site")
    parser.add_argument("--strict", action="store_true", help="fail at warnings and at faults of links")
    parser.add_argument("--version", default="", help="build into a folder of this version, with a menu of versions")
    options = parser.parse_args()
    if options.version and not re.fullmatch(r"\w[\w.+-]*", options.version):
        parser.error(f"--version is a name such as 0.1, not {options.version!r}")
    folder = build(options.out, version=options.version, strict=options.strict)
    report = site_links.report(folder)
    print("\n".join([*report.faults, f"{folder}: {report}"]))
    return 1 if options.strict and report.faults else 0


if __name__ == "__main__":
    sys.exit(main())
