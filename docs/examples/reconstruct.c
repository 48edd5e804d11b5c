/* SPDX-License-Identifier: MIT */
/* ./reconstruct RUN SENTENCE... prints how likely a univae finds each sentence, and how it reconstructs it. */
#include <masquerade.h>
#include <stdio.h>

int main(int count, char **words) {
    const char *options[] = {"reconstruct=true", NULL};
    const char *const *sentences = (const char *const *)words + 2;
    masquerade_run *run;
    masquerade_array scores;
    char *lines;
    if (count < 3 || masquerade_open(words[1], NULL, &run) ||
        masquerade_score(run, sentences, (size_t)count - 2, NULL, &scores) ||
        masquerade_generate(run, sentences, (size_t)count - 2, options, &lines)) {
        fprintf(stderr, "error: %s\n", count < 3 ? "expected RUN SENTENCE..." : masquerade_error());
        return 1;
    }
    for (int64_t i = 0; i < scores.shape[0]; i++) {
        const double *score = (const double *)scores.data + 2 * i; /* nats, tokens */
        printf("%.1f nats in %.0f tokens: %s\n", score[0], score[1], sentences[i]);
    }
    fputs(lines, stdout);
    masquerade_free_array(&scores);
    masquerade_free_text(lines);
    return masquerade_close(run);
}
