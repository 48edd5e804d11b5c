# SPDX-License-Identifier: MIT
"""Masquerade from Python: one file over the C interface (library/masquerade.h), without a build step. Needs NumPy.

    import masquerade
    run = masquerade.Run.open("runs/univae-001")
    z = run.encode(["a red cup", "a blue cup"])          # float64, (2, size)
    print(run.decode(z.mean(axis=0, keepdims=True)))     # a sentence between the two

The shared library is $MASQUERADE_LIBRARY, or the first libmasquerade.so that is found beside this file, in build/release of
the project, in ../.., or where the system looks for libraries. Options are passed by name: `--no-repeat 3` of ./generate is
no_repeat=3, and the flag `--parallel` is parallel=True. Every failure raises masquerade.Error with the message of the
library; wrong arguments and settings raise masquerade.Misuse, a subclass.
"""
from __future__ import annotations

import ctypes
import json
import os
import pathlib
from typing import Callable, Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

Option = Union[str, int, float, bool, os.PathLike]

__all__ = ["Run", "Tokenizer", "AttentionMap", "Step", "Error", "Misuse", "mask", "mask_words", "train", "on_log", "version"]


class Error(Exception):
    """What the library could not do: the message says what was found, and what was expected."""


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
    status = getattr(_library, "masquerade_" + function)(*arguments)
    if status != 0:
        raise (Misuse if status == 2 else Error)(_library.masquerade_error().decode())


def _bytes(text: Union[str, os.PathLike]) -> bytes:
    encoded = os.fspath(text).encode()
    if b"\0" in encoded:
        raise Misuse("a text has a NUL character, which C cannot read")
    return encoded


def _options(options: Dict[str, Optional[Option]]):
    words = []
    for key, value in options.items():
        if value is None:
            continue
        shown = str(value).lower() if isinstance(value, bool) else os.fspath(value) if isinstance(value, os.PathLike) else str(value)
        words.append(_bytes(f"{key}={shown}"))
    return _array_of_strings(words)


def _array_of_strings(words: Sequence[bytes]):
    return (ctypes.c_char_p * (len(words) + 1))(*words, None)


def _given(lines: Iterable[str]):
    if isinstance(lines, str):
        raise Misuse("expected a list of lines, found one string; put it into a list")
    words = [_bytes(line) for line in lines]
    return _array_of_strings(words), len(words)


def _take_text(text: ctypes.c_void_p) -> str:
    try:
        return ctypes.string_at(text).decode(errors="replace")
    finally:
        _library.masquerade_free_text(text)


def _lines_in(text: str) -> List[str]:
    return text.split("\n")[:-1]


def _text_of(function: str, *arguments) -> str:
    text = ctypes.c_void_p()
    _call(function, *arguments, ctypes.byref(text))
    return _take_text(text)


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


def _as_array(numbers: np.ndarray, type_number: int, dimensions: int) -> Tuple[_Array, np.ndarray]:
    """Returns the array for C, and the numbers, which must live as long as the array is used."""
    if numbers.ndim != dimensions:
        raise Misuse(f"an array has {numbers.ndim} dimensions, expected {dimensions}")
    held = np.ascontiguousarray(numbers, _types[type_number])
    shape = (ctypes.c_int64 * 3)(*held.shape)
    return _Array(type_number, dimensions, shape, held.ctypes.data), held


class _Guarded:
    """Calls a function of the user from C. Its first exception ends the work, and is raised again by check()."""

    def __init__(self, function: Callable):
        self.function, self.raised = function, None

    def __call__(self, *arguments):
        if self.raised is None:
            try:
                return self.function(*arguments)
            except BaseException as error:  # also KeyboardInterrupt
                self.raised = error
        return None

    def check(self) -> None:
        if self.raised is not None:
            raise self.raised


