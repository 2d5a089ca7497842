#include "vmvx/settings.h"

#include <stdlib.h>
#include <string.h>

#include "eyas/vmvx.h"

// Products have finer sets than elements: for "avx512-vnni" those of "avx512" serve.
static const eyas_uk_elements_t* find_elements(const char* name) {
  const eyas_uk_elements_t* found = eyas_uk_elements(name);
  const char* dash = name ? strchr(name, '-') : NULL;
  char plain[32];
  if (found || !dash || (size_t)(dash - name) >= sizeof(plain)) return found;
  memcpy(plain, name, (size_t)(dash - name));
  plain[dash - name] = 0;
  return eyas_uk_elements(plain);
}

eyas_status_t eyas_vmvx_settings(eyas_vmvx_settings_t* out_settings) {
  const char* kernels = getenv("EYAS_VMVX_KERNELS");
  if (kernels && !kernels[0]) kernels = NULL;
  eyas_vmvx_settings_t settings = {.elements = find_elements(kernels),
                                   .products = eyas_uk_products(kernels)};
  if (!settings.elements || !settings.products) {
    return eyas_status_make(EYAS_STATUS_INVALID_ARGUMENT,
                            "EYAS_VMVX_KERNELS is '%s'; this CPU has no such microkernels. "
                            "'portable' is always there",
                            kernels ? kernels : "");
  }
  settings.width = settings.products->width;
  const char* width = getenv("EYAS_VMVX_WIDTH");
  if (width && width[0]) {
    if (!strchr("1248", width[0]) || width[1]) {
      return eyas_status_make(EYAS_STATUS_INVALID_ARGUMENT,
                              "EYAS_VMVX_WIDTH is '%s'; allowed are 1, 2, 4 and 8", width);
    }
    settings.width = (unsigned)(width[0] - '0');
  }
  *out_settings = settings;
  return NULL;
}

eyas_status_t eyas_vmvx_info(eyas_vmvx_info_t* out_info) {
  eyas_vmvx_settings_t settings;
  EYAS_RETURN_IF_ERROR(eyas_vmvx_settings(&settings));
  *out_info = (eyas_vmvx_info_t){.kernels = settings.products->name, .width = settings.width};
  return NULL;
}
