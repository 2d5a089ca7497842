// snprintf for the formats that the runtime's messages have: %s %.*s %c %d %u %x %X with ll and z,
// and a width with zeros. The C library's brings all of floating point with it, ten kilobytes.
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef struct out_t {
  char* text;
  size_t capacity, length;
} out_t;

static void put(out_t* out, char c) {
  if (out->length + 1 < out->capacity) out->text[out->length] = c;
  ++out->length;
}

static void put_number(out_t* out, uint64_t value, unsigned base, int width, char hex) {
  char digits[24];
  int count = 0;
  do {
    unsigned digit = (unsigned)(value % base);
    digits[count++] = (char)(digit < 10 ? '0' + digit : hex + digit - 10);
    value /= base;
  } while (value);
  while (count < width && count < 24) digits[count++] = '0';
  while (count > 0) put(out, digits[--count]);
}

__attribute__((used)) int vsnprintf(char* text, size_t capacity, const char* format, va_list list) {
  out_t out = {text, capacity, 0};
  for (; *format; ++format) {
    if (*format != '%') {
      put(&out, *format);
      continue;
    }
    int width = 0, wide = 0;
    while (*++format >= '0' && *format <= '9') width = width * 10 + (*format - '0');
    int most = INT_MAX;  // characters of a text
    if (*format == '.') {
      for (most = 0; *++format >= '0' && *format <= '9';) most = most * 10 + (*format - '0');
      if (*format == '*') {
        most = va_arg(list, int);
        ++format;
      }
    }
    for (; *format == 'l' || *format == 'z'; ++format) ++wide;
    if (*format == 's') {
      const char* s = va_arg(list, const char*);
      for (; most > 0 && *s; --most) put(&out, *s++);
    } else if (*format == 'c') {
      put(&out, (char)va_arg(list, int));
    } else if (*format == 'd') {
      int64_t value = wide ? va_arg(list, int64_t) : va_arg(list, int);
      if (value < 0) put(&out, '-');
      put_number(&out, value < 0 ? 0 - (uint64_t)value : (uint64_t)value, 10, width, 0);
    } else if (*format == 'u' || *format == 'x' || *format == 'X') {
      uint64_t value = wide ? va_arg(list, uint64_t) : va_arg(list, unsigned);
      put_number(&out, value, *format == 'u' ? 10 : 16, width, *format == 'X' ? 'A' : 'a');
    } else if (*format) {
      put(&out, *format);
    } else {
      break;
    }
  }
  if (capacity) text[out.length < capacity ? out.length : capacity - 1] = 0;
  return (int)out.length;
}

__attribute__((used)) int snprintf(char* text, size_t capacity, const char* format, ...) {
  va_list list;
  va_start(list, format);
  int length = vsnprintf(text, capacity, format, list);
  va_end(list);
  return length;
}
