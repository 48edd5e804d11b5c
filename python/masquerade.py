# SPDX-License-Identifier: MIT
"""Masquerade from Python: one file over the C interface (library/masquerade.h), without a build step. Needs NumPy.

    import masquerade
    run = masquerade.Run.open("runs/univae-001")
    z = run.encode(["a red cup", "a blue cup"])          # float64, (2, size)
    print(run.decode(z.mean(axis=0, keepdims=True)))     # a sentence between the two

The shared library is $MASQUERADE_LIBRARY, or the first libmasquerade.so that is found beside this file, in build/release of
the project, in ../.., or where the system looks for libraries. Options are passed by name: `--no-repeat 3` of ./generate is
no_repeat=3, and the flag `--parallel` is parallel=True. Every failure raises masquerade.Error with the message of the
library; wrong arguments and settings raise masquerade.Misuse, a subclass. Ctrl-C stops training after the step that runs;
any other call goes on to its end before KeyboardInterrupt is raised.
"""
from __future__ import annotations

import contextlib
import ctypes
import json
import operator
import os
import pathlib
import signal
import sys
import threading
from typing import Callable, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

Option = Union[str, int, float, bool, os.PathLike, Sequence[str], None]  # None: not given; a list: given several times

__all__ = ["Run", "Tokenizer", "AttentionMap", "Step", "Error", "Misuse", "mask", "mask_words", "train", "on_log", "version"]


class Error(Exception):
    """Raised if the library cannot do what was asked. The message says what was found, and what was expected."""


class Misuse(Error):
    """A wrong argument, option or setting."""


class AttentionMap(NamedTuple):
    """The attention of one op: p[h, i, j] is the probability with which token rows[i] reads token columns[j] in head h, or
    -1 if it cannot see it."""

    path: str
    rows: List[str]
    columns: List[str]
    p: np.ndarray  # float64, (heads, rows, columns)


class Step(NamedTuple):
    """A step of training: its number from 1, the loss of its batch before the update, and the norm of the gradient."""

    step: int
    loss: float
    norm: float


class _Array(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("dimensions", ctypes.c_int), ("shape", ctypes.c_int64 * 3),
                ("data", ctypes.c_void_p)]


class _Step(ctypes.Structure):
    _fields_ = [("step", ctypes.c_int64), ("loss", ctypes.c_double), ("norm", ctypes.c_double)]


_kinds = {"f": "float", "i": "int", "u": "unsigned int", "b": "bool"}
_types = {1: np.float64, 2: np.float32, 3: np.int32, 4: np.bool_}
_strings = ctypes.POINTER(ctypes.c_char_p)
_use_line = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_void_p)
_use_attention = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.POINTER(_Array),
                                  ctypes.c_void_p)
_use_step = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Step), ctypes.c_void_p)
_handle, _text, _array = ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(_Array)
_lines = (_strings, ctypes.c_size_t)
# The arguments of each function of masquerade.h that returns a status, in its order.
_functions = {
    "log": (_use_line, ctypes.c_void_p),
    "open": (ctypes.c_char_p, _strings, ctypes.POINTER(_handle)),
    "close": (_handle,),
    "describe": (_handle, _text),
    "encode": (_handle, *_lines, _strings, _array),
    "decode": (_handle, _array, _strings, _text),
    "generate": (_handle, *_lines, _strings, _text),
    "score": (_handle, *_lines, _strings, _array),
    "score_tokens": (_handle, ctypes.c_char_p, _strings, _array, _text),
    "attention": (_handle, ctypes.c_char_p, _use_attention, ctypes.c_void_p),
    "open_tokenizer": (ctypes.c_char_p, _strings, ctypes.POINTER(_handle)),
    "tokenizer_of": (_handle, ctypes.POINTER(_handle)),
    "close_tokenizer": (_handle,),
    "tokenize": (_handle, ctypes.c_char_p, _strings, _array),
    "detokenize": (_handle, _array, _text),
    "vocabulary": (_handle, _text),
    "mask": (ctypes.c_char_p, ctypes.c_int, ctypes.c_int, _array),
    "mask_words": (_array, _text),
    "train": (_strings, _strings, _use_step, ctypes.c_void_p, _text),
}


