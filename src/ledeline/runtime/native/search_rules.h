/* What a step of a search must not write: words that never follow, repeated n-grams, and hypotheses that are
   as good as the same (docs/search.md). */

#ifndef LEDELINE_SEARCH_RULES_H
#define LEDELINE_SEARCH_RULES_H

#include "search.h"

/* Rule out what the hypotheses of a beam must not write: search->beam_logits become -inf there. Returns 0
   if there was no memory. */
int rule_out(Search *search, const Beam *beam);

#endif
