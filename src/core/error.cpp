#include "core/error.h"

#include <cstring>

namespace muster {

int exit_code(ErrorKind kind) { return kind == ErrorKind::usage ? 2 : 1; }

std::string errno_text(int errno_value) {
  char buffer[256] = {};
  return strerror_r(errno_value, buffer, sizeof buffer);  // GNU variant: returns the text
}

}  // namespace muster
