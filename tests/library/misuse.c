/* SPDX-License-Identifier: MIT */
/* misuse RUN OTHER VOCABULARY: calls every function of masquerade.h with wrong arguments. Each call must fail with a message, and
 * store nothing. RUN is a univae, OTHER a run of a family that writes nothing. Prints a line for each call that does not
 * fail as it should, then how many calls there were. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "library/masquerade.h"

static int calls, wrong;

static void refused(const char *what, int status, int stored) {
    calls++;
    if (status != 0 && *masquerade_error() && !strstr(masquerade_error(), "unexpected kind") && !stored) return;
    wrong++;
    printf("%s: status %d, \"%s\"%s\n", what, status, masquerade_error(), stored ? ", and something was stored" : "");
}

/* Results of the calls below: none may change. */
static char mark[] = "untouched";
static char *text = mark;
static masquerade_array array = {-7, -7, {-7, -7, -7}, mark};
static masquerade_run *opened = (masquerade_run *)mark;
static masquerade_tokenizer *reader = (masquerade_tokenizer *)mark;

static int stored(void) {
    return text != mark || array.data != mark || array.type != -7 || opened != (masquerade_run *)mark ||
           reader != (masquerade_tokenizer *)mark;
}
#define REFUSED(call) refused(#call, call, stored())

static void ignore_map(const char *p, const char *r, const char *c, const masquerade_array *a, void *u) {
    (void)p, (void)r, (void)c, (void)a, (void)u;
}
static void ignore_line(const char *line, void *user) { (void)line, (void)user; }

