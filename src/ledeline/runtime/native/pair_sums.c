#include "pair_sums.h"

#include <stdlib.h>
#include <string.h>

#define MOST (INT16_MAX / MOST_INPUT) /* of the weights of one sign in a sum */

#define LANES_OF_QUADS (GROUP * QUAD / 2) /* sums of two neighbouring weights of an output */

/* Whether each lane's two weights of both quads fit into a sum. Lanes are pairs of bytes, as compilers make
   vectors of. */
static int fit(const int8_t *quads) {
    int16_t one[LANES_OF_QUADS], other[LANES_OF_QUADS], too_many = 0;
    memcpy(one, quads, sizeof one), memcpy(other, quads + GROUP * QUAD, sizeof other);
    for (int l = 0; l < LANES_OF_QUADS; l++) {
        int16_t a = (int16_t)((int16_t)((uint16_t)one[l] << 8) >> 8), b = (int16_t)(one[l] >> 8);
        int16_t c = (int16_t)((int16_t)((uint16_t)other[l] << 8) >> 8), d = (int16_t)(other[l] >> 8);
        int16_t sum = (int16_t)(a + b + c + d);
        int16_t above = (int16_t)((a > 0 ? a : 0) + (b > 0 ? b : 0) + (c > 0 ? c : 0) + (d > 0 ? d : 0));
        too_many = (int16_t)(too_many | (above > MOST) | (above - sum > MOST));
    }
    return !too_many;
}

/* Move the second weights of lanes that do not fit to `apart`. */
static void move_apart(int8_t *quads, int8_t *apart) {
    for (int l = 0; l < LANES_OF_QUADS; l++) {
        int8_t lane[GROUP * QUAD * 2] = {0}, *other = quads + GROUP * QUAD + 2 * l;
        memcpy(lane, quads + 2 * l, 2), memcpy(lane + GROUP * QUAD, other, 2);
        if (!fit(lane)) memcpy(apart + 2 * l, other, 2), memset(other, 0, 2);
    }
}

int split_pair_sums(Linear *layer, Block **blocks, int8_t *levels) {
    Size groups = layer->stride / GROUP, pairs = layer->width / PAIR, number = 0;
    Size *starts = keep(blocks, ((size_t)groups + 1) * sizeof *starts);
    int32_t *found = malloc(((size_t)(groups * pairs) + 1) * sizeof *found);
    if (!starts || !found) return free(found), 0;
    for (Size n = 0; n < groups * pairs; n++) {
        if (!fit(levels + n * PAIR * GROUP)) found[number++] = (int32_t)n;
        if ((n + 1) % pairs == 0) starts[(n + 1) / pairs] = number;
    }
    int8_t *apart = keep(blocks, (size_t)number * QUAD * GROUP);
    int32_t *places = keep(blocks, (size_t)number * sizeof *places);
    for (Size i = 0; apart && places && i < number; i++) {
        move_apart(levels + (Size)found[i] * PAIR * GROUP, apart + i * QUAD * GROUP);
        places[i] = (int32_t)(found[i] % pairs * PAIR + QUAD);
    }
    free(found);
    layer->apart = (Apart){apart, places, starts};
    return apart && places;
}
