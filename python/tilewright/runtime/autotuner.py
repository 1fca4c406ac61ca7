"""``autotune`` and ``heuristics``: meta-parameters that are found by measuring, or computed from the arguments."""

from __future__ import annotations

import inspect
import numbers
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial

from .. import knobs
from .._tilewright import Progress, call_error_text, option_defaults
from .errors import AutotunerError, CompilationError, OutOfResources, PTXASError, hint  # noqa: F401
from .jit import KernelInterface

_DEFAULTS = option_defaults()

#: The launch options of a configuration.
_OPTIONS = ("num_warps", "num_ctas", "num_stages", "maxnreg", "ir_override")

#: The time of a configuration that doesn't work.
_NEVER = float("inf")

#: A configuration whose quickest fifth of a few runs is slower than this many times the best one's cannot win.
_CLOSE = 1.25

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from ._ahead import Ahead


class Config:
    """One choice of meta-parameters for :func:`autotune`.

    :param kwargs: values of the kernel's ``tl.constexpr`` parameters.
    :param ir_override: a file that takes the place of the stage that its extension names: ``.ttir``, ``.ttgir``, ``.llir``, ``.ptx``, ``.cubin``.
    :param pre_hook: called with a dict of all arguments before each launch with this configuration, and before it is compiled.
    """

    def __init__(
        self,
        kwargs: Mapping[str, Any],
        num_warps: int = _DEFAULTS["num_warps"],
        num_stages: int = _DEFAULTS["num_stages"],
        num_ctas: int = _DEFAULTS["num_ctas"],
        maxnreg: int | None = _DEFAULTS["maxnreg"],
        pre_hook: Callable[[dict[str, Any]], Any] | None = None,
        ir_override: str | None = None,
    ):
        self.kwargs = dict(kwargs)
        self.num_warps = num_warps
        self.num_stages = num_stages
        self.num_ctas = num_ctas
        self.maxnreg = maxnreg
        self.pre_hook = pre_hook
        self.ir_override = ir_override

    def all_kwargs(self) -> dict[str, Any]:
        """Meta-parameters and launch options together."""
        given = dict(self.kwargs)
        for name in _OPTIONS:
            if (value := getattr(self, name)) is not None:
                given[name] = value
        return given

    def _identity(self):
        return (*self.all_kwargs().items(), self.pre_hook)

    def __hash__(self):
        return hash(self._identity())

    def __eq__(self, other):
        return isinstance(other, Config) and self._identity() == other._identity()

    def __str__(self):
        return ", ".join(f"{k}: {v}" for k, v in (self.all_kwargs() | {"maxnreg": self.maxnreg}).items())

    __repr__ = __str__


