"""The managers of files that programs use, and the driver, the backends and the errors that they ask."""

import os
import subprocess
import sys
import threading
import types

import pytest

import tilewright as triton
from tilewright import knobs
from tilewright.backends import backends
from tilewright.backends.compiler import BaseBackend, GPUTarget
from tilewright.backends.driver import DriverBase
from tilewright.runtime import cache, driver, errors

KEY = "00ff" * 16


@pytest.fixture(autouse=True)
def folders(tmp_path):
    with knobs.cache.scope(), knobs.redis.scope():
        knobs.cache.dir = str(tmp_path / "cache")
        knobs.cache.dump_dir = str(tmp_path / "dump")
        knobs.cache.override_dir = str(tmp_path / "override")
        yield tmp_path


class Store(cache.RemoteCacheBackend):
    """A store in memory."""

    files: dict = {}  # noqa: RUF012

    def get(self, filenames):
        return {name: self.files[self.key, name] for name in filenames if (self.key, name) in self.files}

    def put(self, filename, data):
        self.files[self.key, filename] = data


def test_files_and_groups(folders):
    manager = cache.get_cache_manager(KEY)
    assert manager.get_file("a.ptx") is None and not manager.has_file("a.ptx")
    path = manager.put("text", "a.ptx")
    assert path.startswith(str(folders / "cache")) and open(path).read() == "text"
    assert manager.put(b"\0", "a.cubin") == manager.get_file("a.cubin")
    assert manager.get_group("a.json") is None
    manager.put_group("a.json", {"a.ptx": path, "gone": "/nowhere"})
    assert cache.get_cache_manager(KEY).get_group("a.json") == {"a.ptx": path}
    # Nothing is left of the writing.
    assert sorted(os.listdir(manager.cache_dir)) == ["__grp__a.json", "a.cubin", "a.ptx"]


def test_dumps_and_overrides(folders):
    dumped = cache.get_dump_manager(KEY).put("text", "a.ptx")
    assert dumped.startswith(str(folders / "dump"))
    manager = cache.get_override_manager(KEY)
    assert manager.get_file("a.ptx") is None and not (folders / "override").exists()
    with pytest.raises(RuntimeError, match="only reads"):
        manager.put("text", "a.ptx")


