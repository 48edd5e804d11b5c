// SPDX-License-Identifier: MIT
// words BYTES: writes a text of this size, for docs/results/packed-text.md. A line has 3 to 20 words of 200,000 made-up
// words, whose frequencies fall roughly as in Zipf's law.
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { count = 200000 };
static char words[count][24], line[1024];

static uint64_t state = 88172645463325252ull;
static uint64_t next(void) {  // xorshift64
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

int main(int argc, char** argv) {
    const char* syllables[] = {"ba", "ko", "ri",  "ten", "lu",  "sam", "or", "ne",
                               "vi", "pal", "du", "chi", "mar", "el",  "so", "fin"};
    for (int i = 0; i < count; i++)
        for (int left = i + 16; left > 0; left /= 16) strcat(words[i], syllables[left % 16]);
    const uint64_t total = argc > 1 ? strtoull(argv[1], 0, 10) : 0;
    for (uint64_t done = 0; done < total;) {
        char* at = line;
        for (int i = 0, n = 3 + (int)(next() % 18); i < n; i++) {
            const double u = (double)(next() >> 11) / 9007199254740992.0;
            const char* word = words[(int)(exp(u * log(count)) - 1)];
            if (i > 0) *at++ = ' ';
            strcpy(at, word);
            at += strlen(word);
        }
        *at++ = '\n';
        fwrite(line, 1, (size_t)(at - line), stdout);
        done += (uint64_t)(at - line);
    }
    return 0;
}