int main(int count, char **words) {
    masquerade_run *run, *other, *closed, *unknown = (masquerade_run *)mark;
    masquerade_tokenizer *t, *closed_t, *unknown_t = (masquerade_tokenizer *)mark;
    const char *one[] = {"a red cup"}, *feed[] = {"a red\ncup"}, *hole[] = {"a red cup", NULL};
    const char *options[][2] = {{"nosuch=1", NULL},  {"beam", NULL},        {"=3", NULL},       {"beam=0", NULL},
                                {"beam=x", NULL},    {"beam=", NULL},       {"top_p=2", NULL},  {"seed=-1", NULL},
                                {"count=1e9", NULL}, {"from_vectors=/nosuch.npy", NULL}, {"", NULL}, {"temperature=nan", NULL}};
    char again[4096];
    double z[64] = {0}, bad[64] = {0};
    int32_t ids[] = {1, 2, 1 << 30}, negative[] = {-1};
    unsigned char cells[] = {1, 0, 1, 1, 1, 1};
    masquerade_array good, a;
    if (count < 4 || masquerade_log(ignore_line, NULL) || masquerade_open(words[1], NULL, &run) ||
        masquerade_open(words[2], NULL, &other) || masquerade_open(words[1], NULL, &closed) || masquerade_close(closed) ||
        masquerade_open_tokenizer(words[3], NULL, &t) || masquerade_open_tokenizer(words[3], NULL, &closed_t) ||
        masquerade_close_tokenizer(closed_t) || masquerade_encode(run, one, 1, NULL, &good))
        return fprintf(stderr, "%s\n", masquerade_error()), 2;

    /* Folders and options of open. */
    const char *device[] = {"device=tpu", NULL}, *threads[] = {"threads=0", NULL}, *average[] = {"average=1000", NULL},
               *precision[] = {"precision=f16", NULL}, *cased[] = {"cased=perhaps", NULL};
    REFUSED(masquerade_open(NULL, NULL, &opened));
    REFUSED(masquerade_open(words[1], NULL, NULL));
    REFUSED(masquerade_open("/nosuch", NULL, &opened));
    REFUSED(masquerade_open("", NULL, &opened));
    REFUSED(masquerade_open("/tmp", NULL, &opened));
    REFUSED(masquerade_open(words[1], device, &opened));
    REFUSED(masquerade_open(words[1], threads, &opened));
    REFUSED(masquerade_open(words[1], average, &opened));
    REFUSED(masquerade_open(words[1], precision, &opened));
    REFUSED(masquerade_open_tokenizer(NULL, NULL, &reader));
    REFUSED(masquerade_open_tokenizer(words[3], NULL, NULL));
    REFUSED(masquerade_open_tokenizer("/nosuch", NULL, &reader));
    REFUSED(masquerade_open_tokenizer(words[3], cased, &reader));
    REFUSED(masquerade_tokenizer_of(run, NULL));

    /* Handles: null, closed, unknown. */
    masquerade_run *no_runs[] = {NULL, closed, unknown};
    for (int i = 0; i < 3; i++) {
        masquerade_run *no = no_runs[i];
        REFUSED(masquerade_close(no));
        REFUSED(masquerade_describe(no, &text));
        REFUSED(masquerade_encode(no, one, 1, NULL, &array));
        REFUSED(masquerade_decode(no, &good, NULL, &text));
        REFUSED(masquerade_generate(no, one, 1, NULL, &text));
        REFUSED(masquerade_score(no, one, 1, NULL, &array));
        REFUSED(masquerade_score_tokens(no, one[0], NULL, &array, &text));
        REFUSED(masquerade_attention(no, one[0], ignore_map, NULL));
        REFUSED(masquerade_tokenizer_of(no, &reader));
    }
    masquerade_tokenizer *no_readers[] = {NULL, closed_t, unknown_t};
    for (int i = 0; i < 3; i++) {
        masquerade_tokenizer *no = no_readers[i];
        REFUSED(masquerade_close_tokenizer(no));
        REFUSED(masquerade_tokenize(no, one[0], NULL, &array));
        REFUSED(masquerade_vocabulary(no, &text));
        a = good, a.type = MASQUERADE_INT32, a.dimensions = 1, a.shape[0] = 2, a.data = ids;
        REFUSED(masquerade_detokenize(no, &a, &text));
    }

    /* Null results and arguments. */
    REFUSED(masquerade_describe(run, NULL));
    REFUSED(masquerade_encode(run, one, 1, NULL, NULL));
    REFUSED(masquerade_decode(run, &good, NULL, NULL));
    REFUSED(masquerade_decode(run, NULL, NULL, &text));
    REFUSED(masquerade_generate(run, one, 1, NULL, NULL));
    REFUSED(masquerade_score(run, one, 1, NULL, NULL));
    REFUSED(masquerade_score_tokens(run, one[0], NULL, NULL, &text));
    REFUSED(masquerade_score_tokens(run, one[0], NULL, &array, NULL));
    REFUSED(masquerade_score_tokens(run, NULL, NULL, &array, &text));
    REFUSED(masquerade_attention(run, NULL, ignore_map, NULL));
    REFUSED(masquerade_attention(run, one[0], NULL, NULL));
    REFUSED(masquerade_tokenize(t, NULL, NULL, &array));
    REFUSED(masquerade_tokenize(t, one[0], NULL, NULL));
    REFUSED(masquerade_detokenize(t, NULL, &text));
    REFUSED(masquerade_vocabulary(t, NULL));
    REFUSED(masquerade_mask(NULL, 3, 3, &array));
    REFUSED(masquerade_mask("unilm", 3, 3, NULL));
    REFUSED(masquerade_mask_words(NULL, &text));
    REFUSED(masquerade_train(NULL, NULL, NULL, NULL, NULL));

    /* Lines: null, with a hole, with a line feed; too many. */
    const char *reconstruct[] = {"reconstruct=true", NULL};
    const char *const *no_lines[] = {NULL, (const char *const *)hole, (const char *const *)feed};
    for (int i = 0; i < 3; i++) {
        const size_t n = i == 1 ? 2 : 1;
        REFUSED(masquerade_encode(run, no_lines[i], n, NULL, &array));
        REFUSED(masquerade_generate(run, no_lines[i], n, reconstruct, &text));
        REFUSED(masquerade_score(run, no_lines[i], n, NULL, &array));
    }
    REFUSED(masquerade_encode(run, one, (size_t)-1, NULL, &array));
    REFUSED(masquerade_tokenize(t, feed[0], NULL, &array));
    REFUSED(masquerade_attention(run, feed[0], ignore_map, NULL));
    REFUSED(masquerade_score_tokens(run, feed[0], NULL, &array, &text));
    REFUSED(masquerade_generate(run, one, 1, NULL, &text)); /* these options draw samples, which read no lines */

    /* Options. */
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        REFUSED(masquerade_generate(run, NULL, 0, options[i], &text));
        REFUSED(masquerade_decode(run, &good, options[i], &text));
        REFUSED(masquerade_encode(run, one, 1, options[i], &array));
        REFUSED(masquerade_score(run, one, 1, options[i], &array));
        REFUSED(masquerade_open(words[1], options[i], &opened));
        REFUSED(masquerade_tokenize(t, one[0], options[i], &array));
        REFUSED(masquerade_train(NULL, options[i], NULL, NULL, &text));
    }

    /* Options that write over files of the run, that do not write a line for a row, or that resume cannot change. */
    char over[4096];
    snprintf(over, sizeof over, "vectors=%s/run.json", words[1]);
    const char *overwrite[] = {over, NULL}, *near[] = {"nearest=/nosuch", NULL}, *states[] = {"states=cls", NULL};
    snprintf(again, sizeof again, "resume=%s", words[1]);
    const char *moved[] = {again, "out=/nosuch", NULL}, *renamed[] = {again, "data=/nosuch", NULL};
    REFUSED(masquerade_generate(run, one, 1, overwrite, &text));
    REFUSED(masquerade_decode(run, &good, near, &text));
    REFUSED(masquerade_decode(run, &good, states, &text));
    REFUSED(masquerade_decode(run, &good, overwrite, &text));
    REFUSED(masquerade_train(NULL, moved, NULL, NULL, &text));
    REFUSED(masquerade_train(NULL, renamed, NULL, NULL, &text));

    /* Arrays: type, dimensions, sizes, data, numbers. */
    for (int i = 0; i < 64; i++) bad[i] = i % 2 ? NAN : INFINITY;
    for (int type = -1; type < 6; type++) {
        a = good, a.type = type, a.data = z;
        if (type != MASQUERADE_FLOAT64 && type != MASQUERADE_FLOAT32) REFUSED(masquerade_decode(run, &a, NULL, &text));
        a.shape[0] = a.shape[1] = 1;
        if (type != MASQUERADE_BOOL) REFUSED(masquerade_mask_words(&a, &text));
        a.dimensions = 1;
        if (type != MASQUERADE_INT32) REFUSED(masquerade_detokenize(t, &a, &text));
    }
    for (int dimensions = -1; dimensions < 6; dimensions++) {
        a = good, a.dimensions = dimensions, a.shape[2] = 1;
        if (dimensions != 2) REFUSED(masquerade_decode(run, &a, NULL, &text));
        a.type = MASQUERADE_BOOL;
        if (dimensions != 2) REFUSED(masquerade_mask_words(&a, &text));
        a.type = MASQUERADE_INT32;
        if (dimensions != 1) REFUSED(masquerade_detokenize(t, &a, &text));
    }
    const int64_t sizes[] = {-1, INT64_MIN, INT64_MAX, (int64_t)1 << 32};
    for (int i = 0; i < 4; i++) {
        a = good, a.shape[0] = sizes[i];
        REFUSED(masquerade_decode(run, &a, NULL, &text));
        a = good, a.shape[1] = sizes[i];
        REFUSED(masquerade_decode(run, &a, NULL, &text));
        a.type = MASQUERADE_BOOL;
        REFUSED(masquerade_mask_words(&a, &text));
        a = good, a.type = MASQUERADE_INT32, a.dimensions = 1, a.shape[0] = sizes[i];
        REFUSED(masquerade_detokenize(t, &a, &text));
    }
    a = good, a.shape[1] -= 1;
    REFUSED(masquerade_decode(run, &a, NULL, &text));
    a = good, a.data = NULL;
    REFUSED(masquerade_decode(run, &a, NULL, &text));
    a = good, a.data = bad;
    REFUSED(masquerade_decode(run, &a, NULL, &text));
    a = (masquerade_array){MASQUERADE_INT32, 1, {3}, ids};
    REFUSED(masquerade_detokenize(t, &a, &text));
    a.shape[0] = 1, a.data = negative;
    REFUSED(masquerade_detokenize(t, &a, &text));
    a.data = NULL;
    REFUSED(masquerade_detokenize(t, &a, &text));
    a = (masquerade_array){MASQUERADE_BOOL, 2, {2, 3}, cells};
    REFUSED(masquerade_mask_words(&a, &text));
    a.shape[0] = a.shape[1] = 0;
    REFUSED(masquerade_mask_words(&a, &text));

    /* Masks. */
    REFUSED(masquerade_mask("", 3, 3, &array));
    REFUSED(masquerade_mask("nosuch", 3, 3, &array));
    REFUSED(masquerade_mask("A ful", 3, 3, &array));
    REFUSED(masquerade_mask("unilm", -1, 3, &array));
    REFUSED(masquerade_mask("unilm", 3, -1, &array));
    REFUSED(masquerade_mask("unilm", 1 << 30, 3, &array));
    REFUSED(masquerade_mask("AB rows=10/11", 3, 0, &array));

    /* Another family. */
    REFUSED(masquerade_encode(other, one, 1, NULL, &array));
    REFUSED(masquerade_decode(other, &good, NULL, &text));
    REFUSED(masquerade_generate(other, one, 1, NULL, &text));
    REFUSED(masquerade_generate(other, NULL, 0, NULL, &text));
    REFUSED(masquerade_score(other, one, 1, NULL, &array));
    REFUSED(masquerade_score_tokens(other, one[0], NULL, &array, &text));
    REFUSED(masquerade_score_tokens(run, one[0], NULL, &array, &text)); /* latents: no sum over tokens */
    REFUSED(masquerade_attention(other, one[0], ignore_map, NULL));

    /* Training. */
    const char *none[] = {"nosuch", NULL}, *setting[] = {"univae", "layers=0", NULL}, *key[] = {"univae", "layer=3", NULL},
               *loose[] = {"univae", "layers=2", "unilm", NULL}, *data[] = {"data=/nosuch", NULL},
               *out[] = {"out=/", NULL}, *resume[] = {"resume=/nosuch", NULL}, *steps[] = {"steps=0", NULL};
    REFUSED(masquerade_train(none, NULL, NULL, NULL, &text));
    REFUSED(masquerade_train(setting, NULL, NULL, NULL, &text));
    REFUSED(masquerade_train(key, NULL, NULL, NULL, &text));
    REFUSED(masquerade_train(loose, NULL, NULL, NULL, &text));
    REFUSED(masquerade_train(NULL, data, NULL, NULL, &text));
    REFUSED(masquerade_train(NULL, out, NULL, NULL, &text));
    REFUSED(masquerade_train(NULL, resume, NULL, NULL, &text));
    REFUSED(masquerade_train(NULL, steps, NULL, NULL, &text));

    masquerade_free_text(NULL);
    masquerade_free_array(NULL);
    masquerade_free_array(&good);
    masquerade_free_array(&good);
    masquerade_close(run);
    masquerade_close(other);
    masquerade_close_tokenizer(t);
    printf("%d calls refused, %d not as they should be\n", calls, wrong);
    return wrong != 0;
}
