/* SPDX-License-Identifier: MIT */
/* The C interface of Masquerade: opens runs and tokenizers, and reads, writes, measures and trains with them.
 *
 *     masquerade_run *run;
 *     char *lines;
 *     const char *options[] = {"reconstruct=true", NULL};
 *     const char *sentences[] = {"a red cup"};
 *     if (masquerade_open("runs/univae-001", NULL, &run) ||
 *         masquerade_generate(run, sentences, 1, options, &lines))
 *         fprintf(stderr, "%s\n", masquerade_error());
 *
 * Functions return a status, except masquerade_version(), masquerade_error() and those that free something. If a function
 * fails, masquerade_error() says what was wrong, and nothing is stored through pointers to results. No exception leaves
 * the library.
 *
 * options    an array of strings "key=value" that ends with NULL; or NULL, for none. Unless a comment says otherwise,
 *            they are the options of the program that a function names, without the dashes in front and with _ for
 *            other dashes: no_repeat=3 for --no-repeat 3, and parallel=true for --parallel
 * lines      an array of `count` strings in UTF-8, without line feeds. Bytes that are not UTF-8 are dropped,
 *            and a line that is longer than the run reads (max_length) loses its end, without a warning
 * results    a text is a string that the caller frees with masquerade_free_text(); every line of it ends with a line
 *            feed. An array is freed with masquerade_free_array(); numbers lie row by row
 * handles    are valid until they are closed. A closed or unknown handle is refused
 * threads    any thread may call any function. One call runs at a time, and the others wait. exit() does not wait for
 *            the call of another thread, which ends with the process. A child of fork() may go on with what its parent
 *            has opened on the CPU; if another thread of the parent was in a call, the child's own calls are refused
 * callbacks  run inside a call, in its thread. They may call the library, but must not wait for another thread that does
 */
#ifndef MASQUERADE_H
#define MASQUERADE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define MASQUERADE_API __attribute__((visibility("default")))
#else
#define MASQUERADE_API
#endif

/* The statuses, which are also those of the programs. */
enum {
    MASQUERADE_OK = 0,
    MASQUERADE_FAILURE = 1, /* a file, a text or the machine is not as it must be */
    MASQUERADE_MISUSE = 2   /* an argument, an option or a setting is wrong */
};

typedef struct masquerade_run masquerade_run;
typedef struct masquerade_tokenizer masquerade_tokenizer;

/* The types of the numbers in an array. A boolean is a byte, 0 or 1. */
enum { MASQUERADE_FLOAT64 = 1, MASQUERADE_FLOAT32 = 2, MASQUERADE_INT32 = 3, MASQUERADE_BOOL = 4 };

typedef struct masquerade_array {
    int type;         /* MASQUERADE_FLOAT64 ... */
    int dimensions;   /* 1 to 3 */
    int64_t shape[3]; /* the first `dimensions` of them count */
    void* data;       /* the numbers, row by row; NULL if there are none */
} masquerade_array;

/* The version of the library, such as "0.2". */
MASQUERADE_API const char* masquerade_version(void);
/* The message of the last function that failed in this thread; "" if the last function succeeded. Valid until the next
 * call in this thread. */
MASQUERADE_API const char* masquerade_error(void);
/* Free a text, or the numbers of an array, which is empty afterwards. NULL is allowed. */
MASQUERADE_API void masquerade_free_text(char* text);
MASQUERADE_API void masquerade_free_array(masquerade_array* array);

/* Notes and warnings ("warning: 3 lines were cut") go to use(line, user), or to standard error if `use` is NULL. */
typedef void (*masquerade_use_line)(const char* line, void* user);
MASQUERADE_API int masquerade_log(masquerade_use_line use, void* user);

/* ---- runs -------------------------------------------------------------------------------------------------------- */

/* Opens a run folder, one of its steps, or a Hugging Face folder (BERT, RoFormer or NomicBERT), which opens as a run of
 * unilm with objective=mlm at step 0. Options: device (cpu or cuda); average and precision (as --average and --precision of
 * ./generate); max_length (only for a Hugging Face folder: longest line in tokens, default 512 or, if that is less, the
 * number of its positions minus 2); threads (CPU threads of the whole process, until the number is set again). */
MASQUERADE_API int masquerade_open(const char* folder, const char* const* options, masquerade_run** run);
MASQUERADE_API int masquerade_close(masquerade_run* run);
/* Describes a run in one line of JSON: family, description, step, settings, parameters (their number), vocabulary (its
 * size), and vectors (the numbers of a vector that masquerade_encode() returns; 0 if there is none). */
MASQUERADE_API int masquerade_describe(masquerade_run* run, char** json);

/* Returns a vector for each line, FLOAT64 (count, size): the latents, or the mean of the last hidden states. Options:
 * states (mean or cls: last hidden states, averaged or of [CLS]), posterior (true: draw latents from their posterior, with
 * noise that depends on the seed and the index of the line), seed. They mean the same with --vectors of ./generate. If a
 * line has a tab, only the part before the tab is read. */
MASQUERADE_API int masquerade_encode(masquerade_run* run, const char* const* lines, size_t count,
                                     const char* const* options, masquerade_array* vectors);
/* Writes a line for each row of `latents`, FLOAT64 or FLOAT32 (count, size), as --from-vectors of ./generate does. */
MASQUERADE_API int masquerade_decode(masquerade_run* run, const masquerade_array* latents, const char* const* options,
                                     char** text);
