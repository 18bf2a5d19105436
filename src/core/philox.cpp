#include "core/philox.h"

#include <cmath>
#include <numbers>

namespace muster {

double Philox::normal() {
  const double u = (static_cast<double>(next()) + 1.0) * 0x1p-32;  // (0, 1]: the logarithm is finite
  const double v = static_cast<double>(next()) * 0x1p-32;
  return std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v);
}

}  // namespace muster
