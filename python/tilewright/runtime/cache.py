"""Folders of compiled kernels as programs use them: managers that put, get and group files under a key.

The cache of our own compilations is kept by the compiler and is none of these (:mod:`tilewright.knobs` says where it is);
``compiled.metadata_group``, dumps and programs' own files go through them.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import tempfile
from abc import ABC, abstractmethod
from typing import Any

from .. import _tilewright, knobs

__all__ = [
    "CacheManager",
    "FileCacheManager",
    "RedisRemoteCacheBackend",
    "RemoteCacheBackend",
    "RemoteCacheManager",
    "default_cache_dir",
    "default_dump_dir",
    "default_override_dir",
    "get_cache_key",
    "get_cache_manager",
    "get_dump_manager",
    "get_override_manager",
    "make_so_cache_key",
    "triton_key",
]


def default_cache_dir() -> str:
    """The folder of caches, where nothing else is chosen."""
    return knobs.cache.get_triton_dir("cache")


def default_dump_dir() -> str:
    """The folder of dumps, where nothing else is chosen."""
    return knobs.cache.get_triton_dir("dump")


def default_override_dir() -> str:
    """The folder of overrides, where nothing else is chosen."""
    return knobs.cache.get_triton_dir("override")


class CacheManager(ABC):
    """Files under one key. ``TRITON_CACHE_MANAGER=module:class`` chooses another class than :class:`FileCacheManager`."""

    def __init__(self, key: str, override: bool = False, dump: bool = False):
        self.key = key

    @abstractmethod
    def get_file(self, filename: str) -> str | None:
        """The path of a file, if it is there."""

    @abstractmethod
    def put(self, data, filename: str, binary: bool = True) -> str:
        """Writes a file, bytes or what ``str`` gives, and gives its path."""

    @abstractmethod
    def get_group(self, filename: str) -> dict[str, str] | None:
        """The files of a group by name, as far as they are there; ``None`` without the group."""

    @abstractmethod
    def put_group(self, filename: str, group: dict[str, str]) -> str:
        """Notes files, by name, as a group."""


def _group_name(filename: str) -> str:
    return f"__grp__{filename}"


class FileCacheManager(CacheManager):
    """Files in a folder. A file appears whole or not at all, however many processes write it."""

    def __init__(self, key: str, override: bool = False, dump: bool = False):
        super().__init__(key, override, dump)
        base = knobs.cache.dump_dir if dump else knobs.cache.override_dir if override else knobs.cache.dir
        if not base:
            raise RuntimeError("there is no folder for the cache: set TRITON_CACHE_DIR")
        self.cache_dir = os.path.join(base, key)
        self.lock_path = None if override else os.path.join(self.cache_dir, "lock")
        if not override:
            # The compiler refuses a folder into which others may write.
            os.makedirs(base, mode=0o700, exist_ok=True)
            os.makedirs(self.cache_dir, exist_ok=True)

    def _path(self, filename: str) -> str:
        return os.path.join(self.cache_dir, filename)

    def has_file(self, filename: str) -> bool:
        """Whether a file is there."""
        return os.path.exists(self._path(filename))

    def get_file(self, filename: str) -> str | None:
        return self._path(filename) if self.has_file(filename) else None

    def put(self, data, filename: str, binary: bool = True) -> str:
        if self.lock_path is None:
            raise RuntimeError("a manager of overrides only reads")
        data = data if isinstance(data, bytes) else str(data).encode()
        # In the same file system as its place, so that the move is one step.
        folder = tempfile.mkdtemp(prefix="tmp.", dir=self.cache_dir)
        try:
            path = os.path.join(folder, filename)
            with open(path, "wb") as file:
                file.write(data)
            os.replace(path, self._path(filename))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return self._path(filename)

    def get_group(self, filename: str) -> dict[str, str] | None:
        path = self.get_file(_group_name(filename))
        if path is None:
            return None
        with open(path) as file:
            group = json.load(file).get("child_paths")
        return None if group is None else {name: path for name, path in group.items() if os.path.exists(path)}

    def put_group(self, filename: str, group: dict[str, str]) -> str:
        return self.put(json.dumps({"child_paths": group}), _group_name(filename), binary=False)


class RemoteCacheBackend(ABC):
    """Where a :class:`RemoteCacheManager` keeps files: anything that has bytes by name."""

    def __init__(self, key: str):
        self.key = key

    @abstractmethod
    def get(self, filenames: list[str]) -> dict[str, bytes]:
        """The files of these names that are there."""

    @abstractmethod
    def put(self, filename: str, data: bytes) -> None:
        """Keeps a file."""


class RedisRemoteCacheBackend(RemoteCacheBackend):
    """Files in Redis, at ``knobs.redis``."""

    def __init__(self, key: str):
        import redis

        super().__init__(key)
        self._redis = redis.Redis(host=knobs.redis.host, port=knobs.redis.port)

    def _name(self, filename: str) -> str:
        return knobs.redis.key_format.format(key=self.key, filename=filename)

    def get(self, filenames: list[str]) -> dict[str, bytes]:
        found = self._redis.mget([self._name(filename) for filename in filenames])
        return {filename: data for filename, data in zip(filenames, found) if data is not None}

    def put(self, filename: str, data: bytes) -> None:
        self._redis.set(self._name(filename), data)


class RemoteCacheManager(CacheManager):
    """Files in a remote store, brought into a local folder when they are asked for.

    ``TRITON_REMOTE_CACHE_BACKEND=module:class`` names the store. Dumps and overrides stay local.
    """

    def __init__(self, key: str, override: bool = False, dump: bool = False):
        super().__init__(key, override, dump)
        store = knobs.cache.remote_manager_class
        if store is None:
            raise RuntimeError("a RemoteCacheManager needs TRITON_REMOTE_CACHE_BACKEND=module:class")
        self._store = store(key)
        self._local = FileCacheManager(key, override=override, dump=dump)
        self._only_local = dump or override

    def get_file(self, filename: str) -> str | None:
        if self._only_local:
            return self._local.get_file(filename)
        # The store is asked even for what is here already, so that it knows what is in use.
        data = self._store.get([filename]).get(filename)
        return None if data is None else self._local.put(data, filename)

    def put(self, data, filename: str, binary: bool = True) -> str:
        data = data if isinstance(data, bytes) else str(data).encode()
        if not self._only_local:
            self._store.put(filename, data)
        return self._local.put(data, filename)

    def get_group(self, filename: str) -> dict[str, str] | None:
        if self._only_local:
            return self._local.get_group(filename)
        path = self.get_file(_group_name(filename))
        if path is None:
            return None
        with open(path) as file:
            names = json.load(file).get("child_paths")
        if names is None:
            return None
        return {name: self._local.put(data, name) for name, data in self._store.get(list(names)).items()}

    def put_group(self, filename: str, group: dict[str, str]) -> str:
        if self._only_local:
            return self._local.put_group(filename, group)
        return self.put(json.dumps({"child_paths": sorted(group)}), _group_name(filename), binary=False)


def _base32(key: str) -> str:
    """A key in hexadecimal digits as a short name of a folder."""
    return base64.b32encode(bytes.fromhex(key)).decode().rstrip("=")


def _manager(key: str, **of: bool) -> CacheManager:
    return (knobs.cache.manager_class or FileCacheManager)(_base32(key), **of)


def get_cache_manager(key: str) -> CacheManager:
    """The files under a key, which is a hash in hexadecimal digits."""
    return _manager(key)


def get_override_manager(key: str) -> CacheManager:
    """The files that are to take the place of stages."""
    return _manager(key, override=True)


def get_dump_manager(key: str) -> CacheManager:
    """The stages that are written when ``TRITON_KERNEL_DUMP=1``."""
    return _manager(key, dump=True)


def make_so_cache_key(
    version_hash: str, signature: dict[str, str], constants: Any, ids: Any, **kwargs
) -> str:
    """A key for a library that a program builds for a signature."""
    types = "".join("ptr" if ty.startswith("*") else ty for ty in signature.values())
    text = "-".join([f"{version_hash}-{types}-{constants}-{ids}", *map(str, kwargs.values())])
    return _base32(hashlib.sha256(text.encode()).hexdigest())


def triton_key() -> str:
    """Changes with the compiler's sources."""
    return f"tilewright-{_tilewright.__version__}-{_tilewright.BUILD_ID}"


def get_cache_key(src, backend, backend_options, env_vars: dict[str, str]) -> str:
    """A key for a source, a backend and its options, as programs with caches of their own make one."""
    return f"{triton_key()}-{src.hash()}-{backend.hash()}-{backend_options.hash()}-{sorted(env_vars.items())}"