class Autotuner(KernelInterface):
    """A kernel whose configuration is chosen by measuring; made by :func:`autotune`.

    ``cache`` maps what distinguishes calls (values of the key arguments, dtypes of the arrays) to the configuration that
    won; ``best_config`` is that of the last call, ``configs_timings`` the last measurement, ``nargs`` the positional arguments of
    a call that is under way, by name. Subclasses may replace :meth:`run`, :meth:`prune_configs` and ``_bench``.
    """

    def __init__(
        self,
        fn,
        arg_names,
        configs,
        key,
        reset_to_zero,
        restore_value,
        pre_hook=None,
        post_hook=None,
        prune_configs_by=None,
        warmup=None,
        rep=None,
        use_cuda_graph=False,
        do_bench=None,
        cache_results=False,
    ):
        self.fn = fn
        self.arg_names = arg_names
        self.keys = _names(key)
        self.configs = list(configs) if configs else [Config({})]
        for wrong in (config for config in self.configs if not hasattr(config, "all_kwargs")):
            raise TypeError(
                f"@autotune of {fn.__name__}: configs is a list of triton.Config, and {wrong!r} is none"
            )
        for name, value in ("warmup", warmup), ("rep", rep):
            if value is not None and not (isinstance(value, numbers.Real) and value >= 0):
                raise TypeError(f"@autotune of {fn.__name__}: {name} is milliseconds, not {value!r}")
        for name, value in ("pre_hook", pre_hook), ("post_hook", post_hook), ("do_bench", do_bench):
            if value is not None and not callable(value):
                raise TypeError(f"@autotune of {fn.__name__}: {name} is a function, not {value!r}")
        self.cache: dict[tuple, Config] = {}
        self.cache_results = cache_results or knobs.autotuning.cache
        self.best_config: Config | None = None
        self.bench_time = None
        self.configs_timings = None
        self.nargs = None
        self.num_warmups, self.num_reps = warmup, rep
        self.use_cuda_graph = use_cuda_graph
        self._do_bench = do_bench
        self.reset_to_zero = _names(reset_to_zero)
        self.restore_value = _names(restore_value)
        prune = prune_configs_by or {}
        for name in prune.keys() - {"perf_model", "top_k", "early_config_prune"}:
            # PyTorch gives `configs_top_k`, which Triton does not look at either.
            warnings.warn(
                f"@autotune of {fn.__name__}: prune_configs_by takes perf_model, top_k and early_config_prune; nothing reads {name!r}",
                RuntimeWarning,
                stacklevel=3,
            )
        if "top_k" in prune and prune.get("perf_model") is None:
            warnings.warn(
                f"@autotune of {fn.__name__}: top_k of prune_configs_by changes nothing without perf_model, which says which are the best",
                RuntimeWarning,
                stacklevel=3,
            )
        self.perf_model = prune.get("perf_model")
        self.configs_top_k = prune.get("top_k", 1.0)
        self.early_config_prune = prune.get("early_config_prune")
        # Before and after each measured run. Before the call that the user made the first one is called once more, with
        # `reset_only=True`, when there was something to measure.
        self.user_defined_pre_hook = pre_hook is not None
        self.user_defined_post_hook = post_hook is not None
        self.pre_hook = pre_hook or self._reset_arrays
        self.post_hook = post_hook or self._restore_arrays
        self.restore_copies: dict = {}
        self._failures: list = []
        # While configurations are measured: their kernels, whether a rough time will do, and the arguments of the run.
        self._ahead = None
        self._rough = False
        self._measured: dict = {}
        self.base_fn = fn
        while not inspect.isfunction(self.base_fn):
            self.base_fn = self.base_fn.fn
        self.__name__ = self.base_fn.__name__
        self.__doc__ = self.base_fn.__doc__
        for name in self.reset_to_zero + self.restore_value:
            if name not in self.arg_names:
                raise ValueError(
                    f"@autotune of {self.__name__}: no parameter is named {name!r}; there are {self.arg_names}"
                )
        for name in self.keys:
            if name not in self.arg_names:
                warnings.warn(
                    f"@autotune of {self.__name__}: no parameter is named {name!r}, which the key lists; {hint(name, self.arg_names)}",
                    RuntimeWarning,
                    stacklevel=3,
                )

    def _check_meta(self, chosen, meta):
        if conflict := chosen.keys() & meta.keys():
            raise ValueError(
                call_error_text(
                    f"{', '.join(sorted(conflict))} of {self.__name__} is chosen by @autotune, and was given in the call",
                    "give it in one of the two places",
                )
            )

    def _reset_arrays(self, nargs, reset_only=False):
        for name in self.reset_to_zero + self.restore_value:
            if isinstance(nargs[name], numbers.Number):
                raise TypeError(
                    f"@autotune of {self.__name__}: {name} is {nargs[name]!r}; reset_to_zero and restore_value are for arrays"
                )
        for name in self.reset_to_zero:
            _fill_zero(nargs[name])
        if not reset_only:
            self.restore_copies = {name: _copy(nargs[name]) for name in self.restore_value}

    def _restore_arrays(self, nargs, exception=None):
        for name, saved in self.restore_copies.items():
            _assign(nargs[name], saved)
        self.restore_copies = {}

    def _bench(self, *args, config, **meta):
        """The times of a configuration, as quantiles (median first); infinite where it doesn't work."""
        chosen = config.all_kwargs()
        self._check_meta(chosen, meta)
        current = meta | chosen
        full = self._measured = self.nargs | current

        def run():
            if config.pre_hook is not None:
                config.pre_hook(full)
            self.pre_hook(full)
            try:
                if self._ahead is not None:
                    self._ahead.settle(config)
                self.fn.run(*args, **current)
            except Exception as error:
                self.post_hook(full, exception=error)
                raise
            self.post_hook(full, exception=None)

        try:
            return self.do_bench(run, quantiles=(0.5, 0.2, 0.8))
        except (OutOfResources, CompilationError) as error:
            # A configuration may ask for too much, or fail an assertion made at compile time; the others go on.
            self._failures.append((config, error))
            return [_NEVER] * 3
        finally:
            self._measured = {}

    @property
    def do_bench(self) -> Callable:
        """What times a run: ``do_bench(run, quantiles) -> times``."""
        if self._do_bench is not None:
            return self._do_bench
        from .. import testing

        if not testing._on_gpu((self._measured or self.nargs or {}).values()):
            return _time_once
        if self._rough:
            return lambda run, quantiles: testing.do_bench(run, warmup=1, rep=5, quantiles=quantiles)
        if self.use_cuda_graph:
            rep = self.num_reps or 20
            return lambda run, quantiles: testing.do_bench_cudagraph(run, rep=rep, quantiles=quantiles)
        warmup = 25 if self.num_warmups is None else self.num_warmups
        rep = 100 if self.num_reps is None else self.num_reps
        return lambda run, quantiles: testing.do_bench(run, warmup=warmup, rep=rep, quantiles=quantiles)

    @do_bench.setter
    def do_bench(self, measure: Callable | None) -> None:
        # A cached property in Triton, which programs replace on a tuner that they have.
        self._do_bench = measure

    def _begin_all(self, candidates, args, kwargs, warmup: bool = False) -> Ahead:
        """Begins to compile configurations side by side."""
        from ._ahead import Ahead

        def call(config):
            current = kwargs | config.all_kwargs()
            # It may change the arguments, a descriptor's block for instance.
            if config.pre_hook is not None and not warmup:
                config.pre_hook(self.nargs | current)
            return args, current

        calls = ((config, partial(call, config)) for config in candidates)
        return Ahead(self.fn, calls, len(candidates), warmup)

    def _measures_itself(self, candidates, kwargs) -> bool:
        """Whether how long to measure is for us to say: neither the program nor a subclass has a say in it."""
        from .. import testing

        cls = type(self)
        return (
            len(candidates) > 1
            and (self._do_bench, self.num_warmups, self.num_reps) == (None, None, None)
            and not self.use_cuda_graph
            and cls._bench is Autotuner._bench
            and cls.do_bench is Autotuner.do_bench
            and testing._on_gpu((self.nargs | kwargs).values())
        )

    def _measure(self, candidates, args, kwargs) -> Config:
        """The fastest of these configurations.

        All of them compile side by side. Times that decide are taken when nothing compiles any more; until then, those of a few
        runs tell which configurations can't win.
        """
        self._failures = []
        start = time.perf_counter()

        def bench(config):
            progress.now(str(config))
            times = self._bench(*args, config=config, **kwargs)
            progress.step()
            # A `do_bench` of the program's own may give one number.
            return [float(times)] * 3 if isinstance(times, numbers.Real) else times

        progress = _progress(self.__name__, len(candidates))
        with self._begin_all(candidates, args, kwargs) as self._ahead:
            try:
                close = candidates
                timings = {}
                if self._measures_itself(candidates, kwargs):
                    self._rough = True
                    timings = {config: bench(config) for config in candidates}
                    self._rough = False
                    limit = _CLOSE * min(times[1] for times in timings.values())
                    close = [config for config, times in timings.items() if times[1] <= limit < _NEVER]
                    progress.more(len(close))
                self._ahead.settle_all(progress)
                timings |= {config: bench(config) for config in close}
            finally:
                self._ahead, self._rough = None, False
                progress.end()
        self.bench_time = time.perf_counter() - start
        # Times of few runs and of many are not compared with each other.
        config = min(close or timings, key=lambda c: timings[c][0])
        if timings[config][0] == _NEVER and self._failures:
            first, error = self._failures[0]
            raise type(error)(
                f"@autotune of {self.__name__}: none of {len(candidates)} configurations works. The first ({first}):\n{error}"
            )
        self.pre_hook(self.nargs | kwargs | config.all_kwargs(), reset_only=True)
        self.configs_timings = timings
        return config

    def _choose(self, key, args, kwargs):
        if config := self.cache.get(key):
            return config
        candidates = self.prune_configs(kwargs)
        if not candidates:
            raise AutotunerError(f"@autotune of {self.__name__}: pruning left no configuration")
        # What a hook does is in no key.
        kept = self.cache_results and not any(c.pre_hook for c in candidates)
        results = None
        if kept:
            from . import tuning_results

            results = tuning_results.of(self, key, candidates)
        found = results.read(candidates) if results is not None else None
        if found is not None:
            config, self.configs_timings = found
        else:
            config = self._measure(candidates, args, kwargs)
            if results is not None:
                results.write(self.configs_timings)
            if knobs.autotuning.print:
                print(
                    f"autotuning {self.__name__} for {key} took {self.bench_time:.2f} s; the best is {config}"
                )
        self.cache[key] = config
        return config

    def run(self, *args, **kwargs):
        """Chooses a configuration for these arguments, the first time by measuring, and launches with it."""
        self.nargs = dict(zip(self.arg_names, args, strict=False))
        try:
            if len(self.configs) > 1:
                named, names = self.nargs | kwargs, set(self.arg_names)
                key = [named[k] for k in self.keys if k in named and k in names]
                key += [str(v.dtype) for k, v in named.items() if k in names and hasattr(v, "dtype")]
                config = self._choose(tuple(key), args, kwargs)
            else:
                config = self.configs[0]
            self.best_config = config
            chosen = config.all_kwargs()
            self._check_meta(chosen, kwargs)
            if config.pre_hook is not None:
                config.pre_hook(self.nargs | kwargs | chosen)
            return self.fn.run(*args, **kwargs, **chosen)
        finally:
            self.nargs = None

    def prune_configs(self, kwargs) -> list[Config]:
        """The configurations that are worth measuring for ``nargs`` and these keyword arguments."""
        candidates = self.configs
        if self.early_config_prune is not None:
            candidates = list(self.early_config_prune(candidates, self.nargs, **kwargs))
        if self.perf_model is not None:
            top_k = self.configs_top_k
            if isinstance(top_k, float) and top_k <= 1.0:
                top_k = max(1, int(len(self.configs) * top_k))
            elif not isinstance(top_k, int):
                raise TypeError(
                    f"@autotune of {self.base_fn.__name__}: top_k is a number of configurations, or a fraction of them up to 1.0, not {top_k!r}"
                )
            if len(candidates) > top_k:
                estimate = {c: self.perf_model(**self.nargs, **kwargs, **c.all_kwargs()) for c in candidates}
                candidates = sorted(candidates, key=estimate.__getitem__)[:top_k]
        return candidates

    def warmup(self, *args, **kwargs):
        """Compiles every configuration that is worth measuring; gives the compiled kernels."""
        self.nargs = dict(zip(self.arg_names, args, strict=False))
        try:
            candidates = self.prune_configs(kwargs)
            with self._begin_all(candidates, args, kwargs, warmup=True) as ahead:
                kernels = []
                for config in candidates:
                    ahead.settle(config)
                    kernels.append(self.fn.warmup(*args, **kwargs, **config.all_kwargs()))
                return kernels
        finally:
            self.nargs = None


