// The functions that a CPU executable may call: a fixed list. Everything else is refused at load.
#ifndef EYAS_HAL_CPU_IMPORTS_H_
#define EYAS_HAL_CPU_IMPORTS_H_

#include <stddef.h>

// Any function; it is called through the type that its name implies.
typedef void (*eyas_hal_import_fn_t)(void);

// NULL when the name is not offered.
eyas_hal_import_fn_t eyas_hal_import_lookup(const char* name);

// The list, for documentation and tests; NULL beyond the last.
const char* eyas_hal_import_name(size_t index);

#endif  // EYAS_HAL_CPU_IMPORTS_H_
