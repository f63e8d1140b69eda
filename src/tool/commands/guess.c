/* SPDX-License-Identifier: Apache-2.0 */
/* Guesses the word that a misspelt word stands for. */
#include "tool/tool.h"

#include <ctype.h>
#include <string.h>

enum { LONGEST = 40 }; /* characters; longer words are compared with nothing */

static int least(int a, int b)
{
    return a < b ? a : b;
}

static bool same(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b) || (a == '_' && b == '-');
}

/* True for a word that has more behind the candidate, or behind its singular: --stride-h is one
 * side of --strides, and its value is not that of both. A plural is a misspelling. */
static bool continues(const struct guess *guess, const char *candidate, size_t length)
{
    if (length > 0 && candidate[length - 1] == 's') length--;
    if (length == 0 || guess->length <= length) return false;
    for (size_t i = 0; i < length; i++)
        if (!same(guess->word[i], candidate[i])) return false;
    return guess->length > length + 1 || guess->word[length] != 's';
}

/* The edit distance: how many letters must be changed, removed, added or swapped with their
 * neighbour. */
static int edit_distance(const char *a, size_t length_a, const char *b, size_t length_b)
{
    int rows[3][LONGEST + 1]; /* the last three rows of the table over all prefixes */
    for (size_t j = 0; j <= length_b; j++) rows[0][j] = (int)j;
    for (size_t i = 1; i <= length_a; i++) {
        int *row = rows[i % 3];
        const int *above = rows[(i - 1) % 3], *before = rows[(i + 1) % 3];
        row[0] = (int)i;
        for (size_t j = 1; j <= length_b; j++) {
            row[j] =
                least(least(above[j], row[j - 1]) + 1, above[j - 1] + !same(a[i - 1], b[j - 1]));
            if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]))
                row[j] = least(row[j], before[j - 2] + 1);
        }
    }
    return rows[length_a % 3][length_b];
}

struct guess guess_begin(const char *word, size_t length)
{
    return (struct guess){word, length, NULL, 0, 0};
}

void guess_try(struct guess *guess, const char *candidate)
{
    const size_t length = strlen(candidate);
    if (guess->length < 2 || guess->length > LONGEST || length > LONGEST) return;
    /* A candidate that begins with the word is closer than any misspelling. Two mean different
     * things, as --pads-begin and --pads-end: then none. */
    if (guess->length >= 3 && strncmp(candidate, guess->word, guess->length) == 0) {
        guess->best = guess->begins++ == 0 ? candidate : NULL;
        return;
    }
    if (guess->begins > 0 || continues(guess, candidate, length)) return;
    const int edits = edit_distance(guess->word, guess->length, candidate, length);
    const int most = guess->length < 6 ? 1 : 2;
    /* Of two as close, the one that begins with the same letter. */
    const int distance = 2 * edits + !same(guess->word[0], candidate[0]);
    if (edits > most || (guess->best != NULL && distance >= guess->distance)) return;
    guess->best = candidate;
    guess->distance = distance;
}