def _load() -> ctypes.CDLL:
    here = pathlib.Path(__file__).resolve().parent
    name = "libmasquerade.so"
    places = [here / name, here.parent / "build" / "release" / name, here.parent.parent / name]
    given = os.environ.get("MASQUERADE_LIBRARY")
    found = given or next((str(path) for path in places if path.exists()), name)
    try:
        library = ctypes.CDLL(found)
    except OSError as error:
        raise ImportError(f"{error}; build it with `make library`, or name it in MASQUERADE_LIBRARY") from None
    for function, arguments in _functions.items():
        of_library = getattr(library, "masquerade_" + function)
        of_library.argtypes, of_library.restype = arguments, ctypes.c_int
    library.masquerade_error.restype = library.masquerade_version.restype = ctypes.c_char_p
    library.masquerade_free_text.argtypes, library.masquerade_free_array.argtypes = (ctypes.c_void_p,), (_array,)
    return library


_library = _load()


def _call(function: str, *arguments) -> None:
    # Ctrl-C would be lost while the function of on_log() runs.
    with _Guarded(None) if _log_callback else contextlib.nullcontext():
        status = getattr(_library, "masquerade_" + function)(*arguments)
    if status != 0:
        raise (Misuse if status == 2 else Error)(_library.masquerade_error().decode(errors="replace"))


def _encoded(text: bytes) -> bytes:
    if b"\0" in text:
        raise Misuse("a text has a NUL character, which C cannot read")
    return text


def _line(text: str) -> bytes:
    if not isinstance(text, str):
        raise Misuse(f"a line is of type {type(text).__name__}, expected str")
    return _encoded(text.encode(errors="replace"))


def _path(path: Union[str, os.PathLike]) -> bytes:
    try:
        return _encoded(os.fsencode(path))
    except (TypeError, UnicodeEncodeError) as error:
        raise Misuse(f"{path!r} cannot be a path or an option: {error}") from None


def _words(options: Mapping[str, Option]) -> List[bytes]:
    """Returns "key=value" for each option or setting."""
    words = []
    for key, values in options.items():
        for value in values if isinstance(values, (list, tuple)) else [values]:
            if isinstance(value, (bool, np.bool_)):
                value = "true" if value else "false"
            if value is not None:
                words.append(_path(key) + b"=" + _path(value if isinstance(value, os.PathLike) else str(value)))
    return words


def _array_of_strings(words: Sequence[bytes]) -> ctypes.Array:
    return (ctypes.c_char_p * (len(words) + 1))(*words, None)


def _options(options: Mapping[str, Option]) -> ctypes.Array:
    return _array_of_strings(_words(options))


def _given(lines: Iterable[str]) -> Tuple[ctypes.Array, int]:
    if isinstance(lines, (str, bytes)):
        raise Misuse("expected a list of lines, found one string; put it into a list")
    words = [_line(line) for line in lines]
    return _array_of_strings(words), len(words)


# The functions below turn a result of C into one of Python, and free the former.


def _lines_in(text: str) -> List[str]:
    return text.split("\n")[:-1]


def _pointer_from(function: str, *arguments) -> ctypes.c_void_p:
    pointer = ctypes.c_void_p()
    _call(function, *arguments, ctypes.byref(pointer))
    return pointer


def _text_of(function: str, *arguments) -> str:
    text = _pointer_from(function, *arguments)
    try:
        return ctypes.string_at(text).decode(errors="replace")
    finally:
        _library.masquerade_free_text(text)


def _view(array: _Array) -> np.ndarray:
    shape = tuple(array.shape[: array.dimensions])
    numbers = np.empty(shape, _types[array.type])
    if numbers.nbytes:
        ctypes.memmove(numbers.ctypes.data, array.data, numbers.nbytes)
    return numbers