def test_many_threads_write_one_file():
    manager, bad = cache.get_cache_manager(KEY), []

    def write(letter):
        for _ in range(50):
            with open(manager.put(letter * 5000, "a")) as file:
                if len(set(file.read())) != 1:
                    bad.append(letter)

    threads = [threading.Thread(target=write, args=(letter,)) for letter in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not bad


def test_another_manager():
    class Mine(cache.FileCacheManager):
        pass

    knobs.cache.manager_class = Mine
    assert type(cache.get_cache_manager(KEY)) is Mine


def test_a_remote_store(folders):
    with pytest.raises(RuntimeError, match="TRITON_REMOTE_CACHE_BACKEND"):
        cache.RemoteCacheManager("key")
    knobs.cache.remote_manager_class = Store
    manager = cache.RemoteCacheManager("key")
    manager.put_group("a.json", {"a.ptx": manager.put("text", "a.ptx"), "b": manager.put(b"\1", "b")})
    assert Store.files["key", "a.ptx"] == b"text"
    # Another machine.
    knobs.cache.dir = str(folders / "elsewhere")
    there = cache.RemoteCacheManager("key")
    group = there.get_group("a.json")
    assert {name: open(path, "rb").read() for name, path in group.items()} == {"a.ptx": b"text", "b": b"\1"}
    assert there.get_file("none") is None and cache.RemoteCacheManager("other").get_group("a.json") is None
    assert group["a.ptx"].startswith(str(folders / "elsewhere"))
    # Dumps stay here.
    assert cache.RemoteCacheManager("key", dump=True).get_file("a.ptx") is None


def test_redis(monkeypatch):
    class Redis:
        def __init__(self, host, port):
            assert (host, port) == ("there", 1)
            self.files = {}

        def mget(self, names):
            return [self.files.get(name) for name in names]

        def set(self, name, data):
            self.files[name] = data

    monkeypatch.setitem(sys.modules, "redis", types.SimpleNamespace(Redis=Redis))
    knobs.redis.host, knobs.redis.port, knobs.redis.key_format = "there", 1, "{filename}@{key}"
    store = cache.RedisRemoteCacheBackend("key")
    store.put("a", b"text")
    assert store.get(["a", "b"]) == {"a": b"text"} and store._redis.files == {"a@key": b"text"}


def test_the_key_of_the_compiler(monkeypatch):
    key = cache.triton_key()
    program = "import tilewright.runtime.cache as cache; print(cache.triton_key())"
    assert (
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout.strip() == key
    )
    keys = {key}
    for name in ("BUILD_ID", "__version__"):
        with monkeypatch.context() as other:
            other.setattr(cache._tilewright, name, "another")
            keys.add(cache.triton_key())
    assert len(keys) == 3 and triton.__version__ in key


def test_keys():
    keys = {
        cache.make_so_cache_key("v", {"a": ty}, {}, (), **more)
        for ty in ("*fp32", "i32")
        for more in ({}, {"b": 1})
    }
    assert len(keys) == 4 and cache.make_so_cache_key("v", {"a": "*fp32"}, {}, ()) == cache.make_so_cache_key(
        "v", {"a": "*i8"}, {}, ()
    )


def test_the_driver(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "ptxsim")
    assert driver.active.get_current_target() == GPUTarget("cuda", 90, 32)
    monkeypatch.setenv("TILEWRIGHT_TARGET", "cuda:80")
    assert driver.active.get_current_target() == GPUTarget("cuda", 80, 32)
    assert driver.active.map_python_to_cpp_type("*fp32") == "CUdeviceptr"
    assert driver.active.map_python_to_cpp_type("i32") == "int32_t"
    with pytest.raises(AttributeError, match=r"not supported yet: driver\.active\.utils\.load_binary"):
        driver.active.utils.load_binary

    class Mine(DriverBase):
        @classmethod
        def is_active(cls):
            return True

        map_python_to_cpp_type = get_active_torch_device = get_benchmarker = None

        def get_current_target(self):
            return GPUTarget("mine", 1, 2)

    before = driver.active
    driver.set_active(Mine())
    try:
        assert driver.active.get_current_target().backend == "mine" and driver.is_active()
    finally:
        driver.reset_active()
    assert driver.active is before is driver.default


def test_backends():
    nvidia = backends["nvidia"]
    assert issubclass(nvidia.compiler, BaseBackend) and issubclass(nvidia.driver, DriverBase)
    assert nvidia.compiler.supports_target(GPUTarget("cuda", 90, 32))
    assert isinstance(driver.active, nvidia.driver)
    with pytest.raises(NotImplementedError, match="not supported yet"):
        nvidia.compiler(GPUTarget("cuda", 90, 32)).add_stages({}, None)
    with pytest.raises(ValueError, match="does not compile for"):
        nvidia.compiler(GPUTarget("hip", "gfx942", 64))
    assert GPUTarget.parse("cuda:90").name == "cuda:90" and GPUTarget.parse("interp").name == "interp"


def test_errors():
    for name in ("OutOfResources", "PTXASError", "InterpreterError", "AutotunerError", "CompilationError"):
        assert issubclass(getattr(errors, name), triton.TritonError)
    made = triton.OutOfResources(300, 200, "shared memory")
    assert (made.required, made.limit, made.name) == (300, 200, "shared memory")
    assert "shared memory: 300 are needed, and the hardware has 200" in str(made)
    assert str(triton.OutOfResources("text")) == "text" and triton.OutOfResources("text").required is None
    from tilewright.compiler.errors import CompileTimeAssertionFailure, UnsupportedLanguageConstruct

    assert issubclass(CompileTimeAssertionFailure, triton.CompilationError)
    assert issubclass(UnsupportedLanguageConstruct, triton.CompilationError)
    assert not issubclass(CompileTimeAssertionFailure, UnsupportedLanguageConstruct)
