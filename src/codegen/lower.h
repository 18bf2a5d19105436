// One loop nest as one LLVM function. The machine is known only as a number of lanes.
#pragma once
#include "backend/cpu/loop_nest.h"

namespace llvm {
class Module;
}

namespace muster::codegen {

/// Adds the function nest.name (RowsFunction or TileFunction) to the module. `lanes`: f32 of a vector. Sums over the columns of a row are
/// two sums of vectors, then pairs of lanes: the order follows from width and lanes only.
void lower(const cpu::LoopNest& nest, unsigned lanes, llvm::Module& module);

}  // namespace muster::codegen
