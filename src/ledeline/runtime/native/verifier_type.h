/* The verifier as a type of Python. */

#ifndef LEDELINE_VERIFIER_TYPE_H
#define LEDELINE_VERIFIER_TYPE_H

#include "held_tensors.h"

/* `Verifier(tensors, shape, bounds, int8, kind)`, with `judge`; or NULL with a Python error. */
PyObject *make_verifier_type(PyObject *module);

#endif
