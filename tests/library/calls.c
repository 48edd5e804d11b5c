/* SPDX-License-Identifier: MIT */
/* calls RUN LINE...: calls every function of masquerade.h that reads a run, and prints what it returns, or the message of
 * its failure. calls.py makes the same calls and must print the same. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "library/masquerade.h"

static const char *const none[] = {NULL};

/* Prints a text in one line, with its line feeds as /. */
static void print_text(const char *name, int status, char *text) {
    printf("%s: ", name);
    if (status) printf("%d %s", status, masquerade_error());
    for (const char *c = status ? "" : text; *c; c++) putchar(*c == '\n' ? '/' : *c);
    putchar('\n');
    if (!status) masquerade_free_text(text);
}

static double number(const masquerade_array *a, long i) {
    if (a->type == MASQUERADE_FLOAT64) return ((const double *)a->data)[i];
    if (a->type == MASQUERADE_FLOAT32) return ((const float *)a->data)[i];
    if (a->type == MASQUERADE_INT32) return ((const int32_t *)a->data)[i];
    return ((const unsigned char *)a->data)[i];
}

static void print_numbers(const masquerade_array *a) {
    long count = 1;
    for (int d = 0; d < a->dimensions; d++) printf("%s%ld", d ? "x" : "", (long)a->shape[d]), count *= (long)a->shape[d];
    for (long i = 0; i < count; i++) printf(" %.17g", number(a, i));
}

static void print_array(const char *name, int status, masquerade_array *a) {
    printf("%s: ", name);
    if (status) printf("%d %s", status, masquerade_error());
    else print_numbers(a);
    putchar('\n');
    if (!status) masquerade_free_array(a);
}

/* Prints a text that is one line. */
static void print_part(const char *text) {
    for (; *text; text++) putchar(*text == '\n' ? '/' : *text);
}

static void print_map(const char *path, const char *rows, const char *columns, const masquerade_array *p, void *user) {
    ++*(int *)user;
    printf("attention %s ", path);
    print_part(rows);
    putchar(' ');
    print_part(columns);
    putchar(' ');
    print_numbers(p);
    putchar('\n');
}

int main(int count, char **words) {
    const char *const *lines = (const char *const *)words + 2;
    const size_t n = (size_t)(count - 2);
    const char *const reconstruct[] = {"reconstruct=true", NULL}, *const samples[] = {"count=3", "seed=7", NULL},
                      *const beam[] = {"beam=3", "n_best=2", "scores=true", NULL}, *const few[] = {"importance=3", NULL};
    masquerade_run *run;
    masquerade_tokenizer *tokenizer;
    masquerade_array a;
    char *text;
    int status, decoded, maps = 0;

    if (masquerade_open(words[1], none, &run)) return fprintf(stderr, "%s\n", masquerade_error()), 1;
    status = masquerade_describe(run, &text);
    print_text("describe", status, text);
    status = masquerade_encode(run, lines, n, none, &a);
    if (!status) {
        masquerade_array copy = a;
        decoded = masquerade_decode(run, &copy, none, &text);
        print_text("decode", decoded, text);
    }
    print_array("encode", status, &a);
    status = masquerade_generate(run, lines, n, reconstruct, &text);
    print_text("reconstruct", status, text);
    status = masquerade_generate(run, lines, n, none, &text);
    print_text("generate", status, text);
    status = masquerade_generate(run, lines, n, beam, &text);
    print_text("beam", status, text);
    status = masquerade_generate(run, NULL, 0, samples, &text);
    print_text("samples", status, text);
    status = masquerade_score(run, lines, n, few, &a);
    print_array("score", status, &a);
    status = masquerade_score(run, lines, 1, few, &a);
    print_array("score of one", status, &a);
    status = masquerade_score_tokens(run, lines[0], none, &a, &text);
    if (status) print_text("score tokens", status, NULL);
    else {
        print_text("tokens", status, text);
        print_array("their nats", status, &a);
    }
    status = masquerade_attention(run, lines[0], print_map, &maps);
    if (status) print_text("attention", status, NULL);
    else printf("attention: %d maps\n", maps);

    if (masquerade_tokenizer_of(run, &tokenizer)) return fprintf(stderr, "%s\n", masquerade_error()), 1;
    for (size_t i = 0; i < n; i++) {
        status = masquerade_tokenize(tokenizer, lines[i], none, &a);
        if (!status) {
            int32_t *ids = malloc(sizeof *ids * (size_t)a.shape[0] + 1);
            masquerade_array of_ids = {MASQUERADE_INT32, 1, {0}, NULL};
            of_ids.shape[0] = a.shape[0], of_ids.data = ids;
            for (int64_t t = 0; t < a.shape[0]; t++) ids[t] = ((const int32_t *)a.data)[3 * t];
            decoded = masquerade_detokenize(tokenizer, &of_ids, &text);
            print_text("detokenize", decoded, text);
            free(ids);
        }
        print_array("tokenize", status, &a);
    }
    status = masquerade_vocabulary(tokenizer, &text);
    print_text("vocabulary", status, text);
    masquerade_close(run); /* the tokenizer does not need the run */
    status = masquerade_vocabulary(tokenizer, &text);
    print_text("vocabulary", status, text);
    masquerade_close_tokenizer(tokenizer);
    return 0;
}