def _take_array(array: _Array) -> np.ndarray:
    try:
        return _view(array)
    finally:
        _library.masquerade_free_array(ctypes.byref(array))


def _array_from(function: str, *arguments) -> np.ndarray:
    array = _Array()
    _call(function, *arguments, ctypes.byref(array))
    return _take_array(array)


def _as_array(numbers: np.ndarray, type_number: int, dimensions: int, kinds: str) -> Tuple[_Array, np.ndarray]:
    """Returns the array for C, and the numbers, which must live as long as the array is used. `kinds` has the letters of
    the NumPy types that are allowed."""
    if numbers.size and numbers.dtype.kind not in kinds:
        raise Misuse(f"an array has the type {numbers.dtype}, expected {' or '.join(_kinds[kind] for kind in kinds)}")
    if numbers.ndim != dimensions:
        raise Misuse(f"an array has {numbers.ndim} dimensions, expected {dimensions}")
    held = np.ascontiguousarray(numbers, _types[type_number])
    shape = (ctypes.c_int64 * 3)(*held.shape)
    return _Array(type_number, dimensions, shape, held.ctypes.data), held


class _Guarded:
    """Calls a function of the user from C, inside a `with`. Its first exception ends the work, and is raised again at the end
    of the `with`. So is Ctrl-C: an exception that Python raises on the way from C to the function would be lost. Without a
    function, the `with` only does the latter."""

    def __init__(self, function: Optional[Callable]):
        self.function, self.raised, self.before = function, None, None

    def __enter__(self) -> "_Guarded":
        ours = threading.current_thread() is threading.main_thread()
        if ours and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self.before = signal.signal(signal.SIGINT, self._interrupt)
        return self

    def _interrupt(self, *_) -> None:
        self.raised = self.raised or KeyboardInterrupt()

    def __exit__(self, *_) -> None:
        if self.before is not None:
            signal.signal(signal.SIGINT, self.before)
        if self.raised is not None:
            raise self.raised

    def __call__(self, *arguments):
        if self.raised is None:
            try:
                return self.function(*arguments)
            except BaseException as error:
                self.raised = error
        return None


class _Opened:
    """What the library opens: freed by close(), at the end of a `with`, or with the last reference."""

    _close: str  # the function of the library that frees it

    def __init__(self, handle: ctypes.c_void_p):
        self._handle, self._closed = handle, False

    def close(self) -> None:
        """Frees what was opened, once. Later calls of other methods raise Misuse."""
        if not self._closed:
            self._closed = True
            _call(self._close, self._handle)

    def __enter__(self):
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def __del__(self):
        try:
            if not sys.is_finalizing():  # the process ends, and another thread may be in a call for ever
                self.close()
        except Exception:  # while the interpreter ends
            pass

    def __reduce_ex__(self, protocol):
        raise TypeError(f"a {type(self).__name__} cannot be copied or pickled; open it again")


class Tokenizer(_Opened):
    """A WordPiece tokenizer, of a file (Tokenizer.open()) or of a run (Run.tokenizer)."""

    _close = "close_tokenizer"

    @classmethod
    def open(cls, path: Union[str, os.PathLike], cased: Optional[bool] = None) -> "Tokenizer":
        """Opens vocab.txt, tokenizer.json or the folder that has them. cased: whether capitals and accents are kept; None:
        what the files say."""
        return cls(_pointer_from("open_tokenizer", _path(path), _options({"cased": cased})))

    def encode(self, line: str) -> np.ndarray:
        """Returns the ids of a line, int32 (n,). No [CLS] or [SEP] is added."""
        return self.encode_with_offsets(line)[:, 0].copy()

    def encode_with_offsets(self, line: str) -> np.ndarray:
        """Returns for each token its id, and the slice of `line` that it comes from: int32 (n, 3)."""
        return _array_from("tokenize", self._handle, _line(line), _options({"characters": True}))

    def decode(self, ids: Union[Sequence[int], np.ndarray]) -> str:
        """Returns the text of the ids: pieces are joined to words, and [CLS], [SEP] and [PAD] are left out."""
        numbers = np.asarray(ids)
        if numbers.size and numbers.dtype.kind in "iu" and not -(2**31) <= numbers.min() <= numbers.max() < 2**31:
            raise Misuse("an id does not fit into 32 bits")
        array, held = _as_array(numbers, 3, 1, "iu")
        return _text_of("detokenize", self._handle, ctypes.byref(array))[:-1]

    @property
    def vocabulary(self) -> List[str]:
        """All tokens; the index of a token is its id."""
        return _lines_in(_text_of("vocabulary", self._handle))