class Tokenizer:
    """A WordPiece tokenizer, of a file or of a run."""

    def __init__(self, handle: ctypes.c_void_p):
        self._handle = handle

    @classmethod
    def open(cls, path: Union[str, os.PathLike], cased: Optional[bool] = None) -> "Tokenizer":
        """Opens vocab.txt, tokenizer.json or the folder that has them. cased: whether capitals and accents are kept; None:
        what the files say."""
        handle = ctypes.c_void_p()
        _call("open_tokenizer", _bytes(path), _options({"cased": cased}), ctypes.byref(handle))
        return cls(handle)

    def encode(self, line: str) -> np.ndarray:
        """Returns the ids of a line, int32 (n,). No [CLS] or [SEP] is added."""
        return self.encode_with_offsets(line)[:, 0].copy()

    def encode_with_offsets(self, line: str) -> np.ndarray:
        """Returns for each token its id, and the slice of `line` that it comes from: int32 (n, 3)."""
        return _array_from("tokenize", self._handle, _bytes(line), _options({"characters": True}))

    def decode(self, ids: Sequence[int]) -> str:
        """Returns the text of the ids, as a writer would write it."""
        array, held = _as_array(np.asarray(ids, np.int64).reshape(len(ids)), 3, 1)
        if held.size and not np.array_equal(held, np.asarray(ids)):
            raise Misuse("an id does not fit into 32 bits")
        return _text_of("detokenize", self._handle, ctypes.byref(array))[:-1]

    @property
    def vocabulary(self) -> List[str]:
        """All tokens; the index of a token is its id."""
        return _lines_in(_text_of("vocabulary", self._handle))

    def close(self) -> None:
        """Frees the tokenizer. Later calls of its methods raise Misuse."""
        _call("close_tokenizer", self._handle)

    def __del__(self):
        try:
            _library.masquerade_close_tokenizer(self._handle)  # a second close does nothing
        except Exception:  # while the interpreter ends
            pass


class Run:
    """A trained model: a run folder of ./train, or a Hugging Face folder (BERT, RoFormer, NomicBERT)."""

    def __init__(self, handle: ctypes.c_void_p, folder: str):
        self._handle, self.folder = handle, folder

    @classmethod
    def open(cls, folder: Union[str, os.PathLike], device: str = "cpu", threads: Optional[int] = None,
             average: Optional[int] = None) -> "Run":
        """Opens a run folder, one of its steps, or a Hugging Face folder. device: "cpu" or "cuda". threads: CPU threads of
        the whole process. average: use the mean weights of the last `average` checkpoints."""
        handle = ctypes.c_void_p()
        options = _options({"device": device, "threads": threads, "average": average})
        _call("open", _bytes(folder), options, ctypes.byref(handle))
        return cls(handle, os.fspath(folder))

    def describe(self) -> dict:
        """Returns family, description, step, settings, parameters (their number), vocabulary (its size), and vectors (the
        size of a vector that encode() returns; 0 if there is none)."""
        return json.loads(_text_of("describe", self._handle))

    @property
    def tokenizer(self) -> Tokenizer:
        """A tokenizer that reads text as the run does."""
        handle = ctypes.c_void_p()
        _call("tokenizer_of", self._handle, ctypes.byref(handle))
        return Tokenizer(handle)

    def encode(self, lines: Iterable[str], **options: Option) -> np.ndarray:
        """Returns a vector for each line, float64 (lines, size): the latents of a univae, or the mean of the last hidden
        states. Options: states ("mean" or "cls": last hidden states), posterior (True: draw latents), seed."""
        return _array_from("encode", self._handle, *_given(lines), _options(options))

    def decode(self, latents: np.ndarray, **options: Option) -> List[str]:
        """Writes a line for each row of `latents`, a float array (lines, size). The options are those of ./generate."""
        array, held = _as_array(np.asarray(latents), 1, 2)
        return _lines_in(_text_of("decode", self._handle, ctypes.byref(array), _options(options)))

    def generate(self, lines: Iterable[str] = (), **options: Option) -> List[str]:
        """Writes what ./generate writes: a line for each of `lines`, or samples (count=N). If a line has several results,
        tabs separate them."""
        return _lines_in(_text_of("generate", self._handle, *_given(lines), _options(options)))

    def score(self, lines: Iterable[str], **options: Option) -> np.ndarray:
        """Returns -log p of each line in nats, and the number of its predicted tokens: float64 (lines, 2). A line is a
        text, or source<TAB>target. Options: importance (samples for a univae), seed."""
        return _array_from("score", self._handle, *_given(lines), _options(options))

    def score_tokens(self, line: str, **options: Option) -> List[Tuple[str, float]]:
        """Returns each predicted token of a line, and its -log p in nats."""
        nats = _Array()
        tokens = _text_of("score_tokens", self._handle, _bytes(line), _options(options), ctypes.byref(nats))
        return list(zip(_lines_in(tokens), _take_array(nats).tolist()))

    def attention(self, line: str) -> List[AttentionMap]:
        """Returns the attention of a line (a text, or source<TAB>target), op by op."""
        maps: List[AttentionMap] = []

        def use(path, rows, columns, p, _user):
            names = [_lines_in(text.decode(errors="replace")) for text in (rows, columns)]
            maps.append(AttentionMap(path.decode(), *names, _view(p.contents)))

        guarded = _Guarded(use)
        _call("attention", self._handle, _bytes(line), _use_attention(guarded), None)
        guarded.check()
        return maps

    def close(self) -> None:
        """Frees the run. Later calls of its methods raise Misuse."""
        _call("close", self._handle)

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        try:
            _library.masquerade_close(self._handle)  # a second close does nothing
        except Exception:  # while the interpreter ends
            pass