class Heuristics(KernelInterface):
    """A kernel some of whose meta-parameters are computed from its arguments; made by :func:`heuristics`."""

    def __init__(self, fn, arg_names, values):
        self.fn = fn
        self.arg_names = arg_names
        self.values = values
        self.__name__ = getattr(fn, "__name__", "kernel")
        self.__doc__ = getattr(fn, "__doc__", None)

    def _computed(self, args, kwargs):
        named = dict(zip(self.arg_names, args, strict=False)) | kwargs
        for name, rule in self.values.items():
            named[name] = kwargs[name] = rule(named)
        return kwargs

    def run(self, *args, **kwargs):
        """Computes the meta-parameters and launches."""
        return self.fn.run(*args, **self._computed(args, kwargs))

    def _begin(self, ahead, warmup, args, kwargs):
        begin = getattr(self.fn, "_begin", None)
        if begin is None or type(self).run is not Heuristics.run:
            return None
        return begin(ahead, warmup, args, self._computed(args, dict(kwargs)))

    def warmup(self, *args, **kwargs):
        """Computes the meta-parameters and compiles."""
        return self.fn.warmup(*args, **self._computed(args, kwargs))


def autotune(
    configs: Sequence[Config],
    key: Sequence[str],
    prune_configs_by: Mapping[str, Any] | None = None,
    reset_to_zero: Sequence[str] | None = None,
    restore_value: Sequence[str] | None = None,
    pre_hook: Callable[..., Any] | None = None,
    post_hook: Callable[..., Any] | None = None,
    warmup: int | None = None,
    rep: int | None = None,
    use_cuda_graph: bool = False,
    do_bench: Callable[..., Any] | None = None,
    cache_results: bool = False,
) -> Callable[[KernelInterface], Autotuner]:
    """Chooses the fastest of ``configs`` for each new combination of the ``key`` arguments.

    The kernel runs many times while it is measured: name the arrays it accumulates into in ``reset_to_zero`` (filled
    with zeros before each run) or ``restore_value`` (put back after each).

    All configurations compile side by side (``TILEWRIGHT_AUTOTUNE_THREADS``). On a GPU, unless ``warmup``, ``rep``, ``do_bench`` or
    ``use_cuda_graph`` says how to measure, each is timed by a few runs as soon as it is compiled, and those within a quarter of the best one
    for long when nothing compiles any more; otherwise all are measured as asked, when all are compiled.

    :param configs: a list of :class:`Config`.
    :param key: names of the arguments whose values (besides the arrays' dtypes) call for measuring anew; of an unknown one a warning says so.
    :param prune_configs_by: ``early_config_prune(configs, named_args, **kwargs)`` gives the configurations to consider;
        ``perf_model(**args)`` estimates a time, and the best ``top_k`` (a count or a fraction) are measured.
    :param pre_hook: ``pre_hook(args, reset_only=False)`` is called before each measured run with a dict of the arguments, the
        configuration's meta-parameters and launch options included, in place of what ``reset_to_zero`` and
        ``restore_value`` ask for; and with ``reset_only=True`` once the configuration is chosen, before it runs.
    :param post_hook: ``post_hook(args, exception)`` is called after each measured run in place of what ``restore_value`` asks for;
        ``exception`` is ``None`` or why the run failed.
    :param warmup: milliseconds of warming up, on a GPU and without ``use_cuda_graph``. (On the CPU a configuration runs twice, and the second run is timed.)
    :param rep: milliseconds of measuring, on a GPU.
    :param use_cuda_graph: measures launches from a CUDA graph, on a GPU.
    :param do_bench: a function ``(run, quantiles) -> times`` that measures instead.
    :param cache_results: keeps the results on disk (so does ``TRITON_CACHE_AUTOTUNING=1``), for this source, these configurations and
        arguments, on this device with these versions. Not where a configuration has a ``pre_hook``.
    """

    def decorate(fn):
        _check_kernel(fn, "@autotune")
        return Autotuner(
            fn,
            fn.arg_names,
            configs,
            key,
            reset_to_zero,
            restore_value,
            pre_hook=pre_hook,
            post_hook=post_hook,
            prune_configs_by=prune_configs_by,
            warmup=warmup,
            rep=rep,
            use_cuda_graph=use_cuda_graph,
            do_bench=do_bench,
            cache_results=cache_results,
        )

    return decorate