class Run(_Opened):
    """A trained model: a run folder of ./train, or a Hugging Face folder (BERT, RoFormer, NomicBERT)."""

    _close = "close"

    def __init__(self, handle: ctypes.c_void_p, folder: str):
        """For this module; use Run.open()."""
        super().__init__(handle)
        self.folder = folder
        self._tokenizer: Optional[Tokenizer] = None

    @classmethod
    def open(cls, folder: Union[str, os.PathLike], device: str = "cpu", threads: Optional[int] = None,
             average: Optional[int] = None, max_length: Optional[int] = None, precision: str = "f32") -> "Run":
        """Opens a run folder, one of its steps, or a Hugging Face folder. device: "cpu" or "cuda". threads: CPU threads of
        the whole process. average: use the mean weights of the last `average` checkpoints. max_length: only for a Hugging
        Face folder, the longest line in tokens. precision: "f32", or "bf16" for weights and activations in bf16."""
        options = _options({"device": device, "threads": threads, "average": average, "max_length": max_length,
                            "precision": precision})
        return cls(_pointer_from("open", _path(folder), options), os.fsdecode(folder))

    def describe(self) -> dict:
        """Returns family, description, step, settings, parameters (their number), vocabulary (its size), and vectors (the
        size of a vector that encode() returns; 0 if there is none)."""
        return json.loads(_text_of("describe", self._handle))

    @property
    def tokenizer(self) -> Tokenizer:
        """A tokenizer that reads text as the run does: always the same one, until it is closed. It outlives the run."""
        if self._tokenizer is None or self._tokenizer._closed:
            self._tokenizer = Tokenizer(_pointer_from("tokenizer_of", self._handle))
        return self._tokenizer

    def encode(self, lines: Iterable[str], **options: Option) -> np.ndarray:
        """Returns a vector for each line, float64 (lines, size): the latents of a univae, or the mean of the last hidden
        states. Options: states ("mean" or "cls": last hidden states), posterior (True: draw latents), seed."""
        return _array_from("encode", self._handle, *_given(lines), _options(options))

    def decode(self, latents: np.ndarray, **options: Option) -> List[str]:
        """Writes a line for each row of `latents`, a float array (lines, size). The options are those of ./generate."""
        array, held = _as_array(np.asarray(latents), 1, 2, "fiu")
        return _lines_in(_text_of("decode", self._handle, ctypes.byref(array), _options(options)))

    def generate(self, lines: Optional[Iterable[str]] = None, **options: Option) -> List[str]:
        """Writes what ./generate writes: a line for each of `lines`, or samples if there are no `lines` (count=N). If a line
        has several results, tabs separate them."""
        given = [] if lines is None else lines if isinstance(lines, (str, bytes)) else list(lines)
        if lines is not None and not given:
            return []
        return _lines_in(_text_of("generate", self._handle, *_given(given), _options(options)))

    def score(self, lines: Iterable[str], **options: Option) -> np.ndarray:
        """Returns -log p of each line in nats, and the number of its predicted tokens: float64 (lines, 2). A line is a
        text, or source<TAB>target. For a univae, this is an estimate; for masked diffusion, an estimate of an upper bound,
        which includes -log p of the length if the run draws it. The random numbers of an estimate depend on the index of
        the line. Options: importance (samples for a univae), seed."""
        return _array_from("score", self._handle, *_given(lines), _options(options))

    def score_tokens(self, line: str, **options: Option) -> List[Tuple[str, float]]:
        """Returns each predicted token of a line, and its -log p in nats."""
        nats = _Array()
        tokens = _text_of("score_tokens", self._handle, _line(line), _options(options), ctypes.byref(nats))
        return list(zip(_lines_in(tokens), _take_array(nats).tolist()))

    def attention(self, line: str) -> List[AttentionMap]:
        """Returns the attention of a line (a text, or source<TAB>target), op by op."""
        maps: List[AttentionMap] = []

        def use(path, rows, columns, p, _user):
            names = [_lines_in(text.decode(errors="replace")) for text in (rows, columns)]
            maps.append(AttentionMap(path.decode(errors="replace"), *names, _view(p.contents)))

        with _Guarded(use) as guarded:
            _call("attention", self._handle, _line(line), _use_attention(guarded), None)
        return maps


