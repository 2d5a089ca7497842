// From the error word of a submission to a status.
#include "hal/command_buffer.h"

const eyas_hal_command_t* eyas_hal_error_command(const eyas_hal_command_buffer_t* commands,
                                                 uint32_t word) {
  size_t index = word >> EYAS_ERROR_CODE_BITS;
  // Code that was compiled wrongly may have written anything.
  return &eyas_hal_commands(commands)[index < commands->commands.count ? index : 0];
}

eyas_status_t eyas_hal_error_status(const eyas_hal_command_buffer_t* commands, uint32_t word) {
  const eyas_hal_command_t* command = eyas_hal_error_command(commands, word);
  const uint32_t code = word & ((1u << EYAS_ERROR_CODE_BITS) - 1);
  if (code == EYAS_ERROR_BAD_DATA) {
    return eyas_status_make(
        EYAS_STATUS_INVALID_ARGUMENT,
        "dispatch '%s': a value in the data is not allowed, such as an index out of range",
        eyas_hal_command_name(command));
  }
  return eyas_status_make(EYAS_STATUS_INTERNAL, "dispatch '%s' (command %u) reported error %u",
                          eyas_hal_command_name(command), word >> EYAS_ERROR_CODE_BITS, code);
}