def mask(name: str, source: int, target: int = 0) -> np.ndarray:
    """Returns what a mask lets a document of `source` and `target` tokens see: bool (queries, keys). `name` is a name that
    ./inspect mask lists, or a mask in words."""
    return _array_from("mask", _bytes(name), source, target)


def mask_words(sees: np.ndarray) -> str:
    """Returns the setting `mask` of a model in which token i sees token j if sees[i, j]: a bool array (n, n) for documents
    of at most n tokens."""
    array, held = _as_array(np.asarray(sees, np.bool_), 4, 2)
    return _text_of("mask_words", ctypes.byref(array))[:-1]


def train(model: str = "univae", settings: Optional[Dict[str, Option]] = None, *,
          progress: Optional[Callable[[Step], Optional[bool]]] = None, **options: Option) -> str:
    """Trains a model as ./train does, and returns its run folder.

    model: a model or an objective, such as "univae", "lm" or "seq2seq". settings: {"layers": 4, ...}, as ./train MODEL --help
    lists them. options: data, dev, vocab, init, out, config, resume, steps, minutes, device, threads. progress(step) is called
    after each step; if it returns True or raises an exception (Ctrl-C is one), training saves a checkpoint and ends."""
    words = [] if options.get("resume") else [_bytes(model)]
    for key, value in (settings or {}).items():
        words.append(_bytes(f"{key}={str(value).lower() if isinstance(value, bool) else value}"))

    def use(step, _user):
        now = step.contents
        return int(bool(progress(Step(now.step, now.loss, now.norm)))) if progress else 0

    guarded = _Guarded(use)
    callback = _use_step(lambda *arguments: int(bool(guarded(*arguments)) or guarded.raised is not None))
    folder = _text_of("train", _array_of_strings(words), _options(options), callback, None)
    guarded.check()
    return folder[:-1]


_log_callback = _use_line()


def on_log(use: Optional[Callable[[str], None]]) -> None:
    """Calls use(line) for each note and warning of the library; None: they go to standard error."""
    global _log_callback  # held here, because C calls it later
    callback = _use_line(lambda line, _user: use(line.decode(errors="replace").rstrip("\n"))) if use else _use_line()
    _call("log", callback, None)
    _log_callback = callback


def version() -> str:
    """Returns the version of the library."""
    return _library.masquerade_version().decode()
