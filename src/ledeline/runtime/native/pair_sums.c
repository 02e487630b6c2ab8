#include "pair_sums.h"

#include <string.h>

#define MOST (INT16_MAX / MOST_INPUT) /* of the weights of one sign in a sum */

/* The places in a quad of a group: lane l of the 32 has the weights 2 l and 2 l + 1. */
#define NUM_LANES (GROUP * QUAD / 2)

static int fits(const int8_t *one, const int8_t *other) {
    int above = 0, below = 0;
    for (int i = 0; i < 4; i++) {
        int weight = i < 2 ? one[i] : other[i - 2];
        above += weight > 0 ? weight : 0, below += weight < 0 ? -weight : 0;
    }
    return above <= MOST && below <= MOST;
}

/* The lanes of two quads that do not fit; with `apart`, their second weights are moved there. */
static int spill(int8_t *quads, int8_t *apart) {
    int number = 0;
    for (int l = 0; l < NUM_LANES; l++) {
        int8_t *one = quads + 2 * l, *other = one + GROUP * QUAD;
        if (fits(one, other)) continue;
        number++;
        if (apart) memcpy(apart + 2 * l, other, 2), memset(other, 0, 2);
    }
    return number;
}

int split_pair_sums(Linear *layer, Block **blocks, int8_t *levels) {
    Size groups = layer->stride / GROUP, pairs = layer->width / PAIR, number = 0;
    for (Size n = 0; n < groups * pairs; n++) number += spill(levels + n * PAIR * GROUP, NULL) > 0;
    int8_t *apart = keep(blocks, (size_t)number * QUAD * GROUP);
    int32_t *places = keep(blocks, (size_t)number * sizeof *places);
    Size *starts = keep(blocks, ((size_t)groups + 1) * sizeof *starts), at = 0;
    if (!apart || !places || !starts) return 0;
    for (Size n = 0; n < groups * pairs; n++) {
        if (n % pairs == 0) starts[n / pairs] = at;
        if (!spill(levels + n * PAIR * GROUP, apart + at * QUAD * GROUP)) continue;
        places[at++] = (int32_t)(n % pairs * PAIR + QUAD);
    }
    starts[groups] = at;
    layer->apart = (Apart){apart, places, starts};
    return 1;
}