def heuristics(
    values: Mapping[str, Callable[[dict[str, Any]], Any]],
) -> Callable[[KernelInterface], Heuristics]:
    """Computes meta-parameters from the arguments: ``values`` maps a name to a function of the dict of arguments."""
    for name, rule in values.items():
        if not callable(rule):
            raise TypeError(f"@heuristics: {name} is a function of the arguments, not {rule!r}")

    def decorate(fn):
        _check_kernel(fn, "@heuristics")
        return Heuristics(fn, fn.arg_names, values)

    return decorate


def _names(given) -> list:
    """Names of parameters; a text is one."""
    return [given] if isinstance(given, str) else list(given or [])


def _check_kernel(fn, decorator: str):
    if not hasattr(fn, "arg_names"):
        raise TypeError(
            f"{decorator} decorates a kernel, and {getattr(fn, '__name__', fn)!s} is none: put it above @triton.jit"
        )


class _Silence:
    """A bar that nobody wants to see."""

    def _nothing(self, *_):
        pass

    now = step = more = end = _nothing


def _progress(name: str, steps: int):
    """A bar, where somebody may look at it."""
    # Without a window there may be no stderr at all.
    if knobs.autotuning.progress and sys.stderr is not None and sys.stderr.isatty():
        return Progress(f"autotuning {name}", steps)
    return _Silence()


def _time_once(run, quantiles=None):
    """Milliseconds of one run after one that compiles: enough to choose by on the CPU, where a run takes long."""
    run()
    start = time.perf_counter()
    run()
    elapsed = (time.perf_counter() - start) * 1e3
    return [elapsed] * len(quantiles) if quantiles else elapsed


def _fill_zero(array):
    array.zero_() if hasattr(array, "zero_") else array.fill(0)


def _copy(array):
    return array.clone() if hasattr(array, "clone") else array.copy()


def _assign(array, values):
    if hasattr(array, "copy_"):
        array.copy_(values)
    else:
        array[...] = values