/* Writes what ./generate writes: a line for each of `lines`, or samples (the option count) if `count` is 0. */
MASQUERADE_API int masquerade_generate(masquerade_run* run, const char* const* lines, size_t count,
                                       const char* const* options, char** text);

/* Returns for each line -log p in nats, and the number of its predicted tokens: FLOAT64 (count, 2). A line is a text, or
 * source<TAB>target. Which p: for a univae, an estimate by `importance` samples of the latents (with free_length=true, p
 * is conditional on the length of the text, or on that of the source); for masked diffusion, an upper bound, estimated by
 * random canvases, with -log p of the length if the run draws it (canvas=drawn, any-order) and has its probabilities
 * (lengths.txt or the objective gaps); otherwise the loss of the first objective that reads such lines and predicts
 * tokens. If this objective hides tokens (mlm, plm), only the hidden ones count. The sums over held-out lines are what
 * ./evaluate prints, which counts -log p of the length apart.
 * Estimates depend on the index of a line in `lines`. Options: importance (default 20), seed (of estimates; default 1). */
MASQUERADE_API int masquerade_score(masquerade_run* run, const char* const* lines, size_t count,
                                    const char* const* options, masquerade_array* scores);
/* Returns -log p of each predicted token of a line, FLOAT64 (n), and the tokens, one a line. Refuses runs whose likelihood
 * is not a sum over tokens: those with latents, and masked diffusion. */
MASQUERADE_API int masquerade_score_tokens(masquerade_run* run, const char* line, const char* const* options,
                                           masquerade_array* nats, char** tokens);

/* Computes the loss of a line (a sentence or source<TAB>target) as in a first step of training, but without dropout, and
 * calls use() for each attention op, in the order of computation. Objectives that hide tokens hide them here, too. path: of
 * the op, such as "layer.0.attention". rows, columns: the tokens of queries and keys, one a line. p: FLOAT64 (heads, rows,
 * columns), the probability with which a row reads a column, or -1 if it cannot see it. The run must be on the CPU. */
typedef void (*masquerade_use_attention)(const char* path, const char* rows, const char* columns,
                                         const masquerade_array* p, void* user);
MASQUERADE_API int masquerade_attention(masquerade_run* run, const char* line, masquerade_use_attention use,
                                        void* user);

/* ---- tokenizers -------------------------------------------------------------------------------------------------- */

/* Opens vocab.txt, tokenizer.json or the folder that has them. Options: cased (true: keep capitals and accents; false:
 * do not; default: what the files say). */
MASQUERADE_API int masquerade_open_tokenizer(const char* path, const char* const* options,
                                             masquerade_tokenizer** tokenizer);
/* Returns a tokenizer of its own that reads text as the run does. */
MASQUERADE_API int masquerade_tokenizer_of(masquerade_run* run, masquerade_tokenizer** tokenizer);
MASQUERADE_API int masquerade_close_tokenizer(masquerade_tokenizer* tokenizer);
/* Returns the tokens of a line, INT32 (n, 3): id, and where the token begins and ends in the line, in bytes or, with the
 * option characters=true, in code points. No [CLS] or [SEP] is added. */
MASQUERADE_API int masquerade_tokenize(masquerade_tokenizer* tokenizer, const char* line, const char* const* options,
                                       masquerade_array* tokens);
/* Returns the text of the ids, INT32 (n), as a line. */
MASQUERADE_API int masquerade_detokenize(masquerade_tokenizer* tokenizer, const masquerade_array* ids, char** text);
/* Returns all tokens, one a line; the first one has the id 0. */
MASQUERADE_API int masquerade_vocabulary(masquerade_tokenizer* tokenizer, char** tokens);

/* ---- masks ------------------------------------------------------------------------------------------------------- */

/* Returns what a mask lets a document of `source` and `target` tokens see, BOOL (queries, keys). `mask` is a name that
 * ./inspect mask lists, or a mask in words. */
MASQUERADE_API int masquerade_mask(const char* mask, int source, int target, masquerade_array* sees);
/* Turns a square table, BOOL (n, n), into words for the setting `mask`: token i of a document sees token j if sees[i][j] is
 * not 0. The tokens include [CLS] and [SEP]; documents of more than n tokens are refused. */
MASQUERADE_API int masquerade_mask_words(const masquerade_array* sees, char** words);

/* ---- training ---------------------------------------------------------------------------------------------------- */

typedef struct masquerade_step {
    int64_t step; /* of the run, from 1 */
    double loss;  /* of the batch, before the update */
    double norm;  /* of the gradient */
} masquerade_step;
/* Called after each step. If the function returns a number that is not 0, training saves a checkpoint and ends. It may
 * call the functions of this library. */
typedef int (*masquerade_use_step)(const masquerade_step* step, void* user);

/* Trains a model as ./train does, and returns the run folder, one line. words: a model or an objective, and its settings
 * as key=value, such as {"univae", "layers=4", NULL}. options: data, dev, vocab, init, out, config, resume, steps,
 * minutes, device, threads. `use` may be NULL. */
MASQUERADE_API int masquerade_train(const char* const* words, const char* const* options, masquerade_use_step use,
                                    void* user, char** folder);

#ifdef __cplusplus
}
#endif
#endif