def mask(name: str, source: int, target: int = 0) -> np.ndarray:
    """Returns what a mask lets a document of `source` and `target` tokens see: bool (queries, keys). `name` is a name that
    ./inspect mask lists, or a mask in words."""
    sizes = [operator.index(size) for size in (source, target)]
    if max(map(abs, sizes)) > 2**31 - 1:
        raise Misuse(f"a document of {sizes[0]} and {sizes[1]} tokens, expected fewer")
    return _array_from("mask", _line(name), *sizes)


def mask_words(sees: np.ndarray) -> str:
    """Turns a square array of booleans into the setting `mask` of a model in which token i of a document sees token j if
    sees[i, j]. The tokens include [CLS] and [SEP]; longer documents are refused."""
    array, held = _as_array(np.asarray(sees), 4, 2, "biu")
    return _text_of("mask_words", ctypes.byref(array))[:-1]


def train(model: Optional[str] = None, settings: Optional[Mapping[str, Option]] = None, *,
          progress: Optional[Callable[[Step], Optional[bool]]] = None, **options: Option) -> str:
    """Trains a model as ./train does, and returns its run folder.

    model: a model or an objective, such as "univae" (default), "lm" or "seq2seq". settings: {"layers": 4, ...}, as
    `./train MODEL --help` lists them; the seed is one of them. options: data, dev, vocab, init, out, config, resume, steps,
    minutes, device, threads. progress(step) is called after each step. If it returns True or raises an exception, or if you
    press Ctrl-C, training saves a checkpoint and ends; the exception is then raised here."""
    words = ([_line(model)] if model is not None else []) + _words(settings or {})
    if progress is not None and not callable(progress):
        raise Misuse(f"progress: expected a function or None, found {progress!r}")

    def use(step, _user):
        now = step.contents
        return progress is not None and bool(progress(Step(now.step, now.loss, now.norm)))

    with _Guarded(use) as guarded:
        callback = _use_step(lambda *arguments: int(guarded(*arguments) or guarded.raised is not None))
        return _text_of("train", _array_of_strings(words), _options(options), callback, None)[:-1]


_log_callback = _use_line()


def on_log(use: Optional[Callable[[str], None]]) -> None:
    """Calls use(line) for each note and warning of the library; None: they go to standard error. An exception of `use` is
    printed, and the line is lost."""
    if use is not None and not callable(use):
        raise Misuse(f"expected a function or None, found {use!r}")
    global _log_callback  # held here, because C calls it later
    callback = _use_line(lambda line, _user: use(line.decode(errors="replace").rstrip("\n"))) if use else _use_line()
    _call("log", callback, None)
    _log_callback = callback


def version() -> str:
    """Returns the version of the library."""
    return _library.masquerade_version().decode()
